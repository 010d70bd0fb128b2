"""Metadata: mdtest's phases (create, stat, read, unlink) and ``ls -l``, on many nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from lustre.layout.model import Layout
from simulator.clients.client import NAMES_PER_READDIR, Statahead
from simulator.engine import Steps
from simulator.jobs.job import DirectoryJob, Run
from simulator.ranges import AtLeastOne, Count, NotNegative
from simulator.servers.namespace import Inode

PHASES = ("create", "stat", "read", "unlink")


@dataclass(frozen=True, slots=True)
class Mdtest(DirectoryJob):
    """Runs mdtest: each process creates files, stats and reads its neighbour's, and unlinks its own, in phases."""

    kind: Literal["mdtest"] = field(default="mdtest", kw_only=True)
    job_id: str = "mdtest.1010"
    directory: str = "/proj/mdtest"
    threads: AtLeastOne = 4
    files_each: AtLeastOne = 50
    file_bytes: Count = 0
    shared: bool = False
    """Whether all processes share one directory."""
    drops_locks: bool = True
    """Whether clients drop their locks before the stat phase, as benchmarks do."""
    phases: tuple[str, ...] = PHASES
    """The phases that run."""
    striped_directories: bool = True
    """Whether directories are striped over all MDTs (unique directories: each on the next MDT)."""

    def directories(self) -> tuple[tuple[str, Layout | None], ...]:
        if self.shared:
            return ((self.directory, self.layout),)
        return tuple((f"{self.directory}/d{number}", self.layout) for number in range(self.nodes * self.threads))

    def processes(self, run: Run) -> Iterator[Steps[None]]:
        yield from (self._process(run, run.rank * self.threads + thread) for thread in range(self.threads))

    def _process(self, run: Run, number: int) -> Steps[None]:
        members = self.nodes * self.threads
        own = run.team.files[number] = list[Inode]()
        place = self.directory if self.shared else f"{self.directory}/d{number}"
        for phase in self.phases:
            yield run.team.barrier(phase, members)
            run.team.begin(phase, run.now)
            if phase == "stat" and self.drops_locks:
                for inode in own:
                    inode.data_lock = -1
            neighbour = run.team.files[(number + self.threads) % members]
            for turn in range(self.files_each):
                if not run.active:
                    return
                if phase == "create":
                    own.append((yield from run.make_file(place, f"f.{number}.{turn}", self.file_bytes)))
                else:
                    yield from self._touch(run, phase, own[turn] if phase == "unlink" else neighbour[turn])
                run.count_operation(phase)

    def _touch(self, run: Run, phase: str, inode: Inode) -> Steps[None]:
        client, data = run.client, run.client.data
        if phase == "stat":
            yield from client.getattr(inode, run.actor)
        elif phase == "unlink":
            yield from client.unlink(inode, run.actor)
        else:
            handle = yield from client.open(inode, run.actor)
            yield from client.glimpse(inode, run.actor)  # the end of the file
            if self.file_bytes:
                run.count_bytes((yield from data.read(handle, 0, self.file_bytes, direct=True)))
            yield from client.close(handle)


def stat_files(run: Run, directory: Inode, operation: str) -> Steps[None]:
    """Read a directory, and stat each file in its order with statahead. Each counts as an ``operation`` of the job."""
    inodes = [inode for inode in directory.children.values() if not inode.is_directory]
    ahead = Statahead(run.client, inodes, run.actor)
    for number in range(len(inodes)):
        if not run.active:
            return
        if number % NAMES_PER_READDIR == 0:
            yield from run.client.mdcs[directory.mdt_index].ask("readpage", run.actor.job_id)
            run.client.stats.tally("readdir", 1)
        yield from ahead.stat(number)
        run.count_operation(operation)


@dataclass(frozen=True, slots=True)
class LsScan(DirectoryJob):
    """Runs ``ls -l`` of a directory repeatedly, with pauses."""

    kind: Literal["ls"] = field(default="ls", kw_only=True)
    job_id: str = "ls.1011"
    directory: str = "/proj/many"
    names: AtLeastOne = 1000
    times: AtLeastOne = 1
    think_seconds: NotNegative = 0.0

    def files(self) -> tuple[tuple[str, int], ...]:
        return tuple((f"{self.directory}/f{number}", 4096) for number in range(self.names))

    def processes(self, run: Run) -> Iterator[Steps[None]]:
        yield self._process(run)

    def _process(self, run: Run) -> Steps[None]:
        directory = run.lookup(self.directory)
        run.team.begin("stat", run.now)
        for _ in range(self.times):
            yield from stat_files(run, directory, "stat")
            if not run.active:
                return
            yield run.think(self.think_seconds)


@dataclass(frozen=True, slots=True)
class StepFiles(DirectoryJob):
    """Makes a directory for each step, in which all processes create small files at the same time, again and again."""

    kind: Literal["step_files"] = field(default="step_files", kw_only=True)
    job_id: str = "steps.1012"
    directory: str = "/proj/steps"
    threads: AtLeastOne = 8
    files_each: AtLeastOne = 50
    """Files of each process in a step."""
    steps: int = 10_000

    def processes(self, run: Run) -> Iterator[Steps[None]]:
        yield from (self._process(run, run.rank * self.threads + thread) for thread in range(self.threads))

    def _process(self, run: Run, number: int) -> Steps[None]:
        members = self.nodes * self.threads
        for step in range(self.steps):
            if number == 0:
                yield from run.client.mkdir(run.lookup(self.directory), f"step{step:05d}", run.actor)
            yield run.team.barrier(f"step {step}", members)
            run.team.begin("create", run.now)
            for turn in range(self.files_each):
                if not run.active:
                    return
                yield from run.make_file(f"{self.directory}/step{step:05d}", f"f.{number}.{turn}", 0)
                run.count_operation("create")
