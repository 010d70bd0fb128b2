"""Jobs on large files: sequential streams, small random I/O in one file, and one file shared by all processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from simulator.clients.data import FileHandle
from simulator.engine import Steps, gather
from simulator.jobs.job import FileJob, Run
from simulator.ranges import AtLeastOne, Count, NotNegative


@dataclass(frozen=True, slots=True)
class Streaming(FileJob):
    """Streams a file from start to end, repeatedly; ``threads`` take the next piece in turn.

    Each node has its own file.
    """

    job_id: str = "ior_stream.1002"
    path: str = "/proj/flow/stream.dat"
    call_bytes: AtLeastOne = 4 << 20
    file_bytes: AtLeastOne = 1 << 30
    threads: AtLeastOne = 1
    direct: bool = False
    """Bypass the client's cache. Otherwise I/O goes through it, and reads use read-ahead."""
    think_seconds: NotNegative = 0.005
    run_seconds: float = float("inf")
    """Time after which the job closes the file. It opens it again after ``pause_seconds``."""
    pause_seconds: float = 0.0

    def files(self) -> tuple[tuple[str, int], ...]:
        return tuple((path, self.file_bytes) for path in stream_paths(self))

    def opened(self, run: Run, path: str) -> Steps[FileHandle]:
        raise NotImplementedError

    def call(self, run: Run, handle: FileHandle, offset: int) -> Steps[None]:
        """Read or write one piece."""
        raise NotImplementedError

    def processes(self, run: Run) -> Iterator[Steps[None]]:
        yield self._process(run)

    def _process(self, run: Run) -> Steps[None]:
        while True:
            until, turn = run.now + self.run_seconds, [0]
            handle = yield from self.opened(run, stream_paths(self)[run.rank])
            yield gather([run.client.engine.spawn(self._thread(run, handle, turn, until)) for _ in range(self.threads)])
            yield from run.client.close(handle)
            if not run.active:
                return
            yield self.pause_seconds

    def _thread(self, run: Run, handle: FileHandle, turn: list[int], until: float) -> Steps[None]:
        calls = max(self.file_bytes // self.call_bytes, 1)
        while run.active and run.now < until:
            yield run.think(self.think_seconds)
            offset = turn[0] % calls * self.call_bytes
            turn[0] += 1
            try:
                yield from self.call(run, handle, offset)
            except OSError as error:
                run.count_error(error)
                yield 0.1


@dataclass(frozen=True, slots=True)
class StreamingWriter(Streaming):
    """Streams writes to a file. Bypasses the cache by default."""

    kind: Literal["streaming_write"] = field(default="streaming_write", kw_only=True)
    threads: AtLeastOne = 2
    direct: bool = True
    fresh: bool = False
    """Create the file instead of overwriting an existing one."""

    def files(self) -> tuple[tuple[str, int], ...]:
        return () if self.fresh else tuple((path, self.file_bytes) for path in stream_paths(self))

    def opened(self, run: Run, path: str) -> Steps[FileHandle]:
        client = run.client
        if not self.fresh:
            return (yield from client.open(run.lookup(path), run.actor, write=True))
        directory, _, name = path.rpartition("/")
        return (yield from client.create(run.lookup(directory), name, run.actor))

    def call(self, run: Run, handle: FileHandle, offset: int) -> Steps[None]:
        yield from run.client.data.write(handle, offset, self.call_bytes, direct=self.direct)
        run.count_bytes(self.call_bytes)


@dataclass(frozen=True, slots=True)
class StreamingReader(Streaming):
    """Streams reads of a file, through the page cache and read-ahead unless ``direct``."""

    kind: Literal["streaming_read"] = field(default="streaming_read", kw_only=True)
    job_id: str = "ior_read.1002"

    def opened(self, run: Run, path: str) -> Steps[FileHandle]:
        return (yield from run.client.open(run.lookup(path), run.actor))

    def call(self, run: Run, handle: FileHandle, offset: int) -> Steps[None]:
        run.count_bytes((yield from run.client.data.read(handle, offset, self.call_bytes, direct=self.direct)))


def stream_paths(job: Streaming) -> list[str]:
    """Path of each node's file. A job on one node uses the path unchanged."""
    return [job.path] + [f"{job.path}.{rank}" for rank in range(1, job.nodes)]


@dataclass(frozen=True, slots=True)
class RandomWriter(FileJob):
    """Small random I/O in one file by several processes, each with one call at a time."""

    kind: Literal["random_write"] = field(default="random_write", kw_only=True)
    job_id: str = "fio_rand.1001"
    path: str = "/proj/rand/table.dat"
    client: Count = 1
    call_bytes: AtLeastOne = 4096
    file_bytes: AtLeastOne = 128 << 20
    processes_count: AtLeastOne = 8
    read_share: float = 0.0
    """Share of calls that read; the others write."""
    run_seconds: float = float("inf")
    """Time after which the processes close the file. They open it again after ``pause_seconds``."""
    pause_seconds: float = 0.0
    think_seconds: NotNegative = 0.0

    def files(self) -> tuple[tuple[str, int], ...]:
        return ((self.path, self.file_bytes),)

    def processes(self, run: Run) -> Iterator[Steps[None]]:
        yield from (self._process(run) for _ in range(self.processes_count))

    def _process(self, run: Run) -> Steps[None]:
        while run.active:
            yield from self._one_run(run, run.now + self.run_seconds)
            yield self.pause_seconds

    def _one_run(self, run: Run, until: float) -> Steps[None]:
        client, data = run.client, run.client.data
        handle: FileHandle = yield from client.open(run.lookup(self.path), run.actor, write=True)
        while run.active and run.now < until:
            if self.think_seconds:
                yield run.think(self.think_seconds)
            offset = run.rng.randrange(self.file_bytes // self.call_bytes) * self.call_bytes
            try:
                reads = self.read_share and run.rng.random() < self.read_share
                yield from (data.read if reads else data.write)(handle, offset, self.call_bytes, direct=True)
                run.count_bytes(self.call_bytes)
            except OSError as error:
                run.count_error(error)
                yield 0.1
        yield from client.close(handle)


@dataclass(frozen=True, slots=True)
class SharedFile(FileJob):
    """One file that all processes share: process p of n accesses the pieces p, p + n, and so on (strided)."""

    kind: Literal["shared_file"] = field(default="shared_file", kw_only=True)
    job_id: str = "ior_hard.1012"
    path: str = "/proj/shared/one.dat"
    nodes: AtLeastOne = 2
    threads: AtLeastOne = 1
    piece_bytes: AtLeastOne = 47008
    pieces_each: AtLeastOne = 200
    write: bool = True
    direct: bool = False
    think_seconds: NotNegative = 0.0
    runs: int = 1
    """Times that the processes open the file, access their pieces and close it."""
    period_seconds: float = 0.0
    """Time from the start of a run to that of the next. A run that lasts longer delays the next."""

    def files(self) -> tuple[tuple[str, int], ...]:
        return ((self.path, self.piece_bytes * self.pieces_each * self.nodes * self.threads),)

    def processes(self, run: Run) -> Iterator[Steps[None]]:
        yield from (self._process(run, run.rank * self.threads + thread) for thread in range(self.threads))

    def _process(self, run: Run, number: int) -> Steps[None]:
        began = run.now
        for turn in range(self.runs):
            yield max(0.0, began + turn * self.period_seconds - run.now)
            if run.active:
                yield from self._one_run(run, number)

    def _one_run(self, run: Run, number: int) -> Steps[None]:
        client, data = run.client, run.client.data
        call = data.write if self.write else data.read
        members = self.nodes * self.threads
        handle = yield from client.open(run.lookup(self.path), run.actor, write=self.write)
        run.team.begin("piece", run.now)
        for turn in range(self.pieces_each):
            if not run.active:
                break
            yield run.think(self.think_seconds)
            offset = (turn * members + number) * self.piece_bytes
            try:
                yield from call(handle, offset, self.piece_bytes, direct=self.direct)
                run.count_bytes(self.piece_bytes)
                run.count_operation("piece")
            except OSError as error:
                run.count_error(error)
        if self.write:
            yield from data.fsync(handle)
        yield from client.close(handle)
