r"""Operations of each job on one target: ``obdfilter.*.job_stats``, ``mdt.*.job_stats``.

The file has one block per job. While a job is idle, its block stays the same, byte for byte::

    job_stats:
    - job_id:          dd.0
      snapshot_time:   1795218489.325362688 secs.nsecs
      start_time:      1795217589.575935853 secs.nsecs
      elapsed_time:    899.749426835 secs.nsecs
      read_bytes:      { samples: 332, unit: bytes, min: 65536, max: 4194304, sum: 12058624, sumsq: 9, hist: { 4M: 9 } }
      setattr:         { samples:   0, unit: usecs, min:     0, max:       0, sum:         0, sumsq:  0 }

The kernel pads numbers to columns. 2.10 to 2.13 count most operations in ``reqs`` without min, max and sum, and have no
``sumsq``. Up to 2.14 a block has a single time, in seconds. 2.15 does not indent the times. ``hist`` came with 2.16.

A job id has at most :data:`MAX_JOB_ID_BYTES`, which may be any bytes. Up to 2.15 the kernel prints it raw, with ``?``
for unprintable bytes. From 2.16 on, it prints the id in quotes and unusual bytes as ``\xHH``. In both forms the id
stands alone on its line, so a line that begins with ``- job_id:`` begins a job. The kernel prints the heading once for
all readers: with two readers at a time, the heading may be missing or late.

The labels of ``hist`` are inclusive upper bounds: ``64K`` counts sizes above 32 KiB up to 64 KiB (the kernel tallies by
``fls(size - 1)``).

>>> block, = split(b'job_stats:\n- job_id:          "a\\x20b:1"\n  snapshot_time:   17\n'
...                b'  read_bytes: { samples: 3, unit: bytes, min: 1, max: 4096, sum: 6000, hist: { 1K: 2, 4K: 1 } }\n')
>>> job = parse_block(block)
>>> job.job_id, job.names, job.samples, job.sums, job.histograms
(b'a b:1', (b'read_bytes',), (b'3',), (b'6000',), ((b'read_bytes', ((1024, 2), (4096, 1))),))
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.formats import header

MAX_JOB_ID_BYTES = 31
"""``LUSTRE_JOBID_SIZE`` in ``lustre_user.h`` is 32 with the final NUL, from Lustre 2.10 to 2.17."""
KEY = b"- job_id:"
"""Prefix of the first line of a job."""
NEXT = b"\n" + KEY
_HEADING = b"job_stats:\n"
_ID_COLUMN = 19
"""Column at which the id begins. The key is padded to 16 characters, so leading spaces of an id are not padding."""
_OPERATION = re.compile(
    rb"^ ++(\w++): *+\{ samples: *+(\d{1,20}+)(?:, unit: *+(\w++))?"
    rb"(?:, min: *+-?+\d{1,20}+, max: *+-?+\d{1,20}+, sum: *+(-?+\d{1,20}+))?"
    rb"(?:, sumsq: *+-?+\d{1,20}+)?(?:, hist: \{([^}\n]*+)\})? \} *+\n",
    re.MULTILINE,
)
_ACTIVE = re.compile(rb"snapshot_time[ \t:]++(\d{1,18}+)")
_BUCKET = re.compile(rb"(\d{1,20}+)([KMGT]?+): (\d{1,20}+)")
_QUOTED = re.compile(rb'"((?:[^"\\\x00-\x20]|\\x[0-9A-Fa-f]{2})*)"')
_ESCAPE = re.compile(rb"\\x([0-9A-Fa-f]{2})")
_SCALE = {b"": 1, b"K": 1 << 10, b"M": 1 << 20, b"G": 1 << 30, b"T": 1 << 40}
_UNITS = {b"usec": b"usecs", b"regs": b"reqs", b"req": b"reqs"}


@dataclass(frozen=True, slots=True)
class Job:
    """One job on one target, in columns. Numbers are digits as printed, or empty if the kernel prints no number."""

    job_id: bytes
    """Job id as the application set it, without quotes and escapes."""
    start_time: bytes
    """Start of counting; empty before 2.15."""
    snapshot_time: bytes
    """Time of the job's last operation on the target."""
    names: tuple[bytes, ...]
    samples: tuple[bytes, ...]
    units: tuple[bytes, ...]
    sums: tuple[bytes, ...]
    histograms: tuple[tuple[bytes, tuple[tuple[int, int], ...]], ...]
    """Per operation with a histogram: inclusive upper bounds in bytes, and counts, not cumulative."""
    skipped: int


@dataclass(frozen=True, slots=True)
class JobStats:
    """All jobs of a target."""

    jobs: tuple[Job, ...]
    skipped: int
    """Lines outside the jobs, and unknown lines inside them."""


def split(data: bytes) -> list[bytes]:
    """Split into one block of whole lines per job, in the order printed, without a truncated last line."""
    return _cut(data)[1]


def parse_block(block: bytes) -> Job:
    first, _, body = block.partition(b"\n")
    head = header.split(body)
    rows = [row for row in _OPERATION.findall(body, head.end) if not header.is_beyond(row[1])]
    skipped = header.skipped_lines(body, head.lines + len(rows) + body.count(_HEADING))
    names, samples, units, sums, histograms = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    tables = [(name, buckets(text)) for name, text in zip(names, histograms, strict=True) if b":" in text]
    return Job(
        job_id(first),
        head.start_time,
        snapshot_time=head.snapshot_time,
        names=names,
        samples=samples,
        units=tuple([_UNITS.get(unit, unit) for unit in units]),
        sums=sums,
        histograms=tuple([(name, sizes) for name, sizes in tables if not _is_beyond(sizes)]),
        skipped=skipped + sum([_is_beyond(sizes) for _, sizes in tables]),
    )


def _is_beyond(sizes: tuple[tuple[int, int], ...]) -> bool:
    return any(count >= header.WRAPPED for _, count in sizes)


def parse(data: bytes) -> JobStats:
    skipped, blocks = _cut(data)
    jobs = tuple([parse_block(block) for block in blocks])
    return JobStats(jobs, skipped + sum([job.skipped for job in jobs]))


def _cut(data: bytes) -> tuple[int, list[bytes]]:
    """Count the unknown lines outside the jobs, and return the blocks of the jobs."""
    begin, end, odd = extent(data)
    blocks: list[bytes] = []
    while begin < end:
        following = data.find(NEXT, begin, end) + 1 or end
        blocks.append(data[begin:following])
        begin = following
    return odd, blocks


def extent(data: bytes) -> tuple[int, int, int]:
    """Return the start of the first job, the end of the last whole line, and the number of odd lines outside jobs."""
    end = data.rfind(b"\n") + 1
    begin = first(data)
    begin = end if begin < 0 or begin > end else begin
    return begin, end, int(end != len(data)) + odd_lines(data[:begin])


def first(data: bytes) -> int:
    """Return the offset of the first job; -1 if there are no jobs."""
    return 0 if data.startswith(KEY) else data.find(NEXT) + 1 or -1


def odd_lines(preamble: bytes) -> int:
    return header.skipped_lines(preamble, preamble.count(_HEADING))


def job_id(line: bytes) -> bytes:
    """Return the job id on the first line of a block, without quotes and escapes."""
    return unquoted(line[_ID_COLUMN:] if line[len(KEY) : _ID_COLUMN].isspace() else line[len(KEY) :].strip())


def unquoted(text: bytes) -> bytes:
    """Remove the quotes and escapes that releases since 2.16 add to the job id."""
    if text[:1] == b'"' and (quoted := _QUOTED.fullmatch(text)):
        return _ESCAPE.sub(lambda escape: bytes((int(escape[1], 16),)), quoted[1])
    return text


def buckets(text: bytes) -> tuple[tuple[int, int], ...]:
    """Parse the text between the braces of ``hist`` into inclusive upper bounds in bytes, and counts."""
    return tuple([(int(size) * _SCALE[scale], int(count)) for size, scale, count in _BUCKET.findall(text)])


def active_at(block: bytes) -> int:
    """Return the time of the job's last operation in whole seconds of the epoch, or ``UNKNOWN``."""
    match = _ACTIVE.search(block, block.find(b"\n"))
    return UNKNOWN if match is None else int(match[1])


UNKNOWN = -1
"""Result for a block without a time."""
