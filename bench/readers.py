"""Records a second that a changelog reader rolls up on one core, and what the tallies of 40 MDTs cost the leader.

``python -m bench.readers [RECORDS]``: RECORDS (default 100,000) is what one MDT writes in a window of five seconds.
A reader decodes the records, rolls them up, makes the tally and encodes it. The leader decodes tallies and adds them to
its table. 500 jobs work in four directories each on every MDT. Reading the device and NATS are not part of it
(``bench.dispatch`` measures NATS). Records are generated outside of the measured time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from statistics import median

from bench.tierd_load import Changelogs, Clock
from lustre.changelog.decode import decode
from lustre.fid import Fid
from tierd.cluster.reader import MdtReader, Window
from tierd.cluster.tallies import decode as decode_tally
from tierd.cluster.tallies import encode as encode_tally
from tierd.config.readers import ReaderSettings
from tierd.daemon.process import collect_garbage_rarely
from tierd.sense.changelogs.packed import packed_pieces
from tierd.sense.changelogs.table import ActivityTable, Batches
from tierd.sense.changelogs.tallies import JobsOnly, Tally, TallyLimits
from tierd.sense.changelogs.tally_source import Position, ReaderState, ReceivedTally, TallySource

MDTS = tuple(f"MDT{number:04x}" for number in range(40))
JOBS = tuple(f"app{number % 300}.{number}" for number in range(500))
WINDOWS = 5
WANTED_PER_SECOND = 800_000
"""Records a second that six readers take in: 40 MDTs with 20,000 each."""
READERS = 6


def path_of(fid: Fid) -> str:
    """Return a path for the directories of jobs."""
    if fid.sequence == 0x200000300:
        return f"/scratch/project{fid.object_id // 100}/dir{fid.object_id}"
    raise FileNotFoundError(str(fid))


def new_table(limits: TallyLimits | None = None) -> ActivityTable:
    """Return the table of a reader, or of the leader."""
    return ActivityTable(path_of, is_echo=JobsOnly(("tierd.0",)), tallies=limits)


class Inbox:
    """Tallies in the form of the wire."""

    def __init__(self) -> None:
        self.coming: list[bytes] = []

    def receive(self) -> Sequence[ReceivedTally]:
        """Decode what has come."""
        found, self.coming = self.coming, []
        return [ReceivedTally(decode_tally(data), None) for data in found]

    def confirm(self, done: Sequence[ReceivedTally]) -> None:
        """Do nothing."""

    def announce(self, positions: Mapping[str, Position]) -> None:
        """Do nothing."""

    def readers(self) -> Sequence[ReaderState]:
        """No reader describes itself."""
        return ()

    def announce_renames(self, fids: Sequence[Fid] | None) -> None:
        """Do nothing."""


def read(records: int) -> tuple[float, float, dict[str, list[bytes]], int]:
    """Return the seconds per record to roll up alone, those of a reader, its tallies by window, and their size."""
    clock = Clock()
    alone_table = new_table()
    sent: list[Window] = []
    settings = ReaderSettings(enabled=True, max_windows=1000)
    given: list[bytes] = [b""]

    def answer(_: str, after: int) -> bytes:
        data, given[0] = given[0], b""
        return data

    logs = Changelogs(MDTS[:1], JOBS, records, clock.now)
    reader = MdtReader(MDTS[0], "r1", answer, None, "", lambda: new_table(TallyLimits()), settings, clock,
                       clock.now, sent.append)
    alone, whole, count = [], [], 0
    for _ in range(WINDOWS):
        clock.wait(5.0)
        data = logs.read(MDTS[0], 0)
        count = len(decode(data)[0])
        begun = time.process_time()
        alone_table.add(Batches(packed_pieces(data)))
        alone.append((time.process_time() - begun) / count)
        given[0] = data
        begun = time.process_time()
        reader.step(1, Position(0, 0))
        clock.wait(5.0)
        reader.step(1, Position(0, 0))
        whole.append((time.process_time() - begun) / count)
    tallies = {MDTS[0]: [window.data for window in sent if window.tally.records]}
    return median(alone[1:]), median(whole[1:]), tallies, count


def lead(records: int) -> tuple[list[float], int]:
    """Return the leader's seconds of each cycle with the tallies of all MDTs, and the bytes of one tally."""
    clock, inbox, limits = Clock(), Inbox(), TallyLimits()
    logs = Changelogs(MDTS, JOBS, records * len(MDTS), clock.now)
    tables = {mdt: new_table(limits) for mdt in MDTS}
    source = TallySource(inbox, dict.fromkeys(MDTS, 0), clock, 90.0, 1e9, 10.0, 30.0)
    table = new_table()
    positions = dict.fromkeys(MDTS, 0)
    seconds, size = [], 0
    for _ in range(4):
        clock.wait(5.0)
        for mdt in MDTS:
            found, _ = decode(logs.read(mdt, 0))
            tables[mdt].add(found)
            window = _window(mdt, positions[mdt], found[-1].index, len(found), tables[mdt])
            positions[mdt] = found[-1].index
            inbox.coming.append(window)
            size = max(size, len(window))
        begun = time.process_time()
        table.add_tallies(source.tallies())
        table.mark(clock.now())
        source.acknowledge()
        seconds.append(time.process_time() - begun)
    return seconds, size


def _window(mdt: str, after: int, last: int, records: int, table: ActivityTable) -> bytes:
    return encode_tally(Tally(mdt, after, last, records, "r1", 1, 0, False, True, 1.0, 2.0, content=table.tally()))


def main(arguments: Sequence[str]) -> None:
    """Print both."""
    collect_garbage_rarely()  # as the processes do
    records = int(arguments[0]) if arguments else 100_000
    alone, whole, tallies, count = read(records)
    print(f"one reader, {count:,} records in a window of 5 s, {len(JOBS):,} jobs")
    print(f"  decoded and rolled up       {1 / alone:12,.0f} records/s")
    print(f"  the same with tallies       {1 / whole:12,.0f} records/s/core   {whole / alone:5.2f} x")
    print(f"  {READERS} readers                   {READERS / whole:12,.0f} records/s, of {WANTED_PER_SECOND:,} wanted")
    print(f"  a tally                     {max(map(len, tallies[MDTS[0]])) / 1024:12,.0f} KiB")
    seconds, size = lead(records // 10)
    print(f"the leader, tallies of {len(MDTS)} MDTs a cycle, up to {size / 1024:.0f} KiB each")
    print(f"  processor time of a cycle   {median(seconds[1:]):12.2f} s; the largest {max(seconds):.2f} s; wanted: 1 s")


if __name__ == "__main__":
    main(sys.argv[1:])
