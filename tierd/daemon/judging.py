"""Verdicts on what was done: acts that did not help or harmed other jobs are undone.

A remediation for a slowed stream is judged by its stream, one for a job by the job itself. A policy may judge by a
measure of its own: runs of moves are then stopped, and defaults of directories undone. The journal has what the last
ones need, the act and the numbers of its finding, so a restart loses no judgement of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tierd.act.journal.entry import Entry
from tierd.acts import ActKind, Outcome, Verdict
from tierd.daemon import log
from tierd.daemon.log import FindingKey, FindingLog
from tierd.daemon.node import DaemonParts
from tierd.daemon.remediation import UNDO_REASONS, Remediation, RemediationStore
from tierd.daemon.states import OPEN, State
from tierd.daemon.undoing import CaseUndo
from tierd.detect.gain import StreamTrack
from tierd.model import Facts, Window
from tierd.policies.protocol import DefaultJudge, JudgedBy, MoveJudge, MoveRun
from tierd.policies.registry import evidence_of, policy_for, policy_of
from tierd.sense import space
from tierd.text import count_of
from tierd.verify.judgement import Act, JobTotals, Judgement, judge, judge_own

MAX_MEASURING_TIMES = 1.25
"""After this many measuring times, an act that helps is judged while files of its remediation still move."""


END_SECONDS = 60.0
"""Time without a move after which a run has ended: the next plan would be made, and the space is up to date."""
MAX_AGE_SECONDS = 7 * 86_400.0
"""Defaults that are older are not judged any more."""
LOOK_SECONDS = 30.0


@dataclass(slots=True)
class Run:
    """Moves of one case without a long pause."""

    begun_at: float
    last_at: float


class Judge:
    """Gives the verdicts. One thread calls it; it does not hold the lock while it asks the file system."""

    def __init__(self, parts: DaemonParts, store: RemediationStore, undoing: CaseUndo, finding_log: FindingLog, *,
                 history: Callable[[], tuple[Sequence[Window], Mapping[str, StreamTrack]]],
                 facts: Callable[[], Facts]) -> None:
        """``history`` returns the windows, and tracks of slowed streams; ``facts`` the latest facts."""
        self._gate, self._journal, self._settings = parts.gate, parts.journal, parts.settings
        self._filesystem, self._clock = parts.node.filesystem, parts.node.clock
        self._store, self._lock, self._undoing = store, store.lock, undoing
        self._log, self._counters = finding_log, finding_log.counters
        self._history, self._facts = history, facts
        self._totals = JobTotals()
        self._runs: dict[FindingKey, Run] = {}
        self._looked_at = 0.0

    def judge(self, now: float) -> None:
        """Judge remediations that were measured long enough, and undo those that did not help."""
        judged = self._store.open()
        flash = space.capacity(self._filesystem).pools if judged else {}
        windows, tracks = self._history()
        for case in judged:
            with self._lock:
                if case.state in OPEN and not self._is_braked(case, now):
                    self._judged(case, windows, tracks, flash.get(case.pool, ()), now)
        self._judge_moves(windows)
        self._totals.settle()
        with self._lock:
            unseen = windows[-1].unseen if windows else frozenset[str]()
            self._gate.queue.hold([case.finding.key for case in self._store if case.moves_held
                                   or not unseen.isdisjoint(case.finding.targets)])
        self._undoing.go_on()

    def _is_braked(self, case: Remediation, now: float) -> bool:
        """Whether a job of a remediation is slowed on purpose. Then its acts are measured from the end of that on."""
        began = [self._store.braked[job] for job in (case.finding.aggressor, case.finding.victim)
                 if job in self._store.braked]
        if began:
            case.acted_at, case.braked_at = now, case.braked_at or min(began)
        return bool(began)

    def _judged(self, case: Remediation, windows: Sequence[Window], tracks: Mapping[str, StreamTrack],
                flash: Collection[str], now: float) -> None:
        """Give the verdict on one remediation, if there is one by now.

        Moves load the disks themselves, so throughput measured after the last move counts, if that move ends soon.
        Otherwise throughput measured during the moves may count for the act. Before it counts against the act, the
        remaining moves wait, and the effect is measured again without them.
        """
        settings = self._settings.verify
        if self._gate.default_layouts.of(case.finding.key):
            return
        if (not case.defaults and self._gate.waiting_for(case.finding.key)
                and now < case.begun_at + settings.moving_seconds):
            return  # there is no act but moves, and they have time left
        if policy_for(case.finding).judged_by is JudgedBy.ITSELF:
            self._judged_by_itself(case, windows, flash, now)
            return
        case.to(State.JUDGING)
        on_mdt = case.layout.components[0].on_mdt
        judgement = judge(Act(case.finding, case.unslowed_until, case.acted_at, flash, on_mdt), windows, tracks, now,
                          settings, totals=self._totals)
        if judgement.verdict != Verdict.TOO_EARLY and case.moved_at > case.acted_at:
            alone = judge(Act(case.finding, case.unslowed_until, case.moved_at, flash, on_mdt), windows, tracks, now,
                          settings, totals=self._totals)
            latest = case.acted_at + settings.settle_seconds + MAX_MEASURING_TIMES * settings.judge_seconds
            if judgement.verdict in {Verdict.DID_NOT_HELP, Verdict.HARMED_OTHERS} or judgement.is_slower:
                if not case.moves_held and self._gate.waiting_for(case.finding.key):
                    case.moves_held = True
                    self._log.of_number(case.number, [log.remeasured_sentence(case.finding, judgement)])
                judgement = alone
            elif alone.verdict != Verdict.TOO_EARLY or (judgement.verdict == Verdict.HELPED and now < latest):
                judgement = alone
        if judgement.verdict != Verdict.TOO_EARLY:
            self.settle(case, judgement)

    def _judged_by_itself(self, case: Remediation, windows: Sequence[Window], flash: Collection[str],
                          now: float) -> None:
        """Give the verdict on acts for the job whose files they move. Without any act there is nothing to judge."""
        if not case.defaults and not case.moved:
            if not self._gate.waiting_for(case.finding.key):
                case.settle(State.KEPT)
            return
        case.to(State.JUDGING)
        since = max(case.acted_at, case.moved_at)
        judgement = judge_own(Act(case.finding, case.unslowed_until, since, flash,
                                  case.layout.components[0].on_mdt), windows, now, self._settings.verify,
                              self._totals, operations=case.finding.evidence.in_operations)
        if judgement.verdict != Verdict.TOO_EARLY:
            self.settle(case, judgement)

    def settle(self, case: Remediation, judgement: Judgement) -> None:
        self._note(case, judgement)
        if case.abandoned:
            slower = judgement.own and judgement.verdict == Verdict.DID_NOT_HELP
            case.begin_undo("the job got slower" if slower else UNDO_REASONS[judgement.verdict])
        else:
            case.settle(State.KEPT)

    def _note(self, case: Remediation, judgement: Judgement) -> None:
        """Log and count a verdict, and store it in the journal for later decisions."""
        rates = ((0.0, 0.0, 0.0) if judgement.operations  # the journal has throughput, for people
                 else (judgement.usual, judgement.contended, judgement.after))
        self._enter(case, judgement, case.size_bytes, rates)
        self._log.of_number(case.number, [log.judged_sentence(case.finding, judgement)])

    def _enter(self, case: Remediation, judgement: Judgement, size_bytes: int,
               rates: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> None:
        now = self._clock.now()
        case.verdict, case.judgement, case.judged_at = judgement.verdict, judgement, now
        if not judgement.own:
            case.finding = self._log.measured(case.number, case.finding, judgement.contended)
        self._counters.verdicts[judgement.verdict] += 1
        self._counters.judged_at = now
        self._journal.judgements.add(case.number, case.finding.kind, case.pool, size_bytes, judgement.verdict,
                                     judgement.won_back, now, *rates, interval=judgement.interval)

    def _judge_moves(self, windows: Sequence[Window]) -> None:
        """Judge the runs that have ended, and stop those that slow a job."""
        if self._gate.dry_run:
            return
        now, facts = self._clock.now(), self._facts()
        cases = [(case, judge) for case in self._store if (judge := policy_for(case.finding).move_judge) is not None]
        self._runs = {case.finding.key: run for case, _ in cases if (run := self._runs.get(case.finding.key))}
        for case, judge in cases:
            with self._store.lock:
                self._judge_moves_of(case, judge, facts, windows, now)

    def _judge_moves_of(self, case: Remediation, judge: MoveJudge, facts: Facts, windows: Sequence[Window],
                        now: float) -> None:
        if case.abandoned:
            cooled_down = now >= case.judged_at + self._settings.verify.cooldown_seconds
            if case.verdict is not Verdict.UNDONE_BY_HAND and cooled_down:
                case.verdict = Verdict.NONE  # it may be tried again
            return
        if not case.moved or case.judged_at >= case.moved_at:
            return
        moving = bool(self._gate.waiting_for(case.finding.key)) or now < case.moved_at + END_SECONDS
        judgement = judge.judge(case.finding, case.finding.evidence, MoveRun(
            self._run_of(case).begun_at, case.begun_at, last_at=case.moved_at, moving=moving,
            moved=partial(self._moved, case), facts=facts,
            windows=windows, now=now, settings=self._settings.verify, totals=self._totals))
        if judgement is not None:
            self._settle_moves(case, judge, judgement)

    def _run_of(self, case: Remediation) -> Run:
        """The present run of moves. One after a pause of ``judge_seconds`` begins a new one."""
        run = self._runs.get(case.finding.key)
        if run is None:
            run = Run(case.begun_at, case.moved_at)
        elif case.moved_at > run.last_at + self._settings.verify.judge_seconds:
            run = Run(case.moved_at, case.moved_at)
        run.last_at = case.moved_at
        self._runs[case.finding.key] = run
        return run

    def _moved(self, case: Remediation) -> Sequence[int]:
        return [entry.size_bytes for entry in self._journal.acts_in_force(case.number)
                if entry.kind == ActKind.MIGRATE and entry.outcome == Outcome.DONE]

    def _settle_moves(self, case: Remediation, judge: MoveJudge, judgement: Judgement) -> None:
        self._enter(case, judgement, 0)
        sentences = [f"verdict on the {judge.noun}: {judgement.words}"]
        if case.abandoned and (dropped := self._gate.drop(case.finding.key)):
            case.tried -= {action.path for action in dropped}  # they may be moved later
            sentences.append(f"dropped {count_of(len(dropped), 'queued move')} of the {judge.noun}")
        self._log.of_number(case.number, sentences)

    def judge_defaults(self) -> None:
        """Judge the defaults that were measured long enough, twice a minute."""
        now = self._clock.now()
        if now < self._looked_at + LOOK_SECONDS:
            return
        self._looked_at = now
        for entry, kind, numbers in self._journal.stripings_to_judge(now - MAX_AGE_SECONDS):
            evidence, policy = evidence_of(kind, numbers), policy_of(kind)
            if (policy.default_judge is not None and isinstance(evidence, policy.evidence)
                    and now >= entry.intended_at + policy.default_judge.seconds):
                self._judge_default(entry, evidence, policy.default_judge)

    def _judge_default(self, entry: Entry, evidence: object, judge: DefaultJudge) -> None:
        facts = self._facts()
        if not facts.directory_seconds or facts.directory_seconds > self._clock.now() - entry.intended_at:
            return  # the operations since the act are not known yet
        found = judge.judge(entry.place, evidence, facts)
        number = self._journal.finding_of(entry.id)
        if found.verdict is Verdict.DID_NOT_HELP:
            result = self._undoing.act(entry, found.words)
            if result.outcome != Outcome.UNDONE and not self._undoing.act.held():
                self._journal.judged(entry.id, found.verdict, f"not undone: {result.detail}", self._clock.now())
            self._log.undone(number, entry, result.outcome, result.detail)
            return
        self._journal.judged(entry.id, found.verdict, f"kept: {found.words}", self._clock.now())
        self._log.of_number(number, [f"KEPT default striping of {entry.place}: {found.words}"])
