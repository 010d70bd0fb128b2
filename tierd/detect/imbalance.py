"""One target of a pool is much fuller or busier than the others. The slowest target limits every striped file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Annotated

from annotated_types import Gt, Lt

from tierd.detect.plugin import Common, Detector, View
from tierd.detect.profile import Classes, Profile, is_small_files
from tierd.model import Advice, Evidence, FillEvidence, Finding, TargetFill, Window
from tierd.text import percent, quoted, rate_text


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    enter_fill: Annotated[float, Gt(0), Lt(1)] = 0.2
    """The finding begins if a target's used share exceeds the median of the other targets by this difference."""
    leave_fill: Annotated[float, Gt(0), Lt(1)] = 0.15
    """The finding ends below this difference."""
    enter_load: Annotated[float, Gt(1)] = 3.0
    """The finding begins at this ratio of a target's bytes or operations to the mean of the other targets."""
    leave_load: Annotated[float, Gt(1)] = 2.0
    """The finding ends below this ratio."""
    recent_seconds: Annotated[float, Gt(0)] = 60.0
    min_bytes_per_second: Annotated[float, Gt(0)] = 5e6
    min_operations_per_second: Annotated[float, Gt(0)] = 50.0
    """Minimum load of the target, in bytes or in operations."""
    classes: Classes = field(default_factory=Classes)


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesEvidence(Evidence):
    """Throughput of one target and of the other targets of its pool."""

    moved_bytes_per_second: float
    others_moved_bytes_per_second: float
    """Mean of the other targets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationsEvidence(Evidence):
    """Operations of one target and of the other targets of its pool."""

    operations_per_second: float
    others_operations_per_second: float
    """Mean of the other targets."""


def detect(view: View, settings: Settings) -> Iterator[Finding]:
    """Find the fullest and the busiest target of each pool, if they exceed the thresholds."""
    loads = loads_by_target(view.recent(settings.recent_seconds))
    for pool, members in sorted(view.facts.pools.items()):
        if len(members) > 1:
            yield from fill_findings(pool, members, view, settings)
            yield from load_findings(pool, members, loads, view, settings)


def fill_findings(pool: str, members: Sequence[str], view: View, settings: Settings) -> Iterator[Finding]:
    """Find a target that is fuller than the other targets of its pool, or emptier, as one that was just added.

    A target that takes no files, such as a drained one, is never too empty, and the others are not compared with it.
    """
    known = {t: view.facts.fill[t] for t in members if t in view.facts.fill}
    takers = {t: fill for t, fill in known.items() if t not in view.facts.closed}
    if len(known) < 2 or not takers:
        return
    size = sum(fill.size_bytes for fill in known.values())
    used_of_pool = 1 - sum(fill.avail_bytes for fill in known.values()) / size if size else 1.0
    for sign in (1, -1):
        far = [(is_active(target, view), sign * (fill.used - median_of_others(target, takers)), target)
               for target, fill in sorted((known if sign > 0 else takers).items()) if takers.keys() - {target}]
        far = [each for each in far if each[1] >= (settings.leave_fill if each[0] else settings.enter_fill)]
        if not far:
            continue
        chosen = max(far, key=lambda each: each[:2])[2]  # one that is reported already stays the reported one
        others = median_of_others(chosen, takers)
        yield Finding(
            DETECTOR.name, view.now, "", "", (chosen,),
            f"{quoted(chosen)} is {percent(known[chosen].used)} full; the median of the other targets of pool "
            f"{quoted(pool)} is {percent(others)}",
            FillEvidence(used_share=known[chosen].used, others_used_share=others, pool_used_share=used_of_pool),
            subject=f"fill of {chosen}", advice=fill_advice(pool, chosen, too_full=sign > 0))
        return


def is_active(target: str, view: View) -> bool:
    """Whether a finding about the fill of a target holds."""
    return (DETECTOR.name, "", f"fill of {target}") in view.active


def median_of_others(target: str, known: Mapping[str, TargetFill]) -> float:
    """Median used share of the other targets."""
    return median(fill.used for other, fill in known.items() if other != target)


def fill_advice(pool: str, target: str, *, too_full: bool) -> tuple[Advice, ...]:
    """How to even out a pool by hand. tierd does it if ``act.on`` names ``imbalance``."""
    name = quoted(target)
    effect = "; tierd does this if act.on has imbalance"
    if not too_full:
        return (Advice(f"lfs find MOUNT --pool {quoted(pool)} -size +1G -print0 | xargs -0 -n 1 lfs migrate "
                       f"--non-block -p {quoted(pool)} -o {int(target[-4:], 16)}",
                       "on a client, when the file system is quiet, until the fill is even",
                       f"moves large files to the emptier target{effect}"),)
    return (
        Advice(f"lfs find MOUNT --ost {name} -size +1G -print0 | xargs -0 -n 1 lfs migrate "
               f"--non-block -p {quoted(pool)}",
               "on a client, when the file system is quiet", f"moves large files to other targets of the pool{effect}"),
        Advice(f"lctl set_param osp.{name}-osc-MDT*.max_create_count=0", "on all MDS, until the fill is even",
               "stops new objects there; existing files stay usable. To undo, set the previous value (20000)"),
    )


@dataclass(slots=True)
class TargetLoad:
    """Load of a target per second, and its operations by job."""

    moved_bytes: float = 0.0
    operations: float = 0.0
    jobs: Counter[str] = field(default_factory=Counter)


def loads_by_target(recent: Sequence[Window]) -> defaultdict[str, TargetLoad]:
    """Load of each target."""
    seconds = sum(window.seconds for window in recent)
    found: defaultdict[str, TargetLoad] = defaultdict(TargetLoad)
    for window in recent:
        for (target, job), part in window.loads.items():
            done = found[target]
            done.moved_bytes += part.moved_bytes / seconds
            done.operations += part.operations / seconds
            done.jobs[job] += int(part.operations)
    return found


def load_findings(pool: str, members: Sequence[str], loads: defaultdict[str, TargetLoad], view: View,
         settings: Settings) -> Iterator[Finding]:
    """Find a target that serves more bytes or operations than the other targets of its pool."""
    least = {"moved_bytes": settings.min_bytes_per_second, "operations": settings.min_operations_per_second}
    for of, enough in least.items():
        rates = {target: float(getattr(loads[target], of)) for target in members}
        busiest = max(members, key=lambda t: rates[t])
        rate, others = rates[busiest], (sum(rates.values()) - rates[busiest]) / (len(members) - 1)
        edge = settings.leave_load if (DETECTOR.name, "", f"load of {busiest}") in view.active else settings.enter_load
        if rate < enough or rate < edge * others:
            continue
        (job, count), total = loads[busiest].jobs.most_common(1)[0], loads[busiest].jobs.total()
        profile = view.profiles(settings.recent_seconds).get(job)
        spread = profile is not None and can_spread(profile, busiest, members, settings)
        shown, instead = ((rate_text(rate), rate_text(others)) if of == "moved_bytes" else
                          (f"{rate:.0f} operations/s", f"{others:.0f} operations/s"))
        yield Finding(
            DETECTOR.name, view.now, "", "", (busiest,),
            f"{quoted(busiest)} serves {shown}; the other targets of pool {quoted(pool)} serve {instead} on average; "
            f"{quoted(job)} causes {percent(count / max(total, 1))} of the operations on {quoted(busiest)}",
            BytesEvidence(moved_bytes_per_second=rate, others_moved_bytes_per_second=others) if of == "moved_bytes" else
            OperationsEvidence(operations_per_second=rate, others_operations_per_second=others),
            advice_only=True, subject=f"load of {busiest}",
            advice=(Advice(f"lfs setstripe -c {min(4, len(members))} -p {quoted(pool)} DIRECTORY",
                           f"directories of {quoted(job)} with few large files",
                           "spreads the bytes over more targets"),)
            if spread else (),
        )
        return


def can_spread(job: Profile, target: str, members: Sequence[str], settings: Settings) -> bool:
    """Whether more stripes would relieve a target: the job has large files, and most of their bytes are there."""
    here = job.by_target[target].moved_bytes if target in job.by_target else 0.0
    everywhere = sum(job.by_target[member].moved_bytes for member in members if member in job.by_target)
    return here >= 0.5 * everywhere > 0 and not is_small_files(job, settings.classes)


DETECTOR = Detector("imbalance", Settings, detect)
