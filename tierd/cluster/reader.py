"""Changelog readers: each MDT is read by the one reader that holds its lease on NATS.

A reader rolls the records of a window up, publishes the tally, and keeps it until the leader's position has passed it.
Only then does it clear the changelog. If the leader asks to read again, or its position is not where one of the tallies
ends, the reader forgets what it read and begins at the leader's position: the records are still in the changelog.

The lease keeps two readers from doing the same work. It does not protect the counts: the leader counts each record once
by its index, whoever sends it. A reader that hung for longer than its lease notices by its clock, publishes at most the
present tally, and starts again once it has the lease again.

Without NATS, or without a leader, a reader keeps a limited number of tallies and then stops reading.
"""

from __future__ import annotations

import json
import logging
import random
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from tierd.clock import Clock, SystemClock
from tierd.cluster import messages
from tierd.cluster.connection import BrokerError, BrokerUnknown, Bucket, Connection, WrongRevision
from tierd.cluster.messages import Names
from tierd.cluster.tallies import encode
from tierd.config.settings import ReaderSettings
from tierd.sense.changelogs.follow import ChangelogClearing, ClearChangelog, Follower, MissingRecordsError, ReadFrom
from tierd.sense.changelogs.table import ActivityTable
from tierd.sense.changelogs.tallies import Tally, TallyContent
from tierd.sense.changelogs.tally_source import Position, ReaderState

log = logging.getLogger("tierd.cluster")
MARGIN_SECONDS = 2.0
"""A reader trusts its lease for this much less than NATS keeps it."""
MAX_WINDOWS = 24
"""Tallies that wait for the leader: two minutes. Beyond them the reader stops reading, and the records stay in the
changelog. A choice."""
MAX_WINDOW_RECORDS = 200_000
"""Records after which a window ends early."""
STATE_SECONDS = 5.0
"""Time between two reports of this reader's state."""
STEP_SECONDS = 0.5
"""Pause between two steps, and between two reads of the leader's position."""
LEASE_STEPS = 4
"""Renewals of a lease in the time that it lasts."""
MonotonicClock = Callable[[], float]
Publish = Callable[["Window"], None]
"""Publishes a tally. Raises BrokerError."""


class Lease:
    """The lease of one MDT. It expires by itself unless it is renewed."""

    def __init__(self, bucket: Bucket, mdt: str, owner: str, seconds: float, monotonic: MonotonicClock) -> None:
        """``owner`` is a text that no other process uses."""
        self._bucket = bucket
        self._mdt = mdt
        self._data = json.dumps({"reader": owner}).encode()
        self._seconds = seconds
        self._monotonic = monotonic
        self._revision = 0
        self._valid_until = 0.0
        self.token = 0
        """Fencing token: higher than that of every earlier lease of this MDT; 0 without a lease."""

    @property
    def held(self) -> bool:
        """Whether this process holds the lease for certain."""
        return self.token > 0 and self._monotonic() < self._valid_until

    def step(self) -> bool:
        """Take the lease or renew it. Returns whether it is held. Raises BrokerError if NATS does not answer."""
        began = self._monotonic()  # a lease counts from the request
        if self.token and began >= self._valid_until:
            self._revision = self.token = 0  # another reader may have had it meanwhile
        try:
            revision = self._bucket.update(self._mdt, self._data, self._revision)
        except WrongRevision:
            self._revision = self.token = 0
            return False
        except BrokerUnknown:
            # it may count nevertheless
            found = self._bucket.get(self._mdt)
            if found is None or found.data != self._data or found.sequence <= self._revision:
                return self.held
            revision = found.sequence
        self._revision = revision
        self.token = self.token or revision
        self._valid_until = began + self._seconds - MARGIN_SECONDS
        return self.held

    def give_up(self) -> None:
        """Release the lease, so that another reader need not wait. Raises BrokerError."""
        revision, self._revision, self.token = self._revision, 0, 0
        if revision:
            self._bucket.delete(self._mdt, revision)


@dataclass(frozen=True, slots=True)
class Window:
    """A tally that waits for the leader."""

    tally: Tally
    data: bytes
    message_id: str


class MdtReader:
    """Reads one MDT while this process holds its lease."""

    def __init__(self, mdt: str, reader: str, read: ReadFrom, clear: ClearChangelog, user: str,
                 make_table: Callable[[], ActivityTable], settings: ReaderSettings, clock: Clock,
                 monotonic: MonotonicClock, fsname: str = "FSNAME") -> None:
        """``user`` is the changelog user to clear for; "" to clear nothing."""
        self._mdt = mdt
        self._reader = reader
        self._read = read
        self._make_table = make_table
        self._settings = settings
        self._clock = clock
        self._monotonic = monotonic
        self._position = Position(0, 0)
        """The leader's position, as far as known."""
        self._token = 0
        self._begin_at(0)
        self._clearing = ChangelogClearing(clear, {mdt: user} if user else {}, clock, fsname)
        self.records = self.tallies = 0
        self.rewinds = 0
        """How often it forgot what it had read, and began at the leader's position."""

    @property
    def read_position(self) -> int:
        """Index of the last record that was read; the leader's position before the first."""
        return self._follower.positions[self._mdt]

    @property
    def waiting(self) -> int:
        """Tallies that wait for the leader."""
        return len(self._windows)

    def step(self, token: int, position: Position, publish: Publish) -> None:
        """Read for a while, and publish the tally of a window that is over. ``position`` is the leader's.

        Raises BrokerError if a tally cannot be published; the next call does it again.
        """
        self._follow(token, position)
        # if the changelog restarted, the next tally ends below its beginning
        self._clearing(self._follower, {self._mdt: position.index})
        if len(self._windows) < MAX_WINDOWS:
            self._take_in()
            if self._over():
                self._end_window()
        while self._unpublished:
            publish(self._unpublished[0])
            self.tallies += 1
            self._unpublished.popleft()

    def _follow(self, token: int, position: Position) -> None:
        """Drop tallies that the leader has, or start again at its position."""
        before, self._position = self._position, position
        if position.renames != before.renames:  # another reader may have seen them
            self._table.forget_paths(self._clock.now())
        while self._windows and position.index != self._windows[0].tally.after and (
                position.index >= self._windows[0].tally.last):
            self._windows.popleft()
        begin = self._windows[0].tally.after if self._windows else self._after
        asked = position.era != before.era or position.rereads > before.rereads
        if token != self._token or asked or begin != position.index:
            if self._token:
                self.rewinds += 1
                log.info("%s: reading again after record %d", self._mdt, position.index)
            self._token = token
            self._begin_at(position.index)

    def _begin_at(self, index: int) -> None:
        self._windows: deque[Window] = deque()
        self._unpublished: deque[Window] = deque()
        self._follower = Follower(self._read, [self._mdt], self._clock, {self._mdt: index}, max_reads=1)
        self._new_table()
        self._reset_window(index)

    def _new_table(self) -> None:
        self._table = self._make_table()
        self._begun = True

    def _reset_window(self, after: int) -> None:
        self._after = after
        self._records = 0
        self._oldest, self._newest = float("inf"), 0.0
        self._gap = self._problem = ""
        self._at_end = False
        self._opened_at = self._monotonic()

    def _take_in(self) -> None:
        """Read once, about 1 MiB, and roll the records up."""
        count = 0
        self._problem = ""
        try:
            for batch in self._follower.batches():
                count += len(batch)
                self._table.add([batch])
                self._oldest = min(self._oldest, self._table.oldest_time)
                self._newest = max(self._newest, batch.newest_time)
        except MissingRecordsError as error:
            self._gap = self._gap or _without_name(str(error), self._mdt)
        except OSError as error:
            self._problem = _without_name(str(error), self._mdt)
        self._at_end = not count and not self._problem and not self._follower.waiting
        self._records += count
        self.records += count

    def _over(self) -> bool:
        return bool(self._gap) or self._records >= MAX_WINDOW_RECORDS or not (
            0 <= self._monotonic() - self._opened_at < self._settings.window_seconds)

    def _end_window(self) -> None:
        last = self.read_position
        moved = last != self._after  # what does not move the position may arrive twice, so it has no content
        content = self._table.tally() if moved else TallyContent()
        oldest = self._oldest if self._records else 0.0
        tally = Tally(self._mdt, self._after, last=last, records=self._records, reader=self._reader,
                      token=self._token, rereads=self._position.rereads,
                      begun=self._begun and moved, at_end=self._at_end, oldest_time=oldest, newest_time=self._newest,
                      gap=self._gap, problem=self._problem, content=content)
        try:
            data = encode(tally)
        except ValueError as error:  # names of extreme length: the counts of this window are lost, and that is reported
            tally = tally.replaced(gap=f"{error}: its activity is left out", content=content.replaced(
                directories=(), files=(), moves=(), renamed=True))
            data = encode(tally)
        window = Window(tally, data, f"{self._mdt}:{self._after}:{last}:{self._token}:{int(self._clock.now() * 1e3)}")
        if moved:
            self._windows.append(window)
            self._begun = False
        else:  # the last one is enough
            self._unpublished = deque(each for each in self._unpublished
                                      if each.tally.last != each.tally.after or each.tally.gap)
        self._unpublished.append(window)
        if self._gap:  # directories may have been renamed, and files replaced
            self._new_table()
        self._reset_window(last)


def _without_name(sentence: str, mdt: str) -> str:
    """The sentence without the name of the MDT, which the leader adds."""
    return sentence.removeprefix(f"changelog of {mdt}: ")


class Reader:
    """A process that reads changelogs: it takes leases, and reads each MDT in a thread of its own."""

    def __init__(self, name: str, host: str, readers: Mapping[str, MdtReader], connection: Connection, names: Names,
                 settings: ReaderSettings, clock: SystemClock, secret: Callable[[], str]) -> None:
        """``secret`` returns the key that signs tallies; "" before the first leader has made it. Raises OSError."""
        self._secret = secret
        self._name = name
        self._host = host
        self._connection = connection
        self._names = names
        self._settings = settings
        self._clock = clock
        self._started = clock.now()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._leases = {mdt: Lease(connection.bucket(names.leases), mdt, f"{name} {random.getrandbits(64):x}",
                                   settings.lease_seconds, clock.monotonic) for mdt in readers}
        self._readers = readers
        self._problems: dict[str, str] = {}
        self._positions: dict[str, tuple[float, Position | None]] = {}
        """The leader's position of each MDT, and when it was read."""

    def _publish(self, mdt: str, window: Window) -> None:
        self._connection.publish(self._names.tally_subject(mdt), messages.signed(window.data, self._key()),
                                 window.message_id)

    def _key(self) -> str:
        """The key that signs tallies. Raises BrokerError without one: the tally is published later."""
        try:
            key = self._secret()
        except OSError as error:
            raise BrokerError(None, f"the key in the folder of the claim cannot be read: {error}") from error
        if not key:
            raise BrokerError(None, "the leader has made no key in the folder of the claim yet")
        return key

    def state(self) -> ReaderState:
        held = [mdt for mdt, lease in self._leases.items() if lease.held]
        every = self._readers.values()
        problem = self._connection.trouble or "; ".join(sorted(set(filter(None, self._problems.values()))))
        return ReaderState(
            self._name, self._host, started=self._started, seen=self._clock.now(),
            mdts={mdt: self._readers[mdt].read_position for mdt in held},
            waiting={mdt: self._readers[mdt].waiting for mdt in held}, records=sum(each.records for each in every),
            tallies=sum(each.tallies for each in every), rewinds=sum(each.rewinds for each in every),
            problem=problem)

    def start(self) -> list[threading.Thread]:
        """Start a thread for the leases and one for each MDT."""
        self._threads = [threading.Thread(target=self._keep_leases, name="tierd-leases", daemon=True), *(
            threading.Thread(target=self._keep_reading, args=(mdt,), name=f"tierd-{mdt}", daemon=True)
            for mdt in self._readers)]
        for thread in self._threads:
            thread.start()
        return self._threads

    @property
    def sound(self) -> bool:
        """Whether all threads are alive. Otherwise the process must end, so that another reader gets its leases."""
        return all(thread.is_alive() for thread in self._threads)

    @property
    def doing(self) -> str:
        state = self.state()
        return state.problem or f"reading {', '.join(sorted(state.mdts)) or 'nothing: others hold the leases'}"

    def join(self, seconds: float) -> None:
        for thread in self._threads:
            thread.join(seconds)

    def stop(self) -> None:
        self._stopping.set()
        with suppress(BrokerError):  # they expire
            for lease in self._leases.values():
                lease.give_up()

    def _keep_leases(self) -> None:
        described_at = float("-inf")
        while not self._stopping.is_set():
            self.step_leases()
            if self._clock.monotonic() - described_at >= STATE_SECONDS:
                described_at = self._clock.monotonic()
                self.describe()
            self._stopping.wait(self._settings.lease_seconds / LEASE_STEPS)

    def describe(self) -> None:
        with suppress(BrokerError):
            self._connection.bucket(self._names.readers).put(self._name, messages.encode(self.state()))

    def step_leases(self) -> None:
        """Renew the leases that this process holds, and take free ones up to the limit."""
        # in another order in each reader, so that they do not compete for the same; its own first
        shuffled = random.sample(tuple(self._leases.items()), len(self._leases))
        for mdt, lease in sorted(shuffled, key=lambda each: not each[1].held):
            count = sum(each.held for each in self._leases.values())
            if not lease.held and self._settings.max_mdts and count >= self._settings.max_mdts:
                continue
            before = lease.token
            try:
                lease.step()
            except BrokerError as error:
                self._note("lease", str(error.strerror or error))
                continue
            self._note("lease", "")
            if lease.token and lease.token != before:
                log.info("%s: this reader holds the lease (token %d)", mdt, lease.token)
            elif before and not lease.token:
                log.warning("%s: the lease is lost", mdt)

    def _keep_reading(self, mdt: str) -> None:
        while not self._stopping.is_set():
            busy = self.step(mdt)
            self._stopping.wait(0.01 if busy else STEP_SECONDS)

    def step(self, mdt: str) -> bool:
        """Read one MDT for a while. Returns whether there may be more to read at once."""
        lease, reader = self._leases[mdt], self._readers[mdt]
        token = lease.token
        if not lease.held or not token:
            self._problems[mdt] = ""  # from now on, reading it is the work of another reader
            return False
        before = reader.records
        try:
            position = self._position(mdt)
            if position is None:
                self._note(mdt, f"{mdt}: the leader has not published its position")
                return False
            reader.step(token, position, partial(self._publish, mdt))
            self._note(mdt, "")
        except BrokerError as error:
            self._note(mdt, str(error.strerror or error))
        except ValueError as error:
            self._note(mdt, f"{mdt}: the leader's position is not valid: {error}")
        return reader.records > before

    def _position(self, mdt: str) -> Position | None:
        """The leader's position, at most half a second old."""
        at, known = self._positions.get(mdt, (float("-inf"), None))
        if 0 <= self._clock.monotonic() - at < STEP_SECONDS:
            return known
        found = self._connection.bucket(self._names.positions).get(mdt)
        known = messages.decode(Position, found.data) if found is not None else None
        self._positions[mdt] = self._clock.monotonic(), known
        return known

    def _note(self, what: str, problem: str) -> None:
        """Keep a problem for the state, and log it when it changes."""
        before = self._problems.get(what, "")
        self._problems[what] = problem
        if problem != before:
            log.log(logging.WARNING if problem else logging.INFO, "%s", problem or f"{what}: works again")
