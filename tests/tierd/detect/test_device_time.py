"""Device time of jobs, fitted from counters, against known costs, the simulator's own account, and recordings."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from random import Random
from statistics import fmean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cluster import Cluster
from simulator.jobs import Job
from simulator.settings import recorded_test_bed
from tests.tierd.tapes import tape_of, truth
from tierd.detect.device_time import (
    CostLearner,
    CostPrior,
    DeviceCosts,
    DeviceTimeShare,
    Gain,
    TargetTime,
    Work,
    account,
    fit,
    gain_without,
    observations,
    own_unlinks,
)
from tierd.detect.profile import Classes, is_stream, profiles, waits_for_commits
from tierd.model import JobLoad, NamespaceLoad, Window
from tierd.sense import parameters
from tierd.sense.readings import window
from tierd.simulation.random_scenarios import RandomScenario, random_scenario
from tierd.simulation.world import parameter_files

HDD = tuple(f"lustre-OST000{n}" for n in range(2, 6))
POOL_OF = dict.fromkeys(HDD, "hdd")
KNOWN = DeviceCosts(Work(1e-8, 1e-8, 0.01), ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)), 20)


def saturated(rng: Random, byte_seconds: float, operation_seconds: float, noise: float = 0.02) -> Work:
    """What a busy target gets done: part of its time for operations, the rest for bytes in RPCs of 1 MiB."""
    share = rng.uniform(0.0, 0.6)
    per_mib = byte_seconds * 2**20 + operation_seconds
    rpcs = (1 - share) / per_mib
    level = 1 - abs(rng.gauss(0.0, noise))
    return Work(0.0, level * rpcs * 2**20, level * (rpcs + share / operation_seconds))


@given(byte_seconds=st.floats(1e-9, 1e-7), operation_seconds=st.floats(0.0005, 0.04), seed=st.integers(0, 10**6))
def test_fit_recovers_the_costs_of_busy_targets(byte_seconds: float, operation_seconds: float, seed: int) -> None:
    rng = Random(seed)
    costs = fit([saturated(rng, byte_seconds, operation_seconds) for _ in range(200)])
    work = saturated(rng, byte_seconds, operation_seconds, noise=0.0)
    assert costs.busy(work) == pytest.approx(1.0, rel=0.1)
    assert costs.seconds.operations == pytest.approx(operation_seconds, rel=0.15, abs=3 * costs.covariance[2][2]**0.5)


amounts = st.one_of(st.just(0.0), st.floats(1e-3, 1e12))


@given(st.lists(st.builds(Work, amounts, amounts, amounts), min_size=1, max_size=40).filter(
    lambda works: any(work.moved_bytes for work in works)))
def test_fitted_costs_are_finite_and_never_negative(works: list[Work]) -> None:
    costs = fit(works)
    assert all(isfinite(cost) and cost >= 0 for cost in costs.seconds)
    assert all(isfinite(value) for row in costs.covariance for value in row)
    assert costs.busy_error(works[0]) >= 0


@given(st.dictionaries(st.text(max_size=5), st.tuples(amounts, amounts, amounts), max_size=12))
def test_shares_are_parts_of_a_whole(work: dict[str, tuple[float, float, float]]) -> None:
    target = TargetTime("lustre-OST0002", fit([Work(1e8, 1e8, 10.0)] * 12), work)
    assert sum(target.share([job]) for job in work) <= 1 + 1e-9
    assert all(0 <= target.share_error([job]) <= 1 for job in work)
    shares = [share for _, share in target.top(len(work))]
    assert shares == sorted(shares, reverse=True)


def test_fit_needs_a_stream() -> None:
    with pytest.raises(ValueError, match="no window with a stream"):
        fit([Work(0.0, 0.0, 90.0)])


def test_slow_disks_and_pauses_do_not_change_the_costs() -> None:
    rng = Random(3)
    busy = [saturated(rng, 1e-8, 0.01) for _ in range(100)]
    half = [Work(*(amount / 2 for amount in saturated(rng, 1e-8, 0.01))) for _ in range(60)]
    alone, mixed = fit(busy), fit([*busy, *half])
    assert mixed.seconds.operations == pytest.approx(alone.seconds.operations, rel=0.1)
    assert mixed.seconds.write_bytes == pytest.approx(alone.seconds.write_bytes, rel=0.1)


def load(target: str, job: str, megabytes: float, operations: float) -> JobLoad:
    """Of five seconds."""
    return JobLoad(target, job, write_bytes=megabytes * 5e6, writes=operations * 5)


def test_targets_of_a_pool_without_a_stream_have_no_shares() -> None:
    learner = CostLearner()
    for _ in range(20):
        learner.learn([load(t, "mdtest.1", 1.0, 90.0) for t in HDD], 5.0, (), POOL_OF)
    assert not learner.costs
    assert account([load(HDD[0], "mdtest.1", 1.0, 90.0)], 5.0, POOL_OF, learner.costs) == {}


def test_targets_in_trouble_teach_nothing() -> None:
    learner = CostLearner()
    for _ in range(20):
        learner.learn([load(t, "ior.1", 100.0, 100.0) for t in HDD], 5.0, {"ior.1"}, POOL_OF, unhealthy=HDD)
    assert not learner.costs


def with_noise(rng: Random) -> list[JobLoad]:
    """A stream beside 10 to 50 operations a second of 10 ms each; a stream's byte costs 9 ns and its RPC 1 MB."""
    loads = []
    for target in HDD:
        operations = rng.uniform(10, 50)
        rpcs = (1 - 0.01 * operations) / 0.019
        loads += [load(target, "ior.1", rpcs, rpcs), load(target, "fio.2", 0.0, operations)]
    return loads


def test_hours_with_streams_only_do_not_make_it_forget_what_operations_cost() -> None:
    rng, learner = Random(5), CostLearner()
    for _ in range(40):
        learner.learn(with_noise(rng), 5.0, {"ior.1"}, POOL_OF)
    before = learner.costs["hdd"].seconds.operations
    for _ in range(1000):
        learner.learn([load(t, "ior.1", 52.6, 52.6) for t in HDD], 5.0, {"ior.1"}, POOL_OF)
    assert before == pytest.approx(0.01, rel=0.1)
    assert learner.costs["hdd"].seconds.operations == pytest.approx(before, rel=0.2)


def test_streams_that_wait_for_something_else_show_no_costs() -> None:
    """Rates of independent streams, each limited by its client, say nothing about the targets."""
    rng, learner = Random(9), CostLearner()
    for _ in range(30):
        loads = []
        for target in HDD:
            rate = 100 * 10**-rng.uniform(0, 3)
            loads += [load(target, "ior.1", rate, rate), load(target, "fio.2", 0.0, rng.uniform(1, 90))]
        learner.learn(loads, 5.0, {"ior.1"}, POOL_OF)
    assert not learner.costs


@pytest.mark.parametrize("windows", [30, 300])
def test_targets_that_are_busy_now_and_then_show_no_costs(windows: int) -> None:
    """A stream that mostly waits for something else is no measure of saturation, however long it is seen."""
    rng, learner = Random(9), CostLearner()
    for n in range(windows):
        rate = rng.uniform(90, 100) if n % 10 in {0, 4, 7} else rng.uniform(10, 40)
        noise = [load(t, "fio.2", 0.0, 4.0) for t in HDD if n % 20 < 10]
        learner.learn([*(load(t, "ior.1", rate, rate / 8) for t in HDD), *noise], 5.0, {"ior.1"}, POOL_OF)
    assert not learner.costs


def slowed(loads: Sequence[JobLoad], factor: float) -> list[JobLoad]:
    """The same work on disks that need so much longer for everything."""
    return [load(target, job, written / 5e6 / factor, writes / 5 / factor)
            for target, job, _, written, _, writes, *_ in loads]


def beside(operations: float, operation_seconds: float = 0.01) -> list[JobLoad]:
    """A stream of RPCs of 8 MB beside so many operations a second. Its byte costs 9 ns and its RPC 10 ms more."""
    rpcs = (1 - operation_seconds * operations) / 0.082
    return [each for target in HDD
            for each in (load(target, "ior.1", 8 * rpcs, rpcs), load(target, "fio.2", 0.0, operations))]


def learner_of_slow_disks(windows: int) -> CostLearner:
    """A stream alone, then beside operations, then all disks slow, each for so long."""
    rng, learner = Random(5), CostLearner()
    for _ in range(40):
        learner.learn(beside(0.0), 5.0, {"ior.1"}, POOL_OF)
    for _ in range(10):
        learner.learn(beside(rng.uniform(20, 40)), 5.0, {"ior.1"}, POOL_OF)
    for _ in range(windows):
        learner.learn(slowed(beside(rng.uniform(20, 40)), 2.5), 5.0, {"ior.1"}, POOL_OF)
    return learner


@pytest.mark.parametrize("windows", [15, 60, 300])
def test_slow_disks_do_not_look_like_expensive_operations(windows: int) -> None:
    """All costs rise together on a slow disk. A neighbour's operations take no larger part of the time than before."""
    seconds = learner_of_slow_disks(windows).costs["hdd"].seconds
    assert seconds.operations == pytest.approx(0.01, rel=0.2)
    assert seconds.write_bytes == pytest.approx(0.9e-8, rel=0.2)


def test_disks_that_stay_slow_have_new_costs_after_an_hour() -> None:
    seconds = learner_of_slow_disks(850).costs["hdd"].seconds
    assert seconds.operations == pytest.approx(0.025, rel=0.2)
    assert seconds.write_bytes == pytest.approx(2.25e-8, rel=0.2)


def test_more_operations_of_a_more_expensive_kind_are_not_slow_disks() -> None:
    """They take the bytes, and teach the new cost."""
    rng, learner = Random(5), CostLearner()
    for _ in range(20):
        learner.learn(beside(rng.uniform(5, 20)), 5.0, {"ior.1"}, POOL_OF)
    for _ in range(40):
        learner.learn(beside(rng.uniform(30, 38), 0.025), 5.0, {"ior.1"}, POOL_OF)
    assert learner.costs["hdd"].seconds.operations == pytest.approx(0.025, rel=0.3)


def test_learned_costs_are_there_at_the_first_window_after_a_restart() -> None:
    rng, learner = Random(5), CostLearner()
    for _ in range(40):
        learner.learn(with_noise(rng), 5.0, {"ior.1"}, POOL_OF)
    again, steady = CostLearner(learner.costs), Random(7)
    loads = with_noise(steady)
    for _ in range(6):
        again.learn(loads, 5.0, {"ior.1"}, POOL_OF)  # nothing varies: only the past knows
    for target, time in account(loads, 5.0, POOL_OF, again.costs).items():
        operations = next(each.writes / 5 for each in loads if each[:2] == (target, "fio.2"))
        assert time.share(["fio.2"]) == pytest.approx(0.01 * operations, abs=0.05)


def test_freed_time_of_a_busy_target_goes_to_the_stream() -> None:
    busy = TargetTime(HDD[0], KNOWN, {"ior.1": (0.0, 60e6, 0.0), "fio.2": (0.0, 0.0, 40.0)})
    idle = TargetTime(HDD[0], KNOWN, {"ior.1": (0.0, 20e6, 0.0), "fio.2": (0.0, 0.0, 40.0)})
    assert gain_without([busy], "ior.1", ["fio.2"]).expected == pytest.approx(1 / 0.6)
    assert gain_without([idle], "ior.1", ["fio.2"]).expected == 1.0
    assert gain_without([busy], "other.3", ["fio.2"]).high == 1.0


def test_a_disk_is_assumed_while_operations_do_not_vary() -> None:
    costs = fit([Work(0.0, 12e6, 20.0)] * 50)
    assert costs.seconds.operations == pytest.approx(0.015, rel=0.1)
    assert costs.busy((0.0, 0.0, 20.0)) - costs.busy_error((0.0, 0.0, 20.0)) > 0.1


def test_more_operations_than_a_disk_can_do_are_no_disk() -> None:
    """A RAID group, or flash: an operation costs anything up to its part of the time."""
    costs = fit([Work(0.0, 500e6, 400.0)] * 50)
    assert costs.seconds.operations == pytest.approx(0.5 / 400, rel=0.1)
    assert costs.busy_error((0.0, 0.0, 400.0)) >= 0.45


def test_as_many_operations_as_a_disk_can_do_keep_the_error_of_a_disk() -> None:
    """Fifty a second of a disk that is busy: each costs 7 to 20 ms, and a part of the time is certain."""
    costs = fit([Work(0.0, 5e6, 50.0)] * 50)
    assert costs.busy((0.0, 0.0, 50.0)) - costs.busy_error((0.0, 0.0, 50.0)) > 0.15


def test_reads_and_writes_of_streams_cost_about_the_same() -> None:
    """Two streams whose parts of the disk hardly vary: what is left over of a window says little about either."""
    rng, works = Random(11), []
    for _ in range(40):
        read = rng.gauss(5e6, 0.2e6)
        works.append(Work(read, 11e6 - 0.4 * (read - 5e6) + rng.gauss(0.0, 0.5e6), 10.0))
    costs = fit(works).seconds
    assert costs.read_bytes == pytest.approx(costs.write_bytes, rel=0.25)


def test_an_operation_costs_flash_little_from_the_first_window_on() -> None:
    learner = CostLearner(flash=["flash"])
    for _ in range(8):
        learner.learn([load(t, "ior.1", 400.0, 20.0) for t in HDD], 5.0, {"ior.1"}, dict.fromkeys(HDD, "flash"))
    assert learner.costs["flash"].seconds.operations < 0.001


def test_destroys_count_for_the_job_that_deletes_its_files() -> None:
    """Lustre counts them for no job: 100 files made and deleted in five seconds are 20 operations a second more."""
    loads = [load(HDD[0], "mdtest.2", 1.0, 20.0), load(HDD[0], "ior.1", 100.0, 20.0)]
    unlinks = own_unlinks([NamespaceLoad("mdtest.2", creates=100.0, unlinks=100.0),
                           NamespaceLoad("rm.3", unlinks=900.0)])
    assert unlinks == {"mdtest.2": 100.0}
    time = account(loads, 5.0, {HDD[0]: "hdd"}, {"hdd": KNOWN}, unlinks)[HDD[0]]
    assert time.work["mdtest.2"][2] == pytest.approx(40.0)
    assert time.work["ior.1"][2] == pytest.approx(20.0)


def test_prior_decides_with_its_error_while_operations_do_not_vary() -> None:
    costs = fit([Work(0.0, 50e6, 20.0)] * 50, CostPrior(operation_seconds=0.008, operation_error=0.004))
    assert costs.seconds.operations == pytest.approx(0.008, rel=0.1)
    assert costs.covariance[2][2]**0.5 >= 0.004


def test_small_writes_that_wait_count_with_their_commits() -> None:
    loads = [load(HDD[0], "fio.2", 0.0, 10.0), load(HDD[0], "ior.1", 100.0, 20.0)]
    work = account(loads, 5.0, {HDD[0]: "hdd"}, {"hdd": KNOWN}, committing={"fio.2"})[HDD[0]].work
    assert work["fio.2"][2] == pytest.approx(25.0)
    assert work["ior.1"][2] == pytest.approx(20.0)


@given(st.dictionaries(st.text(max_size=3), st.tuples(amounts, amounts, amounts, amounts), min_size=1, max_size=8),
       st.sampled_from((None, False, True)), st.booleans())
def test_device_time_of_all_jobs_is_the_whole(work: dict[str, tuple[float, float, float, float]],
                                              io_limited: bool | None, waits: bool) -> None:
    """Commits are divided anew among the jobs, but none is added or lost."""
    loads = [JobLoad(HDD[0], job, 0.0, moved, reads, writes, others)
             for job, (moved, reads, writes, others) in work.items()]
    time = account(loads, 5.0, {HDD[0]: "hdd"}, {"hdd": KNOWN}, committing=set(work) if waits else (),
                   io_limited={} if io_limited is None else {"hdd": io_limited})[HDD[0]]
    assert time.io_limited is io_limited
    assert sum(time.ios.values()) == pytest.approx(time.total.operations)
    shares = [time.device_time(job) for job in work]
    assert all(-1e-9 <= each.share <= 1 + 1e-9 and 0 <= each.error <= 1 for each in shares)
    assert sum(each.share for each in shares) == pytest.approx(1.0 if time.utilisation > 0 else 0.0)


def test_a_commit_counts_for_all_jobs_that_write() -> None:
    loads = [load(HDD[0], "fio.2", 0.0, 10.0), load(HDD[0], "ior.1", 100.0, 10.0),
             JobLoad(HDD[0], "reader.3", read_bytes=1e8, reads=50.0)]
    time = account(loads, 5.0, {HDD[0]: "hdd"}, {"hdd": KNOWN}, committing={"fio.2"})[HDD[0]]
    assert time.ios == pytest.approx({"fio.2": 17.5, "ior.1": 17.5, "reader.3": 10.0})


KINDS = (False, None, True)


def device_times(small_operations: float, job: str = "fio.2") -> list[DeviceTimeShare]:
    """What a job takes beside a stream of 50 MB/s in 10 RPCs, on a device of each kind; costs known exactly."""
    loads = [load(HDD[0], "ior.1", 50.0, 10.0), load(HDD[0], "fio.2", 0.0, small_operations)]
    known = replace(KNOWN, covariance=((0.0,) * 3,) * 3)
    return [account(loads, 5.0, {HDD[0]: "hdd"}, {"hdd": known},
                    io_limited={} if kind is None else {"hdd": kind})[HDD[0]].device_time(job) for kind in KINDS]


@given(st.dictionaries(st.sampled_from(("a", "b", "c", "victim")), st.tuples(amounts, amounts, amounts, amounts),
                       min_size=2), st.sampled_from(KINDS))
def test_what_is_certain_on_each_kind_of_device_is_no_more_than_by_the_costs(
        work: dict[str, tuple[float, float, float, float]], io_limited: bool | None) -> None:
    loads = [JobLoad(HDD[0], job, 0.0, moved, reads, writes, others)
             for job, (moved, reads, writes, others) in work.items()]
    time = account(loads, 5.0, {HDD[0]: "hdd"}, {"hdd": KNOWN},
                   io_limited={} if io_limited is None else {"hdd": io_limited})[HDD[0]]
    others = set(work) - {"victim"}
    assert -1e-9 <= time.certain_share(others).share <= time.share(others) + 1e-9
    gain = gain_without([time], "victim", others)
    assert 1 <= gain.certain <= gain.low + 1e-9 <= gain.expected + 2e-9
    if (io_limited is False or time.io_bound == 1) and time.utilisation >= 1:
        assert gain.certain == pytest.approx(gain.low)


def test_small_io_is_a_certain_loss_as_far_as_it_would_fill_an_io_limit() -> None:
    """A stream of 50 MB/s beside small I/O, most of which would wait for nobody on a device with a limit of bytes."""
    def gain(small_operations: float, kind: bool | None) -> Gain:
        loads = [load(HDD[0], "ior.1", 400.0, 80.0), load(HDD[0], "fio.2", 0.0, small_operations)]
        known = replace(KNOWN, covariance=((0.0,) * 3,) * 3)
        time = account(loads, 5.0, {HDD[0]: "hdd"}, {"hdd": known}, io_limited={} if kind is None else {"hdd": kind})
        return gain_without(time.values(), "ior.1", ["fio.2"])

    few, many = gain(75.0, None), gain(250.0, None)
    assert few.low == pytest.approx(1 / (1 - 0.15 / 1.11), abs=0.01)
    assert 1.02 < few.certain < 1 + 0.6 * (few.low - 1)
    assert gain(75.0, kind=False).certain == gain(75.0, kind=False).low, "disks, as far as is known"
    assert many.certain == many.low, "small I/O takes a third of the time, so it would fill such a limit"


def test_small_io_takes_more_of_a_device_whose_io_limit_is_full() -> None:
    """By costs 30 I/Os take 0.3 of 0.9 s; of 40 I/Os they are three quarters."""
    disk, _, limited = device_times(30.0)
    assert disk.share == pytest.approx(1 / 3)
    assert limited.share == pytest.approx(0.75)
    assert device_times(30.0, "ior.1")[2].share == pytest.approx(0.25)


def test_few_small_ios_do_not_fill_an_io_limit() -> None:
    disk, _, limited = device_times(2.0)
    assert limited == disk


@given(st.floats(0.0, 200.0), st.sampled_from(("ior.1", "fio.2")))
def test_an_unknown_kind_of_device_is_in_the_error(small_operations: float, job: str) -> None:
    disk, unknown, limited = device_times(small_operations, job)
    assert unknown.share == pytest.approx((disk.share + limited.share) / 2)
    assert abs(limited.share - unknown.share) <= unknown.error + 1e-9


def test_stripes_that_go_in_step_are_one_observation() -> None:
    """A stream on four targets does not show which of them has the operations that hold it up."""
    rng, learner = Random(13), CostLearner()
    for _ in range(40):
        operations = [rng.choice((5.0, 45.0)) for _ in HDD]
        rpcs = (1 - 0.01 * fmean(operations)) / 0.019
        learner.learn([each for target, here in zip(HDD, operations, strict=True)
                       for each in (load(target, "ior.1", rpcs, rpcs), load(target, "fio.2", 0.0, here))],
                      5.0, {"ior.1"}, POOL_OF)
    assert learner.costs["hdd"].seconds.operations == pytest.approx(0.01, rel=0.15)


@dataclass
class Run:
    """A simulated workload: windows, and what the simulator's devices did for each job meanwhile."""

    scenario: RandomScenario
    windows: list[Window]
    served: list[dict[tuple[str, str], float]]

    def rate(self, job: str, since: float) -> float:
        """Bytes a second of a job from a virtual time on."""
        rates = [sum(each.moved_bytes for (_, of), each in w.loads.items() if of == job) / w.seconds
                 for w in self.windows if w.start - self.windows[0].start >= since]
        return fmean(rates) if rates else 0.0


def simulate(folder: Path, seed: int, jobs: Sequence[Job] | None = None, seconds: float = 130.0) -> Run:
    """Let a random workload run, or only these jobs of it."""
    scenario = random_scenario(seed)
    cluster = Cluster(recorded_test_bed(seed), scenario.jobs if jobs is None else jobs)
    read = parameter_files(cluster, folder / f"{seed}-{jobs is None}")
    done = Run(scenario, [], [])
    before, served = read(), seconds_served(cluster)
    pending = sorted(scenario.changes, key=lambda event: event[0])
    while cluster.now < seconds:
        until = cluster.now + 5
        while pending and pending[0][0] <= until:
            time, happens = pending.pop(0)
            cluster.advance(max(0.0, time - cluster.now))
            happens(cluster)
        cluster.advance(until - cluster.now)
        after, now = read(), seconds_served(cluster)
        done.windows.append(window(before, after))
        done.served.append({key: total - served.get(key, 0.0) for key, total in now.items()})
        before, served = after, now
    return done


def seconds_served(cluster: Cluster) -> dict[tuple[str, str], float]:
    """The account of all devices, by target and job."""
    return {(ost.name, job): seconds for ost in cluster.osts for job, seconds in ost.device_time.seconds.items()}


def streams_of(recent: Sequence[Window]) -> set[str]:
    """Jobs that stream, as tierd sees them."""
    return {job for job, profile in profiles(recent).items() if is_stream(profile, Classes())}


def accounts(windows: Sequence[Window]) -> Iterable[tuple[int, dict[str, TargetTime]]]:
    """What is known of each target, window after window, with nothing learned before."""
    learner = CostLearner()
    for number, each in enumerate(windows):
        unlinks = own_unlinks(each.namespace.values())
        recent = profiles(windows[max(0, number - 5):number + 1])
        streams = {job for job, profile in recent.items() if is_stream(profile, Classes())}
        committing = {job for job, profile in recent.items() if waits_for_commits(profile, Classes())}
        learner.learn(each.loads.values(), each.seconds, streams, POOL_OF, unlinks=unlinks, committing=committing)
        yield number, account(each.loads.values(), each.seconds, POOL_OF, learner.costs, unlinks, committing)


AccountsOf = Callable[[Run], Sequence[tuple[int, dict[str, TargetTime]]]]


@pytest.fixture(scope="module")
def accounts_of(runs: Sequence[Run]) -> AccountsOf:
    """The accounts of a run, made once."""
    made = [tuple(accounts(run.windows)) for run in runs]
    return lambda run: made[runs.index(run)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Workloads as the seeds give them, none of them used to build this."""
    folder = tmp_path_factory.mktemp("device-time")
    return [simulate(folder, seed) for seed in range(8100, 8112)]


@pytest.mark.parametrize("io_limited", [True, None])
def test_shares_agree_with_what_the_devices_did(runs: Sequence[Run], accounts_of: AccountsOf,
                                                io_limited: bool | None) -> None:
    """Within ten points, of pairs of target and job that took more than a tenth by either account.

    The test bed has throttled devices, with a limit of bytes and one of I/Os. tierd knows that, or it does not.
    """
    near: list[bool] = []
    healthy: list[bool] = []
    within_errors = 0
    for run in runs:
        for number, times in accounts_of(run):
            for target, seen in times.items():
                time = replace(seen, io_limited=io_limited)
                served = {job: seconds for (of, job), seconds in run.served[number].items() if of == target}
                total = sum(served.values())
                for job in {*served, *time.work}:
                    real, said = served.get(job, 0.0) / total, time.device_time(job)
                    if max(real, said.share) > 0.1:
                        near.append(abs(real - said.share) <= 0.1)
                        within_errors += abs(real - said.share) <= max(2 * said.error, 0.05)
                        if not run.scenario.changes:
                            healthy.append(near[-1])
    assert len(healthy) > 1000
    assert fmean(healthy) >= 0.9
    assert fmean(near) >= 0.8, "with disks that become slow just before the neighbour comes"
    assert within_errors / len(near) >= 0.8


def test_gain_agrees_with_a_run_without_the_suspects(runs: Sequence[Run], accounts_of: AccountsOf,
                                                     tmp_path: Path) -> None:
    """A stream's loss: what the account says it would get without the suspects, and what it does get in such a run."""
    errors = []
    for run in runs:
        suspects = run.scenario.suspects
        if not suspects or run.scenario.changes:
            continue
        seed = 8100 + runs.index(run)
        without = simulate(tmp_path, seed, [job for job in run.scenario.jobs if job.job_id not in suspects])
        settled = run.scenario.noise_starts + 36
        gains: dict[str, list[float]] = {}
        for number, times in accounts_of(run):
            if run.windows[number].start - run.windows[0].start >= settled:
                for job in streams_of(run.windows[number - 5:number + 1]) - {*suspects}:
                    gains.setdefault(job, []).append(gain_without(times.values(), job, suspects).expected)
        for job, each in gains.items():
            if without.rate(job, settled) > 1e6:
                errors.append(abs((1 - run.rate(job, settled) / without.rate(job, settled)) - (1 - 1 / fmean(each))))
    assert len(errors) >= 4
    assert median(errors) <= 0.05


def aggressor_shares(name: str, since: float) -> Mapping[str, float]:
    """Mean share of each job on the disks in the contended phase, with the recording begun so long after its onset."""
    tape, told = tape_of(name), truth(name)
    phase = next(phase for phase in told["phases"] if phase["name"] == "contended")
    readings = [parameters.reading(tree, time) for tree, time in zip(tape.trees, tape.times, strict=True)
                if phase["start"] + since <= time <= phase["end"]]
    windows = [window(before, after) for before, after in itertools.pairwise(readings)]
    shares: dict[str, list[float]] = {}
    for number, times in accounts(windows):
        if windows[number].start >= phase["start"] + 5:
            for time in times.values():
                for job in time.work:
                    shares.setdefault(job, []).append(time.share([job]))
    return {job: fmean(each) for job, each in shares.items()}


@pytest.mark.parametrize("name", ["noisy-create-1m", "noisy-flash-too-small", "noisy-random-4k"])
def test_recordings_begun_before_the_onset_show_what_the_neighbour_takes(name: str) -> None:
    measured = truth(name)["phase_mean_mb_s"]
    (aggressor,) = truth(name)["expect"]["aggressors"]
    assert aggressor_shares(name, -100.0)[aggressor] == pytest.approx(1 - measured["contended"] / measured["alone"],
                                                                       abs=0.1)


@pytest.mark.parametrize("name", ["noisy-create-1m", "noisy-flash-too-small", "noisy-random-4k"])
def test_recordings_begun_after_the_onset_name_the_neighbour(name: str) -> None:
    (aggressor,) = truth(name)["expect"]["aggressors"]
    shares = aggressor_shares(name, 1.0)
    (victim,) = truth(name)["expect"]["victims"]
    assert max(shares, key=lambda job: shares[job] if job != victim else 0.0) == aggressor
    assert shares[aggressor] > 0.12


def test_observations_leave_out_targets_without_streams() -> None:
    loads = [load(HDD[0], "ior.1", 50.0, 50.0), load(HDD[0], "fio.2", 0.0, 30.0), load(HDD[1], "fio.2", 0.0, 30.0)]
    assert observations(loads, 5.0, {"ior.1"}) == {HDD[0]: (Work(0.0, 50e6, 80.0), True)}
