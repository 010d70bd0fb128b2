"""Judges default stripings of directories by the metadata operations there, and undoes those that did not help.

The journal has what is needed: the act, and the operations of its finding. So a restart loses no judgement.
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
from tierd.model import Facts, MetadataStormEvidence, evidence_of
from tierd.verify.directory_striping import judge, rate_below

MAX_AGE_SECONDS = 7 * 86_400.0
"""Acts that are older are not judged any more."""
LOOK_SECONDS = 30.0
KEPT = "kept: "
"""Beginning of the detail of an act that was judged."""


class StripingJudge:
    """Gives the verdicts. One thread calls it."""

    def __init__(self, journal: Journal, undo: Undo, finding_log: FindingLog, facts: Callable[[], Facts], clock: Clock,
                 settings: Settings) -> None:
        self._journal = journal
        self._undo = undo
        self._log = finding_log
        self._facts = facts
        self._clock = clock
        self._settings = settings
        self._looked_at = 0.0

    def step(self) -> None:
        """Judge the acts that were measured long enough, twice a minute."""
        now = self._clock.now()
        if now < self._looked_at + LOOK_SECONDS:
            return
        self._looked_at = now
        for entry, numbers in self._journal.stripings_to_judge(now - MAX_AGE_SECONDS):
            evidence = evidence_of("metadata-storm", numbers)
            if (isinstance(evidence, MetadataStormEvidence)
                    and now >= entry.intended_at + self._settings.directory_striping.judge_seconds):
                self._judged(entry, evidence)

    def _judged(self, entry: Entry, evidence: MetadataStormEvidence) -> None:
        facts = self._facts()
        if not facts.directory_seconds or facts.directory_seconds > self._clock.now() - entry.intended_at:
            return  # the operations since the act are not known yet
        after = rate_below(entry.place, facts.directories, facts.directory_seconds)
        found = judge(evidence.parent_operations_per_second, after, self._settings.directory_striping)
        number = self._journal.finding_of(entry.id)
        if found.verdict is Verdict.DID_NOT_HELP:
            result = self._undo(entry, found.sentence)
            if result.outcome != Outcome.UNDONE and not self._undo.held():
                self._journal.end(entry.id, Outcome.DONE, f"{KEPT}not undone: {result.detail}", self._clock.now())
            self._log.of_number(number, [log.undone_sentence(entry, result.outcome, result.detail)])
            return
        self._journal.end(entry.id, Outcome.DONE, KEPT + found.sentence, self._clock.now())
        self._log.of_number(number, [f"KEPT default striping of {entry.place}: {found.sentence}"])
