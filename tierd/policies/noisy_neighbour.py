"""A stream loses throughput to a job that works on small files, or does small I/O, on the same targets.

It is found by the posterior of :mod:`tierd.detect.interference` and nothing else. The small files go to flash: new
files by a default layout, existing files by moves. New files come first, since that moves no data. Existing files move
only if the job reads them: rewriting unread files loads the disks that the move should relieve.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import fmean

from lustre.layout.model import Component, Layout
from tierd.decide import plans, sizing
from tierd.decide.plans import FlashSettings, Plan
from tierd.detect.accelerators import all_absorbed
from tierd.detect.interference import Loss
from tierd.detect.profile import Profile
from tierd.detect.view import SlowdownSettings, SlowdownView, slowdown_numbers, slower
from tierd.model import Advice, DirectoryActivity, Finding, SlowdownEvidence
from tierd.policies.protocol import JudgedBy, Policy, Situation, Use
from tierd.refusal import Reason, Refusal
from tierd.text import Carrier, binary_text, count_of, percent, quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyNeighbourEvidence(SlowdownEvidence):
    """A stream that slowed down after a job of small files or small I/O started on its targets."""

    aggressor_operations_per_second: float
    """On the shared targets."""
    aggressor_operations_share: float
    """Part of the two jobs' operations on the shared targets."""
    aggressor_bytes_per_second: float
    """On all targets."""
    aggressor_mean_rpc_bytes: float
    aggressor_largest_rpc_bytes: int
    """0 if the kernel prints no sizes of RPCs."""
    aggressor_read_share: float
    """Reads among the aggressor's bulk RPCs."""
    aggressor_files_per_second: float
    """Files closed, each as often as it was; 0 for I/O within large files."""
    aggressor_bytes_per_file: float
    """0 for I/O within large files."""
    device_time_share: float | None = None
    """The aggressor's part of the service time of the shared targets; None while the costs of service are not known."""
    device_time_share_error: float | None = None
    """Standard error of it."""

    @property
    def whole_small_files(self) -> bool:
        return self.aggressor_bytes_per_file > 0

    @property
    def shown_by_records(self) -> bool:
        """Whether only records show that it works: it opens or creates a file at least."""
        return self.whole_small_files


def find_slowed(view: SlowdownView, settings: SlowdownSettings) -> Iterator[Finding]:
    for loss, victim, suspect, targets in view.found(view.losses, POLICY.name, settings):
        shared = tuple(target for target in targets if target in suspect.by_target) or targets
        taken = [view.device_time[target].device_time(suspect.job) for target in shared if target in view.device_time]
        files = suspect.is_small_files(settings.classes)
        own, theirs = operations_on(shared, suspect), operations_on(shared, view.profiles.get(victim))
        evidence = NoisyNeighbourEvidence(
            **slowdown_numbers(loss, settings),
            aggressor_operations_per_second=own / suspect.seconds,
            aggressor_operations_share=own / (own + theirs) if own else 0.0,
            aggressor_bytes_per_second=suspect.total.moved_bytes / suspect.seconds,
            aggressor_mean_rpc_bytes=suspect.mean_rpc_bytes,
            aggressor_largest_rpc_bytes=suspect.largest_rpc_bytes,
            aggressor_read_share=suspect.read_share,
            aggressor_files_per_second=suspect.files / suspect.seconds if files else 0.0,
            aggressor_bytes_per_file=suspect.bytes_per_file if files else 0.0,
            device_time_share=fmean(each.share for each in taken) if taken else None,
            device_time_share_error=fmean(each.error for each in taken) if taken else None,
            learnt_windows=view.remembered.get(victim))
        unclear = suspect.is_in_between(settings.classes)
        absorbed = not unclear and all_absorbed(view.accelerators, suspect.by_target, shared)
        yield Finding(
            POLICY.name, view.now, suspect.job, victim, shared, sentence(victim, loss, suspect, settings), evidence,
            advice_only=unclear or absorbed, advice=(Advice(
                "move no files of this job to flash", f"for {quoted(suspect.job)}",
                "a block accelerator or write cache in front of these targets absorbs its small writes already: "
                "the disks are slow for another reason"),) if absorbed else ())


def operations_on(targets: Collection[str], job: Profile | None) -> float:
    return sum(job.by_target[target].operations for target in targets if target in job.by_target) if job else 0.0


CARRIED = {
    Carrier.HISTORY: "alongside {}, compared with its earlier throughput",
    Carrier.ARRIVAL: "since {} started",
    Carrier.LOAD: "and less when {} does more",
    Carrier.DEVICE_TIME: "alongside {} (by device time alone)",
}


def sentence(victim: str, loss: Loss, suspect: Profile, settings: SlowdownSettings) -> str:
    work = (f"accesses files {suspect.files / suspect.seconds:.0f} times/s, {binary_text(suspect.bytes_per_file)} each,"
            if suspect.is_small_files(settings.classes) else
            f"sends {suspect.total.bulk_operations / suspect.seconds:.0f} RPCs/s of "
            f"{binary_text(suspect.mean_rpc_bytes)}")
    low, high = loss.interval
    return (f"{slower(victim, loss)}, {CARRIED[loss.carrier].format(suspect.job)}; "
            f"{suspect.job} {work} on the same "
            f"{count_of(len(loss.targets), 'target')}; loss {percent(low)} to {percent(high)}")


def plan(finding: Finding, evidence: NoisyNeighbourEvidence, situation: Situation) -> Plan:
    settings = situation.pools
    room = {False: plans.room_bytes(situation.capacity, settings.flash_pool, settings.reserve)}
    steps = (step for activity in situation.activities for step in (
        small_files(finding, evidence, activity, situation, room) if evidence.whole_small_files
        else large_files(finding, activity, situation, room)))
    return plans.plan_of(plans.fitting(steps, room, settings.max_moves))


def small_files(finding: Finding, evidence: NoisyNeighbourEvidence, activity: DirectoryActivity,
                situation: Situation, room: dict[bool, float]) -> plans.Steps:
    where, capacity, settings = activity.directory, situation.capacity, situation.pools
    size = (plans.default_refusal(where, capacity) or plans.missing_pool(capacity, settings.hdd_pool)
            or sizing.component(activity.sizes, evidence.aggressor_bytes_per_file,
                                evidence.aggressor_largest_rpc_bytes, settings.sizing))
    if isinstance(size, Refusal):
        yield size.about(where)
        return
    opens = max(activity.creates + activity.opens, 1)  # of new and existing files
    files = evidence.aggressor_files_per_second * max(activity.creates - activity.unlinks, 0) / opens
    growth = evidence.aggressor_bytes_per_file * files
    known = [each for each in activity.sizes if each > 0]  # bytes per file count what is read again, too
    stored = files * sum(known) / len(known) if len(known) >= sizing.MIN_SAMPLES else growth
    full = plans.missing_pool(capacity, settings.flash_pool) or plans.flash_is_short(
        capacity, settings, growth, "the job fills")
    outgrown = (f"; {count_of(activity.outgrown, 'file')} outgrew the present first component"
                if activity.outgrown else "")
    layout, steps = situation.layout_for_small_files(
        finding, activity, size, Use(evidence.aggressor_read_share, stored, files), full=full, room=room,
        why=f"new files of {finding.aggressor} load the disks of {finding.victim}{outgrown}")
    yield from steps
    if layout is not None and evidence.aggressor_read_share >= plans.READ_SHARE:
        yield from existing_files(finding, activity, layout, settings)


def existing_files(finding: Finding, activity: DirectoryActivity, layout: Layout,
                   settings: FlashSettings) -> plans.Steps:
    """Moves of closed files: the most read first, then the newest, which are read soonest."""
    limit = layout.components[0].extent_end or 0
    why = f"{finding.aggressor} reads its files, and the file is on the disks of {finding.victim}"
    for candidate in sorted(activity.candidates, key=lambda c: (-c.reads, -c.closed_at, c.path)):
        size = candidate.size_bytes if candidate.size_bytes is not None else limit
        if candidate.closed_at <= finding.time - settings.settle_seconds and size <= limit:
            yield plans.move(finding, activity.directory, replace(candidate, size_bytes=size), layout, why)


def large_files(finding: Finding, activity: DirectoryActivity, situation: Situation,
                room: Mapping[bool, float]) -> plans.Steps:
    """Small I/O in large files: a first component does not help, so the whole file must be on flash."""
    pool, known = situation.pools.flash_pool, {c.path: c for c in activity.candidates}
    members = situation.capacity.pools.get(pool, ())
    layout = Layout((Component(0, None, pool, min(4, len(members))),), composite=False)
    why = f"{finding.aggressor} does small I/O in the whole file, on the disks of {finding.victim}"
    waiting = list[str]()
    for path in [file.path for file in activity.existing_files if file.path and members]:
        candidate = known.get(path)
        size = candidate.size_bytes if candidate else None
        if room[False] <= 0 or (size or 0) > room[False]:
            yield Refusal(Reason.NO_ROOM, f"{why}; only the whole file on flash would help, but pool {pool!r} has no "
                          "space for it").about(path)
        elif candidate is not None and size is not None:
            yield plans.move(finding, activity.directory, candidate, layout, why)
        else:
            waiting.append(path)
    if waiting:
        yield Refusal(Reason.IN_USE, f"{why}; only whole files on flash would help: tierd moves "
                      f"{count_of(len(waiting), 'file')} when closed").about(waiting[0])


def why_advice(finding: Finding) -> Refusal:
    if finding.advice:
        return Refusal(Reason.ABSORBED, finding.advice[0].effect)
    assert isinstance(finding.evidence, NoisyNeighbourEvidence)
    mean = binary_text(finding.evidence.aggressor_mean_rpc_bytes)
    return Refusal(Reason.UNCLEAR_IO, f"RPCs of {finding.aggressor} have {mean} on average, and it finishes no "
                   "small files: this may be small I/O, or a stream over short stripes")


POLICY = Policy("noisy-neighbour", find_slowed=find_slowed, evidence=NoisyNeighbourEvidence, plan=plan,
                on_by_default=True, judged_by=JudgedBy.VICTIM, needs_its_job=True, why_advice=why_advice)
