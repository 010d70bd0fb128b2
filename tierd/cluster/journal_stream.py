"""The copy of the leader's journal on NATS, and the followers that keep it in a journal of their own.

The leader publishes changed rows in order. Before a move is sent, its intent is in the stream; before a result is
acknowledged, its outcome is. A new leader first publishes its own mark, then reads the stream up to it: what an earlier
leader publishes later has a lower generation, and every follower ignores it. All messages are signed with the key in
the folder of the claim.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tierd.act.claim import KEY, FilesystemClaim
from tierd.act.dispatch import Version
from tierd.act.journal.changes import ChangedRow, CopyPosition, JournalChanges, JournalCopy
from tierd.act.journal.connection import JournalFile
from tierd.cluster.connection import BrokerError, Connection, Stored
from tierd.cluster.messages import Names, signed, verified
from tierd.structs import Struct, packed, unpacked

log = logging.getLogger("tierd.cluster")
SIGNATURE_BYTES = 64
"""A message begins with its signature."""


class NoCopyError(OSError):
    """The stream cannot complete this journal: it starts too late, or the journal was not made from it."""


class JournalMessage(Struct, frozen=True):
    """Rows that one leader has changed; none in the mark of a new leader."""

    version: Version
    generation: int
    rows: tuple[ChangedRow, ...]


def encode(generation: int, rows: Sequence[ChangedRow]) -> bytes:
    return packed(JournalMessage(1, generation, tuple(rows)))


def decode(data: bytes) -> JournalMessage:
    """A message from MessagePack. Raises ValueError for a malformed one, and for one of a later version."""
    try:
        found = unpacked(data, JournalMessage)
    except ValueError as error:
        raise ValueError(f"not a message of the journal that this release knows: {error}") from error
    if not all(row.is_valid for row in found.rows):
        raise ValueError("not rows of the journal")
    return found


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
        self._pending: tuple[int, bytes, int] | None = None
        """Generation and content of a message of which it is unknown whether it was stored, and its last change."""

    def flush(self) -> None:
        """Publish all changes up to now. Raises BrokerError; then the copy may lack the last of them."""
        with self._lock:
            while self._pending is not None or self._prepare():
                assert self._pending is not None
                generation, data, until = self._pending
                # the same id each time: stored once
                sequence = self._connection.publish(self._names.journal_subject, data, f"{generation}-{until}")
                before = self._changes.position
                self._refuse_later_leader(generation, before.sequence, sequence)
                at = CopyPosition(sequence, before.stream, data[:SIGNATURE_BYTES], generation)
                if sequence > before.sequence:
                    self._changes.forget(until, at)
                else:  # NATS has lost the stream, or its end
                    stream, _ = self._connection.stream_state(self._names.journal)
                    self._changes.begin_again(replace(at, stream=stream))
                self._pending = None

    def _refuse_later_leader(self, generation: int, position: int, sequence: int) -> None:
        """Raises BrokerError if a later leader has published since the last message of this one.

        Everybody ignores what this one publishes then. Its position stays before the changes of the later leader, so
        that it reads them as a standby.
        """
        while position + 1 < sequence:
            found = self._connection.next_message(self._names.journal, self._names.journal_subject, position + 1)
            if found is None or found.sequence >= sequence:
                return
            position = found.sequence
            with suppress(ValueError):
                if decode(verified(found.data, self._secret)).generation > generation:
                    raise BrokerError(None, "another tierd leads now")

    def _prepare(self) -> bool:
        found = self._changes.next()
        if found is None:
            return False
        generation = self._claim.generation
        if not generation:
            raise BrokerError(None, "this tierd no longer leads")
        rows, until = found
        self._pending = generation, signed(encode(generation, rows), self._secret), until
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
        self._generation = self._copy.position.generation
        self._stream = ""
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
        """Whether the stream is empty, or has lost its end, so that this journal is the best copy there is.

        A stream that has replaced a lost one is read from its beginning. Raises NoCopyError if this journal can neither
        follow the stream nor replace it.
        """
        self._check()
        (self._stream, state), at = self._connection.stream_state(self._names.journal), self._copy.position
        shorter = state.last_seq < at.sequence
        replaced = at.stream not in {"", self._stream} or (shorter and state.first_seq <= 1) or self._overwritten(at)
        lost = state.last_seq == 0 or (shorter and not replaced)
        if not lost:
            self._lacks = ("this journal is not a copy of the leader's: move it away, or copy the leader's journal here"
                           if at == CopyPosition() and not self._copy.empty else
                           "NATS no longer has all changes since this copy was made: copy the leader's journal here"
                           if state.first_seq > (0 if replaced else at.sequence) + 1 else "")
        if self._lacks:
            raise NoCopyError(None, self._lacks)
        if replaced:
            log.warning("NATS has lost the changes of the journal: the copy begins again")
            self._copy.begin_again(CopyPosition(0, self._stream, generation=self._generation))
        return lost

    def _overwritten(self, at: CopyPosition) -> bool:
        """Whether another message has the sequence of the last one of the copy."""
        found = self._next(at.sequence) if at.signature else None
        return found is not None and found.sequence == at.sequence and not found.data.startswith(at.signature)

    def step(self, most: int = 1000) -> int:
        """Apply messages that have come. Returns how many. Raises BrokerError, NoCopyError and ValueError."""
        if self.must_publish_all():
            return 0
        if not self._secret() and self.behind_messages():
            raise NoCopyError(None, f"there is no {KEY} in the folder of the claim: it signs the copy of the journal")
        for number in range(most):
            found = self._next(self.position + 1)
            if found is None:
                return number
            rows = self._rows_of(found)
            self._copy.apply(rows, CopyPosition(found.sequence, self._stream, found.data[:SIGNATURE_BYTES],
                                                self._generation))
        return most

    def _next(self, sequence: int) -> Stored | None:
        return self._connection.next_message(self._names.journal, self._names.journal_subject, sequence)

    def _rows_of(self, found: Stored) -> Sequence[ChangedRow]:
        """The rows of a message; none of one that is not signed, or of an earlier leader. Raises ValueError."""
        try:
            body = verified(found.data, self._secret())
        except ValueError as error:
            log.warning("ignored message %d of the journal: %s", found.sequence, error)
            return ()
        message = decode(body)
        rows = message.rows if message.generation >= self._generation else ()
        self._generation = max(self._generation, message.generation)
        return rows

    def take_over(self, generation: int, renew: Callable[[], None]) -> None:
        """Read everything that earlier leaders have published.

        ``renew`` is called between messages, so that the claim does not expire meanwhile. Raises BrokerError.
        """
        if self.must_publish_all():
            _, state = self._connection.stream_state(self._names.journal)
            self._copy.begin_again(CopyPosition(state.last_seq, self._stream, generation=self._generation))
        mark = self._connection.publish(self._names.journal_subject, signed(encode(generation, ()), self._secret()),
                                        f"mark-{generation}")
        while self.position < mark:
            renew()
            self.step(200)
