"""Finds flash in front of the disks of a target: small writes are fast, larger ones are not.

A block accelerator such as Cray's NXD stores writes up to a bypass size on flash; larger ones go to the disks. The
write cache of a RAID controller that full stripes bypass gives the same figures, so the finding names both. A cache
that absorbs all writes has no step, and flash and plain disks have none either: nothing is found.

With ``io_latency_stats`` (Lustre 2.17) the durations of each size show the step. Before, ``brw_stats`` has one table of
sizes and one of durations. If the share of fast writes follows the share of writes up to a size, reading after reading
and while both change, then that size is the limit. Without fast writes or a changing mix nothing is found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from tierd.detect.groups import covering, grouped, totals
from tierd.model import DiskWrites, Facts, JobLoad

FAST_USEC = 2000
"""Largest median of writes that flash or memory stores. A write that moves the heads of a disk takes longer."""
STEP = 4.0
"""Smallest ratio of the medians on both sides of the bypass size."""
SLOW_BYTES_PER_SECOND = 100e6
"""Writes that take no longer than a transfer at this rate show no step, however small the writes before them are."""
LARGE_BYTES = 1 << 20
"""Writes from this size on are those of streams, which no accelerator stores. Where they are fast and larger ones are
not, the cause is a limit of bytes a second, such as that of a throttled volume."""
MIN_WRITES = 100.0
MIN_READINGS = 4
MIN_SMALL_WRITES, MIN_SMALL_SHARE = 50.0, 0.05
"""Number and share of small writes from which their durations say something. A choice."""
UNLIKE = 0.05
"""Part of the small writes that may be slow, and of the large ones that may be fast, where a cache takes the small ones
in. A choice."""
MAX_IOS = 1.2
"""Disk I/Os of a request up to which sizes of I/Os are those of requests. A choice."""
MIN_CHANGE = 0.2
"""Smallest change of the share of small writes between readings, and of fast ones. A choice."""
MAX_ERROR = 0.08
"""Largest mean difference of the share of fast writes from the share of small ones. A choice."""
FAST_MSEC = 1
"""Bucket of ``brw_stats`` for durations below 2 ms, which its label calls 1."""


@dataclass(frozen=True, slots=True)
class Accelerator:
    """Flash or a cache in front of one target."""

    bypass_low_bytes: int
    """Writes up to this size are fast."""
    bypass_high_bytes: int
    """Writes of this size are slow."""
    fast_usec: float | None = None
    """Median of fast writes; None if durations by size are not known."""
    slow_usec: float | None = None


def accelerators(writes: Mapping[str, Sequence[DiskWrites]]) -> dict[str, Accelerator]:
    """Targets with an accelerator or a write cache in front of their disks."""
    found = {target: of_latency(readings) or of_mixes(readings) for target, readings in writes.items()}
    return {target: seen for target, seen in found.items() if seen is not None}


class SmallWrites(Enum):
    """How small writes of a pool are done, by the newest durations in ``brw_stats``."""

    WAIT = "wait"
    """They wait for the disks as large ones do: neither flash nor a write cache takes them in."""
    ABSORBED = "absorbed"
    """A write cache, or flash, takes them in: only large ones wait."""


def small_writes_of_pools(facts: Facts) -> dict[str, SmallWrites]:
    """How small writes of each pool are done, by the newest reading with writes of each target, where it is known."""
    wrote = {target: [each for each in readings if each.sizes][-1:] for target, readings in facts.disk_writes.items()}
    found = {pool: small_writes([each for target in targets for each in wrote.get(target, ())])
             for pool, targets in facts.pools.items()}
    return {pool: done for pool, done in found.items() if done is not None}


def small_writes(readings: Sequence[DiskWrites]) -> SmallWrites | None:
    """How the small writes of these readings were done; None if they are few, or some took longer than others."""
    fast, requests = sum(map(fast_requests, readings)), sum(sum(each.msec.values()) for each in readings)
    ios = sum(sum(each.sizes.values()) for each in readings)
    small = sum(count for each in readings for size, count in each.sizes.items() if size < LARGE_BYTES)
    if small < MIN_SMALL_WRITES:
        return None
    if small >= MIN_SMALL_SHARE * ios and ios <= MAX_IOS * requests and fast < small / 4:
        return SmallWrites.WAIT
    large, slow = ios - small, requests - fast
    absorbed = (1 - UNLIKE) * large <= slow <= large + UNLIKE * max(requests - large, 0.0)
    return SmallWrites.ABSORBED if absorbed else None


def of_latency(readings: Sequence[DiskWrites]) -> Accelerator | None:
    """The step in the durations by size; None if there is none, or if Lustre does not print them."""
    durations = grouped((size, each) for reading in readings for size, table in reading.usec_by_size.items()
                        for each in table.items())
    medians = {size: covering(sorted(totals(each).items()), 0.5)[-1]
               for size, each in durations.items() if sum(count for _, count in each) >= MIN_WRITES}
    sizes = sorted(medians)
    for number, (low, high) in enumerate(pairwise(sizes)):
        fast = max(medians[size] for size in sizes[:number + 1])
        slow = min(medians[size] for size in sizes[number + 1:])
        if low < LARGE_BYTES and fast <= FAST_USEC and slow >= STEP * fast + 1e6 * high / SLOW_BYTES_PER_SECOND:
            return Accelerator(low, high, fast, slow)
    return None


def of_mixes(readings: Sequence[DiskWrites]) -> Accelerator | None:
    """The size whose share of the writes is the share of fast writes in each reading; None if there is no such size."""
    shares = [mix for reading in readings if (mix := mix_of(reading)) is not None]
    if len(shares) < MIN_READINGS:
        return None
    sizes = sorted({size for _, small in shares for size in small})
    fitting = [size for size in sizes[:-1] if size < LARGE_BYTES and fits([
        (fast, sum(share for upper, share in small.items() if upper <= size)) for fast, small in shares])]
    if not fitting:
        return None
    later = [size for size in sizes if size > fitting[-1]]
    return Accelerator(fitting[0], later[0])


def fast_requests(reading: DiskWrites) -> float:
    return sum(count for msec, count in reading.msec.items() if msec <= FAST_MSEC)


def mix_of(reading: DiskWrites) -> tuple[float, Mapping[int, float]] | None:
    """Share of fast writes, and share of writes by size; None for few writes, or for requests in several disk I/Os."""
    requests, ios = sum(reading.msec.values()), sum(reading.sizes.values())
    if requests < MIN_WRITES or not 0 < ios <= MAX_IOS * requests:
        return None
    return fast_requests(reading) / requests, {size: count / ios for size, count in reading.sizes.items()}


def fits(pairs: Sequence[tuple[float, float]]) -> bool:
    """Whether the shares of fast and of small writes agree, and both change.

    On plain disks all writes are slow: no share of fast writes changes with the sizes.
    """
    fast, small = zip(*pairs, strict=True)
    error = sum(abs(a - b) for a, b in pairs) / len(pairs)
    return error <= MAX_ERROR and all(max(shares) - min(shares) >= MIN_CHANGE for shares in (fast, small))


def absorbs(seen: Accelerator | None, load: JobLoad) -> bool:
    """Whether a job does nothing on a target but small writes that its accelerator absorbs.

    The durations of each size must show the accelerator: what only follows from mixes may be wrong.
    """
    if seen is None or seen.fast_usec is None or not load.writes or load.reads > 0.1 * load.bulk_operations:
        return False
    if load.sizes:
        small = sum(count for upper, count in load.sizes.items() if upper <= seen.bypass_low_bytes)
        return small >= 0.9 * sum(load.sizes.values())
    return load.write_bytes / load.writes <= seen.bypass_low_bytes


def all_absorbed(seen: Mapping[str, Accelerator], loads: Mapping[str, JobLoad], targets: Sequence[str]) -> bool:
    """Whether the accelerators of all these targets absorb what a job does there, by its loads by target."""
    return bool(targets) and all(target in loads and absorbs(seen.get(target), loads[target]) for target in targets)
