"""A job repeatedly reads small files on disks. On flash these reads need no seeks.

Three sources must agree: the changelog shows opens of existing files, job statistics show reads that reach the disk
targets (reads from a client's cache do not count), and the bytes per open show that the files are small.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt, Lt

from tierd.detect.advice import has_free_space
from tierd.detect.plugin import Common, Detector, View
from tierd.detect.profile import Profile
from tierd.model import Advice, DirectoryActivity, Finding, HotSmallFilesEvidence
from tierd.text import binary_text, count_of, percent, quoted


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    recent_seconds: Annotated[float, Gt(0)] = 30.0
    min_opens: Annotated[int, Ge(1)] = 100
    """Minimum number of recent opens of existing files in a directory. Changelogs must record OPEN (off by default)."""
    reopened: Annotated[float, Gt(0)] = 2.0
    """Minimum number of opens of existing files per created file. With fewer, the job mostly writes there."""
    enter_reads_per_second: Annotated[float, Gt(0)] = 10.0
    """The finding begins at this rate of read RPCs to disk targets."""
    leave_reads_per_second: Annotated[float, Gt(0)] = 5.0
    """The finding ends below this rate."""
    read_share: Annotated[float, Gt(0), Lt(1)] = 0.5
    """Minimum share of reads among the job's RPCs to disk targets."""
    small_file_bytes: Annotated[int, Gt(0)] = 8 << 20
    """Maximum mean of bytes read per open."""


def detect(view: View, settings: Settings) -> Iterator[Finding]:
    """One finding per job. It names the job's directories, the most opened first."""
    if not has_free_space(view, view.flash):
        return
    jobs = view.profiles(settings.recent_seconds)
    by_job: defaultdict[str, list[DirectoryActivity]] = defaultdict(list)
    for activity in view.facts.directories:
        if (activity.opens >= settings.min_opens and activity.opens >= settings.reopened * activity.creates
                and activity.directory.startswith("/")):
            by_job[activity.job].append(activity)
    for job, activities in sorted(by_job.items()):
        if job in jobs:
            finding = of_job(jobs[job], activities, view, settings)
            if finding is not None:
                yield finding


def of_job(job: Profile, activities: Sequence[DirectoryActivity], view: View, settings: Settings) -> Finding | None:
    """The finding about one job, or None."""
    on_disk = {target: load for target, load in job.by_target.items() if target not in view.flash}
    reads = sum(load.reads for load in on_disk.values())
    operations = sum(load.bulk_operations for load in on_disk.values())
    edge = (settings.leave_reads_per_second if (DETECTOR.name, job.job, "") in view.active
            else settings.enter_reads_per_second)
    recent = view.recent(settings.recent_seconds)
    opens = sum(w.namespace[job.job].opens for w in recent if job.job in w.namespace) / job.seconds
    read_bytes = sum(load.read_bytes for load in on_disk.values()) / job.seconds
    per_open = read_bytes / opens if opens else float("inf")
    if (reads / job.seconds < edge or reads < settings.read_share * operations
            or per_open > settings.small_file_bytes):
        return None
    share = read_bytes / max(sum(load.read_bytes for load in job.by_target.values()) / job.seconds, 1.0)
    busy_usec = sum(load.busy_usec for load in on_disk.values()) / operations
    places = sorted(activities, key=lambda a: (-a.opens, a.directory))
    more = f" and {count_of(len(places) - 1, 'more directory', 'more directories')}" if len(places) > 1 else ""
    return Finding(
        DETECTOR.name, view.now, job.job, "", tuple(sorted(t for t, load in on_disk.items() if load.reads)),
        f"{quoted(job.job)} opens {opens:.0f} existing files/s in {quoted(places[0].directory)}"
        f"{more} and reads {binary_text(per_open)} of each; {percent(share)} of the bytes come from disks, at "
        f"{reads / job.seconds:.0f} reads/s",
        HotSmallFilesEvidence(
            opens_per_second=opens, disk_reads_per_second=reads / job.seconds, read_bytes_per_open=per_open,
            disk_read_share=share, read_operations_share=reads / operations, usec_per_rpc=busy_usec),
        tuple(a.directory for a in places),
        advice=(Advice(f"lfs migrate --non-block -c 1 -p {quoted(view.pools_of(places[0].directory).flash)} FILE",
                       f"files in {quoted(places[0].directory)}", "reads need no seeks; "
                       "tierd does this if [act] on names hot-small-files"),),
    )


DETECTOR = Detector("hot-small-files", Settings, detect)
