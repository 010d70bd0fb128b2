"""Jobs whose files break the rules of the NOTUR striping guide.

* Many clients and many files: do not stripe. The finding: a job creates small files with several stripes. Each file
  needs an object per stripe, and each create or unlink involves all these targets.
* Some clients and few large files: stripe. The finding: a stream keeps one target busy while others are idle.
* Many clients and one file: stripe over all targets. See ``shared-file-contention``.
* Small files on the same OST. The finding: a job has small files on several targets, and so few that one would do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Ge, Gt, Lt

from lustre.layout.model import Layout
from tierd.detect.attribution import directories
from tierd.detect.plugin import Common, Detector, View
from tierd.detect.profile import Classes, Profile, is_small_files, is_stream, seconds_active
from tierd.model import Advice, Evidence, Finding, StripingEvidence, Window
from tierd.text import first_names, percent, quoted, rate_text


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    classes: Classes = field(default_factory=Classes)
    recent_seconds: Annotated[float, Gt(0)] = 30.0
    min_files: Annotated[int, Ge(1)] = 50
    """Minimum number of small files created recently."""
    enter: Annotated[float, Gt(0), Lt(1)] = 0.9
    """The finding begins if one target holds this share of a stream's bytes."""
    leave: Annotated[float, Gt(0), Lt(1)] = 0.8
    """The finding ends below this share."""
    min_bytes_per_second: Annotated[float, Gt(0)] = 25e6
    """Minimum throughput of the stream on that target. That of the guide has 25 MiB/s on one, and 200 on eight."""
    max_files_per_second: Annotated[float, Gt(0)] = 20.0
    """Rate of small files below which one target is advised for them. The guide gives none: a choice."""
    stripes: Annotated[int, Ge(2)] = 4
    """Advised stripe count for few large files. The guide recommends 2 to 8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatteredFilesEvidence(Evidence):
    """Small files of a job on several targets. tierd does not act on it, so it is no :class:`StripingEvidence`."""

    small_file_share: float
    """The busiest target's share of the job's RPCs."""
    files_per_second: float
    targets_used: int


def detect(view: View, settings: Settings) -> Iterator[Finding]:
    """Find small files with several stripes, then streams that use one target."""
    recent = view.recent(settings.recent_seconds)
    jobs = view.profiles(settings.recent_seconds)
    small = {job.job for job in jobs.values() if is_small_files(job, settings.classes)}
    for activity in view.facts.directories:
        layout = view.facts.default_layouts.get(activity.directory)
        if activity.job in small and activity.creates >= settings.min_files and layout and is_striped(layout):
            yield striped_small_files(activity.job, activity.directory, activity.creates, layout, view)
    for job in jobs.values():
        beside = any(other is not job and other.by_target.keys() & job.by_target.keys() for other in jobs.values())
        if job.job in small and not beside:  # all on one target would load those whom it serves too
            yield from scattered_small_files(job, recent, view, settings)
    for job in jobs.values():
        if is_stream(job, settings.classes):
            yield from single_target_stream(job, recent, view, settings)


def is_striped(layout: Layout) -> bool:
    """Whether the first component has several stripes."""
    first = layout.components[0]
    return not first.on_mdt and (first.stripe_count > 1 or first.stripe_count < 0)


def striped_small_files(job: str, directory: str, creates: int, layout: Layout, view: View) -> Finding:
    """The finding about small files with several stripes."""
    count = layout.components[0].stripe_count
    objects = f"{count} objects" if count > 0 else "an object on every target"
    name = quoted(directory)
    return Finding(
        DETECTOR.name, view.now, job, "", (),
        f"{quoted(job)} creates small files in {name}, {creates} recently, each with {objects}",
        StripingEvidence(stripe_count=count, files_created=creates),
        (directory,), advice_only=True, subject=f"small files in {directory}",
        advice=(Advice(f"lfs setstripe -c 1 {name} (or -E 16M -c 1 -E -1 -c {max(count, 2)} for large files too)",
                       "new files there", "one object per file: fewer RPCs per create, stat and unlink"),),
    )


def scattered_small_files(job: Profile, recent: Sequence[Window], view: View, settings: Settings) -> Iterator[Finding]:
    """The finding about few small files on several disk targets of a pool."""
    files = job.closes / job.seconds
    target, load = max(job.by_target.items(), key=lambda item: (item[1].bulk_operations, item[0]))
    share = load.bulk_operations / max(job.bulk_operations, 1.0)
    pool = view.facts.pool_of(target)
    used = len(job.by_target.keys() & set(view.facts.pools.get(pool, ())))
    subject = f"small files of {job.job}"
    edge = settings.enter if (DETECTOR.name, job.job, subject) in view.active else settings.leave
    if (share >= edge or used < 2 or target in view.flash or job.closes < settings.min_files
            or files >= settings.max_files_per_second):
        return
    places = directories(view.activities(job.job, recent[0].start))
    in_pool = f" -p {quoted(pool)}" if pool else ""
    yield Finding(
        DETECTOR.name, view.now, job.job, "", tuple(sorted(job.by_target)),
        f"{quoted(job.job)} has {files:.0f} small files a second on {used} targets; the busiest, {quoted(target)}, has "
        f"{percent(share)} of their RPCs",
        ScatteredFilesEvidence(small_file_share=share, files_per_second=files, targets_used=used),
        places, advice_only=True, subject=subject,
        advice=(Advice(f"lfs setstripe -c 1 -i {int(target[-4:], 16)}{in_pool} {first_names(places) or 'DIRECTORY'}",
                       "new files there", "keeps the small files of the job on one target (NOTUR guide): its processes "
                       f"wait for one target instead of {used}"),),
    )


def single_target_stream(job: Profile, recent: Sequence[Window], view: View, settings: Settings) -> Iterator[Finding]:
    """The finding about a stream on one target of a pool with several targets."""
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
    gain = f"up to {count} times the throughput, if the client is fast enough"
    yield Finding(
        DETECTOR.name,
        view.now,
        job.job,
        "",
        (target,),
        f"{quoted(job.job)} moves {percent(share)} of its bytes, {rate_text(rate)}, on {quoted(target)}; the pool has "
        f"{len(members)} targets",
        StripingEvidence(target_share=share, bytes_per_second=rate, targets_available=len(members),
                         record_bytes=job.typical_rpc_bytes, seconds=seconds_active(job.job, view.windows)),
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
