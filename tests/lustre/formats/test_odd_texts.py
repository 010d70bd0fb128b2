"""Texts beside those of nodes: hostile ids, lines out of place, lost parts, huge numbers, control characters of C."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.formats import changelog_users, compiled, header, job_stats, rpc_stats, stats
from lustre.formats.opcodes import Opcode
from tests.conftest import Unpack

BLOCK = b"""\
- job_id:          dd.0
  snapshot_time:   1554820612
  write_bytes:     { samples:           2, unit: bytes, min: 1048576, max: 4194304, sum:         5242880 }
  punch:           { samples:           1, unit:  reqs }
"""


@pytest.mark.parametrize(("printed", "job_id"), [
    (b'"\\xA9\xc3"', b"\xa9\xc3"),
    (b'"not quoted by 2.16"', b'"not quoted by 2.16"'),
    (b'"open', b'"open'),
    (b"  leading blanks", b"  leading blanks"),
    (b'a job "x": - job_id: y', b'a job "x": - job_id: y'),
    (b"", b""),
])
def test_ids_beside_those_that_2_16_prints(printed: bytes, job_id: bytes) -> None:
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


@pytest.mark.parametrize("damage", [
    (b"434  19  82", b"434  19"),
    (b"434  19  82", b"43x4  19  82"),
    (b"|          2   0  22", b"           2   0  22"),
    (b"4:\t\t       434", b"4\t\t       434"),
    (b"4:\t\t       434", b"2:\t\t       434"),
    (b"1024:\t\t         9   0 100   |         35  16 100\n", b""),
])
def test_a_damaged_table_is_dropped_whole_and_alone(capture: Unpack, damage: tuple[bytes, bytes]) -> None:
    of_target = "sys/kernel/debug/lustre/osc/lustre-OST0002-osc-ff1100011d6c9800/rpc_stats"
    data = (capture("2.17.57/tree-load-2") / of_target).read_bytes()
    assert data.count(damage[0]) == 1
    osc = rpc_stats.parse(data.replace(*damage))
    assert osc.pages_per_rpc is None
    assert osc.rpcs_in_flight is not None
    assert osc.offset is not None
    assert osc.skipped >= 10


@pytest.mark.parametrize(("heading", "row", "idle_seconds", "mask"), [
    (b"current index: 9\nID    index\n", b"cl1   7\n", None, ()),
    (b"current_index: 9\nID    index (idle) mask\n", b"cl1   7 (4294967294) mask=MARK\n", None, (b"MARK",)),
], ids=["2.10.0 has no idle time", "idle since the future: the difference of two times in 32 bits"])
def test_users_without_an_idle_time(heading: bytes, row: bytes, idle_seconds: int | None,
                                    mask: tuple[bytes, ...]) -> None:
    expected = changelog_users.ChangelogUsers(9, (changelog_users.User(b"cl1", 7, idle_seconds, mask),), 0)
    assert changelog_users.parse(heading + row) == expected


def test_large_and_wrapped_numbers_pass_unchanged() -> None:
    read = stats.parse(b"read_bytes   9223372036854775807 samples [bytes] -9223372036854775808 1 -5 9\n")
    assert (read.samples, read.sums) == ((b"9223372036854775807",), (b"-5",))


def test_a_number_of_samples_beyond_63_bits_is_skipped() -> None:
    read = stats.parse(b"read_bytes   18446744073709551615 samples [bytes] 1 1 5 9\nopen   3 samples [reqs]\n")
    assert (read.names, read.skipped) == ((b"open",), 1)


def test_times_do_not_count_as_change() -> None:
    """As 2.15.0 prints them: lprocfs_stats_header puts the colon after the padding."""
    times = b"snapshot_time   : 9.5 secs.nsecs\nstart_time      : 2.0 secs.nsecs\nelapsed_time    : 7.5 secs.nsecs\n"
    assert header.after(times + b"rest\n") == b"rest\n"
    assert header.split(times).start_time == b"2.0"


def test_python_and_c_give_the_control_characters_the_same_names_and_values() -> None:
    texts = pytest.importorskip("lustre.formats._texts")
    assert {one.name: one[0] for one in Opcode} == texts.OPCODES
    assert compiled.AVAILABLE


def test_the_control_characters_differ_and_are_none_of_the_kernels() -> None:
    assert len({*Opcode}) == len(Opcode.__members__)
    assert not {*Opcode} & {b"\t", b"\n", b"\r", b" "}
