"""Operations by MDT and job, and the service of each MDS, from readings."""

from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest

from tierd.model import JobLoad, NamespaceLoad, Window
from tierd.sense import exposition
from tierd.sense.counters import JobEntry
from tierd.sense.exporters import Answer, joined_reading
from tierd.sense.http_client import SourceError
from tierd.sense.metadata import LATE_RECORD_SECONDS, MetadataMeter, UnlistedJobs
from tierd.sense.readings import Reading, ServiceCounters

MDT, OST = "l-MDT0000", "l-OST0000"


def reading(time: float, jobs: dict[str, dict[str, float]], usec: float = 100.0,
            service: ServiceCounters | None = None) -> Reading:
    counters = {(MDT, job): JobEntry(counts, {name: usec * count for name, count in counts.items()})
                for job, counts in jobs.items()}
    counters[OST, "a"] = JobEntry({"write": time}, {})
    return Reading(time, counters, frozenset({MDT, OST}), services={"mds1": service} if service else {})


def test_operations_per_second_by_kind_and_job() -> None:
    meter = MetadataMeter(["tierd.0"])
    meter.learn(reading(0.0, {"a": {"mknod": 10.0, "open": 5.0}, "b": {}, "tierd.0": {"open": 1.0}}))
    assert not meter.loads
    meter.learn(reading(30.0, {"a": {"mknod": 310.0, "open": 5.0, "close": 900.0},
                               "b": {"getattr": 60.0, "unlink": 30.0}, "tierd.0": {"open": 6e4}}))
    (load,) = meter.loads
    assert (load.mdt, load.creates, load.unlinks, load.stats, load.opens) == (MDT, 10.0, 1.0, 2.0, 0.0)
    assert load.jobs == (("a", 10.0), ("b", 3.0))
    assert load.usec_per_operation == pytest.approx(100.0)
    assert load.operations == 13.0


def test_counts_from_before_are_not_operations_of_now() -> None:
    """An exporter shows a job that was idle again with all that it ever did; so does an MDT that was away."""
    meter, idle = MetadataMeter(), {"a": {"open": 1e6}}
    snapshots = [idle, idle, {**idle, "back": {"mknod": 9e6}}, {**idle, "back": {"mknod": 9e6 + 3000}}]
    for number, jobs in enumerate(snapshots):
        meter.learn(reading(30.0 * number, jobs))
    assert (meter.loads[0].creates, meter.loads[0].jobs) == (3000 / 90, (("back", 3000 / 90),))
    away = replace(reading(120.0, {}), targets=frozenset({OST}))
    for number, now in enumerate((away, reading(150.0, idle), reading(180.0, idle))):
        meter.learn(now)
        assert [load.opens for load in meter.loads] == [0.0] * (number > 0)


def test_what_was_counted_before_a_restart_of_the_mdt_counts() -> None:
    meter = MetadataMeter()
    for number, count in enumerate((1e6, 1e6 + 3000, 1500)):
        meter.learn(reading(30.0 * number, {"a": {"open": count}}))
    assert meter.loads[0].opens == 4500 / 60


def test_readings_that_are_close_together_are_ignored_and_old_ones_are_forgotten() -> None:
    meter = MetadataMeter()
    for second in range(0, 400, 5):
        meter.learn(reading(float(second), {"a": {"mknod": 10.0 * second if second < 200 else 2000.0}}))
    assert meter.loads[0].creates == 0.0
    meter.learn(reading(100.0, {"a": {"mknod": 1.0}}))
    meter.forget()
    assert (meter.loads, meter.services) == ((), ())


def test_the_service_of_an_mds() -> None:
    meter = MetadataMeter()
    meter.learn(reading(0.0, {}, service=ServiceCounters(8, 64, 100, 1e6, 500)))
    meter.learn(reading(50.0, {}, service=ServiceCounters(16, 64, 1100, 3e6, 8500, frozenset({MDT}))))
    (service,) = meter.services
    assert service.mdts == {MDT}
    assert (service.node, service.threads, service.threads_max, service.requests_per_second) == ("mds1", 16, 64, 20.0)
    assert (service.wait_usec, service.active) == (2000.0, 8.0)
    meter.learn(reading(100.0, {}, service=ServiceCounters(16, 64, 10, 3e3, 85)))
    assert meter.services == (), "the server was restarted"


EXPOSITION = b"""lustre_service_requests_total{service="mdt"} 200
lustre_service_request_wait_seconds_total{service="mdt"} 0.004
lustre_service_active_at_start_total{service="mdt"} 1600
lustre_service_threads_started{service="mdt"} 16
lustre_service_threads_max{service="mdt"} 64
"""


def test_metrics_of_an_mds_that_are_incomplete_or_impossible() -> None:
    def services(text: bytes) -> Mapping[str, ServiceCounters]:
        return exposition.reading_of(text, "mds1", 10.0).services

    assert services(EXPOSITION.partition(b"\n")[2]) == {}
    with pytest.raises(SourceError, match="impossible value"):
        services(EXPOSITION.replace(b" 1600", b" many"))


def test_the_mdts_of_each_mds_are_those_of_its_exporter() -> None:
    def of(name: str, *targets: str) -> Reading:
        jobs = "".join(f'lustre_jobs{{fs="l",target="{target}"}} 0\n' for target in targets)
        return exposition.reading_of(EXPOSITION + jobs.encode(), name, 10.0)

    services = joined_reading({"mds1": Answer(of("mds1", "MDT0000", "MDT0002", "OST0000"), 1.0, 1.0),
                               "mds2": Answer(of("mds2", "MDT0001", "MDT0002"), 2.0, 2.0)}, 10.0).services
    assert {name: service.mdts for name, service in services.items()} == {
        "mds1": {MDT}, "mds2": {"l-MDT0001", "l-MDT0002"}}, "one MDT moved to mds2"


NOW = float("inf")
"""No record is old."""


def window(number: int, *, listed: NamespaceLoad | None = None, jobs: Collection[str] = ("a.1",)) -> Window:
    loads = {("t", job): JobLoad("t", job, writes=9.0) for job in jobs}
    return Window(number * 5.0, number * 5.0 + 5.0, loads, {listed.job: listed} if listed else {})


def load_after(*recorded: NamespaceLoad, listed: NamespaceLoad | None = None,
               oldest: float = NOW) -> NamespaceLoad | None:
    """The load of the job in the last window, with what was recorded in each."""
    coming = iter(recorded)
    jobs = UnlistedJobs(lambda _: {load.job: load for load in [next(coming)] if load.job})
    for number, _ in enumerate(recorded):
        seen = jobs.completed(window(number, listed=listed), oldest)
    return seen.namespace.get("a.1")


MADE = NamespaceLoad("a.1", opens=20.0, closes=20.0, creates=20.0)
NONE = NamespaceLoad("")


def test_a_job_that_no_mdt_lists_has_the_recorded_operations_from_its_second_window_on() -> None:
    assert load_after(MADE) is None
    assert load_after(NONE, NONE) is None
    assert load_after(MADE, MADE) == MADE


def test_missed_records_that_are_read_late_are_not_of_the_window() -> None:
    assert load_after(MADE, MADE, oldest=4.0 - LATE_RECORD_SECONDS) is None


def test_what_was_recorded_while_the_counters_could_not_be_read_is_not_of_the_window() -> None:
    coming = iter((MADE, replace(MADE, opens=200.0, closes=200.0, creates=200.0), MADE))
    jobs = UnlistedJobs(lambda _: {"a.1": next(coming)})
    assert [jobs.completed(window(number, listed=MADE), NOW).namespace["a.1"] for number in (0, 10, 11)] == [MADE] * 3


@pytest.mark.parametrize(("listed", "counted"), [
    (NamespaceLoad("a.1", 20.0, 20.0, 20.0), True), (NamespaceLoad("a.1", other_operations=7.0), False),
    (NamespaceLoad("a.1", opens=1.0), False)])
def test_a_job_that_is_listed_keeps_its_counters(listed: NamespaceLoad, counted: bool) -> None:
    load = load_after(MADE, MADE, listed=listed)
    assert load == (listed if counted else replace(MADE, other_operations=listed.other_operations))
