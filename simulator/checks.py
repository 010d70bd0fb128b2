"""What a scenario may not say although its form is right: pools it does not have, numbers that cannot be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

from simulator.jobs import Job, Mdtest, SmallFileWriter
from simulator.settings import ClusterSettings
from simulator.timeline import Event

_POOL = re.compile(r"[A-Za-z0-9_.-]{1,15}")
_FSNAME = re.compile(r"[A-Za-z0-9_-]{1,8}")
_AT_LEAST_ONE = frozenset((
    "nodes", "threads", "call_bytes", "file_bytes", "piece_bytes", "pieces_each", "processes_count", "names", "times",
    "files_each",
))  # fmt: skip
_MAY_BE_NONE = frozenset(((Mdtest, "file_bytes"), (SmallFileWriter, "call_bytes")))
_NOT_NEGATIVE = frozenset(("start_seconds", "think_seconds", "keep", "rereads_per_second", "burst_seconds", "client",
                           "directories_count"))  # fmt: skip


def jobs(wanted: Sequence[Job], cluster: ClusterSettings) -> Iterator[str]:
    """What cannot be of jobs on a cluster."""
    for number, job in enumerate(wanted, start=1):
        where = f"job {number}"
        for field in fields(job):
            value = getattr(job, field.name)
            least = 0 if (type(job), field.name) in _MAY_BE_NONE else 1
            if field.name in _AT_LEAST_ONE and value < least:
                yield f"{where}.{field.name}: {value} is less than {least}"
            if field.name in _NOT_NEGATIVE and value < 0:
                yield f"{where}.{field.name}: {value} is negative"
        if not job.job_id:
            yield f"{where}.job_id: is empty"
        if job.job_id in {other.job_id for other in wanted[: number - 1]}:
            yield f"{where}.job_id: {job.job_id!r} is an earlier job already"
        if job.stop_seconds <= job.start_seconds:
            yield f"{where}.stop_seconds: {job.stop_seconds:g} is not after its start at {job.start_seconds:g}"
        if getattr(job, "files_per_second", 1.0) <= 0:
            yield f"{where}.files_per_second: needs more than 0"
        if min(getattr(job, "sizes", (1,)), default=0) < 1:
            yield f"{where}.sizes: needs at least one size, each of 1 byte or more"
        for part in job.layout.components if job.layout is not None else ():
            if part.pool and part.pool not in cluster.pools:
                yield f"{where}.layout: there is no pool {part.pool!r}, only {', '.join(cluster.pools) or 'none'}"


def events(wanted: Iterable[Event], names: Iterable[str], cluster: ClusterSettings) -> Iterator[str]:
    """What cannot be of events: targets and jobs that are not there."""
    known = set(names)
    targets = {f"OST{index:04x}" for index in range(len(cluster.osts))}
    targets |= {f"MDT{index:04x}" for index in range(len(cluster.mdts))}
    for number, event in enumerate(wanted, start=1):
        target = event.text("target").rpartition("-")[2]
        if "target" in event.values and target not in targets:
            yield f"event {number}.target: there is no {event.text('target')!r}"
        if "job" in event.values and event.text("job") not in known:
            yield f"event {number}.job: there is no job {event.text('job')!r}"
        if "pool" in event.values and event.text("pool") not in cluster.pools:
            yield f"event {number}.pool: there is no pool {event.text('pool')!r}"
        if event.at < 0:
            yield f"event {number}.at: {event.at:g} is before the beginning"


def machine(cluster: ClusterSettings) -> Iterator[str]:
    """Names that become names of files."""
    for pool in cluster.pools:
        if not _POOL.fullmatch(pool):
            yield f"cluster.ost.pool: {pool!r} is no name of a pool: letters, digits, '_', '-', '.', 15 at most"
    if not _FSNAME.fullmatch(cluster.fsname):
        yield f"cluster.fsname: {cluster.fsname!r} is no name of a file system: letters, digits, '_', '-', 8 at most"
