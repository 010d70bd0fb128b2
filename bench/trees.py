"""Synthetic parameter trees of any size in the format of Lustre 2.17. Their counters change on demand.

The trees are for load tests only; the values have no meaning. They contain mainly the parameters that the exporter
reads: a client with ``osc`` connections, and an object server with ``job_stats`` of many jobs on each target.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

FS = "bench"
START_SECONDS = 1763600000


def stats_header(step: int, colon: str = "", indent: str = "") -> str:
    """Return the header of a stats file, which changes at every reading."""
    return (
        f"{indent}snapshot_time{colon}   {START_SECONDS + step}.708752159 secs.nsecs\n"
        f"{indent}start_time{colon}      {START_SECONDS}.183879238 secs.nsecs\n"
        f"{indent}elapsed_time{colon}    {step}.568280697 secs.nsecs\n"
    )


@dataclass(slots=True)
class Tree:
    root: Path
    made: set[Path] = field(default_factory=set)

    def put(self, path: str, text: str) -> None:
        place = self.root / path
        if place.parent not in self.made:
            place.parent.mkdir(parents=True, exist_ok=True)
            self.made.add(place.parent)
        place.write_text(text)


MOUNT = "ff1100011d6c9800"
OSC_OPERATIONS = (
    "ost_getattr", "ost_setattr", "ost_read", "ost_write", "ost_connect", "ost_disconnect", "ost_punch", "ost_statfs",
    "ost_seek", "ldlm_cancel", "obd_ping",
)  # fmt: skip
OSC_NUMBERS = {
    "max_rpcs_in_flight": 8, "max_pages_per_rpc": 1024, "cur_grant_bytes": 8437760, "cur_lost_grant_bytes": 0,
    "cur_dirty_bytes": 4096, "kbytestotal": 187000000000, "kbytesfree": 97000000000, "kbytesavail": 96000000000,
    "filestotal": 4000000000, "filesfree": 3000000000,
}  # fmt: skip
FLAGS = ", ".join(f"a_flag_of_the_connection_{n}" for n in range(20))
IMPORT = """\
import:
    name: {name}
    target: {target}_UUID
    state: FULL
    connect_flags: [ {flags} ]
    connect_data:
       instance: 1
       target_version: 2.17.57.62
    connection:
       failover_nids: [ "10.20.0.9@o2ib" ]
       current_connection: "10.20.0.9@o2ib"
       connection_attempts: 4
       generation: 4
       in-progress_invalidations: 0
       idle: {step} sec
    rpcs:
       inflight: 0
       unregistering: 0
       timeouts: 0
       avg_waittime: {wait} usecs
    service_estimates:
       services: 5 sec
       network: 5 sec
"""


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

    def move(self, step: int, *, every: int = 1) -> None:
        """Change the counters of one in ``every`` targets. For the others, only the times change."""
        for number, target in enumerate(self.targets):
            self._target(number, target, step, 3 + step * (number % every == 0))

    def _target(self, number: int, target: str, step: int, counted: int) -> None:
        folder = f"sys/kernel/debug/lustre/osc/{target}-osc-{MOUNT}"
        n = 1000 * counted + number
        self.put(
            f"{folder}/stats",
            stats_header(step) + counter("req_waittime", n, "usecs", 719) + counter("req_active", n, "reqs", 2)
            + counter("read_bytes", n, "bytes", 900000) + counter("write_bytes", n, "bytes", 700000)
            + "".join(counter(name, n + i, "usecs", 411 + i) for i, name in enumerate(OSC_OPERATIONS)),
        )  # fmt: skip
        now = "".join(f"{what} RPCs in flight:  {n % 5}\n" for what in ("read", "write", "DIO"))
        now += f"pending write pages:  {n % 17}\npending read pages:   0\n"
        self.put(
            f"{folder}/rpc_stats",
            stats_header(step, ":") + now
            + table("pages per rpc         rpcs   % cum % |       rpcs   % cum %", powers(11), counts(n, 11))
            + table("rpcs in flight        rpcs   % cum % |       rpcs   % cum %", range(1, 9), counts(n, 8))
            + table("offset                rpcs   % cum % |       rpcs   % cum %", [0, *powers(12)], counts(n, 13))
            + table("RPC latency (us)     count   % cum % |       count  % cum %", [0, *powers(17)], counts(n, 18)),
        )  # fmt: skip
        about = IMPORT.format(name=f"{target}-osc-{MOUNT}", target=target, flags=FLAGS, step=step, wait=9000 + counted)
        self.put(f"{folder}/import", about)


def counter(name: str, samples: int, unit: str, each: int) -> str:
    return f"{name:<35} {samples} samples [{unit}] 1 {2 * each} {samples * each} {samples * each * each}\n"


def table(heading: str, labels: Iterable[int], counts: list[int]) -> str:
    """Format a histogram with equal counts in both directions."""
    total, counted, rows = sum(counts), 0, []
    for label, count in zip(labels, counts, strict=True):
        counted += count
        share = f"{count:>10} {count * 100 // total:>3} {counted * 100 // total:>3}"
        rows.append(f"{label}:\t\t{share}   | {share}\n")
    return f"\n\t\t\tread\t\t\twrite\n{heading}\n" + "".join(rows)


def counts(number: int, buckets: int) -> list[int]:
    return [number + 7 * bucket for bucket in range(buckets)]


def powers(number: int) -> list[int]:
    return [1 << n for n in range(number)]


OST_OPERATIONS = (
    "read", "write", "getattr", "setattr", "punch", "sync", "destroy", "create", "statfs", "get_info", "set_info",
    "quotactl", "prealloc",
)  # fmt: skip
OPERATIONS = ("read_bytes", "write_bytes", *OST_OPERATIONS)


class ServerTree(Tree):
    """An object server's targets, each with statistics of many jobs."""

    def __init__(self, root: Path, targets: int, jobs: int) -> None:
        super().__init__(root)
        self.targets = [f"{FS}-OST{number:04x}" for number in range(targets)]
        self.jobs = jobs
        (root / "sys").mkdir(parents=True, exist_ok=True)
        self.move(0)

    def move(self, step: int, *, every: int = 1) -> None:
        """Change one in ``every`` jobs; the text of the others stays the same."""
        for target in self.targets:
            blocks = [job_block(job, step if job % every == 0 else 0) for job in range(self.jobs)]
            self.put(f"proc/fs/lustre/obdfilter/{target}/job_stats", "job_stats:\n" + "".join(blocks))


def job_block(job: int, step: int) -> str:
    """Format one job, which uses six of its fifteen counters, including either reads or writes."""
    used = {("read_bytes", "write_bytes")[job % 2], OST_OPERATIONS[job % 2]}
    used |= {OST_OPERATIONS[2 + (job * 3 + i) % 11] for i in range(4)}
    head = f"- job_id:          {8200000 + job}.login{job % 16:02}\n" + stats_header(step, ":", "  ")
    return head + "".join(
        job_counter(name, 1000 + 13 * step + job % 1000 if name in used else 0) for name in OPERATIONS
    )


def job_counter(name: str, n: int) -> str:
    unit, each = ("bytes", 900000) if name.endswith("_bytes") else ("usecs", 711)
    text = (
        f"  {name + ':':<16} {{ samples: {n:>11}, unit: {unit}, min: {n and 3:>8}, max: {n and 2 * each:>8},"
        f" sum: {n * each:>16}, sumsq: {n * each * each:>18}"
    )
    if unit == "bytes":
        text += f", hist: {{ {f'4K: 19, 256K: 64, 1M: 17, 4M: {n - 100}' if n else ''} }}"
    return text + " }\n"
