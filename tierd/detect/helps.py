"""Whether an advice can help the jobs it is for: what their files and requests allow, as job statistics tell it.

An advice that nothing can come of is not given. Where no job is known (job statistics switched off), nothing is known
against it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tierd.detect.plugin import View
from tierd.detect.profile import Profile

WHOLE_READ_BYTES = 2 << 20
"""Files up to this size are read ahead whole, as the first page is asked for (``max_read_ahead_whole_mb``)."""

LEAST_FREE = 0.1
"""Share of a pool that must be free for files to go there."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one job reads from, or writes to, some targets."""

    job: Profile
    moved_bytes: float
    rpcs: float

    @property
    def bytes_per_file(self) -> float:
        """Of each file it opens, on average: no request for it can be larger. Infinite for a job that opens none."""
        files = max(self.job.opens, self.job.closes, self.job.creates)
        return self.moved_bytes / files if files else float("inf")


def traffic(jobs: Mapping[str, Profile], targets: Collection[str], direction: str) -> Iterator[Traffic]:
    """Of each job that reads from, or writes to, these targets; of ``read`` or ``write``."""
    for job in jobs.values():
        loads = [load for target, load in job.by_target.items() if target in targets]
        moved = sum(load.read_bytes if direction == "read" else load.write_bytes for load in loads)
        rpcs = sum(load.reads if direction == "read" else load.writes for load in loads)
        if moved and rpcs:
            yield Traffic(job, moved, rpcs)


def rpcs_saved(parts: Iterable[Traffic], rpc_bytes: float) -> float | None:
    """Share of the RPCs that would go if all were as large as the files allow, and no larger than that; None for none.

    Files of 1 MiB that are read whole cannot be read in larger requests than of 1 MiB, whatever may be set.
    """
    sent = least = 0.0
    for part in parts:
        sent += part.rpcs
        least += min(part.rpcs, part.moved_bytes / max(1.0, min(rpc_bytes, part.bytes_per_file)))
    return 1 - least / sent if sent else None


def targets_of(view: View, fsname: str, pool: str) -> frozenset[str]:
    """Object targets of a pool; "" for those in no pool."""
    if pool:
        return frozenset(view.facts.pools.get(pool, ()))
    pooled = {target for members in view.facts.pools.values() for target in members}
    return frozenset(target for window in view.windows for target, _ in window.loads
                     if target.startswith(f"{fsname}-") and target not in pooled)


def has_room(view: View, targets: Collection[str]) -> bool:
    """Whether there are such targets, and they are not short of room, as far as is known."""
    fills = [view.facts.fill[target] for target in targets if target in view.facts.fill]
    size = sum(fill.size_bytes for fill in fills)
    return bool(targets) and (not size or sum(fill.avail_bytes for fill in fills) >= LEAST_FREE * size)


def at_work(jobs: Mapping[str, Profile], targets: Collection[str]) -> float | None:
    """Bulk RPCs a target works on at a time, the mean of those that do any; None where servers do not tell times.

    It is the time they spent in RPCs, for each second (Little's law).
    """
    busy: dict[str, float] = {}
    for job in jobs.values():
        for target, load in job.by_target.items():
            if target in targets and load.bulk_operations:
                busy[target] = busy.get(target, 0.0) + load.busy_usec / 1e6 / job.seconds
    return sum(busy.values()) / len(busy) if busy and any(busy.values()) else None
