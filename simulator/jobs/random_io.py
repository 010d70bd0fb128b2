"""Random I/O: small direct writes all over one file, the classic way to keep disk heads moving."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from simulator.engine import Steps
from simulator.handle import FileHandle
from simulator.jobs.job import Run
from simulator.jobs.shapes import OnFile


@dataclass(frozen=True, slots=True)
class RandomWriter(OnFile):
    """Several processes, each with one write under way."""

    job_id: str = "fio_rand.1001"
    path: str = "/proj/rand/table.dat"
    client: int = 1
    call_bytes: int = 4096
    file_bytes: int = 128 << 20
    processes_count: int = 8
    read_share: float = 0.0
    """Of the calls; the others write."""

    def files(self) -> tuple[tuple[str, int], ...]:
        """Files that exist before it starts, with their sizes."""
        return ((self.path, self.file_bytes),)

    def processes(self, run: Run) -> Iterator[Steps[None]]:
        """Its processes, each with the file open."""
        yield from (self._process(run) for _ in range(self.processes_count))

    def _process(self, run: Run) -> Steps[None]:
        names = run.client.names
        handle: FileHandle = yield from names.open(run.lookup(self.path), run.actor, write=True)
        while run.active:
            offset = run.rng.randrange(self.file_bytes // self.call_bytes) * self.call_bytes
            try:
                if self.read_share and run.rng.random() < self.read_share:
                    yield from run.client.data.read(handle, offset, self.call_bytes, direct=True)
                else:
                    yield from run.client.data.write(handle, offset, self.call_bytes, direct=True)
                run.got(self.call_bytes)
            except OSError as error:
                run.failed(error)
                yield 0.1
        yield from names.close(handle)
