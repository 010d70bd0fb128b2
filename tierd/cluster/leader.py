"""The leader, and its standby: whoever holds the claim on Lustre leads; all others keep a copy of the journal.

A process becomes the leader in this order: it takes the claim, declares the streams, reads everything that earlier
leaders have published, and only then opens the journal for writing. It never takes a claim twice: once the claim is
lost, the process ends, and starts again as a standby.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from httpserver.config import WebConfigFile
from lustre.filesystem import Filesystem
from tierd.act.claim import Claim, SeenClaim, describe_holder, read_claim, read_key
from tierd.act.dispatch import RemoteStandby
from tierd.act.journal.connection import JournalError, journal_errors
from tierd.act.journal.writer import Journal
from tierd.clock import Clock
from tierd.cluster import messages
from tierd.cluster.connection import BrokerError, Connection
from tierd.cluster.dispatch import NatsDispatch
from tierd.cluster.journal_stream import JournalFollower, JournalPublisher, NoCopyError
from tierd.cluster.messages import Names, declare_readers, encode
from tierd.cluster.standing_by import StandbyServer
from tierd.cluster.tallies import NatsTallyInbox
from tierd.config.settings import Settings

log = logging.getLogger("tierd.cluster")
STAND_BY_SECONDS = 2.0
"""Time between two attempts of a standby to lead."""
DESCRIBE_SECONDS = 5.0
"""Time between two reports of a standby's state."""


class Candidate:
    """A process that may lead: a standby until it holds the claim."""

    def __init__(self, settings: Settings, fsname: str, claim: Claim, connection: Connection, clock: Clock) -> None:
        self._settings = settings
        self.claim = claim
        """The claim of the leader, once :meth:`step` has returned True."""
        self._clock = clock
        self.connection = connection
        self.names = Names(fsname)
        self._follower: JournalFollower | None = None
        self.nats_answers = False
        """Whether enough servers of NATS answered the last attempt to lead. One without the others is connected too."""
        self._reported = ""
        self._key = ""
        host = dict(part.partition("=")[::2] for part in claim.holder.split()).get("host", "unknown")
        self.standby = RemoteStandby(settings.cluster.name or host, host, clock.now())
        """This process as a standby. Replaced as a whole, so that any thread may read it."""
        self._copied_at: float | None = None
        self._described_at = float("-inf")
        self._flush: Callable[[], None] = lambda: None

    @property
    def lost(self) -> bool:
        return self.claim.leads and not self.claim.generation

    def stand_by(self, notify: Callable[..., None], web_config: WebConfigFile | None) -> bool:
        """Follow the leader's journal until this process leads. Returns False if it is asked to stop before.

        After the first attempt to lead has failed, it answers on the socket and the port of a standby.
        """
        notify(READY="1", STATUS="standing by")
        if self.step():
            return True
        with ExitStack() as serving:
            try:
                server = StandbyServer(self._settings, self.names.fs, lambda: self.standby, lambda: self.nats_answers,
                                       now=self._clock.now, web_config=web_config)
                serving.callback(server.close)
            except OSError as error:
                log.warning("this standby has no socket and no port: %s", error)
            while not self._clock.wait(STAND_BY_SECONDS):
                if self.step():
                    return True
                notify(WATCHDOG="1")
        return False

    def step(self) -> bool:
        """Follow the journal, and lead if nobody does. Returns whether this process leads now."""
        try:
            with journal_errors(self._settings.act.journal):
                if not self.connection.connected:
                    raise BrokerError(None, f"NATS: {self.connection.trouble}")
                follower = self._follower = self._follower or JournalFollower(
                    self.connection, self.names, Path(self._settings.act.journal), partial(read_key, self.claim.folder))
                self._follow(follower)  # before the claim: whoever cannot follow must not lead
                self.nats_answers = True
                why = self.claim.hold()
                if why is not None:
                    self._describe(follower)
                    self._report(f"standing by: {why.sentence}")
                    return False
                try:
                    if self.claim.generation <= follower.generation:  # everybody would ignore this leader
                        raise NoCopyError(None, "the folder of the claim was emptied: its generation grows until it "
                                          f"passes that of the journal, {follower.generation}")
                    known, self._key = read_key(self.claim.folder), self.claim.make_key()
                    messages.declare(self.connection, self.names, self._settings.cluster.replicas)
                    follower.take_over(self.claim.generation, self.claim.renew, new_key=not known)
                except BaseException:
                    self.claim.release()  # nobody need wait for it to expire
                    raise
        except (OSError, ValueError) as error:
            why_not = str(getattr(error, "strerror", None) or error)
            self.nats_answers &= not isinstance(error, BrokerError)
            self._report(f"this tierd cannot lead: {why_not}")
            if isinstance(error, JournalError) and self._follower is not None:
                self._follower.close()  # it is opened again: an administrator may replace the file
                self._follower = None
            self._describe(self._follower, why_not)
            return False
        follower.close()  # with the lock of its file, which the leader takes
        self._follower = None
        self._forget_description()
        self.claim.leads = True
        self._report(f"leading {self.names.fs}, generation {self.claim.generation}")
        return True

    def _describe(self, follower: JournalFollower | None, problem: str = "") -> None:
        """Replace the report of this standby's state, and publish it every few seconds."""
        now = self._clock.now()
        behind = None
        leader = SeenClaim(0)
        with suppress(OSError):
            leader = read_claim(self.claim.folder)
        with suppress(OSError):
            behind = follower.behind_messages() if follower is not None else None
        if behind == 0 and not problem:
            self._copied_at = now
        self.standby = replace(
            self.standby, seen=now, leader=describe_holder(leader.holder) if leader.generation else "",
            generation=leader.generation, position=follower.position if follower is not None else 0,
            behind_messages=behind, copy_age_seconds=max(0.0, now - self._copied_at) if self._copied_at else None,
            problem=problem)
        if abs(now - self._described_at) >= DESCRIBE_SECONDS:
            with suppress(BrokerError):  # before the first leader there is no bucket
                self.connection.bucket(self.names.standbys).put(self.standby.name, encode(self.standby))
                self._described_at = now

    def _forget_description(self) -> None:
        with suppress(BrokerError):  # it expires
            self.connection.bucket(self.names.standbys).delete(self.standby.name)

    def _follow(self, follower: JournalFollower) -> None:
        try:
            follower.step()
        except BrokerError as error:
            if self.connection.has_stream(self.names.journal):
                raise
            self._report(f"NATS has no streams of {self.names.fs} yet ({error.strerror or error})")

    def _report(self, sentence: str) -> None:
        if sentence != self._reported:
            log.warning("%s", sentence)
            self._reported = sentence

    def attach(self, journal: Journal, filesystem: Filesystem, settings: Settings) -> NatsDispatch:
        """Publish what the journal's writers enter from now on. Returns the dispatch for the gate."""
        assert journal.changes is not None
        publisher = JournalPublisher(self.connection, self.names, journal.changes, self.claim, self._key)
        journal.publish = self._flush = publisher.flush
        return NatsDispatch(self.connection, self.names, claim=self.claim, filesystem=filesystem, settings=settings,
                            clock=self._clock, journal=journal)

    def detach(self) -> None:
        """Publish the last changes of a journal that will be closed."""
        try:
            self._flush()
        except OSError as error:
            log.warning("the last changes of the journal are not copied yet: %s", error.strerror or error)

    def tally_inbox(self, settings: Settings) -> NatsTallyInbox | None:
        """Where tallies of readers arrive; None if the leader reads the changelogs itself. Raises BrokerError."""
        if not settings.reader.enabled:
            return None
        declare_readers(self.connection, self.names, settings.cluster.replicas, settings.reader.lease_seconds)
        return NatsTallyInbox(self.connection, self.names, self._key, int(self._clock.now()))

    def close(self) -> None:
        """Release the claim, and close the connection. The journal is closed already."""
        if self._follower is not None:
            self._follower.close()
            self._forget_description()
        if self.claim.leads:
            self.claim.give_up()
        self.connection.close()
