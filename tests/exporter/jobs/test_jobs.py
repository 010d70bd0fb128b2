"""Jobs: hostile ids, zero counters, the limit and the sum of the rest."""

from __future__ import annotations

import pytest

from tests.exporter.collectors.families import shown

OST = "proc/fs/lustre/obdfilter/lustre-OST0000/job_stats"


def block(job: bytes, reads: int, read_bytes: int = 0) -> bytes:
    return (
        b"- job_id:          %b\n  snapshot_time:   9.0 secs.nsecs\n  start_time:      1.0 secs.nsecs\n"
        b"  elapsed_time:    1.0 secs.nsecs\n"
        b"  read_bytes:      { samples: %d, unit: bytes, min: 0, max: 0, sum: %d, sumsq: 0, hist: { 4K: %d } }\n"
        b"  write_bytes:     { samples: 0, unit: bytes, min: 0, max: 0, sum: 0, sumsq: 0, hist: {  } }\n"
        b"  read:            { samples: %d, unit: usecs, min: 1, max: 1, sum: %d, sumsq: 1 }\n"
        b"  punch:           { samples: 0, unit: usecs, min: 0, max: 0, sum: 0, sumsq: 0 }\n"
        % (job, reads, read_bytes, reads, reads, 2 * reads)
    )


def stats(*blocks: bytes) -> bytes:
    return b"job_stats:\n" + b"".join(blocks)


def by_job(samples, text: bytes, name: str = "lustre_job_operations_total") -> dict[str, str]:
    return shown(samples, text, name, "jobid")


def test_counters_at_zero_are_left_out(grow, exporter, samples) -> None:
    text = exporter(grow({OST: stats(block(b"dd.0", 3, 100))})).scrape("jobs")
    found = {(n, dict(k).get("operation"), dict(k).get("le")): v for (n, k), v in samples(text).items()}
    assert found == {
        ("lustre_job_read_bytes_total", None, None): "100",
        ("lustre_job_operations_total", "read", None): "3",
        ("lustre_job_operation_seconds_total", "read", None): "0.000006",
        ("lustre_job_io_size_bytes_bucket", None, "4096.0"): "3",
        ("lustre_job_io_size_bytes_bucket", None, "+Inf"): "3",
        ("lustre_job_io_size_bytes_sum", None, None): "100",
        ("lustre_job_io_size_bytes_count", None, None): "3",
        ("lustre_jobs", None, None): "1",
        ("lustre_jobs_idle", None, None): "0",
        ("lustre_jobs_read_timestamp_seconds", None, None): "1800000000.000",
    }


def test_each_target_shows_when_its_counters_were_read(grow, exporter, samples) -> None:
    root = grow({OST: stats(block(b"a", 1)), OST.replace("OST0000", "OST0001"): stats(block(b"a", 1))})
    running = exporter(root)
    running.wall.seconds, running.wall.step = 1_795_000_000.0, 1.5
    first, second = (shown(samples, running.scrape("jobs"), "lustre_jobs_read_timestamp_seconds", "target")
                     for _ in range(2))
    assert float(first["OST0001"]) - float(first["OST0000"]) >= 1.5  # read one after the other, and stamped so
    assert all(float(second[target]) > float(first[target]) > 1_795_000_000 for target in first)
    assert running.scraper.outcomes["jobs"].read_at < float(second["OST0000"])


@pytest.mark.parametrize(("printed", "job"), [
    (b'"a\\x20b:1"', "a b:1"),
    (b'x"y', 'x"y'),
    (b"back\\slash", "back\\slash"),
    (b'"new\\x0aline"', "new\nline"),
    (b"100%s", "100%s"),
    (b"\xe9t\xe9", "\ufffdt\ufffd"),
    ("é".encode(), "é"),
    (b"", ""),
])
def test_job_ids_may_hold_anything(grow, exporter, samples, printed, job) -> None:
    text = exporter(grow({OST: stats(block(printed, 1))})).scrape("jobs")
    assert by_job(samples, text) == {job: "1"}


def test_the_busiest_keep_their_series(grow, exporter, samples) -> None:
    root = grow({OST: stats(block(b"a", 5, 50), block(b"b", 9, 90), block(b"c", 1, 10), block(b"d", 2, 20))})
    running = exporter(root, jobs_limit=2)
    text = running.scrape("jobs")
    assert by_job(samples, text) == {"a": "5", "b": "9", "other": "3"}
    assert by_job(samples, text, "lustre_job_read_bytes_total")["other"] == "30"
    assert by_job(samples, text, "lustre_job_operation_seconds_total")["other"] == "0.000006"
    assert by_job(samples, text, "lustre_job_io_size_bytes_count")["other"] == "3"
    assert by_job(samples, text, "lustre_job_io_size_bytes_sum")["other"] == "30"
    assert b'lustre_jobs_beyond_limit{fs="lustre",target="OST0000"} 2\n' in text
    assert b'lustre_jobs{fs="lustre",target="OST0000"} 4\n' in text


def test_busy_jobs_get_series_and_the_rest_only_grows(grow, exporter, samples) -> None:
    running = exporter(grow({OST: stats(block(b"a", 100), block(b"b", 10))}), jobs_limit=1)
    assert by_job(samples, running.scrape("jobs")) == {"a": "100", "other": "10"}
    grow({OST: stats(block(b"a", 101), block(b"b", 500))})
    assert by_job(samples, running.scrape("jobs")) == {"b": "500", "other": "11"}


def mds_block(job: bytes, *operations: bytes) -> bytes:
    lines = b"".join(b"  %b:          { samples: 7, unit: usecs, min: 1, max: 1, sum: 7, sumsq: 7 }\n" % name
                     for name in operations)
    return (b"- job_id:          %b\n  snapshot_time:   9.0 secs.nsecs\n  start_time:      1.0 secs.nsecs\n"
            b"  elapsed_time:    1.0 secs.nsecs\n" % job) + lines


@pytest.mark.parametrize("limit", [0, 5])
def test_requests_of_exporters_on_clients_are_not_shown_as_a_job(grow, exporter, samples, limit: int) -> None:
    root = grow({"proc/fs/lustre/mdt/lustre-MDT0000/job_stats": stats(
        mds_block(b"lustre-exporter.0", b"statfs"), mds_block(b"lustre-exporter.990", b"statfs"),
        mds_block(b"df.0", b"statfs"), mds_block(b"lustre-exporters.0", b"statfs"),
        mds_block(b"lustre-exporter.7", b"open", b"statfs"))})
    jobs = by_job(samples, exporter(root, jobs_limit=limit).scrape("jobs"))
    assert jobs.keys() == {"df.0", "lustre-exporters.0", "lustre-exporter.7"}
