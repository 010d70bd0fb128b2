"""Judges a rebalance: is the difference of the fill smaller, and did a steady job lose throughput while files moved?

It is not undone: a move back costs as much as the move, and the target would be full again. If a job loses, or the fill
does not change, the moves stop for ``cooldown_seconds``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from tierd.acts import Verdict
from tierd.model import Facts, FillEvidence, Finding, Window
from tierd.text import bytes_text, count_of, percent, quoted
from tierd.verify.judgement import (
    JobTotals,
    Judgement,
    Settings,
    compared_rates,
    control_ratio,
    harmed_by,
    jobs_on_targets,
)


@dataclass(frozen=True, slots=True)
class Moved:
    """What a rebalance has moved, and when."""

    files: int
    size_bytes: int
    begun_at: float
    last_at: float


@dataclass(frozen=True, slots=True)
class FillNow:
    """Used share of the target of a finding, and the median of the other targets of its pool that take files."""

    used: float
    others: float


def fill_now(facts: Facts, target: str) -> FillNow | None:
    """The present fill; None while it is unknown."""
    members = facts.pools.get(facts.pool_of(target), ())
    others = [facts.fill[other].used for other in members
              if other != target and other in facts.fill and other not in facts.closed]
    return FillNow(facts.fill[target].used, median(others)) if target in facts.fill and others else None


def slowed_by_moves(finding: Finding, pool: Collection[str], begun_at: float, windows: Sequence[Window], now: float,
                    settings: Settings, totals: JobTotals) -> Mapping[str, float]:
    """Steady jobs on the targets of the pool that lost throughput since moves began, with their loss.

    They are compared with the time just before, and with jobs on other targets. Later than ``moving_seconds`` after
    that, a loss may have any cause.
    """
    since = begun_at + settings.settle_seconds
    if not since + settings.harm_seconds <= now <= begun_at + settings.moving_seconds:
        return {}
    before = [w for w in windows if begun_at - settings.judge_seconds <= w.start and w.end <= begun_at]
    later = [w for w in windows if w.start >= max(since, now - settings.judge_seconds)
             and w.conditions.keys().isdisjoint(pool)]
    about = replace(finding, targets=tuple(pool))
    elsewhere = control_ratio(before, later, *compared_rates(before, later, totals.moved), about, settings)
    near = jobs_on_targets(before, set(pool))
    found = harmed_by(before, later, near, elsewhere, set(), settings, totals)
    return {job: lost for job, lost in found.items() if job in near}


def judge_rebalance(finding: Finding, evidence: FillEvidence, moved: Moved, fill: FillNow, slowed: Mapping[str, float],
                    settings: Settings) -> Judgement:
    """The verdict. ``slowed`` are the jobs that lost throughput while files moved.

    It helped if the difference of the fill is smaller by ``min_gain`` of what it was.
    """
    before, after = abs(evidence.used_share - evidence.others_used_share), abs(fill.used - fill.others)
    share = 1 - after / before if before else 0.0
    again = f"the files stay, and tierd tries again in {settings.cooldown_seconds / 3600:g} h"
    if slowed:
        verdict = Verdict.HARMED_OTHERS
        losses = ", ".join(f"{quoted(job)} lost {percent(lost)}" for job, lost in sorted(slowed.items()))
        begin = f"stopped: jobs got slower while files moved: {losses}; {again}"
    elif share < settings.min_gain:
        verdict, begin = Verdict.DID_NOT_HELP, f"stopped: the fill hardly changed; {again}"
    else:
        verdict = Verdict.HELPED
        begin = f"it helped, and no steady job lost more than {percent(settings.max_harm)}"
    words = (f"{begin}. {quoted(finding.targets[0])} was {percent(evidence.used_share)} full and the others "
             f"{percent(evidence.others_used_share)}, now {percent(fill.used)} and {percent(fill.others)}; "
             f"{count_of(moved.files, 'file')} with {bytes_text(moved.size_bytes)} moved in "
             f"{max(1, round((moved.last_at - moved.begun_at) / 60))} min")
    return Judgement(verdict, 0.0, 0.0, 0.0, harmed=slowed, words=words, part=max(0.0, share))
