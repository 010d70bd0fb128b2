"""Did it help, and did it harm? Throughput after an act against before, and against jobs the act does not concern.

Difference in differences: when jobs on other targets got faster or slower by a tenth meanwhile, a tenth of the victim's
change was not ours. Whoever shares the victim's targets, or the flash the files went to, or the metadata targets, must
not pay for it: another steady job that got clearly slower is a reason to take the act back at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from tierd.model import Finding, Window
from tierd.verify.bystanders import control, jobs_on, losers, rates
from tierd.verify.settings import Settings
from tierd.verify.totals import Totals

MOST_GAIN = 3.0
"""A victim that gets so many times what it got before its neighbour came does not owe that to the act."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """``verdict`` is ``too-early``, ``helped``, ``did-not-help``, ``harmed-others`` or ``cannot-tell``.

    Rates in bytes per second.
    """

    verdict: str
    usual: float
    contended: float
    after: float
    """Of the victim, less what happened to everybody."""
    elsewhere: float = 1.0
    """What jobs on other targets got, as a fraction of what they got before; 1 where too few can tell."""
    harmed: Mapping[str, float] = field(default_factory=dict)
    """Job to the fraction it lost."""

    @property
    def won_back(self) -> float:
        """Part of the loss that was won back; 1 is all of it."""
        loss = self.usual - self.contended
        return (self.after - self.contended) / loss if loss > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Act:
    """What is judged."""

    finding: Finding
    begun_at: float
    acted_at: float
    """When the last move of it was."""
    flash: Collection[str] = ()
    """Targets the files went to."""


def judge(act: Act, windows: Sequence[Window], now: float, settings: Settings,
          totals: Totals | None = None) -> Judgement:
    """Judge one act by the windows before and since.

    ``cannot-tell`` when the victim or the aggressor has gone, when their targets were not well or told nonsense, or
    when the victim gets more than can be the doing of the act: then nothing was proven, and nothing disproven.
    """
    finding, totals = act.finding, totals or Totals()
    usual, contended = (finding.evidence[f"victim_{name}bytes_per_second"] for name in ("usual_", ""))
    since = act.acted_at + settings.settle_seconds
    if now < since + min(settings.harm_seconds, settings.judge_seconds):
        return Judgement("too-early", usual, contended, 0.0)
    every = [w for w in windows if w.start >= since]
    later = [w for w in every if w.conditions.keys().isdisjoint(finding.targets)]
    before = [w for w in windows if act.begun_at - settings.judge_seconds <= w.start and w.end <= act.begun_at
              and finding.aggressor in w.jobs]
    was, got = rates(before, totals.moved), rates(later, totals.moved)
    elsewhere = control(before, later, was, got, finding, settings)
    lately = [rate for w in later if (rate := totals.moved(w).get(finding.victim, 0.0)) > 0
              and finding.aggressor in totals.moved(w)]
    after = median(lately) / elsewhere if lately else 0.0
    harmed: Mapping[str, float] = {}
    if now >= since + settings.harm_seconds:
        near = jobs_on(before, {*finding.targets, *act.flash}) - {finding.victim}
        harmed = losers(was, got, near, elsewhere, settings)
        asking = rates(before, totals.asked)
        for job, lost in losers(asking, rates(later, totals.asked), asking.keys() - {finding.victim}, elsewhere,
                                settings).items():
            harmed = {**harmed, job: max(lost, harmed.get(job, 0.0))}
    if harmed:
        return Judgement("harmed-others", usual, contended, after, elsewhere, harmed)
    if now < since + settings.judge_seconds:
        return Judgement("too-early", usual, contended, after, elsewhere)
    if len(lately) < max(2, len(every) // 2) or after > MOST_GAIN * usual:
        return Judgement("cannot-tell", usual, contended, after, elsewhere)
    gained = after - contended >= settings.least_gain * (usual - contended)
    return Judgement("helped" if gained else "did-not-help", usual, contended, after, elsewhere)
