"""Files per second of the lease engine, with one and with several workers, if each request takes a given time.

    python -m bench.movers [--milliseconds 2] [--files 64]

The file system is the in-memory Lustre of the tests. Each call first sleeps for the time of its requests, whose number
comes from Lustre's source (docs/decisions/013). The benchmark therefore measures the work of this program between
requests, and whether concurrent moves wait for each other. ``of the ideal`` is the share of the time spent in requests.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from threading import Lock
from typing import Any, cast

from lustre.filesystem import Calls, Space
from tests.counted_calls import REQUESTS
from tests.tierd.act.movers.minicalls import MiniCalls
from tests.tierd.act.movers.minilustre import FLASH, HDD, MiniLustre
from tierd.act.movers.lease import LeaseMover
from tierd.act.movers.moves import Move, Mover, MoveResult
from tierd.act.movers.parallel import ParallelMover
from tierd.act.movers.space_and_quota import Destination

TARGETS = 8


class Slow:
    """Delays each call of a Lustre in memory by the time of its requests."""

    def __init__(self, lustre: MiniLustre, request_seconds: float) -> None:
        self._calls = MiniCalls(lustre)
        self._lock = Lock()
        self._request_seconds = request_seconds
        self.requests = 0

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._calls, name)

        def slow(*arguments: Any) -> Any:
            requests = REQUESTS[name]
            if requests:
                time.sleep(requests * self._request_seconds)
            with self._lock:
                self.requests += requests
                return function(*arguments)

        return slow


def measured(workers: int, files: int, request_seconds: float) -> tuple[float, int]:
    """Return the files per second and the requests per file."""
    lustre = MiniLustre()
    lustre.directory_default, lustre.directory_project = FLASH, 7
    lustre.pool_members = {"flash": tuple(f"lustre-OST{n:04x}" for n in range(TARGETS)),
                           "hdd": tuple(f"lustre-OST{TARGETS + n:04x}" for n in range(TARGETS))}
    moves = []
    for number in range(files):
        lustre.create(f"/d/{number}", b"x" * 4096, HDD)
        source = lustre.pool_members["hdd"][number % TARGETS]
        moves.append(Move(f"/d/{number}", FLASH, size_bytes=4096, targets=frozenset((source,))))
    slow = Slow(lustre, request_seconds)
    room = {target: Space(1 << 40, 1 << 39, 1 << 39) for members in lustre.pool_members.values() for target in members}
    engine = LeaseMover(cast(Calls, slow), Destination(lambda: lustre.pool_members, lambda: room, lustre.quota))
    mover: Mover = engine if workers == 1 else ParallelMover(engine, lambda: lustre.pool_members, workers, 1)
    began = time.perf_counter()
    outcomes = list(mover.move(moves))
    took = time.perf_counter() - began
    assert {outcome.result for outcome in outcomes} == {MoveResult.DONE}
    return files / took, round(slow.requests / files)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--milliseconds", type=float, default=2.0, help="time of one request")
    parser.add_argument("--files", type=int, default=64)
    given = parser.parse_args(arguments)
    before = 0.0
    for workers in (1, 2, 4, 8):
        files_per_second, requests = measured(workers, given.files, given.milliseconds / 1000)
        ideal = workers * 1000 / (requests * given.milliseconds)
        more = f", {files_per_second / before - 1:+.0%} by the doubling" if before else f", {requests} requests a file"
        print(f"{workers} workers: {files_per_second:.1f} files/s, {files_per_second / ideal:.0%} of the ideal{more}")
        before = files_per_second


if __name__ == "__main__":
    main()
