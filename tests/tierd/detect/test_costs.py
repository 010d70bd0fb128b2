"""Costs of service, fitted from made windows of known costs, and kept for the next run."""

import json
from collections.abc import Callable, Sequence
from itertools import count, product
from math import isfinite, sqrt
from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.tierd.worlds import TARGETS
from tierd.detect.columns import RecentWindows, kinds_of_jobs, recent_work, window_columns
from tierd.detect.costs import (
    FLASH_OPERATION_SECONDS,
    CostLearner,
    DeviceCosts,
    costs_from_json,
    costs_to_json,
    fit,
    least_not_negative,
)
from tierd.detect.device_time import TargetTime, device_times
from tierd.detect.profile import Classes
from tierd.loads import Floats, Names, Numbers
from tierd.model import JobLoad, Window

Work = tuple[float, float, float]
EXACT = ((0.0, 0.0, 0.0),) * 3
KNOWN = DeviceCosts((1e-8, 1e-8, 0.01), EXACT)
AMOUNTS = st.one_of(st.just(0.0), st.floats(1e-3, 1e12))


def saturated(rng: Random, byte_seconds: float, operation_seconds: float, noise: float = 0.02) -> Work:
    """What a busy target gets done: part of its time for operations, the rest for the bytes of a stream."""
    share = rng.uniform(0.0, 0.6)
    level = 1 - abs(rng.gauss(0.0, noise))
    return 0.0, level * (1 - share) / byte_seconds, level * share / operation_seconds


@given(byte_seconds=st.floats(1e-9, 1e-7), operation_seconds=st.floats(0.0005, 0.04), seed=st.integers(0, 10**6))
def test_fit_recovers_the_costs_of_busy_targets(byte_seconds: float, operation_seconds: float, seed: int) -> None:
    rng = Random(seed)
    costs = fit(np.array([saturated(rng, byte_seconds, operation_seconds) for _ in range(200)]))
    assert costs.busy(saturated(rng, byte_seconds, operation_seconds, noise=0.0)) == pytest.approx(1.0, rel=0.1)
    assert costs.seconds[2] == pytest.approx(operation_seconds, rel=0.15, abs=3 * sqrt(costs.covariance[2][2]))


@given(st.lists(st.tuples(AMOUNTS, AMOUNTS, AMOUNTS), min_size=1, max_size=40).filter(
    lambda works: any(read + written for read, written, _ in works)))
@example([(0.0, 29.0, 0.0), (0.0, 259583351.0, 1911416417.0)])
def test_fitted_costs_are_finite_and_never_negative(works: list[Work]) -> None:
    costs = fit(np.array(works))
    assert all(isfinite(cost) and cost >= 0 for cost in costs.seconds)
    assert all(isfinite(value) for row in costs.covariance for value in row)
    assert costs.busy_error(works[0]) >= 0


def test_fit_needs_a_stream() -> None:
    with pytest.raises(ValueError, match="no window with a stream"):
        fit(np.array([(0.0, 0.0, 90.0)]))


def test_slow_disks_and_pauses_do_not_change_the_costs() -> None:
    rng = Random(3)
    busy = np.array([saturated(rng, 1e-8, 0.01) for _ in range(100)])
    half = 0.5 * np.array([saturated(rng, 1e-8, 0.01) for _ in range(60)])
    assert fit(np.vstack((busy, half))).seconds == pytest.approx(fit(busy).seconds, rel=0.1)


def test_a_disk_is_assumed_while_operations_do_not_vary() -> None:
    """Its error stays that of the prior: between 2.5 and 25 ms, and what differs from job to job."""
    costs = fit(np.array([(0.0, 12e6, 20.0)] * 50))
    assert costs.seconds[2] == pytest.approx(0.0098, rel=0.15)
    assert 0.005 < sqrt(costs.covariance[2][2]) < 0.01


def test_more_operations_than_a_disk_can_do_are_no_disk() -> None:
    """A RAID group, or flash: an operation costs anything up to its part of the time."""
    costs = fit(np.array([(0.0, 500e6, 400.0)] * 50))
    assert costs.seconds[2] == pytest.approx(0.39 / 400, rel=0.1)
    assert costs.busy_error((0.0, 0.0, 400.0)) >= 0.25


def test_reads_and_writes_of_streams_cost_about_the_same() -> None:
    """Two streams whose parts of the disk hardly vary: what is left over of a window says little about either."""
    rng, works = Random(11), []
    for _ in range(40):
        read = rng.gauss(5e6, 0.2e6)
        works.append((read, 11e6 - 0.4 * (read - 5e6) + rng.gauss(0.0, 0.5e6), 10.0))
    costs = fit(np.array(works)).seconds
    assert costs[0] == pytest.approx(costs[1], rel=0.25)


@pytest.mark.parametrize("spread", [0.02, 0.1, 0.2])
def test_a_stream_that_wanders_beside_steady_operations_does_not_make_them_dear(spread: float) -> None:
    """Bytes vary, operations do not: the cost of an operation is as little known as where nothing varies."""
    rng = Random(7)
    costs = fit(np.array([(0.0, 100e6 * (1 + rng.uniform(-1, 1) * spread), 60.0) for _ in range(200)]))
    assert costs.seconds[2] == pytest.approx(0.39 / 60, rel=0.2)


def test_costs_of_an_earlier_run_count_with_twice_their_error() -> None:
    steady = np.array([(0.0, 50e6, 20.0)] * 50)
    learned = DeviceCosts((1.2e-8, 1.2e-8, 0.02), ((1e-18, 0.0, 0.0), (0.0, 1e-18, 0.0), (0.0, 0.0, 1e-6)))
    costs = fit(steady, learned=learned)
    assert costs.seconds[2] == pytest.approx(0.02, rel=0.1)
    assert sqrt(costs.covariance[2][2]) == pytest.approx(sqrt(0.002**2 + (0.3 * 0.02)**2), rel=0.1)


# non-negative least squares

NUMBERS = st.floats(-10, 10)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=3, max_size=8),
       st.lists(NUMBERS, min_size=8, max_size=8))
def test_no_point_of_a_grid_is_better_than_the_solution(rows: list[Work], right: list[float]) -> None:
    design = np.array(rows) + np.vstack((np.eye(3), np.zeros((len(rows) - 3, 3))))
    normal, target = design.T @ design, design.T @ np.array(right[:len(rows)])

    def value(point: Floats) -> float:
        return float(point @ normal @ point - 2 * target @ point)

    found = least_not_negative(normal, target)
    assert found.min() >= 0
    best = min(value(np.array(point)) for point in product((0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0), repeat=3))
    assert value(found) <= best + 1e-5 * (1 + abs(best))


# the journal

FINITE = st.floats(0, 1e3)
COSTS = st.builds(DeviceCosts, st.tuples(FINITE, FINITE, FINITE), st.tuples(*[st.tuples(FINITE, FINITE, FINITE)] * 3))


@given(st.dictionaries(st.text(max_size=8), COSTS, max_size=4))
def test_costs_come_back_from_the_journal(costs: dict[str, DeviceCosts]) -> None:
    assert costs_from_json(costs_to_json(costs)) == costs


JSON = st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=4),
                    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
                        st.sampled_from(("seconds", "covariance", "hdd")), inner, max_size=4))


@given(st.one_of(st.text(), JSON.map(json.dumps), JSON.map(lambda each: json.dumps({"hdd": each}))))
def test_nonsense_in_the_journal_is_left_out(text: str) -> None:
    for costs in costs_from_json(text).values():
        assert all(isfinite(each) and each >= 0 for each in costs.seconds)


@pytest.mark.parametrize("change", [
    {"seconds": [1, 2]}, {"seconds": [-1, 0, 0]}, {"seconds": ["x", 0, 0]}, {"seconds": [float("inf"), 0, 0]},
    {"covariance": [[0, 0, 0]]}, {"covariance": [[-1, 0, 0], [0, 0, 0], [0, 0, 0]]},
])
def test_costs_with_one_wrong_number_are_left_out(change: dict[str, object]) -> None:
    sound = {"seconds": [1, 2, 3], "covariance": [[0, 0, 0]] * 3}
    assert costs_from_json(json.dumps({"a": sound, "b": {**sound, **change}})) == {}


# learning, window by window

MadeWindow = Callable[[Random], Sequence[JobLoad]]


def learned(make: MadeWindow, windows: int, learner: CostLearner | None = None, pool: str = "hdd",
            unhealthy: Sequence[str] = (), request_msec: Sequence[float] = (0.0,) * len(TARGETS)) -> CostLearner:
    """A learner that has seen so many windows."""
    learner, rng = learner or CostLearner(), Random(5)
    targets, jobs = Numbers[str]((target, n) for n, target in enumerate(TARGETS)), Names()
    for number in range(windows):
        loads = {(each.target, each.job): each for each in make(rng)}
        made = window_columns(Window(5.0 * number, 5.0 * number + 5, loads, {}), targets, jobs, 64 << 10)
        kinds = kinds_of_jobs([made], len(jobs.by_number), Classes())
        learner.learn(made, kinds, np.zeros(len(targets), np.int64), [pool],
                      np.array([targets[each] for each in unhealthy], np.int64), flash={"flash"},
                      request_msec=np.array(request_msec))
    return learner


def load(target: str, job: str, megabytes: float, operations: float) -> JobLoad:
    """Of five seconds; operations of no bytes are counted as syncs, whose commit is one and a half."""
    if not megabytes:
        return JobLoad(target, job, write_bytes=1.0, writes=1e-6, other_operations=5 / 1.5 * operations)
    return JobLoad(target, job, write_bytes=megabytes * 5e6, writes=operations * 5)


def beside(low: float, high: float) -> MadeWindow:
    """A stream beside so many operations a second of 10 ms each; its byte costs 9 ns, and its RPC has 1 MB."""
    def make(rng: Random) -> Sequence[JobLoad]:
        operations = rng.uniform(low, high)
        rpcs = (1 - 0.01 * operations) / 0.019
        return [each for target in TARGETS
                for each in (load(target, "ior.1", rpcs, rpcs), load(target, "fio.2", 0.0, operations))]

    return make


def test_stripes_that_go_in_step_are_one_observation() -> None:
    """A stream on four targets does not show which of them has the operations that hold it up."""
    def make(rng: Random) -> Sequence[JobLoad]:
        operations = [rng.choice((5.0, 45.0)) for _ in TARGETS]
        rpcs = (1 - 0.01 * sum(operations) / 4) / 0.019
        return [each for target, here in zip(TARGETS, operations, strict=True)
                for each in (load(target, "ior.1", rpcs, rpcs), load(target, "fio.2", 0.0, here))]

    assert learned(make, 40).costs["hdd"].seconds[2] == pytest.approx(0.01, rel=0.15)


@pytest.mark.parametrize(("request_msec", "operations"), [
    ((0.0, 0.0, 0.0, 0.0), 10.0),
    ((300.0, 30.0, 30.0, 140.0), 40.0),
    ((300.0, 30.0, 30.0, 160.0), 20.0),
])
def test_the_slowest_target_of_a_stream_shows_the_costs(request_msec: Sequence[float], operations: float) -> None:
    """The others wait for it, so their device time is not full. If none is known as slow, the mean of all is full."""
    def make(_: Random) -> Sequence[JobLoad]:
        return [each for target in TARGETS for each in (
            load(target, "ior.1", 20.0, 20.0), load(target, "fio.2", 0.0, 40.0 if target == TARGETS[0] else 0.0))]

    known = learned(make, 1, request_msec=request_msec).costs["hdd"]
    assert known.busy((0.0, 20e6, operations)) == pytest.approx(1.0, rel=0.02)


def test_targets_in_trouble_teach_nothing() -> None:
    assert not learned(beside(10, 50), 20, unhealthy=TARGETS).costs
    assert learned(beside(10, 50), 20, unhealthy=TARGETS[1:]).costs["hdd"].seconds[2] == pytest.approx(0.01, rel=0.1)


def test_one_window_of_a_stream_is_enough_to_begin_with() -> None:
    """A neighbour may be there before tierd: it must not take three windows of 15 s to know what it costs."""
    known = learned(beside(10, 50), 1).costs["hdd"]
    assert known.seconds[2] == pytest.approx(0.012, rel=0.5)
    assert known.busy_error((0.0, 0.0, 30.0)) > 0.3 * known.busy((0.0, 0.0, 30.0)), "nothing of it is certain yet"


def slowing(after: int, speed: float) -> MadeWindow:
    """A stream beside 25 operations a second, on disks that have another speed after so many windows."""
    numbers = count()

    def make(rng: Random) -> Sequence[JobLoad]:
        rpcs = (speed if next(numbers) >= after else 1.0) * 40 * rng.gauss(1, 0.02)
        operations = 25 * rng.gauss(1, 0.03)
        return [each for target in TARGETS
                for each in (load(target, "ior.1", rpcs, rpcs), load(target, "fio.2", 0.0, operations))]

    return make


def test_a_disk_that_slows_down_with_a_steady_neighbour_hardly_raises_the_cost_of_an_operation() -> None:
    known, later = (learned(slowing(20, 0.6), windows).costs["hdd"] for windows in (20, 35))
    assert later.seconds[2] < known.seconds[2] + sqrt(known.covariance[2][2]) / 2


def test_a_stream_that_loses_more_than_others_to_as_many_operations_is_no_slow_disk() -> None:
    """Neighbours differ by three times in what an operation costs. Each stream has targets of its own."""
    def make(rng: Random) -> Sequence[JobLoad]:
        found = []
        for number, target in enumerate(TARGETS):
            operations = 40 * rng.gauss(1, 0.05)
            rate = (1 - (0.015 if number % 2 else 0.005) * operations) * 90 * rng.gauss(1, 0.02)
            found += [load(target, f"ior.{number}", rate, rate), load(target, f"fio.{number}", 0.0, operations)]
        return found

    def alone(rng: Random) -> Sequence[JobLoad]:
        return [load(each, "ior.9", rate := 90 * rng.gauss(1, 0.02), rate) for each in TARGETS]

    costs = learned(make, 20, learned(alone, 20)).costs["hdd"]
    assert costs.seconds[2] == pytest.approx(0.01, rel=0.2)


def test_a_disk_that_stays_slow_is_known_as_such_in_the_end() -> None:
    known, later = (learned(slowing(20, 0.6), windows).costs["hdd"] for windows in (20, 120))
    assert later.seconds[1] > 1.3 * known.seconds[1]


def test_streams_that_wait_for_something_else_show_no_costs() -> None:
    """A stream that is busy now and then is no measure of saturation, however long it is seen."""
    number = count()

    def make(rng: Random) -> Sequence[JobLoad]:
        rate = rng.uniform(90, 100) if next(number) % 10 in {0, 4, 7} else rng.uniform(10, 40)
        return [load(each, "ior.1", rate, rate / 8) for each in TARGETS]

    assert not learned(make, 60).costs


def test_costs_of_an_earlier_run_outlive_a_stream_that_waits_at_the_start() -> None:
    known = learned(beside(10, 50), 40).costs
    rates = iter((95.0, *[20.0] * 5))
    again = learned(lambda _: [load(each, "ior.1", rate := next(rates), rate / 8) for each in TARGETS[:1]], 6,
                    CostLearner(known))
    assert again.costs == known


def test_an_operation_costs_flash_little_from_the_first_window_on() -> None:
    def make(_: Random) -> Sequence[JobLoad]:
        return [load(each, "ior.1", 400.0, 20.0) for each in TARGETS]

    assert learned(make, 8, pool="flash").costs["flash"].seconds[2] < FLASH_OPERATION_SECONDS
    assert learned(make, 8).costs["hdd"].seconds[2] > 0.005


def test_the_table_has_costs_of_known_pools_and_of_healthy_targets() -> None:
    learner = CostLearner({"hdd": KNOWN})
    table = learner.table(np.array([0, 0, 1, -1]), ["hdd", "flash"], np.array([1]), {}, request_msec=np.zeros(4))
    assert table.known.tolist() == [True, False, False, False]
    assert table.taken(np.array([0, 2]), np.array([(0.0, 40e6, 10.0)] * 2)).tolist() == pytest.approx([0.5, 0.0])


# device time

@given(st.dictionaries(st.text(max_size=5), st.tuples(AMOUNTS, AMOUNTS, AMOUNTS), max_size=12))
def test_device_time_of_all_jobs_is_the_whole(work: dict[str, Work]) -> None:
    time = TargetTime("lustre-OST0002", fit(np.array([(1e8, 1e8, 10.0)] * 12)), work)
    shares = [time.device_time(job) for job in work]
    assert all(0 <= each.share <= 1 and 0 <= each.error <= 1 for each in shares)
    assert sum(each.share for each in shares) == pytest.approx(1.0 if time.utilisation > 0 else 0.0)
    top = [share for _, share in time.top(len(work))]
    assert top == sorted(top, reverse=True)
    assert time.utilisation_error >= 0


def test_device_times_are_of_targets_with_costs() -> None:
    recent = RecentWindows(30.0, Classes())
    loads = [load(TARGETS[0], "ior.1", 60.0, 10.0), load(TARGETS[0], "fio.2", 0.0, 30.0),
             load(TARGETS[1], "ior.1", 60.0, 10.0)]
    recent.add(Window(0.0, 5.0, {(each.target, each.job): each for each in loads}, {}))
    work = recent_work(recent.windows, recent.kinds(), len(recent.jobs.by_number))
    times = device_times(work, list(recent.targets), recent.jobs.by_number, np.array([0, -1]), ["hdd"], {"hdd": KNOWN})
    (time,) = times.values()
    assert time.utilisation == pytest.approx(0.6 + 0.3, abs=0.01), "RPCs of a stream are no I/Os"
    assert time.device_time("fio.2").share == pytest.approx(0.3 / 0.9, abs=0.01)
    assert time.device_time("nobody.3").share == 0
    assert device_times(work, list(recent.targets), recent.jobs.by_number, np.array([0, -1]), ["hdd"], {}) == {}
