"""Synthetic parameter trees of any size in the format of Lustre 2.17. Their counters change on demand.

The trees are for load tests only; the values have no meaning. They contain mainly the parameters that the exporter
reads: a client with ``osc`` connections, and an object server with ``job_stats`` of many jobs on each target.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from simulator.counters import OST_STATS, RPC_TABLES, STDDEV, Histogram, JobEntry, Stats
from simulator.parameters.clients import IMPORT, OST_CONNECT_FLAGS, rpc_table
from simulator.parameters.servers import job_block
from simulator.parameters.text import KernelClock, stats_file

FS = "bench"
START_NS = 1763600000 * 10**9


@dataclass(slots=True)
class Tree:
    root: Path

    def put(self, path: str, text: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


MOUNT = "ff1100011d6c9800"
OSC_OPERATIONS = (
    "ost_getattr", "ost_setattr", "ost_read", "ost_write", "ost_connect", "ost_disconnect", "ost_punch", "ost_statfs",
    "ost_seek", "ldlm_cancel", "obd_ping",
)  # fmt: skip
OSC_STATS = (("req_waittime", "usecs", STDDEV), ("req_active", "reqs", STDDEV), ("read_bytes", "bytes", STDDEV),
             ("write_bytes", "bytes", STDDEV), *((name, "usecs", STDDEV) for name in OSC_OPERATIONS))
OSC_NUMBERS = {
    "max_rpcs_in_flight": 8, "max_pages_per_rpc": 1024, "cur_grant_bytes": 8437760, "cur_lost_grant_bytes": 0,
    "cur_dirty_bytes": 4096, "kbytestotal": 187000000000, "kbytesfree": 97000000000, "kbytesavail": 96000000000,
    "filestotal": 4000000000, "filesfree": 3000000000,
}  # fmt: skip
RPC_BUCKETS = {"pages": range(11), "in_flight": range(1, 9), "offset": range(13), "latency": range(18)}
"""Buckets with samples."""


class ClientTree(Tree):
    """A client of many object targets in four pools."""

    def __init__(self, root: Path, targets: int) -> None:
        super().__init__(root)
        self.targets = [f"{FS}-OST{number:04x}" for number in range(targets)]
        (root / "proc").mkdir(parents=True, exist_ok=True)
        for pool in range(4):
            members = "".join(f"{target}_UUID\n" for target in self.targets[pool::4])
            self.put(f"sys/kernel/debug/lustre/lov/{FS}-clilov-{MOUNT}/pools/pool{pool}", members)
        for number, target in enumerate(self.targets):
            for name, value in OSC_NUMBERS.items():
                self.put(f"sys/fs/lustre/osc/{target}-osc-{MOUNT}/{name}", f"{value + number % 7}\n")
        self.move(0)

    def move(self, step: int, every: int = 1) -> None:
        """Change the counters of one in ``every`` targets. For the others, only the times change."""
        for number, target in enumerate(self.targets):
            self._target(number, target, KernelClock(START_NS, step), 3 + step * (number % every == 0))

    def _target(self, number: int, target: str, clock: KernelClock, counted: int) -> None:
        folder = f"sys/kernel/debug/lustre/osc/{target}-osc-{MOUNT}"
        n = 1000 * counted + number
        stats = Stats(OSC_STATS, 0.0)
        for more, counter in enumerate(stats.values()):
            counter.bulk(n + more, 900_000 if counter.unit == "bytes" else 411 + more)
        self.put(f"{folder}/stats", stats_file(clock, stats))
        text = clock.header(0.0, 25, ":")
        text += "".join(f"{what} RPCs in flight:  {n % 5}\n" for what in ("read", "write", "DIO"))
        text += f"pending write pages:  {n % 17}\npending read pages:   0\n"
        for name, (title, shift) in RPC_TABLES.items():
            histogram, buckets = Histogram(), RPC_BUCKETS[name]
            histogram.buckets[buckets.start:buckets.stop] = [n + 7 * bucket for bucket in range(len(buckets))]
            text += rpc_table(title, (histogram, histogram), shift=shift)
        self.put(f"{folder}/rpc_stats", text)
        self.put(f"{folder}/import", IMPORT.format(
            name=f"{target}-osc-{MOUNT}", target=target, state="FULL", flags=OST_CONNECT_FLAGS, version="2.17.57",
            nid="10.20.0.9@o2ib", tries=4, in_flight=0, wait_usec=9000 + counted))


class ServerTree(Tree):
    """An object server's targets, each with statistics of many jobs."""

    def __init__(self, root: Path, targets: int, jobs: int) -> None:
        super().__init__(root)
        self.targets = [f"{FS}-OST{number:04x}" for number in range(targets)]
        self.jobs = jobs
        (root / "sys").mkdir(parents=True, exist_ok=True)
        self.move(0)

    def move(self, step: int, every: int = 1) -> None:
        """Change one in ``every`` jobs; the text of the others stays the same."""
        for target in self.targets:
            blocks = [one_job(job, step if job % every == 0 else 0) for job in range(self.jobs)]
            self.put(f"proc/fs/lustre/obdfilter/{target}/job_stats", "job_stats:\n" + "".join(blocks))


BYTES, OPERATIONS = OST_STATS[:2], OST_STATS[2:]
WRITE_SIZES = ((4096, 19), (256 << 10, 64), (1 << 20, 17))
"""Bytes of the smaller requests of a job, and how many there are."""


def one_job(job: int, step: int) -> str:
    """Format one job, which uses six of its fifteen counters, including either reads or writes."""
    entry, n = JobEntry(f"{8200000 + job}.login{job % 16:02}", OST_STATS, 0.0), 1000 + 13 * step + job % 1000
    entry.latest = step
    used = {OPERATIONS[job % 2], *(OPERATIONS[2 + (job * 3 + i) % 11] for i in range(4))}
    for size, count in (*WRITE_SIZES, (4 << 20, n - 100)):
        entry.bulk(BYTES[job % 2][0], count, size)
    for name, _, _ in used:
        entry.bulk(name, n, 711)
    return job_block(KernelClock(START_NS, step), entry)
