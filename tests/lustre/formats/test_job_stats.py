"""Jobs: ids that hold anything, and lines out of place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.formats import job_stats

BLOCK = b"""\
- job_id:          dd.0
  snapshot_time:   1554820612
  write_bytes:     { samples:           2, unit: bytes, min: 1048576, max: 4194304, sum:         5242880 }
  punch:           { samples:           1, unit:  reqs }
"""


@pytest.mark.parametrize(("printed", "job_id"), [
    (b'"we\\x20ird:x.0"', b"we ird:x.0"),
    (b'"4242:0:lustrevm"', b"4242:0:lustrevm"),
    (b'"@home"', b"@home"),
    (b'"\\x22\\x5C\\x0A"', b'"\\\n'),
    (b'"\\xA9\xc3"', b"\xa9\xc3"),
    (b'"not quoted by 2.16"', b'"not quoted by 2.16"'),
    (b'"open', b'"open'),
    (b"  leading blanks", b"  leading blanks"),
    (b'a job "x": - job_id: y', b'a job "x": - job_id: y'),
    (b"", b""),
])
def test_job_ids_are_printed_raw_or_quoted(printed: bytes, job_id: bytes) -> None:
    assert [job.job_id for job in job_stats.parse(b"- job_id:          " + printed + b"\n").jobs] == [job_id]


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
    read = job_stats.parse(BLOCK.replace(b"  punch: ", b"  gremlin\n  punch: "))
    assert (read.skipped, read.jobs[0].names) == (1, (b"write_bytes", b"punch"))


def test_a_heading_printed_late_or_not_at_all() -> None:
    read = job_stats.parse(BLOCK + b"job_stats:\n" + BLOCK)
    assert (len(read.jobs), read.skipped) == (2, 0)
