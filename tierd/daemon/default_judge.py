"""Judges default stripings of directories as their policy says, and undoes those that did not help.

The journal has what is needed: the act, and the numbers of its finding. So a restart loses no judgement.
"""

from __future__ import annotations

from collections.abc import Callable

from tierd.act.journal.entry import Entry
from tierd.act.journal.writer import Journal
from tierd.act.undo import Undo
from tierd.acts import Outcome, Verdict
from tierd.clock import Clock
from tierd.config.settings import Settings
from tierd.daemon import log
from tierd.daemon.log import FindingLog
from tierd.model import Evidence, Facts
from tierd.policies.protocol import DefaultJudge
from tierd.policies.registry import evidence_of, policy_of

MAX_AGE_SECONDS = 7 * 86_400.0
"""Acts that are older are not judged any more."""
LOOK_SECONDS = 30.0
KEPT = "kept: "
"""Beginning of the detail of an act that was judged."""


class DefaultsJudge:
    """Gives the verdicts. One thread calls it."""

    def __init__(self, journal: Journal, undo: Undo, finding_log: FindingLog, facts: Callable[[], Facts], clock: Clock,
                 settings: Settings) -> None:
        self._journal = journal
        self._undo = undo
        self._log = finding_log
        self._facts = facts
        self._clock = clock
        self._tables = settings.tables
        self._looked_at = 0.0

    def step(self) -> None:
        """Judge the acts that were measured long enough, twice a minute."""
        now = self._clock.now()
        if now < self._looked_at + LOOK_SECONDS:
            return
        self._looked_at = now
        for entry, kind, numbers in self._journal.stripings_to_judge(now - MAX_AGE_SECONDS):
            evidence, policy = evidence_of(kind, numbers), policy_of(kind)
            if (policy.default_judge is not None and isinstance(evidence, policy.evidence)
                    and now >= entry.intended_at + policy.default_judge.seconds(self._tables)):
                self._judged(entry, evidence, policy.default_judge)

    def _judged(self, entry: Entry, evidence: Evidence, judge: DefaultJudge) -> None:
        facts = self._facts()
        if not facts.directory_seconds or facts.directory_seconds > self._clock.now() - entry.intended_at:
            return  # the operations since the act are not known yet
        found = judge.judge(entry.place, evidence, facts, self._tables)
        number = self._journal.finding_of(entry.id)
        if found.verdict is Verdict.DID_NOT_HELP:
            result = self._undo(entry, found.sentence)
            if result.outcome != Outcome.UNDONE and not self._undo.held():
                self._journal.end(entry.id, Outcome.DONE, f"{KEPT}not undone: {result.detail}", self._clock.now())
            self._log.of_number(number, [log.undone_sentence(entry, result.outcome, result.detail)])
            return
        self._journal.end(entry.id, Outcome.DONE, KEPT + found.sentence, self._clock.now())
        self._log.of_number(number, [f"KEPT default striping of {entry.place}: {found.sentence}"])
