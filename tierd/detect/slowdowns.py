"""Streams that lose throughput to other jobs: the findings ``noisy-neighbour`` and ``shared-bandwidth``.

Both read the posterior of :mod:`tierd.detect.interference` and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, TypedDict

from annotated_types import Gt, Lt

from tierd.carrier import Carrier
from tierd.detect.device_time import TargetTime, mean_share
from tierd.detect.interference import Loss
from tierd.detect.profile import Classes, Profile, is_in_between, is_small_files
from tierd.model import Finding, NoisyNeighbourEvidence, SlowdownEvidence
from tierd.text import binary_text, count_of, percent, rate_text

NOISY_NEIGHBOUR, SHARED_BANDWIDTH = "noisy-neighbour", "shared-bandwidth"
SLOWDOWN_KINDS = NOISY_NEIGHBOUR, SHARED_BANDWIDTH
ERRORS_OF_90_PERCENT = 1.645
"""Standard errors on each side of the mean that hold nine tenths of a normal distribution."""


@dataclass(frozen=True)
class SlowdownSettings:
    """Thresholds of the table ``[noisy_neighbour]``, for both kinds of slowdown. Losses are parts of the throughput
    that the stream would have without the other jobs.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    classes: Classes = field(default_factory=Classes)
    recent_seconds: Annotated[float, Gt(0)] = 30.0
    """Period from which profiles of jobs are made."""
    min_loss: Annotated[float, Gt(0), Lt(1)] = 0.05
    """Loss that a finding is about: users do not notice less, and disks vary as much."""
    probability: Annotated[float, Gt(0), Lt(1)] = 0.6
    """A finding begins when the stream loses ``min_loss`` with this probability."""
    end_probability: Annotated[float, Gt(0), Lt(1)] = 0.5
    """It ends when the probability is less."""


@dataclass(frozen=True, slots=True)
class SlowdownView:
    """What the findings are made of."""

    now: float
    losses: Sequence[Loss]
    """To suspects."""
    rival_losses: Sequence[Loss]
    """To other streams."""
    jobs: Sequence[str]
    """Names of jobs by their numbers."""
    targets: Sequence[str]
    profiles: Mapping[str, Profile]
    """Of all jobs in the losses."""
    active: Collection[tuple[str, str, str]]
    """Keys of active findings."""
    device_time: Mapping[str, TargetTime]
    remembered: Mapping[str, int]
    """Windows of Prometheus' history by job, for streams whose usual throughput comes from it."""
    others: Collection[str] = ()
    """All targets with work."""


def noisy_neighbours(view: SlowdownView, settings: SlowdownSettings) -> Iterator[Finding]:
    """A stream that loses throughput to small files or small I/O; one finding for each of these jobs."""
    for loss in view.losses:
        victim = view.jobs[loss.victim]
        suspects = [view.jobs[job] for job in loss.suspects]
        held = any((NOISY_NEIGHBOUR, job, victim) in view.active for job in suspects)
        if not is_found(loss, held, settings):
            continue
        for job in suspects:
            if job in view.profiles:
                yield _noisy_neighbour(view, loss, victim, view.profiles[job], settings)


def shared_bandwidth(view: SlowdownView, settings: SlowdownSettings) -> Iterator[Finding]:
    """A stream that gets less because another stream uses the same targets. Flash for small files does not help."""
    for loss in view.rival_losses:
        victim, rivals = view.jobs[loss.victim], [view.jobs[job] for job in loss.suspects]
        held = any((SHARED_BANDWIDTH, job, victim) in view.active for job in rivals)
        if not rivals or rivals[0] not in view.profiles or not is_found(loss, held, settings):
            continue
        other = view.profiles[rivals[0]]
        targets = names_of_targets(view, loss)
        mend = "" if set(view.others) <= set(targets) else "other targets for one of the two jobs would help; "
        yield Finding(
            SHARED_BANDWIDTH, view.now, other.job, victim, targets,
            f"{slower(victim, loss)} since {other.job} streams to the same {count_of(len(targets), 'target')} at "
            f"{rate_text(other.moved_bytes / other.seconds)}; {mend}flash for small files would not help",
            SlowdownEvidence(**slowdown_numbers(loss, settings)), advice_only=True)


def is_found(loss: Loss, held: bool, settings: SlowdownSettings) -> bool:
    """Whether a loss is reported. A finding that is active ends at a lower probability than it began."""
    return loss.probability(settings.min_loss) >= (settings.end_probability if held else settings.probability)


def _noisy_neighbour(view: SlowdownView, loss: Loss, victim: str, suspect: Profile,
                     settings: SlowdownSettings) -> Finding:
    targets = names_of_targets(view, loss)
    shared = tuple(target for target in targets if target in suspect.by_target) or targets
    times = [view.device_time[target] for target in shared if target in view.device_time]
    taken = mean_share(times, suspect.job) if times else None
    files = is_small_files(suspect, settings.classes)
    own, theirs = operations_on(shared, suspect), operations_on(shared, view.profiles.get(victim))
    evidence = NoisyNeighbourEvidence(
        **slowdown_numbers(loss, settings),
        aggressor_operations_per_second=own / suspect.seconds,
        aggressor_operations_share=own / (own + theirs) if own else 0.0,
        aggressor_bytes_per_second=suspect.moved_bytes / suspect.seconds,
        aggressor_mean_rpc_bytes=suspect.mean_rpc_bytes,
        aggressor_largest_rpc_bytes=suspect.largest_rpc_bytes,
        aggressor_read_share=suspect.reads / suspect.bulk_operations if suspect.bulk_operations else 0.0,
        aggressor_files_per_second=suspect.files / suspect.seconds if files else 0.0,
        aggressor_bytes_per_file=suspect.bytes_per_file if files else 0.0,
        device_time_share=taken.share if taken else None, device_time_share_error=taken.error if taken else None,
        learnt_windows=view.remembered.get(victim))
    return Finding(NOISY_NEIGHBOUR, view.now, suspect.job, victim, shared, sentence(victim, loss, suspect, settings),
                   evidence, advice_only=is_in_between(suspect, settings.classes))


class SlowdownNumbers(TypedDict):
    """Numbers of any slowdown."""

    victim_usual_bytes_per_second: float
    victim_bytes_per_second: float
    slowdown: float
    loss_low: float
    loss_high: float
    loss_probability: float
    carrier: Carrier
    aggressor_came_at: float


def slowdown_numbers(loss: Loss, settings: SlowdownSettings) -> SlowdownNumbers:
    """What the stream gets, and what it would get without these jobs."""
    return {
        "victim_usual_bytes_per_second": loss.usual_bytes_per_second,
        "victim_bytes_per_second": loss.bytes_per_second,
        "slowdown": loss.usual_bytes_per_second / loss.bytes_per_second,
        "loss_low": loss.quantile(-ERRORS_OF_90_PERCENT),
        "loss_high": loss.quantile(ERRORS_OF_90_PERCENT),
        "loss_probability": loss.probability(settings.min_loss),
        "carrier": loss.carrier,
        "aggressor_came_at": loss.came_at,
    }


def operations_on(targets: Collection[str], job: Profile | None) -> float:
    """Operations of a job on some targets; 0 for a job without a profile."""
    return sum(job.by_target[target].operations for target in targets if target in job.by_target) if job else 0.0


def names_of_targets(view: SlowdownView, loss: Loss) -> tuple[str, ...]:
    """The targets that hold the stream up."""
    return tuple(sorted(view.targets[target] for target in loss.targets))


def slower(victim: str, loss: Loss) -> str:
    """What the stream gets, and what it would get."""
    usual = loss.usual_bytes_per_second
    return (f"{victim} streams at {rate_text(loss.bytes_per_second)} instead of {rate_text(usual)} "
            f"({percent(loss.bytes_per_second / usual)})")


CARRIED = {
    Carrier.HISTORY: "compared with Prometheus' history beside {}",
    Carrier.ARRIVAL: "since {} came",
    Carrier.LOAD: "and less when {} does more",
    Carrier.DEVICE_TIME: "beside {} (by device time alone)",
}


def sentence(victim: str, loss: Loss, suspect: Profile, settings: SlowdownSettings) -> str:
    """The finding in one sentence, with what it rests on."""
    low, high = loss.quantile(-ERRORS_OF_90_PERCENT), loss.quantile(ERRORS_OF_90_PERCENT)
    return (f"{slower(victim, loss)}, {CARRIED[loss.carrier].format(suspect.job)}; "
            f"{suspect.job} {work_sentence(suspect, settings.classes)} on the same "
            f"{count_of(len(loss.targets), 'target')}; loss {percent(low)} to {percent(high)}")


def work_sentence(suspect: Profile, classes: Classes) -> str:
    """What an aggressor does, in a few words."""
    if is_small_files(suspect, classes):
        return f"accesses {suspect.files / suspect.seconds:.0f} files/s of {binary_text(suspect.bytes_per_file)}"
    return f"sends {suspect.bulk_operations / suspect.seconds:.0f} RPCs/s of {binary_text(suspect.mean_rpc_bytes)}"
