"""Jobs from scrape to scrape: idle ones leave and come back, and a file may come in any pieces."""

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
