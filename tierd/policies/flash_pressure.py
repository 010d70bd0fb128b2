"""A flash pool is filling up: its use, its growth, the time until it is full, and the jobs that write to it.

If the pool is full, Lustre puts new objects elsewhere or writes fail, and tierd refuses to act.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tierd.detect.view import View, room_on, traffic
from tierd.model import Advice, Finding
from tierd.policies.protocol import Common, Policy
from tierd.text import bytes_text, duration_text, first_names, percent, quoted, rate_text
from tierd.validators import Positive, Share

COLD_SECONDS = 7 * 86_400.0
HYSTERESIS = 0.1
"""The finding ends at a used share that is lower by this. A choice."""
HALF = 0.5
"""Used share from which a pool counts as half full. A choice."""


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds. Shares are used bytes of the pool."""

    enter: Share = 0.8
    """The finding begins at this share. As for ``cold-on-flash``."""
    horizon_seconds: Positive = 3600.0
    """The finding also begins if a half-full pool will be full within this time at its present growth. An hour, in
    which a person can act: a choice."""


def find(view: View, settings: Settings) -> Iterator[Finding]:
    for pool, disks in ((pools.flash, pools.hdd) for pools in view.pool_pairs):
        fills = {t: view.facts.fill[t] for t in view.facts.pools.get(pool, ()) if t in view.facts.fill}
        room = room_on(fills, fills)
        rate = room.growth_bytes_per_second
        full_in = room.avail_bytes / rate if rate > 0 else float("inf")
        enter = settings.enter - (HYSTERESIS if (POLICY.name, "", pool) in view.active else 0.0)
        if not fills or (room.used < enter and (room.used < HALF or full_in > settings.horizon_seconds)):
            continue
        writers = Counter({part.job.job: int(part.moved_bytes) for part in traffic(view.profiles(), fills, "write")})
        written = writers.total() / sum(window.seconds for window in view.recent())
        when = (f"; in the last minutes the pool grew by {rate_text(rate)}, which would fill it in "
                f"{duration_text(full_in)}") if full_in < 86_400 else ""
        who = first_names(job for job, count in writers.most_common() if count >= 0.1 * writers.total()
                          ) if written else "no job"
        fullest = max(fills, key=lambda target: fills[target].used)
        yield POLICY.finding(
            view, f"pool {quoted(pool)} is {percent(room.used)} full ({bytes_text(room.avail_bytes)} free, fullest "
            f"target {quoted(fullest)} at {percent(fills[fullest].used)}); writes: {rate_text(written)} by {who}{when}",
            {"used_share": room.used, "fullest_used_share": fills[fullest].used, "avail_bytes": room.avail_bytes,
             "write_bytes_per_second": written, "growth_bytes_per_second": rate, "seconds_to_full": min(full_in, 1e12)},
            targets=sorted(fills), subject=pool, advice=advise(view, pool, disks))


def advise(view: View, pool: str, disks: str) -> Iterator[Advice]:
    if not view.has_free_space(view.facts.pools.get(disks, ())):
        return
    stored = [file for file in view.facts.stored if pool in file.pools]
    if not stored or any(file.read_at < view.now - COLD_SECONDS for file in stored):
        yield Advice(f"lfs find MOUNT --pool {quoted(pool)} -atime +7 -size +1M", "on a client",
                     "lists files not read for a week; tierd demotes the files it knows about (cold-on-flash)")
    yield Advice("lctl set_param lod.*.pool.{0}.spill_target={1} lod.*.pool.{0}.spill_threshold_pct=90".format(
        quoted(pool), quoted(disks)), "on all MDS (2.15 and newer)",
        "new files go to the disks before the pool is full, so that writes do not fail")


POLICY = Policy("flash-pressure", Settings, find)
