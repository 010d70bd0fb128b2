"""The leader's side of moves on other nodes: what is sent, what is under way, and what became of it.

The intents of all moves of a message are in the journal, and in its copy on NATS, before the message is sent. Results
are acknowledged after the journal has them. A move without a result at its deadline is decided by the file system: the
leader checks the file by its FID.

Limits: the consumer of a source target lets all movers together work on ``movers.per_target_at_once`` messages at the
same time. The leader counts what is under way to each pool, and on further targets of striped files, and sends no
more. It queues at most two seconds of work, so that a pause takes effect at once.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

from lustre.errors import Stale
from lustre.fid import Fid
from lustre.filesystem import Filesystem
from lustre.layout.model import Layout, pools_of, same_shape
from tierd.act.claim import FilesystemClaim
from tierd.act.dispatch import Dispatch, DispatchCounts, DispatchState, RemoteMover, RemoteStandby
from tierd.act.journal.writer import Journal
from tierd.act.limits import MoveCost
from tierd.act.movers.checks import objects_digest
from tierd.act.movers.moves import Halt, Move, MoveOutcome, MoveResult, halted_outcome
from tierd.acts import Outcome
from tierd.clock import Clock
from tierd.cluster import messages
from tierd.cluster.connection import BrokerError, BrokerUnknown, Connection, Delivery, Outgoing, WrongRevision
from tierd.cluster.messages import FileResult, FileToMove, MoveMessage, Names, Permit, ResultMessage, WorkHint
from tierd.config.settings import Settings
from tierd.refusal import Reason, Refusal
from tierd.text import printable

log = logging.getLogger("tierd.cluster")
QUEUED_SECONDS = 2.0
"""Work that may wait for a free mover."""
REFILL_SECONDS = 1.0
"""Waiting work below which more is sent. A file sent for each one that ended would be a message of its own."""
MESSAGE_SECONDS = 1.0
"""Work of one message, as far as known."""
GRACE_SECONDS = 5.0
"""Time beyond a deadline for clocks that differ, and for an exchange that was begun in time."""
MOVERS_SECONDS = 2.0
"""Time between two reads of the list of movers."""
NIDS_SECONDS = 600.0
"""Time for which the NIDs of a mover that was lost are remembered."""
HINT_SECONDS = 1.0
RATE_SECONDS = 10.0
TRIES = 2
"""Deadlines that may pass for one file before its move has failed."""
_RESULTS_AT_ONCE = 64
_ENDED = {MoveResult.DONE, MoveResult.ALREADY, MoveResult.DOUBTFUL}
"""Results after which the leader need not check the file."""
_GIVEN_UP = {Outcome.INTERRUPTED, Outcome.GAVE_WAY, Outcome.FAILED, Outcome.REFUSED}
"""Outcomes of acts whose file another mover may have moved after all: the mover that reported had hung, or was late."""


@dataclass(slots=True)
class SentMessage:
    """A message, from its making to the result of its last file."""

    id: str
    source: str
    targets: frozenset[str]
    """Further targets that hold its files."""
    pools: frozenset[str]
    moves: dict[int, Move]
    """Files without a result, by the number of their act."""
    layout: str
    """Wanted layout of the files, as on the wire."""
    sent_at: float = 0.0
    deadline: float = 0.0
    sequence: int = 0
    """Sequence in the stream; 0 if it is unknown whether the message was stored."""
    removed: bool = False
    """Whether NATS gives it to no further mover."""


class Slots:
    """Slots of pools, and of the further targets of striped files, that messages under way use.

    Messages for one target wait in its consumer, which lets movers work on few at a time. A message with further
    targets is sent only if those have a free slot even if all messages that were sent are being worked on.
    """

    def __init__(self, at_once: int, pools: Mapping[str, tuple[str, ...]], sent: Iterable[SentMessage]) -> None:
        """``at_once`` is the limit of one target; a pool has that of all its members."""
        self._at_once = at_once
        self._pools = pools
        self._to_pool: Counter[str] = Counter()
        self._on_target: Counter[str] = Counter()
        self._further: set[str] = set()
        for message in sent:
            self.take(message)

    def take(self, message: SentMessage) -> None:
        self._to_pool.update(message.pools)
        self._on_target.update({message.source, *message.targets})
        self._further |= message.targets

    def has(self, message: SentMessage) -> bool:
        at_once = self._at_once
        if any(self._to_pool[pool] >= at_once * max(1, len(self._pools.get(pool, ()))) for pool in message.pools):
            return False
        return all(self._on_target[target] < at_once for target in {message.source, *message.targets}
                   if target in message.targets or target in self._further)


@dataclass(eq=False)
class NatsDispatch(Dispatch):
    """Hands moves over to movers on other nodes."""

    remote = True

    connection: Connection
    names: Names
    claim: FilesystemClaim
    filesystem: Filesystem
    settings: Settings
    clock: Clock
    journal: Journal

    def __post_init__(self) -> None:
        self._moved_now: set[Fid] = set()
        """Files with an outcome "done" that may not be in the journal yet."""
        self._moved_before: set[Fid] = set()
        """Files that were moved for an earlier act, while another one wants the same: that one counts as the move."""
        self._ready: deque[SentMessage] = deque()
        self._sent: dict[str, SentMessage] = {}
        self._from_source: Counter[str] = Counter()
        """Files without a result, by source target."""
        self._ended: deque[MoveOutcome] = deque()
        self._unacknowledged: list[Delivery] = []
        self._permit: Permit | None = None
        self._refused = ""
        """Why NATS, though connected, did not answer or refused a request when it was asked last."""
        self._sources: set[str] = set()
        self._expired: Counter[str] = Counter()
        self._ended_at: list[tuple[float, int]] = []
        """When files ended lately, and how many."""
        self._file_seconds = 0.25
        self._hinted_at = self._movers_at = float("-inf")
        self._number = 0
        self._lock = threading.RLock()
        """Of the permit and the movers, for which the threads that plan and that move ask."""
        self.movers: tuple[RemoteMover, ...] = ()
        """Movers that have reported lately."""
        self._nids: dict[str, float] = {}
        """NIDs of movers, and when they were seen last."""
        self.standbys: tuple[RemoteStandby, ...] = ()
        """Standbys that have reported lately."""
        self.counts = DispatchCounts()

    # -- state ------------------------------------------------------------------------------------------------------

    def trouble(self) -> Refusal | None:
        """Writes the permit of this leader unless it is written already."""
        if not self.claim.generation:
            return Refusal(Reason.CLAIM_LOST, "this tierd does not hold the claim of this file system")
        if not self.connection.connected:
            return Refusal(Reason.NO_BROKER, f"NATS: {self.connection.trouble}")
        try:
            with self._lock:
                if self._permit is None:
                    self._write_permit(self.claim.generation, "")
                self._look_for_movers()
                self._refused = ""
        except BrokerError as error:
            self._refused = str(error.strerror or error)
            return Refusal(Reason.NO_BROKER, self._refused)
        if not self._threads():
            return Refusal(Reason.NO_MOVERS, "no mover is running: start tierd-mover@ on a node, or see tierctl movers")
        return None

    def room(self) -> int:
        """0 while much work waits, so that messages are full."""
        now = self.clock.now()  # it may have been set back since
        self._ended_at = [each for each in self._ended_at if 0 <= now - each[0] < RATE_SECONDS]
        rate = sum(count for _, count in self._ended_at) / RATE_SECONDS
        at_work = self._threads() * self._files_per_message()
        if self.under_way > at_work + REFILL_SECONDS * rate:
            return 0
        return max(0, int(at_work + QUEUED_SECONDS * rate) - self.under_way)

    def full_for(self, cost: MoveCost, chosen: Mapping[str, int]) -> Refusal | None:
        """Refuses a pool or target for which a message waits already, and a source with enough files.

        Files for its movers and one message more are enough: else the files of one target would take all the room.
        """
        if cost.targets:
            source = min(cost.targets)  # as in _messages_of
            files = self._from_source[source] + chosen.get(source, 0)
            if files >= (self.settings.movers.per_target_at_once + 1) * self._files_per_message():
                return Refusal(Reason.LIMIT, "enough moves are under way").about(f"target {source}")
        for message in self._ready:
            pools = message.pools & cost.pools.keys()
            if pools or message.source in cost.targets:
                return Refusal(Reason.LIMIT, "as many moves as movers.per_target_at_once are under way"
                               ).about(f"pool {min(pools)}" if pools else f"target {message.source}")
        return None

    @property
    def under_way(self) -> int:
        return sum(self.by_source.values())

    @property
    def by_source(self) -> Counter[str]:
        return Counter({source: files for source, files in tuple(self._from_source.items()) if files})

    def state(self) -> DispatchState:
        trouble, now = self.connection.trouble or self._refused, self.clock.now()
        oldest = min([message.sent_at for message in tuple(self._sent.values())], default=now)
        return DispatchState(
            not trouble, trouble, movers=self.movers, standbys=self.standbys,
            under_way=self.by_source, oldest_seconds=max(0.0, now - oldest),
            journal_lag=len(self.journal.changes or ()), counts=self.counts)

    def nids(self) -> Collection[str] | None:
        """Records of a mover that was lost may still come for ten minutes."""
        if not all(mover.nids for mover in self.movers):
            return None
        since = self.clock.now() - NIDS_SECONDS
        return [nid for nid, seen_at in tuple(self._nids.items()) if seen_at > since]

    def _threads(self) -> int:
        return sum(mover.threads for mover in self.movers if not mover.stopped)

    def _files_per_message(self) -> int:
        return max(1, min(messages.FILES_PER_MESSAGE, int(MESSAGE_SECONDS / max(self._file_seconds, 1e-6))))

    def _permitted(self) -> Permit:
        """The permit under which messages are sent now. Writes it if this leader, or moves again, begin."""
        with self._lock:
            generation = self.claim.generation
            if self._permit is not None and self._permit.generation == generation and not self._permit.held:
                return self._permit
            return self._write_permit(generation, "")

    def _write_permit(self, generation: int, held: str) -> Permit:
        """Write a permit of the next epoch. Raises BrokerError; then it is unknown which permit holds."""
        bucket = self.connection.bucket(self.names.control)
        # at the start, and after an unknown answer: NATS may have lost what was declared
        if self._permit is None:
            messages.declare(self.connection, self.names, self.settings.cluster.replicas)
            self._sources.clear()
        self._permit = None  # from here on unknown: an update without an answer may count
        present = bucket.get(messages.PERMIT)
        epoch = 0
        if present is not None:
            try:
                earlier = messages.decode(Permit, present.data)
            except ValueError as error:
                raise BrokerError(None, f"NATS: the permit of the leader is malformed: {error}") from error
            if earlier.generation > generation:
                raise BrokerError(None, f"NATS: a leader of generation {earlier.generation} is at work")
            epoch = earlier.epoch
        permit = Permit(generation, epoch + 1, printable(held)[:2000])  # movers refuse one with a longer messages.Text
        try:
            bucket.update(messages.PERMIT, messages.encode(permit), 0 if present is None else present.sequence)
        except WrongRevision as error:
            raise BrokerError(None, "NATS: another leader has changed the permit") from error
        self._permit = permit
        return permit

    def _look_for_movers(self) -> None:
        now = self.clock.now()
        # more often until a mover reports
        if abs(now - self._movers_at) < (MOVERS_SECONDS if self._threads() else MOVERS_SECONDS / 10):
            return
        self.movers = messages.descriptions(self.connection.bucket(self.names.movers), RemoteMover)
        self.standbys = messages.descriptions(self.connection.bucket(self.names.standbys), RemoteStandby)
        self._nids |= {nid: now for mover in self.movers for nid in mover.nids}
        self._movers_at = now

    # -- sending ----------------------------------------------------------------------------------------------------

    def begin(self, moves: Sequence[Move], halt: Halt) -> None:
        for message in self._messages_of(moves):
            self._ready.append(message)
            self._from_source[message.source] += len(message.moves)
        self._send()

    def _messages_of(self, moves: Iterable[Move]) -> Iterator[SentMessage]:
        groups: dict[tuple[str, str, frozenset[str], str], list[Move]] = {}
        for each in moves:
            source, *further = sorted(each.targets) or [messages.NO_TARGET]
            # of one directory each, whose facts a mover reads once
            key = source, each.path.rpartition("/")[0], frozenset(further), messages.layout_to_wire(each.layout)
            groups.setdefault(key, []).append(each)
        for (source, _, others, layout), group in groups.items():
            pools = frozenset(pools_of(group[0].layout))
            left = iter(group)
            while part := list(islice(left, self._files_per_message())):
                self._number += 1
                yield SentMessage(f"{self.claim.generation}-{part[0].act}-{self._number}", source, others, pools,
                                  {each.act: each for each in part}, layout=layout)

    def _send(self) -> None:
        """Send the messages whose targets and pools have a free slot."""
        chosen = self._fitting()
        if not chosen:
            return
        try:
            permit = self._permitted()
            self.journal.publish()  # the intents are on NATS before the moves
            for source in {message.source for message in chosen} - self._sources:
                messages.declare_source(self.connection, self.names, source, self.settings.movers.per_target_at_once,
                                       self.settings.cluster.ack_wait_seconds)
                self._sources.add(source)
            now = self.clock.now()
            outgoing = [self._outgoing(message, permit, now) for message in chosen]
            try:
                results = self.connection.publish_all(outgoing)
            except BrokerUnknown as error:  # NATS may have some: their results count, or the files at the deadline
                results = [error] * len(chosen)
        except BrokerError as error:
            # nothing was sent yet
            for message in chosen:
                self._give_up(message, Refusal(Reason.NO_BROKER, str(error.strerror or error)))
            return
        for message, result in zip(chosen, results, strict=True):
            if isinstance(result, int):
                message.sequence = result
            elif not isinstance(result, BrokerUnknown):
                self._give_up(message, Refusal(Reason.NO_BROKER, str(result.strerror or result)))
                continue
            self.counts.messages += 1
        self._hint()

    def _fitting(self) -> list[SentMessage]:
        """Take the messages that may be sent now. They count as sent."""
        if not self._ready:
            return []
        found, left = [], deque[SentMessage]()
        slots = Slots(self.settings.movers.per_target_at_once, self._pools(), self._sent.values())
        for message in self._ready:
            if slots.has(message):
                slots.take(message)
                self._sent[message.id] = message
                found.append(message)
            else:
                left.append(message)
        self._ready = left
        return found

    def _pools(self) -> Mapping[str, tuple[str, ...]]:
        with suppress(OSError):
            return self.filesystem.pools()
        return {}  # a pool that is not known counts as one target

    def _outgoing(self, message: SentMessage, permit: Permit, now: float) -> Outgoing:
        message.sent_at, message.deadline = now, now + self.settings.cluster.deadline_seconds
        files = tuple(map(_file_to_move, message.moves.values()))
        move = MoveMessage(message.id, self.names.fs, permit.generation, permit.epoch, message.source,
                           deadline=message.deadline, layout=message.layout, files=files)
        data = messages.signed(messages.encode(move), self.claim.holder)
        return Outgoing(self.names.move_subject(message.source), data, message.id)

    def _hint(self) -> None:
        """Tell movers where moves wait. A hint that is lost is repeated."""
        self._hinted_at = self.clock.now()
        sources = tuple(sorted({message.source for message in self._sent.values()}))
        with suppress(BrokerError):
            self.connection.notify(self.names.work, messages.encode(WorkHint(sources)))

    # -- outcomes ---------------------------------------------------------------------------------------------------

    def outcomes(self, wait_seconds: float = 0.0) -> Generator[MoveOutcome, None, None]:
        now = self.clock.now()
        if self._sent and abs(now - self._hinted_at) >= HINT_SECONDS:
            self._hint()
        # late results come with nothing under way: after a kill of the server a message may have had two movers, of
        # which one gave its files back, and the other has moved them
        self._receive(wait_seconds if self.under_way and not self._ended else 0.0)
        self._expire(self.clock.now())
        self._send()  # results have freed slots
        while self._ended:
            yield self._ended.popleft()

    def recorded(self) -> None:
        """Acknowledges the results, after the copy of the journal has them."""
        self._moved_now.clear()  # the journal has them now
        deliveries, self._unacknowledged = self._unacknowledged, []
        with suppress(BrokerError):  # NATS delivers them again, and they are found to be in the journal
            if deliveries:
                self.journal.publish()
                self.connection.acknowledge_all(deliveries)

    def _receive(self, wait_seconds: float) -> None:
        try:
            found = self.connection.fetch_all(self.names.results, messages.RESULTS_CONSUMER, _RESULTS_AT_ONCE,
                                               wait_seconds)
        except BrokerError:
            return
        for delivery in found:
            try:
                result = messages.unverified(ResultMessage, delivery.data)
                ours = result.generation == self.claim.generation
                # a result for an earlier leader cannot be verified, as its secret is gone: the file decides
                if ours:
                    messages.verified(delivery.data, self.claim.holder)
                elif result.generation > self.claim.generation and self.claim.refusal():
                    continue  # NATS delivers it again, to the tierd that leads now
            except ValueError as error:
                self.counts.refused += 1
                log.warning("refused a result from NATS: %s", error)
            else:
                self._take_in(result, ours=ours)
            self._unacknowledged.append(delivery)  # a malformed one too: NATS would deliver it again

    def _take_in(self, result: ResultMessage, *, ours: bool) -> None:
        message = self._sent.get(result.id)
        self.counts.redelivered += result.times_delivered > 1
        if message is not None and ours and result.last:
            message.removed = True
        for each in result.files:
            self.counts.results[each.result] += 1
            move = message.moves.get(each.act) if message is not None and ours else None
            if message is None or move is None or str(move.fid) != each.fid:
                self._take_in_late(each, ours=ours)
                continue
            self.counts.stale += each.result == messages.STALE
            self._end(message, self._outcome(move, each, result))
        self._file_seconds += 0.1 * (result.seconds / len(result.files) - self._file_seconds)
        self._ended_at.append((self.clock.now(), len(result.files)))

    def _outcome(self, move: Move, each: FileResult, result: ResultMessage) -> MoveOutcome:
        if result.times_delivered > 1:  # an earlier mover of the message may have copied
            each = replace(each, not_copied=0.0)
        earlier_mover = each.result == messages.STALE or result.times_delivered > 1
        if earlier_mover and each.result not in _ENDED and self._has(move.fid, move.layout):
            # it exchanged the layouts, and ended before it reported that
            return self._found_done(move, "a mover did not report the outcome; found done")
        if each.reason == Reason.OUT_OF_TIME:  # as by a clock that differs
            return replace(self._late(move, f"{each.detail} ({result.mover})"), not_copied=each.not_copied)
        if each.result == messages.STALE:
            return replace(halted_outcome(move, Refusal(Reason.OUT_OF_DATE, each.detail)), not_copied=each.not_copied)
        found = MoveOutcome(move, MoveResult(each.result), each.reason, f"{each.detail} ({result.mover})"
                            if each.detail else "", not_copied=each.not_copied)
        if found.result is MoveResult.ALREADY:  # the leader saw another layout just before it sent the move
            return self._found_done(move, f"a mover did not report the outcome; {result.mover} found it done")
        return found

    def _found_done(self, move: Move, detail: str) -> MoveOutcome:
        # an earlier act of the file may have been given up, and count as its move by a late result: only one does
        entry = self.journal.entry(move.act)
        if entry is not None and entry.fid is not None and self._is_counted(entry.fid, entry.intended_at):
            return MoveOutcome(move, MoveResult.ALREADY, "already", "an earlier act moved the file")
        return MoveOutcome(move, MoveResult.DONE, "", detail)

    def _is_counted(self, fid: Fid, since: float) -> bool:
        return fid in self._moved_now or self.journal.is_counted_as_moved(fid, since)

    def _has(self, fid: Fid | None, layout: Layout) -> bool:
        found = self._layout_of(fid)
        return isinstance(found, Layout) and same_shape(found, layout)

    def _end(self, message: SentMessage, outcome: MoveOutcome) -> None:
        if outcome.move.fid in self._moved_before and outcome.result not in _ENDED:
            outcome = self._found_done(outcome.move, "a mover reported an earlier act late; found done")
        self._moved_before -= {outcome.move.fid}
        del message.moves[outcome.move.act]
        self._from_source[message.source] -= 1
        self._add_ended(outcome)
        if not message.moves:
            self._sent.pop(message.id, None)
        # a halted one is sent again, and its late deadlines count on
        if outcome.reason != Reason.HALTED:
            self._expired.pop(outcome.move.path, None)

    def _add_ended(self, outcome: MoveOutcome) -> None:
        if outcome.result is MoveResult.DONE and outcome.move.fid is not None:
            self._moved_now.add(outcome.move.fid)
        self._ended.append(outcome)

    def _give_up(self, message: SentMessage, why: Refusal) -> None:
        """No mover has begun a file of this message, and none will."""
        if why.reason == Reason.NO_BROKER:
            self._permit = None  # until the next one is written, this leader is in trouble
        for each in list(message.moves.values()):
            self._end(message, halted_outcome(each, why))

    def _take_in_late(self, each: FileResult, *, ours: bool) -> None:
        """A result for an act that has an outcome already, or of an earlier leader: the file system decides.

        It does not show that a file is doubtful: only a mover of this leader reports that.
        """
        entry = self.journal.entry(each.act)
        if entry is None or entry.fid is None or str(entry.fid) != each.fid or entry.layout_after is None:
            return
        move = Move(entry.place, entry.layout_after, entry.fid, entry.size_bytes, act=each.act)
        given_up = entry.outcome in _GIVEN_UP
        if ours and each.result == MoveResult.DOUBTFUL and (given_up or entry.outcome == Outcome.DONE):
            self._add_ended(MoveOutcome(move, MoveResult.DOUBTFUL, each.reason, each.detail))
        elif given_up and self._has(entry.fid, move.layout) and not self._is_counted(entry.fid, entry.intended_at):
            under_way = (each for message in (*self._ready, *self._sent.values()) for each in message.moves.values())
            if any(each.fid == move.fid and same_shape(each.layout, move.layout) for each in under_way):
                self._moved_before.add(entry.fid)
            else:
                self._add_ended(MoveOutcome(move, MoveResult.DONE, "", "a mover reported it late; found done"))

    def _expire(self, now: float) -> None:
        """End moves without a result at their deadline, with the outcome that the file on Lustre shows."""
        for message in [each for each in self._sent.values() if now > each.deadline + GRACE_SECONDS]:
            if message.sequence:
                with suppress(BrokerError):  # its deadline keeps movers from beginning it
                    self.connection.remove_message(self.names.moves, message.sequence)
            for each in list(message.moves.values()):
                outcome = self._found(each)
                if outcome is not None:
                    self.counts.expired += 1
                    self._end(message, outcome)

    def _found(self, each: Move) -> MoveOutcome | None:
        """What became of a file; None while the file system does not answer."""
        found = self._layout_of(each.fid)
        if isinstance(found, FileNotFoundError | Stale):
            return MoveOutcome(each, MoveResult.GAVE_WAY, Reason.GONE, "the file is gone")
        if isinstance(found, OSError):
            return None
        if found is not None and same_shape(found, each.layout):
            return self._found_done(each, "no mover reported the outcome; found done")
        # a mover may have copied it
        return replace(self._late(each, "no mover reported an outcome in time"), not_copied=0.0)

    def _late(self, each: Move, why: str) -> MoveOutcome:
        self._expired[each.path] += 1
        if self._expired[each.path] >= TRIES:
            return MoveOutcome(each, MoveResult.FAILED, "no-result", f"{why}, several times; the file is unchanged")
        return halted_outcome(each, Refusal(Reason.OUT_OF_TIME, f"{why}; the file is unchanged"))

    def _layout_of(self, fid: Fid | None) -> Layout | OSError | None:
        assert fid is not None
        try:
            return self.filesystem.layout(self.filesystem.path_of(fid))
        except OSError as error:
            return error

    # -- taking back ------------------------------------------------------------------------------------------------

    def withdraw(self, why: Refusal) -> None:
        """Movers begin no further file once the permit is written."""
        for message in list(self._ready):
            self._give_up(message, why)
        self._ready.clear()
        try:
            with self._lock:
                if self._permit is None or not self._permit.held:
                    self._write_permit(self.claim.generation, why.sentence or why.reason)
            self._remove_undelivered(why)
        except BrokerError as error:
            log.warning("cannot withdraw moves; tierd tries again: %s", error)

    def _remove_undelivered(self, why: Refusal) -> None:
        """Messages that no mover got before the permit was withdrawn will not be begun. The others have results.

        Messages that movers have stay in the stream, so that they count for the limits of their targets.
        """
        waiting = [message for message in self._sent.values() if message.sequence and not message.removed]
        if not waiting:
            return
        delivered = {source: self.connection.delivered_sequence(self.names.moves, source)
                     for source in {message.source for message in waiting}}
        for message in waiting:
            if message.sequence > delivered[message.source]:
                self.connection.remove_message(self.names.moves, message.sequence)
                self._give_up(message, why)
            message.removed = True


def _file_to_move(move: Move) -> FileToMove:
    assert move.fid is not None
    return FileToMove(move.act, str(move.fid), messages.path_to_wire(move.path), move.size_bytes or 0,
                      objects=objects_digest(move.before),
                      layout_generation=move.before.generation if move.before else 0,
                      by_request=move.by_request, own_mirrors=move.own_mirrors)
