"""One cycle: sense, detect, decide, act, verify. What has state between cycles is put together here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from lustre.filesystem import Filesystem
from tierd.act.entry import Entry
from tierd.act.gate import Gate
from tierd.act.hold import Hold, NoClaim
from tierd.act.journal import Journal
from tierd.act.orders import Intent
from tierd.act.undo import Undo
from tierd.clock import Clock
from tierd.config import Settings
from tierd.cycle.cases import Case, reopened
from tierd.cycle.casework import Casework
from tierd.cycle.judging import Judging
from tierd.cycle.learning import AskHistory, Learning
from tierd.cycle.looking import Looking, Source
from tierd.cycle.planning import Enrich, Planning, as_they_are
from tierd.cycle.tally import Tally
from tierd.cycle.telling import Key, Say, Telling
from tierd.cycle.thinking import Thinking
from tierd.decide.small_files_to_flash import Plan
from tierd.engine import Engine
from tierd.history import History
from tierd.model import Finding, Window
from tierd.policies import JUDGED
from tierd.sense.changelogs import ActivityTable
from tierd.sense.ears import Ears
from tierd.sense.echo import Echo
from tierd.sense.facts import Clients, Gatherer
from tierd.sense.inventory import ColdestFirst, Inventory, nobody_knows
from tierd.sense.own_work import OwnWork


class Daemon:
    """What goes on from one cycle to the next."""

    def __init__(self, source: Source, filesystem: Filesystem, gate: Gate, undo: Undo, journal: Journal,
                 clock: Clock, settings: Settings, say: Say, claim: Hold | None = None,
                 clients: Clients | None = None, metadata_targets: int = 0, enriched: Enrich = as_they_are,
                 own_nids: Callable[[], Collection[str]] = tuple,
                 metadata_free: Callable[[], float | None] = lambda: None,
                 coldest_first: ColdestFirst = nobody_knows, history: AskHistory | None = None,
                 unnamed: Callable[[], str] = str) -> None:
        self._gate = gate
        self._clock = clock
        self._settings = settings
        self._claim = claim or NoClaim()
        self._engine = Engine(settings)
        echo = Echo(settings.own_jobs, own_nids, clock.now, journal.moved)
        self._table = ActivityTable(filesystem.path_of, is_echo=echo)
        inventory = Inventory(filesystem, settings.flash_pools,
                              lambda: journal.directories() | set(settings.cold_to_disk.directories), coldest_first)
        gatherer = Gatherer(filesystem, self._table, inventory, settings.flash_pools, metadata_targets, clients)
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
                                  settings)
        self._planning = Planning(self._engine, filesystem, gate, journal, self._table, clock, settings, enriched,
                                  metadata_free)
        self._casework = Casework(self._cases, self._planning, gate, journal, self._telling, echo, filesystem, clock,
                                  settings)
        self._judging = Judging(self._cases, self._engine, gate, undo, journal, self._telling, filesystem, clock,
                                settings, self.tally)

    def cycle(self, move_until: float) -> None:
        """One cycle; moves that wait go until then at the latest."""
        begun = self._clock.now()
        self._cycle(move_until)
        self.tally.cycles += 1
        self.tally.last_cycle_at = self._clock.now()
        self.tally.cycle_seconds = self._clock.now() - begun

    def _cycle(self, move_until: float) -> None:
        seen = self._looking.look(move_until)
        if self._looking.blind:
            self._thinking.fresh = ()
            self._go_on_blind()
        elif seen is not None:
            if seen.window is not None:
                self._thinking.think(seen.window, seen.time)
            self._go_on(seen.time, move_until)

    def _go_on(self, now: float, move_until: float) -> None:
        """Act on what is known, judge what was done."""
        try:
            if self._may_act():
                deaf, alone = "changelog" in self.faults, "mover" not in self.faults
                if alone and not deaf and not self._gate.stance.held and not self._gate.stance.draining:
                    self._casework.act(self._thinking.fresh)
                if alone and not self._gate.stance.held:
                    self._casework.take_up()
                    self._casework.move(move_until, asked_for_only=deaf)
                self._judging.judge(now)
                self._judging.watch_room()
        except OSError as error:
            self._telling.say(f"the file system does not answer: {error}; nothing more is done in this cycle")

    def _go_on_blind(self) -> None:
        """Layouts that were set go on filling the flash pool, which can be seen without any source."""
        try:
            if self._may_act():
                self._judging.watch_room()
        except OSError as error:
            self._telling.say(f"the file system does not answer either: {error}")

    def _may_act(self) -> bool:
        """Whether anything may be changed in this cycle: nobody has paused it, and no other tierd is at work.

        Outside of the maintenance windows things are still judged, and taken back.
        """
        self._telling.held(self._gate.stance.held)
        wanted = self._settings.modes - {"observe", "recommend"} or self._gate.waiting
        acting = wanted and not self._settings.act.dry_run
        self._telling.fault("claim", self._claim.hold() if acting else "")
        return not self._gate.stance.paused and not self._gate.stance.stopped and "claim" not in self.faults

    def carry_out(self, kind: str, by: str, what: str, found: Intent) -> None:
        """Put what somebody asked for into the queue."""
        self._casework.carry_out(kind, by, what, found)

    def taken_back(self, entry: Entry, by: str) -> None:
        """Somebody has taken an act back by hand."""
        self._judging.taken_back(entry, by)

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

    @property
    def windows(self) -> Sequence[Window]:
        """History, for reports."""
        return self._engine.windows

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
        return tuple(self._cases.values())
