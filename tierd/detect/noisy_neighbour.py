"""Small files or small I/O of one job slow another job's stream on the targets they share.

The signature, all of it at once:

* the victim streams, and its throughput on the shared targets is below its own normal range;
* the aggressor does small I/O, or works on whole small files, on the same targets, and does a fair part of what these
  targets have to do;
* the victim was at its normal speed before the aggressor came, and has been slow in most windows since;
* what the aggressor does there can cost the targets so much time (``reach``): a trickle does not make a disk sick;
* the targets are not slow for a reason of their own (degraded, in recovery, full).

The published loss is 20-30 % (Cray, CUG 2018); 15 % is asked for here, which is above the 10 % by which single windows
of an undisturbed stream vary in recordings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Gt, Lt

from tierd.detect import thresholds
from tierd.detect.blame import blamed
from tierd.detect.profile import Classes, Profile, is_in_between, is_small_files, is_stream, is_suspect
from tierd.detect.reach import most_taken
from tierd.detect.scene import Scene, scene
from tierd.detect.slowdown import Slowdown, gained, slowdowns
from tierd.detect.tracks import Tracks
from tierd.model import Finding, Window
from tierd.text import counted, percent

KIND = "noisy-neighbour"


@dataclass(frozen=True)
class Settings(thresholds.Settings):
    """Thresholds. Fractions are of the victim's undisturbed throughput unless said otherwise."""

    load_share: Annotated[float, Gt(0), Lt(1)] = 0.25
    """Suspects' part of the load that came upon the shared targets since they came, the victim's aside."""
    operation_seconds: Annotated[float, Gt(0)] = 0.1
    """A stream loses no more by one operation: seeks, a commit of the journal, a RAID that reads to write."""


def detect(windows: Sequence[Window], settings: Settings, active: Collection[tuple[str, str, str]] = (),
           at: Scene | None = None) -> Iterator[Finding]:
    """Findings of the newest window, each pair of jobs once. ``active`` are the keys found before (hysteresis)."""
    if not windows:
        return
    at = at or scene(windows, settings)
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


def bystander_evidence(tracks: Tracks, slow: Slowdown, streams: Collection[Profile],
                       settings: Settings) -> dict[str, float]:
    """What other streams on these targets have won since the victim got slow. Relief of the victim takes it back."""
    total, largest = 0.0, 0.0
    for stream in streams:
        here = [target for target in slow.targets if target in stream.by_target]
        if stream.job == slow.victim.job or not here:
            continue
        won = gained(tracks, stream.job, slow, here, settings)
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
            f"{counted(len(slow.targets), 'target')}: {what}, {percent(share)} of the operations of the two there")
