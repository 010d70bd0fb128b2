"""Sizes a flash component. It must hold whole small files; otherwise tierd sets no component.

The paper (Cray, CUG 2018) measured 4 MB files with a 1 MB flash component: slower than no flash, since each file has
two objects and still needs seeks on disks. The boundary is above the small files, with a margin. A component that is
too large costs nothing: it takes only the bytes written into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tierd.model import Table
from tierd.refusal import Reason, Refusal
from tierd.text import binary_text, percent
from tierd.validators import Bytes

UNIT_BYTES = 64 << 10
"""Component boundaries are multiples of this (Lustre's alignment)."""
MIN_SAMPLES = 20
"""Sizes needed to use their distribution. With fewer, the mean decides, with a wider margin. A choice."""
SPLIT_SHARE = 0.05
"""Maximum share of files that may be split: files up to 64 times the component. A choice."""


@dataclass(frozen=True)
class Settings(Table):
    """Limits of a flash component."""

    largest_component_bytes: Bytes = 16 << 20
    """Files that need a larger component are not small and do not go to flash. Four times the largest small files of
    the paper."""


@dataclass(frozen=True, slots=True)
class Size:
    """A component size, and what it rests on."""

    component_bytes: int
    reason: str


def component(sizes: Sequence[int], mean_bytes: float, largest_rpc_bytes: int, settings: Settings) -> Size | Refusal:
    """Size a component from sampled sizes, or else from the mean size of a job's files.

    Twice the mean holds all files if sizes are spread evenly from zero.

    >>> component([], 1 << 20, 1 << 20, Settings()).component_bytes
    2097152
    >>> str(component([], 300 << 20, 4 << 20, Settings()))
    'the files have 300 MiB on average: they are not small files'
    """
    known = [size for size in sizes if size > 0]
    if len(known) >= MIN_SAMPLES:
        return from_distribution(known, settings)
    if mean_bytes <= 0:
        return Refusal(Reason.SIZES_UNKNOWN, "the sizes of the files are not known")
    size = boundary(max(int(2 * mean_bytes), largest_rpc_bytes))
    if size > settings.largest_component_bytes:
        return Refusal(Reason.NOT_SMALL, f"the files have {binary_text(mean_bytes)} on average: they are not small "
                       "files")
    return Size(size, f"the files have {binary_text(mean_bytes)} on average, the largest RPC "
                      f"has {binary_text(largest_rpc_bytes)}; sizes could not be sampled")


def from_distribution(sizes: Sequence[int], settings: Settings) -> Size | Refusal:
    """Cover the small mode, all sizes below the widest gap, or where that would split files, all sizes to the limit.

    >>> from_distribution([900_000] * 99 + [5_000_000_000], Settings())
    Size(component_bytes=1048576, reason='99% of 100 sampled files fit in 1 MiB; the largest of these has 879 KiB')
    >>> str(from_distribution([2 << 20] * 60 + [30 << 20] * 40, Settings()))
    'a component of 2 MiB would split 40 of 100 sampled files'
    """
    ordered = sorted(sizes)
    limit = 1 << settings.largest_component_bytes.bit_length() - 1  # the largest boundary
    below = [size for size in ordered if size <= limit]
    if not below:
        return Refusal(Reason.NOT_SMALL, f"the smallest of {len(sizes)} sampled files has {binary_text(ordered[0])}: "
                       "they are not small files")
    for small in small_mode(ordered, below), below:
        size = boundary(small[-1])
        split = sum(size < s <= 64 * size for s in ordered)
        if split <= SPLIT_SHARE * len(ordered):
            return Size(size, f"{percent(len(small) / len(ordered))} of {len(ordered)} sampled files fit in "
                              f"{binary_text(size)}; the largest of these has {binary_text(small[-1])}")
    return Refusal(Reason.SIZES_MIXED, f"a component of {binary_text(size)} would split {split} of {len(ordered)} "
                   "sampled files")


def small_mode(ordered: Sequence[int], below: Sequence[int]) -> Sequence[int]:
    """The sizes up to the limit that lie below the widest gap (as a ratio) to the sizes above them."""
    if len(below) == len(ordered):
        return below
    gap, cut = ordered[len(below)] / below[-1], len(below)
    for index in range(len(below) - 1, 0, -1):
        ratio = below[index] / below[index - 1]
        if ratio > max(gap, 4.0) and index >= 0.5 * len(below):
            gap, cut = ratio, index
    return below[:cut]


def boundary(size_bytes: int) -> int:
    """The next power of two that Lustre accepts as a component end.

    >>> boundary(1 << 20), boundary((1 << 20) + 1), boundary(10)
    (1048576, 2097152, 65536)
    """
    return max(UNIT_BYTES, 1 << (size_bytes - 1).bit_length())
