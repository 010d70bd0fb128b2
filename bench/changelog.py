"""Time to decode changelog records and to sum them by job and directory, compared with walking over the records.

``python -m bench.changelog [FILE]``: FILE holds raw records. The default is a recording of a job with small files.
"""

from __future__ import annotations

import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

from lustre.changelog.decode import decode, measure
from lustre.fid import Fid
from tierd.sense.changelogs.packed import packed_pieces
from tierd.sense.changelogs.table import ActivityTable, Batches

TAPE = Path(__file__).parent.parent / "tests/tapes/noisy-create-1m/tape.tar.xz"
REPEATS = 20


def records(arguments: list[str]) -> bytes:
    """Read the raw records."""
    if arguments:
        return Path(arguments[0]).read_bytes()
    with tarfile.open(TAPE) as archive:
        member = archive.extractfile("changelog-MDT0000.bin")
        assert member is not None
        return member.read()


def cpu(work: Callable[[], object]) -> float:
    """Return the CPU seconds of one run, the best of three."""
    best = float("inf")
    for _ in range(3):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return best


def nobody(fid: Fid) -> str:
    """Return no path for any FID."""
    raise FileNotFoundError(str(fid))


def walk(data: bytes) -> int:
    """Walk over the records by their lengths alone."""
    at = count = 0
    while (shape := measure(data, at)) is not None:
        at, count = shape[1], count + 1
    return count


def main(arguments: list[str]) -> None:
    """Print records per second, and the time of each step as a multiple of the walk."""
    data = records(arguments)
    count = walk(data) * REPEATS

    def rolled_up() -> None:
        table = ActivityTable(nobody)
        for _ in range(REPEATS):
            table.add(Batches(packed_pieces(data)))

    walked = cpu(lambda: [walk(data) for _ in range(REPEATS)])
    decoded = cpu(lambda: [decode(data) for _ in range(REPEATS)])
    for name, seconds in (("walked over", walked), ("decoded", decoded), ("rolled up", cpu(rolled_up))):
        print(f"{name:24} {count / seconds:12,.0f} records/s  {seconds / walked:5.1f} x the walk")


if __name__ == "__main__":
    main(sys.argv[1:])
