"""Small files or small I/O of one job slow another job's stream on the targets they share.

The signature, all of it at once:

* the victim streams, and its throughput on the shared targets is below its own normal range;
* the aggressor does small I/O, or works on whole small files, on the same targets, and does a fair part of what these
  targets have to do;
* the victim was at its normal speed before the aggressor came, and has been slow in most windows since;
* the targets are not slow for a reason of their own (degraded, in recovery, full).

The published loss is 20-30 % (Cray, CUG 2018); 15 % is asked for here, which is above the 10 % by which single windows
of an undisturbed stream vary in recordings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Lt

from tierd.detect.baseline import Series, lower_edge, series
from tierd.detect.profile import Classes, Profile, is_small_files, is_small_io, is_stream, profiles
from tierd.model import Finding, JobLoad, Window

KIND = "noisy-neighbour"


@dataclass(frozen=True)
class Settings:
    """Thresholds. Fractions are of the victim's undisturbed throughput unless said otherwise."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    classes: Classes = field(default_factory=Classes)
    recent_seconds: Annotated[float, Gt(0)] = 30.0
    """What "now" means."""
    enter: Annotated[float, Gt(0), Lt(1)] = 0.85
    """Throughput below this fraction begins a finding."""
    leave: Annotated[float, Gt(0), Lt(1)] = 0.91
    """Throughput above this fraction ends it: 1/1.1."""
    least_windows: Annotated[int, Ge(2)] = 4
    """Windows with and windows without the aggressor, at the least: fewer are no evidence."""
    slow_windows: Annotated[float, Gt(0), Lt(1)] = 0.6
    """Share of the windows since the aggressor came in which the victim must have been slow."""
    target_share: Annotated[float, Gt(0), Lt(1)] = 0.15
    """Aggressor's part of the operations or of the bytes of the two on a target, for the target to count as shared."""
    presence: Annotated[float, Gt(0), Lt(1)] = 0.05
    """Aggressor's part of the operations of the two for a window to count as disturbed."""
    load_share: Annotated[float, Gt(0), Lt(1)] = 0.25
    """Aggressor's part of the load that came upon the shared targets since it came, the victim's aside."""


def detect(windows: Sequence[Window], settings: Settings,
           active: Collection[tuple[str, str, str]] = ()) -> Iterator[Finding]:
    """Findings of the newest window, each pair of jobs once. ``active`` are the keys found before (hysteresis)."""
    if not windows:
        return
    recent = [w for w in windows if w.end > windows[-1].end - settings.recent_seconds]
    jobs = profiles(recent)
    suspects = [p for p in jobs.values() if is_small_files(p, settings.classes) or is_small_io(p, settings.classes)]
    victims = [p for p in jobs.values() if is_stream(p, settings.classes) and p not in suspects]
    for victim in victims:
        for suspect in suspects:
            targets = shared_targets(victim, suspect, windows[-1], settings.target_share)
            if not targets:
                continue
            edge = settings.leave if (KIND, suspect.job, victim.job) in active else settings.enter
            course = series(windows, victim.job, suspect.job, targets, settings.presence)
            if slowed(course, len(recent), edge, settings):
                before = [w for w in windows if w.end < course.onset_end][-len(recent):]
                if load_share(suspect, victim, rates(recent, targets), rates(before, targets)) >= settings.load_share:
                    yield Finding(
                        KIND, windows[-1].end, suspect.job, victim.job, targets,
                        sentence(victim, suspect, targets, course, settings.classes),
                        {**victim_evidence(course, len(recent)),
                         **suspect_evidence(suspect, victim, targets, settings.classes)},
                    )


def shared_targets(victim: Profile, suspect: Profile, now: Window, share: float) -> tuple[str, ...]:
    """Healthy targets where both work and the suspect does at least its share of the operations or bytes of the two.

    Either is enough: 4 KiB writes are many operations and hardly any bytes, 4 MiB files the other way round.
    """
    def fair(target: str, load: JobLoad) -> bool:
        other = victim.by_target[target]
        return (load.operations >= share * (load.operations + other.operations)
                or load.moved_bytes >= share * (load.moved_bytes + other.moved_bytes))

    return tuple(sorted(
        target for target, load in suspect.by_target.items()
        if target in victim.by_target and target not in now.conditions and fair(target, load)
    ))


Rates = Mapping[str, tuple[float, float]]
"""Job to its operations and bytes per second."""


def rates(windows: Sequence[Window], targets: Collection[str]) -> Rates:
    """What each job asked of the targets."""
    totals: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for window in windows:
        for (target, job), load in window.loads.items():
            if target in targets:
                totals[job][0] += load.operations
                totals[job][1] += load.moved_bytes
    seconds = sum(window.seconds for window in windows) or 1.0
    return {job: (operations / seconds, moved / seconds) for job, (operations, moved) in totals.items()}


def load_share(suspect: Profile, victim: Profile, now: Rates, before: Rates) -> float:
    """Suspect's part of what came upon the targets since it came: mean of its parts of operations and of bytes.

    Jobs that were there before and ask for no more than then did not make the victim slower than then.
    """
    def part(of: int) -> float:
        more = {job: max(0.0, rate[of] - before.get(job, (0.0, 0.0))[of]) for job, rate in now.items()
                if job != victim.job}
        total = sum(more.values())
        return more.get(suspect.job, 0.0) / total if total else 0.0

    return (part(0) + part(1)) / 2


def slowed(course: Series, recent_windows: int, edge: float, settings: Settings) -> bool:
    """Whether the victim was well before the suspect came, and has been slow in most windows of late.

    Of late is the second half of the suspect's stay: noise may build up, as when a directory fills.
    """
    quiet, contended = course.quiet, course.contended
    if len(quiet) < settings.least_windows or len(contended) < settings.least_windows:
        return False
    usual, now = median(quiet), median(contended[-recent_windows:])
    before = course.before_onset(3)
    if now > edge * usual or not before or median(before) < (usual + now) / 2:
        return False
    limit = lower_edge(quiet, edge)
    late = contended[-max(recent_windows, len(contended) // 2):]
    if sum(rate <= limit for rate in late) < settings.slow_windows * len(late):
        return False
    return len(contended) < 2 * settings.least_windows or dose_fits(course, usual)


def dose_fits(course: Series, usual: float) -> bool:
    """Whether as much of the suspect did some harm early in its stay too.

    A victim that bore it well for long, and then got slow while the suspect did no more than before, got slow for
    another reason: a disk that fails, for instance.
    """
    (early, early_dose), (late, late_dose) = course.halves()
    return early_dose < late_dose / 2 or usual - early >= (usual - late) / 3


def victim_evidence(course: Series, recent_windows: int) -> dict[str, float]:
    """How fast the victim was and is, in bytes per second."""
    usual, now = median(course.quiet), median(course.contended[-recent_windows:])
    return {
        "victim_usual_bytes_per_second": usual,
        "victim_bytes_per_second": now,
        "slowdown": usual / now if now else float("inf"),
        "quiet_windows": float(len(course.quiet)),
        "contended_windows": float(len(course.contended)),
    }


def suspect_evidence(suspect: Profile, victim: Profile, targets: Collection[str],
                     classes: Classes) -> dict[str, float]:
    """What the aggressor does, on the shared targets and in all. ``bytes_per_file`` is 0 for I/O within large files."""
    own = sum(suspect.by_target[t].operations for t in targets)
    others = sum(victim.by_target[t].operations for t in targets)
    files = is_small_files(suspect, classes)
    return {
        "aggressor_operations_per_second": own / suspect.seconds,
        "aggressor_operations_share": own / (own + others),
        "aggressor_bytes_per_second": suspect.moved_bytes / suspect.seconds,
        "aggressor_mean_rpc_bytes": suspect.mean_rpc_bytes,
        "aggressor_largest_rpc_bytes": float(suspect.largest_rpc_bytes),
        "aggressor_read_share": suspect.reads / suspect.bulk_operations if suspect.bulk_operations else 0.0,
        "aggressor_files_per_second": suspect.files / suspect.seconds if files else 0.0,
        "aggressor_bytes_per_file": suspect.bytes_per_file if files else 0.0,
    }


def sentence(victim: Profile, suspect: Profile, targets: Collection[str], course: Series, classes: Classes) -> str:
    """The finding, as one would tell it to a colleague."""
    usual, now = median(course.quiet), median(course.contended)
    if is_small_files(suspect, classes):
        what = f"{suspect.files / suspect.seconds:.0f} files/s of {suspect.bytes_per_file / 2**10:.0f} KiB"
    else:
        what = f"{suspect.bulk_operations / suspect.seconds:.0f} RPCs/s of {suspect.mean_rpc_bytes / 2**10:.0f} KiB"
    share = suspect_evidence(suspect, victim, targets, classes)["aggressor_operations_share"]
    return (f"{victim.job} streams at {now / 1e6:.1f} MB/s instead of {usual / 1e6:.1f} MB/s ({now / usual:.0%}) since "
            f"{suspect.job} works on the same {len(targets)} targets: {what}, {share:.0%} of the operations of the two "
            "there")
