r"""Converts a job's block of ``job_stats`` to samples: lines or numbers for each family.

Counters at zero, which are the majority, are omitted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from exporter.counters import operation
from exporter.exposition import INFINITY, Gauge, usec_to_seconds
from exporter.families import FamilyMaker
from exporter.rpc_stats import READ, WRITE
from exporter.totals import SeriesKey
from lustre.formats import job_stats
from lustre.formats.job_stats import Job
from lustre.formats.stats import is_no_sum

OF_JOB = FamilyMaker("lustre_job", ("fs", "target", "jobid"), "obdfilter.*.job_stats, mdt.*.job_stats")
READ_BYTES = OF_JOB.counter("read_bytes", "Bytes read from the target by the job.")
WRITE_BYTES = OF_JOB.counter("write_bytes", "Bytes written to the target by the job.")
OPERATIONS = OF_JOB.counter("operations", "Operations of the job on the target, by operation.", "operation")
SECONDS = OF_JOB.counter(
    "operation_seconds", "Total time the target spent on the job's operations, by operation.", "operation",
    versions="2.14+")
IO_SIZE = OF_JOB.histogram(
    "io_size_bytes", "Sizes of the job's reads and writes, as received by the target.", (), "direction",
    versions="2.16+")
STARTED = OF_JOB.gauge(
    "start_timestamp_seconds",
    "Time at which the target began to count the job's operations, by the clock of its server.", versions="2.15+")
OF_TARGET = FamilyMaker("lustre_jobs", ("fs", "target"), OF_JOB.source)
JOBS = Gauge("lustre_jobs", "Jobs in the target's job statistics.", OF_TARGET.labels, OF_TARGET.source)
BEYOND_LIMIT = OF_TARGET.gauge("beyond_limit", 'Jobs summed under jobid="other" because of --jobs.limit.')
IDLE = OF_TARGET.gauge("idle", "Jobs without series because they have been idle for longer than --jobs.idle-seconds.")
READ_AT = OF_TARGET.gauge(
    "read_timestamp_seconds",
    "Time at which the target's job statistics were read, by the clock of this node. Rates over the difference of two"
    " such times do not depend on how long a scrape takes.")
OF_ONE_JOB = (READ_BYTES, WRITE_BYTES, OPERATIONS, SECONDS, IO_SIZE, STARTED)
FAMILIES = (*OF_ONE_JOB, JOBS, IDLE, BEYOND_LIMIT, READ_AT)
SUMS = {(IO_SIZE, READ): (READ_BYTES, b""), (IO_SIZE, WRITE): (WRITE_BYTES, b"")}
"""For each size histogram, the counter that is its sum."""

BYTES = {b"read_bytes": (READ_BYTES, b"read", READ), b"write_bytes": (WRITE_BYTES, b"write", WRITE)}
"""For each byte counter: family of the sum, implied operation, label text of the histogram."""
_LAST_BUCKET = 1 << 31
"""Bound of the kernel's last bucket, which also counts all larger values."""


Read = Callable[[Callable[[bytes], None]], bool]
"""Reads the file and passes its pieces to the argument. Returns False if there is no file."""
Chunks = tuple[bytes, bytes, bytes, bytes, bytes, bytes]
"""A job's finished lines, in the order of ``OF_ONE_JOB``."""
_TIME = re.compile(rb"[0-9]+\.[0-9]+")


class Lines(NamedTuple):
    """The finished lines of a job, and the number of skipped lines of its block."""

    chunks: Chunks
    skipped: int


def render(job: Job, labels: bytes) -> Lines:
    reads = writes = b""
    operations: list[bytes] = []
    times: list[bytes] = []
    totals: dict[bytes, bytes] = {}
    skipped = job.skipped
    for name, samples, unit, total in zip(job.names, job.samples, job.units, job.sums, strict=True):
        if samples == b"0":
            continue
        bad = is_no_sum(total)
        skipped += bad
        if name in BYTES:
            if bad or not total:
                continue
            totals[name] = total
            if name == b"read_bytes":
                reads = READ_BYTES.line(labels, total)
            else:
                writes = WRITE_BYTES.line(labels, total)
            implied = BYTES[name][1]
            if _implied(job, implied):
                operations.append(b'lustre_job_operations_total{%b,operation="%b"} %b\n' % (labels, implied, samples))
            continue
        operations.append(b'lustre_job_operations_total{%b,operation="%b"} %b\n' % (labels, name, samples))
        if unit == b"usecs" and total and not bad:
            digits = usec_to_seconds(total)
            times.append(b'lustre_job_operation_seconds_total{%b,operation="%b"} %b\n' % (labels, name, digits))
    sizes = [
        IO_SIZE.buckets(labels + BYTES[name][2], *bounds_of(buckets), totals[name])
        for name, buckets in job.histograms
        if name in totals and buckets
    ]
    counted = (reads, writes, b"".join(operations), b"".join(times), b"".join(sizes))
    return Lines((*counted, started(labels, job.start_time) if any(counted) else b""), skipped)


def started(labels: bytes, start_time: bytes) -> bytes:
    """The line with the start of a job; empty before 2.15."""
    return STARTED.line(labels, start_time) if _TIME.fullmatch(start_time) else b""


def numbers(job: Job) -> Iterator[tuple[SeriesKey, int]]:
    """Yield the keys and values of a job, for sums over jobs."""
    summed: set[bytes] = set()
    for name, samples, unit, total in zip(job.names, job.samples, job.units, job.sums, strict=True):
        if samples == b"0":
            continue
        usable = total.isdigit() and not is_no_sum(total)
        if name in BYTES:
            family, implied, _ = BYTES[name]
            if usable:
                summed.add(name)
                yield (family, b""), int(total)
                if _implied(job, implied):
                    yield (OPERATIONS, operation(implied)), int(samples)
            continue
        yield (OPERATIONS, operation(name)), int(samples)
        if unit == b"usecs" and usable:
            yield (SECONDS, operation(name)), int(total)
    for name, buckets in job.histograms:
        if name in summed:
            for upper, count in zip(*bounds_of(buckets), strict=True):
                yield (IO_SIZE, BYTES[name][2], upper), count


def invalid_sums(job: Job) -> int:
    """Return the number of counters whose sum has wrapped or was clipped by the kernel."""
    return sum([samples != b"0" and is_no_sum(total) for samples, total in zip(job.samples, job.sums, strict=True)])


def _implied(job: Job, name: bytes) -> bool:
    """Whether only a byte counter counts an operation, as in releases without latencies (up to 2.13)."""
    return name not in job.names and not job.start_time and b"usecs" not in job.units


def read_block(block: bytes) -> Job:
    """Read the job of a block. Series must be unique, so of a repeated counter only the first nonzero one counts."""
    job = job_stats.parse_block(block)
    if len(set(job.names)) == len(job.names):
        return job
    zero_last = sorted(range(len(job.names)), key=lambda i: job.samples[i] == b"0")
    first = sorted({job.names[i]: i for i in reversed(zero_last)}.values())
    columns = (job.names, job.samples, job.units, job.sums)
    names, samples, units, sums = (tuple([column[i] for i in first]) for column in columns)
    histograms = tuple({name: (name, buckets) for name, buckets in reversed(job.histograms)}.values())
    skipped = job.skipped + len(job.names) - len(first)
    return Job(job.job_id, job.start_time, job.snapshot_time, names, samples, units, sums, histograms, skipped)


def bounds_of(buckets: tuple[tuple[int, int], ...]) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Return the bounds of a histogram in ascending order, and their counts."""
    counted: dict[float, int] = {}
    for upper, count in buckets:
        bound = INFINITY if upper >= _LAST_BUCKET else upper
        counted[bound] = counted.get(bound, 0) + count
    return tuple(sorted(counted)), tuple([counted[bound] for bound in sorted(counted)])
