"""Jobs of small files: many threads create them in one directory, sync each, and unlink the oldest."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import MinLen

from lustre.layout.model import Layout
from simulator.clients.data import FileHandle
from simulator.engine import Steps
from simulator.jobs.job import HDD, DirectoryJob, Run
from simulator.ranges import AtLeastOne, Count, NotNegative, Positive
from simulator.servers.namespace import Inode


@dataclass(frozen=True, slots=True)
class SmallFileWriter(DirectoryJob):
    """Creates files at a rate. Each entry of ``sizes`` is equally likely; repeat a size to make it likelier.

    If the job has several nodes, each node has these threads and this rate.
    """

    kind: Literal["small_files"] = field(default="small_files", kw_only=True)
    job_id: str = "mdt_small.1001"
    directory: str = "/proj/ingest"
    client: Count = 1
    files_per_second: Positive = 20.0
    sizes: Annotated[tuple[AtLeastOne, ...], MinLen(1)] = (1 << 20,)
    threads: AtLeastOne = 8
    keep: Count = 400
    """Number of files that are kept. The oldest files beyond it are unlinked."""
    fsync: bool = True
    rereads_per_second: NotNegative = 0.0
    """Kept files that are read again per second, with direct I/O."""
    layout: Layout | None = HDD
    call_bytes: Count = 0
    """Size of direct write calls in random order. 0: one call per file."""
    burst_seconds: NotNegative = 0.0
    """Length of bursts at ``files_per_second``, with pauses of the same length. 0: an even rate. The job starts with a
    burst."""
    build_up_seconds: NotNegative = 0.0
    """Time in which the rate rises from a tenth of ``files_per_second`` to all of it. 0: the whole rate at once."""
    prefix: str = ""
    """Begins the names of the files. Jobs that share a directory need different ones."""
    directories_count: Count = 0
    """Number of directories below ``directory`` that the threads use, each with the layout as its default."""

    def directories(self) -> tuple[tuple[str, Layout | None], ...]:
        places = (self.directory, *self._below())
        return tuple((place, self.layout) for place in places)

    def directory_of(self, thread: int) -> str:
        places = self._below() or (self.directory,)
        return places[thread % len(places)]

    def _below(self) -> tuple[str, ...]:
        return tuple(f"{self.directory}/d{number}" for number in range(1, self.directories_count + 1))

    def processes(self, run: Run) -> Iterator[Steps[None]]:
        work = _SmallFileRun(self, run)
        yield from (work.writer(number) for number in range(self.threads))
        if self.rereads_per_second:
            yield work.reader()


class _SmallFileRun:
    """State that the threads share: the schedule of creates, and the kept files."""

    def __init__(self, job: SmallFileWriter, run: Run) -> None:
        self._job = job
        self._run = run
        self._files: deque[Inode] = deque()
        self._next_at = 0.0
        self._begun_at = run.now
        self._prefix = f"{job.prefix}f{int(run.client.time) % 100000}" + (f".n{run.rank}" if run.rank else "")

    def writer(self, thread: int) -> Steps[None]:
        run, number = self._run, 0
        while self._run.active:
            yield self._turn()
            if run.now >= run.stop_seconds:
                break
            try:
                yield from self._one_file(self._job.directory_of(thread), f"{self._prefix}.{thread}.{number}")
                yield from self._remove_old()
            except OSError as error:
                run.count_error(error)
            number += 1

    def reader(self) -> Steps[None]:
        run, client, data = self._run, self._run.client, self._run.client.data
        while run.active:
            yield run.think(1 / self._job.rereads_per_second)
            if not self._files:
                continue
            inode = run.rng.choice(self._files)
            try:
                handle = yield from client.open(inode, run.actor)
                run.count_bytes((yield from data.read(handle, 0, inode.size_bytes, direct=True)))
                yield from client.close(handle)
            except OSError as error:
                run.count_error(error)

    def _turn(self) -> float:
        """Seconds until this thread may create the next file. All threads together keep the rate."""
        start = max(self._next_at, self._run.now)
        self._next_at = start + 1 / self._files_per_second(start)
        burst = self._job.burst_seconds
        if burst and (start - self._begun_at) % (2 * burst) >= burst:
            self._next_at += burst
        return start - self._run.now

    def _files_per_second(self, now: float) -> float:
        whole, build_up = self._job.files_per_second, self._job.build_up_seconds
        return whole * min(max((now - self._begun_at) / build_up, 0.1), 1.0) if build_up else whole

    def _one_file(self, place: str, name: str) -> Steps[None]:
        run, client, data = self._run, self._run.client, self._run.client.data
        size = run.rng.choice(self._job.sizes)
        handle = yield from client.create(run.lookup(place), name, run.actor)
        self._files.append(handle.inode)
        try:
            if self._job.call_bytes:
                yield from self._scattered(handle, size)
            else:
                yield from data.write(handle, 0, size, direct=False)
            if self._job.fsync:
                yield from data.fsync(handle)
            run.count_bytes(size)
        except OSError as error:
            run.count_error(error)
        yield from client.close(handle)

    def _scattered(self, handle: FileHandle, size: int) -> Steps[None]:
        offsets = list(range(0, size, self._job.call_bytes))
        self._run.rng.shuffle(offsets)
        for offset in offsets:
            length = min(self._job.call_bytes, size - offset)
            yield from self._run.client.data.write(handle, offset, length, direct=True)

    def _remove_old(self) -> Steps[None]:
        while len(self._files) > self._job.keep:
            yield from self._run.client.unlink(self._files.popleft(), self._run.actor)
