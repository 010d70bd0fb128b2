"""The rates of a braked job on each OSS, and the end of its brake."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tierd.brake.cases import BOX_SECONDS, MEASURE_SECONDS, BrakedJob, Limit, Load
from tierd.brake.rules import KnownRule, OssState
from tierd.model import Finding, JobLoad, SlowdownEvidence, Window
from tierd.text import Carrier

STREAM = SlowdownEvidence(
    victim_usual_bytes_per_second=100e6, victim_bytes_per_second=60e6, slowdown=1.67, loss_low=0.3, loss_high=0.5,
    loss_probability=1.0, carrier=Carrier.ARRIVAL)
FINDING = Finding("noisy-neighbour", 100.0, "small.1", "stream.2", ("hdd0", "hdd1"), "", STREAM)
BEFORE = Load(20e6, {"hdd0": 40.0, "hdd1": 40.0})


def oss(number: int = 0, **more: object) -> OssState:
    return OssState(node=f"oss{number}", policy="jobid",
                    **{"targets": (f"hdd{number}", f"flash{number}"), **more})  # type: ignore[arg-type]


def window(rpcs: Mapping[str, float], end: float = 105.0, stream: float = 60e6, job: float = 20e6) -> Window:
    """Five seconds in which the job sends RPCs to targets, and both move bytes at these rates."""
    loads = {(target, "small.1"): JobLoad(target, "small.1", write_bytes=5 * job / len(rpcs), writes=5 * each)
             for target, each in rpcs.items()}
    if stream:
        loads["hdd0", "stream.2"] = JobLoad("hdd0", "stream.2", write_bytes=5 * stream, writes=50.0)
    return Window(end - 5, end, loads, {})


def braked() -> BrakedJob:
    return BrakedJob(number=1, finding=FINDING, began_at=100.0, before=BEFORE, now=BEFORE,
                     limits={"stream.2": Limit(FINDING, STREAM, 0.05, 20.0)})


IN_FORCE = KnownRule(name="tierd_F1", condition="jobid={small.1}", rate=10, classes=1)


def test_what_it_may_send_is_divided_by_oss_class_and_partition() -> None:
    job = braked()
    both = [oss(0), oss(1, targets=("hdd1",))]
    job.update(window(BEFORE.rpcs), {}, both, 1)
    assert job.rates == {"oss0": 10, "oss1": 10}
    job = braked()
    job.update(window(BEFORE.rpcs), {}, [oss(partitions=2)], 1)
    assert job.rates == {"oss0": 5}
    job = braked()
    job.update(window(BEFORE.rpcs), {}, [oss(partitions=2, rules=(IN_FORCE,))], 1)  # one client: one partition is used
    assert job.rates == {"oss0": 10}
    job.update(window(BEFORE.rpcs), {}, [oss(rules=(IN_FORCE.replaced(classes=5),))], 1)
    assert job.rates == {"oss0": 2}


def test_with_more_classes_than_requests_there_is_no_brake() -> None:
    job = braked()
    job.update(window(BEFORE.rpcs), {}, [oss()], 50)
    assert job.rates == {}


def test_the_rate_rises_as_files_land_elsewhere_and_the_brake_ends() -> None:
    job, here = braked(), [oss(rules=(IN_FORCE,))]
    seen = []
    for end, flash in ((105.0, 0.0), (110.0, 10.0), (115.0, 30.0), (120.0, 75.0)):
        job.update(window({"hdd0": 10.0, "flash0": flash}, end), {}, here, 1)
        seen.append(job.rates.get("oss0"))
    assert seen == [10, 20, None, None]
    assert job.end([window({"flash0": 80.0})], 120.0) is None
    job.update(window({"flash0": 80.0}, 125.0), {}, here, 1)
    assert job.end([window({"flash0": 80.0})], 125.0) == ("it no longer loads their targets noticeably", 0.0)


@pytest.mark.parametrize("number", [0, -3, 10**400])
def test_no_number_that_somebody_reports_stops_tierd(number: int) -> None:
    """Who may read the page may report for an OSS."""
    job = braked()
    for here in (oss(partitions=number), oss(queued=number), oss(rules=(IN_FORCE.replaced(classes=number),))):
        job.update(window(BEFORE.rpcs), {}, [here], 1)
        assert all(0 < rate <= 20 for rate in job.rates.values())


def test_no_request_waits_for_more_than_a_minute() -> None:
    job = braked()
    job.update(window(BEFORE.rpcs), {}, [oss(queued=1800)], 1)
    assert job.rates == {"oss0": 30}


@pytest.mark.parametrize(("stream", "small", "why"), [
    (98e6, 3e6, None), (60e6, 16e6, "they did not get faster"), (65e6, 1e6, "it cost more bytes than it gained")])
def test_it_is_measured_once_it_is_in_force(stream: float, small: float, why: str | None) -> None:
    job, here = braked(), [oss(rules=(IN_FORCE,))]
    for end in (105.0, 110.0, 115.0, 120.0, 125.0):
        newest = window({"hdd0": 10.0, "hdd1": 10.0}, end, stream, small)
        job.update(newest, {}, here, 1)
        found = job.end([newest] * 3, end)
    assert (found and found[0]) == why
    assert job.lost_bytes == pytest.approx((20e6 - small) * 20)
    assert job.won_bytes == pytest.approx((stream - 60e6) * 20)


@pytest.mark.parametrize(("stream", "why"), [(31e6, None), (29e6, "the streams move less than half as much as before"),
                                             (0.0, "the streams move less than half as much as before")])
def test_it_ends_at_once_if_the_stream_stands_still(stream: float, why: str | None) -> None:
    """As recorded on a Lustre 2.17: both jobs wrote through one client."""
    job, here = braked(), [oss(rules=(IN_FORCE,))]
    for end in (105.0, 110.0):
        newest = window({"hdd0": 10.0, "hdd1": 10.0}, end, stream, 3e6)
        job.update(newest, {}, here, 1)
        found = job.end([newest] * 3, end)
    assert found == (why and (why, BOX_SECONDS))


def test_windows_from_before_the_rule_measure_nothing() -> None:
    """Readings may be late, and a minute apart: then two of the last three windows are from before."""
    job, here = braked(), [oss(rules=(IN_FORCE,))]
    still = window(BEFORE.rpcs, stream=0.0)
    job.update(still, {}, here, 1)
    assert job.end([still] * 3, 105.0 + MEASURE_SECONDS) is None
    before, since = window(BEFORE.rpcs, stream=50e6), window(BEFORE.rpcs, 165.0, stream=80e6, job=10e6)
    job.update(since, {}, here, 1)
    assert job.end([before, before, since], 165.0) is None


def test_it_ends_after_its_time_and_where_no_oss_sets_the_rule() -> None:
    job = braked()
    job.update(window(BEFORE.rpcs), {}, [oss()], 1)
    assert job.end([], 100.0 + MEASURE_SECONDS - 1) is None
    assert job.end([], 100.0 + MEASURE_SECONDS) == ("no OSS has set its rule", BOX_SECONDS)
    assert job.end([], 100.0 + BOX_SECONDS) == ("10 min have passed", BOX_SECONDS)
    assert job.end([], 99.0) == ("the clock was set back", BOX_SECONDS)
