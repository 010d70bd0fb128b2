"""How others fared meanwhile: jobs the act does not concern, and jobs that may have to pay for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from statistics import median, quantiles

from tierd.model import Finding, Window
from tierd.verify.settings import Settings

Rates = Mapping[str, Sequence[float]]
"""Job to what it got in each window, in units that are its own; only jobs that were active in all of them."""


def rates(windows: Sequence[Window], of: Callable[[Window], Mapping[str, float]]) -> Rates:
    """Rates of the jobs active in every one of the windows."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for window in windows:
        for job, rate in of(window).items():
            if rate > 0:
                found[job].append(rate)
    return {job: each for job, each in found.items() if len(each) == len(windows)}


def jobs_on(windows: Sequence[Window], targets: Collection[str]) -> set[str]:
    """Jobs that did something there in these windows."""
    return {job for window in windows for target, job in window.loads if target in targets}


def control(before: Sequence[Window], later: Sequence[Window], was: Rates, now: Rates, finding: Finding,
            settings: Settings) -> float:
    """What jobs that never touched the finding's targets get now as a fraction of before; 1 where few can tell."""
    touched = jobs_on((*before, *later), set(finding.targets))
    ratios = [median(now[job]) / median(was[job]) for job in was.keys() & now.keys() - touched - {finding.aggressor}]
    return min(2.0, max(0.5, median(ratios))) if len(ratios) >= settings.least_controls else 1.0


def losers(was: Rates, now: Rates, whom: Set[str], elsewhere: float, settings: Settings) -> dict[str, float]:
    """Steady jobs among these that lost more than they may, and how much of what they got before."""
    found: dict[str, float] = {}
    for job in whom & was.keys() & now.keys():
        lost = 1 - median(now[job]) / min(1.0, elsewhere) / median(was[job])
        if lost > max(settings.most_harm, variation(was[job]), variation(now[job])):
            found[job] = lost
    return found


def variation(values: Sequence[float]) -> float:
    """How far a job's rates lie apart by themselves: all but the outer tenths, as a share of the median."""
    if len(values) < 4:
        return 1.0  # too few to tell
    cuts = quantiles(values, n=10, method="inclusive")
    return (cuts[-1] - cuts[0]) / median(values)
