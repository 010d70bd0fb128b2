"""An MDS whose processors or threads are busy, or whose operations are slow: what limits its metadata operations.

Requests wait for a service thread while all threads are in use: then processors, locks or the number of threads limit
the MDS. If threads are free and single operations are slow, the latency of the device may limit it. Creates are bound
by one thread of the MDS and its clock rate, stats by the latency of the MDT's SSDs (Cray, CUG 2018, section V).

If one job causes most operations, the job is named: its own change helps more than another MDS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tierd.advised import STATAHEAD_BATCH
from tierd.detect.groups import totals
from tierd.detect.view import View
from tierd.model import Advice, Finding, MetadataService
from tierd.policies.protocol import Common, Policy, edge
from tierd.text import percent, quoted
from tierd.validators import Positive

BUSY_SHARE = 0.7
"""Share of the threads in use at the start of a request, from which threads count as busy. A choice."""
ONE_JOB_SHARE = 0.7
"""Share of the operations from which one job counts as the cause. A choice."""
CHANGE_SHARE = 0.25
"""Share of creates and unlinks from which a directory lock may limit the operations. An open that makes a file counts
as an open too, so at most half of the operations are creates. A choice."""


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    enter_wait_usec: Positive = 2000.0
    """Mean time that requests wait for a thread, from which the finding begins if threads are busy. A choice, not
    measured on a busy MDS."""
    enter_operation_usec: Positive = 3000.0
    """Mean time of an operation, from which the finding begins if threads are free. A choice, not measured on a busy
    MDS."""
    min_operations_per_second: Positive = 200.0
    """Minimum operations of the MDTs of the MDS, and of an MDT whose device is called slow. A choice."""


def find(view: View, settings: Settings) -> Iterator[Finding]:
    """Find each MDS that is the limit of metadata operations. One whose MDTs are unknown is left out.

    The MDTs of an MDS share its processors and threads, and each has its own device: the slowest counts.
    """
    for service in view.facts.metadata_services:
        loads = [load for load in view.facts.metadata_loads if load.mdt in service.mdts and load.operations]
        if sum(load.operations for load in loads) < settings.min_operations_per_second:
            continue
        slowest = max((load for load in loads if load.operations >= settings.min_operations_per_second),
                      key=lambda load: load.usec_per_operation, default=None)
        subject = f"mds of {service.node}"
        busy = service.threads > 0 and service.active >= BUSY_SHARE * service.threads
        waits = service.wait_usec >= edge(settings.enter_wait_usec, view, POLICY.name, "", subject)
        usec = slowest.usec_per_operation if slowest else 0.0
        slow = usec >= edge(settings.enter_operation_usec, view, POLICY.name, "", subject)
        # an operation that is slow because it waits says nothing about the device
        queueing = service.wait_usec >= usec / 2
        if not ((busy and waits) or (slow and not busy and not queueing)):
            continue
        if slowest and not busy:
            loads = [slowest]
        total = sum(load.operations for load in loads)
        by_job = totals(each for load in loads for each in load.jobs)
        job = max(sorted(by_job), key=lambda name: by_job[name], default="")
        share = by_job[job] / total
        changes = sum(load.creates + load.unlinks for load in loads) / total
        stats = sum(load.stats for load in loads) / total
        cause = f"; {quoted(job)} causes {percent(share)} of the operations" if share >= ONE_JOB_SHARE else ""
        words = (f"requests wait {service.wait_usec / 1000:.1f} ms for a thread, and {service.active:.0f} of "
                 f"{service.threads:.0f} threads are in use: processors, locks or threads limit it" if busy else
                 f"an operation on {quoted(loads[0].mdt)} takes {usec / 1000:.1f} ms with {service.active:.0f} of "
                 f"{service.threads:.0f} threads in use: "
                 + ("the lock of a directory, a processor or the latency of its devices limits it; counters do not "
                    "tell which" if changes >= CHANGE_SHARE else "the latency of its devices limits it"))
        yield POLICY.finding(
            view, f"the MDS of {quoted(service.node)} does {service.requests_per_second:.0f} requests/s; "
            f"{words}{cause}",
            {"requests_per_second": service.requests_per_second, "wait_usec": service.wait_usec,
             "threads": service.threads, "active": service.active, "operation_usec": usec, "change_share": changes,
             "stat_share": stats, "one_job_share": share}, targets=(load.mdt for load in loads), subject=subject,
            advice=_job_advice(job, changes) if cause else _server_advice(service, busy, changes, stats, view))


def _job_advice(job: str, changes: float) -> Iterator[Advice]:
    yield Advice("use fewer and larger files, or a directory for each process", f"in {quoted(job)}",
                 "another MDS would help this job alone; see metadata-storm if it works in one directory")
    if changes >= CHANGE_SHARE:
        yield Advice("lfs setdirstripe -D -c 1 -i -1 PARENT", f"where {quoted(job)} creates its directories",
                     "its directories go to several MDTs, since Lustre 2.13; creates are bound by one thread of an MDS "
                     "and its clock rate (Cray, CUG 2018)")


def _server_advice(service: MetadataService, busy: bool, changes: float, stats: float, view: View) -> Iterator[Advice]:
    if changes >= CHANGE_SHARE:
        yield Advice("processors with a higher clock rate, and a separate directory for each job or process",
                     f"for {quoted(service.node)}",
                     "creates are bound by one thread of an MDS and its clock rate (Cray, CUG 2018); more processors "
                     "do not help one directory")
    if not busy:
        yield Advice("put the MDT on faster SSDs, and check them (iostat -x, brw_stats of the MDT)",
                     f"on {quoted(service.node)}",
                     "stats and lookups wait for the device (Cray, CUG 2018)" + (
                         ": more processors or threads would not help" if changes < CHANGE_SHARE else ""))
        return
    if service.threads_max and service.threads >= service.threads_max:
        more = round(2 * service.threads_max)
        yield Advice(f"lctl set_param mds.MDS.mdt.threads_max={more}", f"on {quoted(service.node)}",
                     "helps if processors have idle time (mpstat); otherwise it only moves the queue")
    if stats >= 0.5:
        yield Advice(f"lctl set_param llite.*.statahead_batch_max={STATAHEAD_BATCH}",
                     "on clients with Lustre 2.16 and newer",
                     "one request for many stats: 10.1 s became 5.4 s for a million files (DDN, 2022)")
    if view.facts.metadata_targets < 2:
        yield Advice("add a metadata server with its own MDT", "for new top-level directories (lfs mkdir -i)",
                     "a second metadata server did 1.37 times the creates of one (Dell and Intel, figure 8)")
    else:
        yield Advice("lfs setdirstripe -D -c 1 -i -1 DIRECTORY", "parents of the busy trees",
                     "new directories go to the other MDTs, since Lustre 2.13 (see metadata-imbalance)")


POLICY = Policy("metadata-bound", Settings, find)
