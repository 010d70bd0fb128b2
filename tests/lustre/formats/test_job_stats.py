"""Jobs: the recorded form, older ones known from the source, and ids that hold anything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.formats import job_stats

# Written from the source: lprocfs_jobstats_seq_show at tag 2.12.0 (seconds, no blank after "min:", reqs, no sumsq).
OST_2_12 = b"""\
job_stats:
- job_id:          dd.0
  snapshot_time:   1554820612
  read_bytes:      { samples:           0, unit: bytes, min:       0, max:       0, sum:               0 }
  write_bytes:     { samples:           2, unit: bytes, min: 1048576, max: 4194304, sum:         5242880 }
  getattr:         { samples:           0, unit:  reqs }
  punch:           { samples:           1, unit:  reqs }
"""

# Written from the source: the same at tag 2.15.0 (times not indented, their colon after the padding; sumsq).
OST_2_15 = b"""\
job_stats:
- job_id:          a job "x": - job_id: y
snapshot_time   : 12345.000000001 secs.nsecs
start_time      : 45.000000001 secs.nsecs
elapsed_time    : 12300.000000000 secs.nsecs
  read:            { samples:           3, unit: usecs, min:       95, max:     2293, sum:  5264, sumsq:    5748354 }
"""


def test_job_stats_of_2_15_with_a_job_id_that_looks_like_the_format() -> None:
    read = job_stats.parse(OST_2_15)
    assert read.skipped == 0
    (job,) = read.jobs
    assert job.job_id == b'a job "x": - job_id: y'
    assert (job.start_time, job.sums) == (b"45.000000001", (b"5264",))


@pytest.mark.parametrize(("printed", "job_id"), [
    (b'"we\\x20ird:x.0"', b"we ird:x.0"),
    (b'"4242:0:lustrevm"', b"4242:0:lustrevm"),
    (b'"@home"', b"@home"),
    (b'"\\x22\\x5C\\x0A"', b'"\\\n'),
    (b'"\\xA9\xc3"', b"\xa9\xc3"),
    (b'"not quoted by 2.16"', b'"not quoted by 2.16"'),
    (b'"open', b'"open'),
    (b"  leading blanks", b"  leading blanks"),
    (b"", b""),
])
def test_job_ids_are_printed_raw_or_quoted(printed: bytes, job_id: bytes) -> None:
    assert job_stats.parse_block(b"- job_id:          " + printed + b"\n").job_id == job_id


def as_2_16_prints(job_id: bytes) -> bytes:
    """The id as lprocfs_jobstats_seq_show prints it since 2.16."""
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.@-_:/"
    text = b"".join(bytes((c,)) if c in plain else b"\\x%02X" % c for c in job_id)
    return b'"' + text + b'"' if b"\\" in text or b":" in text or text.startswith(b"@") else text


@given(ids=st.lists(st.binary(min_size=1, max_size=31), max_size=5))
def test_any_id_comes_back(ids: list[bytes]) -> None:
    blocks = [b"- job_id:          " + as_2_16_prints(i) + b"\n  read: { samples: 1 }\n" for i in ids]
    read = job_stats.parse(b"job_stats:\n" + b"".join(blocks))
    assert [job.job_id for job in read.jobs] == ids
    assert all(job.samples == (b"1",) for job in read.jobs)


def test_an_unknown_line_is_counted_and_the_others_are_read() -> None:
    read = job_stats.parse(OST_2_12.replace(b"  getattr: ", b"  gremlin\n  getattr: "))
    assert read.skipped == 1
    assert len(read.jobs[0].names) == 4


def test_a_heading_printed_late_or_not_at_all() -> None:
    body = OST_2_12.removeprefix(b"job_stats:\n")
    read = job_stats.parse(body + b"job_stats:\n" + body)
    assert (len(read.jobs), read.skipped) == (2, 0)
