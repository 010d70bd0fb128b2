"""Jobs: hostile ids, times of readings, the limit and the sum of the rest."""

import pytest

from tests.exporter.collectors.families import shown
from tests.exporter.jobs.test_texts import OST, block, by_job, line, stats


def reader(job: str, reads: int, read_bytes: int = 0) -> bytes:
    zero = line("write_bytes", 0, 0, "bytes", []), line("punch", 0, 0, "usecs", [])
    return block(line("read_bytes", reads, read_bytes, "bytes", [("4K", reads)]),
                 line("read", reads, 2 * reads, "usecs", []), *zero, job=job)


def test_any_idle_time_can_be_set(grow, exporter, samples) -> None:
    running = exporter(grow({OST: stats(reader("a", 1))}), jobs_idle_seconds=10**30)
    assert by_job(samples, running.scrape("jobs")) == {"a": "1"}
    assert running.reasons() == {}


def test_each_target_shows_when_its_counters_were_read(grow, exporter, samples) -> None:
    root = grow({OST: stats(reader("a", 1)), OST.replace("OST0000", "OST0001"): stats(reader("a", 1))})
    running = exporter(root)
    running.wall.seconds, running.wall.step = 1_795_000_000.0, 1.5
    first, second = (shown(samples, running.scrape("jobs"), "lustre_jobs_read_timestamp_seconds", "target")
                     for _ in range(2))
    assert float(first["OST0001"]) - float(first["OST0000"]) >= 1.5  # read one after the other, and stamped so
    assert all(float(second[target]) > float(first[target]) > 1_795_000_000 for target in first)
    assert running.scraper.outcomes["jobs"].read_at < float(second["OST0000"])


@pytest.mark.parametrize(("printed", "job"), [
    (r'"a\x20b:1"', "a b:1"), ('x"y', 'x"y'), ("back\\slash", "back\\slash"), (r'"new\x0aline"', "new\nline"),
    ("100%s", "100%s"), ("\udce9t\udce9", "\ufffdt\ufffd"), ("é", "é"), ("", ""),
])
def test_job_ids_may_hold_anything(grow, exporter, samples, printed, job) -> None:
    text = exporter(grow({OST: stats(reader(printed, 1))})).scrape("jobs")
    assert by_job(samples, text) == {job: "1"}


def test_the_busiest_keep_their_series(grow, exporter, samples) -> None:
    root = grow({OST: stats(reader("a", 5, 50), reader("b", 9, 90), reader("c", 1, 10), reader("d", 2, 20))})
    running = exporter(root, jobs_limit=2)
    text = running.scrape("jobs")
    assert by_job(samples, text) == {"a": "5", "b": "9", "other": "3"}
    assert by_job(samples, text, "lustre_job_read_bytes_total")["other"] == "30"
    assert by_job(samples, text, "lustre_job_operation_seconds_total")["other"] == "0.000006"
    assert by_job(samples, text, "lustre_job_io_size_bytes_count")["other"] == "3"
    assert by_job(samples, text, "lustre_job_io_size_bytes_sum")["other"] == "30"
    assert b'lustre_jobs_beyond_limit{fs="lustre",target="OST0000"} 2\n' in text
    assert b'lustre_jobs{fs="lustre",target="OST0000"} 4\n' in text


@pytest.mark.parametrize("limit", [0, 5])
def test_requests_of_exporters_on_clients_are_not_shown_as_a_job(grow, exporter, samples, limit: int) -> None:
    statfs, opened = (line(name, 7, 7, "usecs", []) for name in ("statfs", "open"))
    root = grow({"proc/fs/lustre/mdt/lustre-MDT0000/job_stats": stats(
        *(block(statfs, job=job) for job in ("lustre-exporter.0", "lustre-exporter.990", "df.0", "lustre-exporters.0")),
        block(opened, statfs, job="lustre-exporter.7"))})
    jobs = by_job(samples, exporter(root, jobs_limit=limit).scrape("jobs"))
    assert jobs.keys() == {"df.0", "lustre-exporters.0", "lustre-exporter.7"}
