"""One cycle after another: sense, detect, decide, act, verify; and a sentence about each. The only place that waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from lustre.changelog import Record
from lustre.filesystem import Filesystem
from lustre.layout import Layout
from tierd import narrate
from tierd.act import left_over
from tierd.act.claim import Hold, NoClaim
from tierd.act.gate import Gate
from tierd.act.journal import Journal
from tierd.act.orders import Intent
from tierd.act.undo import Undo
from tierd.cases import Case, reopened
from tierd.clock import Clock
from tierd.config import Settings
from tierd.decide import benefit
from tierd.decide.small_files_to_flash import Plan, reserved
from tierd.detect import attribution
from tierd.engine import Engine, Thought
from tierd.model import Action, DirectoryActivity, Finding, Window
from tierd.policies import JUDGED
from tierd.reasons import Reason, Refusal
from tierd.sense import space
from tierd.sense.changelogs import ActivityTable
from tierd.sense.ears import Ears
from tierd.sense.echo import Echo
from tierd.sense.facts import Clients, Gatherer
from tierd.sense.inventory import Inventory
from tierd.sense.readings import IMPLAUSIBLE, UNKNOWN_RECOVERY, Reading, window
from tierd.text import quoted, without_figures
from tierd.verify import Act, Judgement, judge

OTHER_MOVER_SECONDS = 300.0
"""A directory whose files somebody else has moved is left alone for so long after."""
Say = Callable[[str], None]


Enrich = Callable[[list[DirectoryActivity], Filesystem], list[DirectoryActivity]]
"""Adds to activities what other sources know of their directories and files."""


def as_they_are(activities: list[DirectoryActivity], _: Filesystem) -> list[DirectoryActivity]:
    """Where there are no other sources."""
    return activities


class Source(Protocol):
    """Where readings come from."""

    def reading(self) -> Reading:
        """Counters now. Raises OSError when they cannot be had: then nothing is known and nothing is done."""

    def records(self) -> Iterable[Record]:
        """Changelog records since the last call."""


@dataclass(slots=True)
class Tally:
    """What metrics count, since the start."""

    cycles: int = 0
    last_cycle_at: float = 0.0
    cycle_seconds: float = 0.0
    """Of the last cycle."""
    records: int = 0
    """Changelog records taken in."""
    found: Counter[str] = field(default_factory=Counter)
    """By kind of finding."""
    verdicts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    """By the short name of the reason."""
    found_at: dict[str, float] = field(default_factory=dict)
    """When a finding of each kind last began."""
    gained: dict[str, float] = field(default_factory=dict)
    """Victim to the part of its loss that was won back, by the last judgement."""
    gains: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Victim to what it had lost, and what of it was won back, in bytes per second."""
    changelog_lag_seconds: float = 0.0
    """Age of the oldest record of the last cycle, when it was taken in."""


class Daemon:
    """State between cycles: the last reading, the engine's history, the open cases."""

    def __init__(self, source: Source, filesystem: Filesystem, gate: Gate, undo: Undo, journal: Journal,
                 clock: Clock, settings: Settings, say: Say, claim: Hold | None = None,
                 clients: Clients | None = None, metadata_targets: int = 0, enriched: Enrich = as_they_are,
                 own_nids: Callable[[], Collection[str]] = tuple,
                 metadata_free: Callable[[], float | None] = lambda: None) -> None:
        self._source = source
        self._filesystem = filesystem
        self._gate = gate
        self._undo_act = undo
        self._journal = journal
        self._clock = clock
        self._settings = settings
        self._say = say
        self._engine = Engine(settings)
        self._echo = Echo(settings.own_jobs, own_nids, clock.now)
        self._table = ActivityTable(filesystem.path_of, is_echo=self._echo)
        self._ears = Ears(self._table, filesystem, clock.now)
        self._claim = claim or NoClaim()
        self._metadata_free = metadata_free
        flash_pool = settings.small_files_to_flash.flash_pool
        inventory = Inventory(filesystem, flash_pool,
                              lambda: journal.directories() | set(settings.cold_to_disk.directories))
        self._gatherer = Gatherer(filesystem, self._table, inventory, flash_pool, metadata_targets, clients)
        self._enriched = enriched
        self._last: Reading | None = None
        self._numbers: dict[tuple[str, str, str], int] = {}
        """Of findings that hold or were acted on, in the journal."""
        since = clock.now() - settings.verify.moving_seconds - settings.history_seconds
        self._cases: dict[tuple[str, str, str], Case] = {case.finding.key: case for case in reopened(journal, since)
                                                         if case.finding.kind in JUDGED}
        self._detectors = tuple(configured.detector.name for configured in settings.detect)
        self._planned: dict[tuple[str, str, str], float] = {}
        """Findings without a victim: as of which look they were planned for last."""
        self._refused: set[tuple[tuple[str, str, str], str]] = set()
        self._recommended: set[tuple[tuple[str, str, str], str]] = set()
        self._findings: tuple[Finding, ...] = ()
        self._fresh: tuple[Finding, ...] = ()
        """The same, while nothing has hidden the world since."""
        self.tally = Tally()
        self._held = ""
        self._faults: dict[str, str] = {}
        """What cannot be seen at present, in words; "" for a source that is well again."""

    def run(self, cycle_seconds: float) -> None:
        """Cycle until the clock is woken."""
        while not self._clock.wait(cycle_seconds):
            self.cycle(self._clock.now() + cycle_seconds / 2)

    def cycle(self, move_until: float) -> None:
        """One cycle; moves that wait go until then at the latest."""
        begun = self._clock.now()
        self._cycle(move_until)
        self.tally.cycles += 1
        self.tally.last_cycle_at = self._clock.now()
        self.tally.cycle_seconds = self._clock.now() - begun

    def _counted(self, records: Iterable[Record]) -> Iterator[Record]:
        now = self._clock.now()
        lag = 0.0
        for record in records:
            self.tally.records += 1
            lag = max(lag, now - record.time)
            yield record
        self.tally.changelog_lag_seconds = lag

    def _cycle(self, move_until: float) -> None:
        try:
            reading = self._source.reading()
        except OSError as error:
            self._last, self._fresh = None, ()  # what happens meanwhile will not be guessed
            self._tell_fault("blind", f"blind: {error}; nothing is done until it can be seen again")
            self._go_on_blind()
            return
        self._tell_fault("blind", "")
        missed = self._ears.listen(self._counted(self._source.records()), move_until)
        self._tell_fault("changelog", missed and f"{missed}; findings are told, nothing new is done about them")
        unseen = sorted(t for t, condition in reading.conditions.items() if condition == UNKNOWN_RECOVERY)
        self._tell_fault("recovery", f"{len(unseen)} targets ({', '.join(unseen[:3])}, …): whether they recover "
                         "is not to be seen; nothing is found on them" if unseen else "")
        last, self._last = self._last, reading
        if last is None or reading.time < last.time:
            return
        if reading.time == last.time:  # Prometheus has not scraped again: nothing new, but what waits goes on
            self._go_on(Thought(self._fresh, (), ()), reading.time, move_until)
            return
        seen = window(last, reading)
        del last  # on a large file system a reading takes as much memory as all of the history
        lying = sorted(t for t, condition in seen.conditions.items() if condition == IMPLAUSIBLE)
        self._tell_fault("counters", f"{len(lying)} targets ({', '.join(map(quoted, lying[:3]))}, …): their counters "
                         "make no sense; nothing is found on them" if lying else "")
        thought = self._engine.think(seen, self._table.of_job,
                                     lambda: self._gatherer.facts(reading.time))
        for what in ("room", "clients"):
            self._tell_fault(what, self._gatherer.faults.get(what, ""))
        for name in self._detectors:
            failed = self._engine.blind.get(name, "")
            self._tell_fault(f"detector {name}", failed and f"detector {name} failed and finds nothing: {failed}")
        self._findings = self._fresh = thought.findings
        self._tell(thought)
        self._go_on(thought, reading.time, move_until)

    def _go_on_blind(self) -> None:
        """Layouts that were set go on filling the flash pool, which can be seen without any source."""
        try:
            if self._may_act():
                self._watch_room()
        except OSError as error:
            self._say(f"the file system does not answer either: {error}")

    def _go_on(self, thought: Thought, now: float, move_until: float) -> None:
        """Act on what is known, judge what was done."""
        try:
            if self._may_act():
                if not self._faults.get("changelog") and not self._held and not self._gate.draining:
                    self._act(thought)
                if not self._held:
                    self._take_up()
                    self._move(move_until, asked_for_only=bool(self._faults.get("changelog")))
                self._judge(now)
                self._watch_room()
        except OSError as error:
            self._say(f"the file system does not answer: {error}; nothing more is done in this cycle")

    def _may_act(self) -> bool:
        """Whether anything may be changed in this cycle: nobody has paused it, and no other tierd is at work.

        Outside of the maintenance windows things are still judged, and taken back.
        """
        self._tell_held()
        wanted = self._settings.modes - {"observe", "recommend"} or self._gate.waiting
        acting = wanted and not self._settings.act.dry_run
        self._tell_fault("claim", self._claim.hold() if acting else "")
        return not self._gate.paused and not self._gate.stopped and not self._faults.get("claim")

    @property
    def windows(self) -> Sequence[Window]:
        """History, for reports."""
        return self._engine.windows

    @property
    def faults(self) -> Mapping[str, str]:
        """What cannot be seen at present, by source."""
        return {source: words for source, words in self._faults.items() if words}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What holds now."""
        return self._findings

    @property
    def cases(self) -> Sequence[Case]:
        """What was acted on."""
        return tuple(self._cases.values())

    def _tell(self, thought: Thought) -> None:
        for finding in thought.begun:
            self.tally.found[finding.kind] += 1
            self.tally.found_at[finding.kind] = self._clock.now()
            self._numbers[finding.key] = self._journal.found(finding)
            self._tell_of(finding.key, narrate.found(finding))
        for finding in thought.ended:
            self._tell_of(finding.key, [narrate.over(finding)])
            if finding.key not in self._cases:
                self._numbers.pop(finding.key, None)
            self._recommended = {told for told in self._recommended if told[0] != finding.key}
            self._refused = {(key, words) for key, words in self._refused if key != finding.key}
            if finding.kind not in JUDGED and finding.key in self._cases:
                self._cases[finding.key].tried.clear()  # when it comes back, what was tried may be tried again

    def number(self, finding: Finding) -> int:
        """Its number in the journal."""
        if finding.key not in self._numbers:
            self._numbers[finding.key] = self._journal.found(finding)
        return self._numbers[finding.key]

    def _tell_of(self, key: tuple[str, str, str], sentences: Iterable[str]) -> None:
        """Say it, and keep it with the finding."""
        told = list(sentences)
        self._say_all(told)
        if key in self._numbers:
            self._journal.tell(self._numbers[key], told, self._clock.now())

    def _tell_fault(self, source: str, words: str) -> None:
        """Say it when it begins or changes, and when it is over."""
        if words == self._faults.get(source, ""):
            return
        self._say(words or f"{source}: well again")
        self._faults[source] = words

    def _tell_held(self) -> None:
        """Say it when something keeps acts from being done, and when nothing does any more."""
        held = self._gate.held
        if bool(held) != bool(self._held):
            self._say(f"nothing new is done: {held}" if held else "changes are made again")
        self._held = held

    def _say_all(self, sentences: Iterable[str]) -> None:
        for sentence in sentences:
            self._say(sentence)

    def _act(self, thought: Thought) -> None:
        for finding in thought.findings:
            if (finding.advice_only or finding.kind not in self._settings.act.on
                    or self._settings.modes == {"observe"} or self._in_hand(finding)):
                continue
            plan = self._worth(finding, self._plan(finding, self._activities(finding)))
            self._tell_refusals(finding, plan.refusals)
            self._recommend(finding, plan.recommended)
            if plan.actions:
                now = self._clock.now()
                number = self.number(finding)
                self._journal.located(number, finding)
                case = self._cases.get(finding.key) or Case(finding, number, now, now, plan.actions[0].layout,
                                                            judged=finding.kind not in JUDGED)
                self._cases[finding.key] = case
                self._submit(case, [a for a in plan.actions if (a.path or a.directory) not in case.tried])
                # advice alone, or a dry run, leaves nothing to be judged
                case.judged = case.judged or self._gate.dry_run or not (case.defaults or case.tried)
        for case in self._cases.values():
            if not case.judged:
                self._follow_up(case)

    def _tell_refusals(self, finding: Finding, refusals: Iterable[Refusal]) -> None:
        """Tell each once while the finding holds; that a figure in it has changed makes it no other refusal."""
        for refusal in refusals:
            what = finding.key, without_figures(refusal.sentence)
            if what not in self._refused:
                self._refused.add(what)
                self.tally.refusals[refusal.reason] += 1
                self._tell_of(finding.key, [f"not done: {refusal}"])

    def _worth(self, finding: Finding, plan: Plan) -> Plan:
        """The plan without what is not worth it, by what such acts came to before, and without places that cool down.

        Advice is for people, who weigh it themselves.
        """
        settings, now = self._settings, self._clock.now()
        rest = settings.verify.cooldown_seconds
        cooling = {place for place in {a.directory for a in plan.actions}
                   if (undone := self._journal.undone_at(place)) and now < undone + rest}
        refusals = [Refusal(Reason.COOLING_DOWN, f"its default layout was taken back; it is left alone for "
                            f"{rest / 3600:g} h").of(quoted(place)) for place in sorted(cooling)]
        actions = [a for a in plan.actions if a.directory not in cooling or a.kind == "advise"]
        acts = [a for a in actions if a.kind != "advise"]
        if acts and finding.kind in JUDGED:
            first = acts[0].layout.components[0]
            expected = benefit.effect(self._journal.won_back(finding.kind, first.pool, first.extent_end or 0),
                                      settings.benefit)
            if refused := benefit.refusal(finding, expected, settings.benefit):
                refusals.append(refused)
                actions = [a for a in actions if a.kind == "advise"]
            elif refused := benefit.affordable(finding, expected, acts, settings.benefit):
                refusals.append(refused)
                actions = [a for a in actions if a.kind != "migrate"]
        return replace(plan, actions=tuple(actions), refusals=(*plan.refusals, *refusals))

    def preview(self) -> list[tuple[Finding, Plan, Case | None]]:
        """What would be planned now for each finding, without doing it; and its case, where it was acted on before."""
        return [(finding, self._worth(finding, self._plan(finding, self._activities(finding))),
                 self._cases.get(finding.key))
                for finding in self._findings if not finding.advice_only]

    def carry_out(self, kind: str, by: str, what: str, found: Intent) -> None:
        """Put what somebody asked for into the queue. Doing it is for the gate."""
        asked = Finding(kind, self._clock.now(), by, "", (), what, {})
        number = self._journal.found(asked)
        told = [f"{what}: {len(found.actions)} files, {found.size_bytes / 1e6:.0f} MB, wait for their turn"]
        told += [f"      left out: {count} ({why})" for why, count in found.left_out.most_common(5)]
        self._say_all(told)
        self._journal.tell(number, told, self._clock.now())
        self._gate.submit(found.actions, number)

    def _recommend(self, finding: Finding, actions: Sequence[Action]) -> None:
        """Tell once what is not done because of the mode there."""
        for place, mode, sentences in narrate.recommended(actions, self._settings):
            if mode != "observe" and (finding.key, place) not in self._recommended:
                self._recommended.add((finding.key, place))
                self._tell_of(finding.key, sentences)

    def _in_hand(self, finding: Finding) -> bool:
        """Whether there is nothing more to plan: a victim's case is planned once, the others until they end."""
        if finding.kind in JUDGED:
            return finding.key in self._cases
        if self._planned.get(finding.key) == finding.time or self._gate.waiting_for(finding.key):
            return True
        self._planned[finding.key] = finding.time  # seen anew each half minute: no need to plan more often
        return False

    def _plan(self, finding: Finding, activities: Sequence[DirectoryActivity]) -> Plan:
        left_alone = {a.directory: why for a in activities if (why := self._left_alone(a.directory))}
        rest = [a for a in activities if a.directory not in left_alone]
        refusals = tuple(why.of(quoted(place)) for place, why in left_alone.items())
        if left_alone and not rest:
            return Plan((), refusals)
        room = replace(space.room(self._filesystem, finding.directories), metadata_free=self._metadata_free())
        plan = self._engine.plan(finding, space.measured(self._filesystem, rest), room)
        return replace(plan, refusals=(*plan.refusals, *refusals))

    def _left_alone(self, directory: str) -> Refusal | None:
        """Why nothing is planned for a directory: its owner's wish, or somebody else who moves its files."""
        if why := self._gate.objection(directory):
            return Refusal(Reason.OPTED_OUT, why)
        if mover := self._table.mover_in(directory, self._clock.now() - OTHER_MOVER_SECONDS):
            return Refusal(Reason.OTHER_MOVER, f"{mover} moves its files; two never do, so it is left alone until that "
                           f"has been over for {OTHER_MOVER_SECONDS / 60:.0f} minutes")
        return None

    def _activities(self, finding: Finding) -> list[DirectoryActivity]:
        since = finding.time - self._settings.history_seconds
        located = list(attribution.located(finding, self._table.of_job(finding.aggressor, since)))
        return self._enriched(located, self._filesystem)

    def _follow_up(self, case: Case) -> None:
        """Files that were too young to be moved when the plan was made have settled since."""
        left = [replace(activity, candidates=tuple(c for c in activity.candidates
                                                   if c.created_at < case.begun_at and c.path not in case.tried))
                for activity in self._activities(case.finding)]
        if any(activity.candidates for activity in left):
            plan = self._plan(replace(case.finding, time=self._clock.now()), left)
            self._submit(case, [replace(a, layout=case.layout) for a in plan.actions if a.kind == "migrate"])

    def _submit(self, case: Case, actions: Sequence[Action]) -> None:
        defaults = [a for a in actions if a.kind == "set-default-layout"]
        case.tried.update(a.directory for a in defaults)
        for outcome in self._gate.submit(defaults, case.number):
            self._tell_of(case.finding.key, narrate.default_layout(outcome))
            if outcome.result in {"done", "dry-run"}:
                case.defaults.append(outcome)
        moves = [a for a in actions if a.kind == "migrate" and a.path not in case.tried]
        if moves:
            case.tried.update(a.path for a in moves)
            self._gate.submit(moves, case.number)
            self._tell_of(case.finding.key, [narrate.queued(moves)])

    def _take_up(self) -> None:
        """Moves that waited when tierd ended: looked at, and queued again or told why not."""
        moves = self._gate.first_left_over(left_over.A_CYCLE)
        if not moves:
            return
        looked = left_over.look(moves, self._filesystem, self._settings, self._layout_of, self._clock.now())
        self._gate.take_up(looked.again, looked.left)
        for number, sentences in looked.told.items():
            self._say_all(sentences)
            self._journal.tell(number, sentences, self._clock.now())
        for action, _ in looked.again:
            if action.finding in self._cases:
                self._cases[action.finding].tried.add(action.path)

    def _layout_of(self, key: tuple[str, str, str], directory: str) -> Layout | None:
        """What files of a directory get in a case that is not judged yet."""
        case = self._cases.get(key)
        return None if case is None or case.judged else case.layout_in(directory)

    def _move(self, until: float, *, asked_for_only: bool) -> None:
        outcomes = self._gate.pump(until, asked_for_only=asked_for_only)
        for outcome in outcomes:
            if outcome.fid is not None:
                self._echo.moved(outcome.fid)
        self._say_all(narrate.moved(outcomes, self._gate.waiting))
        for key in {o.action.finding for o in outcomes if o.result != "gone"} & self._cases.keys():
            self._cases[key].acted_at = self._clock.now()
        if self._gate.paused:
            self._say(f"STOPPED moving: {self._gate.paused}; look, then tierctl resume")

    def _judge(self, now: float) -> None:
        flash = space.room(self._filesystem, ()).pools if any(not c.judged for c in self._cases.values()) else {}
        for case in self._cases.values():
            moving = self._gate.waiting_for(case.finding.key)
            if case.judged or (moving and now < case.begun_at + self._settings.verify.moving_seconds):
                continue
            act = Act(case.finding, case.begun_at, case.acted_at, flash.get(case.pool, ()))
            judgement = judge(act, self._engine.windows, now, self._settings.verify)
            if judgement.verdict != "too-early":
                self._note(case, judgement)
                if judgement.verdict in {"did-not-help", "harmed-others"}:
                    self._undo(case, "it did not help" if judgement.verdict == "did-not-help" else "others paid for it")

    def _note(self, case: Case, judgement: Judgement) -> None:
        """What the acts came to: told, counted, and kept for later decisions."""
        case.judged, case.verdict = True, judgement.verdict
        self.tally.verdicts[judgement.verdict] += 1
        self.tally.gained[case.finding.victim] = judgement.won_back
        self.tally.gains[case.finding.victim] = (judgement.usual - judgement.contended,
                                                 judgement.after - judgement.contended)
        self._journal.judged(case.number, case.finding.kind, case.pool, case.size_bytes, judgement.verdict,
                             judgement.won_back, self._clock.now(), judgement.usual, judgement.contended,
                             judgement.after)
        self._tell_of(case.finding.key, [narrate.judged(case.finding, judgement)])

    def _undo(self, case: Case, reason: str) -> None:
        dropped = self._gate.drop(case.finding.key)
        for outcome in case.defaults:
            entry = self._journal.entry(outcome.entry)
            if entry is not None:
                self._tell_of(case.finding.key, [narrate.undone(entry, *self._undo_act(entry, reason))])
        if dropped:
            self._say(f"dropped {dropped} waiting moves: {reason}")
        case.defaults.clear()
        case.judged = True

    def _watch_room(self) -> None:
        """Take defaults back while there is still room for what is being written."""
        if not any(case.defaults for case in self._cases.values()):
            return
        room = space.room(self._filesystem, ())
        for case in self._cases.values():
            for outcome in case.defaults:
                settings = self._settings.scope_of(outcome.action.directory).small_files_to_flash
                if room.avail_bytes.get(settings.flash_pool, 0) < reserved(room, settings):
                    self._undo(case, f"pool {settings.flash_pool!r} is down to its reserve")
                    break
