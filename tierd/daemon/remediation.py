"""Remediations: findings that were acted on, from the plan to the verdict.

Default layouts are set first, then files move in the order of the queue. Files that were too young to be moved follow
later. After a restart, open remediations come from the journal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from threading import RLock

from lustre.filesystem import FileStatus
from lustre.layout.model import Layout, destination
from tierd.act import orders
from tierd.act.journal.entry import Entry
from tierd.act.journal.writer import Journal
from tierd.act.orders import OrderPlan
from tierd.act.outcomes import CompletedAct
from tierd.acts import DEFAULT_KINDS, ORDER_KINDS, ActKind, Outcome, Verdict, name_of
from tierd.config.act import Mode
from tierd.daemon import log
from tierd.daemon.log import FindingLog
from tierd.daemon.node import DaemonParts
from tierd.daemon.planning import Planner
from tierd.daemon.states import OPEN, TRANSITIONS, UNDOING_VERDICTS, State
from tierd.decide.plans import Plan
from tierd.detect.device_time import TargetTime
from tierd.model import Action, Evidence, Finding, FindingKey
from tierd.policies.protocol import JudgedBy
from tierd.policies.registry import has_victim, policy_for
from tierd.refusal import Reason, Refusal
from tierd.text import bytes_text, count_of, quoted
from tierd.verify.judgement import Judgement


@dataclass(slots=True)
class Remediation:
    """What is done about one finding, from the plan to the verdict."""

    finding: Finding
    number: int
    """Number of the finding in the journal."""
    begun_at: float
    """When the first default layout was set: older files may lie on HDD."""
    acted_at: float
    """When the last default layout was set, or moves were queued. Its effect is measured from then on."""
    layout: Layout
    """Layout of new files and of moved files."""
    defaults: list[CompletedAct] = field(default_factory=list)
    """Default layouts that were set and are in force."""
    places: set[str] = field(default_factory=set)
    """Directories with a plan. While the finding holds, the job may begin to work in others."""
    tried: set[str] = field(default_factory=set)
    """Directories and files whose act is queued or was tried: each is tried once."""
    state: State = State.PLANNED
    verdict: Verdict = Verdict.NONE
    """Empty before the verdict, and if there is nothing to judge."""
    judgement: Judgement | None = None
    """The measurement behind the verdict; None without one."""
    judged_at: float = 0.0
    """Time of that measurement; 0 without one."""
    ended_at: float | None = None
    """When the finding ended; None while it holds."""
    first_act_at: float = 0.0
    """When the first default layout was set, or the first file moved, even in a dry run; 0 before."""
    undo_reason: str = ""
    """Why its default layouts are being undone, or were; empty if they stand or were undone by hand."""
    moved_at: float = 0.0
    """When the last of its files was moved or tried; 0 before the first. Moves load the disks, so throughput measured
    before this time may speak for the acts and never against them."""
    run_begun_at: float = 0.0
    """When the present run of moves began, after a pause of ``judge_seconds``; 0 in the first one."""
    moves: Counter[Outcome] = field(default_factory=Counter)
    """Number of its moves that have ended, by outcome, as the journal has them."""
    needless_moves: int = 0
    """Number of its queued moves that needed no act, so that the journal has none: the file was gone, or as wanted."""
    in_use: Counter[str] = field(default_factory=Counter)
    """How often each file was in use when it was to be moved."""
    braked_at: float = 0.0
    """When one of its jobs was first slowed on purpose, while its acts were not judged; 0 if none was."""
    moves_held: bool = False
    """Whether its moves wait, so that the effect is measured without them."""
    departed: bool = False
    """Whether the aggressor has stopped. Then its files are not moved."""
    worked_at: float | None = None
    """Start of the newest window with work of the aggressor, epoch seconds; 0 without one, None before the first
    window since the remediation began."""
    idle_seconds: float = 0.0
    """Length of the newest windows in which the aggressor did nothing."""
    last_record: float = 0.0
    """Time of the newest changelog record of the aggressor that was noted; epoch seconds."""
    times_before: Mapping[str, TargetTime] = field(default_factory=dict)
    """Device time of its targets when it was planned, as far as it was known."""

    @property
    def unslowed_until(self) -> float:
        """End of the time before its acts: their begin, or that of a brake before them."""
        return min(self.begun_at, self.braked_at or self.begun_at)

    @property
    def moved(self) -> int:
        """Number of its files that were moved."""
        return self.moves[Outcome.DONE]

    @property
    def judged(self) -> bool:
        """Whether nothing more is measured."""
        return self.state not in OPEN

    @property
    def abandoned(self) -> bool:
        """Whether its acts were undone because of a verdict or by hand. No more is tried while the finding holds."""
        return self.verdict in UNDOING_VERDICTS

    @property
    def closed(self) -> bool:
        return self.state is State.CLOSED

    def correct_times(self, latest: float, to: float) -> None:
        """Move all times back to ``to`` at the latest if one is later than possible: the clock was set back."""
        times = self.begun_at, self.acted_at, self.moved_at, self.run_begun_at, self.judged_at
        if max(times) > latest:
            self.begun_at, self.acted_at, self.moved_at, self.run_begun_at, self.judged_at = (min(t, to) for t in times)

    def to(self, state: State) -> None:
        """Change the state. Raises AssertionError for a step that :data:`TRANSITIONS` does not have."""
        if state is not self.state:
            assert state in TRANSITIONS[self.state], f"F{self.number}: {self.state} -> {state}"
            self.state = state

    def settle(self, state: State) -> None:
        """Change to ``KEPT`` or ``UNDONE``, and to ``CLOSED`` where the finding has ended."""
        self.to(state)
        self.moves_held = False
        if self.ended_at is not None:
            self.to(State.CLOSED)

    def begin_undo(self, reason: str) -> None:
        self.to(State.UNDOING)
        self.undo_reason, self.moves_held = reason, False

    def relies_on(self, directory: str, pool: str) -> bool:
        """Whether a default layout of a directory with this pool has, or may have, caused its effect."""
        stands = self.state in OPEN or (self.verdict is Verdict.HELPED and not self.departed)
        return (stands and not self.undo_reason and directory in {*self.places, *self.finding.directories}
                and self.pool == pool and has_victim(self.finding))

    def finding_ended(self, now: float) -> None:
        self.ended_at = now
        if self.state in {State.KEPT, State.UNDONE}:
            self.to(State.CLOSED)
        if not has_victim(self.finding):
            # if the finding returns, everything may be tried again but files that were always in use
            self.tried = {path for path in self.tried if self.in_use[path] >= MAX_TRIES_IN_USE}

    def layout_in(self, directory: str) -> Layout:
        """Layout of files in a directory: that of its new files."""
        return next((o.action.layout for o in self.defaults if o.action.directory == directory), self.layout)

    @property
    def pool(self) -> str:
        return destination(self.layout).pool

    @property
    def size_bytes(self) -> int:
        """End of the first component. 0 if the layout has one component."""
        return destination(self.layout).extent_end or 0


class RemediationStore:
    """The remediations that are not forgotten, by finding. Hold :attr:`lock` while one of them is changed."""

    def __init__(self) -> None:
        self.lock = RLock()
        """Held for moments only, never during a request to the file system."""
        self._by_key: dict[FindingKey, Remediation] = {}
        self.braked: Mapping[str, float] = {}
        """Jobs that are slowed on purpose, and since when. What they do meanwhile is no verdict on an act."""
        self.device_time: Mapping[str, TargetTime] = {}
        """Recent device time of the targets whose service costs are known."""

    def __iter__(self) -> Iterator[Remediation]:
        with self.lock:
            return iter(tuple(self._by_key.values()))  # copied: others may be added meanwhile

    def get(self, key: FindingKey) -> Remediation | None:
        return self._by_key.get(key)

    def add(self, remediation: Remediation) -> None:
        with self.lock:
            self._by_key[remediation.finding.key] = remediation

    def open(self) -> list[Remediation]:
        return [each for each in self if each.state in OPEN]

    def in_state(self, state: State) -> list[Remediation]:
        return [each for each in self if each.state is state]

    def forget(self) -> list[Remediation]:
        """Forget all closed ones but the latest; returns them. The journal keeps what was done.

        Job ids differ from run to run at many sites, so their number would grow without a limit.
        """
        with self.lock:
            closed = self.in_state(State.CLOSED)
            gone = sorted(closed, key=lambda each: max(each.acted_at, each.moved_at))[:max(0, len(closed) - MAX_CLOSED)]
            for each in gone:
                del self._by_key[each.finding.key]
            return gone


UNDO_SECONDS = 7 * 86_400.0
"""Age of a verdict up to which a restart continues the undo of its acts. A choice: a dry run, a pause or an absent MDT
held the undo back."""


def reopened_remediations(journal: Journal, since: float) -> Iterator[Remediation]:
    """Remediations that continue after a restart: their acts are in force, and were begun or judged after ``since``.

    Of several about one problem, the last one counts: what is still to be undone comes first.
    """
    for number, finding, verdict in journal.judgements.to_undo(since - UNDO_SECONDS):
        stays = policy_for(finding).judge_moves is not None  # what has moved stays; more moves wait
        if entries := [entry for entry in journal.acts_to_undo(number) if stays or is_undone(finding, entry)]:
            case = _reopened(journal, number, finding, entries, State.KEPT if stays else State.UNDOING, verdict=verdict)
            case.undo_reason = "" if stays else UNDO_REASONS[verdict]
            yield case
    for number, finding, entries, verdict in journal.judgements.acted_on(since):
        yield _reopened(journal, number, finding, entries, State.KEPT if verdict else State.JUDGING, verdict=verdict)


def judged_remediation(journal: Journal, number: int, finding: Finding) -> Remediation | None:
    """The remediation of a finding that holds, with a verdict for acts that are in force; None without one."""
    judged = journal.judgements.of(number)
    entries = [entry for entry in journal.acts_in_force(number) if entry.undoes is None and entry.layout_after]
    if judged is None or not entries or judged.verdict not in {Verdict.HELPED, Verdict.CANNOT_TELL}:
        return None
    return _reopened(journal, number, finding, entries, State.KEPT, verdict=judged.verdict)


UNDO_REASONS = {Verdict.DID_NOT_HELP: "it did not help", Verdict.HARMED_OTHERS: "other jobs got slower"}


def is_undone(finding: Finding, entry: Entry) -> bool:
    """Whether an act is undone after a verdict against it.

    A default layout, a mirror, whose removal costs no copy, and the move of a file to an MDT, which it fills and loads,
    or to stripes that slow each later use. Other files stay where they are, because a move costs as much as the move
    before.
    """
    if entry.kind != ActKind.MIGRATE:
        return entry.kind == ActKind.SET_DEFAULT_LAYOUT
    after = entry.layout_after
    return policy_for(finding).restores_layouts or (
        after is not None and (after.mirror_count > 1 or after.components[0].on_mdt))


def _reopened(journal: Journal, number: int, finding: Finding, entries: Sequence[Entry], state: State,
              verdict: Verdict) -> Remediation:
    # directories without an act are planned again: their turn had not come, or settings have changed
    layout = entries[0].layout_after
    assert layout is not None, "both kinds of acts have one"
    begun = [entry.intended_at for entry in entries]
    defaults = [CompletedAct(Action(entry.kind, entry.layout_after or layout, entry.reason, finding.key,
                                    directory=entry.place), entry.outcome, entry.detail, entry.id, entry.layout_before)
                for entry in entries if entry.kind == ActKind.SET_DEFAULT_LAYOUT]
    judgement, ended_at = journal.judgements.of(number), journal.ended_at(number)
    state = State.CLOSED if state is State.KEPT and ended_at is not None else state
    return Remediation(
        finding, number, min(begun), max(begun), layout, defaults=defaults, state=state, verdict=verdict,
        judgement=judgement, judged_at=judgement.at if judgement else 0.0, ended_at=ended_at,
        places={entry.place.rpartition("/")[0] if entry.kind == ActKind.MIGRATE else entry.place for entry in entries},
        tried=set(journal.files_tried(number)), moves=journal.moves_of(number),
        first_act_at=min(begun))


REPLAN_SECONDS = 10.0
"""Shortest time between two plans for a job that works in other directories, or for which there was nothing to do."""
MOST_REPLAN_SECONDS = 40.0
"""After plans without acts in a row this time doubles, up to this. A plan asks the MDTs for layouts and sizes."""
BY_EVIDENCE = frozenset({Reason.COOLING_DOWN, Reason.LITTLE_TO_GAIN, Reason.UNCERTAIN_GAIN, Reason.OTHERS_WOULD_LOSE})
"""Reasons of refusals that need no file system."""
PASSING = frozenset({Reason.JOB_ELSEWHERE, Reason.PAUSED, Reason.PAUSE_FILE, Reason.MAINTENANCE_WINDOW,
                     Reason.NO_BROKER, Reason.CLAIM_HELD, Reason.CLAIM_LOST, Reason.CLAIM_UNREADABLE})
"""Reasons of refusals after which a default layout is planned again: the job returns, or nothing holds acts back."""
MAX_CLOSED = 100
"""Number of closed remediations that are remembered. Status shows them, and a returning finding refers to them."""
MAX_NAMED = 4
"""Outcomes of default layouts that one line of the log names."""
MAX_TRIES_IN_USE = 2
"""Moves of a large file that are tried while its job keeps opening it. Each may copy most of the file for nothing."""
UNCONFIRMED = Refusal(Reason.UNCONFIRMED, "the newest window did not confirm the finding, so no act starts")
NOTHING_TO_DO = Refusal(Reason.NOTHING_TO_DO, "new files need no other layout, and there is no file to move")


@dataclass(frozen=True, slots=True)
class LastPlan:
    """The last plan for a finding that holds."""

    at: float
    finding: Finding
    fruitless_seconds: float = 0.0
    """If it had nothing to do, the time until the next one, unless the finding has another directory then."""


class Remediations:
    """Carries out remediations through the gate.

    Each method belongs to one activity of the daemon. None holds the lock during a request to the file system.
    """

    def __init__(self, parts: DaemonParts, store: RemediationStore, planning: Planner, finding_log: FindingLog) -> None:
        self._store, self._lock, self._planning, self._log = store, store.lock, planning, finding_log
        self._gate, self._journal, self._settings = parts.gate, parts.journal, parts.settings
        self._filesystem, self._clock = parts.node.filesystem, parts.node.clock
        self._planned: dict[FindingKey, LastPlan] = {}
        self._refusals: dict[FindingKey, tuple[Refusal, ...]] = {}
        """Refusals of the last plan for each finding."""
        self._asked: dict[FindingKey, float] = {}
        """Since when the plan of a finding waits for an administrator."""

    def refusals(self, key: FindingKey) -> tuple[Refusal, ...]:
        """Why the last plan for a finding has no acts, or fewer than possible. Waits for nothing."""
        return self._refusals.get(key, ())

    def act(self, findings: Sequence[Finding]) -> None:
        """Plan and queue acts for new findings, then acts that have become possible in older remediations."""
        with self._lock:
            for known in (self._refusals, self._planned, self._asked):
                for key in known.keys() - {finding.key for finding in findings}:
                    del known[key]
        refused: list[tuple[Finding, tuple[Refusal, ...]]] = []
        for finding in findings:
            with self._lock:
                last = self._planned.get(finding.key)
                # without a request to the file system: most findings of a cycle end here
                if self._only_reported(finding) or self._is_refused(finding) or self._in_hand(finding, last):
                    continue
                self._planned[finding.key] = LastPlan(self._clock.now(), finding)
            case = None if has_victim(finding) else self._store.get(finding.key)  # its directories are planned once
            found = self._planning.for_finding(finding, frozenset(case.tried) if case is not None else ())
            if not self._log.holds(finding):
                continue  # it ended while it was planned, which takes long where MDTs answer slowly
            plan = self._approved_part(finding, found)
            with self._lock:
                self._note_plan(finding, plan, last)
                refusals = self._refusals[finding.key] = (*plan.refusals, *self._mode_refusals(plan))
                if plan.actions:
                    with self._log.at_once():
                        self._log.refusals(finding, refusals)
                    self._begin(finding, plan.actions)
                elif refusals:
                    refused.append((finding, refusals))
                else:
                    self._refusals[finding.key] = (NOTHING_TO_DO,)
        with self._lock, self._log.at_once():
            for finding, refusals in refused:
                self._log.refusals(finding, refusals)
        with self._lock:
            followed = [case for case in self._store if self._followed_up(case)]
        for case in followed:
            self._follow_up(case)
        self._planning.forget()

    def _note_plan(self, finding: Finding, plan: Plan, last: LastPlan | None) -> None:
        # such a plan costs useless requests to MDTs, except one that is refused for the evidence alone
        if not plan.actions and not any(refusal.reason in BY_EVIDENCE for refusal in plan.refusals):
            again = last is not None and set(last.finding.directories).issuperset(finding.directories)
            wait = 2 * last.fruitless_seconds if last and again else 0.0
            self._planned[finding.key] = LastPlan(
                self._clock.now(), finding, min(max(wait, REPLAN_SECONDS), MOST_REPLAN_SECONDS))

    def _mode_refusals(self, plan: Plan) -> tuple[Refusal, ...]:
        scopes = self._settings.resolved_scopes
        modes = sorted({scopes.of(action.path or action.directory).mode for action in plan.recommended})
        return (Refusal(Reason.MODE, f"mode {', '.join(modes)} applies there: {count_of(len(plan.recommended), 'act')} "
                        "recommended, not done"),) if modes else ()

    def _approved_part(self, finding: Finding, plan: Plan) -> Plan:
        """The plan without actions in scopes of mode ``ask``, unless they were approved; then why they wait."""
        modes = self._settings.resolved_scopes
        asks = [a for a in plan.actions if modes.of(a.path or a.directory).mode is Mode.ASK]
        if not asks or self._gate.approvals.approved(finding.key):
            return plan
        if (declined := self._gate.approvals.of(finding.key)) is not None:
            why = Refusal(Reason.NOT_APPROVED, f"declined by {declined.by}")
        else:
            with self._lock:
                number = self._log.number(finding)
                why = Refusal(Reason.NOT_APPROVED, log.waiting_sentence(finding, number, asks))
                self._asked.setdefault(finding.key, self._clock.now())
        return replace(plan, actions=tuple(a for a in plan.actions if a not in asks), refusals=(*plan.refusals, why))

    def asked(self) -> dict[FindingKey, float]:
        """Findings whose plans wait for an administrator, and since when each waits."""
        with self._lock:
            return {key: since for key, since in self._asked.items()
                    if any(why.reason is Reason.NOT_APPROVED for why in self._refusals.get(key, ()))
                    and self._gate.approvals.of(key) is None}

    def decide(self, key: FindingKey, by: str, *, approved: bool) -> str:
        """Carry out the plan for a finding in the next cycle, or put it aside. Returns what becomes of it.

        What was undone is repeated. Raises ValueError if there is nothing to decide.
        """
        with self._lock:
            case = self._store.get(key)
            undone = case if case is not None and case.abandoned and approved else None
            if case is not None and not (case.closed or case.abandoned):
                raise ValueError("its plan is already carried out: tierctl undo reverts it")
            if undone is not None and undone.state is State.UNDOING:
                raise ValueError("its default layouts are still being restored: try again when that is done")
            waits = key in self._asked or any(why.reason is Reason.NOT_APPROVED for why in self._refusals.get(key, ()))
            if undone is None and not waits:
                raise ValueError("no plan for it waits for approval: tierctl status shows why nothing more is done")
            self._gate.approvals.decide(key, by, approved=approved)
            if undone is not None and undone.state is State.UNDONE:
                undone.to(State.CLOSED)
            # planned in the next cycle, whatever the last plan was
            self._asked.pop(key, None)
            self._planned.pop(key, None)
        return "done again" if undone is not None else "carried out" if approved else "put aside"

    def _only_reported(self, finding: Finding) -> bool:
        """Whether no act may begin on this finding now. With a victim, the reason is then its refusal."""
        if not (finding.advice_only or finding.held):
            return False
        if (why := standing_refusal(finding)) is not None:
            if finding.advice_only:
                self._refusals[finding.key] = (why,)
                self._log.refusals(finding, (why,))
            elif self._store.get(finding.key) is None:
                self._refusals.setdefault(finding.key, (why,))
        return True

    def _is_refused(self, finding: Finding) -> bool:
        """Whether settings allow only a report of this finding, or the last moves for it slowed a job or did not help.

        The reason is then stored as its refusal.
        """
        case, judge = self._store.get(finding.key), policy_for(finding).judge_moves
        if finding.kind not in self._settings.act.on:
            why = Refusal(Reason.REPORTED_ONLY, f"findings of kind {finding.kind} are reported only (act.on)")
        elif self._settings.resolved_scopes.modes == {"observe"}:
            why = Refusal(Reason.MODE, "mode observe: findings are reported, and nothing is planned")
        elif (case is not None and case.abandoned and (judge is not None or not case.closed)
                and not self._gate.approvals.approved(finding.key, case.judged_at)):
            words = (case.judgement and case.judgement.words) or UNDO_REASONS.get(
                case.verdict, "it was undone by hand")  # the journal has no words
            why = Refusal(Reason.COOLING_DOWN, f"the last {'moves' if judge else 'change'}: {words}")
        else:
            return False
        self._refusals[finding.key] = (why,)
        return True

    def _begin(self, finding: Finding, actions: Sequence[Action]) -> None:
        now = self._clock.now()
        number = self._log.number(finding)
        case = self._store.get(finding.key)
        if case is not None and case.abandoned and not case.closed:
            return  # an administrator undid it while this was planned
        known = case.places if case is not None and not case.closed and has_victim(finding) else set()
        actions = [a for a in actions if a.directory not in known]
        if not actions:
            return
        layout = actions[0].layout
        queued = {a.directory for a in actions
                  if a.kind in DEFAULT_KINDS and self._gate.default_layouts.has(a.directory)}
        actions = [a for a in actions if a.kind not in DEFAULT_KINDS or a.directory not in queued]
        settled = State.UNDONE, State.CLOSED, *([State.KEPT, State.UNDOING] if has_victim(finding) else [])
        if case is None or case.state in settled:
            finding = self._log.record(finding)
            times = self._store.device_time
            case = Remediation(finding, number, now, now, layout,
                               times_before={name: times[name] for name in finding.targets if name in times},
                               tried=set() if case is None or has_victim(finding) else case.tried,
                               in_use=Counter() if case is None else case.in_use,
                               moves=self._journal.moves_of(number))
        else:
            case.finding = replace(case.finding, directories=finding.directories)
            self._journal.set_figures(number, case.finding)
            if now < case.begun_at + self._settings.verify.moving_seconds:
                case.acted_at = now  # measured from now on; ``moving_seconds`` limits how often this is put off
        case.places = known | {*finding.directories}
        if policy_for(finding).can_wait:  # it may hold for months: what plans no longer name would fill the memory
            named = {action.path for action in actions}
            case.tried &= named
            case.in_use = Counter({path: count for path, count in case.in_use.items() if path in named})
        self._store.add(case)
        self._submit(case, [a for a in actions if (a.path or a.directory) not in case.tried])
        case.tried |= queued  # for another finding: both cases are judged with it
        # there is nothing to judge after advice, after a dry run and for findings without a victim or a beneficiary
        judged = policy_for(finding).judged_by is not JudgedBy.CAUSE
        if case.state in OPEN and (not judged or self._gate.dry_run or not case.tried):
            case.settle(State.KEPT)

    def _in_hand(self, finding: Finding, last: LastPlan | None) -> bool:
        """Whether all is planned for a finding, or it is too early for another plan."""
        case, now = self._store.get(finding.key), self._clock.now()
        if case is not None and case.departed:
            return True
        passed = now - last.at if last is not None else inf  # less than 0: the clock was set back
        if has_victim(finding):  # each directory is planned once: the job may make one for each of its steps
            if case is None or case.closed:
                return (last is not None and 0 <= passed < last.fruitless_seconds
                        and set(last.finding.directories).issuperset(finding.directories))
            return (case.abandoned or case.places.issuperset(finding.directories)
                    or 0 <= min(passed, now - case.begun_at) < REPLAN_SECONDS)
        # for findings without a victim, plans are made until they end
        if self._gate.queue.waiting_for(finding.key):
            return True
        if policy_for(finding).waits_for_close:
            return 0 <= passed < REPLAN_SECONDS
        # detected again each half minute
        return last is not None and last.finding.time == finding.time

    def _followed_up(self, case: Remediation) -> bool:
        """Whether more files may move: until the verdict, and for a limited time after the verdict that it helped."""
        if not has_victim(case.finding):
            return False  # it is planned again while its finding holds
        lately = self._clock.now() < case.begun_at + self._settings.verify.moving_seconds
        stream = case.finding.evidence.of_stream
        if stream is not None and stream.lacks_past:
            # files follow once the default layout, which can be undone at no cost, has helped; that ends the finding
            kept = case.state in {State.KEPT, State.CLOSED}
            return not case.departed and kept and case.verdict == Verdict.HELPED and lately
        helped = case.state is State.KEPT and case.verdict == Verdict.HELPED
        return not case.departed and (case.state in OPEN or (helped and lately and case.ended_at is None))

    def _follow_up(self, case: Remediation) -> None:
        left = [replace(activity, candidates=tuple(c for c in activity.candidates
                                                   if c.created_at < case.begun_at and c.path not in case.tried))
                for activity in self._planning.activities(case.finding)]
        if any(activity.candidates for activity in left):
            plan = self._planning.for_activities(replace(case.finding, time=self._clock.now()), left)
            moves = [a for a in plan.actions if a.kind == ActKind.MIGRATE]
            with self._lock:
                if not case.abandoned:  # not undone meanwhile
                    self._submit(case, [replace(move, layout=case.layout_in(move.directory)) for move in moves])

    def _submit(self, case: Remediation, actions: Sequence[Action]) -> None:
        defaults = [a for a in actions if a.kind in DEFAULT_KINDS]
        moves = [a for a in actions if a.kind == ActKind.MIGRATE and a.path not in case.tried]
        if defaults:
            case.tried.update(a.directory for a in defaults)
            if case.state is State.JUDGING:
                case.to(State.ACTING)
            self._gate.submit(defaults, case.number)
        if moves:
            case.tried.update(a.path for a in moves)
            self._gate.submit(moves, case.number)
            self._log.of_number(case.number, [log.queued_sentence(moves)])

    def set_defaults(self) -> bool:
        """Set the next few queued default layouts. True if any was due."""
        outcomes = self._gate.default_layouts.set_next()
        with self._lock:
            for case in self._store:
                if own := [o for o in outcomes if o.action.finding == case.finding.key]:
                    self._log.of_number(case.number, list(log.default_layout_sentences(own)))
                    self._were_set(case, own)
                elif case.state in OPEN and (shared := [o for o in outcomes if o.action.directory in case.tried]):
                    self._journal.add_messages(case.number, log.default_layout_sentences(shared), self._clock.now())
                    self._were_set(case, shared)
        return bool(outcomes)

    def _were_set(self, case: Remediation, outcomes: Sequence[CompletedAct]) -> None:
        done = [outcome for outcome in outcomes if outcome.result in {Outcome.DONE, Outcome.DRY_RUN}]
        left = {outcome.action.directory for outcome in outcomes if outcome.reason in PASSING}
        case.tried -= left
        case.places -= left
        now = self._clock.now()
        if done:
            case.first_act_at = case.first_act_at or min(outcome.begun_at or now for outcome in done)
        if done and not case.judged:
            if not case.defaults:
                case.begun_at, case.acted_at = min(outcome.begun_at or now for outcome in done), now
            elif now < case.begun_at + self._settings.verify.moving_seconds:
                case.acted_at = now
            case.to(State.ACTING)
        case.defaults += done
        waiting = self._gate.default_layouts.of(case.finding.key)
        if case.abandoned and not self._gate.dry_run:  # undone while these were being set
            if case.defaults and case.state is not State.UNDOING:
                case.begin_undo("the other acts of its finding were undone")
        elif case.state in OPEN and not waiting:
            if case.defaults or case.moves or self._gate.has_moves(case.finding.key):
                case.to(State.JUDGING)
            else:
                case.settle(State.KEPT)  # no act was done, so there is nothing to judge
                self._refusals[case.finding.key] = tuple(
                    Refusal(outcome.reason or Reason.UNREADABLE, outcome.detail).about(quoted(outcome.action.directory))
                    for outcome in outcomes[:MAX_NAMED])

    def queue_order(self, kind: str, by: str, what: str, found: OrderPlan) -> int:
        """Queue the moves of an order. The gate carries them out. Returns its number in the journal."""
        directories = tuple(a.directory for a in found.actions if a.kind == ActKind.SET_DEFAULT_LAYOUT)
        number = self._journal.add_finding(
            Finding(kind, self._clock.now(), by, "", (), sentence=what, evidence=Evidence(), directories=directories))
        if directories:
            lines = [f"{what}: queued default layouts of {', '.join(map(quoted, directories))}"]
        else:
            lines = [f"{what}: queued {count_of(len(found.actions), 'file')}, {bytes_text(found.size_bytes)}"]
        lines += [f"      left out: {count} ({why})" for why, count in found.left_out.most_common(5)]
        self._log.of_number(number, lines)
        self._gate.submit(found.actions, number)
        return number

    def requeue(self) -> None:
        """Queue the moves that waited when tierd ended, but for those that are out of date."""
        moves = list(self._gate.queue.earlier.values())
        if not moves:
            return
        fs, now = self._filesystem.fsname, self._clock.now()
        with self._lock:
            refused = {move.path: why for move in moves if (why := orders.requeue_refusal(
                move, fs, self._settings, lambda key: self._layout_of(key, "") is not None, now))}
            for move in moves:
                if move.path not in refused and (case := self._store.get(move.action.finding)) is not None:
                    case.tried.add(move.path)
        self._gate.requeue(refused)
        counts = Counter((move.finding, move.action.finding[0], str(refused.get(move.path, ""))) for move in moves)
        for (number, kind, reason), count in sorted(counts.items()):
            words = f"requeued after a restart: {count_of(count, 'move')} of {name_of(number, kind)}"
            self._log.of_number(number, [f"not {words}: {reason}" if reason else words])

    def planned_again(self, move: Action, status: FileStatus, present: Layout | None) -> Action | Refusal:
        """A move that waited when tierd ended as it would be planned now. Raises OSError."""
        if move.finding[0] in ORDER_KINDS:
            return orders.planned_again(move, status, present, self._filesystem, self._settings)
        layout = self._layout_of(move.finding, move.directory)
        if layout is None:
            return Refusal(Reason.REMEDIATION_OVER, "the case was closed meanwhile")
        return replace(move, layout=layout, size_bytes=status.size_bytes)

    def _layout_of(self, key: FindingKey, directory: str) -> Layout | None:
        """Layout for files of a directory; None if the remediation was undone or its job has departed."""
        with self._lock:
            case = self._store.get(key)
            return None if case is None or case.abandoned or case.departed else case.layout_in(directory)

    def moves_ended(self, outcomes: Sequence[CompletedAct]) -> None:
        """Log outcomes, and note them in their remediations."""
        if not outcomes:
            return
        self._log.all(log.moved_sentences(outcomes, self._gate.waiting))
        with self._lock:
            for key in {o.action.finding for o in outcomes}:
                if (case := self._store.get(key)) is not None:
                    self._were_moved(case, [o for o in outcomes if o.action.finding == key])
        if self._gate.operating_state.paused:
            log.logger.error("STOPPED moving: %s; find the cause, then tierctl resume",
                             self._gate.operating_state.paused)

    def _were_moved(self, case: Remediation, outcomes: Sequence[CompletedAct]) -> None:
        case.moves.update(o.result for o in outcomes if o.entry)
        case.needless_moves += sum(not o.entry for o in outcomes)
        if all(o.result == Outcome.GONE for o in outcomes):
            return  # nothing was copied: no disk was loaded
        now = self._clock.now()
        if case.moved_at and now > case.moved_at + self._settings.verify.judge_seconds:
            case.run_begun_at = now
        case.moved_at = now
        case.first_act_at = case.first_act_at or case.moved_at
        in_use = [o.action.path for o in outcomes if o.result == Outcome.GAVE_WAY]
        case.in_use.update(in_use)
        if policy_for(case.finding).waits_for_close:  # what was opened again is tried again when it is closed
            case.tried -= {path for path in in_use if case.in_use[path] < MAX_TRIES_IN_USE}
        case.tried -= {o.action.path for o in outcomes if o.reason is Reason.JOB_ELSEWHERE}  # tried when it returns
        if case.state is State.PLANNED:
            case.to(State.ACTING)

    def drop_moves_of_departed_jobs(self) -> None:
        """Drop queued moves for aggressors that have stopped, whether the finding holds or the acts were judged.

        These moves would only load the disks. Default layouts stay, and moves that have begun end.
        """
        with self._lock:
            departed = [case for case in self._store if case.departed]
            back = {case.finding.key for case in self._store if not case.departed}
            # a job that is back is not refused as gone
            self._refusals = {key: whys for key, whys in self._refusals.items()
                              if key not in back or all(why.reason is not Reason.JOB_GONE for why in whys)}
        waiting = self._gate.queue.by_finding() if departed else Counter()
        for case in departed:
            if waiting[case.finding.key] and (dropped := self._gate.drop(case.finding.key)):
                why = Refusal(Reason.JOB_GONE, f"{case.finding.aggressor} has stopped, so moving its files would only "
                              "load the disks")
                with self._lock:
                    case.tried -= {action.path for action in dropped}  # they may be moved if the job returns
                    self._refusals[case.finding.key] = (why,)
                    self._log.dropped(case.number, why, len(dropped))


def standing_refusal(finding: Finding) -> Refusal | None:
    """Why nothing is done about a finding with a victim that is advice only or not confirmed; None for others."""
    if not has_victim(finding):
        return None
    why = policy_for(finding).why_advice
    return UNCONFIRMED if not finding.advice_only else why(finding) if why is not None else None
