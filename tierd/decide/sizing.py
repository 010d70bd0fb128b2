"""How large a flash component must be: it holds the whole small file, or it is not made.

The paper (Cray, CUG 2018) measured 4 MB files with a 1 MB flash component: worse than no flash at all, for each file
now costs two objects and still seeks on the disks. So the boundary lies above the small files, with room; a component
that is too large costs nothing, as it takes only what is written into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Lt

from tierd.refusal import Reason
from tierd.text import percent

UNIT_BYTES = 64 << 10
"""Component boundaries are multiples of this (Lustre's alignment)."""


@dataclass(frozen=True)
class Settings:
    """Limits of a flash component."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    largest_component_bytes: Annotated[int, Gt(0)] = 16 << 20
    """Files that need more are not small, and flash is not for them."""
    min_samples: Annotated[int, Ge(1)] = 20
    """Sizes needed before a distribution is believed; with fewer the mean decides, with a wider margin."""
    split_share: Annotated[float, Gt(0), Lt(1)] = 0.05
    """Share of files up to 64 times the component that may not fit in it."""


@dataclass(frozen=True, slots=True)
class Size:
    """A component size, or why there is none."""

    component_bytes: int
    """0 where no component would hold the files."""
    reason: str
    refused: Reason | None = None
    """The short name of why there is none."""


def component(sizes: Sequence[int], mean_bytes: float, largest_rpc_bytes: int, settings: Settings) -> Size:
    """Size a component from sampled sizes, or from the mean of a job's files where none could be sampled."""
    known = [size for size in sizes if size > 0]
    if len(known) >= settings.min_samples:
        return from_distribution(known, settings)
    if mean_bytes <= 0:
        return Size(0, "the sizes of the files are not known", Reason.SIZES_UNKNOWN)
    return from_mean(mean_bytes, largest_rpc_bytes, settings)


def from_distribution(sizes: Sequence[int], settings: Settings) -> Size:
    """Cover the small mode: all sizes below the widest gap between powers of two.

    >>> from_distribution([900_000] * 99 + [5_000_000_000], Settings())
    Size(component_bytes=1048576, reason='99% of 100 files sampled fit, the largest of them 879 KiB', refused=None)
    >>> from_distribution([2 << 20] * 60 + [30 << 20] * 40, Settings()).component_bytes  # would split 40% of them
    0
    """
    ordered = sorted(sizes)
    small = small_mode(ordered, settings.largest_component_bytes)
    if not small:
        return Size(0, f"the smallest of {len(sizes)} files sampled has {ordered[0] / 2**20:.1f} MiB: not small files",
                    Reason.NOT_SMALL)
    size = boundary(small[-1])
    split = sum(size < s <= 64 * size for s in ordered)
    if split > settings.split_share * len(ordered):
        return Size(0, f"a component of {size / 2**20:g} MiB would split {split} of {len(ordered)} files sampled",
                    Reason.SIZES_MIXED)
    return Size(size, f"{percent(len(small) / len(ordered))} of {len(ordered)} files sampled fit, the largest of them "
                      f"{small[-1] / 2**10:.0f} KiB")


def small_mode(ordered: Sequence[int], limit_bytes: int) -> Sequence[int]:
    """The sizes up to the limit that lie below the widest gap (as a ratio) to the sizes above them."""
    below = [size for size in ordered if size <= limit_bytes]
    if not below or len(below) == len(ordered):
        return below
    gap, cut = ordered[len(below)] / below[-1], len(below)
    for index in range(len(below) - 1, 0, -1):
        ratio = below[index] / below[index - 1]
        if ratio > max(gap, 4.0) and index >= 0.5 * len(below):
            gap, cut = ratio, index
    return below[:cut]


def from_mean(mean_bytes: float, largest_rpc_bytes: int, settings: Settings) -> Size:
    """Without sizes: twice the mean holds every file of any even spread from zero up, and so does the largest RPC seen.

    >>> from_mean(1 << 20, 1 << 20, Settings()).component_bytes
    2097152
    >>> from_mean(300 << 20, 4 << 20, Settings()).component_bytes
    0
    """
    size = boundary(max(int(2 * mean_bytes), largest_rpc_bytes))
    if size > settings.largest_component_bytes:
        return Size(0, f"files of {mean_bytes / 2**20:.1f} MiB on average are not small", Reason.NOT_SMALL)
    return Size(size, f"the files have {mean_bytes / 2**10:.0f} KiB on average, the largest RPC "
                      f"{largest_rpc_bytes / 2**10:.0f} KiB; sizes could not be sampled")


def boundary(size_bytes: int) -> int:
    """The next power of two that Lustre accepts as a component end.

    >>> boundary(1 << 20), boundary((1 << 20) + 1), boundary(10)
    (1048576, 2097152, 65536)
    """
    return max(UNIT_BYTES, 1 << (size_bytes - 1).bit_length())
