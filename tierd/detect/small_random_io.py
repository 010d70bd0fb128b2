"""A job does small I/O in large files on disks: each RPC costs a seek and moves few bytes.

The finding does not depend on victims, which ``noisy-neighbour`` finds. The measure is operations per MiB, as in LASSi
(arXiv 1906.03884). An efficient job needs about one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Gt, Lt

from tierd.detect.advice import has_free_space
from tierd.detect.attribution import directories
from tierd.detect.block_accelerator import Accelerator, absorbs, accelerators
from tierd.detect.mpi_hints import hints, works_on_several_nodes
from tierd.detect.plugin import Common, Detector, View
from tierd.detect.profile import Classes, Profile, seconds_active
from tierd.model import Advice, Finding, SmallRandomIoEvidence
from tierd.text import binary_text, count_of, percent, quoted

MIB = 1 << 20


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    classes: Classes = field(default_factory=Classes)
    recent_seconds: Annotated[float, Gt(0)] = 30.0
    enter: Annotated[float, Gt(0), Lt(1)] = 0.6
    """The finding begins at this share of small RPCs among the job's RPCs."""
    leave: Annotated[float, Gt(0), Lt(1)] = 0.5
    """The finding ends below this share."""
    min_rpcs_per_second: Annotated[float, Gt(0)] = 5.0
    """Minimum rate of small RPCs on one disk target. A hard disk does 100 to 200 seeks per second."""
    target_share: Annotated[float, Gt(0), Lt(1)] = 0.2
    """Minimum share of the job in the bulk RPCs on that target."""
    rpcs_per_file: Annotated[float, Gt(0)] = 8.0
    """A job with at most this many RPCs per finished file works on small files: see ``hot-small-files``."""


def detect(view: View, settings: Settings) -> Iterator[Finding]:
    """Find jobs with small I/O, the busiest first."""
    jobs = view.profiles(settings.recent_seconds)
    rates: defaultdict[str, float] = defaultdict(float)
    for job in jobs.values():
        for target, load in job.by_target.items():
            rates[target] += load.bulk_operations / job.seconds
    accelerated = accelerators(view.facts.disk_writes)
    found = [seen for job in jobs.values() if (seen := of_job(job, rates, view, settings, accelerated)) is not None]
    yield from (finding for _, finding in sorted(found, key=lambda each: -each[0]))


def of_job(job: Profile, rates: Mapping[str, float], view: View, settings: Settings,
           accelerated: Mapping[str, Accelerator]) -> tuple[float, Finding] | None:
    """The job's RPCs per second on disks and the finding about it, or None.

    ``rates`` are the RPCs per second of each target, by all jobs. Small writes to targets in ``accelerated`` count as
    writes to flash, if their accelerators take them in.
    """
    small = job.small_rpc_share(settings.classes.small_rpc_bytes)
    edge = settings.leave if (DETECTOR.name, job.job, "") in view.active else settings.enter
    if small < edge or (job.files and job.bulk_operations / job.files <= settings.rpcs_per_file):
        return None
    on_disk = {target: load for target, load in job.by_target.items()
               if target not in view.flash and load.bulk_operations
               and not absorbs(accelerated.get(target), load)}
    busiest = max((small * load.bulk_operations / job.seconds for target, load in on_disk.items()
                   if load.bulk_operations / job.seconds >= settings.target_share * rates[target]), default=0.0)
    if busiest < settings.min_rpcs_per_second:
        return None
    rate = sum(load.bulk_operations for load in on_disk.values()) / job.seconds
    per_mib = job.bulk_operations * MIB / max(job.moved_bytes, 1.0)
    places = directories(view.activities(job.job, view.windows[0].start))
    flash_pool = view.pools_of(places[0]).flash if places else view.flash_pool
    return rate, Finding(
        DETECTOR.name, view.now, job.job, "", tuple(sorted(on_disk)),
        f"{quoted(job.job)} sends {rate:.0f} RPCs/s of {binary_text(job.mean_rpc_bytes)} on average to "
        f"{count_of(len(on_disk), 'disk target')}, {percent(small)} of them small: {per_mib:.0f} operations per MiB; "
        "an efficient job needs about 1",
        SmallRandomIoEvidence(
            rpcs_per_second=rate, busiest_target_rpcs_per_second=busiest, small_rpc_share=small,
            mean_rpc_bytes=job.mean_rpc_bytes, operations_per_mib=per_mib, read_share=job.reads / job.bulk_operations,
            seconds=seconds_active(job.job, view.windows)),
        places, advice_only=True,
        advice=(
            *([Advice(f"lfs migrate --non-block -c 1 -p {quoted(flash_pool)} FILE",
                      f"the files of {quoted(job.job)}, when closed",
                      "flash needs no seeks; move whole files, because a first component on flash does not help")]
              if has_free_space(view, view.flash) else []),
            Advice("use larger records, collective buffering (MPI-IO, HDF5) or a node-local copy",
                   f"in {quoted(job.job)}",
                   f"up to {per_mib:.0f} times fewer operations for the same bytes"),
            *(hints(job.job, job.mean_rpc_bytes, job.reads / job.bulk_operations, max(len(on_disk), 1))
              if works_on_several_nodes(job.job, places, view) else ()),
        ),
    )


DETECTOR = Detector("small-random-io", Settings, detect)
