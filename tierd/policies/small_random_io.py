"""A job does small I/O in files on disks: each RPC costs a seek and moves few bytes.

The finding does not depend on victims, which ``noisy-neighbour`` finds. The measure is operations per MiB, as in LASSi
(arXiv 1906.03884). An efficient job needs about one.

tierd moves large files to flash as a whole, once they are closed. A first component does not help there: the I/O goes
to all of the file. The job keeps its file open while it works, so the move serves its next run, or the next time it
opens the file. tierd expects as much such I/O then as it has seen so far, and moves a file if that saves several times
the disk time that the copy costs. A file that the job made and did not open again is left where it is: its next run
makes a new one, and the default layout of the directory serves that, as it serves new small files. Large files fill
flash quickly: one plan uses at most half of the free space above the reserve.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lustre.layout.model import Component, Layout
from tierd.decide import plans
from tierd.decide.plans import Plan
from tierd.decide.restripe import rewritten
from tierd.decide.sizing import boundary
from tierd.detect.accelerators import absorbs, accelerators
from tierd.detect.attribution import directories
from tierd.detect.groups import grouped, totals
from tierd.detect.hints import hints
from tierd.detect.profile import Classes
from tierd.detect.view import LATEST_SECONDS, View
from tierd.model import Action, Advice, Candidate, DirectoryActivity, Evidence, Finding, Table
from tierd.policies.protocol import Common, JudgedBy, Policy, Situation, edge
from tierd.refusal import Reason, Refusal
from tierd.text import binary_text, bytes_text, count_of, percent, quoted
from tierd.validators import Bytes, Count, Factor, Positive, Share, ShareOrAll

MIB = 1 << 20
TARGET_SHARE = 0.2
"""Minimum share of the job in the bulk RPCs on that target. A choice."""
RPCS_PER_FILE = 8.0
"""A job with at most this many RPCs per finished file works on small files: see ``hot-small-files``. A choice."""
MIN_FILE_BYTES = 16 << 20
"""Smaller files have one stripe, and those that exist stay: see ``hot-small-files``. A choice."""
STRIPES = 4
"""Maximum number of stripes on flash. A choice."""
Files = Sequence[tuple[DirectoryActivity, Candidate]]


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    enter: Share = 0.6
    """The finding begins at this share of small RPCs among the job's RPCs. Most of them: a choice."""
    min_rpcs_per_second: Positive = 5.0
    """Minimum rate of small RPCs on one disk target. A hard disk does 100 to 200 seeks per second."""


@dataclass(frozen=True)
class RandomIoToFlash(Table):
    """Limits of benefit, size and space: the table ``[random_io_to_flash]``."""

    benefit_factor: Factor = 3.0
    """Minimum disk time saved, as a multiple of the disk time that the copy costs. A choice, because the estimate is
    rough."""
    max_file_bytes: Bytes = 32 << 30
    """Larger files are not moved. A copy takes minutes: a choice."""
    share_of_free: ShareOrAll = 0.5
    """Share of the free space above the reserve that one plan may use. A choice."""
    max_moves: Count = 50
    """Maximum number of files in one plan. A choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallRandomIoEvidence(Evidence):
    """Small I/O of a job in large files on disk targets."""

    rpcs_per_second: float
    """Bulk RPCs on all disk targets."""
    busiest_target_rpcs_per_second: float
    """Small RPCs on the busiest target."""
    small_rpc_share: float
    mean_rpc_bytes: float
    operations_per_mib: float
    read_share: float
    seconds: float = 0.0
    """Time for which the job has done such I/O, as far as the history reaches."""


def find(view: View, settings: Settings) -> Iterator[Finding]:
    jobs = view.profiles(LATEST_SECONDS)
    rates = totals((target, load.bulk_operations / job.seconds) for job in jobs.values()
                   for target, load in job.by_target.items())
    # small writes that an accelerator absorbs count as writes to flash
    accelerated = accelerators(view.facts.disk_writes)
    for job in jobs.values():
        small, whole = job.small_rpc_share(Classes().small_rpc_bytes), job.is_small_files(Classes())
        if (small < edge(settings.enter, view, POLICY.name, job.job)
                or (job.files and job.total.bulk_operations / job.files <= RPCS_PER_FILE)):
            continue
        on_disk = {target: load for target, load in job.by_target.items()
                   if target not in view.flash and load.bulk_operations and not absorbs(accelerated.get(target), load)}
        busiest = max((small * load.bulk_operations / job.seconds for target, load in on_disk.items()
                       if load.bulk_operations / job.seconds >= TARGET_SHARE * rates[target]), default=0.0)
        if busiest < settings.min_rpcs_per_second:
            continue
        rate = sum(load.bulk_operations for load in on_disk.values()) / job.seconds
        per_mib = job.total.bulk_operations * MIB / max(job.total.moved_bytes, 1.0)
        activities = view.activities(job.job, view.windows[0].start)
        places = directories(activities)
        clients = {nid for activity in activities for nid in activity.clients}  # one of those that have a file open
        pools = view.pools_of(places[0] if places else "/")
        yield POLICY.finding(
            view, f"{quoted(job.job)} sends {rate:.0f} RPCs/s of {binary_text(job.mean_rpc_bytes)} on average to "
            f"{count_of(len(on_disk), 'disk target')}, {percent(small)} of them small: {per_mib:.0f} operations per "
            "MiB; an efficient job needs about 1",
            SmallRandomIoEvidence(
                rpcs_per_second=rate, busiest_target_rpcs_per_second=busiest, small_rpc_share=small,
                mean_rpc_bytes=job.mean_rpc_bytes, operations_per_mib=per_mib, read_share=job.read_share,
                seconds=view.seconds_active[job.job]), job=job.job, targets=sorted(on_disk), directories=places,
            advice=(
                *([Advice(f"lfs setstripe -E SIZE -c 1 -p {quoted(pools.flash)} -E -1 -c 1 -p {quoted(pools.hdd)} "
                          "DIRECTORY", "with a SIZE that holds whole files", "flash needs no seeks") if whole else
                   Advice(f"lfs migrate --non-block -c 1 -p {quoted(pools.flash)} FILE",
                          f"the files of {quoted(job.job)}, when closed",
                          "flash needs no seeks; move whole files, because a first component on flash does not help")]
                  if view.has_free_space(view.flash) else []),
                Advice("use larger records, collective buffering (MPI-IO, HDF5) or a node-local copy",
                       f"in {quoted(job.job)}",
                       f"up to {per_mib:.0f} times fewer operations for the same bytes"),
                *(hints(job.job, job.mean_rpc_bytes, job.read_share, max(len(on_disk), 1))
                  if not whole and max(len(clients), view.facts.job_nodes.get(job.job, 0)) > 1 else ())))


def plan(finding: Finding, evidence: SmallRandomIoEvidence, situation: Situation) -> Plan:
    """Moves of closed files that are worth it, those with the best gain first, and default layouts for new files."""
    capacity, pools, activities = situation.capacity, situation.pools, situation.activities
    settings = situation.tables.of(RandomIoToFlash)
    if missing := plans.missing_pool(capacity, pools.flash_pool, pools.hdd_pool):
        return Plan((), (missing,))
    stripes = Component(0, None, pools.flash_pool, min(STRIPES, len(capacity.pools[pools.flash_pool])))
    left = settings.share_of_free * plans.room_bytes(capacity, pools.flash_pool, pools.reserve)
    files = plans.closed_files(activities, 1, settings.max_file_bytes)
    large = plans.closed_files(activities, MIN_FILE_BYTES, settings.max_file_bytes)
    opened = [file for a in activities for file in plans.open_files(a)]
    steps: list[Action | Refusal] = [plans.in_use(opened)] if opened else []
    for needed, action in defaults(finding, files, stripes.stripe_count, situation):
        if needed <= left:
            left -= needed
            steps.append(action)
        else:
            steps.append(Refusal(Reason.NO_ROOM, f"{bytes_text(max(0.0, left))} of pool {pools.flash_pool!r} may be "
                                 f"used, and new files need {bytes_text(needed)}").about(action.directory))
    again = evidence.rpcs_per_second * evidence.small_rpc_share * evidence.seconds  # as many small RPCs as so far
    steps += rewritten(
        finding, large, lambda _: stripes, pools.flash_pool, capacity,
        why=f"{finding.aggressor} does small random I/O in the file",
        saved_seconds=again * (plans.SEEK_USEC - plans.FLASH_USEC) / 1e6 / max(1, len(large) + len(opened)),
        benefit_factor=settings.benefit_factor, rate=plans.DISK_BYTES_PER_SECOND, objects=stripes.stripe_count,
        left_bytes=left, most=settings.max_moves, settle_seconds=pools.settle_seconds)
    return plans.plan_of(steps)


def defaults(finding: Finding, files: Files, stripes: int, situation: Situation) -> Iterator[tuple[int, Action]]:
    """Default layouts for directories in which the job makes such files: each run of it makes new ones.

    Each has the space that as many new files as the job has made there need on flash.
    """
    capacity, pool = situation.capacity, situation.pools.flash_pool
    made = grouped((where.directory, c.size_bytes or 0) for where, c in files if where.creates and c.created_at > 0)
    for where, sizes in made.items():
        present, end = capacity.default_layouts.get(where), boundary(max(sizes))
        if not plans.default_refusal(where, capacity) and not plans.covers(present, end, pool):
            rest = plans.flash_first(end, present, situation.pools).components[1:]
            layout = Layout((Component(0, end, pool, stripes if max(sizes) >= MIN_FILE_BYTES else 1), *rest))
            yield sum(sizes), plans.new_default(finding, where, layout, f"{finding.aggressor} creates files with small "
                                                f"random I/O here, of up to {bytes_text(max(sizes))}")


POLICY = Policy("small-random-io", Settings, find, evidence=SmallRandomIoEvidence, plan=plan,
                tables={"random_io_to_flash": RandomIoToFlash}, judged_by=JudgedBy.ITSELF, waits_for_close=True)
