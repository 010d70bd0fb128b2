"""Sums over nodes: they never decrease, and hold what was seen of each node, in any order of resets, gaps, restarts."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from tierd.gather.exposition import Layouts
from tierd.gather.rules import Rule, rule_of
from tierd.gather.sums import SPARE_SERIES, Sums

HEAD = """\
# HELP lustre_llite_read_bytes_total Bytes read.
# TYPE lustre_llite_read_bytes_total counter
# TYPE lustre_osc_rpc_latency_seconds histogram
# TYPE lustre_llite_unstable_pages gauge
# TYPE lustre_healthy gauge
# TYPE lustre_filesystem_size_bytes gauge
# TYPE lustre_client_job_info gauge
# TYPE lustre_exporter_collector_success gauge
# TYPE process_start_time_seconds gauge
"""


class Rack:
    """Sums, fed with expositions in virtual time."""

    def __init__(self, max_series: int = 10_000, max_jobs: int = 10) -> None:
        self.layouts = Layouts()
        self.sums = Sums(max_series, max_jobs, job_idle_seconds=600.0, forget_seconds=86400.0)
        self.now = 1000.0
        self.listed: set[str] = set()

    def scrape(self, kind: str = "", job: str | None = None, seconds: float = 30.0, **nodes: str) -> None:
        """One pass in which these nodes answer with these lines."""
        self.now += seconds
        self.listed |= nodes.keys()
        for name, lines in nodes.items():
            found = self.layouts.parse((HEAD + lines).encode(), self.sums.layout_of(name))
            self.sums.credit(name, found, kind, found.layout.job if job is None else job, self.now)
        self.sums.settle(nodes.keys(), self.listed, self.now)
        self.answered = set(nodes)

    def total(self, family: str, **wanted: object) -> float:
        return sum(series.total for key, series in self.sums.series.items()
                   if key.family == family and all(getattr(key, name) == value for name, value in wanted.items()))

    def gauge(self, family: str) -> list[float]:
        found = self.sums.gauges(self.answered, self.listed)
        return [value for key, value in found.items() if key.family == family]


READ = "lustre_llite_read_bytes_total"


def read(value: int, fs: str = "a") -> str:
    return f'{READ}{{fs="{fs}",mount="/{fs}"}} {value}\n'


def test_a_node_counts_from_its_first_scrape_on() -> None:
    rack = Rack()
    rack.scrape(n1=read(5_000_000), n2=read(7))
    assert rack.total(READ) == 0
    rack.scrape(n1=read(5_000_100), n2=read(8))
    assert rack.total(READ) == 101
    rack.scrape(n1=read(5_000_100), n2=read(8), n3=read(10**15))
    assert rack.total(READ) == 101


def test_an_absent_node_keeps_its_part_and_adds_what_it_did_meanwhile() -> None:
    rack = Rack()
    rack.scrape(n1=read(100), n2=read(100))
    rack.scrape(n1=read(150), n2=read(110))
    rack.scrape(n2=read(111))
    assert rack.total(READ) == 61
    rack.scrape(n1=read(250), n2=read(111))
    assert rack.total(READ) == 161


def test_a_reset_adds_from_zero() -> None:
    rack = Rack()
    rack.scrape(n1=read(100))
    rack.scrape(n1=read(30))
    assert (rack.total(READ), rack.sums.statistics.resets) == (30, 1)


def test_a_new_series_of_a_complete_scrape_counts_in_full_and_another_does_not() -> None:
    rack = Rack()
    rack.scrape(n1=read(1), n2='lustre_exporter_collector_success{collector="llite"} 0\n')
    rack.scrape(n1=read(1) + read(40, "b"), n2='lustre_exporter_collector_success{collector="llite"} 1\n' + read(900))
    assert rack.total(READ) == 40
    rack.scrape(n1=read(1) + read(45, "b"), n2='lustre_exporter_collector_success{collector="llite"} 1\n' + read(907))
    assert rack.total(READ) == 52


def test_new_series_of_a_restarted_exporter_do_not_count_at_once() -> None:
    rack = Rack()
    rack.scrape(n1=read(1) + "process_start_time_seconds 10\n")
    rack.scrape(n1=read(3) + read(1 << 40, "b") + "process_start_time_seconds 20\n")
    assert rack.total(READ) == 2


def test_a_series_that_returns_continues() -> None:
    rack = Rack()
    rack.scrape(n1=read(10) + read(1000, "b"))
    rack.scrape(n1=read(11))
    rack.scrape(n1=read(12) + read(1005, "b"))
    assert rack.total(READ) == 7


def test_forgotten_values_never_count_twice() -> None:
    rack = Rack()
    many = "".join(read(1000, f"f{number}") for number in range(3 * SPARE_SERIES))
    rack.scrape(n1=read(1) + many)
    rack.scrape(n1=read(1))
    rack.scrape(n1=read(1) + many)
    assert rack.total(READ) == 0
    assert len(rack.sums.nodes["n1"].absent) <= 3 * SPARE_SERIES + 2


def test_implausible_growth_is_left_out_until_it_is_confirmed() -> None:
    rack = Rack()
    rack.scrape(n1=read(100))
    rack.scrape(n1=read(10**18))
    rack.scrape(n1=read(120))
    assert (rack.total(READ), rack.sums.statistics.implausible) == (20, 1)
    rack.scrape(n1=read(10**18))
    rack.scrape(n1=read(10**18 + 5))
    rack.scrape(n1=read(10**18 + 6))
    assert rack.total(READ) == 26


def test_growth_counts_for_the_job_that_ran_from_scrape_to_scrape() -> None:
    rack = Rack()
    one = 'lustre_client_job_info{jobid="1"} 1\n'
    two = 'lustre_client_job_info{jobid="2"} 1\n'
    rack.scrape(n1=one + read(100))
    rack.scrape(n1=one + read(110))
    rack.scrape(n1=two + read(115))
    rack.scrape(n1=two + read(135))
    rack.scrape(n1=read(136))
    rack.scrape(n1=read(139))
    assert [rack.total(READ, job=job) for job in ("1", "2", "")] == [10, 20, 9]


def test_jobs_beyond_the_limit_are_one_series_and_idle_jobs_make_room() -> None:
    rack = Rack(max_jobs=1)
    lines = 'lustre_job_read_bytes_total{{fs="a",target="OST0000",jobid="{}"}} {}\n'
    head = "# TYPE lustre_job_read_bytes_total counter\n"
    rack.scrape(n1=head + lines.format("1", 0) + lines.format("2", 0))
    rack.scrape(n1=head + lines.format("1", 5) + lines.format("2", 0))
    rack.scrape(n1=head + lines.format("1", 6) + lines.format("2", 3))
    assert [rack.total("lustre_job_read_bytes_total", job=job) for job in ("1", "other", "2")] == [6, 3, 0]
    assert rack.sums.jobs_beyond_limit == {"2"}
    for _ in range(22):
        rack.scrape(n1=head + lines.format("1", 6) + lines.format("2", 3))
    rack.scrape(n1=head + lines.format("1", 6) + lines.format("2", 7))
    assert [rack.total("lustre_job_read_bytes_total", job=job) for job in ("1", "other", "2")] == [0, 3, 4]


def test_series_beyond_the_limit_are_left_out_and_counted() -> None:
    rack = Rack(max_series=2)
    rack.scrape(n1=read(1) + read(1, "b") + read(1, "c"))
    rack.scrape(n1=read(2) + read(2, "b") + read(2, "c"))
    assert (rack.total(READ), len(rack.sums.series), rack.sums.series_dropped) == (2, 2, 1)


def test_nodes_that_left_the_list_are_forgotten_and_their_part_stays() -> None:
    rack = Rack()
    rack.scrape(n1=read(1), n2=read(1))
    rack.scrape(n1=read(2), n2=read(2))
    rack.listed.discard("n2")
    rack.scrape(n1=read(3), seconds=2 * 86400.0)
    assert set(rack.sums.nodes) == {"n1"}
    assert rack.total(READ) == 3
    rack.scrape(n1=read(3), n2=read(50))
    assert rack.total(READ) == 3


def test_series_that_no_node_has_for_long_end() -> None:
    rack = Rack()
    rack.scrape(n1=read(1) + read(1, "b"))
    rack.scrape(n1=read(1), seconds=2 * 86400.0)
    assert {key.labels for key in rack.sums.series} == {b'fs="a",mount="/a"'}


def test_gauges_follow_the_rule_of_their_family() -> None:
    rack = Rack()
    rack.scrape(n1="lustre_llite_unstable_pages 5\nlustre_healthy 1\nlustre_filesystem_size_bytes 100\n",
                n2="lustre_llite_unstable_pages 7\nlustre_healthy 0\nlustre_filesystem_size_bytes 100\n")
    assert [rack.gauge(name) for name in ("lustre_llite_unstable_pages", "lustre_healthy",
                                          "lustre_filesystem_size_bytes")] == [[12], [0], [100]]
    rack.scrape(n1="lustre_llite_unstable_pages 5\nlustre_healthy 1\nlustre_filesystem_size_bytes 100\n")
    assert [rack.gauge(name) for name in ("lustre_llite_unstable_pages", "lustre_healthy")] == [[5], [1]]


def test_a_silent_node_fails_the_collectors_that_it_had() -> None:
    rack = Rack()
    rack.scrape(n1='lustre_exporter_collector_success{collector="jobs"} 1\n',
                n2='lustre_exporter_collector_success{collector="jobs"} 1\n')
    assert rack.gauge("lustre_exporter_collector_success") == [1]
    rack.scrape(n1='lustre_exporter_collector_success{collector="jobs"} 1\n')
    assert rack.gauge("lustre_exporter_collector_success") == [0]


def histogram(buckets: dict[str, int]) -> str:
    return "".join(f'lustre_osc_rpc_latency_seconds_bucket{{fs="a",le="{bound}"}} {count}\n'
                   for bound, count in buckets.items())


def test_histograms_with_different_buckets_add_up() -> None:
    rack = Rack()
    rack.scrape(n1=histogram({"1.0": 0, "+Inf": 0}), n2=histogram({"1.0": 0, "2.0": 0, "+Inf": 0}))
    rack.scrape(n1=histogram({"1.0": 3, "+Inf": 4}), n2=histogram({"1.0": 1, "2.0": 3, "+Inf": 3}))
    counts = {key.upper: series.total for key, series in rack.sums.series.items()}
    assert counts == {1.0: 4, 2.0: 2, float("inf"): 1}


def test_a_histogram_is_reset_as_a_whole() -> None:
    rack = Rack()
    rack.scrape(n1=histogram({"1.0": 10, "+Inf": 12}))
    rack.scrape(n1=histogram({"1.0": 1, "+Inf": 4}))
    assert rack.total("lustre_osc_rpc_latency_seconds") == 4


@dataclass
class Truth:
    """A node that really works: what it did, what its counter shows, and what the gather can know."""

    done: int = 0
    shown: int = 0
    first: int | None = None
    """What it had done at the first scrape."""
    last: int | None = None
    knowable: int = 0
    events: list[str] = field(default_factory=list)


STEP = st.tuples(st.integers(0, 1 << 40), st.sampled_from(["answers", "silent", "reset", "reset and silent"]))


@given(st.lists(st.lists(STEP, min_size=3, max_size=3), min_size=1, max_size=12), st.integers(0, 1 << 50))
def test_any_order_of_resets_gaps_and_returns(passes, before) -> None:
    rack, nodes = Rack(), [Truth(shown=before) for _ in range(3)]
    total = 0.0
    for steps in passes:
        answers = {}
        for number, (node, (work, event)) in enumerate(zip(nodes, steps, strict=True)):
            if event.startswith("reset"):
                node.shown = 0
            node.done += work
            node.shown += work
            if not event.endswith("silent"):
                answers[f"n{number}"] = read(node.shown)
                if node.last is None:
                    node.first = node.done
                else:
                    node.knowable += node.shown - node.last if node.shown >= node.last else node.shown
                node.last = node.shown
        rack.scrape(**answers)
        assert rack.total(READ) >= total
        total = rack.total(READ)
        assert total == sum(node.knowable for node in nodes)
        assert total <= sum(node.done - node.first for node in nodes if node.first is not None)


@given(st.lists(st.tuples(st.integers(0, 1 << 40), st.sampled_from(["answers", "silent"])), min_size=2, max_size=20))
def test_without_resets_the_sum_is_what_was_done_between_the_first_and_the_last_answer(steps) -> None:
    rack, done, seen = Rack(), 0, []
    for work, event in steps:
        done += work
        if event == "answers":
            rack.scrape(n1=read(done))
            seen.append(done)
        else:
            rack.scrape()
    assert rack.total(READ) == (seen[-1] - seen[0] if seen else 0)


@given(st.lists(st.lists(st.integers(0, 1000), min_size=3, max_size=3), min_size=1, max_size=8), st.randoms())
def test_buckets_are_what_was_counted_whatever_bounds_a_node_prints(counted, random) -> None:
    """A node prints bounds as far as its counts go, and sometimes further."""
    rack, sums = Rack(), [0, 0, 0]
    for counts in [[0, 0, 0], *counted]:
        sums = [total + more for total, more in zip(sums, counts, strict=True)]
        last = max([1, *[bound for bound in (1, 2) if sum(sums[bound:])]])
        last = max(last, random.choice([1, 2]))
        bounds = {f"{bound}.0": sum(sums[:bound]) for bound in range(1, last + 1)}
        rack.scrape(n1=histogram(bounds | {"+Inf": sum(sums)}))
    assert rack.total("lustre_osc_rpc_latency_seconds") == sum(sums)


def test_every_rule_is_used() -> None:
    assert {rule_of(name) for name in ("lustre_a", "lustre_healthy", "lustre_pool_files", "go_threads")} == set(Rule)
