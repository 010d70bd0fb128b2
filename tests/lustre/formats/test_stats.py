"""``stats`` of the recorded releases, and of those only known from the source."""

from __future__ import annotations

from lustre.formats import header, stats

# Written from the source: lprocfs_stats_seq_show at tag 2.10.0, units of llite ("regs") and of the service ("usec").
STATS_2_10 = b"""\
snapshot_time             1500000000.000000001 secs.nsecs
read_bytes                3 samples [bytes] 1 4096 8193
open                      12 samples [regs]
req_waittime              4 samples [usec] 50 91 280 20000
"""


def test_large_and_wrapped_numbers_pass_unchanged() -> None:
    read = stats.parse(b"read_bytes   9223372036854775807 samples [bytes] -9223372036854775808 1 -5 9\n")
    assert read.samples == (b"9223372036854775807",)
    assert read.sums == (b"-5",)


def test_a_number_of_samples_beyond_63_bits_is_skipped() -> None:
    read = stats.parse(b"read_bytes   18446744073709551615 samples [bytes] 1 1 5 9\nopen   3 samples [reqs]\n")
    assert (read.names, read.skipped) == ((b"open",), 1)


def test_units_of_2_10_are_those_of_today() -> None:
    read = stats.parse(STATS_2_10)
    assert read.units == (b"bytes", b"reqs", b"usecs")
    assert read.sums == (b"8193", b"", b"280")
    assert (read.start_time, read.skipped) == (b"", 0)


def test_times_do_not_count_as_change() -> None:
    later = STATS_2_10.replace(b"1500000000.000000001", b"1500000009.5")
    assert header.after(later) == header.after(STATS_2_10) != STATS_2_10
    times = b"snapshot_time:   9.5 secs.nsecs\nstart_time:   2.0 secs.nsecs\nelapsed_time:   7.5 secs.nsecs\n"
    assert header.after(times + b"rest\n") == b"rest\n"
