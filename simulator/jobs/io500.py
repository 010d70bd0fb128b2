"""The phases of IO500, and its score.

IO500 writes, stats, reads and deletes with IOR and mdtest: *easy* is a file or directory for each process, *hard* is
one file of 47,008-byte pieces, or one directory of files of 3,901 bytes, for all. Between the phases of writes and of
reads, ``find`` looks at all names. A process reads the files of a process on another node.

The score is the square root of the product of two geometric means: bandwidth of the four IOR phases in GiB/s, and rate
of the eight others in thousands of operations per second. A list of IO500 also needs write phases of 300 seconds; a
run in the simulator is far shorter, so its score compares scenarios with each other, not with the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import sqrt
from statistics import geometric_mean
from typing import Literal

from lustre.layout.model import Component, Layout
from simulator.clients.data import FileHandle
from simulator.engine import Steps
from simulator.jobs.job import HDD, DirectoryJob, Run
from simulator.jobs.metadata import stat_files
from simulator.ranges import AtLeastOne

MIB = 1 << 20
HARD_PIECE_BYTES = 47_008
HARD_FILE_BYTES = 3_901
ALL_TARGETS = Layout((Component(pool="hdd", stripe_count=-1, stripe_size=MIB),), composite=False)
PHASES = (
    "ior-easy-write", "mdtest-easy-write", "ior-hard-write", "mdtest-hard-write", "find", "ior-easy-read",
    "mdtest-easy-stat", "ior-hard-read", "mdtest-hard-stat", "mdtest-easy-delete", "mdtest-hard-read",
    "mdtest-hard-delete",
)  # fmt: skip
"""In the order in which IO500 runs them."""
BANDWIDTH_PHASES = tuple(phase for phase in PHASES if phase.startswith("ior"))
OPERATION_PHASES = tuple(phase for phase in PHASES if phase not in BANDWIDTH_PHASES)


@dataclass(frozen=True, slots=True)
class Score:
    """The result of a run."""

    bandwidth_gib_s: float
    operations_k_s: float
    """Thousands of operations per second."""

    @property
    def total(self) -> float:
        return sqrt(self.bandwidth_gib_s * self.operations_k_s)


def score(rates: Mapping[str, float]) -> Score | None:
    """The score of rates by phase: IOR in GiB/s, others in thousands of operations per second. None if one is missing.

    >>> rates = dict.fromkeys(BANDWIDTH_PHASES, 4.0) | dict.fromkeys(OPERATION_PHASES, 9.0)
    >>> round(score(rates).total, 9), score({"find": 1.0})
    (6.0, None)
    """
    if any(rates.get(phase, 0.0) <= 0.0 for phase in PHASES):
        return None
    return Score(*(geometric_mean(rates[phase] for phase in phases) for phases in (BANDWIDTH_PHASES, OPERATION_PHASES)))


def score_of_counts(per_second: Mapping[str, float]) -> Score | None:
    """The score of what :class:`Io500` counts: MiB/s for IOR, operations per second for others."""
    return score({phase: rate / (1024 if phase in BANDWIDTH_PHASES else 1000) for phase, rate in per_second.items()})


@dataclass(frozen=True, slots=True)
class Io500(DirectoryJob):
    """Runs the phases of IO500 once. Sizes are for each process."""

    kind: Literal["io500"] = field(default="io500", kw_only=True)
    job_id: str = "io500.1013"
    directory: str = "/proj/io500"
    nodes: AtLeastOne = 4
    threads: AtLeastOne = 4
    easy_bytes: AtLeastOne = 64 << 20
    call_bytes: AtLeastOne = 2 << 20
    pieces_each: AtLeastOne = 200
    easy_files_each: AtLeastOne = 40
    hard_files_each: AtLeastOne = 20
    striped_directories: bool = True
    easy_layout: Layout | None = HDD
    """Layout of a file of the easy IOR phases."""
    hard_layout: Layout | None = ALL_TARGETS
    """Layout of the file that all processes share."""

    def directories(self) -> tuple[tuple[str, Layout | None], ...]:
        ranks = range(self.nodes * self.threads)
        return (
            (f"{self.directory}/ior-easy", self.easy_layout),
            (f"{self.directory}/ior-hard", self.hard_layout),
            *((f"{self.directory}/mdtest-easy/d{rank}", self.layout) for rank in ranks),
            (f"{self.directory}/mdtest-hard", self.layout),
        )

    def processes(self, run: Run) -> Iterator[Steps[None]]:
        yield from (_Process(self, run, run.rank * self.threads + thread).steps() for thread in range(self.threads))


class _Process:
    def __init__(self, job: Io500, run: Run, number: int) -> None:
        self._job = job
        self._run = run
        self._number = number
        self._members = job.nodes * job.threads
        self._other = (number + job.threads) % self._members
        """Process on the next node, whose files this one reads."""

    def steps(self) -> Steps[None]:
        """All phases, each of which begins when every process has ended the one before."""
        run, team = self._run, self._run.team
        for phase in PHASES:
            yield team.barrier(phase, self._members)
            team.begin(phase, run.now)
            program, _, rest = phase.partition("-")
            if program == "find":
                yield from self._find()
                continue
            kind, _, what = rest.partition("-")
            yield from (self._ior if program == "ior" else self._mdtest)(phase, kind, what)

    def _ior(self, phase: str, kind: str, what: str) -> Steps[None]:
        run, data = self._run, self._run.client.data
        writes = what == "write"
        call = data.write if writes else data.read
        handle = yield from self._opened(kind, writes)
        for offset, size in self._pieces(kind, self._number if writes else self._other):
            if not run.active:
                break
            yield from call(handle, offset, size, direct=False)
            run.count_bytes(size)
            run.team.count(phase, run.now, size / MIB)
        if writes:
            yield from data.fsync(handle)
            run.team.count(phase, run.now, 0)  # the phase ends when its bytes are stored
        yield from run.client.close(handle)

    def _opened(self, kind: str, writes: bool) -> Steps[FileHandle]:
        run, client = self._run, self._run.client
        folder = run.lookup(f"{self._job.directory}/ior-{kind}")
        name = "file" if kind == "hard" else f"file.{self._number if writes else self._other}"
        if writes and (kind == "easy" or self._number == 0):
            handle = yield from client.create(folder, name, run.actor)
            if kind == "hard":
                run.team.reached("hard file").succeed()
            return handle
        if kind == "hard":
            yield run.team.reached("hard file")
        return (yield from client.open(folder.children[name], run.actor, write=writes))

    def _pieces(self, kind: str, owner: int) -> Iterator[tuple[int, int]]:
        job = self._job
        if kind == "easy":
            return ((offset, job.call_bytes) for offset in range(0, job.easy_bytes, job.call_bytes))
        return (((turn * self._members + owner) * HARD_PIECE_BYTES, HARD_PIECE_BYTES)
                for turn in range(job.pieces_each))  # fmt: skip

    def _mdtest(self, phase: str, kind: str, what: str) -> Steps[None]:
        job, run = self._job, self._run
        client, files = run.client, run.team.files
        base = self._members if kind == "hard" else 0
        slot = self._number + base
        size, place = (HARD_FILE_BYTES, "mdtest-hard") if kind == "hard" else (0, f"mdtest-easy/d{self._number}")
        if what == "write":
            files[slot] = []
        theirs = files[slot] if what in {"write", "delete"} else files[base + self._other]
        for turn in range(job.hard_files_each if kind == "hard" else job.easy_files_each):
            if not run.active:
                return
            if what == "write":
                name = f"f.{self._number}.{turn}"
                files[slot].append((yield from run.make_file(f"{job.directory}/{place}", name, size)))
            elif what == "stat":
                theirs[turn].data_lock = -1  # another node reads: no lock is left of the writer's
                yield from client.getattr(theirs[turn], run.actor)
            elif what == "delete":
                yield from client.unlink(theirs[turn], run.actor)
            else:
                handle = yield from client.open(theirs[turn], run.actor)
                run.count_bytes((yield from run.client.data.read(handle, 0, size, direct=True)))
                yield from client.close(handle)
            run.count_operation(phase)

    def _find(self) -> Steps[None]:
        """Look at a part of all directories, as the parallel find of IO500: every name is stat'ed once."""
        job, run = self._job, self._run
        for place, _ in job.directories()[self._number::self._members]:
            yield from stat_files(run, run.lookup(place), "find")
            if not run.active:
                return
