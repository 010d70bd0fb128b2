"""Jobs whose files break the rules of the NOTUR striping guide.

* Many clients and many files: do not stripe. The finding: a job creates small files with several stripes. Each file
  needs an object per stripe, and each create or unlink involves all these targets.
* Some clients and few large files: stripe. The finding: a stream keeps one target busy while others have time.
* Many clients and one file: stripe over all targets. See ``shared-file-contention``.
* Small files on the same OST. The finding: a job has small files on several targets, and so few that one would do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isqrt
from statistics import fmean

from lustre.layout.model import Component, Layout
from tierd.decide import plans, restripe
from tierd.decide.plans import Plan
from tierd.decide.restripe import Restripe
from tierd.detect.groups import grouped
from tierd.detect.profile import Classes, Profile
from tierd.detect.view import LATEST_SECONDS, View
from tierd.model import Action, Advice, DirectoryActivity, Evidence, Finding
from tierd.policies.protocol import Common, JudgedBy, Policy, Situation, edge
from tierd.refusal import Reason, Refusal
from tierd.text import percent, quoted, rate_text
from tierd.validators import AtLeastTwo, Positive

MIN_STRIPES, MAX_STRIPES = 2, 8
"""Stripes of few large files, by the guide."""
GIB = 1 << 30
MIN_FILES = 50
"""Minimum number of small files created recently. A choice."""
ONE_TARGET_SHARE, SPREAD_SHARE = 0.9, 0.8
"""Share of one target in a stream's bytes from which it has one target; in the RPCs of small files, below which they
are on several. Choices."""
TIMES_OTHERS = 2.0
"""Throughput of a stream on its target, as a multiple of what the others of the pool move on average, from which they
have time for it. Where they are busy too, more stripes only mix the streams. A choice."""
MAX_FILES_PER_SECOND = 20.0
"""Rate of small files below which one target is advised for them. The guide gives none: a choice."""


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    min_bytes_per_second: Positive = 25e6
    """Minimum throughput of the stream on that target. That of the guide has 25 MiB/s on one, and 200 on eight."""
    stripes: AtLeastTwo = 4
    """Advised stripe count for few large files. The guide recommends 2 to 8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StripingEvidence(Evidence):
    """Files whose stripes break the rules of striping guides: small files with several, or a stream with one."""

    stripe_count: int | None = None
    """Stripes of the small files; -1 for all targets. None for a stream."""
    files_created: int | None = None
    """None for a stream."""
    target_share: float | None = None
    """Share of a stream's bytes on its busiest target. None for small files."""
    bytes_per_second: float | None = None
    """Throughput of the stream. None for small files."""
    targets_available: int | None = None
    """Number of targets in the stream's pool. None for small files."""
    record_bytes: int | None = None
    """Typical size of the stream's RPCs. None for small files."""
    seconds: float | None = None
    """Time for which the stream has been active, as far as the history reaches. None for small files."""

    @property
    def in_operations(self) -> bool:
        return self.files_created is not None


def find(view: View, settings: Settings) -> Iterator[Finding]:
    jobs = view.profiles(LATEST_SECONDS)
    small = {job.job for job in jobs.values() if job.is_small_files(Classes())}
    for activity in view.facts.directories:
        layout = view.facts.default_layouts.get(activity.directory)
        if (activity.job not in small or activity.creates < MIN_FILES or not layout or layout.components[0].on_mdt
                or layout.components[0].stripe_count in {0, 1}):
            continue
        count, name = layout.components[0].stripe_count, quoted(activity.directory)
        yield POLICY.finding(
            view, f"{quoted(activity.job)} creates small files in {name}, {activity.creates} recently, each with "
            + (f"{count} objects" if count > 0 else "an object on every target"),
            StripingEvidence(stripe_count=count, files_created=activity.creates), job=activity.job,
            directories=(activity.directory,), subject=f"small files in {activity.directory}",
            advice=(Advice(f"lfs setstripe -c 1 {name} (or -E 16M -c 1 -E -1 -c {max(count, 2)} for large files too)",
                           "new files there", "one object per file: fewer RPCs per create, stat and unlink"),))
    moved = grouped((target, load.moved_bytes / job.seconds) for job in jobs.values()
                    for target, load in job.by_target.items())
    for job in jobs.values():
        if job.is_stream(Classes()):
            yield from _single_target_stream(job, view, settings, moved)
        elif job.job in small and all(len(moved[target]) == 1 for target in job.by_target):  # not those of others
            yield from _scattered_small_files(job, view)


def _scattered_small_files(job: Profile, view: View) -> Iterator[Finding]:
    files = job.closes / job.seconds
    target, load = max(job.by_target.items(), key=lambda item: (item[1].bulk_operations, item[0]))
    share = load.bulk_operations / max(job.total.bulk_operations, 1.0)
    pool = view.facts.pool_of(target)
    used = len(job.by_target.keys() & set(view.facts.pools.get(pool, ())))
    subject = f"small files of {job.job}"
    spread = edge(1 - SPREAD_SHARE, view, POLICY.name, job.job, subject)
    if (1 - share <= spread or used < 2 or target in view.flash or job.closes < MIN_FILES
            or files >= MAX_FILES_PER_SECOND):
        return
    places = view.directories_of(job.job)
    if any((layout := view.facts.default_layouts.get(place)) and len(layout.components) > 1 for place in places):
        return  # one target would replace what somebody set
    where = quoted(places[0]) if len(places) == 1 else "DIRECTORY"
    yield POLICY.finding(
        view, f"{quoted(job.job)} closes {files:.0f} small files a second on {used} targets; the busiest, "
        f"{quoted(target)}, has {percent(share)} of their RPCs",
        {"small_file_share": share, "files_per_second": files, "targets_used": used}, job=job.job,
        targets=sorted(job.by_target), directories=places, subject=subject,
        advice=(Advice(f"lfs setstripe -c 1 -i {int(target[-4:], 16)} -p {quoted(pool)} {where}",
                       "new files there", "keeps the small files of the job on one target (NOTUR guide): its processes "
                       f"wait for one target instead of {used}"),))


def _single_target_stream(job: Profile, view: View, settings: Settings,
                          moved: Mapping[str, Sequence[float]]) -> Iterator[Finding]:
    target, load = max(job.by_target.items(), key=lambda item: (item[1].moved_bytes, item[0]))
    share, rate = load.moved_bytes / max(job.total.moved_bytes, 1.0), load.moved_bytes / job.seconds
    pool = view.facts.pool_of(target)
    members = view.facts.pools.get(pool, ())
    subject = f"stream of {job.job}"
    least, others = (edge(each, view, POLICY.name, job.job, subject) for each in (ONE_TARGET_SHARE, TIMES_OTHERS))
    if (share < least or rate < settings.min_bytes_per_second or len(members) < 2
            or rate < others * fmean(sum(moved.get(other, ())) for other in members if other != target)):
        return
    count = min(settings.stripes, len(members))
    places = view.directories_of(job.job)
    where = quoted(places[0]) if len(places) == 1 else "DIRECTORY"
    gain = f"up to {count} times the throughput, if the client is fast enough"
    better = (
        Advice(f"lfs migrate --non-block -c {count} -p {quoted(pool)} FILE",
               f"the files that {quoted(job.job)} reads, when closed", gain)
        if load.read_bytes > load.write_bytes else
        Advice(f"lfs setstripe -c {count} -p {quoted(pool)} {where}", "before the file is created", gain))
    yield POLICY.finding(
        view, f"{quoted(job.job)} moves {percent(share)} of its bytes, {rate_text(rate)}, on {quoted(target)}; the "
        f"pool has {len(members)} targets",
        StripingEvidence(target_share=share, bytes_per_second=rate, targets_available=len(members),
                         record_bytes=job.typical_rpc_bytes, seconds=view.seconds_active[job.job]),
        job=job.job, targets=(target,), directories=places, subject=subject, advice=(better,))


def stream_stripes(size_bytes: int, record_bytes: int, targets: int, pool: str = "") -> Component:
    """Stripes of one of few large files: 2 to 8, and no more than targets; as the root of the size, as in
    ``lfs migrate -A``.

    >>> [stream_stripes(gib << 30, 0, targets).stripe_count for targets in (96, 4) for gib in (0, 1, 4, 16, 1000)]
    [2, 2, 3, 5, 8, 2, 2, 3, 4, 4]
    """
    count = min(targets, MAX_STRIPES, max(MIN_STRIPES, isqrt(size_bytes // GIB) + 1))
    return restripe.striped(pool, count, restripe.stripe_bytes(record_bytes))


def plan(finding: Finding, evidence: StripingEvidence, situation: Situation) -> Plan:
    if evidence.files_created is not None:
        return plans.plan_of(small_files(finding, activity, situation) for activity in situation.activities)
    capacity = situation.capacity
    place = restripe.the_pool(finding, capacity, situation.pools)
    if isinstance(place, Refusal):
        return Plan((), (place,))
    targets = len(capacity.pools[place])
    record = evidence.record_bytes or 0
    if targets < MIN_STRIPES:
        return Plan((), (Refusal(Reason.NO_POOL, f"pool {place!r} has one target only"),))
    return plans.plan_of(restripe.restriped(
        finding, situation.activities, capacity, situation.tables.of(Restripe),
        lambda size: stream_stripes(size, record, targets, place),
        why=f"{finding.aggressor} streams to one target of {targets}", seconds=evidence.seconds or 0.0,
        rate=evidence.bytes_per_second or 0.0, objects=1))


def small_files(finding: Finding, activity: DirectoryActivity, situation: Situation) -> Action | Refusal:
    """One stripe for small files: the beginning of new files."""
    capacity, where = situation.capacity, activity.directory
    if refusal := plans.default_refusal(where, capacity):
        return refusal.about(where)
    wanted = with_one_stripe(capacity.default_layouts.get(where), restripe.small_end(activity),
                             situation.pools.hdd_pool)
    if wanted is None:
        return Refusal(Reason.OTHER_LAYOUT, "its default layout is composite, which a person set on purpose, or has "
                       "one stripe already").about(where)
    return plans.missing_pool(capacity, wanted.components[0].pool) or plans.new_default(
        finding, where, wanted, f"{finding.aggressor} creates small files here; one stripe takes one object each")


def with_one_stripe(present: Layout | None, end: int, pool: str) -> Layout | None:
    """A plain default layout with one stripe at the beginning of each file. None if it must not change."""
    if present is None or len(present.components) != 1 or present.mirror_count > 1:
        return None
    only = present.components[0]
    if only.on_mdt or only.foreign is not None or only.stripe_count in {0, 1}:
        return None
    return Layout((Component(0, end, only.pool or pool, 1),
                   replace(only, extent_start=end, extent_end=None, pool=only.pool or pool, objects=(), flags=())))


POLICY = Policy("striping", Settings, find, evidence=StripingEvidence, plan=plan, tables={"restripe": Restripe},
                judged_by=JudgedBy.ITSELF, waits_for_close=True, restores_layouts=True)
