"""The leader's source of changelog records where readers on other nodes read the changelogs.

Each tally covers the records after one index up to another, and is added only at the leader's position:

* it begins at the position: it is added, and the position moves to its end;
* it ends at or before the position: it was delivered twice, or another reader was faster. It is dropped;
* it contains the position: two readers had read the same records. It is dropped, and read again from the position on;
* it begins after the position: an earlier tally is missing. If it does not arrive in time, the reader reads again.

An MDT without tallies, or whose reader reports a problem, is blind: tierd begins nothing new. Records that Lustre has
dropped are a gap, after which tierd scans the known directories again. The leader acknowledges a tally only when its
journal has the position; only then does the reader clear the changelog.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Literal, Protocol

from annotated_types import Ge

from tierd.clock import Clock
from tierd.sense.changelogs.follow import ChangelogError, MissingRecordsError
from tierd.sense.changelogs.recording import RecordingCheck
from tierd.sense.changelogs.tallies import Tally

Natural = Annotated[int, Ge(0)]


class TallyOutcome(Enum):
    """What became of a tally. The values are labels of a metric."""

    ADDED = "added"
    DUPLICATE = "duplicate"
    OVERLAPPING = "overlapping"
    OUT_OF_ORDER = "out_of_order"
    STALE = "stale"
    """Of a reader whose lease another reader has taken, or sent before the reader was asked to read again."""
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class ReceivedTally:
    """A tally that arrived."""

    tally: Tally | None
    """None for a message that is not a tally."""
    receipt: object
    """What the inbox needs to confirm it."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far the leader is with an MDT."""

    index: Natural
    """Index of the last record that is in the leader's journal. Records up to it may be cleared."""
    rereads: Natural
    """How often the leader asked to read again from its position."""
    era: Natural = 0
    """Start of the leader, epoch seconds. Another leader has another table, which knows no file."""
    renames: Natural = 0
    """Tallies of any MDT with renames of directories since the start of the leader. Paths that readers know may have
    changed."""
    version: Literal[1] = 1


@dataclass(frozen=True, slots=True)
class ReaderState:
    """What a reader reports of itself every few seconds."""

    name: str
    host: str
    started: float
    seen: float
    """Epoch seconds by the reader's clock."""
    mdts: dict[str, int]
    """MDTs that it reads, with the index of the last record that it has read."""
    waiting: dict[str, int] = field(default_factory=dict)
    """Tallies that wait for the leader, by MDT."""
    records: int = 0
    """Records since its start."""
    tallies: int = 0
    rewinds: int = 0
    problem: str = ""
    """Why it reads nothing; "" while it works."""
    version: Literal[1] = 1


class TallyInbox(Protocol):
    """Where tallies arrive."""

    def receive(self) -> Sequence[ReceivedTally]:
        """The tallies that arrived since the last call. Raises OSError."""

    def confirm(self, done: Sequence[ReceivedTally]) -> None:
        """Drop tallies for good. One that is not confirmed arrives again. Raises OSError."""

    def announce(self, positions: Mapping[str, Position]) -> None:
        """Publish positions to the readers. Raises OSError."""

    def readers(self) -> Sequence[ReaderState]:
        """The readers that have reported lately. Raises OSError."""


@dataclass(frozen=True, slots=True)
class MdtProgress:
    """State of one MDT for status and metrics."""

    position: int
    token: int
    """Fencing token of the last lease."""
    reader: str
    age_seconds: float
    """Time since the last tally of the position; infinite before the first."""
    problem: str


@dataclass(slots=True)
class _Mdt:
    position: int
    since: float
    """Time of the start, or of the last tally."""
    rereads: int = 0
    token: int = 0
    reader: str = ""
    heard: bool = False
    """Whether a tally was added since the start."""
    problem: str = ""
    not_recording: str = ""
    waiting: list[tuple[Tally, ReceivedTally]] = field(default_factory=list)
    """Tallies that begin after the position."""
    waiting_since: float = 0.0


MAX_WAITING = 64
"""Tallies of an MDT that wait for an earlier one."""


class TallySource:
    """Takes tallies in order, each record once."""

    def __init__(self, inbox: TallyInbox, positions: Mapping[str, int], clock: Clock, gap_seconds: float,
                 blind_seconds: float, recording: RecordingCheck | None = None) -> None:
        """``positions`` has every MDT. A missing tally may arrive within ``gap_seconds``. Without any for
        ``blind_seconds`` an MDT is blind.
        """
        self._inbox = inbox
        self._clock = clock
        self._gap_seconds = gap_seconds
        self._blind_seconds = blind_seconds
        self._recording = recording
        now = clock.now()
        self._mdts = {mdt: _Mdt(index, now) for mdt, index in positions.items()}
        self._announced: dict[str, Position] = {}
        self._done: list[ReceivedTally] = []
        """Tallies to confirm once the journal has the positions."""
        self._renames = 0
        self.readers: Sequence[ReaderState] = ()
        """Readers that have reported lately, as of the last call."""
        self.outcomes: Counter[TallyOutcome] = Counter()
        self.rereads: Counter[str] = Counter()
        """How often readers were asked to read again, by MDT."""

    @property
    def positions(self) -> Mapping[str, int]:
        """Index of the last record of each MDT that was added; 0 before the first."""
        return {mdt: state.position for mdt, state in self._mdts.items()}

    @property
    def progress(self) -> Mapping[str, MdtProgress]:
        now = self._clock.now()
        return {mdt: MdtProgress(state.position, state.token, state.reader,
                                 max(0.0, now - state.since) if state.heard else float("inf"),
                                 state.problem or state.not_recording)
                for mdt, state in self._mdts.items()}

    def batches(self) -> Iterator[Tally]:
        """Tallies since the last call. Raises the errors of ``Follower.batches`` after the last tally."""
        problems: list[str] = []
        gaps: dict[str, list[str]] = {mdt: [] for mdt in self._mdts}
        try:
            received: Sequence[ReceivedTally] = self._inbox.receive()
        except OSError as error:
            received = ()
            problems.append(f"tallies of readers: {error.strerror or error}")
        with suppress(OSError):  # it is for status only
            self.readers = self._inbox.readers()
        for each in received:
            self._sort_in(each)
        for mdt, state in self._mdts.items():
            for tally in self._in_order(mdt, state):
                if tally.gap:
                    gaps[mdt].append(tally.gap)
                yield tally
                if tally.at_end and self._recording is not None and not tally.problem:
                    self._check(mdt, state, tally, self._recording, gaps[mdt])
        problems += self._problems()
        missing = [f"changelog of {mdt}: {why}" for mdt, whys in gaps.items() for why in whys]
        if missing:
            raise MissingRecordsError("; ".join(missing + problems), [mdt for mdt, whys in gaps.items() if whys])
        if problems:
            raise ChangelogError("; ".join(problems))

    def _sort_in(self, each: ReceivedTally) -> None:
        tally = each.tally
        state = self._mdts.get(tally.mdt) if tally is not None else None
        if tally is None or state is None:
            self._drop(each, TallyOutcome.MALFORMED)
        elif tally.token < state.token or (tally.token == state.token and tally.rereads < state.rereads):
            self._drop(each, TallyOutcome.STALE)
        else:
            state.token = tally.token
            state.waiting.append((tally, each))

    def _drop(self, each: ReceivedTally, outcome: TallyOutcome) -> None:
        self.outcomes[outcome] += 1
        self._done.append(each)

    def _in_order(self, mdt: str, state: _Mdt) -> Iterator[Tally]:
        """Yield the tallies that begin at the position, one after the other."""
        while (tally := self._next(mdt, state)) is not None:
            state.position, state.reader, state.problem = tally.last, tally.reader, tally.problem
            state.since, state.heard = self._clock.now(), True
            self._renames += tally.content.renamed and len(self._mdts) > 1
            yield tally
        if not state.waiting:
            state.waiting_since = 0.0
        elif not state.waiting_since:
            state.waiting_since = self._clock.now()
        elif len(state.waiting) > MAX_WAITING or not 0 <= self._clock.now() - state.waiting_since < self._gap_seconds:
            self._read_again(mdt, state, TallyOutcome.OUT_OF_ORDER)

    def _next(self, mdt: str, state: _Mdt) -> Tally | None:
        """The tally at the position, which waits no longer. Drops those before it."""
        for tally, received in sorted(state.waiting, key=lambda pair: (pair[0].after, pair[0].last)):
            if tally.after == state.position or tally.last <= state.position:
                state.waiting.remove((tally, received))
                is_next = tally.after == state.position
                self._drop(received, TallyOutcome.ADDED if is_next else TallyOutcome.DUPLICATE)
                if is_next:
                    return tally
            elif tally.after < state.position:
                self._read_again(mdt, state, TallyOutcome.OVERLAPPING)
                return None
        return None

    def _read_again(self, mdt: str, state: _Mdt, why: TallyOutcome) -> None:
        """Ask for the records after the position, and drop what waits."""
        for _, received in state.waiting:
            self._drop(received, why)
        state.waiting.clear()
        state.waiting_since = 0.0
        state.rereads += 1
        self.rereads[mdt] += 1

    def _check(self, mdt: str, state: _Mdt, tally: Tally, recording: RecordingCheck, gaps: list[str]) -> None:
        verdict = recording.check(mdt, tally.after, tally.last)
        state.not_recording = verdict.problem
        if verdict.gap:
            gaps.append(verdict.gap)
        if verdict.anew:
            state.position = 0
            self._read_again(mdt, state, TallyOutcome.OUT_OF_ORDER)
            gaps.append("it has restarted")

    def _problems(self) -> Iterable[str]:
        now = self._clock.now()
        for mdt, state in self._mdts.items():
            silent_seconds = now - state.since
            if not 0 <= silent_seconds <= self._blind_seconds:
                yield f"changelog of {mdt}: no reader has sent a tally for {max(0.0, silent_seconds):.0f} s"
            elif not state.heard:
                yield f"changelog of {mdt}: waiting for the first tally of a reader"
            elif state.waiting:
                yield f"changelog of {mdt}: the tally after record {state.position} is missing"
            elif why := state.problem or state.not_recording:
                yield f"changelog of {mdt}: {why}"

    def acknowledge(self) -> None:
        """Confirm tallies and publish positions. Call it only after the positions are in the journal.

        Raises OSError; the next call then does it again.
        """
        found = {mdt: Position(state.position, state.rereads, renames=self._renames)
                 for mdt, state in self._mdts.items()}
        changed = {mdt: position for mdt, position in found.items() if self._announced.get(mdt) != position}
        if changed:
            self._inbox.announce(changed)
            self._announced.update(changed)
        if self._done:
            self._inbox.confirm(self._done)
            self._done = []
