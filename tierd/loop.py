"""One cycle after another: sense, detect, decide, act, verify; and a sentence about each. The only place that waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lustre.changelog import Record
from lustre.filesystem import Filesystem
from lustre.layout import explain
from tierd.act.gate import Gate, Outcome
from tierd.act.journal import Journal
from tierd.clock import Clock
from tierd.config import Settings
from tierd.decide.small_files_to_flash import reserved
from tierd.engine import Engine, Thought
from tierd.model import DirectoryActivity, Finding, Window
from tierd.sense import space
from tierd.sense.changelogs import ActivityTable
from tierd.sense.readings import Reading, window
from tierd.text import quoted
from tierd.verify import Judgement, judge

Say = Callable[[str], None]


class Source(Protocol):
    """Where readings come from."""

    def reading(self) -> Reading:
        """Counters now. Raises OSError when they cannot be had: then nothing is known and nothing is done."""

    def records(self) -> Iterable[Record]:
        """Changelog records since the last call."""


@dataclass(slots=True)
class Case:
    """A finding that was acted on, until its acts are judged."""

    finding: Finding
    number: int
    acted_at: float = 0.0
    defaults: list[Outcome] = field(default_factory=list)
    judged: bool = False


class Daemon:
    """State between cycles: the last reading, the engine's history, the open cases."""

    def __init__(self, source: Source, filesystem: Filesystem, gate: Gate, journal: Journal, clock: Clock,
                 settings: Settings, say: Say) -> None:
        self._source = source
        self._filesystem = filesystem
        self._gate = gate
        self._journal = journal
        self._clock = clock
        self._settings = settings
        self._say = say
        self._engine = Engine(settings)
        self._table = ActivityTable(filesystem.path_of, own_jobs=settings.own_jobs)
        self._last: Reading | None = None
        self._cases: dict[tuple[str, str, str], Case] = {}
        self._refused: dict[str, None] = {}

    def run(self, cycle_seconds: float) -> None:
        """Cycle until the clock is woken."""
        while not self._clock.wait(cycle_seconds):
            self.cycle(self._clock.now() + cycle_seconds / 2)

    def cycle(self, move_until: float) -> None:
        """One cycle; moves that wait go until then at the latest."""
        try:
            reading = self._source.reading()
            self._table.add(self._source.records())
        except OSError as error:
            self._last = None  # what happens meanwhile will not be guessed
            self._say(f"blind: {error}; nothing is done until it can be seen again")
            return
        last, self._last = self._last, reading
        if last is None or reading.time <= last.time:
            return
        thought = self._engine.think(window(last, reading), self._table.of_job)
        self._tell(thought)
        self._act(thought)
        self._move(move_until)
        self._judge(reading.time)
        self._watch_room()

    @property
    def windows(self) -> Sequence[Window]:
        """History, for reports."""
        return self._engine.windows

    @property
    def cases(self) -> Sequence[Case]:
        """What was acted on."""
        return tuple(self._cases.values())

    def _tell(self, thought: Thought) -> None:
        for finding in thought.begun:
            self._say(f"FOUND {finding.kind}: {finding.sentence}")
            self._say(f"      on {', '.join(finding.targets)}, in "
                      f"{', '.join(map(quoted, finding.directories)) or 'directories not known yet'}")
        for finding in thought.ended:
            self._say(f"over: {finding.aggressor} no longer slows {finding.victim}")

    def _act(self, thought: Thought) -> None:
        for finding in thought.findings:
            if finding.advice_only or finding.key in self._cases:
                continue
            activities = self._activities(finding)
            room = space.room(self._filesystem, finding.directories)
            plan = self._engine.plan(finding, activities, room)
            for refusal in plan.refusals:
                if refusal not in self._refused:
                    self._refused[refusal] = None
                    self._say(f"not done: {refusal}")
            if not plan.actions:
                continue
            case = self._cases[finding.key] = Case(finding, self._journal.found(finding), self._clock.now())
            for outcome in self._gate.submit(plan.actions, case.number):
                self._say_default(outcome)
                if outcome.result in {"done", "dry-run"}:
                    case.defaults.append(outcome)
            moves = [a for a in plan.actions if a.kind == "migrate"]
            if moves:
                megabytes = sum(a.size_bytes for a in moves) / 1e6
                self._say(f"QUEUED {len(moves)} existing files, {megabytes:.0f} MB, to move to "
                          f"{explain(moves[0].layout)}: {moves[0].reason}")

    def _activities(self, finding: Finding) -> list[DirectoryActivity]:
        since = finding.time - self._settings.history_seconds
        named = [a for a in self._table.of_job(finding.aggressor, since) if a.directory in finding.directories]
        return space.measured(self._filesystem, named)

    def _say_default(self, outcome: Outcome) -> None:
        action = outcome.action
        before = "none of its own" if outcome.before is None else explain(outcome.before)
        verb = {"done": "SET", "dry-run": "WOULD SET", "refused": "REFUSED", "failed": "FAILED"}[outcome.result]
        detail = f" ({outcome.detail})" if outcome.detail else ""
        self._say(f"{verb} default layout of {quoted(action.directory)}: {explain(action.layout)}; before: {before}"
                  f"{detail}")
        self._say(f"      because {action.reason}")

    def _move(self, until: float) -> None:
        outcomes = self._gate.pump(until)
        moved = [o for o in outcomes if o.result in {"done", "dry-run"}]
        if moved:
            verb = "MOVED" if moved[0].result == "done" else "WOULD MOVE"
            names = ", ".join(quoted(o.action.path) for o in moved[:2])
            more = f" and {len(moved) - 2} more" if len(moved) > 2 else ""
            self._say(f"{verb} {names}{more} to flash; {self._gate.waiting} wait")
        for outcome in outcomes:
            if outcome.result in {"refused", "failed"}:
                self._say(f"left alone: {quoted(outcome.action.path)}: {outcome.detail}")

    def _judge(self, now: float) -> None:
        for case in self._cases.values():
            if case.judged:
                continue
            judgement = judge(case.finding, case.acted_at, self._engine.windows, now, self._settings.verify)
            if judgement.verdict == "too-early":
                continue
            case.judged = True
            self._conclude(case, judgement)

    def _conclude(self, case: Case, judgement: Judgement) -> None:
        numbers = (f"{case.finding.victim}: {judgement.usual / 1e6:.1f} MB/s before the noise, "
                   f"{judgement.contended / 1e6:.1f} during, {judgement.after / 1e6:.1f} after")
        if judgement.verdict == "helped":
            self._say(f"KEPT: it helped. {numbers} ({judgement.won_back:.0%} of the loss won back)")
        elif judgement.verdict == "cannot-tell":
            self._say(f"KEPT: it cannot be judged, one of the two jobs has gone. {numbers}")
        else:
            self._undo(case, f"it did not help: {numbers}")

    def _undo(self, case: Case, reason: str) -> None:
        dropped = self._gate.drop(case.finding.key)
        for outcome in case.defaults:
            undone = self._gate.restore(outcome, reason)
            self._say(f"{undone.result.upper()} default layout of {quoted(outcome.action.directory)}: {undone.detail}")
        if dropped:
            self._say(f"dropped {dropped} waiting moves: {reason}")
        case.defaults.clear()
        case.judged = True

    def _watch_room(self) -> None:
        """Take defaults back while there is still room for what is being written."""
        if not any(case.defaults for case in self._cases.values()):
            return
        settings = self._settings.small_files_to_flash
        room = space.room(self._filesystem, ())
        if room.avail_bytes.get(settings.flash_pool, 0) < reserved(room, settings):
            for case in self._cases.values():
                if case.defaults:
                    self._undo(case, f"pool {settings.flash_pool!r} is down to its reserve")
