"""Jobs that did something lately, or do not say when: ``--jobs.idle-seconds``.

Idle is measured from the job active last, so that a recording shows the same at any time; but not from the future,
where a server's clock may have been for a while.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from exporter.clock import Clock
from exporter.jobs.texts import IdleRun, Item
from lustre.formats import job_stats


@dataclass(frozen=True, slots=True)
class IdleFilter:
    """When jobs count as idle."""

    seconds: int
    """0: never."""
    wall: Clock

    def awake(self, items: list[Item]) -> tuple[list[Item], int]:
        """Those of them that are, and since when one must have done something; the same list when all are."""
        if not self.seconds:
            return items, 0
        since = self._since([item.newest if isinstance(item, IdleRun) else item.active_at for item in items])
        found: list[Item] = []
        for item in items:
            if isinstance(item, IdleRun) and item.oldest < since:
                found += [job for job in item.jobs if _is_awake(job.active_at, since)]
            elif isinstance(item, IdleRun) or _is_awake(item.active_at, since):
                found.append(item)
        return (items if found == items else found), since

    def awake_texts(self, texts: list[bytes]) -> list[bytes]:
        """The same of texts."""
        if not self.seconds:
            return texts
        times = list(map(job_stats.active_at, texts))
        since = self._since(times)
        return [text for text, at in zip(texts, times, strict=True) if _is_awake(at, since)]

    def _since(self, times: Iterable[int]) -> int:
        return min(max(times, default=0), int(self.wall())) - self.seconds


def _is_awake(active_at: int, since: int) -> bool:
    return active_at >= since or active_at == job_stats.UNKNOWN
