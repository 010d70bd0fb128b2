"""Many nodes write one file on few targets, and wait for each other's locks and disks.

The NOTUR striping guide and DDN's overstriping (Lustre 2.13) give two remedies. If the pool has targets that the file
does not use, use as many stripes as there are nodes. If the file uses all targets, overstripe it: an object with its
own lock for each node. DDN had one for each process, but Lustre counts the opens of nodes only. More objects than
stripes stay empty, and small records share objects again. Locks of readers do not conflict.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lustre.layout.model import Component
from tierd.advised import RPC_BYTES
from tierd.decide import plans, restripe
from tierd.decide.plans import Plan
from tierd.decide.relocation import ost_index, osts_of
from tierd.decide.restripe import Restripe
from tierd.detect.groups import covering
from tierd.detect.hints import hints
from tierd.detect.profile import Profile
from tierd.detect.view import LATEST_SECONDS, View
from tierd.model import Advice, Evidence, Finding, SharedFile, SharedRuns
from tierd.policies.protocol import Common, JudgedBy, Policy, Situation, edge
from tierd.refusal import Reason, Refusal
from tierd.text import count_of, quoted
from tierd.validators import AtLeastTwo, Ratio

UNKNOWN_STRIPES = 1 << 30
MAX_OBJECTS = 2000
"""Most stripes of a file: ``LOV_MAX_STRIPE_COUNT`` in lustre/include/uapi/linux/lustre/lustre_user.h."""
CONCENTRATION = 0.9
"""Without a readable layout, the fewest targets with this share of the job's bytes count as the file's. A choice."""
FILE_SHARE = 0.5
"""Minimum share of the file's targets in the job's bytes. A choice."""
MIN_STRIPE_BYTES = 1 << 20
"""Stripe size of DDN's file, and of its records. Smaller records of several processes share an object."""
MIN_BYTES_PER_SECOND = 1e6
MAX_OBJECTS_PER_TARGET = 64
"""Maximum number of objects per target: DDN had 512 on 8 targets, for 512 processes."""
MIN_RUNS = 2
"""Minimum number of ended runs of a user in a directory from which the next one is expected to be similar. Two are the
fewest that can be."""
READ_SHARE = 0.9
"""Share of read bytes from which a job counts as a reader. Overstriping does not help readers. A choice."""


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    min_openers: AtLeastTwo = 4
    """Minimum number of nodes that have one file open. A choice."""
    enter: Ratio = 4.0
    """The finding begins at this number of nodes per object of the file. A choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentionEvidence(Evidence):
    """A file that many nodes have open."""

    openers: int
    """Nodes that have it open."""
    objects: int
    """Number of objects of the file."""
    targets_available: int
    """Number of targets in the pool."""
    wanted_objects: int
    bytes_per_second: float
    """Throughput of the job."""
    record_bytes: int = 0
    """Typical size of the job's RPCs, which are as large as its records where processes share a file; 0 if unknown."""
    seconds: float = 0.0
    """Time for which the job has been active, as far as the history reaches."""


def find(view: View, settings: Settings) -> Iterator[Finding]:
    """Find the most shared file of each job, and directories in whose short runs a file is shared again and again."""
    jobs, places = view.profiles(LATEST_SECONDS), set[str]()
    for file in {file.job: file for file in reversed(view.facts.shared_files)}.values():
        if (finding := _of_file(file, jobs.get(file.job), view, settings)) is not None:
            places |= {*finding.directories}
            yield finding
    past = view.profiles(view.now - view.windows[0].start + 1.0) if view.facts.shared_runs else {}
    for runs in view.facts.shared_runs:
        finding = _of_file(runs.file, past.get(runs.file.job), view, settings, runs) if runs.runs >= MIN_RUNS else None
        if finding is not None and places.isdisjoint(finding.directories):
            yield finding


def _of_file(file: SharedFile, job: Profile | None, view: View, settings: Settings,
             runs: SharedRuns | None = None) -> Finding | None:
    if (job is None or file.openers < settings.min_openers
            or job.total.moved_bytes / job.seconds < MIN_BYTES_PER_SECOND):
        return None
    rate, seconds, again = job.total.moved_bytes / job.seconds, view.seconds_active[job.job], ""
    if runs is not None:
        rate = max((file.size_bytes or 0) * runs.runs / max(runs.seconds, 1.0), rate)  # half minutes have pauses too
        seconds, again = runs.seconds, f", in each of {runs.runs} runs of its user there"
    directory = file.path.rpartition("/")[0] or "/"
    osts = osts_of(file.layout)
    moved = sum(load.moved_bytes for target, load in job.by_target.items() if ost_index(target) in osts)
    if osts and moved < FILE_SHARE * job.total.moved_bytes:
        return None  # the processes keep it open, and work on other files
    by_bytes = sorted(((target, load.moved_bytes) for target, load in job.by_target.items()),
                      key=lambda each: (-each[1], each[0]))
    targets = tuple(covering(by_bytes, CONCENTRATION))
    objects = max((len(each.objects) or max(each.stripe_count, 0) for each in (
        file.layout.components if file.layout else ())), default=0) or len(targets)
    if file.openers < edge(settings.enter, view, POLICY.name, job.job, file.path) * objects:
        return None
    pool = view.facts.pool_of(targets[0])
    available = len(view.facts.pools.get(pool, targets))
    most = stripes_of(file)
    wanted = min(file.openers, available, most)
    in_pool = f" -p {pool}" if pool else ""
    locks = job.total.moved_bytes - job.total.write_bytes < READ_SHARE * job.total.moved_bytes
    if wanted > objects:
        command = f"lfs setstripe -c {wanted}{in_pool}"
        effect = (f"uses {wanted} targets instead of {objects}: up to {wanted / objects:.0f} times the throughput, if "
                  "the network and the nodes are fast enough")
    else:
        wanted = file.openers
        if (not max(objects, available) < wanted <= min(available * MAX_OBJECTS_PER_TARGET, most, MAX_OBJECTS)
                or job.typical_rpc_bytes < MIN_STRIPE_BYTES or not locks):
            return None
        command = f"lfs setstripe -C {wanted}{in_pool}"
        effect = (f"{wanted} objects, {-(-wanted // available)} on each of the {available} targets: one for each "
                  "node, with its own lock (overstriping, Lustre 2.13 and newer on servers and clients)")
    waits = "each other's extent locks" if locks else "the same targets"
    return POLICY.finding(
        view, f"{quoted(job.job)} has {quoted(file.path)}, with {count_of(objects, 'object')}, open on "
        f"{file.openers} nodes: they wait for {waits}{again}",
        ContentionEvidence(openers=file.openers, objects=objects, targets_available=available, wanted_objects=wanted,
                           bytes_per_second=rate, record_bytes=job.typical_rpc_bytes, seconds=seconds),
        job=job.job, targets=targets, directories=(directory,), subject=file.path,
        advice=(
            Advice(f"{command} {quoted(directory)}", f"before {quoted(job.job)} creates the file again", effect),
            Advice(command.replace("lfs setstripe", "lfs migrate --non-block") + f" {quoted(file.path)}",
                   "when no process has it open", "gives the existing file this layout; rewrites all its data"),
            *hints(job.job, job.typical_rpc_bytes, job.read_share, min(wanted, available))))


def stripes_of(file: SharedFile) -> int:
    """Number of stripes in the file, by the stripe size of its last component. More objects stay empty."""
    if file.layout is None or file.size_bytes is None:
        return UNKNOWN_STRIPES
    return max(1, -(-file.size_bytes // max(file.layout.components[-1].stripe_size, 1)))


def shared_stripe_bytes(rpc_bytes: int) -> int:
    """Stripe size of a shared file by its RPCs. The largest RPCs hide how large records are: then 32 MiB, as the guide.

    >>> [shared_stripe_bytes(rpc << 20) >> 20 for rpc in (1, 4, 8, 16)]
    [1, 4, 8, 32]
    """
    return restripe.MAX_STRIPE_BYTES if rpc_bytes >= RPC_BYTES else restripe.stripe_bytes(rpc_bytes)


def shared_stripes(evidence: ContentionEvidence, pool: str, targets: int, *, overstripe: bool) -> Component | None:
    """Stripes of a file with many openers; None if it has as many objects as it can use.

    The finding names the objects that the file can use: by its openers, its size, and the objects that a target takes.
    """
    wanted = min(evidence.openers, evidence.wanted_objects, *(() if overstripe else (targets,)))
    if targets < 1 or wanted <= evidence.objects:
        return None
    return restripe.striped(pool, wanted, shared_stripe_bytes(evidence.record_bytes), overstriped=wanted > targets)


def plan(finding: Finding, evidence: ContentionEvidence, situation: Situation) -> Plan:
    capacity, settings = situation.capacity, situation.tables.of(Restripe)
    place = restripe.the_pool(finding, capacity, situation.pools)
    if isinstance(place, Refusal):
        return Plan((), (place,))
    stripes = shared_stripes(evidence, place, len(capacity.pools[place]),
                             overstripe=settings.overstripe and capacity.release >= (2, 13))
    if stripes is None:
        return Plan((), (Refusal(Reason.NOTHING_TO_DO, "the file has as many objects as it can use").about(
            finding.subject),))
    steps = restripe.restriped(
        finding, situation.activities, capacity, settings, lambda _: stripes,
        why=f"{evidence.openers} nodes of {finding.aggressor} share a file on {count_of(evidence.objects, 'object')}",
        seconds=evidence.seconds, rate=evidence.bytes_per_second, objects=evidence.objects, path=finding.subject)
    is_open = any(finding.subject in plans.open_files(each) for each in situation.activities)
    return plans.plan_of((*steps, *([plans.in_use([finding.subject])] if is_open else ())))


POLICY = Policy("shared-file-contention", Settings, find, evidence=ContentionEvidence, plan=plan,
                tables={"restripe": Restripe}, judged_by=JudgedBy.ITSELF, waits_for_close=True, restores_layouts=True)
