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
        if target in view.facts.fill and target not in view.flash:  # servers may have targets of other file systems
            pools[view.facts.pool_of(target)][target] = seen
    for pool, members in sorted(pools.items()):
        low = min(seen.bypass_low_bytes for seen in members.values())
        high = max(seen.bypass_high_bytes for seen in members.values())
        sizes = totals(each for target in members for reading in view.facts.disk_writes[target]
                       for each in reading.sizes.items())
        small, gained = share_between(0, low, sizes), share_between(low, high, sizes)
        times = [(seen.fast_usec, seen.slow_usec) for seen in members.values()
                 if seen.fast_usec is not None and seen.slow_usec is not None]
        fast, slow = (max(a for a, _ in times), min(b for _, b in times)) if times else (None, None)
        took = f" (median {fast / 1000:.1f} ms, larger ones {slow / 1000:.1f} ms)" if fast and slow else ""
        where = f"{count_of(len(members), 'target')}{f' of pool {quoted(pool)}' if pool else ''}"
        between = f"it is between {binary_text(low)} and {binary_text(high)}"
        helps = high <= MAX_BYPASS_BYTES and gained >= MIN_GAIN_SHARE
        advice = Advice("no change of the bypass size", where, f"{between}; few writes are a little larger. Files with "
                        f"random writes up to {binary_text(low)} need no move to flash") if not helps else Advice(
            f"raise the bypass size to {high >> 10} KiB, with the tools of the array", where,
            f"{between}; up to {percent(gained)} more of the disk writes would be fast. The flash of the accelerator "
            "fills sooner, and wears more")
        yield POLICY.finding(
            view, f"writes up to {binary_text(low)} on {where} are fast{took}, writes of {binary_text(high)} are not: "
            "a block accelerator such as NXD, or a write cache that larger writes bypass; counters do not tell which. "
            f"{percent(small)} of the disk writes are small enough",
            {"bypass_low_bytes": low, "bypass_high_bytes": high, "small_write_share": small, "next_write_share": gained,
             "targets": len(members), **({"fast_usec": fast, "slow_usec": slow} if fast and slow else {})},
            targets=sorted(members), subject=pool, advice=(advice,))


def share_between(above: int, up_to: int, sizes: Mapping[int, float]) -> float:
    """Share of the writes with such sizes; 0 without writes.

    >>> share_between(32768, 65536, {4096: 50.0, 65536: 40.0, 1048576: 10.0})
    0.4
    """
    found = sum(count for size, count in sizes.items() if above < size <= up_to)
    return found / sum(sizes.values()) if found else 0.0


POLICY = Policy("block-accelerator", Common, find)
