"""A cycle of tierd on a large file system: 400 targets, 5,000 jobs, 20,000 changelog records a second.

Drives a whole Daemon with readings and records that are made up; what it takes to make them up is not counted. Asserts
that a cycle takes no more than a second of processor time and the process no more than 250 MiB.

    python -m bench.tierd [--targets N] [--jobs N] [--records N] [--cycles N]
"""

from __future__ import annotations

import argparse
import gc
import resource
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from random import Random

from lustre.changelog_record import Record, RecordType
from lustre.fid import Fid
from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.settings import recorded_test_bed
from tierd.act.breaker import Breaker
from tierd.act.budget import Budget
from tierd.act.gate import Gate
from tierd.act.journal import Journal
from tierd.act.port import PortMover
from tierd.act.undo import Undo
from tierd.config import Settings
from tierd.loop import Daemon
from tierd.sense.readings import JobCounters, Reading

SECONDS = 5.0
MOST_CYCLE_SECONDS, MOST_MIB = 1.0, 250.0
MIB = 1 << 20
FIRST = 1_795_000_000.0


class Clock:
    """Virtual time."""

    def __init__(self) -> None:
        self.time = FIRST

    def now(self) -> float:
        """Epoch seconds."""
        return self.time

    def wait(self, seconds: float) -> bool:
        """Time passes."""
        self.time += seconds
        return False


class Job:
    """Streams, or creates small files, or does small I/O; on a few targets, at a rate of its own."""

    def __init__(self, number: int, rng: Random, targets: int) -> None:
        self.name = f"app{number % 300}.{number}"
        self.kind = rng.choices(("stream", "files", "io"), (5, 4, 1))[0]
        count = rng.choices((1, 2, 4, 8, 32), (30, 25, 25, 15, 5))[0]
        self.targets = rng.sample(range(targets), count)
        self.rate = min(200.0, rng.paretovariate(0.9))  # a few jobs do most of the work
        self.active = rng.random()


class Source:
    """Readings and records of a large file system. ``spent`` is the processor time it took to make them up."""

    def __init__(self, clock: Clock, targets: int, jobs: int, records: int) -> None:
        self._clock = clock
        self._rng = Random(1)
        self._targets = [f"big-OST{n:04x}" for n in range(targets)]
        self._all = frozenset((*self._targets, *(f"big-MDT{n:04x}" for n in range(8))))
        self._jobs = [Job(n, self._rng, targets) for n in range(jobs)]
        self._files = [job for job in self._jobs if job.kind == "files"]
        self._records = records
        self._counters: dict[tuple[str, str], list[float]] = {}
        self._index = 0
        self._open: deque[tuple[Fid, Fid, bytes, bytes]] = deque()
        self.spent = 0.0

    def reading(self) -> Reading:
        """Counters now: as fresh objects, the way the parsers make them."""
        begun = time.process_time()
        jobs: dict[tuple[str, str], JobCounters] = {}
        rng = self._rng
        for job in self._jobs:
            busy = rng.random() < 0.3 + 0.7 * job.active  # not everybody works all the time
            for target in job.targets:
                self._serve(job, target, busy, jobs)
            if job.kind == "files":
                self._ask(job, busy, jobs)
        reading = Reading(self._clock.time, jobs, self._all)
        self.spent += time.process_time() - begun
        return reading

    def _serve(self, job: Job, target: int, busy: bool, jobs: dict[tuple[str, str], JobCounters]) -> None:
        key = self._targets[target], job.name
        at = self._counters.setdefault(key, [0.0, 0.0])
        if busy:
            size = MIB if job.kind == "stream" else 4096 if job.kind == "io" else 300_000
            operations = max(1.0, round(job.rate * SECONDS * self._rng.uniform(0.9, 1.1)))
            at[0] += operations
            at[1] += operations * size
        upper = MIB if job.kind == "stream" else 4096 if job.kind == "io" else 512 << 10
        jobs[key] = JobCounters(
            {"read_bytes": at[0] // 4, "write_bytes": at[0], "read": at[0] // 4, "write": at[0], "getattr": 0.0,
             "setattr": at[0] // 10, "punch": at[0] // 20, "sync": at[0] // 20, "destroy": at[0] // 20, "create": 0.0,
             "statfs": 0.0, "get_info": 0.0, "set_info": 0.0, "quotactl": 0.0, "prealloc": 0.0},
            {"read_bytes": at[1] / 4, "write_bytes": at[1], "read": at[0] * 300, "write": at[0] * 900},
            {upper: at[0]}, "1794990000")

    def _ask(self, job: Job, busy: bool, jobs: dict[tuple[str, str], JobCounters]) -> None:
        key = f"big-MDT{hash(job.targets[0]) % 8:04x}", job.name
        at = self._counters.setdefault(key, [0.0, 0.0])
        at[0] += round(job.rate * SECONDS) if busy else 0
        jobs[key] = JobCounters({"open": at[0], "close": at[0], "mknod": at[0], "unlink": at[0] // 2, "getattr": at[0]},
                                {}, {}, "1794990000")

    def records(self) -> Iterator[Record]:
        """Files are created, closed and unlinked, a few directories a job. A batch at a time, as they are read."""
        for _ in range(int(self._records * SECONDS) // 1000):
            begun = time.process_time()
            batch = list(self._made(1000))
            self.spent += time.process_time() - begun
            yield from batch

    def _made(self, count: int) -> Iterator[Record]:
        rng, now = self._rng, self._clock.time
        while count > 0:
            job = self._files[int(len(self._files) * rng.random() ** 2)]
            self._index += 3
            count -= 3
            fid = Fid(0x200000400 + self._index // 100_000, self._index % 100_000)
            parent = Fid(0x200000300, 1 + int(job.name.rpartition(".")[2]) * 4 + rng.randrange(4))
            name, by = b"f%d" % self._index, job.name.encode()
            yield Record(self._index, RecordType.CREATE, now, fid, parent, name, job_id=by)
            yield Record(self._index + 1, RecordType.CLOSE, now, fid, job_id=by)
            self._open.append((fid, parent, name, by))
            if len(self._open) > 50_000:
                fid, parent, name, by = self._open.popleft()
                yield Record(self._index + 2, RecordType.UNLINK, now, fid, parent, name, job_id=by)


def daemon(folder: Path, source: Source, clock: Clock) -> Daemon:
    """A whole daemon; its file system is a small simulated one, in which paths are looked up."""
    filesystem = SimulatedFilesystem(Cluster(recorded_test_bed(), ()))
    settings = Settings()
    journal = Journal(folder / "journal.sqlite")
    mover = PortMover(filesystem)
    budget, breaker = Budget(settings.limits, clock.now()), Breaker(settings.breaker)
    gate = Gate(filesystem, mover, budget, breaker, journal, clock, dry_run=True)
    undo = Undo(filesystem, mover, journal, clock)
    return Daemon(source, filesystem, gate, undo, journal, clock, settings, lambda _: None)


def resident_mib() -> float:
    """Memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MIB


def main() -> int:
    """Run, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--records", type=int, default=20_000, help="changelog records a second")
    parser.add_argument("--cycles", type=int, default=400, help="of 5 s each: the history is full after 360")
    chosen = parser.parse_args()
    clock = Clock()
    source = Source(clock, chosen.targets, chosen.jobs, chosen.records)
    taken: list[float] = []
    with tempfile.TemporaryDirectory(prefix="tierd-bench-") as folder:
        at = daemon(Path(folder), source, clock)
        gc.freeze()
        for number in range(chosen.cycles):
            clock.wait(SECONDS)
            begun, spent = time.process_time(), source.spent
            at.cycle(clock.now() + SECONDS / 2)
            taken.append(time.process_time() - begun - (source.spent - spent))
            if number % 20 == 19:
                print(f"{number + 1:4} cycles: {statistics.median(taken[-20:]):.3f} s, at most "
                      f"{max(taken[-20:]):.3f} s; {resident_mib():.0f} MiB; {len(at.windows)} windows", flush=True)
    late = taken[len(taken) // 2:]
    mib = resident_mib()
    print(f"median {statistics.median(late):.3f} s, at most {max(late):.3f} s of processor time a cycle; "
          f"{mib:.0f} MiB, {len(source._counters)} pairs of job and target")
    return int(statistics.median(late) > MOST_CYCLE_SECONDS or mib > MOST_MIB)


if __name__ == "__main__":
    sys.exit(main())
