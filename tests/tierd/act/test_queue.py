"""Moves that are dropped while the queue looks at them, or while the engine is at work: none goes that was dropped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from lustre.filesystem import FileStatus
from tests.tierd.act.gate_world import DATA, FINDING, World
from tests.tierd.act.movers.minilustre import FLASH, HDD
from tierd.model import Action

OTHER = ("noisy-neighbour", "other", "s")
COUNT = 12


@settings(max_examples=60)
@given(owners=st.lists(st.booleans(), min_size=COUNT, max_size=COUNT), gone=st.sets(st.integers(0, COUNT - 1)),
       at_look=st.integers(0, 2 * COUNT), directory=st.booleans())
def test_a_move_dropped_during_its_check_is_neither_done_nor_kept(
        owners: list[bool], gone: set[int], at_look: int, directory: bool) -> None:
    with TemporaryDirectory() as folder:
        world = World(Path(folder))
        other = world.journal.add_finding(replace(FINDING, aggressor="other"))
        for number, ours in enumerate(owners):
            path = f"/{number}"
            if number not in gone:
                world.lustre.create(path, DATA, HDD)
            key = FINDING.key if ours else OTHER
            world.gate.submit([Action("migrate", FLASH, "because", key, "/d" if number % 2 else "/e", path, 100)],
                              world.finding if ours else other)
        looks, dropped = 0, set[str]()
        status = world.port.status

        def looked(path: str) -> FileStatus:
            nonlocal looks
            looks += 1
            if looks == at_look:
                dropped.update(a.path for a in world.gate.drop(FINDING.key, "/d" if directory else ""))
            return status(path)

        world.port.status = looked  # type: ignore[method-assign]
        world.pump()
        moved = {entry.place for entry in world.journal.entries("done")}
        assert moved.isdisjoint(dropped)
        assert len(moved | dropped) >= COUNT - len(gone), "each was moved, dropped, or gone"
        assert (world.gate.waiting, len(world.journal.queue)) == (0, 0)
        world.journal.close()
