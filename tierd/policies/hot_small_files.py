"""A job repeatedly reads small files on disks. On flash these reads need no seeks.

Three sources must agree: the changelog shows opens of existing files, job statistics show reads that reach the disk
targets (reads from a client's cache do not count), and the bytes per open show that the files are small.

tierd moves such files, first those that save most disk time per byte. A directory in which they are still created gets
a default layout first: new files on flash need no move. The gain is the disk time of each read over the time that the
job is expected to continue. The cost is one more read from these disks and a rewrite. Only files whose gain is several
times their cost move. Where the MDT is expected to be better than flash, files go there; to move an existing file
there, Lustre copies it twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tierd.decide import plans, sizing
from tierd.decide.plans import Plan
from tierd.detect.groups import grouped
from tierd.detect.profile import Classes
from tierd.detect.view import LATEST_SECONDS, View
from tierd.model import Advice, Candidate, DirectoryActivity, Evidence, Finding, Table
from tierd.policies.protocol import Common, JudgedBy, Policy, Situation, Use, edge
from tierd.refusal import Reason, Refusal
from tierd.text import count_of, percent, quoted
from tierd.validators import AtLeastOne, Count, Factor, Positive

REOPENED = 2.0
"""Minimum number of opens of existing files per created file. With fewer, the job mostly writes there. A choice."""
READ_SHARE = 0.5
"""Minimum share of reads among the job's RPCs to disk targets. A choice."""


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    min_opens: AtLeastOne = 100
    """Minimum number of recent opens of existing files in a directory. Changelogs must record OPEN (off by default). A
    choice: one in six seconds."""
    enter_reads_per_second: Positive = 10.0
    """The finding begins at this rate of read RPCs to disk targets. A tenth of the seeks of a disk."""


@dataclass(frozen=True)
class HotFilesToFlash(Table):
    """Limits of benefit and cost of moves: the table ``[hot_files_to_flash]``."""

    benefit_factor: Factor = 3.0
    """Minimum disk time saved, as a multiple of the disk time that the move costs. A choice, because the estimate is
    rough."""
    horizon_seconds: Positive = 3600.0
    """Expected time for which the job continues to read at its present rate. A choice."""
    max_moves: Count = 500
    """Maximum number of files in one plan. A choice: the next plan may have more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HotSmallFilesEvidence(Evidence):
    """Small files on disks that a job reads again and again."""

    opens_per_second: float
    disk_reads_per_second: float
    """Read RPCs that reach disk targets."""
    read_bytes_per_open: float
    disk_read_share: float
    """Bytes from disk targets among all bytes that the job reads."""
    read_operations_share: float
    """Reads among the job's bulk RPCs on disk targets."""
    usec_per_rpc: float
    """Mean service time of these RPCs; 0 if the servers print no times."""

    shown_by_records = True
    """Such a job opens files all the time."""
    in_operations = True
    """Data on the MDT shows in no object target."""


def find(view: View, settings: Settings) -> Iterator[Finding]:
    jobs = view.profiles(LATEST_SECONDS)
    by_job = grouped((activity.job, activity) for activity in view.facts.directories
                     if activity.opens >= max(settings.min_opens, REOPENED * activity.creates)
                     and activity.directory.startswith("/"))
    for job, activities in ((jobs[name], found) for name, found in sorted(by_job.items()) if name in jobs):
        on_disk = {target: load for target, load in job.by_target.items() if target not in view.flash}
        reads = sum(load.reads for load in on_disk.values())
        operations = sum(load.bulk_operations for load in on_disk.values())
        opens = max(job.opens - job.creates, 0.0) / job.seconds
        read_bytes = sum(load.read_bytes for load in on_disk.values()) / job.seconds
        per_open = read_bytes / opens if opens else float("inf")
        if (reads / job.seconds < edge(settings.enter_reads_per_second, view, POLICY.name, job.job)
                or reads < READ_SHARE * operations or per_open > Classes().small_file_bytes):
            continue
        share = read_bytes / max(sum(load.read_bytes for load in job.by_target.values()) / job.seconds, 1.0)
        busy_usec = sum(load.busy_usec for load in on_disk.values()) / operations
        places = sorted(activities, key=lambda a: (-a.opens, a.directory))
        more = f" and {count_of(len(places) - 1, 'more directory', 'more directories')}" if len(places) > 1 else ""
        yield POLICY.finding(
            view, f"{quoted(job.job)} reads small files in {quoted(places[0].directory)}{more} again and again: "
            f"{reads / job.seconds:.0f} reads/s from disks, {percent(share)} of its bytes; {opens:.0f} opens/s reach "
            "the MDTs",
            HotSmallFilesEvidence(
                opens_per_second=opens, disk_reads_per_second=reads / job.seconds, read_bytes_per_open=per_open,
                disk_read_share=share, read_operations_share=reads / operations, usec_per_rpc=busy_usec),
            job=job.job, targets=sorted(t for t, load in on_disk.items() if load.reads),
            directories=tuple(a.directory for a in places), advice_only=False,
            advice=(Advice(f"lfs migrate --non-block -c 1 -p {quoted(view.pools_of(places[0].directory).flash)} FILE",
                           f"files in {quoted(places[0].directory)}", "reads need no seeks; "
                           "tierd does this if [act] on names hot-small-files"),)
            if view.has_free_space(view.flash) else ())


def plan(finding: Finding, evidence: HotSmallFilesEvidence, situation: Situation) -> Plan:
    """Moves of the files that are worth it, the best first, while the pool or the MDTs have space."""
    capacity, pools = situation.capacity, situation.pools
    if missing := plans.missing_pool(capacity, pools.hdd_pool):
        return Plan((), (missing,))
    room = {False: plans.room_bytes(capacity, pools.flash_pool, pools.reserve)}
    steps = (step for activity in situation.activities for step in steps_in_directory(
        finding, evidence, activity, situation, room))
    return plans.plan_of(plans.fitting(steps, room, situation.tables.of(HotFilesToFlash).max_moves))


def steps_in_directory(finding: Finding, evidence: HotSmallFilesEvidence, activity: DirectoryActivity,
                       situation: Situation, room: dict[bool, float]) -> plans.Steps:
    pools, settings = situation.pools, situation.tables.of(HotFilesToFlash)
    size = sizing.component(activity.sizes, 0.0, 0, pools.sizing)
    if isinstance(size, Refusal):
        opened = [] if activity.sizes else plans.open_files(activity)
        yield plans.in_use(opened) if opened else size.about(activity.directory)
        return
    full = plans.missing_pool(situation.capacity, pools.flash_pool) or (None if room[False] > 0 else Refusal(
        Reason.NO_ROOM, f"pool {pools.flash_pool!r} has no space above its reserve"))
    use = Use(evidence.read_operations_share)
    layout, steps = situation.layout_for_small_files(
        finding, activity, size, use, full=full, room=room,
        why=f"{finding.aggressor} reads files created here again and again; new files need no move")
    yield from steps
    if layout is None:
        return
    opens = sum(c.opens for each in situation.activities for c in each.candidates) or 1
    copies = 2 if layout.components[0].on_mdt else 1
    settled = [c for c in activity.candidates if c.closed_at <= finding.time - pools.settle_seconds]
    worth = [(ratio, c) for c in settled if 0 < (c.size_bytes or 0) <= size.component_bytes
             and (ratio := benefit_ratio(c, evidence.opens_per_second / opens, evidence, settings)
                       / copies) >= settings.benefit_factor]
    if settled and not worth:
        yield Refusal(Reason.NOT_WORTH, f"no file saves {settings.benefit_factor:g} times the disk time that its move "
                      "costs").about(activity.directory)
    for ratio, c in sorted(worth, key=lambda pair: (-pair[0] / (pair[1].size_bytes or 1), pair[1].path)):
        yield plans.move(finding, activity.directory, c, situation.mirrored(layout, use),
                         f"{finding.aggressor} reads the file again and again; within "
                         f"{settings.horizon_seconds / 60:.0f} minutes the move saves {ratio:.0f} times the disk time "
                         "it costs")


def benefit_ratio(candidate: Candidate, opens_per_second: float, evidence: HotSmallFilesEvidence,
                  settings: HotFilesToFlash) -> float:
    """Disk time saved over the horizon, per disk time that the move costs.

    Future opens are spread over the files as past opens were. Only opens that cause disk reads save time.
    """
    read_usec = max(evidence.usec_per_rpc, plans.SEEK_USEC)
    heat = opens_per_second * candidate.opens * min(
        1.0, evidence.disk_reads_per_second / max(evidence.opens_per_second, 1e-9))
    saved_usec = heat * settings.horizon_seconds * max(0.0, read_usec - plans.FLASH_USEC)
    cost_usec = read_usec + (candidate.size_bytes or 0) / plans.DISK_BYTES_PER_SECOND * 1e6
    return saved_usec / cost_usec


POLICY = Policy("hot-small-files", Settings, find, evidence=HotSmallFilesEvidence, plan=plan,
                tables={"hot_files_to_flash": HotFilesToFlash}, judged_by=JudgedBy.ITSELF, needs_its_job=True)
