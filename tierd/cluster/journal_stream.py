"""The copy of the leader's journal on NATS, and the followers that keep it in a journal of their own.

The leader publishes changed rows in order. Before a move is sent, its intent is in the stream; before a result is
acknowledged, its outcome is. A new leader first publishes its own mark, then reads the stream up to it: what an earlier
leader publishes later has a lower generation, and every follower ignores it. All messages are signed with the key in
the folder of the claim.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path

from tierd.act.claim import KEY, FilesystemClaim
from tierd.act.dispatch import Version
from tierd.act.journal.changes import ChangedRow, CopyPosition, JournalChanges, JournalCopy
from tierd.act.journal.connection import JournalFile
from tierd.cluster.connection import BrokerError, Connection, Stored
from tierd.cluster.messages import MAX_BYTES, Names, signed, verified
from tierd.structs import Struct, packed, unpacked

log = logging.getLogger("tierd.cluster")
SIGNATURE_BYTES = 64
"""A message begins with its signature."""


class NoCopyError(OSError):
    """The stream cannot complete this journal: it starts too late, or the journal was not made from it."""


class JournalMessage(Struct, frozen=True, kw_only=True):
    """A part of the rows that one leader has changed. There are no rows in the mark of a new leader."""

    version: Version
    generation: int
    until: int
    """Number of the last change among the rows. It differs where equal rows are published again."""
    number: int
    """Of the part, from 0 on."""
    last: bool
    part: bytes


def encode(generation: int, rows: bytes = packed(()), until: int = 0) -> list[bytes]:
    """Messages with these rows: several if they are larger than NATS accepts, as one row may be."""
    return [packed(JournalMessage(version=1, generation=generation, until=until, number=number,
                                  last=at + MAX_BYTES >= len(rows), part=rows[at:at + MAX_BYTES]))
            for number, at in enumerate(range(0, len(rows), MAX_BYTES))]


def _messages(connection: Connection, names: Names, secret: str, after: int,
              before: float = inf) -> Iterator[JournalMessage]:
    """The messages between two sequences, as far as they are signed."""
    while after + 1 < before:
        found = connection.next_message(names.journal, names.journal_subject, after + 1)
        if found is None or found.sequence >= before:
            return
        after = found.sequence
        with suppress(ValueError):
            yield unpacked(verified(found.data, secret), JournalMessage)


class JournalPublisher:
    """The leader's side. Any thread may call :meth:`flush`."""

    def __init__(self, connection: Connection, names: Names, changes: JournalChanges,
                 claim: FilesystemClaim, secret: str) -> None:
        """``secret`` signs the messages."""
        self._secret = secret
        self._connection = connection
        self._names = names
        self._changes = changes
        self._claim = claim
        self._lock = threading.Lock()
        self._pending: list[tuple[int, bytes, int]] = []
        """Messages, of which the first may be stored: generation, content, and the last change if it ends there."""

    def flush(self) -> None:
        """Publish all changes up to now. Raises BrokerError; then the copy may lack the last of them."""
        with self._lock:
            while self._pending or self._prepare():
                generation, data, until = self._pending[0]
                signature = data[:SIGNATURE_BYTES]
                # the same id each time: stored once
                sequence = self._connection.publish(self._names.journal_subject, data, signature.decode())
                before = self._changes.position
                if any(each.generation > generation for each in _messages(
                        self._connection, self._names, self._secret, before.sequence, sequence)):
                    # everybody ignores this leader. Its position stays before the changes of the later one, so that it
                    # reads them as a standby
                    raise BrokerError(None, "another tierd leads now")
                at = CopyPosition(sequence, before.stream, signature, generation)
                if sequence > before.sequence:
                    self._changes.forget(until, at)
                else:  # NATS has lost the stream, or its end
                    stream, _ = self._connection.stream_state(self._names.journal)
                    self._changes.begin_again(replace(at, stream=stream))
                del self._pending[0]

    def _prepare(self) -> bool:
        if (found := self._changes.next()) is None:
            return False
        if not (generation := self._claim.generation):
            raise BrokerError(None, "this tierd no longer leads")
        *parts, last = [signed(part, self._secret) for part in encode(generation, *found)]
        self._pending = [*((generation, part, 0) for part in parts), (generation, last, found[1])]
        return True


class JournalFollower:
    """A follower's side: applies what the leader publishes."""

    def __init__(self, connection: Connection, names: Names, path: Path, secret: Callable[[], str]) -> None:
        """``secret`` returns the key that signs the messages; "" if there is none. Raises OSError."""
        self._secret = secret
        self._connection = connection
        self._names = names
        self._copy = JournalCopy(path)
        self._check = JournalFile(path).check
        self.generation = self._copy.position.generation
        """Of the newest leader of whom a message was applied."""
        self._stream = ""
        self._parts: list[bytes] = []
        """Of rows whose other parts have not come. The position stays before them."""
        self._lacks = ""
        """Why the stream could not complete this journal. A lost stream does not mend it."""

    def close(self) -> None:
        self._copy.close()

    @property
    def position(self) -> int:
        return self._copy.position.sequence

    def behind_messages(self) -> int:
        """Messages of the stream that the copy lacks. Raises BrokerError."""
        return max(0, self._connection.stream_state(self._names.journal)[1].last_seq - self.position)

    def must_publish_all(self) -> bool:
        """Whether the stream is empty, or lacks what this journal has, so that this journal is the best copy there is.

        A stream that has replaced a lost one is read from its beginning. Raises NoCopyError if this journal can neither
        follow the stream nor replace it.
        """
        self._check()
        (self._stream, state), at = self._connection.stream_state(self._names.journal), self._copy.position
        shorter = state.last_seq < at.sequence
        replaced = at.stream not in {"", self._stream} or (shorter and state.first_seq <= 1) or self._overwritten(at)
        lost = state.last_seq == 0 or (shorter and not replaced)
        if not lost:
            self._lacks = self._why_not(state.first_seq, 0 if replaced else at.sequence)
        if self._lacks:
            raise NoCopyError(None, self._lacks)
        if replaced and not self._copy.alone:
            log.warning("NATS has lost the changes of the journal: the copy begins again")
            self._copy.begin_again(CopyPosition(0, self._stream, generation=self.generation))
        return lost or self._copy.alone

    def _why_not(self, first: int, since: int) -> str:
        """Why this journal can neither follow the stream, which begins at ``first``, nor replace it; "" if it can."""
        at = self._copy.position
        if at == CopyPosition() and not self._copy.empty:
            return "this journal is not a copy of the leader's: move it away, or copy the leader's journal here"
        if first > since + 1:
            return "NATS no longer has all changes since this copy was made: copy the leader's journal here"
        if self._copy.alone and any(
                each.generation > at.generation and each.part != packed(())
                for each in _messages(self._connection, self._names, self._secret(), since)):
            return ("this journal was written without [cluster], while another tierd led: undo what has to be undone "
                    "without [cluster], then copy the leader's journal here")
        return ""

    def _overwritten(self, at: CopyPosition) -> bool:
        """Whether another message has the sequence of the last one of the copy."""
        found = self._next(at.sequence) if at.signature else None
        return found is not None and found.sequence == at.sequence and not found.data.startswith(at.signature)

    def step(self, most: int = 1000) -> int:
        """Apply messages that have come. Returns how many. Raises BrokerError, NoCopyError and ValueError."""
        if self.must_publish_all():
            return 0
        sequence = self.position
        for number in range(most):
            found = self._next(sequence + 1)
            if found is None:
                return number
            sequence, rows = found.sequence, self._rows_of(found)
            if not self._parts:
                self._copy.apply(rows, CopyPosition(sequence, self._stream, found.data[:SIGNATURE_BYTES],
                                                    self.generation))
        return most

    def _next(self, sequence: int) -> Stored | None:
        return self._connection.next_message(self._names.journal, self._names.journal_subject, sequence)

    def _rows_of(self, found: Stored) -> Sequence[ChangedRow]:
        """The rows of a message; none of one that is not signed, or of an earlier leader. Raises ValueError."""
        if not (secret := self._secret()):
            raise NoCopyError(None, f"there is no {KEY} in the folder of the claim: it signs the copy of the journal")
        try:
            body = verified(found.data, secret)
        except ValueError as error:
            log.warning("ignored message %d of the journal: %s", found.sequence, error)
            return ()
        try:
            message = unpacked(body, JournalMessage)
            if message.generation < self.generation:
                return ()
            self.generation = message.generation
            self._parts[message.number:] = [message.part]  # the first one, and one that came twice, replace others
            if not message.last or len(self._parts) <= message.number:  # some are lost: all rows will come again
                return ()
            data, self._parts = b"".join(self._parts), []
            return unpacked(data, tuple[ChangedRow, ...])
        except ValueError as error:
            raise ValueError(f"not a message of the journal that this release knows: {error}") from error

    def take_over(self, generation: int, renew: Callable[[], None], *, new_key: bool = False) -> None:
        """Read everything that earlier leaders have published. With a new key, nobody else can.

        ``renew`` is called between messages, so that the claim does not expire meanwhile. Raises BrokerError.
        """
        if self.must_publish_all() or new_key:
            _, state = self._connection.stream_state(self._names.journal)
            self._copy.begin_again(CopyPosition(state.last_seq, self._stream, generation=self.generation))
        data = signed(encode(generation)[0], self._secret())
        mark = self._connection.publish(self._names.journal_subject, data, f"mark-{generation}")
        while self.position < mark:
            renew()
            self.step(200)
