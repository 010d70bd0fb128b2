"""Finds noisy neighbours: the pairs of aggressor and victim of the newest window, with their evidence.

A finding also continues while the aggressor stays so long that the victim's earlier throughput is no longer
remembered: the aggressor is at work beside the victim, and the victim gets no more than it did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from tierd.detect.noisy_neighbour.baseline import LoadTracks, SlowdownSettings, stream_series
from tierd.detect.noisy_neighbour.blame import blamed, most_taken
from tierd.detect.noisy_neighbour.pairs import SlowdownDetector, SlowdownView
from tierd.detect.noisy_neighbour.slowdown import Slowdown, bystander_gain, slowdowns
from tierd.detect.profile import Classes, Profile, is_in_between, is_small_files, is_stream, is_suspect
from tierd.model import Finding, NoisyNeighbourEvidence, SlowdownEvidence
from tierd.text import count_of, percent


def detect(view: SlowdownView, settings: SlowdownSettings) -> Iterator[Finding]:
    """Findings of the newest window, each pair of jobs once."""
    suspects = {p.job: p for p in view.jobs.values() if is_suspect(p, settings.classes)}
    streams = [p for p in view.jobs.values() if p.job not in suspects and is_stream(p, settings.classes)]
    slowed = [slow for slow in slowdowns(view, streams, suspects.values(), DETECTOR.name, settings)
              if within_reach(slow, settings.operation_seconds)]
    held = {key[1:] for key in view.active if key[0] == DETECTOR.name}
    for slow in blamed(view, slowed, held, settings.load_share):
        yield Finding(
            DETECTOR.name, view.now, slow.other.job, slow.victim.job, slow.targets,
            sentence(slow, settings.classes),
            evidence(view.tracks, slow, streams, settings),
            advice_only=is_in_between(slow.other, settings.classes),
        )


def within_reach(slow: Slowdown, operation_seconds: float) -> bool:
    """Whether the suspect can have taken as much as the victim lost."""
    here = [slow.other.by_target[target] for target in slow.targets]
    seconds = slow.other.seconds
    taken = most_taken(sum(load.operations for load in here) / seconds,
                       sum(load.moved_bytes for load in here) / seconds, slow.usual, operation_seconds)
    return slow.usual - slow.now <= taken * slow.usual


def evidence(tracks: LoadTracks, slow: Slowdown, streams: Collection[Profile],
             settings: SlowdownSettings) -> NoisyNeighbourEvidence:
    """The numbers of one finding."""
    suspect = slow.other
    files = is_small_files(suspect, settings.classes)
    gain, gain_share = bystanders_gain(tracks, slow, streams, settings)
    return NoisyNeighbourEvidence(
        victim_usual_bytes_per_second=slow.usual, victim_bytes_per_second=slow.now, slowdown=slow.factor,
        quiet_windows=len(slow.course.quiet), contended_windows=len(slow.course.contended),
        learnt_windows=slow.learnt_windows,
        aggressor_operations_per_second=operations_on(slow.targets, suspect) / suspect.seconds,
        aggressor_operations_share=operations_share(slow),
        aggressor_bytes_per_second=suspect.moved_bytes / suspect.seconds,
        aggressor_mean_rpc_bytes=suspect.mean_rpc_bytes,
        aggressor_largest_rpc_bytes=suspect.largest_rpc_bytes,
        aggressor_read_share=suspect.reads / suspect.bulk_operations if suspect.bulk_operations else 0.0,
        aggressor_files_per_second=suspect.files / suspect.seconds if files else 0.0,
        aggressor_bytes_per_file=suspect.bytes_per_file if files else 0.0,
        bystanders_gain_bytes_per_second=gain, bystanders_gain_share=gain_share,
    )


def operations_on(targets: Collection[str], job: Profile) -> float:
    """Operations of a job on some targets, all of which it used."""
    return sum(job.by_target[target].operations for target in targets)


def operations_share(slow: Slowdown) -> float:
    """The aggressor's part of the two jobs' operations on the shared targets."""
    own = operations_on(slow.targets, slow.other)
    return own / (own + operations_on(slow.targets, slow.victim))


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
    """The finding, as one would tell it to a colleague."""
    suspect = slow.other
    if is_small_files(suspect, classes):
        what = f"{suspect.files / suspect.seconds:.0f} files/s of {suspect.bytes_per_file / 2**10:.0f} KiB"
    else:
        what = f"{suspect.bulk_operations / suspect.seconds:.0f} RPCs/s of {suspect.mean_rpc_bytes / 2**10:.0f} KiB"
    return (f"{slow.victim.job} streams at {slow.now / 1e6:.1f} MB/s instead of {slow.usual / 1e6:.1f} MB/s "
            f"({percent(slow.now / slow.usual)}) since {suspect.job} works on the same "
            f"{count_of(len(slow.targets), 'target')}: {what}, {percent(operations_share(slow))} of the operations "
            "of the two there")


def continued_finding(finding: Finding, view: SlowdownView, settings: SlowdownSettings) -> Finding | None:
    """The finding, as of now, where too little is remembered to judge it anew; None when it can be judged, or is over.

    ``finding`` is one that the rules of :mod:`tierd.detect.noisy_neighbour.slowdown` found in the cycle before, and
    not in this one.
    """
    if not isinstance(finding.evidence, SlowdownEvidence):
        return None
    usual, window = finding.evidence.victim_usual_bytes_per_second, view.windows[-1]
    both, ill = {finding.victim, finding.aggressor}, window.conditions.keys()
    if not usual or not both <= view.jobs.keys() or not ill.isdisjoint(finding.targets):
        return None
    course = stream_series(view.tracks, finding.victim, finding.aggressor, finding.targets, settings.presence)
    least = settings.min_windows
    if len(course.quiet) >= least or len(course.contended) < least or course.now(least) > settings.leave * usual:
        return None
    return replace(finding, time=window.end)


DETECTOR = SlowdownDetector("noisy-neighbour", detect)
