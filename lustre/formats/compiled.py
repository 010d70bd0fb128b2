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
from typing import Any

from lustre.formats import header
from lustre.formats.opcodes import Opcode

Mark = Callable[[bytes], int]
Row = tuple[tuple[bytes, ...], bytes, tuple[int, ...]]
"""Packed templates, label text and numbers of a device."""


def _mark(text: bytes, begin: int, end: int) -> int:
    return hash(text[begin:end])


def _mark_below_times(text: bytes) -> int:
    return hash(header.after(text))


def plain_following(text: bytes, keys: tuple[bytes, ...]) -> tuple[bytes, ...]:
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


def _absent(*_: object) -> None:
    """Reads no outline, and makes no template."""


def _needs_c(*_: object) -> Any:
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
following: Callable[[bytes, tuple[bytes, ...]], tuple[bytes, ...]] = plain_following
"""The rest of the line after each key; empty for a missing key. The keys appear in the text in the given order."""
numbers: Callable[[bytes, bytes, bytes], tuple[int | bytes, ...] | None] = _absent
"""The numbers of a text that matches an outline (``lustre.formats.outline``)."""
pack_each: Callable[[tuple[bytes, ...]], tuple[bytes, ...] | None] = _absent
"""Makes templates for the next two from readable ones (``exporter.templates``). None if one has too long a text."""
fill_columns: Callable[[list[Row]], list[bytes]] = _needs_c
"""Prints numbers into templates, for many devices: for each template, the texts of all devices as one text. Each
template takes the numbers after those of the previous one."""
fill_numbers: Callable[[bytes, list[bytes], list[int | None]], bytes] = _needs_c
"""Prints a template for each label text with its number. None prints nothing."""
grow: Callable[[list[int], Sequence[int], Sequence[int], int], bool] = plain_grow
"""Adds the increase of each number to its sum. If any number fell, grew by more than the last argument, or is beyond 63
bits, adds nothing and returns False."""
try:
    from lustre.formats import _texts

    AVAILABLE = {one.name: one[0] for one in Opcode} == _texts.OPCODES
except (ImportError, AttributeError):  # not built, or built from an earlier source
    AVAILABLE = False
if AVAILABLE:
    pack_each, fill_columns, fill_numbers = _texts.pack_each, _texts.fill_columns, _texts.fill_numbers
    mark, mark_below_times = _texts.mark, _texts.mark_below_times
    following, numbers, grow = _texts.following, _texts.numbers, _texts.grow
