"""Checks whether advice can help, names the clients to change, and gives hints for MPI-IO and HDF5.

tierd drops advice that cannot help, by the files and requests that job statistics show. Without job statistics it drops
no advice.

The hints follow the I/O pattern of a job, as the striping guides advise (NOTUR). ROMIO, the MPI-IO of MPICH, Intel MPI
and (as one of two) Open MPI, reads hints from the file that ``ROMIO_HINTS`` names, or from the ``MPI_Info`` object of
the open call. Collective buffering lets a few processes collect the records of all and write whole stripes. Data
sieving reads what lies between records before it writes: on a shared file it takes locks of other processes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tierd.detect.groups import grouped, totals
from tierd.detect.profile import Profile
from tierd.detect.view import View
from tierd.model import Advice, ClientLoad, TargetFill
from tierd.text import binary_text, count_of, first_names, quoted

WHOLE_READ_BYTES = 2 << 20
"""Lustre reads files up to this size ahead as a whole (``max_read_ahead_whole_mb``)."""
MIN_FREE_SHARE = 0.1
"""Free share of a pool below which no advice sends files there."""
STRIPE_BYTES = 4 << 20
"""Stripe size for collective buffering: the size of a usual RPC."""
SMALL_RECORD_BYTES = 1 << 20
"""Records below this size are worth collecting; larger ones already fill a good part of an RPC."""


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


def sizes_read(view: View, of: str = "") -> Mapping[str, float]:
    """Mean bytes per opened file of each job that reads from targets whose names begin so."""
    targets = {target for window in view.windows for target, _ in window.loads if target.startswith(of)}
    return {part.job.job: part.bytes_per_file for part in traffic(view.profiles(), targets, "read")}


def rpcs_saved(parts: Iterable[JobTraffic], rpc_bytes: float) -> float | None:
    """Share of RPCs saved if each has ``rpc_bytes`` or the size of the file. None if there are no RPCs.

    No request is larger than its file, whatever the limit is.
    """
    sent = least = 0.0
    for part in parts:
        sent += part.rpcs
        least += min(part.rpcs, part.moved_bytes / max(1.0, min(rpc_bytes, part.bytes_per_file)))
    return 1 - least / sent if sent else None


def share_at(limit: float, sent: Mapping[int, float]) -> float:
    """Share of the RPCs in a histogram that reached a limit.

    >>> share_at(8, {1: 10, 7: 10, 8: 60})
    0.75
    """
    every = sum(sent.values())
    return sum(count for value, count in sent.items() if value >= limit) / every if every else 0.0


def targets_of_pool(view: View, fsname: str, pool: str) -> frozenset[str]:
    """Object targets of a pool, or in all of several (exporters: "all,hdd"). "" selects those outside all pools."""
    if pool:
        return frozenset.intersection(*(frozenset(view.facts.pools.get(each, ())) for each in pool.split(",")))
    pooled = {target for members in view.facts.pools.values() for target in members}
    return frozenset(target for window in view.windows for target, _ in window.loads
                     if target.startswith(f"{fsname}-") and target not in pooled)


def room_on(targets: Collection[str], fill: Mapping[str, TargetFill]) -> TargetFill:
    """The space on some targets together, as far as it is known."""
    known = [fill[target] for target in targets if target in fill]
    return TargetFill(sum(each.size_bytes for each in known), sum(each.avail_bytes for each in known),
                      sum(each.growth_bytes_per_second for each in known))


def has_free_space(view: View, targets: Collection[str]) -> bool:
    """Whether the targets exist and have free space. Unknown space counts as free."""
    room = room_on(targets, view.facts.fill)
    return bool(targets) and (not room.size_bytes or room.avail_bytes >= MIN_FREE_SHARE * room.size_bytes)


def mean_concurrent_rpcs(jobs: Mapping[str, Profile], targets: Collection[str]) -> float | None:
    """Mean number of concurrent bulk RPCs on a busy target. None if the servers report no times.

    By Little's law it is the sum of the RPCs' service times per second.
    """
    busy = totals((target, load.busy_usec / 1e6 / job.seconds) for job in jobs.values()
                  for target, load in job.by_target.items() if target in targets and load.bulk_operations)
    return sum(busy.values()) / len(busy) if busy and any(busy.values()) else None


STALE_SECONDS = 900.0
"""Readings of clients older than this are ignored."""


def recently_seen(view: View) -> Iterator[ClientLoad]:
    return (client for client in view.facts.clients if client.seconds > 0 and client.time > view.now - STALE_SECONDS)


def by_cause(view: View, cause_of: Callable[[ClientLoad], str]) -> Mapping[tuple[str, str], Sequence[ClientLoad]]:
    """Groups clients by cause: an administrator sets a parameter on many clients, not on one."""
    found = grouped(((client.fsname, cause_of(client)), client) for client in recently_seen(view))
    return {key: clients for key, clients in sorted(found.items()) if key[1]}


def client_names(clients: Sequence[ClientLoad]) -> str:
    names = list(dict.fromkeys(client.client for client in clients))
    return f"{'client' if len(names) == 1 else f'{len(names)} clients:'} {first_names(names)}"


def hints(job: str, record_bytes: float, read_share: float, objects: int) -> tuple[Advice, ...]:
    """Hints for a job with shared or small I/O. None for large records, which collective buffering does not help.

    ``read_share`` is that of reads among its RPCs, ``objects`` the number of objects that its file should have.

    >>> [advice.command for advice in hints("mpi.5", 47008, 0.0, 4)][0]
    'romio_cb_write enable, romio_ds_write disable, cb_nodes 4, striping_factor 4, striping_unit 4194304'
    >>> hints("mpi.5", 16 << 20, 0.0, 4)
    ()
    """
    if not 0 < record_bytes < SMALL_RECORD_BYTES:
        return ()
    reads, writes = read_share > 0.1, read_share < 0.9
    chosen = [*(["romio_cb_read enable"] if reads else []),
              *(["romio_cb_write enable", "romio_ds_write disable"] if writes else []),
              f"cb_nodes {objects}",
              *([f"striping_factor {objects}", f"striping_unit {STRIPE_BYTES}"] if writes else [])]
    calls = " and ".join([*(["MPI_File_write_all"] if writes else []), *(["MPI_File_read_all"] if reads else [])])
    size, by = binary_text(record_bytes), count_of(objects, "process", "processes")
    return (
        Advice(", ".join(chosen), f"in the file that ROMIO_HINTS names, for {quoted(job)} with MPI-IO",
               f"records of {size} are collected into whole stripes by {by}, if the application calls {calls}; "
               "the striping applies to new files"),
        Advice(f"H5Pset_dxpl_mpio(H5FD_MPIO_COLLECTIVE), H5Pset_alignment({SMALL_RECORD_BYTES}, {STRIPE_BYTES}), "
               "H5Pset_coll_metadata_write(1)", f"in {quoted(job)} with parallel HDF5",
               "datasets begin at stripes, and metadata is written once, not by each process"),
    )
