"""Files on flash that have not been used for a long time, while the flash pool is short of space.

An idle file in a pool with free space is no problem. tierd does not demote a file just because the aggressor has
stopped: files would move back and forth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt, Lt

from tierd.detect.advice import has_free_space
from tierd.detect.plugin import Common, Detector, View
from tierd.model import Advice, ColdOnFlashEvidence, Finding
from tierd.text import bytes_text, percent, quoted

DAY_SECONDS = 86_400.0


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    enter: Annotated[float, Gt(0), Lt(1)] = 0.8
    """The finding begins at this used share of the flash pool."""
    leave: Annotated[float, Gt(0), Lt(1)] = 0.7
    """The finding ends, and demotion stops, at this used share."""
    cold_days: Annotated[float, Gt(0)] = 7.0
    """Days without access. Set at least one day, because access times are updated late (``atime_diff``)."""
    min_files: Annotated[int, Ge(1)] = 1


def detect(view: View, settings: Settings) -> Iterator[Finding]:
    """At most one finding for each flash pool."""
    for pools in view.pool_pairs:
        yield from of_pool(pools.flash, pools.hdd, view, settings)


def of_pool(pool: str, disks: str, view: View, settings: Settings) -> Iterator[Finding]:
    """The finding about one pool. Its cold files belong on the disk pool ``disks``."""
    members = view.facts.pools.get(pool, ())
    fills = [view.facts.fill[t] for t in members if t in view.facts.fill]
    size = sum(f.size_bytes for f in fills)
    if not size or len(fills) < len(members):
        return  # the space of some target is unknown
    used = 1 - sum(f.avail_bytes for f in fills) / size
    if used < (settings.leave if (DETECTOR.name, "", pool) in view.active else settings.enter):
        return
    limit = view.now - settings.cold_days * DAY_SECONDS
    stored = [file for file in view.facts.stored if pool in file.pools]
    cold = [file for file in stored if file.read_at < limit]
    if len(cold) < settings.min_files:
        return
    held = sum(file.size_bytes for file in cold)
    oldest = min(file.read_at for file in cold)
    yield Finding(
        DETECTOR.name, view.now, "", "", tuple(sorted(members)),
        f"pool {quoted(pool)} is {percent(used)} full; {len(cold)} of {len(stored)} files examined there "
        f"({bytes_text(held)}) have not been used for at least {settings.cold_days:g} days",
        ColdOnFlashEvidence(
            used_share=used, cold_files=len(cold), cold_bytes=held, oldest_days=(view.now - oldest) / DAY_SECONDS,
            target_used_share=settings.leave, cold_before=limit,
            bytes_to_free=max(0.0, (used - settings.leave) * size)),
        tuple(sorted({file.path.rpartition("/")[0] or "/" for file in cold}))[:20], subject=pool,
        advice=(Advice(f"lfs migrate --non-block -p {quoted(disks)} FILE", "the files idle for longest first",
                       "frees flash for files in use; tierd does this for files it moved there, and in the directories "
                       "of [cold_to_disk]"),) if has_free_space(view, view.facts.pools.get(disks, ())) else (),
    )


DETECTOR = Detector("cold-on-flash", Settings, detect)
