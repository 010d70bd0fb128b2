"""The leader's source of changelog records where readers on other nodes read the changelogs.

Each tally covers the records after one index up to another, and is added only at the leader's position:

* it begins at the position: it is added, and the position moves to its end;
* it ends at or before the position: it was delivered twice, or another reader was faster. It is dropped;
* it contains the position: two readers had read the same records. It is dropped, and read again from the position on;
* it begins after the position: an earlier tally is missing. It is dropped, and the reader reads again.

An MDT without tallies, or whose reader reports a problem, is blind: tierd starts no new acts. Records that Lustre has
dropped are a gap, after which the table begins again, empty. The leader acknowledges a tally only when its journal has
the position; only then does the reader clear the changelog.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Literal, Protocol

from annotated_types import Ge, Lt

from tierd.clock import Clock
from tierd.sense.changelogs.follow import ChangelogError, MissingRecordsError
from tierd.sense.changelogs.recording import RecordingCheck
from tierd.sense.changelogs.tallies import Tally
from tierd.text import utc_text

Natural = Annotated[int, Ge(0), Lt(1 << 63)]


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
    mdts: dict[str, Natural]
    """MDTs that it reads, with the index of the last record that it has read."""
    waiting: dict[str, Natural] = field(default_factory=dict)
    """Tallies that wait for the leader, by MDT."""
    records: Natural = 0
    """Records since its start."""
    tallies: Natural = 0
    rewinds: Natural = 0
    problem: str = ""
    """Why it reads nothing; "" while it works."""
    version: Literal[1] = 1


class TallyInbox(Protocol):
    """Where tallies arrive."""

    def receive(self) -> Sequence[ReceivedTally]:
        """The tallies that arrived since the last call. Raises OSError."""

    def confirm(self, done: Sequence[ReceivedTally]) -> None:
        """Drop tallies permanently. One that is not confirmed arrives again. Raises OSError."""

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


class TallySource:
    """Takes tallies in order, each record once."""

    def __init__(self, inbox: TallyInbox, positions: Mapping[str, int], clock: Clock, blind_seconds: float,
                 recording: RecordingCheck | None = None) -> None:
        """``positions`` has every MDT. Without a tally for ``blind_seconds`` an MDT is blind."""
        self._inbox = inbox
        self._clock = clock
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
            if (tally := self._taken(each)) is not None:
                if tally.gap:
                    gaps[tally.mdt].append(tally.gap)
                yield tally
                if tally.at_end and self._recording is not None and not tally.problem:
                    self._check(self._mdts[tally.mdt], tally, self._recording, gaps[tally.mdt])
        problems += self._problems()
        missing = [f"changelog of {mdt}: {why}" for mdt, whys in gaps.items() for why in whys]
        if missing:
            raise MissingRecordsError("; ".join(missing), problems)
        if problems:
            raise ChangelogError("; ".join(problems))

    def _taken(self, each: ReceivedTally) -> Tally | None:
        """A tally that begins at the position, which moves to its end. None for any other, which is dropped."""
        tally = each.tally
        state = self._mdts.get(tally.mdt) if tally is not None else None
        self._done.append(each)  # whether it counts or not: it would never count later
        if tally is None or state is None:
            self.outcomes[TallyOutcome.MALFORMED] += 1
        elif tally.token < state.token or (tally.token == state.token and tally.rereads < state.rereads):
            self.outcomes[TallyOutcome.STALE] += 1
        else:
            state.token = tally.token  # readers with an older one are stale from now on
            if tally.after == state.position:
                self.outcomes[TallyOutcome.ADDED] += 1
                state.position, state.reader, state.problem = tally.last, tally.reader, tally.problem
                state.since, state.heard = self._clock.now(), True
                self._renames += tally.content.renamed and len(self._mdts) > 1
                return tally
            if tally.last <= state.position:
                self.outcomes[TallyOutcome.DUPLICATE] += 1
            elif tally.after < state.position:
                self.outcomes[TallyOutcome.OVERLAPPING] += 1
                self._read_again(tally.mdt, state)
            else:
                self.outcomes[TallyOutcome.OUT_OF_ORDER] += 1
                state.problem = f"the tally after record {state.position} is missing"
                self._read_again(tally.mdt, state)
        return None

    def _read_again(self, mdt: str, state: _Mdt) -> None:
        state.rereads += 1  # tallies of readers that do not know it yet are stale
        self.rereads[mdt] += 1

    def _check(self, state: _Mdt, tally: Tally, recording: RecordingCheck, gaps: list[str]) -> None:
        verdict = recording.check(tally.mdt, tally.after, tally.last)
        state.not_recording = verdict.problem
        if verdict.gap:
            gaps.append(verdict.gap)

    def _problems(self) -> Iterable[str]:
        for mdt, state in self._mdts.items():
            if not 0 <= self._clock.now() - state.since <= self._blind_seconds:
                yield f"changelog of {mdt}: no reader has sent a tally since {utc_text(state.since)}"
            elif not state.heard:
                yield f"changelog of {mdt}: waiting for the first tally of a reader"
            elif why := state.problem or state.not_recording:
                yield f"changelog of {mdt}: {why}"

    def acknowledge(self) -> None:
        """Confirm tallies and publish positions. Call it only after the positions are in the journal. Raises OSError;
        the next call then does it again.
        """
        found = {mdt: Position(state.position, state.rereads, renames=self._renames)
                 for mdt, state in self._mdts.items()}
        changed = {mdt: position for mdt, position in found.items() if self._announced.get(mdt) != position}
        if changed:
            # before they are confirmed: a kill in between lets them come again, as duplicates
            self._inbox.announce(changed)
            self._announced.update(changed)
        if self._done:
            self._inbox.confirm(self._done)
            self._done = []
