"""Flash in front of the disks of a target: small writes are fast, larger ones are not.

What :mod:`tierd.detect.accelerators` sees is reported, with advice on the bypass size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from tierd.detect.accelerators import Accelerator, accelerators
from tierd.detect.groups import totals
from tierd.detect.view import View
from tierd.model import Advice, Finding
from tierd.policies.protocol import Common, Policy
from tierd.text import binary_text, count_of, percent, quoted

MAX_BYPASS_BYTES = 256 << 10
"""Largest bypass size that is advised; larger writes use whole stripes well."""
MIN_GAIN_SHARE = 0.1
"""Share of the writes that a larger bypass size must absorb before it is advised. A choice."""


def find(view: View, _: Common) -> Iterator[Finding]:
    pools: defaultdict[str, dict[str, Accelerator]] = defaultdict(dict)
    for target, seen in accelerators(view.facts.disk_writes).items():
        if target not in view.flash:
            pools[view.facts.pool_of(target)][target] = seen
    for pool, members in sorted(pools.items()):
        yield finding(pool, members, view)


def finding(pool: str, members: Mapping[str, Accelerator], view: View) -> Finding:
    low = min(seen.bypass_low_bytes for seen in members.values())
    high = max(seen.bypass_high_bytes for seen in members.values())
    sizes = totals(each for target in members for reading in view.facts.disk_writes[target]
                   for each in reading.sizes.items())
    every = sum(sizes.values())
    small = sum(count for size, count in sizes.items() if size <= low) / every if every else 0.0
    wanted = next_bypass(sizes, low, MIN_GAIN_SHARE)
    gained = sum(count for size, count in sizes.items() if low < size <= 4 * low) / every if every else 0.0
    times = [(seen.fast_usec, seen.slow_usec) for seen in members.values()
             if seen.fast_usec is not None and seen.slow_usec is not None]
    fast, slow = (max(a for a, _ in times), min(b for _, b in times)) if times else (None, None)
    took = f" (median {fast / 1000:.1f} ms, larger ones {slow / 1000:.1f} ms)" if fast and slow else ""
    where = f"{count_of(len(members), 'target')}{f' of pool {quoted(pool)}' if pool else ''}"
    return POLICY.finding(
        view, f"writes up to {binary_text(low)} on {where} are fast{took}, writes of {binary_text(high)} are not: a "
        "block accelerator such as NXD, or a write cache that larger writes bypass; counters do not tell which. "
        f"{percent(small)} of the disk writes are small enough",
        {"bypass_low_bytes": low, "bypass_high_bytes": high, "small_write_share": small, "next_write_share": gained,
         "targets": len(members), **({"fast_usec": fast, "slow_usec": slow} if fast and slow else {})},
        targets=sorted(members), subject=pool, advice=_advise(low, high, wanted, gained, where))


def next_bypass(sizes: Mapping[int, float], low: int, min_gain_share: float) -> int | None:
    """Twice or four times the bypass size ``low``, where that absorbs ``min_gain_share`` more of the writes; else None.

    >>> next_bypass({4096: 50.0, 65536: 40.0, 1048576: 10.0}, 32768, 0.1)
    65536
    """
    every = sum(sizes.values())
    for size in (2 * low, 4 * low):
        gained = sum(count for upper, count in sizes.items() if low < upper <= size)
        if size <= MAX_BYPASS_BYTES and every and gained / every >= min_gain_share:
            return size
    return None


def _advise(low: int, high: int, wanted: int | None, gained: float, where: str) -> Iterator[Advice]:
    between = f"between {binary_text(low)} and {binary_text(high)}"
    if wanted is None:
        yield Advice("no change of the bypass size", where,
                     f"it is {between}; few writes are a little larger. Files with random writes up to "
                     f"{binary_text(low)} need no move to flash")
    else:
        yield Advice(f"raise the bypass size to {wanted >> 10} KiB, with the tools of the array", where,
                     f"it is {between}; up to {percent(gained)} more of the disk writes would be fast. The flash of "
                     "the accelerator fills sooner, and wears more")


POLICY = Policy("block-accelerator", Common, find)
