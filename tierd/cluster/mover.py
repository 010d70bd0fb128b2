"""The mover: takes messages with moves from NATS, and carries them out on its mount.

A mover trusts no message. Before each file it reads the leader's permit on NATS and the claim on Lustre, and checks the
signature, scope and pools. The engine compares the file with the message under its lease, and asks for the claim once
more just before the exchange. A result is published before its message is acknowledged: a message of a mover that died
goes to another one, which finds the file moved, or moves it.
"""

from __future__ import annotations

import logging
import random
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from lustre.fid import Fid
from lustre.layout.model import pools_of
from tierd.act.claim import ClaimFolder, read_claim
from tierd.act.dispatch import RemoteMover
from tierd.act.movers.inspection import FileEngine
from tierd.act.movers.moves import Move, MoveOutcome, MoveResult, never_halt
from tierd.act.operating_state import MaintenanceGuard
from tierd.clock import SystemClock
from tierd.cluster import messages
from tierd.cluster.connection import BrokerError, BrokerRefused, Connection, Delivery
from tierd.cluster.messages import FileResult, FileToMove, MoveMessage, Names, Permit, ResultMessage, WorkHint
from tierd.config.act import Mode
from tierd.config.settings import Settings
from tierd.refusal import Reason, Refusal
from tierd.text import printable

log = logging.getLogger("tierd.cluster")
IDLE_SECONDS = 0.5
"""Pause of a thread that found no message."""
HINT_HOLDS_SECONDS = 5.0
"""Time for which a hint counts: the leader repeats it while moves are under way."""
STATE_SECONDS = 5.0
"""Time between two reports of this mover's state."""
FLUSH_SECONDS = 1.0
"""Time after which results are published before the message is done."""
ENDING_SECONDS = 0.5
"""Time between two extensions of leases while the last files are completed."""
RETRY_SECONDS = 1.0
"""Pause between two attempts to publish a result."""
REST_SECONDS = 5.0
"""Time for which a mover without Lustre, or with another clock than the leader's, leaves messages to others."""
MAX_REFUSALS = 60
"""Attempts that NATS may refuse. A choice: servers choose their leader in seconds."""
Fault = Callable[[str], None]
"""Called at named points, for tests that end a mover there."""


@dataclass(eq=False)
class Mover:
    """A mover with several threads. Each works on one message at a time."""

    name: str
    host: str
    connection: Connection
    names: Names
    engine: FileEngine
    claims: ClaimFolder
    """With the claim of the leader, on Lustre."""
    settings: Settings
    clock: SystemClock
    fault: Fault = lambda _: None
    nids: Callable[[], Collection[str]] = tuple
    """NIDs of this node; none if they are unknown."""

    def __post_init__(self) -> None:
        self._maintenance = MaintenanceGuard(self.settings.act.pause_file, self.settings.act.windows)
        self._lock = threading.RLock()
        self._hinted: tuple[float, tuple[str, ...]] = (float("-inf"), ())
        """Time of the last hint, and its targets: all for which the leader has messages under way."""
        self._work = threading.Event()
        self._ending = threading.Event()
        self.held: dict[Delivery, float] = {}
        """Messages that are being worked on, and when their lease was last extended, by the monotonic clock."""
        self._pools = {pool for pair in self.settings.resolved_scopes.pool_pairs for pool in (pair.flash, pair.hdd)}
        self._listening, self._rest_until = False, float("-inf")
        self._threads: list[threading.Thread] = []
        self.stopped = ""
        """Why this mover begins no file; "" while it works."""
        self._trouble = ""
        self.under_way: Counter[str] = Counter()
        self.results: Counter[str] = Counter()
        self.redelivered = self.refused = self.copied_bytes = 0

    # -- running ----------------------------------------------------------------------------------------------------

    def start(self) -> list[threading.Thread]:
        tasks = [self._describe_regularly, self._extend_leases, *[self._work_until_end] * self.settings.movers.at_once]
        self._threads = [threading.Thread(target=task, name=f"tierd-{number}", daemon=True)
                         for number, task in enumerate(tasks)]
        for thread in self._threads:
            thread.start()
        return self._threads

    @property
    def sound(self) -> bool:
        """Whether the threads that report this mover's state and extend its leases are alive. Without them it must end.

        A thread that moves files and ends by a defect stops the mover instead, which everybody sees until its restart.
        """
        return all(thread.is_alive() for thread in self._threads[:2])  # the others move files

    @property
    def doing(self) -> str:
        return f"stopped: {self.stopped}" if self.stopped else self.connection.trouble or self._trouble or "at work"

    def stop(self) -> None:
        self._ending.set()
        self._work.set()

    def join(self, seconds: float) -> None:
        until = self.clock.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - self.clock.monotonic()))

    def _work_until_end(self) -> None:
        while not self._ending.is_set():
            try:
                found = "" if self._held() or self.clock.monotonic() < self._rest_until else self.step()
                self._trouble = ""
            except BrokerError as error:  # each thread meets it twice a second
                self._trouble, found = str(error.strerror or error), ""
            except Exception as error:  # what a mover does not understand, it must not repeat
                self._stop_itself(f"a defect of the mover: {type(error).__name__}: {error}")
                raise
            if not found:
                self._work.clear()
                self._work.wait(IDLE_SECONDS)

    def step(self) -> str:
        """Take one message and carry it out. Returns its source; "" if there was none."""
        if not self._listening and self.connection.connected:
            self.connection.listen(self.names.work, self.take_hint)
            self._listening = True
        for source in self._sources():
            asked_at = self.clock.monotonic()  # the lease begins when NATS answers, which may be seen later
            delivery = self.connection.fetch(self.names.moves, source)
            if delivery is not None:
                self._carry_out(delivery, source, asked_at)
                return source
        return ""

    def take_hint(self, data: bytes) -> None:
        with suppress(ValueError):
            self._hinted = self.clock.now(), messages.decode(WorkHint, data).sources
            self._work.set()

    def _sources(self) -> list[str]:
        """Targets with moves that wait, in random order, so that movers do not queue behind each other."""
        at, sources = self._hinted
        return random.sample(sources, len(sources)) if self.clock.now() - at < HINT_HOLDS_SECONDS else []

    # -- one message ------------------------------------------------------------------------------------------------

    def _carry_out(self, delivery: Delivery, source: str, leased_at: float) -> None:
        self.fault("fetched")
        self.redelivered += delivery.times_delivered > 1
        verified = self._verified(delivery)
        if verified is None:
            return
        message, secret = verified
        with self._lock:
            self.held[delivery] = leased_at
            self.under_way[source] += len(message.files)
        try:
            self._move_files(message, secret, delivery)
            self.fault("moved")
            # the results first: once acknowledged, the message comes to nobody again
            self._until_published(lambda: self._acknowledge(delivery))
        finally:
            with self._lock:
                self.held.pop(delivery, None)
                self.under_way[source] -= len(message.files)
                self.under_way += Counter()

    def _verified(self, delivery: Delivery) -> tuple[MoveMessage, str] | None:
        """The message and the secret of its leader; None if it is refused, and removed from the queue."""
        try:
            claim = read_claim(self.claims)
            if not claim.generation:
                raise FileNotFoundError(None, "there is no leader, or the file system is not mounted here")
            message = messages.unverified(MoveMessage, delivery.data)
            secret = claim.holder if message.generation == claim.generation else ""
            if secret:  # otherwise no file of it is begun
                messages.verified(delivery.data, secret)
            if message.fs != self.names.fs or delivery.subject != self.names.move_subject(message.source):
                raise ValueError(f"it belongs to {message.fs} {message.source}, and arrived as {delivery.subject}")
        except OSError as error:
            log.warning("the claim of the leader cannot be read: %s", error.strerror or error)
            self._rest_until = self.clock.monotonic() + REST_SECONDS
            delivery.give_back()
            return None
        except ValueError as error:
            self.refused += 1
            log.warning("refused a message from NATS: %s", error)
            delivery.acknowledge()  # removed: nobody may obey it
            return None
        return message, secret

    def _move_files(self, message: MoveMessage, secret: str, delivery: Delivery) -> None:
        found: list[FileResult] = []
        begun = self.clock.now()
        batch = None
        for number, file in enumerate(message.files):
            why = self._refusal(message)
            # asked after the requests above, which may have hung: from then on another mover has the message, or gets
            # it, and reports the further files. As stale ones of this mover, the leader would send them again
            if self.expired(delivery):
                self._publish(message, secret, delivery, found, self.clock.now() - begun, last=False)
                return
            if why is not None:
                if why.reason == Reason.OUT_OF_TIME:
                    self._rest_until = self.clock.monotonic() + REST_SECONDS
                found += [self._counted(FileResult(each.act, each.fid, "stale", why.reason, why.sentence,
                                                   not_copied=1.0)) for each in message.files[number:]]
                break
            batch = batch or self.engine.batch()  # only if a file may be moved
            found.append(self._moved(message, file, batch))
            now = self.clock.now()
            if now - begun > FLUSH_SECONDS and number < len(message.files) - 1:
                self._publish(message, secret, delivery, found, now - begun, last=False)
                found, begun = [], now
        self._publish(message, secret, delivery, found, self.clock.now() - begun, last=True)

    def _acknowledge(self, delivery: Delivery) -> None:
        # it would free the slot of its target, while another mover works on the same message
        if self.expired(delivery):
            log.warning("this mover hung, or had no NATS, for longer than cluster.ack_wait_seconds: another mover "
                        "completes its message")
        else:
            delivery.acknowledge()

    def expired(self, delivery: Delivery) -> bool:
        """Whether the lease of a message has ended, so that another mover may have it. A lease that ended stays so."""
        with self._lock:
            return self.clock.monotonic() - self.held[delivery] > self.settings.cluster.ack_wait_seconds

    def _held(self) -> Refusal | None:
        if self.stopped or self._ending.is_set():
            return Refusal(Reason.STOPPING, self.stopped or "the mover is stopping")
        return self._maintenance.pause_file_refusal() or self._maintenance.last_refusal(self.clock.now())

    def _refusal(self, message: MoveMessage) -> Refusal | None:
        """Refuses to begin a file: stopped or paused here, without NATS, withdrawn, late, or of an earlier leader."""
        if why := self._held():
            return why
        try:
            value = self.connection.bucket(self.names.control).get(messages.PERMIT)
            permit = messages.decode(Permit, value.data) if value is not None else Permit(0, 0, "there is no leader")
        except (BrokerError, ValueError) as error:
            return Refusal(Reason.NO_BROKER, f"the permit of the leader cannot be read: {error}")
        if permit.held:
            return Refusal(Reason.PAUSED, permit.held)
        if (permit.generation, permit.epoch) != (message.generation, message.epoch):
            return Refusal(Reason.OUT_OF_DATE, "the leader has withdrawn the message")
        return self._outdated(message)

    def _outdated(self, message: MoveMessage) -> Refusal | None:
        """Refuses files of a late message, and of a leader that was replaced, also just before each exchange."""
        if self.clock.now() > message.deadline:
            return Refusal(Reason.OUT_OF_TIME, "the deadline of the message has passed")
        try:
            claim = read_claim(self.claims)
        except OSError as error:
            return Refusal(Reason.CLAIM_UNREADABLE, f"the claim of the leader cannot be read: {error}")
        if claim.generation != message.generation:
            return Refusal(Reason.CLAIM_LOST, f"the claim has generation {claim.generation}, the message "
                           f"{message.generation}")
        return None

    def _moved(self, message: MoveMessage, file: FileToMove, batch: object) -> FileResult:
        """Move one file. Any doubt about the result stops this mover."""
        try:
            move = self._checked(message, file)
        except ValueError as error:
            self.refused += 1
            return self._counted(FileResult(file.act, file.fid, MoveResult.REFUSED, Reason.OUT_OF_DATE, str(error)))
        self.fault("begin")
        try:
            (outcome,) = self.engine.move_batch((move,), never_halt, batch)  # type: ignore[arg-type]
        except Exception as error:  # noqa: BLE001 -- whatever it is, the state of the file is unknown
            outcome = MoveOutcome(move, MoveResult.DOUBTFUL, "unknown", f"{type(error).__name__}: {error}")
        self.fault("exchanged")
        if outcome.result is MoveResult.DOUBTFUL:
            self._stop_itself(f"{move.path}: {outcome.detail}")
        # not every engine knows what it has copied: lfs moves a whole file
        whole = file.size_bytes if outcome.result is MoveResult.DONE else 0
        self.copied_bytes += outcome.copied_bytes or whole
        # a move that the fence ended is stale: the leader plans it again
        return self._counted(FileResult(
            file.act, file.fid, "stale" if outcome.reason == Reason.HALTED else outcome.result, outcome.reason,
            printable(outcome.detail)[:2000], not_copied=outcome.not_copied))

    def _counted(self, result: FileResult) -> FileResult:
        with self._lock:
            self.results[result.result] += 1
        return result

    def _checked(self, message: MoveMessage, file: FileToMove) -> Move:
        """The move. Raises ValueError for a message that may not be obeyed."""
        path, fid = messages.path_from_wire(file.path), Fid.parse(file.fid)
        layout = messages.layout_from_wire(message.layout)
        move = Move(path, layout, fid, file.size_bytes or None, objects=file.objects,
                    layout_generation=file.layout_generation, own_mirrors=file.own_mirrors,
                    fence=partial(self._outdated, message))
        if self.settings.resolved_scopes.of(path).mode not in {Mode.FULL, Mode.ASK} and not file.by_request:
            raise ValueError("the mode of its scope allows no moves")
        if foreign := set(pools_of(layout)) - self._pools:
            raise ValueError(f"pool {min(foreign)!r} is not configured")
        return move

    def _publish(self, message: MoveMessage, secret: str, delivery: Delivery, found: list[FileResult], seconds: float,
                 *, last: bool) -> None:
        if not found:
            return
        result = ResultMessage(message.id, self.names.fs, message.generation, self.name, delivery.times_delivered,
                               files=tuple(found), seconds=max(0.0, seconds), last=last)
        data = messages.signed(messages.encode(result), secret)
        # a name of its own: a killed server forgets how often it delivered a message, and takes a result with the name
        # of an earlier one for a repetition
        message_id = secrets.token_hex(16)
        self.fault("publish")
        self._until_published(lambda: self.connection.publish(self.names.result_subject(self.name), data, message_id))
        self.fault("published")

    def _until_published(self, attempt: Callable[[], object]) -> None:
        pause, refusals = threading.Event(), 0
        # NATS refuses for good only without the right to publish; else while its servers choose who leads
        while refusals < MAX_REFUSALS:
            try:
                attempt()
                return
            except BrokerRefused as error:
                if not refusals:
                    log.warning("NATS refuses a result: %s", error.strerror or error)
                refusals += 1
            except BrokerError:
                pass  # a result must not be lost while this process lives
            pause.wait(RETRY_SECONDS)

    # -- beside the work --------------------------------------------------------------------------------------------

    def _stop_itself(self, why: str) -> None:
        self.stopped = printable(why)
        log.error("STOPPED: %s; examine the file, then restart this mover", self.stopped)

    def state(self) -> RemoteMover:
        with self._lock:
            threads = 0 if self._held() else self.settings.movers.at_once
            return RemoteMover(self.name, self.host, engine=self.settings.movers.engine, threads=threads,
                              seen=self.clock.now(), stopped=self.stopped, under_way=dict(self.under_way),
                              results=dict(self.results), redelivered=self.redelivered, refused=self.refused,
                              copied_bytes=self.copied_bytes, nids=tuple(sorted(self.nids())))

    def describe(self) -> None:
        self.connection.bucket(self.names.movers).put(self.name, messages.encode(self.state()))

    def _describe_regularly(self) -> None:
        while True:
            with suppress(BrokerError):
                self.describe()
            if self._ending.wait(STATE_SECONDS):
                with suppress(BrokerError):
                    self.connection.bucket(self.names.movers).delete(self.name)
                return

    def _extend_leases(self) -> None:
        """Extend the leases of messages that are being worked on, even while files are completed before the end."""
        while not self._ending.wait(self.settings.cluster.ack_wait_seconds / 3):
            self.extend_once()
        pause = threading.Event()
        while self.held:
            self.extend_once()
            pause.wait(ENDING_SECONDS)

    def extend_once(self) -> None:
        """Extend all leases that have not ended. A lease counts from the request, and only if the answer came in time.

        So this mover never relies on a lease that NATS has ended, even if its process or the server hung.
        """
        asked_at = self.clock.monotonic()
        with self._lock:
            held = [delivery for delivery in self.held if not self.expired(delivery)]
        with suppress(BrokerError):
            extended = self.connection.extend_leases(held)
            with self._lock:
                self.held |= {delivery: asked_at for delivery in extended
                               if delivery in self.held and not self.expired(delivery)}
