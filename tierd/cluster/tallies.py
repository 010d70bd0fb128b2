"""Tallies on NATS: their form on the wire, and the inbox of the leader.

A tally is compressed MessagePack: msgspec checks each number and text while it reads them. A tally that is malformed,
too large, or of a newer version is refused with ValueError.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from tierd.cluster import messages
from tierd.cluster.connection import Connection, Delivery
from tierd.cluster.messages import Names, verified
from tierd.sense.changelogs.tallies import Tally, TallyContent
from tierd.sense.changelogs.tally_source import Position, ReaderState, ReceivedTally
from tierd.structs import packed, unpacked

MAX_BYTES = 900 * 1024
"""Size of a tally. NATS accepts a megabyte by default."""
MAX_PLAIN_BYTES = 32 << 20
MAX_FETCHED = 64
"""Tallies that the leader takes from NATS at a time."""
MAX_IN_A_CYCLE = 512


def encode(tally: Tally) -> bytes:
    """A tally for the wire. Leaves files out of one that would be too large; raises ValueError if that is not enough.

    The leader then knows fewer files. It learns of one when it changes again.
    """
    tally = tally.replaced(gap=_escaped(tally.gap), problem=_escaped(tally.problem))
    data = _encoded(tally)
    while len(data) > MAX_BYTES and tally.content.files:
        tally = tally.replaced(content=_with_fewer_files(tally.content))
        data = _encoded(tally)
    if len(data) > MAX_BYTES:
        raise ValueError(f"a tally of {len(data)} bytes")
    return data


def _encoded(tally: Tally) -> bytes:
    return zlib.compress(packed(tally), 1)


def _escaped(sentence: str) -> str:
    """A sentence in which a name may hold any byte, as text that UTF-8 has."""
    return sentence.encode("utf-8", "backslashreplace").decode()


def _with_fewer_files(content: TallyContent) -> TallyContent:
    count = len(content.files) // 2
    rows = tuple(row.replaced(files=tuple(place for place in row.files if place < count))
                 for row in content.directories)
    return content.replaced(directories=rows, files=content.files[:count])


def decode(data: bytes) -> Tally:
    """A tally from the wire. Raises ValueError."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"a tally of {len(data)} bytes")
    try:
        unpacking = zlib.decompressobj()
        plain = unpacking.decompress(data, MAX_PLAIN_BYTES)
        if not unpacking.eof:
            raise ValueError(f"a tally of more than {MAX_PLAIN_BYTES} bytes, or cut short")
        tally = unpacked(plain, Tally)
    except (zlib.error, ValueError) as error:
        raise ValueError(f"not a tally: {error}") from error
    tally.content.check()
    return tally


class NatsTallyInbox:
    """Tallies as the leader receives them from NATS. Implements ``TallyInbox``."""

    def __init__(self, connection: Connection, names: Names, secret: str, era: int = 0) -> None:
        """``secret`` is the key that signs tallies."""
        self._secret = secret
        self._connection = connection
        self._names = names
        self._era = era

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
        """The readers that have reported lately. Raises BrokerError."""
        return messages.descriptions(self._connection.bucket(self._names.readers), ReaderState)

    def confirm(self, done: Sequence[ReceivedTally]) -> None:
        """Acknowledge tallies, which removes them from the stream."""
        self._connection.acknowledge_all([cast("Delivery", each.receipt) for each in done])

    def announce(self, positions: Mapping[str, Position]) -> None:
        """Publish positions. An unknown outcome is repeated by the caller: the value is the same."""
        bucket = self._connection.bucket(self._names.positions)
        for mdt, position in positions.items():
            bucket.put(mdt, messages.encode(replace(position, era=self._era)))


def _decoded(data: bytes, secret: str) -> Tally | None:
    try:
        return decode(verified(data, secret))
    except ValueError:
        return None
