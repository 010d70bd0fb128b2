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
    """The score of rates by phase: MiB/s for IOR, operations per second for others. None if one is missing.

    >>> rates = dict.fromkeys(BANDWIDTH_PHASES, 4096.0) | dict.fromkeys(OPERATION_PHASES, 9000.0)
    >>> round(score(rates).total, 9), score({"find": 1.0})
    (6.0, None)
    """
    if any(rates.get(phase, 0.0) <= 0.0 for phase in PHASES):
        return None
    return Score(*(geometric_mean(rates[phase] / unit for phase in phases)
                   for phases, unit in ((BANDWIDTH_PHASES, 1024), (OPERATION_PHASES, 1000))))


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
        yield from (self._process(run, run.rank * self.threads + thread) for thread in range(self.threads))

    def _process(self, run: Run, number: int) -> Steps[None]:
        """All phases, each of which begins when every process has ended the one before."""
        for phase in PHASES:
            yield run.team.barrier(phase, self.nodes * self.threads)
            run.team.begin(phase, run.now)
            if phase == "find":
                yield from self._find(run, number)
            else:
                yield from (self._ior if phase in BANDWIDTH_PHASES else self._mdtest)(run, number, phase)

    def _other(self, number: int) -> int:
        """Process on the next node, whose files this one reads."""
        return (number + self.threads) % (self.nodes * self.threads)

    def _ior(self, run: Run, number: int, phase: str) -> Steps[None]:
        data, hard, writes = run.client.data, "hard" in phase, phase.endswith("write")
        owner = number if writes else self._other(number)
        handle = yield from self._opened(run, owner, hard=hard, writes=writes)
        for offset, size in self._pieces(owner, hard):
            if not run.active:
                break
            yield from (data.write if writes else data.read)(handle, offset, size, direct=False)
            run.count_bytes(size)
            run.team.count(phase, run.now, size / MIB)
        if writes:
            yield from data.fsync(handle)
            run.team.count(phase, run.now, 0)  # the phase ends when its bytes are stored
        yield from run.client.close(handle)

    def _opened(self, run: Run, owner: int, *, hard: bool, writes: bool) -> Steps[FileHandle]:
        folder = run.lookup(f"{self.directory}/ior-{'hard' if hard else 'easy'}")
        name = "file" if hard else f"file.{owner}"
        if writes and (owner == 0 or not hard):
            handle = yield from run.client.create(folder, name, run.actor)
            if hard:
                run.team.reached("hard file").succeed()
            return handle
        if hard:
            yield run.team.reached("hard file")
        return (yield from run.client.open(folder.children[name], run.actor, write=writes))

    def _pieces(self, owner: int, hard: bool) -> Iterator[tuple[int, int]]:
        if not hard:
            return ((offset, self.call_bytes) for offset in range(0, self.easy_bytes, self.call_bytes))
        members = self.nodes * self.threads
        return (((turn * members + owner) * HARD_PIECE_BYTES, HARD_PIECE_BYTES) for turn in range(self.pieces_each))

    def _mdtest(self, run: Run, number: int, phase: str) -> Steps[None]:
        client, files, hard, what = run.client, run.team.files, "hard" in phase, phase.rpartition("-")[2]
        base = self.nodes * self.threads if hard else 0
        size, place = (HARD_FILE_BYTES, "mdtest-hard") if hard else (0, f"mdtest-easy/d{number}")
        if what == "write":
            files[number + base] = []
        theirs = files[base + (number if what in {"write", "delete"} else self._other(number))]
        for turn in range(self.hard_files_each if hard else self.easy_files_each):
            if not run.active:
                return
            if what == "write":
                theirs.append((yield from run.make_file(f"{self.directory}/{place}", f"f.{number}.{turn}", size)))
            elif what == "stat":
                theirs[turn].data_lock = -1  # another node reads: no lock is left of the writer's
                yield from client.getattr(theirs[turn], run.actor)
            elif what == "delete":
                yield from client.unlink(theirs[turn], run.actor)
            else:
                handle = yield from client.open(theirs[turn], run.actor)
                run.count_bytes((yield from client.data.read(handle, 0, size, direct=True)))
                yield from client.close(handle)
            run.count_operation(phase)

    def _find(self, run: Run, number: int) -> Steps[None]:
        """Look at a part of all directories, as the parallel find of IO500: every name is stat'ed once."""
        for place, _ in self.directories()[number::self.nodes * self.threads]:
            yield from stat_files(run, run.lookup(place), "find")
            if not run.active:
                return
