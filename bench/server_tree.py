"""A made-up object server: ``job_stats`` of many jobs on each target."""

from __future__ import annotations

from pathlib import Path

from bench.trees import FS, Tree, times

OST_OPERATIONS = (
    "read", "write", "getattr", "setattr", "punch", "sync", "destroy", "create", "statfs", "get_info", "set_info",
    "quotactl", "prealloc",
)  # fmt: skip
OPERATIONS = ("read_bytes", "write_bytes", *OST_OPERATIONS)


class Server(Tree):
    """An object server's targets, each with statistics of many jobs."""

    def __init__(self, root: Path, targets: int, jobs: int) -> None:
        super().__init__(root)
        self.targets = [f"{FS}-OST{number:04x}" for number in range(targets)]
        self.jobs = jobs
        (root / "sys").mkdir(parents=True, exist_ok=True)
        self.move(0)

    def move(self, step: int, *, every: int = 1, first: int = 0) -> None:
        """Let every so many-th job work; the others' text stays as it is. Jobs before the first are gone."""
        for target in self.targets:
            blocks = [block(job, step if job % every == 0 else 0) for job in range(first, first + self.jobs)]
            self.put(f"proc/fs/lustre/obdfilter/{target}/job_stats", "job_stats:\n" + "".join(blocks))


def block(job: int, step: int) -> str:
    """One job: six of its fifteen counters used, among them those of reading or those of writing."""
    used = {("read_bytes", "write_bytes")[job % 2], OST_OPERATIONS[job % 2]}
    used |= {OST_OPERATIONS[2 + (job * 3 + i) % 11] for i in range(4)}
    head = f"- job_id:          {8200000 + job}.login{job % 16:02}\n" + times(step, ":", "  ")
    return head + "".join(operation(name, 1000 + 13 * step + job % 1000 if name in used else 0) for name in OPERATIONS)


def operation(name: str, n: int) -> str:
    """A counter of a job."""
    unit, each = ("bytes", 900000) if name.endswith("_bytes") else ("usecs", 711)
    text = (
        f"  {name + ':':<16} {{ samples: {n:>11}, unit: {unit}, min: {n and 3:>8}, max: {n and 2 * each:>8},"
        f" sum: {n * each:>16}, sumsq: {n * each * each:>18}"
    )
    if unit == "bytes":
        text += f", hist: {{ {f'4K: 19, 256K: 64, 1M: 17, 4M: {n - 100}' if n else ''} }}"
    return text + " }\n"
