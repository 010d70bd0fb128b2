"""Streaming: large files, from front to end, over and over, a few large calls at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from simulator.engine import Steps, gather
from simulator.handle import FileHandle
from simulator.jobs.job import Run
from simulator.jobs.shapes import OnFile


@dataclass(frozen=True, slots=True)
class Streaming(OnFile):
    """A file from front to end, over and over; ``threads`` take the next piece in turn. On several nodes: one each."""

    job_id: str = "ior_stream.1002"
    path: str = "/proj/flow/stream.dat"
    call_bytes: int = 4 << 20
    file_bytes: int = 1 << 30
    threads: int = 1
    direct: bool = False
    """Past the client's cache; otherwise through it, with read-ahead when reading."""
    think_seconds: float = 0.005

    def files(self) -> tuple[tuple[str, int], ...]:
        """Files that exist before it starts, with their sizes."""
        return tuple((path, self.file_bytes) for path in paths(self))


@dataclass(frozen=True, slots=True)
class StreamingWriter(Streaming):
    """Writes it, past the cache unless told otherwise."""

    threads: int = 2
    direct: bool = True
    fresh: bool = False
    """Create the file and write it, instead of overwriting one that is there."""

    def files(self) -> tuple[tuple[str, int], ...]:
        """Files that exist before it starts, with their sizes."""
        return () if self.fresh else tuple((path, self.file_bytes) for path in paths(self))

    def processes(self, run: Run) -> Iterator[Steps[None]]:
        """Its threads, sharing one open file."""
        yield _shared_file(run, self, self._call, write=True)

    def _call(self, run: Run, handle: FileHandle, offset: int) -> Steps[None]:
        yield from run.client.data.write(handle, offset, self.call_bytes, direct=self.direct)
        run.got(self.call_bytes)


@dataclass(frozen=True, slots=True)
class StreamingReader(Streaming):
    """Reads it; through the page cache and read-ahead unless ``direct``."""

    job_id: str = "ior_read.1002"

    def processes(self, run: Run) -> Iterator[Steps[None]]:
        """Its threads, sharing one open file."""
        yield _shared_file(run, self, self._call, write=False)

    def _call(self, run: Run, handle: FileHandle, offset: int) -> Steps[None]:
        run.got((yield from run.client.data.read(handle, offset, self.call_bytes, direct=self.direct)))


Call = Callable[[Run, FileHandle, int], Steps[None]]


def paths(job: Streaming) -> list[str]:
    """The file of each node; a job on one node has the path as it is."""
    return [job.path] + [f"{job.path}.{rank}" for rank in range(1, job.nodes)]


def _shared_file(run: Run, job: Streaming, call: Call, *, write: bool) -> Steps[None]:
    engine, names = run.client.engine, run.client.names
    path = paths(job)[run.rank]
    if isinstance(job, StreamingWriter) and job.fresh:
        directory, _, name = path.rpartition("/")
        handle = yield from names.create(run.lookup(directory), name, run.actor)
    else:
        handle = yield from names.open(run.lookup(path), run.actor, write=write)
    turn = [0]
    yield gather([engine.spawn(_thread(run, handle, turn, job, call)) for _ in range(job.threads)])
    yield from names.close(handle)


def _thread(run: Run, handle: FileHandle, turn: list[int], job: Streaming, call: Call) -> Steps[None]:
    calls = max(job.file_bytes // job.call_bytes, 1)
    while run.active:
        yield run.think(job.think_seconds)
        offset = turn[0] % calls * job.call_bytes
        turn[0] += 1
        try:
            yield from call(run, handle, offset)
        except OSError as error:
            run.failed(error)
            yield 0.1
