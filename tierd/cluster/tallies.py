"""Tallies on NATS: their form on the wire, and the inbox of the leader.

A tally is compressed MessagePack with a version. Texts are bytes as Latin-1, because names may hold any byte. A tally
that is malformed, too large, or of a newer version is refused with ValueError.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, cast

from annotated_types import Len, MaxLen

from lustre.fid import Fid
from tierd.act.dispatch import Natural, Version
from tierd.cluster import messages
from tierd.cluster.connection import Connection, Delivery
from tierd.cluster.messages import Names, verified
from tierd.sense.changelogs.tallies import Tally, TallyContent
from tierd.sense.changelogs.tally_source import Position, ReaderState, ReceivedTally
from tierd.structs import Struct, packed, unpacked

MAX_BYTES = 900 * 1024
"""Size of a tally. NATS accepts a megabyte by default."""
MAX_PLAIN_BYTES = 32 << 20
MAX_TIME = 1e11
MAX_FETCHED = 64
"""Tallies that the leader takes from NATS at a time."""
MAX_IN_A_CYCLE = 512
RENAMES = "renames"
"""Key of renamed directories in the bucket of positions."""
MAX_RENAMES = 1000
FID_BYTES = 16


class TallyMessage(Struct, frozen=True):
    """A tally, with texts for the wire."""

    version: Version
    tally: Tally


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
    return zlib.compress(packed(TallyMessage(1, _with_texts(tally, text))), 1)


def _with_texts(tally: Tally, change: Callable[[str], str]) -> Tally:
    """A tally with every text that may have any byte in another form."""
    changed, content = cache(change), tally.content
    return replace(tally, gap=change(tally.gap), problem=change(tally.problem), content=replace(
        content,
        directories=tuple(row._replace(job=changed(row.job), directory=changed(row.directory))
                          for row in content.directories),
        files=tuple(file._replace(directory=changed(file.directory)) for file in content.files),
        moves=tuple(replace(move, job=changed(move.job), directory=changed(move.directory))
                    for move in content.moves)))


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
        return _checked(_with_texts(unpacked(plain, TallyMessage).tally, words_of))
    except (zlib.error, ValueError) as error:
        raise ValueError(f"not a tally: {error}") from error


def _checked(tally: Tally) -> Tally:
    """The tally. Raises ValueError for numbers that no reader sends: others would spoil the leader's table."""
    content, rows, files = tally.content, len(tally.content.directories), len(tally.content.files)
    numbers = [tally.after, tally.last, tally.records, tally.token, tally.rereads, content.closes, content.waiting]
    times = [tally.oldest_time, tally.newest_time]
    for row in content.directories:
        numbers += row.creates, row.opens, row.closes, row.unlinks, row.outgrown, row.write_opens, *row.files
        times.append(row.last_time)
        if row.files and max(row.files) >= files:
            raise ValueError("a file that it does not have")
    fids = [*content.removed, *(content.renamed or ())]
    for file in content.files:
        numbers += file.counts, file.open_count, file.reopened
        times += file.created_at, file.closed_at
        fids.append(file.fid)
        if file.counts >= rows:
            raise ValueError("counts that it does not have")
    for move in content.moves:
        times.append(move.time)
        fids.append(move.fid)
    if min(numbers) < 0 or not all(0 <= time <= MAX_TIME for time in times):
        raise ValueError("a number below 0, or a time that is none")
    if any(len(each) != FID_BYTES for each in fids):
        raise ValueError("a FID of another length")
    return tally


def fid(number: str) -> Fid:
    """A FID from its bytes as digits. Raises ValueError."""
    return bytes.__new__(Fid, bytes.fromhex(number))


@dataclass(frozen=True, slots=True)
class PositionMessage:
    """The leader's position in the changelog of an MDT."""

    index: Natural
    rereads: Natural
    era: Natural
    version: Version = 1


@dataclass(frozen=True, slots=True)
class RenamesMessage:
    """Directories that were renamed, for the caches of paths of all readers."""

    count: Natural
    """Renames since the start of the leader, plus ``era``."""
    era: Natural
    """Start of the leader, epoch seconds. Another era makes every cache void."""
    fids: Annotated[list[Annotated[str, Len(2 * FID_BYTES, 2 * FID_BYTES)]], MaxLen(MAX_RENAMES)]
    """The last of them."""
    version: Version = 1


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
            deliveries = self._connection.fetch_all(self._names.tallies, messages.TALLY_CONSUMER, MAX_FETCHED)
            found += [ReceivedTally(_decoded(each.data, self._secret), each) for each in deliveries]
            if len(deliveries) < MAX_FETCHED:
                break
        return found

    def readers(self) -> Sequence[ReaderState]:
        """The readers that have described themselves lately. Raises BrokerError."""
        return messages.descriptions(self._connection.bucket(self._names.readers), ReaderState)

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


