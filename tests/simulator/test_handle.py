"""The dirty pages of an open file."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lustre.fid import Fid
from simulator.clients.data import FileHandle
from simulator.servers.changelog import Actor
from simulator.servers.namespace import Inode
from simulator.servers.placement import Extent

PIECES = st.builds(lambda ost, offset, size: Extent(ost, Fid(1, ost + 1), offset, size),
                   st.integers(0, 2), st.integers(0, 40), st.integers(1, 20))


@given(st.lists(st.tuples(st.lists(PIECES, max_size=3), st.none() | st.integers(0, 50)), max_size=12))
def test_the_sums_of_dirty_bytes_are_those_of_the_pieces(steps: list[tuple[list[Extent], int | None]]) -> None:
    handle = FileHandle(Inode(Fid(2, 1), 0, None, "f", 0.0), Actor(), 2, 0.0, writable=True)
    dirty: dict[int, set[int]] = {}
    for pieces, least_bytes in steps:
        before = sum(map(len, dirty.values()))
        for piece in pieces:
            dirty.setdefault(piece.ost_index, set()).update(range(piece.offset, piece.offset + piece.size_bytes))
        assert sum(map(handle.mark_dirty, pieces)) == sum(map(len, dirty.values())) - before
        if least_bytes is not None:
            full = {ost for ost, places in dirty.items() if len(places) >= least_bytes}
            assert handle.has_dirty(least_bytes) == bool(full)
            taken: dict[int, list[int]] = {}
            for piece in handle.clean(least_bytes):
                taken.setdefault(piece.ost_index, []).extend(range(piece.offset, piece.offset + piece.size_bytes))
            assert taken == {ost: sorted(dirty.pop(ost)) for ost in full}
        assert handle.dirty == bool(dirty)
