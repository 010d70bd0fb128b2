"""Streaming: large files, from front to end, over and over, a few large calls at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lustre.layout import Component, Layout
from simulator.engine import Steps, gather
from simulator.handle import FileHandle
from simulator.jobs.job import Run

HDD_STRIPED = Layout((Component(pool="hdd", stripe_count=4, stripe_size=1 << 20),), composite=False)


@dataclass(frozen=True, slots=True)
class StreamingWriter:
    """Writes a file in large calls; ``threads`` take the next piece in turn. On several nodes: one file each."""

    job_id: str = "ior_stream.1002"
    path: str = "/proj/flow/stream.dat"
    start_seconds: float = 0.0
    stop_seconds: float = float("inf")
    client: int = 0
    call_bytes: int = 4 << 20
    file_bytes: int = 1 << 30
    threads: int = 2
    direct: bool = True
    think_seconds: float = 0.005
    layout: Layout | None = HDD_STRIPED
    nodes: int = 1
    fresh: bool = False
    """Create the file and write it once, instead of overwriting one that is there."""
    striped_directories: bool = False

    def directories(self) -> tuple[tuple[str, Layout | None], ...]:
        """Directories it needs, with their default layouts."""
        return ((self.path.rpartition("/")[0], self.layout),)

    def files(self) -> tuple[tuple[str, int], ...]:
        """Files that exist before it starts, with their sizes."""
        return () if self.fresh else tuple((path, self.file_bytes) for path in paths(self))

    def processes(self, run: Run) -> Iterator[Steps[None]]:
        """Its threads, sharing one open file."""
        yield _shared_file(run, self, write=True)

    def call(self, run: Run, handle: FileHandle, offset: int) -> Steps[None]:
        """One call of one thread."""
        yield from run.client.data.write(handle, offset, self.call_bytes, direct=self.direct)
        run.got(self.call_bytes)


@dataclass(frozen=True, slots=True)
class StreamingReader:
    """Reads a file from front to end; through the page cache and read-ahead unless ``direct``."""

    job_id: str = "ior_read.1002"
    path: str = "/proj/flow/stream.dat"
    start_seconds: float = 0.0
    stop_seconds: float = float("inf")
    client: int = 0
    call_bytes: int = 4 << 20
    file_bytes: int = 1 << 30
    threads: int = 1
    direct: bool = False
    think_seconds: float = 0.005
    layout: Layout | None = HDD_STRIPED
    nodes: int = 1
    fresh: bool = False
    striped_directories: bool = False

    def directories(self) -> tuple[tuple[str, Layout | None], ...]:
        """Directories it needs, with their default layouts."""
        return ((self.path.rpartition("/")[0], self.layout),)

    def files(self) -> tuple[tuple[str, int], ...]:
        """Files that exist before it starts, with their sizes."""
        return tuple((path, self.file_bytes) for path in paths(self))

    def processes(self, run: Run) -> Iterator[Steps[None]]:
        """Its threads, sharing one open file."""
        yield _shared_file(run, self, write=False)

    def call(self, run: Run, handle: FileHandle, offset: int) -> Steps[None]:
        """One call of one thread."""
        run.got((yield from run.client.data.read(handle, offset, self.call_bytes, direct=self.direct)))


def paths(job: StreamingWriter | StreamingReader) -> list[str]:
    """The file of each node; a job on one node has the path as it is."""
    return [job.path] + [f"{job.path}.{rank}" for rank in range(1, job.nodes)]


def _shared_file(run: Run, job: StreamingWriter | StreamingReader, *, write: bool) -> Steps[None]:
    engine, names = run.client.engine, run.client.names
    path = paths(job)[run.rank]
    if job.fresh and write:
        directory, _, name = path.rpartition("/")
        handle = yield from names.create(run.lookup(directory), name, run.actor)
    else:
        handle = yield from names.open(run.lookup(path), run.actor, write=write)
    turn = [0]
    yield gather([engine.spawn(_thread(run, handle, turn, job)) for _ in range(job.threads)])
    yield from names.close(handle)


def _thread(run: Run, handle: FileHandle, turn: list[int], job: StreamingWriter | StreamingReader) -> Steps[None]:
    calls = max(job.file_bytes // job.call_bytes, 1)
    while run.active:
        yield run.think(job.think_seconds)
        offset = turn[0] % calls * job.call_bytes
        turn[0] += 1
        try:
            yield from job.call(run, handle, offset)
        except OSError as error:
            run.failed(error)
            yield 0.1
