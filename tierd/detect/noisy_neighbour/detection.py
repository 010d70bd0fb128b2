"""Finds noisy neighbours: the pairs of aggressor and victim of the newest window, with their evidence.

A finding also continues while the aggressor stays so long that the victim's earlier throughput is no longer
remembered: the aggressor is at work beside the victim, and the victim gets no more than it did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from annotated_types import Gt, Lt

from tierd.detect.noisy_neighbour import baseline
from tierd.detect.noisy_neighbour.baseline import LoadTracks, stream_series
from tierd.detect.noisy_neighbour.baseline import Settings as BaselineSettings
from tierd.detect.noisy_neighbour.blame import blamed, most_taken
from tierd.detect.noisy_neighbour.pairs import SlowdownView, slowdown_view
from tierd.detect.noisy_neighbour.slowdown import Slowdown, bystander_gain, slowdowns
from tierd.detect.profile import Classes, Profile, is_in_between, is_small_files, is_stream, is_suspect
from tierd.model import Finding, Window
from tierd.text import count_of, percent


def continued_finding(finding: Finding, at: SlowdownView, settings: BaselineSettings) -> Finding | None:
    """The finding, as of now, where too little is remembered to judge it anew; None when it can be judged, or is over.

    ``finding`` is one that the rules of :mod:`tierd.detect.noisy_neighbour.slowdown` found in the cycle before, and
    not in this one.
    """
    usual = finding.evidence.get("victim_usual_bytes_per_second", 0.0)
    window = at.windows[-1]
    both, ill = {finding.victim, finding.aggressor}, window.conditions.keys()
    if not usual or not both <= at.jobs.keys() or not ill.isdisjoint(finding.targets):
        return None
    course = stream_series(at.tracks, finding.victim, finding.aggressor, finding.targets, settings.presence)
    least = settings.min_windows
    if len(course.quiet) >= least or len(course.contended) < least or course.now(least) > settings.leave * usual:
        return None
    return replace(finding, time=window.end)


KIND = "noisy-neighbour"


@dataclass(frozen=True)
class Settings(baseline.Settings):
    """Thresholds. Fractions are of the victim's undisturbed throughput unless said otherwise."""

    load_share: Annotated[float, Gt(0), Lt(1)] = 0.25
    """Suspects' part of the load that came upon the shared targets since they came, the victim's aside."""
    operation_seconds: Annotated[float, Gt(0)] = 0.1
    """A stream loses no more by one operation: seeks, a commit of the journal, a RAID that reads to write."""


def detect(windows: Sequence[Window], settings: Settings, active: Collection[tuple[str, str, str]] = (),
           at: SlowdownView | None = None) -> Iterator[Finding]:
    """Findings of the newest window, each pair of jobs once. ``active`` are the keys found before (hysteresis)."""
    if not windows:
        return
    at = at or slowdown_view(windows, settings)
    suspects = {p.job: p for p in at.jobs.values() if is_suspect(p, settings.classes)}
    streams = [p for p in at.jobs.values() if p.job not in suspects and is_stream(p, settings.classes)]
    slowed = [slow for slow in slowdowns(at, streams, suspects.values(), KIND, active, settings)
              if within_reach(slow, settings.operation_seconds)]
    for slow in blamed(at, slowed, {key[1:] for key in active if key[0] == KIND}, settings.load_share):
        yield Finding(
            KIND, windows[-1].end, slow.other.job, slow.victim.job, slow.targets,
            sentence(slow, settings.classes),
            {**slow.evidence, **suspect_evidence(slow, settings.classes),
             **bystander_evidence(at.tracks, slow, streams, settings)},
            advice_only=is_in_between(slow.other, settings.classes),
        )


def within_reach(slow: Slowdown, operation_seconds: float) -> bool:
    """Whether the suspect can have taken as much as the victim lost."""
    here = [slow.other.by_target[target] for target in slow.targets]
    seconds = slow.other.seconds
    taken = most_taken(sum(load.operations for load in here) / seconds,
                       sum(load.moved_bytes for load in here) / seconds, slow.usual, operation_seconds)
    return slow.usual - slow.now <= taken * slow.usual


def suspect_evidence(slow: Slowdown, classes: Classes) -> dict[str, float]:
    """What the aggressor does, on the shared targets and in all. ``bytes_per_file`` is 0 for I/O within large files."""
    suspect = slow.other
    own = sum(suspect.by_target[t].operations for t in slow.targets)
    others = sum(slow.victim.by_target[t].operations for t in slow.targets)
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


def bystander_evidence(tracks: LoadTracks, slow: Slowdown, streams: Collection[Profile],
                       settings: Settings) -> dict[str, float]:
    """What other streams on these targets have won since the victim got slow. Relief of the victim takes it back."""
    total, largest = 0.0, 0.0
    for stream in streams:
        here = [target for target in slow.targets if target in stream.by_target]
        if stream.job == slow.victim.job or not here:
            continue
        won = bystander_gain(tracks, stream.job, slow, here, settings)
        rate = sum(stream.by_target[target].moved_bytes for target in here) / stream.seconds
        total += won
        largest = max(largest, won / rate if rate else 0.0)
    return {"bystanders_gain_bytes_per_second": total, "bystanders_gain_share": largest}


def sentence(slow: Slowdown, classes: Classes) -> str:
    """The finding, as one would tell it to a colleague."""
    suspect = slow.other
    if is_small_files(suspect, classes):
        what = f"{suspect.files / suspect.seconds:.0f} files/s of {suspect.bytes_per_file / 2**10:.0f} KiB"
    else:
        what = f"{suspect.bulk_operations / suspect.seconds:.0f} RPCs/s of {suspect.mean_rpc_bytes / 2**10:.0f} KiB"
    share = suspect_evidence(slow, classes)["aggressor_operations_share"]
    return (f"{slow.victim.job} streams at {slow.now / 1e6:.1f} MB/s instead of {slow.usual / 1e6:.1f} MB/s "
            f"({percent(slow.now / slow.usual)}) since {suspect.job} works on the same "
            f"{count_of(len(slow.targets), 'target')}: {what}, {percent(share)} of the operations of the two there")
