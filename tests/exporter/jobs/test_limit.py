"""The sum of the jobs that are not shown by themselves is what they did, whatever becomes of them and of the file."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from exporter.exposition import MetricsPage
from exporter.jobs.idle import IdleFilter
from exporter.jobs.limit import REMEMBERED_PASSES, LimitedJobs
from exporter.jobs.numbers import NumbersReader
from exporter.jobs.statistics import OPERATIONS
from exporter.ledger import SPARE
from tests.exporter.collectors.families import shown
from tests.exporter.jobs.test_texts import OST, block, busy, line, stats


def reads(samples, text: bytes) -> dict[str, int]:
    return {job: int(value) for job, value in shown(samples, text, OPERATIONS.name, "jobid").items()}


def job(name: str, count: int, active: int = 1000, start: int = 5) -> bytes:
    return busy(name, active, count).replace(b"start_time:      5.25", b"start_time:      %d.25" % start)


@dataclass
class Jobs:
    """What jobs have done, and what of it the sum should hold by now."""

    counts: dict[str, int] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    active: dict[str, int] = field(default_factory=dict)
    seen: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Start and count as last listed."""
    rest: int = 0

    def work(self, name: str, amount: int, now: int) -> None:
        self.counts[name] = self.counts.get(name, 0) + amount
        self.starts.setdefault(name, now)
        self.active[name] = now

    def end(self, name: str) -> None:
        for of_job in (self.counts, self.starts, self.active):
            of_job.pop(name, None)

    def text(self, listed: list[str]) -> list[bytes]:
        return [job(name, self.counts[name], self.active[name], self.starts[name]) for name in listed]

    def reported(self, listed: list[str], shown: set[str]) -> None:
        """A scrape that listed these jobs showed ``shown`` individually."""
        for name in dict.fromkeys(listed):
            start, count = self.seen.get(name, (0, 0))
            self.seen[name] = self.starts[name], self.counts[name]
            if name not in shown:
                self.rest += self.counts[name] - (count if start == self.starts[name] else 0)


class Target:
    """A target's jobs, without a tree."""

    def __init__(self, limit: int, idle_seconds: int = 0) -> None:
        self.jobs = LimitedJobs(b'target="a"', limit, IdleFilter(idle_seconds, lambda: 1e9), NumbersReader())
        self.skipped: int | None = None

    def collect(self, data: bytes, piece: int = 1 << 16, pieces: int | None = None) -> dict[str, int]:
        """Operations by job, when the file is read in such pieces, and goes away after so many."""
        page = MetricsPage()
        parts = [data[at : at + piece] for at in range(0, len(data), piece)]

        def read(take: Callable[[bytes], None]) -> bool:
            for part in parts[:pieces]:
                take(part)
            return pieces is None

        self.skipped = self.jobs.collect(read, page)
        lines = b"".join([chunk for family, chunk in page.lines() if family is OPERATIONS]).decode().splitlines()
        return {line.split('jobid="')[1].split('"')[0]: int(line.split()[-1]) for line in lines}


WHAT = ("work", "work", "work", "end", "clear all", "missed", "twice", "broken off", "reorder")
events = st.lists(
    st.lists(st.tuples(st.sampled_from(WHAT), st.sampled_from("abcdefghijklmnop"), st.integers(1, 500)), max_size=8),
    min_size=1,
    max_size=12,
)


@example([[("work", "b", 1), ("broken off", "a", 2), ("work", "a", 1)], [("missed", "b", 1), ("twice", "a", 1)], []],
         1, 0, 150)
@example([[("work", "a", 1), ("work", "b", 1), ("broken off", "a", 1)], [("end", "a", 1)],
          [("work", "a", 1), ("work", "b", 1)]], 1, 0, 700)
@settings(max_examples=150)
@given(events, st.integers(1, 5), st.sampled_from([0, 3]), st.sampled_from([150, 700, 9999]))
def test_the_sum_is_what_the_others_did(passes, limit, idle_seconds, piece) -> None:
    target, jobs, order = Target(limit, idle_seconds), Jobs(), 1
    for now, steps in enumerate(passes, 1001):
        how = {what: (name, amount) for what, name, amount in steps}
        for what, name, amount in steps:
            if what == "work":
                jobs.work(name, amount, now)
            elif what in {"end", "clear all"}:
                for gone in (name,) if what == "end" else [*jobs.counts]:
                    jobs.end(gone)
        order = -order if "reorder" in how else order
        listed = [name for name in [*jobs.counts][::order] if name != how.get("missed", "-")[0]]
        twice = [name for name in listed if name == how.get("twice", "-")[0]]
        text = stats(*jobs.text([*listed, *twice]))
        if "broken off" in how:
            assert target.collect(text, piece, how["broken off"][1] % 7) == {}
            assert target.skipped is None
            continue
        shown = target.collect(text, piece)
        rest = shown.pop("other", 0)
        jobs.reported(listed, {*shown})
        assert rest == jobs.rest
        assert shown == {name: jobs.counts[name] for name in shown}
        newest = max([jobs.active[name] for name in listed], default=0)
        awake = [name for name in listed if not idle_seconds or jobs.active[name] >= newest - idle_seconds]
        assert len(shown) == min(limit, len(awake))
        assert {*shown} <= {*awake}
        assert target.skipped == len(twice)


def test_more_idle_jobs_than_are_remembered_of_those_gone_count_once(grow, exporter, samples) -> None:
    many = [f"job{number}" for number in range(2 * SPARE)]
    root = grow({OST: stats(job("busy", 10, 1000), *[job(name, 7, 1000) for name in many])})
    running = exporter(root, jobs_limit=1, jobs_idle_seconds=100)
    running.scrape("jobs")
    for count, active in ((20, 9000), (30, 9001)):
        grow({OST: stats(job("busy", count, active), *[job(name, 7, 1000) for name in many])})
        assert reads(samples, running.scrape("jobs"))["other"] == 7 * len(many)
    grow({OST: stats(job("busy", 99, 9002), *[job(name, 8, 9002) for name in many])})
    assert reads(samples, running.scrape("jobs"))["other"] == 8 * len(many)


@pytest.mark.parametrize("same_time", [True, False])
def test_of_a_job_listed_twice_the_first_counts(grow, exporter, samples, same_time) -> None:
    running = exporter(grow({OST: stats(job("a", 10**6), job("b", 1))}), jobs_limit=1)
    running.scrape("jobs")
    for now, (first, second) in enumerate([(3, 4), (4, 4), (4, 6), (6, 7), (7, 9), (9, 9), (9, 9)], 1001):
        later = now if same_time else now + 1000
        grow({OST: stats(job("b", first, now), job("a", 10**6), job("b", second, later))})
        assert reads(samples, running.scrape("jobs")) == {"a": 10**6, "other": first}
        assert running.skipped() == {"obdfilter.*.job_stats": now - 1000}
    grow({OST: stats(job("b", 10, 2000))})
    assert reads(samples, running.scrape("jobs")) == {"b": 10, "other": 9}
    assert running.skipped() == {"obdfilter.*.job_stats": 7}


def test_a_job_missed_by_one_reading_is_no_busy_newcomer(grow, exporter, samples) -> None:
    running = exporter(grow({OST: stats(job("old", 10**9), job("busy", 1))}), jobs_limit=1)
    for count in range(2, 70):
        grow({OST: stats(job("old", 10**9), job("busy", 1000 * count, 1000 + count))})
        rest = reads(samples, running.scrape("jobs"))["other"]
    grow({OST: stats(job("busy", 70000, 1070))})
    assert reads(samples, running.scrape("jobs")) == {"busy": 70000, "other": rest}
    grow({OST: stats(job("old", 10**9), job("busy", 71000, 1071))})
    assert reads(samples, running.scrape("jobs")) == {"busy": 71000, "other": rest}


def test_a_job_keeps_its_name_as_long_as_it_is_shown(grow, exporter, samples) -> None:
    def alike(last: int, count: int, active: int) -> bytes:
        return job("a!", count, active).replace(b"a!", bytes((ord("a"), last)))

    root = grow({OST: stats(alike(0xFF, 100, 1000), job("z", 1))})
    running = exporter(root, jobs_limit=2)
    assert reads(samples, running.scrape("jobs")) == {"a\ufffd": 100, "z": 1}
    grow({OST: stats(alike(0xFE, 900, 1001), alike(0xFF, 200, 1001), job("z", 1))})
    assert reads(samples, running.scrape("jobs")) == {"a\ufffd": 200, r"a\xfe": 900}


def test_a_job_whose_id_is_other_has_no_series_of_its_own(grow, exporter, samples) -> None:
    printed = ("other", '"other"', r'"\x6fther"')
    running = exporter(grow({OST: stats(*[job(name, 7) for name in printed], job("a", 1))}), jobs_limit=3)
    assert reads(samples, running.scrape("jobs")) == {"a": 1, "other": 21}


def test_a_sum_that_ran_into_the_end_is_left_out_of_the_others_too_and_counted(grow, exporter, samples) -> None:
    lines = line("read", 3, 2**63 - 1, "usecs", []), line("punch", 2, 9, "usecs", [])
    running = exporter(grow({OST: stats(job("a", 100), block(*lines, job="b", active=1000))}), jobs_limit=1)
    text = running.scrape("jobs")
    assert reads(samples, text)["a"] == 100
    seconds = shown(samples, text, "lustre_job_operation_seconds_total", "jobid", "operation")
    assert {key: value for key, value in seconds.items() if key[0] == "other"} == {("other", "punch"): "0.000009"}
    assert running.skipped() == {"obdfilter.*.job_stats": 1}


def test_jobs_that_come_and_go_are_forgotten() -> None:
    target = Target(1)
    for number in range(300):
        target.collect(stats(job("busy", 10 * number + 10, 1000 + number), job(f"job{number}", 7)))
    assert target.collect(stats(job("busy", 3010, 1300))) == {"busy": 3010, "other": 300 * 7}
    assert target.collect(stats(job("busy", 3010, 1300), job("job299", 8))) == {"busy": 3010, "other": 300 * 7 + 1}
    gone = 299 - REMEMBERED_PASSES
    both = stats(job("busy", 4010, 1301), job("job299", 8), job(f"job{gone}", 8))
    assert target.collect(both) == {"busy": 4010, "other": 300 * 7 + 1 + 8}
