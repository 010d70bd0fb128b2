"""Parameter files of servers: ``obdfilter``, ``mdt``, ``mdd``, ``osd-ldiskfs`` and services, with ``job_stats`` of each
target.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from simulator import counters
from simulator.cluster import Cluster
from simulator.counters import BRW_TABLES, BrwStats, Counter, Histogram, JobEntry, JobStats, Stats
from simulator.parameters.text import KernelClock, rows, stats_file
from simulator.servers.health import Health
from simulator.servers.mdt import Mdt

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.@-_:/")


def job_stats_file(clock: KernelClock, jobs: JobStats, now: float) -> str:
    """Render ``job_stats``; only the heading without jobs."""
    return "job_stats:\n" + "".join(job_block(clock, entry) for entry in jobs.entries(now))


def quoted(job_id: str) -> str:
    r"""Format a job id as the kernel prints it: quoted, with hex codes for special characters.

    >>> print(quoted("ior.1002"), quoted("we ird:x.0"))
    ior.1002 "we\x20ird:x.0"
    """
    escaped = "".join(chr(byte) if chr(byte) in _PLAIN else f"\\x{byte:02X}" for byte in job_id.encode())
    odd = escaped != job_id or ":" in job_id or job_id.startswith("@")
    return f'"{escaped}"' if odd else escaped


def job_block(clock: KernelClock, entry: JobEntry) -> str:
    head = f"- {'job_id:':<16} {quoted(entry.job_id)}\n"
    head += replace(clock, now=entry.latest).header(entry.stats.start_time, 16, ":", "  ")
    return head + "".join(_line(name, counter, entry.histograms.get(name)) for name, counter in entry.stats.items())


def _line(name: str, counter: Counter, histogram: Histogram | None) -> str:
    if not counter.samples:
        return _unused_line(name, counter.unit, histogram is not None)
    text = _numbers(name, counter)
    if histogram is not None:
        buckets = ", ".join(f"{size_label(number)}: {count}" for number, count in enumerate(histogram.buckets) if count)
        text += f", hist: {{ {buckets} }}"
    return text + " }\n"


def _numbers(name: str, counter: Counter) -> str:
    return (
        f"  {name + ':':<16} {{ samples: {counter.samples:11}, unit: {counter.unit:>5}, min: {counter.minimum:8}, "
        f"max: {counter.maximum:8}, sum: {counter.total:16}, sumsq: {counter.squares:18}"
    )


@lru_cache
def _unused_line(name: str, unit: str, has_histogram: bool) -> str:
    """Line of a counter without samples. Most operations of most jobs never happen."""
    return _numbers(name, Counter(unit, 0)) + (", hist: {  }" if has_histogram else "") + " }\n"


def size_label(bucket: int) -> str:
    for unit, shift in (("", 0), ("K", 10), ("M", 20)):
        if bucket < shift + 10:
            return f"{1 << bucket - shift}{unit}"
    return f"{1 << bucket - 30}G"


_IDLE_SERVICES = (
    "ost/OSS/ost", "ost/OSS/ost_create", "ost/OSS/ost_out", "ost/OSS/ost_seq", "mds/MDS/mdt_fld",
    "mds/MDS/mdt_io", "mds/MDS/mdt_out", "mds/MDS/mdt_readpage", "mds/MDS/mdt_seqm", "mds/MDS/mdt_seqs",
)  # fmt: skip
_DEBUGFS = "sys/kernel/debug/lustre"


def server_files(cluster: Cluster) -> Iterator[tuple[str, str]]:
    clock = KernelClock(cluster.epoch_ns, cluster.now)
    clients = cluster.mounts
    for ost in cluster.osts:
        yield f"proc/fs/lustre/obdfilter/{ost.name}/job_stats", job_stats_file(clock, ost.jobs, cluster.now)
        yield f"{_DEBUGFS}/obdfilter/{ost.name}/stats", stats_file(clock, ost.stats)
        yield f"{_DEBUGFS}/obdfilter/{ost.name}/recovery_status", recovery_status(clock, ost.health, clients)
        yield f"{_DEBUGFS}/osd-ldiskfs/{ost.name}/brw_stats", brw_stats_file(clock, ost.bulk.brw)
        yield f"sys/fs/lustre/osd-ldiskfs/{ost.name}/nonrotational", f"{int(not ost.rotational)}\n"
    for mdt in cluster.mdts:
        yield f"proc/fs/lustre/mdt/{mdt.name}/job_stats", job_stats_file(clock, mdt.jobs, cluster.now)
        yield f"proc/fs/lustre/mdt/{mdt.name}/md_stats", stats_file(clock, mdt.stats)
        yield f"{_DEBUGFS}/mdt/{mdt.name}/recovery_status", recovery_status(clock, mdt.health, clients)
        yield f"{_DEBUGFS}/osd-ldiskfs/{mdt.name}/brw_stats", brw_stats_file(clock, mdt.brw)
        yield f"{_DEBUGFS}/mdd/{mdt.name}/changelog_users", _changelog_users(cluster, mdt)
        mask = "".join(f"{kind.label} " for kind in mdt.changelog.mask)
        yield f"{_DEBUGFS}/mdd/{mdt.name}/changelog_mask", f"{mask}\n"
    yield f"{_DEBUGFS}/ost/OSS/ost_io/stats", stats_file(clock, _summed(ost.bulk.service for ost in cluster.osts))
    for name, text in cluster.tbf.files():
        yield f"{_DEBUGFS}/ost/OSS/ost_io/{name}", text
    yield f"{_DEBUGFS}/mds/MDS/mdt/stats", stats_file(clock, _summed(mdt.service for mdt in cluster.mdts))
    threads = sum(mdt.settings.cores for mdt in cluster.mdts)
    for name in ("threads_started", "threads_max"):
        yield f"sys/fs/lustre/mds/MDS/mdt/{name}", f"{threads}\n"
    idle = clock.header(0.0, 35)
    for service in _IDLE_SERVICES:
        yield f"{_DEBUGFS}/{service}/stats", idle


def _summed(services: Iterable[Stats]) -> Stats:
    whole = Stats(counters.OST_IO_STATS, 0.0)
    for service in services:
        for name, counter in service.items():
            whole[name].join(counter)
    return whole


def recovery_status(clock: KernelClock, health: Health, clients: int) -> str:
    """Render ``recovery_status`` in one of its three forms."""
    if health.status == "RECOVERING":
        here = health.connected(clients, clock.now)
        left = max(health.recovery_start + health.window_seconds - clock.now, 0.0)
        return (
            f"status: RECOVERING\nrecovery_start: {int(clock.seconds(health.recovery_start))}\n"
            f"time_remaining: {int(left)}\nconnected_clients: {here}/{clients}\nreq_replay_clients: {clients - here}\n"
            f"lock_repay_clients: {clients - here}\ncompleted_clients: 0\nevicted_clients: 0\n"
            f"replayed_requests: 0\nqueued_requests: 0\nnext_transno: 4294967297\n"
        )
    if health.status == "COMPLETE":
        start = int(clock.seconds(health.recovery_start))
        return (
            f"status: COMPLETE\nrecovery_start: {start}\nrecovery_duration: {round(health.recovery_seconds)}\n"
            f"completed_clients: {clients}/{clients}\nreplayed_requests: 0\nlast_transno: 4294967296\n"
            "VBR: DISABLED\nIR: DISABLED\n"
        )
    return "status: INACTIVE\n"


def _changelog_users(cluster: Cluster, mdt: Mdt) -> str:
    log = mdt.changelog
    mask = ",".join(kind.label for kind in log.mask)
    return f"current_index: {log.last_index}\n{'ID':<30}index (idle) mask\n" + "".join(
        f"{name:<30}{user.cleared_index:5} ({int(cluster.now - user.cleared_at)}) mask={mask}\n"
        for name, user in log.users.items()
    )


def brw_stats_file(clock: KernelClock, brw: BrwStats) -> str:
    """Render ``brw_stats``: eight tables. A table without samples has only its two title lines."""
    text = clock.header(brw.start_time, 25, ":")
    for title, units, log2 in BRW_TABLES:
        sides = [side[title] for side in brw.sides]
        text += f"\n{' ':>26} read      |     write\n{title:<22} {units:<5} % cum % |  {units:<11} % cum %\n"
        if not any(side.total for side in sides):
            continue
        seen = False
        for number, (r, rp, rc, w, wp, wc) in rows(sides):
            seen = seen or bool(r or w)
            if seen:
                label = size_label(number) if log2 else str(number)
                text += f"{label}:\t\t{r:10} {rp:3} {rc:3}   | {w:4} {wp:3} {wc:3}\n"
    return text
