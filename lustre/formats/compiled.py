r"""Functions of ``lustre/formats/_texts.c`` if a C compiler built the package, else their Python forms (decision 12).

>>> mark(b"one two", 4, 7) == mark(b"two", 0, 3)
True
>>> mark_below_times(b"snapshot_time   1.5\nx 1\n") == mark_below_times(b"x 1\n")
True
>>> sums = [10, 20]
>>> grow(sums, (1, 1), (4, 1), 9), grow(sums, (4, 1), (9, 0), 9), grow(sums, (4, 1), (4, 11), 9), sums
(True, False, False, [13, 20])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add, sub

from lustre.formats import header

Mark = Callable[[bytes], int]


def _mark(text: bytes, begin: int, end: int) -> int:
    return hash(text[begin:end])


def _mark_below_times(text: bytes) -> int:
    return hash(header.after(text))


def _following(text: bytes, keys: tuple[bytes, ...]) -> tuple[bytes, ...]:
    parts: list[bytes] = []
    find, at = text.find, 0
    for key in keys:
        begin = find(key, at)
        end = find(b"\n", begin + len(key))
        if begin < 0 or end < 0:
            parts.append(b"")
        else:
            parts.append(text[begin + len(key) : end])
            at = end
    return tuple(parts)


def _numbers(_outline: bytes, _order: bytes, _text: bytes) -> tuple[int | bytes, ...] | None:
    return None


def _fill(_template: bytes, _values: tuple[int, ...]) -> bytes:
    raise NotImplementedError("this kind of template needs the C module")


def _fill_each(_templates: tuple[bytes, ...], _values: tuple[int, ...]) -> list[bytes]:
    raise NotImplementedError("this kind of template needs the C module")


def _pack_each(_templates: tuple[bytes, ...], _labels: bytes) -> tuple[bytes, ...]:
    raise NotImplementedError("this kind of template needs the C module")


def plain_grow(sums: list[int], before: Sequence[int], now: Sequence[int], most: int) -> bool:
    """Python form of ``grow``, with the same result as the C module."""
    growth = list(map(sub, now, before))
    if growth and (min(growth) < 0 or max(growth) > most):
        return False
    if growth and (max(now) >= header.WRAPPED or min(before) < -header.WRAPPED):
        return False
    sums[:] = map(add, sums, growth)
    return True


mark: Callable[[bytes, int, int], int] = _mark
"""Hash of a part of a text. Different texts almost always have different hashes. Valid within one process."""
mark_below_times: Mark = _mark_below_times
"""Hash of the text after the header. The times in the header change at every reading."""
following: Callable[[bytes, tuple[bytes, ...]], tuple[bytes, ...]] = _following
"""The rest of the line after each key; empty for a missing key. The keys appear in the text in the given order."""
numbers: Callable[[bytes, bytes, bytes], tuple[int | bytes, ...] | None] = _numbers
"""The numbers of a text that matches an outline (``lustre.formats.outline``)."""
fill: Callable[[bytes, tuple[int, ...]], bytes] = _fill
"""Prints numbers into a template (``exporter.templates``)."""
fill_each: Callable[[tuple[bytes, ...], tuple[int, ...]], list[bytes]] = _fill_each
"""Prints numbers into several templates, each with the numbers after those of the previous one."""
pack_each: Callable[[tuple[bytes, ...], bytes], tuple[bytes, ...]] = _pack_each
"""Makes templates for ``fill`` from readable ones, with this label text (``exporter.templates``)."""
grow: Callable[[list[int], Sequence[int], Sequence[int], int], bool] = plain_grow
"""Adds the increase of each number to its sum. If any number fell, grew by more than the last argument, or is beyond 63
bits, adds nothing and returns False."""
try:
    from lustre.formats import _texts
except ImportError:
    AVAILABLE = False
else:
    AVAILABLE = True
    mark, mark_below_times = _texts.mark, _texts.mark_below_times
    following, numbers, grow = _texts.following, _texts.numbers, _texts.grow
    fill, fill_each, pack_each = _texts.fill, _texts.fill_each, _texts.pack_each
