r"""Operations of each job on one target: ``obdfilter.*.job_stats``, ``mdt.*.job_stats``.

One block a job, and a block whose job was idle is byte for byte the same at the next reading::

    job_stats:
    - job_id:          dd.0
      snapshot_time:   1795218489.325362688 secs.nsecs
      start_time:      1795217589.575935853 secs.nsecs
      elapsed_time:    899.749426835 secs.nsecs
      read_bytes:      { samples: 332, unit: bytes, min: 65536, max: 4194304, sum: 12058624, sumsq: 9, hist: { 4M: 9 } }
      setattr:         { samples:   0, unit: usecs, min:     0, max:       0, sum:         0, sumsq:  0 }

(numbers padded to columns). 2.10 to 2.13 count most operations in ``reqs`` without min, max and sum and have no
``sumsq``; up to 2.14 there is one time, in seconds; 2.15 forgets to indent the times; ``hist`` came with 2.16.

Job ids are at most 31 bytes of anything. Up to 2.15 they are printed raw, with ``?`` for what is not printable; from
2.16 odd bytes are ``\xHH`` and the id in quotes. The id stands alone on its line in both, so a line that begins with
``- job_id:`` begins a job. The heading is printed once for all readers: with two at a time it may be missing or late.

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

KEY = b"- job_id:"
"""Prefix of the first line of a job."""
NEXT = b"\n" + KEY
_HEADING = b"job_stats:\n"
_ID_COLUMN = 19
"""Where the id begins: the key is padded to 16 characters, so an id's own leading blanks can be told from padding."""
_OPERATION = re.compile(
    rb"^ ++(\w++): *+\{ samples: *+(\d{1,20}+)(?:, unit: *+(\w++))?"
    rb"(?:, min: *+-?+\d{1,20}+, max: *+(-?+\d{1,20}+), sum: *+(-?+\d{1,20}+))?"
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
    """One job on one target, in columns; digits as printed, empty where the kernel printed none."""

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
    maxima: tuple[bytes, ...]
    histograms: tuple[tuple[bytes, tuple[tuple[int, int], ...]], ...]
    """Sizes by inclusive upper bound in bytes, not cumulative, for the operations that have any."""
    skipped: int


@dataclass(frozen=True, slots=True)
class JobStats:
    """All jobs of a target."""

    jobs: tuple[Job, ...]
    skipped: int
    """Lines outside the jobs, and unknown lines inside them."""


def split(data: bytes) -> list[bytes]:
    """One block of whole lines per job, in the order printed; a last line cut short is left out."""
    return _cut(data)[1]


def parse_block(block: bytes) -> Job:
    """Read one job's block."""
    first, _, body = block.partition(b"\n")
    head = header.split(body)
    rows = _OPERATION.findall(body, head.end)
    skipped = header.skipped_lines(body, head.lines + len(rows) + body.count(_HEADING))
    names, samples, units, maxima, sums, histograms = zip(*rows, strict=True) if rows else ((), (), (), (), (), ())
    return Job(
        job_id(first),
        head.start_time,
        head.snapshot_time,
        names,
        samples,
        tuple([_UNITS.get(unit, unit) for unit in units]),
        sums,
        maxima,
        tuple([(name, buckets(text)) for name, text in zip(names, histograms, strict=True) if b":" in text]),
        skipped,
    )


def parse(data: bytes) -> JobStats:
    """Read a whole ``job_stats`` file."""
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
    """Where the first job begins, where the last whole line ends, and how many odd lines stand outside the jobs."""
    end = data.rfind(b"\n") + 1
    begin = first(data)
    begin = end if begin < 0 or begin > end else begin
    return begin, end, int(end != len(data)) + odd_lines(data[:begin])


def first(data: bytes) -> int:
    """Return the offset of the first job; -1 without jobs."""
    return 0 if data.startswith(KEY) else data.find(NEXT) + 1 or -1


def odd_lines(preamble: bytes) -> int:
    """Lines before the first job that are not the heading."""
    return header.skipped_lines(preamble, preamble.count(_HEADING))


def job_id(line: bytes) -> bytes:
    """The id on the first line of a block, quotes and escapes undone."""
    return unquoted(line[_ID_COLUMN:] if line[len(KEY) : _ID_COLUMN].isspace() else line[len(KEY) :].strip())


def unquoted(text: bytes) -> bytes:
    """The id without the quotes and escapes that newer releases put it in."""
    if text[:1] == b'"' and (quoted := _QUOTED.fullmatch(text)):
        return _ESCAPE.sub(lambda escape: bytes((int(escape[1], 16),)), quoted[1])
    return text


def buckets(text: bytes) -> tuple[tuple[int, int], ...]:
    """Inclusive upper bounds in bytes, and counts, of what stands between the braces of ``hist``."""
    return tuple([(int(size) * _SCALE[scale], int(count)) for size, scale, count in _BUCKET.findall(text)])


def active_at(block: bytes) -> int:
    """Time of the job's last operation in whole seconds of the epoch, or ``UNKNOWN``."""
    match = _ACTIVE.search(block, block.find(b"\n"))
    return UNKNOWN if match is None else int(match[1])


UNKNOWN = -1
"""Result for a block without the time."""
