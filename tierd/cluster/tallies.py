"""Tallies on NATS: their form on the wire, and the inbox of the leader.

A tally is compressed JSON with a version. Directories are rows without names of fields, and files are columns, because
there may be thousands: pydantic checks each number and text while it reads them. A tally that is malformed, too large,
or of a newer version is refused with ValueError.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, TypeVar, cast

from annotated_types import Ge, Le, Len, MaxLen
from pydantic import ValidationError

from lustre.fid import Fid
from tierd.cluster import messages, streams
from tierd.cluster.connection import Connection, Delivery
from tierd.cluster.messages import verified
from tierd.cluster.streams import Names
from tierd.sense.changelogs.tallies import DirectoryTally, FileTally, OtherMove, Tally, TallyContent
from tierd.sense.changelogs.tally_source import Position, ReaderState, ReceivedTally
from tierd.validators import validator_of

VERSION = 1
MAX_BYTES = 900 * 1024
"""Size of a tally. NATS accepts a megabyte by default."""
MAX_PLAIN_BYTES = 32 << 20
MAX_ROWS = 100_000
MAX_FETCHED = 64
"""Tallies that the leader takes from NATS at a time."""
MAX_IN_A_CYCLE = 512
RENAMES = "renames"
"""Key of renamed directories in the bucket of positions."""
MAX_RENAMES = 1000

Natural = Annotated[int, Ge(0)]
Time = Annotated[float, Ge(0), Le(1e11)]
Text = Annotated[str, MaxLen(16384)]
"""Names and paths are bytes as Latin-1."""
FidText = Annotated[str, Len(32, 32)]
DirectoryRow = tuple[Text, Natural, Natural, Natural, Natural, Natural, Natural, Time, list[Natural]]
"""Job, position of the directory's name, creates, opens, closes, unlinks, outgrown, last time, files."""
FID_DIGITS = 32
FidsText = Annotated[str, MaxLen(FID_DIGITS * MAX_ROWS)]
"""The digits of FIDs, one after the other."""
T = TypeVar("T")
Column = Annotated[list[T], MaxLen(MAX_ROWS)]
MoveRow = tuple[Natural, Text, Time, FidText, int | None, Text]
"""Position of the directory's name, job, time, FID, user, NID."""


@dataclass(frozen=True, slots=True)
class WireFiles:
    """Files as columns."""

    fids: FidsText
    counts: Column[Natural]
    """Position of the job and directory among the rows of directories."""
    directories: Column[Natural]
    """Position of the directory's name."""
    names: Column[Text]
    created: Column[bool]
    open_count: Column[Natural]
    reopened: Column[Natural]
    created_at: Column[Time]
    closed_at: Column[Time]


@dataclass(frozen=True, slots=True)
class WireTally:
    """A tally as JSON."""

    version: Annotated[int, Ge(1), Le(VERSION)]
    mdt: Text
    after: Natural
    last: Natural
    records: Natural
    reader: Text
    token: Natural
    rereads: Natural
    begun: bool
    at_end: bool
    oldest_time: Time
    newest_time: Time
    gap: Text
    problem: Text
    names: Annotated[list[Text], MaxLen(MAX_ROWS)]
    directories: Annotated[list[DirectoryRow], MaxLen(MAX_ROWS)]
    files: WireFiles
    removed: FidsText
    moves: Annotated[list[MoveRow], MaxLen(MAX_ROWS)]
    closes: Natural
    renamed: Annotated[list[FidText], MaxLen(MAX_ROWS)] | None
    waiting: Natural
    write_opens: Column[Natural] = field(default_factory=list)
    """Of each row of directories; empty if all are 0."""
    clients: Column[list[Text]] = field(default_factory=list)
    """NIDs of clients of each row of directories; empty without NIDs."""


def encode(tally: Tally) -> bytes:
    """A tally for the wire. Leaves files out of one that would be too large; raises ValueError if that is not enough.

    The leader then knows fewer files. It learns of one when it changes again.
    """
    data = _encoded(tally)
    while len(data) > MAX_BYTES and tally.content.files:
        tally = replace(tally, content=_with_fewer_files(tally.content))
        data = _encoded(tally)
    if len(data) > MAX_BYTES:
        raise ValueError(f"a tally of {len(data)} bytes")
    return data


def _with_fewer_files(content: TallyContent) -> TallyContent:
    count = len(content.files) // 2
    rows = tuple(row._replace(files=tuple(place for place in row.files if place < count))
                 for row in content.directories)
    return replace(content, directories=rows, files=content.files[:count])


def _encoded(tally: Tally) -> bytes:
    content = tally.content
    places: dict[str, int] = {}

    def place(name: str) -> int:
        return places.setdefault(name, len(places))

    rows = [(text(row.job), place(row.directory), row.creates, row.opens, row.closes, row.unlinks, row.outgrown,
             row.last_time, row.files) for row in content.directories]
    files = content.files
    columns = {"fids": digits(file.fid for file in files), "counts": [file.counts for file in files],
               "directories": [place(file.directory) for file in files],
               "names": [file.name.decode("latin-1") for file in files]}
    columns |= {name: [getattr(file, name) for file in files] for name in _PLAIN_COLUMNS}
    moves = [(place(move.directory), text(move.job), move.time, move.fid.hex(), move.uid, move.nid)
             for move in content.moves]
    header = {name: getattr(tally, name) for name in _HEADER}
    body = {"version": VERSION, **header, "gap": text(tally.gap), "problem": text(tally.problem),
            "names": [text(name) for name in places],
            "directories": rows, "files": columns, "removed": digits(content.removed), "moves": moves,
            "closes": content.closes, "waiting": content.waiting,
            "renamed": None if content.renamed is None else [fid.hex() for fid in content.renamed]}
    if any(row.write_opens for row in content.directories):
        body["write_opens"] = [row.write_opens for row in content.directories]
    if any(row.clients for row in content.directories):
        body["clients"] = [row.clients for row in content.directories]
    return zlib.compress(json.dumps(body, separators=(",", ":")).encode(), 1)


_HEADER = ("mdt", "after", "last", "records", "reader", "token", "rereads", "begun", "at_end", "oldest_time",
           "newest_time")
_PLAIN_COLUMNS = ("created", "open_count", "reopened", "created_at", "closed_at")


def digits(found: Iterable[Fid]) -> str:
    """FIDs as digits, one after the other."""
    return b"".join(found).hex()


def fids_of(text_of_digits: str) -> list[Fid]:
    """FIDs from their digits. Raises ValueError."""
    data = bytes.fromhex(text_of_digits)
    if len(data) * 2 != len(text_of_digits) or len(text_of_digits) % FID_DIGITS:
        raise ValueError("not whole FIDs")
    new = bytes.__new__
    return [new(Fid, data[at:at + FID_DIGITS // 2]) for at in range(0, len(data), FID_DIGITS // 2)]


def text(words: str) -> str:
    """The bytes of a text as Latin-1. A name may hold any byte.

    >>> text("ä"), words_of(text("ä"))
    ('Ã¤', 'ä')
    """
    return words.encode("utf-8", "surrogateescape").decode("latin-1")[:16384]


def words_of(wire: str) -> str:
    """The text. Raises ValueError if it is not the bytes of one."""
    return wire.encode("latin-1").decode("utf-8", "surrogateescape")


def decode(data: bytes) -> Tally:
    """A tally from the wire. Raises ValueError."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"a tally of {len(data)} bytes")
    try:
        unpacking = zlib.decompressobj()
        plain = unpacking.decompress(data, MAX_PLAIN_BYTES)
        if not unpacking.eof:
            raise ValueError(f"a tally of more than {MAX_PLAIN_BYTES} bytes, or cut short")
        wire = validator_of(WireTally).validate_json(plain)
        return _tally(wire)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"not a tally: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except (zlib.error, IndexError) as error:
        raise ValueError(f"not a tally: {error}") from error


def _tally(wire: WireTally) -> Tally:
    names = [words_of(name) for name in wire.names]
    files = _files(wire.files, names, len(wire.directories))
    count = len(files)
    for row in wire.directories:
        if row[8] and max(row[8]) >= count:
            raise ValueError("a file that the tally does not have")
    if not {len(wire.write_opens), len(wire.clients)} <= {0, len(wire.directories)}:
        raise ValueError("not as many opens for writing, or clients, as directories")
    write_opens = wire.write_opens or [0] * len(wire.directories)
    clients = wire.clients or [[]] * len(wire.directories)
    directories = tuple(DirectoryTally(words_of(job), names[at], creates=creates, opens=opens, closes=closes,
                                       unlinks=unlinks, outgrown=outgrown, last_time=last,
                                       files=tuple(files), write_opens=writes, clients=tuple(nids))
                        for (job, at, creates, opens, closes, unlinks, outgrown, last, files), writes, nids
                        in zip(wire.directories, write_opens, clients, strict=True))
    moves = tuple(OtherMove(names[at], words_of(job), time, fid(number), uid, nid=nid)
                  for at, job, time, number, uid, nid in wire.moves)
    renamed = None if wire.renamed is None else tuple(map(fid, wire.renamed))
    content = TallyContent(directories, files, tuple(fids_of(wire.removed)), moves, wire.closes, renamed=renamed,
                           waiting=wire.waiting)
    header = {name: getattr(wire, name) for name in _HEADER}
    return Tally(**header, gap=words_of(wire.gap), problem=words_of(wire.problem), content=content)


def _files(wire: WireFiles, names: Sequence[str], rows: int) -> tuple[FileTally, ...]:
    """The files of a tally. Works on whole columns, since the leader may get a hundred thousand files at a time."""
    if wire.counts and max(wire.counts) >= rows:
        raise ValueError("counts that the tally does not have")
    columns = (fids_of(wire.fids), wire.counts, [names[at] for at in wire.directories], _encoded_names(wire.names),
               *(getattr(wire, name) for name in _PLAIN_COLUMNS))
    make: Callable[[tuple[Any, ...]], FileTally] = partial(tuple.__new__, FileTally)
    return tuple(map(make, zip(*columns, strict=True)))


def _encoded_names(names: list[str]) -> list[bytes]:
    found = "/".join(names).encode("latin-1").split(b"/")  # no name has a slash
    return found if len(found) == len(names) else [name.encode("latin-1") for name in names]


def fid(number: str) -> Fid:
    """A FID from its bytes as digits. Raises ValueError."""
    return bytes.__new__(Fid, bytes.fromhex(number))


@dataclass(frozen=True, slots=True)
class PositionMessage:
    """The leader's position in the changelog of an MDT."""

    index: Natural
    rereads: Natural
    era: Natural
    version: Annotated[int, Ge(1), Le(VERSION)] = VERSION


@dataclass(frozen=True, slots=True)
class RenamesMessage:
    """Directories that were renamed, for the caches of paths of all readers."""

    count: Natural
    """Renames since the start of the leader, plus ``era``."""
    era: Natural
    """Start of the leader, epoch seconds. Another era makes every cache void."""
    fids: Annotated[list[FidText], MaxLen(MAX_RENAMES)]
    """The last of them."""
    version: Annotated[int, Ge(1), Le(VERSION)] = VERSION


@dataclass(frozen=True, slots=True)
class ReaderMessage(ReaderState):
    """A reader, as it describes itself every few seconds."""

    version: Annotated[int, Ge(1), Le(VERSION)] = VERSION


class NatsTallyInbox:
    """Tallies as the leader receives them from NATS. Implements ``TallyInbox``."""

    def __init__(self, connection: Connection, names: Names, secret: str, era: int = 0) -> None:
        """``secret`` is the key that signs tallies."""
        self._secret = secret
        self._connection = connection
        self._names = names
        self._era = era
        self._renames = 0
        self._last_renames: list[str] = []

    def receive(self) -> Sequence[ReceivedTally]:
        """The tallies that arrived. Raises BrokerError."""
        found: list[ReceivedTally] = []
        while len(found) < MAX_IN_A_CYCLE:
            deliveries = self._connection.fetch_all(self._names.tallies, streams.TALLY_CONSUMER, MAX_FETCHED)
            found += [ReceivedTally(_decoded(each.data, self._secret), each) for each in deliveries]
            if len(deliveries) < MAX_FETCHED:
                break
        return found

    def readers(self) -> Sequence[ReaderState]:
        """The readers that have described themselves lately. Raises BrokerError."""
        found = []
        for data in self._connection.bucket(self._names.readers).all().values():
            with suppress(ValueError):
                found.append(messages.decode(ReaderMessage, data))
        return sorted(found, key=lambda state: state.name)

    def confirm(self, done: Sequence[ReceivedTally]) -> None:
        """Acknowledge tallies, which removes them from the stream."""
        self._connection.acknowledge_all([cast("Delivery", each.receipt) for each in done])

    def announce(self, positions: Mapping[str, Position]) -> None:
        """Publish positions. An unknown outcome is repeated by the caller: the value is the same."""
        bucket = self._connection.bucket(self._names.positions)
        for mdt, position in positions.items():
            bucket.put(mdt, messages.encode(PositionMessage(position.index, position.rereads, self._era)))

    def announce_renames(self, fids: Sequence[Fid] | None) -> None:
        """Publish renamed directories. Raises BrokerError; the caller repeats it, which does no harm."""
        if fids is None:
            count, last = self._renames + MAX_RENAMES + 1, []
        else:
            count, last = self._renames + len(fids), [*self._last_renames, *(each.hex() for each in fids)]
        message = RenamesMessage(count, self._era, last[-MAX_RENAMES:])
        self._connection.bucket(self._names.positions).put(RENAMES, messages.encode(message))
        self._renames, self._last_renames = count, last[-MAX_RENAMES:]


def _decoded(data: bytes, secret: str) -> Tally | None:
    try:
        return decode(verified(data, secret))
    except ValueError:
        return None


