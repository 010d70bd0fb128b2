"""Hides idle jobs (``--jobs.idle-seconds``).

Idle time is measured from the last activity of any job, so that a recording always gives the same result. A time in the
future, from a wrong server clock, does not count. A job without a time of activity is never idle.
"""

from __future__ import annotations

from dataclasses import dataclass

from exporter.clock import Clock
from exporter.jobs.texts import IdleRun, Item
from lustre.formats import job_stats

NEVER_IDLE = -(1 << 62)


@dataclass(frozen=True, slots=True)
class IdleFilter:
    """Selects the jobs that are not idle."""

    seconds: int
    """Idle time after which a job is hidden; 0 hides no job."""
    wall: Clock

    def active(self, items: list[Item]) -> tuple[list[Item], int]:
        """Return the active items (the same list if all are active), and the time since when jobs count as active."""
        if not self.seconds:
            return items, 0
        times = [item.newest if isinstance(item, IdleRun) else item.active_at for item in items]
        since = self.since(max(times, default=0))
        found: list[Item] = []
        for item in items:
            if isinstance(item, IdleRun) and item.oldest < since:
                found += [job for job in item.jobs if _is_active(job.active_at, since)]
            elif isinstance(item, IdleRun) or _is_active(item.active_at, since):
                found.append(item)
        return (items if found == items else found), since

    def active_texts(self, texts: list[bytes]) -> list[bytes]:
        if not self.seconds:
            return texts
        times = list(map(job_stats.active_at, texts))
        since = self.since(max(times, default=0))
        return [text for text, at in zip(texts, times, strict=True) if _is_active(at, since)]

    def since(self, newest: int) -> int:
        """Return the time since when jobs count as active, from the time of the newest activity of any job."""
        return max(NEVER_IDLE, min(newest, int(self.wall())) - self.seconds) if self.seconds else NEVER_IDLE


def _is_active(active_at: int, since: int) -> bool:
    return active_at >= since or active_at == job_stats.UNKNOWN
