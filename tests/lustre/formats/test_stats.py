"""``stats`` and its header, beside what the recorded and written nodes of the exporter's tests show."""

from __future__ import annotations

from lustre.formats import header, stats


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
