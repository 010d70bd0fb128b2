"""Checks whether advice can help, and names the clients to change.

tierd drops advice that cannot help, by the files and requests that job statistics show. Without job statistics it drops
no advice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tierd.detect.profile import Profile
from tierd.detect.view import View
from tierd.model import ClientLoad
from tierd.text import first_names

WHOLE_READ_BYTES = 2 << 20
"""Lustre reads files up to this size ahead as a whole (``max_read_ahead_whole_mb``)."""
MIN_FREE_SHARE = 0.1
"""Free share of a pool below which no advice sends files there."""


@dataclass(frozen=True, slots=True)
class JobTraffic:
    """Bytes and RPCs of one job to some targets, in one direction."""

    job: Profile
    moved_bytes: float
    rpcs: float

    @property
    def bytes_per_file(self) -> float:
        """Mean bytes per opened file, which limit the size of a request. Infinite for a job that opens no file."""
        files = max(self.job.opens, self.job.closes, self.job.creates)
        return self.moved_bytes / files if files else float("inf")


def traffic(jobs: Mapping[str, Profile], targets: Collection[str], direction: str) -> Iterator[JobTraffic]:
    """Traffic of each job that reads from, or writes to, these targets. ``direction`` is ``read`` or ``write``."""
    for job in jobs.values():
        loads = [load for target, load in job.by_target.items() if target in targets]
        moved = sum(load.read_bytes if direction == "read" else load.write_bytes for load in loads)
        rpcs = sum(load.reads if direction == "read" else load.writes for load in loads)
        if moved and rpcs:
            yield JobTraffic(job, moved, rpcs)


def rpcs_saved(parts: Iterable[JobTraffic], rpc_bytes: float) -> float | None:
    """Share of RPCs saved if each has ``rpc_bytes`` or the size of the file. None if there are no RPCs.

    No request is larger than its file, whatever the limit is.
    """
    sent = least = 0.0
    for part in parts:
        sent += part.rpcs
        least += min(part.rpcs, part.moved_bytes / max(1.0, min(rpc_bytes, part.bytes_per_file)))
    return 1 - least / sent if sent else None


def targets_of_pool(view: View, fsname: str, pool: str) -> frozenset[str]:
    """Object targets of a pool. "" selects the targets outside all pools."""
    if pool:
        return frozenset(view.facts.pools.get(pool, ()))
    pooled = {target for members in view.facts.pools.values() for target in members}
    return frozenset(target for window in view.windows for target, _ in window.loads
                     if target.startswith(f"{fsname}-") and target not in pooled)


def has_free_space(view: View, targets: Collection[str]) -> bool:
    """Whether the targets exist and have free space. Unknown space counts as free."""
    fills = [view.facts.fill[target] for target in targets if target in view.facts.fill]
    size = sum(fill.size_bytes for fill in fills)
    return bool(targets) and (not size or sum(fill.avail_bytes for fill in fills) >= MIN_FREE_SHARE * size)


def mean_concurrent_rpcs(jobs: Mapping[str, Profile], targets: Collection[str]) -> float | None:
    """Mean number of concurrent bulk RPCs on a busy target. None if the servers report no times.

    By Little's law it is the sum of the RPCs' service times per second.
    """
    busy: dict[str, float] = {}
    for job in jobs.values():
        for target, load in job.by_target.items():
            if target in targets and load.bulk_operations:
                busy[target] = busy.get(target, 0.0) + load.busy_usec / 1e6 / job.seconds
    return sum(busy.values()) / len(busy) if busy and any(busy.values()) else None


STALE_SECONDS = 900.0
"""Readings of clients older than this are ignored."""


def recently_seen(view: View) -> Iterator[ClientLoad]:
    return (client for client in view.facts.clients if client.seconds > 0 and client.time > view.now - STALE_SECONDS)


def by_cause(view: View, cause_of: Callable[[ClientLoad], str]) -> Mapping[tuple[str, str], Sequence[ClientLoad]]:
    """Groups clients by cause: an administrator sets a parameter on many clients, not on one."""
    found: defaultdict[tuple[str, str], list[ClientLoad]] = defaultdict(list)
    for client in recently_seen(view):
        if cause := cause_of(client):
            found[client.fsname, cause].append(client)
    return dict(sorted(found.items()))


def client_names(clients: Sequence[ClientLoad]) -> str:
    names = list(dict.fromkeys(client.client for client in clients))
    return f"{'client' if len(names) == 1 else f'{len(names)} clients:'} {first_names(names)}"
