"""Finds noisy neighbours: the pairs of aggressor and victim in the newest window, with their evidence.

A finding continues if the aggressor stays longer than the history: it is still active beside the victim, and the
victim is as slow as before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TypedDict

from tierd.detect.device_time import CostPrior, TargetTime, Work, mean_share
from tierd.detect.noisy_neighbour.baseline import LoadTracks, SlowdownSettings, stream_series
from tierd.detect.noisy_neighbour.blame import blamed, most_taken
from tierd.detect.noisy_neighbour.pairs import SlowdownDetector, SlowdownView
from tierd.detect.noisy_neighbour.signature import Signature, signatures
from tierd.detect.noisy_neighbour.slowdown import Slowdown, bystander_gain, slowdowns
from tierd.detect.profile import Classes, Profile, is_in_between, is_small_files, is_suspect
from tierd.model import Finding, NoisyNeighbourEvidence, SlowdownEvidence
from tierd.text import binary_text, count_of, percent, rate_text


class AggressorNumbers(TypedDict):
    """Numbers of :class:`tierd.model.NoisyNeighbourEvidence` that describe the aggressor alone."""

    aggressor_operations_per_second: float
    aggressor_operations_share: float
    aggressor_bytes_per_second: float
    aggressor_mean_rpc_bytes: float
    aggressor_largest_rpc_bytes: int
    aggressor_read_share: float
    aggressor_files_per_second: float
    aggressor_bytes_per_file: float


def detect(view: SlowdownView, settings: SlowdownSettings) -> Iterator[Finding]:
    """Findings of the newest window, each pair of jobs once."""
    suspects = {p.job: p for p in view.jobs.values() if is_suspect(p, settings.classes)}
    streams = [p for p in view.streams if p.job not in suspects]
    slowed = explained(view, list(slowdowns(view, streams, suspects.values(), DETECTOR.name, settings)), settings)
    held = {key[1:] for key in view.active if key[0] == DETECTOR.name}
    found = set()
    for slow in blamed(view, slowed, held, settings.load_share):
        found.add((slow.other.job, slow.victim.job))
        yield Finding(
            DETECTOR.name, view.now, slow.other.job, slow.victim.job, slow.targets,
            sentence(slow, settings.classes),
            evidence(view, slow, streams, settings),
            advice_only=is_in_between(slow.other, settings.classes),
        )
    for seen in signatures(view, streams, suspects, DETECTOR.name, settings):
        for aggressor in seen.aggressors:
            past = seen.pasts.get(aggressor.job)
            if (aggressor.job, seen.victim.job) not in found:
                yield Finding(
                    DETECTOR.name, view.now, aggressor.job, seen.victim.job, past.targets if past else seen.targets,
                    f"{sentence(past, settings.classes)}; evidence: past, {seen.kinds(aggressor.job)}" if past
                    else signature_sentence(seen, aggressor, settings.classes),
                    evidence(view, past, streams, settings) if past
                    else signature_evidence(seen, aggressor, settings.classes),
                    advice_only=is_in_between(aggressor, settings.classes),
                )


def explained(view: SlowdownView, slowed: Sequence[Slowdown], settings: SlowdownSettings) -> list[Slowdown]:
    """Slowdowns whose suspects can have cost as much throughput as the victim lost.

    The cost of everybody's operations decides. On a failing disk those of all jobs cost more than usual on the pool, so
    the suspects' part of the device time stays what it was, and a trickle is not blamed. A stream may lose more than
    this part, as its stripes wait for the slowest. So the part needs to be no more than the loss at which a finding
    begins (``enter``), of the time that the victims usually take: a stream beside a faster one takes little, and loses
    much of it to few operations. While costs are not known, an operation costs at most ``operation_seconds``.

    At the most, the stripes wait one after the other: then the stream loses what the suspects take of all its targets
    together. Where it lost more, the disks are slower for everybody. For this the slowest operations of a disk count if
    the fitted costs are smaller: the fit takes small and large operations for equal, and may be too low for small ones.
    """
    suspects: defaultdict[str, list[Profile]] = defaultdict(list)
    losses: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for slow in slowed:
        suspects[slow.victim.job].append(slow.other)
        lost = min(1 - slow.now / slow.usual, 1 - settings.enter) if slow.usual else 0.0
        losses[slow.other.job][slow.victim.job] = lost * usual_share(slow, view.device_times(slow.targets))

    recent = sum(window.seconds for window in view.recent)

    def is_explained(slow: Slowdown) -> bool:
        times, mine = view.device_times(slow.targets), suspects[slow.victim.job]
        lost = 1 - slow.now / slow.usual if slow.usual else 0.0
        if lost > most_throughput(slow, settings.operation_seconds):
            return False
        if len(times) < len(slow.targets):
            return True
        most = sum(max(most_seconds(time, mine, recent), slowest_seconds(time, mine, recent)) for time in times)
        if lost * usual_share(slow, times) > most:
            return False
        taken = max((largest_share(time, mine, recent) for time in times), default=0.0)
        return sum(losses[slow.other.job].values()) <= taken

    return [slow for slow in slowed if is_explained(slow)]


def usual_share(slow: Slowdown, times: Sequence[TargetTime]) -> float:
    """Mean part of the targets' service time that the victim took at its usual throughput."""
    if not slow.now or not times:
        return 1.0
    return fmean(min(time.share([slow.victim.job]) * slow.usual / slow.now, 1.0) for time in times)


SURE_ERRORS = 2.0
"""Standard errors beyond which a suspect cannot have taken more time."""


def largest_share(time: TargetTime, suspects: Sequence[Profile], recent: float) -> float:
    """Largest part of a target's service time that these jobs can take while they are at work."""
    return most_seconds(time, suspects, recent) / min(time.utilisation, 1.0) if time.utilisation > 0 else 1.0


def most_seconds(time: TargetTime, suspects: Sequence[Profile], recent: float) -> float:
    """Most seconds that these jobs can take of a target each second while they are at work.

    The target is taken to be as fast as its pool. ``time`` is the mean of the ``recent`` seconds.
    """
    work = work_at_once(time, suspects, recent)
    return time.costs.busy(work) + SURE_ERRORS * time.costs.busy_error(work)


SLOWEST_OPERATION_SECONDS = 2 * CostPrior().operation_seconds
"""Time of an operation on a slow disk: the upper end of what is assumed before anything is learned."""


def slowest_seconds(time: TargetTime, suspects: Sequence[Profile], recent: float) -> float:
    """Seconds that the operations of these jobs take of a target each second while they are at work, on a slow disk."""
    return work_at_once(time, suspects, recent).operations * SLOWEST_OPERATION_SECONDS


def work_at_once(time: TargetTime, suspects: Sequence[Profile], recent: float) -> Work:
    """Work a second of these jobs together while they are at work, from the mean of the ``recent`` seconds."""
    mine = [(time.work[job.job], recent / job.seconds) for job in suspects if job.job in time.work]
    return Work(sum([each[0] * active for each, active in mine]), sum([each[1] * active for each, active in mine]),
                sum([each[2] * active for each, active in mine]))


def most_throughput(slow: Slowdown, operation_seconds: float) -> float:
    """Largest share of the victim's throughput that the suspect's operations can cost."""
    here = [slow.other.by_target[target] for target in slow.targets]
    seconds = slow.other.seconds
    return most_taken(sum(load.operations for load in here) / seconds,
                      sum(load.moved_bytes for load in here) / seconds, slow.usual, operation_seconds)


def evidence(view: SlowdownView, slow: Slowdown, streams: Collection[Profile],
             settings: SlowdownSettings) -> NoisyNeighbourEvidence:
    """The numbers of a finding from the victim's past."""
    suspect = slow.other
    gain, gain_share = bystanders_gain(view.tracks, slow, streams, settings)
    times = view.device_times(slow.targets)
    taken = mean_share(times, suspect.job) if times else None
    return NoisyNeighbourEvidence(
        victim_usual_bytes_per_second=slow.usual, victim_bytes_per_second=slow.now, slowdown=slow.factor,
        quiet_windows=len(slow.course.quiet), contended_windows=len(slow.course.contended),
        learnt_windows=slow.learnt_windows,
        **aggressor_numbers(suspect, slow.victim, slow.targets, settings.classes),
        bystanders_gain_bytes_per_second=gain, bystanders_gain_share=gain_share,
        device_time_share=taken.share if taken else None, device_time_share_error=taken.error if taken else None,
    )


def signature_evidence(seen: Signature, aggressor: Profile, classes: Classes) -> NoisyNeighbourEvidence:
    """The numbers of a finding without a past: what is usual is what device time predicts without the aggressors."""
    taken = seen.device_time(aggressor.job)
    return NoisyNeighbourEvidence(
        victim_usual_bytes_per_second=seen.now * seen.gain.expected, victim_bytes_per_second=seen.now,
        slowdown=seen.gain.expected, quiet_windows=0, contended_windows=seen.contended_windows,
        **aggressor_numbers(aggressor, seen.victim, seen.targets, classes),
        device_time_share=taken.share, device_time_share_error=taken.error,
        gain_low=seen.gain.low, gain_high=seen.gain.high, gain_certain=seen.gain.certain,
        dose_probability=seen.dose.probability if seen.dose else None,
        dose_loss=seen.dose.loss if seen.dose else None,
        cross_section_ratio=seen.cross_section.ratio if seen.cross_section else None,
        cross_section_probability=seen.cross_section.probability if seen.cross_section else None,
    )


def aggressor_numbers(suspect: Profile, victim: Profile, targets: Collection[str],
                      classes: Classes) -> AggressorNumbers:
    """What an aggressor does."""
    files = is_small_files(suspect, classes)
    return {
        "aggressor_operations_per_second": operations_on(targets, suspect) / suspect.seconds,
        "aggressor_operations_share": operations_share(targets, suspect, victim),
        "aggressor_bytes_per_second": suspect.moved_bytes / suspect.seconds,
        "aggressor_mean_rpc_bytes": suspect.mean_rpc_bytes,
        "aggressor_largest_rpc_bytes": suspect.largest_rpc_bytes,
        "aggressor_read_share": suspect.reads / suspect.bulk_operations if suspect.bulk_operations else 0.0,
        "aggressor_files_per_second": suspect.files / suspect.seconds if files else 0.0,
        "aggressor_bytes_per_file": suspect.bytes_per_file if files else 0.0,
    }


def operations_on(targets: Collection[str], job: Profile) -> float:
    """Operations of a job on some targets."""
    return sum(job.by_target[target].operations for target in targets if target in job.by_target)


def operations_share(targets: Collection[str], suspect: Profile, victim: Profile) -> float:
    """The suspect's part of the two jobs' operations on the shared targets."""
    own = operations_on(targets, suspect)
    return own / (own + operations_on(targets, victim))


def bystanders_gain(tracks: LoadTracks, slow: Slowdown, streams: Collection[Profile],
                    settings: SlowdownSettings) -> tuple[float, float]:
    """Throughput that other streams on these targets gained since the victim slowed down, and lose when it recovers.

    Returns bytes per second of all of them, and the largest share of one stream's throughput.
    """
    total, largest = 0.0, 0.0
    for stream in streams:
        here = [target for target in slow.targets if target in stream.by_target]
        if stream.job == slow.victim.job or not here:
            continue
        won = bystander_gain(tracks, stream.job, slow, here, settings)
        rate = sum(stream.by_target[target].moved_bytes for target in here) / stream.seconds
        total += won
        largest = max(largest, won / rate if rate else 0.0)
    return total, largest


def sentence(slow: Slowdown, classes: Classes) -> str:
    """The finding in one sentence."""
    suspect = slow.other
    return (f"{slow.victim.job} streams at {rate_text(slow.now)} instead of {rate_text(slow.usual)} "
            f"({percent(slow.now / slow.usual)}) since {suspect.job} came to the same "
            f"{count_of(len(slow.targets), 'target')}; {suspect.job} {work_sentence(suspect, classes)}, "
            f"{percent(operations_share(slow.targets, suspect, slow.victim))} of the operations of both jobs there")


def signature_sentence(seen: Signature, aggressor: Profile, classes: Classes) -> str:
    """The finding without a past: the kinds of evidence it rests on, and how sure it is."""
    low, high = seen.now * seen.gain.low, seen.now * seen.gain.high
    without = "it" if len(seen.aggressors) == 1 else f"the {len(seen.aggressors)} neighbours"
    return (f"{aggressor.job} {work_sentence(aggressor, classes)} on the "
            f"{count_of(len(seen.targets), 'target')} to which {seen.victim.job} streams at {rate_text(seen.now)}; "
            f"without {without} the stream would get {rate_text(seen.now * seen.gain.expected)} ({rate_text(low)} to "
            f"{rate_text(high)}); both were active before tierd started; evidence: {seen.kinds(aggressor.job)}")


def work_sentence(suspect: Profile, classes: Classes) -> str:
    """What an aggressor does, in a few words."""
    if is_small_files(suspect, classes):
        return f"accesses {suspect.files / suspect.seconds:.0f} files/s of {binary_text(suspect.bytes_per_file)}"
    return f"sends {suspect.bulk_operations / suspect.seconds:.0f} RPCs/s of {binary_text(suspect.mean_rpc_bytes)}"


def continued_finding(finding: Finding, view: SlowdownView, settings: SlowdownSettings) -> Finding | None:
    """The finding as of now, if the history no longer reaches back before the aggressor.

    ``finding`` was found in the previous cycle and not in this one. None if the history suffices to judge it, or if it
    is over.
    """
    if not isinstance(finding.evidence, SlowdownEvidence):
        return None
    if isinstance(finding.evidence, NoisyNeighbourEvidence) and finding.evidence.lacks_past:
        return None  # its usual throughput is a prediction, which the next cycle makes anew
    usual, window = finding.evidence.victim_usual_bytes_per_second, view.windows[-1]
    both, unhealthy = {finding.victim, finding.aggressor}, window.conditions.keys()
    if not usual or not both <= view.jobs.keys() or not unhealthy.isdisjoint(finding.targets):
        return None
    course = stream_series(view.tracks, finding.victim, finding.aggressor, finding.targets, settings.presence)
    least = settings.min_windows
    if len(course.quiet) >= least or len(course.contended) < least or course.now(least) > settings.leave * usual:
        return None
    return replace(finding, time=window.end, held=False)


HOLD_SECONDS = 15.0
"""Time for which a finding is held that no window confirms. A reading that is late makes one window look slow and the
next one fast; three windows together show neither."""


def held_finding(finding: Finding, view: SlowdownView, settings: SlowdownSettings) -> Finding | None:
    """The finding as it was, if only uneven readings may have ended it.

    The aggressor is still active beside the victim, and the mean of the recent windows, in which late and early
    readings cancel out, is as slow as before. None if the finding is over.
    """
    if view.now - finding.time > HOLD_SECONDS or not isinstance(finding.evidence, SlowdownEvidence):
        return None
    usual, unhealthy = finding.evidence.victim_usual_bytes_per_second, view.windows[-1].conditions.keys()
    if not {finding.victim, finding.aggressor} <= view.jobs.keys() or not unhealthy.isdisjoint(finding.targets):
        return None
    course = stream_series(view.tracks, finding.victim, finding.aggressor, finding.targets, settings.presence)
    if not course.disturbed or not course.disturbed[-1] or course.ends[-1] < view.now:
        return None
    recent = view.windows[-settings.min_windows:]
    moved = sum(view.tracks.moved(finding.targets, finding.victim)[-settings.min_windows:])
    seconds = sum(window.seconds for window in recent if window.unseen.isdisjoint(finding.targets))
    slow = moved <= settings.leave * usual * seconds
    return replace(finding, held=True) if slow else None


DETECTOR = SlowdownDetector("noisy-neighbour", detect)
