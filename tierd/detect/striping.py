"""The striping rules every site teaches (here those of the NOTUR guide), checked against what jobs do.

* Many clients and many files: do not stripe. Told where small files are made with several stripes: each costs an
  object on every target, and a create or an unlink asks them all.
* Some clients and few large files: stripe. Told where a stream keeps one target busy and the others idle.
* Many clients and one file: stripe over as many as there are; ``shared-file-contention`` tells that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Ge, Gt, Lt

from lustre.layout.model import Layout
from tierd.detect.attribution import directories
from tierd.detect.plugin import Common, Detector, View
from tierd.detect.profile import Classes, Profile, is_small_files, is_stream
from tierd.model import Advice, Evidence, Finding, Window
from tierd.text import first_names, percent, quoted


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    classes: Classes = field(default_factory=Classes)
    recent_seconds: Annotated[float, Gt(0)] = 30.0
    min_files: Annotated[int, Ge(1)] = 50
    """Small files made lately, for a rule about them to matter."""
    enter: Annotated[float, Gt(0), Lt(1)] = 0.9
    """Share of a stream's bytes on one target, to begin."""
    leave: Annotated[float, Gt(0), Lt(1)] = 0.8
    """The same, to go on."""
    min_bytes_per_second: Annotated[float, Gt(0)] = 50e6
    """Of a stream on that target; slower ones would gain little."""
    stripes: Annotated[int, Ge(2)] = 4
    """Advised for few large files: the guide found 2 to 8 best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StripedSmallFilesEvidence(Evidence):
    """Small files created with several stripes."""

    stripe_count: int
    """-1 for all targets."""
    files_created: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleTargetEvidence(Evidence):
    """A stream on one target of a pool."""

    target_share: float
    """Bytes of the stream on that target."""
    bytes_per_second: float
    targets_available: int
    """Targets of the pool."""


def detect(view: View, settings: Settings) -> Iterator[Finding]:
    """Small files with many stripes, then streams with one."""
    recent = view.recent(settings.recent_seconds)
    jobs = view.profiles(settings.recent_seconds)
    small = {job.job for job in jobs.values() if is_small_files(job, settings.classes)}
    for activity in view.facts.directories:
        layout = view.facts.default_layouts.get(activity.directory)
        if activity.job in small and activity.creates >= settings.min_files and layout and is_striped(layout):
            yield striped_small_files(activity.job, activity.directory, activity.creates, layout, view)
    for job in jobs.values():
        if is_stream(job, settings.classes):
            yield from single_target_stream(job, recent, view, settings)


def is_striped(layout: Layout) -> bool:
    """Whether the first bytes of a file already go to several objects."""
    first = layout.components[0]
    return not first.on_mdt and (first.stripe_count > 1 or first.stripe_count < 0)


def striped_small_files(job: str, directory: str, creates: int, layout: Layout, view: View) -> Finding:
    """Small files, striped."""
    count = layout.components[0].stripe_count
    objects = f"{count} objects" if count > 0 else "an object on every target"
    name = quoted(directory)
    return Finding(
        DETECTOR.name, view.now, job, "", (),
        f"{quoted(job)} makes small files in {name}, {creates} lately, with {objects} each",
        StripedSmallFilesEvidence(stripe_count=count, files_created=creates),
        (directory,), advice_only=True, subject=f"small files in {directory}",
        advice=(Advice(f"lfs setstripe -c 1 {name} (or -E 16M -c 1 -E -1 -c {max(count, 2)} for large files too)",
                       "new files there", "one object a file: fewer RPCs for each create, stat and unlink"),),
    )


def single_target_stream(job: Profile, recent: Sequence[Window], view: View, settings: Settings) -> Iterator[Finding]:
    """A stream on one target while others of its pool are there."""
    target, load = max(job.by_target.items(), key=lambda item: (item[1].moved_bytes, item[0]))
    share, rate = load.moved_bytes / max(job.moved_bytes, 1.0), load.moved_bytes / job.seconds
    pool = view.facts.pool_of(target)
    members = view.facts.pools.get(pool, ())
    subject = f"stream of {job.job}"
    edge = settings.leave if (DETECTOR.name, job.job, subject) in view.active else settings.enter
    if share < edge or rate < settings.min_bytes_per_second or len(members) < 2:
        return
    count = min(settings.stripes, len(members))
    places = directories(view.activities(job.job, recent[0].start))
    in_pool = f" -p {quoted(pool)}" if pool else ""
    gain = f"up to {count} times the throughput, as far as the client gives it"
    yield Finding(
        DETECTOR.name,
        view.now,
        job.job,
        "",
        (target,),
        f"{quoted(job.job)} streams {rate / 1e6:.0f} MB/s, {percent(share)} of it to {quoted(target)}, one of "
        f"{len(members)} targets of its pool",
        SingleTargetEvidence(target_share=share, bytes_per_second=rate, targets_available=len(members)),
        places,
        advice_only=True,
        subject=subject,
        advice=(
            Advice(
                f"lfs migrate --non-block -c {count}{in_pool} FILE",
                f"the files that {quoted(job.job)} reads, when closed",
                gain,
            )
            if load.read_bytes > load.write_bytes
            else Advice(
                f"lfs setstripe -c {count}{in_pool} {first_names(places) or 'DIRECTORY'}",
                "before the file is created",
                gain,
            ),
        ),
    )


DETECTOR = Detector("striping", Settings, detect)
