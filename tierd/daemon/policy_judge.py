"""Verdicts that a policy gives by a measure of its own: on runs of moves, and on defaults of directories.

Moves that slow a job or do not help are stopped. Defaults that did not help are undone; the journal has what is needed,
the act and the numbers of its finding, so a restart loses no judgement of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tierd.act.gate import Gate
from tierd.act.journal.entry import Entry
from tierd.act.journal.writer import Journal
from tierd.act.undo import Undo
from tierd.acts import ActKind, Outcome, Verdict
from tierd.clock import Clock
from tierd.config.settings import Settings
from tierd.daemon.log import FindingLog, LoopCounters
from tierd.daemon.remediation import Remediation, RemediationStore
from tierd.model import Facts, Window
from tierd.policies.protocol import DefaultJudge, MoveJudge, MoveRun
from tierd.policies.registry import evidence_of, policy_for, policy_of
from tierd.text import count_of
from tierd.verify.judgement import JobTotals, Judgement

END_SECONDS = 60.0
"""Time without a move after which a run has ended: the next plan would be made, and the space is up to date."""
MAX_AGE_SECONDS = 7 * 86_400.0
"""Defaults that are older are not judged any more."""
LOOK_SECONDS = 30.0
KEPT = "kept: "
"""Beginning of the detail of a default that was judged."""


@dataclass(slots=True)
class Run:
    """Moves of one case without a long pause."""

    begun_at: float
    last_at: float


class PolicyJudge:
    """Gives the verdicts. One thread calls it."""

    def __init__(self, store: RemediationStore, windows: Callable[[], Sequence[Window]], gate: Gate, undo: Undo,
                 journal: Journal, finding_log: FindingLog, facts: Callable[[], Facts], clock: Clock,
                 settings: Settings, counters: LoopCounters) -> None:
        """``windows`` returns the history, ``facts`` the latest facts."""
        self._store = store
        self._windows = windows
        self._gate = gate
        self._undo = undo
        self._journal = journal
        self._log = finding_log
        self._facts = facts
        self._clock = clock
        self._settings = settings.verify
        self._tables = settings.tables
        self._counters = counters
        self._totals = JobTotals()
        self._runs: dict[tuple[str, str, str], Run] = {}
        self._looked_at = 0.0

    def judge_moves(self) -> None:
        """Judge the runs that have ended, and stop those that slow a job."""
        if self._gate.dry_run:
            return
        now, facts = self._clock.now(), self._facts()
        cases = [(case, judge) for case in self._store if (judge := policy_for(case.finding).move_judge) is not None]
        self._runs = {case.finding.key: run for case, _ in cases if (run := self._runs.get(case.finding.key))}
        for case, judge in cases:
            with self._store.lock:
                self._judge_moves_of(case, judge, facts, now)
        self._totals.settle()

    def _judge_moves_of(self, case: Remediation, judge: MoveJudge, facts: Facts, now: float) -> None:
        if case.abandoned:
            if case.verdict is not Verdict.UNDONE_BY_HAND and now >= case.judged_at + self._settings.cooldown_seconds:
                case.verdict = Verdict.NONE  # it may be tried again
            return
        if not case.moved or case.judged_at >= case.moved_at:
            return
        moving = bool(self._gate.waiting_for(case.finding.key)) or now < case.moved_at + END_SECONDS
        judgement = judge.judge(case.finding, case.finding.evidence, MoveRun(
            self._run_of(case).begun_at, case.begun_at, last_at=case.moved_at, moving=moving,
            moved=partial(self._moved, case), facts=facts,
            windows=self._windows(), now=now, settings=self._settings, totals=self._totals))
        if judgement is not None:
            self._settle(case, judge, judgement)

    def _run_of(self, case: Remediation) -> Run:
        """The present run of moves. One after a pause of ``judge_seconds`` begins a new one."""
        run = self._runs.get(case.finding.key)
        if run is None:
            run = Run(case.begun_at, case.moved_at)
        elif case.moved_at > run.last_at + self._settings.judge_seconds:
            run = Run(case.moved_at, case.moved_at)
        run.last_at = case.moved_at
        self._runs[case.finding.key] = run
        return run

    def _moved(self, case: Remediation) -> Sequence[int]:
        """Sizes of the files that were moved."""
        return [entry.size_bytes for entry in self._journal.acts_in_force(case.number)
                if entry.kind == ActKind.MIGRATE and entry.outcome == Outcome.DONE]

    def _settle(self, case: Remediation, judge: MoveJudge, judgement: Judgement) -> None:
        case.verdict, case.judgement, case.judged_at = judgement.verdict, judgement, self._clock.now()
        self._counters.verdicts[judgement.verdict] += 1
        self._counters.judged_at = self._clock.now()
        self._journal.judgements.add(case.number, case.finding.kind, pool=case.pool, size_bytes=0,
                                     verdict=judgement.verdict,
                                     won_back=judgement.won_back, now=self._clock.now(), usual=0.0, contended=0.0,
                                     after=0.0)
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
                    and now >= entry.intended_at + policy.default_judge.seconds(self._tables)):
                self._judge_default(entry, evidence, policy.default_judge)

    def _judge_default(self, entry: Entry, evidence: object, judge: DefaultJudge) -> None:
        facts = self._facts()
        if not facts.directory_seconds or facts.directory_seconds > self._clock.now() - entry.intended_at:
            return  # the operations since the act are not known yet
        found = judge.judge(entry.place, evidence, facts, self._tables)
        number = self._journal.finding_of(entry.id)
        if found.verdict is Verdict.DID_NOT_HELP:
            result = self._undo(entry, found.words)
            if result.outcome != Outcome.UNDONE and not self._undo.held():
                self._journal.end(entry.id, Outcome.DONE, f"{KEPT}not undone: {result.detail}", self._clock.now())
            self._log.undone(number, entry, result.outcome, result.detail)
            return
        self._journal.end(entry.id, Outcome.DONE, KEPT + found.words, self._clock.now())
        self._log.of_number(number, [f"KEPT default striping of {entry.place}: {found.words}"])
