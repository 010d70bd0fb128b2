"""The query API: answers that are bad in all ways, from a server on loopback; then a real Prometheus."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.parameters import write_parameters
from simulator.settings import recorded_test_bed
from stack.demo import running_exporter
from stack.services import free_ports
from tests.servers import awaited, body_of, program, running
from tests.tierd.sense import expositions
from tests.tierd.sense.clocks import NOW
from tests.tierd.sense.loopback_server import Behave, answers, answers_json, liar, matrix
from tests.tierd.sense.test_prometheus_history import api
from tests.tierd.simulated import NOISE, STREAM
from tierd.clock import SystemClock
from tierd.config.sense import PrometheusSettings
from tierd.sense.exposition import READ_AT
from tierd.sense.http_client import HttpClient, SourceError
from tierd.sense.prometheus import PrometheusCounters, QueryApi, Series, newest_reading, result_of
from tierd.sense.readings import ChangelogState, Reading, window


def labels(target: str = "OST0000", **more: str) -> dict[str, str]:
    return {"fs": "l", "target": target, "instance": "oss1:9169", "job": "lustre"} | more


def about(target: str = "OST0000", *times: float, **more: str) -> list[Series]:
    return [Series(READ_AT, labels(target, **more), [(t, t) for t in times]),
            Series("lustre_ost_recovering", labels(target, **more), [(t, 0.0) for t in times])]


def written(job_id: str, *points: tuple[float, float], **more: str) -> Series:
    return Series("lustre_job_write_bytes_total", labels(jobid=job_id, **more), points)


def test_a_reading_has_the_last_scrape_of_each_target_with_its_time() -> None:
    of_both = [*about("OST0000", 0, 10, 20), *about("OST0001", 4, 14)]
    jobs = [written("j", (0, 0.0), (10, 100.0), (20, 300.0)), written("j", (4, 50.0), (14, 80.0), target="OST0001"),
            written("ended", (0, 5.0), (10, 9.0))]
    exact = newest_reading(of_both, jobs)
    assert exact.time == 14
    assert {pair: entry.sums for pair, entry in exact.jobs.items()} == {
        ("l-OST0000", "j"): {"write_bytes": 300.0}, ("l-OST0001", "j"): {"write_bytes": 80.0}}
    assert [exact.stamps[f"l-OST000{number}"].seconds for number in (0, 1)] == [20, 14]
    assert exact.conditions == {}


def test_a_job_without_a_name_is_not_named_after_the_scrape() -> None:
    """Prometheus stores no empty label."""
    nameless = Series("lustre_job_write_bytes_total", labels(), [(10, 7.0)])
    assert newest_reading(about("OST0000", 10), [nameless]).jobs.keys() == set()
    assert newest_reading(about("OST0000", 10), [nameless, written("j", (10, 1.0))]).jobs.keys() == {("l-OST0000", "j")}


@pytest.mark.parametrize(("begun", "other"), [
    (20, {"instance": "oss2:9169"}), (5, {"job": "again"}), (0, {"job": "many"})],
    ids=["a failover", "two configurations", "two at the same times"])
def test_of_a_target_from_two_places_the_last_scraped_counts(begun: int, other: dict[str, str]) -> None:
    both = [*about("OST0000", 0, 10), *about("OST0000", begun, begun + 10, **other)]
    reading = newest_reading(both, [written("j", (0, 7.0), (10, 9.0)),
                                    written("j", (begun, 1.0), (begun + 10, 2.0), **other)])
    assert reading.time == begun + 10
    assert reading.jobs["l-OST0000", "j"].sums == {"write_bytes": 2.0}


@pytest.mark.parametrize(("hidden", "old", "loads"), [
    (0.0, (0, 10, 20), {"new": 40.0}), (1.0, (0, 10, 20), {}), (0.0, (0, 20), {}), (0.0, (0, 10), {})])
def test_a_new_job_counts_from_the_last_scrape_with_all_jobs(hidden: float, old: tuple[int, ...],
                                                             loads: dict[str, float]) -> None:
    """At the end: a scrape has skipped an old one; and an old one may have got another name."""
    def at(*times: float) -> Reading:
        points = {"old": [(at, 9.0) for at in old if at <= times[-1]], "new": [(20, 40.0)][:times[-1] == 20]}
        jobs = [Series("lustre_job_operations_total", labels(jobid=job, operation="write"), points[job])
                for job in points if points[job]]
        return newest_reading([*about("OST0000", *times), Series("lustre_jobs_idle", labels(), [
            (at, hidden) for at in times])], jobs)

    assert {job: load.writes for (_, job), load in window(at(0, 10), at(0, 10, 20)).loads.items()} == loads


def test_the_newest_condition_counts() -> None:
    series = [*about("OST0000", 0, 10), Series("lustre_ost_degraded", labels(), [(0, 0.0), (10, 1.0)]),
              Series(READ_AT, labels("MDT0000"), [(10, 10.0)])]
    reading = newest_reading(series, [])
    assert reading.conditions == {"l-OST0000": "degraded", "l-MDT0000": "recovery status unknown"}


def test_a_changelog_user_missing_from_the_last_scrape_is_not_registered() -> None:
    def log(name: str, *times: float, **more: str) -> Series:
        return Series(f"lustre_changelog_{name}", labels("MDT0000", **more), [(at, at) for at in times])

    series = [*about("MDT0000", 0, 10), log("records_total", 0, 10), log("user_behind_records", 0, user="cl1"),
              log("user_behind_records", 0, 10, user="cl2"), log("mask_info", 10, mask="MARK,CREAT")]
    assert newest_reading(series, []).changelogs == {
        "l-MDT0000": ChangelogState(10, frozenset({"cl2"}), frozenset({"MARK", "CREAT"}), 10)}


def fetch(url: str) -> PrometheusCounters:
    return PrometheusCounters(api(url), 90.0)


RECENT: dict[str, Any] = {"metric": {"__name__": READ_AT, **labels()},
                          "values": [[NOW - 20, "1"], [NOW - 5, "1"]]}
LYING = {"metric": {"__name__": "lustre_job_write_bytes_total", **labels(jobid="j")}}


@pytest.mark.parametrize(("behave", "words"), [
    (answers_json('{"status":"error","errorType":"bad_data","error":"parse error"}'), "'parse error'"),
    (answers('{"status":"error","error":"query timed out"}', "application/json", status="503 Service Unavailable"),
     "503 Service Unavailable: .*query timed out"),
    (matrix(RECENT, warnings=["store gateway b is down"]), "a partial answer: 'store gateway b is down'"),
    (matrix(RECENT, isPartial=True), "a partial answer"),
    (answers_json('{"status":"success","data":{"resultType":"vector","result":[]}}'), "no matrix"),
    (answers_json("[]"), "not an answer of a query API"),
    (answers_json("nonsense"), "JSON is malformed"),
    (answers_json("[" * 100_000), "http://127"),
    (answers("<html>login</html>", "text/html"), "'text/html' instead of 'application/json'"),
    (matrix({"metric": {"target": "x"}, "values": [["soon", "1"]]}), "Expected `float`"),
    (matrix({"metric": None, "values": []}), "Expected `object`"),
    (matrix({**LYING, "values": [[NOW, "NaN"]]}), "impossible value"),
    (matrix({**LYING, "values": [[NOW, "1"], [NOW - 1, "1"]]}), "out of order"),
    (matrix({"metric": {"x": "y" * 5000}, "values": [[NOW, "1"]]}), "a label 'x' of 5000"),
    (matrix({**RECENT, "values": [[NOW - 95, "1"]]}), "l-OST0000 was last scraped 95 s ago: incomplete"),
    (answers("{}", "application/json", "Date: Wed, 18 Nov 2026 12:06:40 GMT"), r"its clock differs .* by \+3600 s"),
])
def test_a_bad_answer_is_not_a_reading(behave: Behave, words: str) -> None:
    with liar(behave) as server, pytest.raises(SourceError, match=words) as raised:
        fetch(server.url)()
    assert len(str(raised.value)) < 1000


def test_a_duplicate_series_is_an_error() -> None:
    twice = {**LYING, "values": [[NOW - 5, "1"]]}
    with liar([matrix(RECENT), matrix(twice, twice)]) as server, pytest.raises(SourceError, match="duplicate"):
        fetch(server.url)()


def test_infos_are_no_warnings_and_targets_are_queried_in_batches() -> None:
    many = [{"metric": {**RECENT["metric"], "target": f"OST{n:04x}"}, "values": RECENT["values"]} for n in range(20)]
    with liar([matrix(*many, infos=["PromQL info"]), matrix()]) as server:
        reading = fetch(server.url)()
    assert len(reading.targets) == 20
    assert len(server.requests) == 3
    assert "OST000f%22%7D%5B75000ms%5D" in server.requests[1]
    assert "time=1795000000.000&timeout=5s" in server.requests[1]


def test_a_reading_stays_until_all_its_targets_are_scraped_again() -> None:
    def scraped(*last: float) -> Behave:
        return matrix(*({"metric": {**RECENT["metric"], "target": f"OST{number:04x}"}, "values": [[NOW - 20, "1"], [
            NOW - at, "1"]]} for number, at in enumerate(last)))

    with liar([scraped(5, 9), matrix(), scraped(5, 9), scraped(1, 9), scraped(1, 4), matrix()]) as server:
        read = fetch(server.url)
        assert read() is read() is read()
        assert len(server.requests) == 4
        assert read().time == NOW - 4
        assert len(server.requests) == 6


@given(st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["metric", "values", "x"]), inner)))
def test_any_document_is_a_series_or_an_error(document: Any) -> None:
    with suppress(ValueError):
        result_of(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [document]}}).encode())


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Path, str, str]]:
    """A simulated node, its exporter, and a real Prometheus that scrapes it twice a second."""
    folder = tmp_path_factory.mktemp("prometheus")
    command = program("prometheus")
    cluster = FluidCluster(recorded_test_bed(), (STREAM, NOISE))
    root = folder / "node"
    (root / "proc").mkdir(parents=True)
    (root / "sys").mkdir()
    cluster.advance(40)
    write_parameters(cluster, root)
    with ExitStack() as stack:
        url = stack.enter_context(running_exporter(root, 0, SystemClock()))
        (port,) = free_ports(0)
        (folder / "prometheus.yml").write_text(f"""\
global: {{scrape_interval: 500ms}}
scrape_configs:
  - job_name: lustre
    static_configs: [{{targets: [{url.split("/")[2]}], labels: {{cluster: a}}}}]
""")
        stack.enter_context(running(
            [command, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"],
            f"http://127.0.0.1:{port}/-/ready", folder / "log"))
        yield cluster, root, url, f"http://127.0.0.1:{port}"


def test_a_real_prometheus_says_what_its_exporter_says(scraped: tuple[Cluster, Path, str, str]) -> None:
    cluster, root, url, prometheus = scraped
    clock = SystemClock()

    def read(after: float) -> Reading:
        settings = PrometheusSettings(prometheus, 'cluster="a"', lookback_seconds=30.0)
        client = HttpClient(settings.access, 10.0, {})
        ask = PrometheusCounters(QueryApi(settings, "lustre", clock, client, 10.0, 30.0), 60.0)
        return awaited(lambda: seen if (seen := ask()).time > after and seen.targets else None, 40)

    before = read(0)
    far = expositions.reading([body_of(url)], before.time)
    assert before.targets == far.targets
    assert before.jobs == far.jobs
    assert before.conditions == far.conditions
    cluster.advance(5)
    write_parameters(cluster, root)
    since = clock.now() + 1
    after = read(since)
    assert after.jobs == expositions.reading([body_of(url)], since).jobs
    assert {job for _, job in window(before, after).loads} == {STREAM.job_id, NOISE.job_id}
