"""One file for all: every process writes, or reads, its own pieces of it, in turn with the others (N to 1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from simulator.engine import Steps
from simulator.jobs.job import Run
from simulator.jobs.shapes import OnFile


@dataclass(frozen=True, slots=True)
class SharedFile(OnFile):
    """Process p of n does piece p, then p + n, and so on: strides, as a job that writes one record of each process."""

    job_id: str = "ior_hard.1012"
    path: str = "/proj/shared/one.dat"
    nodes: int = 2
    threads: int = 1
    piece_bytes: int = 47008
    pieces_each: int = 200
    write: bool = True
    direct: bool = False
    think_seconds: float = 0.0

    def files(self) -> tuple[tuple[str, int], ...]:
        """The file, with all its pieces."""
        return ((self.path, self.piece_bytes * self.pieces_each * self.nodes * self.threads),)

    def processes(self, run: Run) -> Iterator[Steps[None]]:
        """Its processes on one node."""
        yield from (self._process(run, run.rank * self.threads + thread) for thread in range(self.threads))

    def _process(self, run: Run, number: int) -> Steps[None]:
        names, data = run.client.names, run.client.data
        members = self.nodes * self.threads
        handle = yield from names.open(run.lookup(self.path), run.actor, write=self.write)
        run.team.begin("piece", run.now)
        for turn in range(self.pieces_each):
            if not run.active:
                break
            yield run.think(self.think_seconds)
            offset = (turn * members + number) * self.piece_bytes
            try:
                if self.write:
                    yield from data.write(handle, offset, self.piece_bytes, direct=self.direct)
                else:
                    yield from data.read(handle, offset, self.piece_bytes, direct=self.direct)
                run.got(self.piece_bytes)
                run.did("piece")
            except OSError as error:
                run.failed(error)
        if self.write:
            yield from data.fsync(handle)
        yield from names.close(handle)
