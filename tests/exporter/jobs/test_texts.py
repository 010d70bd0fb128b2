"""Jobs from scrape to scrape: idle ones leave and come back, ids are hostile, a file may come in any pieces."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.collector import Settings
from exporter.collectors import COLLECTORS
from exporter.jobs.texts import IdleRun, Job, JobTexts
from exporter.scrape import Scraper
from lustre.formats import job_stats
from tests.exporter.collectors.families import shown

OST = "proc/fs/lustre/obdfilter/lustre-OST0000/job_stats"
OPERATIONS = ("read", "write", "getattr", "punch", "read_bytes", "write_bytes", "statfs")


def line(name: str, samples: int, total: int, unit: str, buckets: list[tuple[str, int]]) -> str:
    hist = ", hist: { " + ", ".join(f"{size}: {count}" for size, count in buckets) + " }" if unit == "bytes" else ""
    return f"  {name}:  {{ samples: {samples:11}, unit: {unit}, min: 0, max: {total}, sum: {total}, sumsq: 0{hist} }}\n"


def block(*lines: str, job: str = "a", active: int = 9) -> bytes:
    head = (
        f"- job_id:          {job}\n  snapshot_time:   {active}.5 secs.nsecs\n"
        "  start_time:      5.25 secs.nsecs\n  elapsed_time:    4.2 secs.nsecs\n"
    )
    return (head + "".join(lines)).encode(errors="surrogateescape")


counters = st.builds(
    line,
    st.sampled_from(OPERATIONS),
    st.one_of(st.just(0), st.integers(0, 2**63)),
    st.one_of(st.integers(-5, 2000000), st.sampled_from([2**63 - 1, 2**53 + 1])),
    st.sampled_from(["usecs", "usecs", "bytes", "reqs"]),
    st.lists(
        st.tuples(st.sampled_from(["4K", "64K", "1M", "4K", "1G", "2G", "4G", "x"]), st.integers(0, 10**12)), max_size=4
    ),
)


def busy(job: str, active: int, count: int = 1) -> bytes:
    return block(line("read", count, count, "usecs", []), job=job, active=active)


def stats(*blocks: bytes) -> bytes:
    return b"job_stats:\n" + b"".join(blocks)


def by_job(samples, text: bytes, name: str = "lustre_job_operations_total") -> dict[str, str]:
    return shown(samples, text, name, "jobid")


def test_idle_jobs_have_no_series_until_they_work_again(grow, exporter, samples) -> None:
    running = exporter(grow({OST: stats(busy("old", 1000), busy("new", 1101))}), jobs_idle_seconds=100)
    text = running.scrape("jobs")
    assert by_job(samples, text) == {"new": "1"}
    assert b'lustre_jobs_idle{fs="lustre",target="OST0000"} 1\n' in text
    assert b'lustre_jobs{fs="lustre",target="OST0000"} 2\n' in text
    grow({OST: stats(busy("old", 1102, 7), busy("new", 1101))})
    assert by_job(samples, running.scrape("jobs")) == {"old": "7", "new": "1"}


def test_without_the_flag_and_without_times_no_job_expires(grow, exporter, samples) -> None:
    timeless = ("- job_id:          timeless\n" + line("read", 3, 3, "usecs", [])).encode()
    root = grow({OST: stats(busy("old", 1000), busy("new", 999999), timeless)})
    every = by_job(samples, exporter(root, jobs_idle_seconds=0).scrape("jobs"))
    assert every == {"old": "1", "new": "1", "timeless": "3"}
    assert by_job(samples, exporter(root, jobs_idle_seconds=60).scrape("jobs")) == {"new": "1", "timeless": "3"}


def test_a_job_from_the_future_makes_no_other_idle(grow, exporter, samples) -> None:
    running = exporter(grow({OST: stats(busy("now", 5000), busy("ahead", 90000))}), jobs_idle_seconds=100)
    same = running.scraper
    running.scraper = Scraper(same.tree, COLLECTORS, Settings(frozenset({"jobs"}), jobs_idle_seconds=100),
                              lambda: 0.0, lambda: 5050.0)  # fmt: skip
    assert by_job(samples, running.scrape("jobs")) == {"now": "1", "ahead": "1"}


@settings(max_examples=100)
@given(
    st.lists(st.one_of(st.integers(1, 400), st.just(9999)), min_size=1),
    st.integers(0, 30),
    st.sampled_from([b"", b"odd\n", b"- job_id: cut"]),
)
def test_where_the_pieces_of_a_file_end_makes_no_difference(sizes, count, tail) -> None:
    whole = stats(*(busy(f"job{number}", 1000, number + 1) for number in range(count))) + tail
    read: list[tuple[bytes, bytes]] = []

    def render(job: Job, text: bytes) -> None:
        read.append((job.first_line, text))
        job.stale = False

    texts = JobTexts(render)
    for passes in range(4):
        texts.begin(0)
        at = 0
        for size in sizes:
            texts.take(whole[at : at + size])
            at += size
        texts.take(whole[at:])
        items, odd = texts.end()
        assert odd == job_stats.extent(whole)[2]
        jobs = [job for item in items for job in (item.jobs if isinstance(item, IdleRun) else (item,))]
        assert [job.first_line for job in jobs] == [text.split(b"\n")[0] for text in job_stats.split(whole)]
        assert [text for _, text in read] == job_stats.split(whole)
        one_piece = sizes[0] > len(whole) and passes == 3 and count > 2
        assert not one_piece or any(isinstance(item, IdleRun) for item in items)


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
