"""Changelogs in files, readers over them, and a leader that counts what they send."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from simulator.servers.changelog_bytes import encode
from tierd.clock import SystemClock
from tierd.cluster.connection import BrokerError, Connection
from tierd.cluster.messages import Names, declare_readers
from tierd.cluster.reader import MdtReader, Reader
from tierd.cluster.tallies import NatsTallyInbox
from tierd.config.settings import ReaderSettings
from tierd.sense.changelogs.table import ActivityTable
from tierd.sense.changelogs.tallies import TallyLimits
from tierd.sense.changelogs.tally_source import TallySource
from tierd.sense.own_moves import OwnMoves

SETTINGS = ReaderSettings(enabled=True, window_seconds=0.2, lease_seconds=5.0)
KEY = "a key that only root can read"
MOST = 400
"""Records of one read."""
DIRECTORY = Fid(0x200000402, 1)


def path_of(fid: Fid) -> str:
    if fid == DIRECTORY:
        return "/proj/in"
    raise FileNotFoundError(str(fid))


def lives(*numbers: int) -> list[Record]:
    """Small files that are created, opened and closed: three records each, with indexes from 3 * number + 1."""
    return [record for number in numbers for record in life(number)]


def life(number: int) -> list[Record]:
    fid, time, index = Fid(0x200000403, number), SystemClock().now(), 3 * number
    return [Record(index + 1, RecordType.CREATE, time, target=fid, parent=DIRECTORY, name=b"f%d" % number,
                   job_id=b"small.1"),
            Record(index + 2, RecordType.OPEN, time, target=fid, parent=DIRECTORY, job_id=b"small.1"),
            Record(index + 3, RecordType.CLOSE, time, target=fid, job_id=b"small.1")]


class MadeChangelog:
    """The changelog of each MDT, and the index up to which it was cleared. Readers in several threads may use it."""

    def __init__(self) -> None:
        self.records: dict[str, list[Record]] = defaultdict(list)
        self._cleared: Counter[str] = Counter()

    def read(self, mdt: str, after: int) -> bytes:
        first = max(after, self.cleared(mdt))
        return b"".join(map(encode, islice((record for record in self.records[mdt] if record.index > first), MOST)))

    def clear(self, mdt: str, _: str, index: int) -> None:
        self._cleared[mdt] = max(index, self._cleared[mdt])

    def cleared(self, mdt: str) -> int:
        return self._cleared[mdt]


def new_table() -> ActivityTable:
    return ActivityTable(path_of, is_echo=OwnMoves(()), tallies=TallyLimits())


def reader_over(changelog: MadeChangelog, connection: Connection, names: Names, name: str, mdts: Sequence[str],
                settings: ReaderSettings = SETTINGS, secret: Callable[[], str] = lambda: KEY) -> Reader:
    clock = SystemClock()
    readers = {mdt: MdtReader(mdt, name, changelog.read, changelog.clear, "cl1", new_table, settings, clock,
                              clock.monotonic) for mdt in mdts}
    return Reader(name, "host", readers, connection, names, settings, clock, secret)


class Leader:
    """A table that takes tallies, and a journal that has positions."""

    def __init__(self, connection: Connection, names: Names, positions: Mapping[str, int],
                 settings: ReaderSettings = SETTINGS) -> None:
        declare_readers(connection, names, 1, settings.lease_seconds)
        self.clock = SystemClock()
        inbox = NatsTallyInbox(connection, names, KEY, int(self.clock.now() * 1000))
        self.source = TallySource(inbox, positions, self.clock, 30.0)
        self.table = ActivityTable(path_of)
        self.journal = dict(positions)
        self.records = 0
        self.problem = ""

    def step(self, *, journal: bool = True) -> None:
        """One cycle. Without ``journal``, as if the process ended before it was written."""
        self.problem = self.table.take_in(self.source.batches(), self.clock.now())
        self.records += self.table.records_read
        if journal:
            self.journal = dict(self.source.positions)
            try:
                self.source.acknowledge()
            except BrokerError as error:
                self.problem = str(error)

    @property
    def counts(self) -> tuple[int, int]:
        """Creates and closes."""
        found = self.table.counts_of_job("small.1", 0.0)
        return sum(each.creates for each in found), sum(each.closes for each in found)
