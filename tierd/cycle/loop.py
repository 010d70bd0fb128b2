"""One cycle: sense, detect, decide, act, verify. What has state between cycles is put together here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from threading import RLock

from lustre.filesystem import Filesystem
from tierd.act.gate import Gate
from tierd.act.hold import Hold, NoClaim
from tierd.act.journal import Entry, Journal, JournalError
from tierd.act.orders import Intent
from tierd.act.undo import Undo
from tierd.clock import Clock
from tierd.config import Settings
from tierd.cycle.cases import Case, reopened
from tierd.cycle.casework import Casework
from tierd.cycle.judging import Judging
from tierd.cycle.learning import AskHistory, Learning
from tierd.cycle.looking import Looking, Seen, Source
from tierd.cycle.planning import Enrich, Planning, as_they_are
from tierd.cycle.tally import Tally
from tierd.cycle.telling import Key, Say, Telling
from tierd.cycle.thinking import Thinking
from tierd.decide.small_files_to_flash import Plan
from tierd.engine import Engine
from tierd.history import History
from tierd.model import Finding, Window
from tierd.policies import JUDGED
from tierd.reasons import Refusal
from tierd.sense.changelogs import ActivityTable
from tierd.sense.ears import Ears
from tierd.sense.echo import Echo
from tierd.sense.facts import Clients, Gatherer, LatestFacts
from tierd.sense.inventory import ColdestFirst, Inventory, nobody_knows
from tierd.sense.own_work import OwnWork

ACT_SECONDS = 0.5
"""So often is looked whether a default layout or a move can go."""
FACTS_SECONDS = 15.0
"""So often are the facts gathered that the detectors need."""


class Daemon:
    """What goes on from one cycle to the next: seven activities, each in its own rhythm.

    ``observe`` (counters, findings), ``take_in_records`` (changelogs), ``gather_facts``, ``plan``, ``set_defaults``,
    ``move`` and ``judge`` may each run in a thread of its own. None holds :attr:`lock` while it asks the file system or
    a source for something, so none waits for what another waits for. :meth:`cycle` runs one step of each in turn.
    """

    def __init__(self, source: Source, filesystem: Filesystem, gate: Gate, undo: Undo, journal: Journal,
                 clock: Clock, settings: Settings, say: Say, claim: Hold | None = None,
                 clients: Clients | None = None, metadata_targets: int = 0, enriched: Enrich = as_they_are,
                 own_nids: Callable[[], Collection[str]] = tuple,
                 metadata_free: Callable[[], float | None] = lambda: None,
                 coldest_first: ColdestFirst = nobody_knows, history: AskHistory | None = None,
                 unnamed: Callable[[], str] = str, executor: Executor | None = None) -> None:
        """``executor`` asks the file system several things at the same time; without one they are asked in turn."""
        self._gate = gate
        self._clock = clock
        self._settings = settings
        self._claim = claim or NoClaim()
        self.lock = RLock()
        """Guards the cases. Held for moments only."""
        self._engine = Engine(settings)
        echo = Echo(settings.own_jobs, own_nids, clock.now, journal.was_moved)
        self._table = ActivityTable(filesystem.path_of, is_echo=echo, executor=executor)
        inventory = Inventory(filesystem, settings.flash_pools,
                              lambda: journal.act_directories.all() | set(settings.cold_to_disk.directories),
                              coldest_first)
        gatherer = Gatherer(filesystem, self._table, inventory, settings.flash_pools, metadata_targets, clients)
        self._facts = LatestFacts(gatherer.facts)
        since = clock.now() - settings.verify.moving_seconds - settings.history_seconds
        self._cases: dict[Key, Case] = {case.finding.key: case for case in reopened(journal, since)
                                        if case.finding.kind in JUDGED}
        self.tally = Tally()
        self._telling = Telling(say, journal, clock, settings, self.tally)
        self._looking = Looking(source, Ears(self._table, filesystem, clock.now), self._telling, clock, self.tally,
                                settings.sense.cycle_seconds, unnamed)
        learn = Learning(history, self._engine, self._telling, clock)
        own_work = OwnWork(settings.own_jobs, journal.moved_since)
        self._thinking = Thinking(self._engine, self._table, gatherer, learn, own_work, self._telling, self._cases,
                                  settings, self._facts, self.lock)
        self._planning = Planning(self._engine, filesystem, gate, journal, self._table, clock, settings, enriched,
                                  metadata_free, executor)
        self._casework = Casework(self._cases, self._planning, gate, journal, self._telling, echo, filesystem, clock,
                                  settings, self.lock)
        self._judging = Judging(self._cases, lambda: self._thinking.windows, gate, undo, journal, self._telling,
                                filesystem, clock, settings, self.tally, self.lock, executor)
        self._seen: Seen | None = None
        self._seen_at = 0.0

    def cycle(self, move_seconds: float) -> None:
        """One step of each activity in turn; moves that wait go for so long at the most."""
        begun = self._clock.now()
        seen = self._looking.look()
        if not self._looking.blind:
            self.take_in_records()
        self._think(seen)
        self.plan()
        self.set_defaults()
        self.move(move_seconds)
        self.judge()
        self._ended(begun)

    def observe(self) -> None:
        """Look at the counters and at what they come to."""
        begun = self._clock.now()
        self._think(self._looking.look())
        self._ended(begun)

    def _ended(self, begun: float) -> None:
        self.tally.cycles += 1
        self.tally.last_cycle_at = self._clock.now()
        self.tally.cycle_seconds = self._clock.now() - begun

    def _think(self, seen: Seen | None) -> None:
        if self._looking.blind:
            self._thinking.fresh = ()
        elif seen is not None and seen.window is not None:
            self._thinking.think(seen.window, seen.time)
            self._casework.drop_departed(self._thinking.windows)
        self._seen, self._seen_at = seen, self._clock.now()

    def take_in_records(self) -> None:
        """Take in changelog records; catch up with missed ones for a part of a cycle."""
        self._looking.take_in_records(self._clock.now() + self._settings.sense.cycle_seconds / 2)

    def gather_facts_beforehand(self) -> None:
        """From now on ``gather_facts`` is called by an activity of its own: detectors never wait for it."""
        self._facts.leave_to_others()

    def gather_facts(self) -> None:
        """Look at clients, room and layouts, for the detectors; from then on they take what this found last."""
        self._facts.gather(self._clock.now())

    def plan(self) -> None:
        """Plan for what is found, and look at what waited before a restart. Nothing is changed here."""
        self._forget()
        if self._knows() and self._take_claim():
            with self._unless_away():
                deaf, alone = "changelog" in self.faults, "mover" not in self.faults
                if alone and not deaf and not self._gate.stance.held and not self._gate.stance.draining:
                    self._casework.act(self._thinking.fresh)
                if alone and not self._gate.stance.held:
                    self._casework.take_up()

    def _forget(self) -> None:
        """Let closed cases go, with what was kept for them."""
        gone = self._casework.forget_closed()
        if not gone:
            return
        self._judging.adopt(gone)
        victims = {case.finding.victim for case in self.cases} | {finding.victim for finding in self.findings}
        holding = {finding.key for finding in self.findings}
        for case in gone:
            if case.finding.key not in holding:
                self._telling.forget(case.finding.key)
            if case.finding.victim not in victims:
                self.tally.gained.pop(case.finding.victim, None)
                self.tally.gains.pop(case.finding.victim, None)

    def set_defaults(self) -> None:
        """Set the default layouts that wait, as far as the budget goes."""
        with self._unless_away():
            while self._may_begin() and self._casework.set_defaults():
                pass

    def move(self, seconds: float) -> int:
        """Let moves go for so long, as far as the budget goes; how many came to an end."""
        moved = 0
        with self._unless_away():
            if self._may_begin():
                until = self._clock.now() + seconds
                moved = self._casework.move(until, asked_for_only="changelog" in self.faults)
        return moved

    def judge(self) -> None:
        """Judge what was done, and take back what is to be. Outside of the maintenance windows too."""
        with self._unless_away():
            if not self._allowed():
                return
            if self._seen is not None:
                self._judging.judge(self._seen.time)
            if self._seen is not None or self._looking.blind:
                # layouts that were set go on filling the flash pool, which can be seen without any source
                self._judging.watch_room()

    @contextmanager
    def _unless_away(self) -> Iterator[None]:
        try:
            yield
        except JournalError:
            raise
        except OSError as error:
            self._telling.say(f"the file system does not answer: {error}; it is tried again in the next cycle")

    def _knows(self) -> bool:
        """Whether the last look saw something, and is not too old to act upon."""
        return self._seen is not None and not self.stale_for

    @property
    def stale_for(self) -> float:
        """How old the last look is, where that is too old to act upon; else 0."""
        age = self._clock.now() - self._seen_at
        limit = self._settings.sense.stale_seconds + self._settings.sense.cycle_seconds
        return age if self._seen is not None and age > limit else 0.0

    @property
    def hindrances(self) -> tuple[str, ...]:
        """Why acts are not begun at present, as far as it follows from what is seen."""
        names = "blind", "mover", "claim", "changelog"
        return tuple(self.faults[name] for name in names if name in self.faults)

    def _may_begin(self) -> bool:
        """Whether an act may be begun: we know what goes on, and nobody else moves files."""
        return self._knows() and self._allowed() and "mover" not in self.faults and not self._gate.stance.held

    def _allowed(self) -> bool:
        """Whether anything may be changed at all: nobody has paused it, and no other tierd is at work."""
        return not self._gate.stance.paused and not self._gate.stance.stopped and "claim" not in self.faults

    def _take_claim(self) -> bool:
        """The same, with the claim taken where it is needed."""
        self._telling.held(self._gate.stance.held)
        wanted = self._settings.modes - {"observe", "recommend"} or self._gate.waiting
        acting = wanted and not self._settings.act.dry_run
        self._telling.fault("claim", self._claim.hold() if acting else "")
        return self._allowed()

    def carry_out(self, kind: str, by: str, what: str, found: Intent) -> None:
        """Put what somebody asked for into the queue."""
        self._casework.carry_out(kind, by, what, found)

    def taken_back(self, entry: Entry, by: str) -> None:
        """Somebody has taken an act back by hand."""
        self._judging.taken_back(entry, by)

    def take_back(self, number: int, by: str) -> int:
        """Somebody takes back all that was done for a finding: nothing more is; how many moves were dropped."""
        return self._judging.end(number, by)

    def why_not(self, finding: Finding) -> tuple[Refusal, ...]:
        """What keeps tierd from doing more about a finding, as of the last plan."""
        return self._casework.refusals(finding.key)

    def preview(self) -> list[tuple[Finding, Plan, Case | None]]:
        """What would be planned now for each finding, without doing it; and its case, where it was acted on before."""
        return [(finding, self._planning.as_it_would_go(finding), self._cases.get(finding.key))
                for finding in self.findings if not finding.advice_only]

    def number(self, finding: Finding) -> int:
        """Its number in the journal."""
        return self._telling.number(finding)

    @property
    def history(self) -> History:
        """What was seen, for the daemon that takes this one's place at a reload."""
        return self._engine.history

    def remember(self, history: History) -> None:
        """Go on from what the daemon before has seen."""
        self._engine.remember(history)
        self._thinking.windows = history.windows

    @property
    def windows(self) -> Sequence[Window]:
        """History, for reports."""
        return self._thinking.windows

    @property
    def faults(self) -> Mapping[str, str]:
        """What cannot be seen at present, by source."""
        return self._telling.faults

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What holds now."""
        return self._thinking.findings

    @property
    def cases(self) -> Sequence[Case]:
        """What was acted on."""
        with self.lock:
            return tuple(self._cases.values())
