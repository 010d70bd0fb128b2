"""What streams lose to their neighbours, on made series whose truth is known."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import exp, isfinite, log
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.worlds import MIB, TARGETS, small_files, small_io, stream, window
from tierd.detect.accelerators import SmallWrites
from tierd.detect.columns import RecentWindows, pool_numbers, recent_work
from tierd.detect.costs import CostLearner, DeviceCosts
from tierd.detect.gain import Tracks
from tierd.detect.interference import MOST_AWAY, SUSPECTS, Interference, Loss
from tierd.detect.profile import Classes
from tierd.model import UNSEEN, EarlierWork, Facts, JobLoad, NamespaceLoad, Window
from tierd.text import Carrier

Part = list[JobLoad] | tuple[list[JobLoad], NamespaceLoad]
BYTE_SECONDS, OPERATION_SECONDS = 5e-8, 0.01
COSTS = DeviceCosts((BYTE_SECONDS, BYTE_SECONDS, OPERATION_SECONDS),
                    ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, (0.3 * OPERATION_SECONDS)**2)))
"""As well known as costs can be: operations of two jobs differ by three tenths."""
ALONE = 4 / (BYTE_SECONDS + OPERATION_SECONDS / MIB) / 1e6
"""MB/s of a stream over four targets."""
FILE_SECONDS = BYTE_SECONDS * MIB + 2.5 * OPERATION_SECONDS
"""Of a file of 1 MiB: its bytes, a write and a sync."""
FOUND = 0.05, 0.8


class Bed:
    """A model that sees windows of targets whose costs are known."""

    def __init__(self, costs: DeviceCosts = COSTS) -> None:
        self.recent = RecentWindows(30.0, Classes())
        self.model = Interference()
        self.learner = CostLearner({"hdd": costs})
        self.writes: Mapping[str, SmallWrites] = {}

    def see(self, seen: Window) -> list[Loss]:
        columns = self.recent.add(seen)
        kinds = self.recent.kinds()
        names, pool = pool_numbers(self.recent.targets, Facts(pools={"hdd": tuple(self.recent.targets)}))
        unhealthy = np.array([self.recent.targets[each] for each in seen.conditions], np.int64)
        work = recent_work(self.recent.windows, kinds, len(self.recent.jobs.by_number))
        costs = self.learner.table(pool, names, unhealthy, self.writes, request_msec=np.zeros(len(self.recent.targets)))
        losses, self.rival_losses = self.model.update(columns, work, kinds, costs)
        return losses

    def slots(self) -> list[int]:
        """Numbers of the jobs in the slots of the first stream."""
        return list(self.model.newest.state["slot"][0].tolist())

    def names(self, jobs: Iterable[int]) -> set[str]:
        return {self.recent.jobs.by_number[job] for job in jobs}


def share(files_s: float) -> float:
    """Device time of a job that writes so many files a second over four targets."""
    return files_s * FILE_SECONDS / 4


def at(rng: Random, rate: float, noise: float = 0.03) -> list[JobLoad]:
    """The stream ``s.1`` at about this rate."""
    return stream("s.1", rate * exp(rng.gauss(0.0, noise)), rpc_bytes=MIB)


def found(losses: Sequence[Loss], victim: int = 0) -> Loss | None:
    """The loss of a stream, if it would be reported."""
    return next((loss for loss in losses if loss.victim == victim and loss.probability(FOUND[0]) >= FOUND[1]), None)


def run(bed: Bed, windows: Iterable[Window]) -> list[list[Loss]]:
    return [bed.see(each) for each in windows]


def alone_first(seed: int, count: int = 9) -> tuple[Random, Bed]:
    """A bed on which the stream was alone for so many windows."""
    rng, bed = Random(seed), Bed()
    run(bed, (window(n, at(rng, ALONE)) for n in range(count)))
    return rng, bed


@pytest.mark.parametrize("files_s", [10.0, 30.0])
def test_a_neighbour_that_comes_is_found_in_its_second_window_with_an_interval_that_holds_its_loss(
        files_s: float) -> None:
    truth, holds = share(files_s), []
    for seed in range(20):
        rng, bed = Random(seed), Bed()
        assert not any(map(found, run(bed, (window(n, at(rng, ALONE)) for n in range(9)))))
        losses = run(bed, (window(9 + n, at(rng, ALONE * (1 - truth)), small_files("m.2", files_s)) for n in range(12)))
        assert found(losses[1]) is not None, seed
        for each in losses[1:]:
            (loss,) = each
            assert bed.names(loss.suspects) == {"m.2"}
            assert loss.came_at == 45.0
            assert len(loss.targets) == 4
            holds.append(loss.quantile(-1.645) <= truth <= loss.quantile(1.645))
        assert loss.carrier is Carrier.ARRIVAL
        assert loss.share == pytest.approx(truth, abs=0.08)
    assert np.mean(holds) >= 0.9


@pytest.mark.parametrize("elsewhere", [(), stream("x.9", 10, targets=["lustre-OST0009"])])
@pytest.mark.parametrize("cost_ratio", [0.5, 2.0])
def test_what_windows_showed_stays_when_operations_are_learned_to_cost_another_time(
        cost_ratio: float, elsewhere: list[JobLoad]) -> None:
    """Also if a target is seen first just then."""
    rng, bed = alone_first(6)
    beside = (window(9 + n, at(rng, ALONE * (1 - share(20)), noise=0.01), small_files("m.2", 20)) for n in range(13))
    *_, (before,) = run(bed, islice(beside, 12))
    seconds = BYTE_SECONDS, BYTE_SECONDS, cost_ratio * OPERATION_SECONDS
    bed.learner = CostLearner({"hdd": replace(COSTS, seconds=seconds)})
    seen = next(beside)
    after, *_ = bed.see(replace(seen, loads={**seen.loads, **{(each.target, each.job): each for each in elsewhere}}))
    assert after.mean == pytest.approx(before.mean, rel=0.03)


def test_a_new_stream_is_not_taken_for_a_trickle_of_files_when_reads_turn_out_to_cost_less() -> None:
    """The part of other streams is another one then, also in the windows before."""
    def streams(rng: Random, written: float, *read: float) -> Iterable[JobLoad]:
        yield from at(rng, written)
        for number, rate in enumerate(read):
            for load in stream(f"r.{number}", rate * exp(rng.gauss(0.0, 0.03))):
                yield JobLoad(load.target, load.job, read_bytes=load.write_bytes, reads=load.writes, sizes=load.sizes)

    for seed in range(5):
        rng, bed = Random(seed), Bed()
        run(bed, (window(n, [*streams(rng, 37, 43)]) for n in range(12)))
        bed.learner = CostLearner({"hdd": replace(COSTS, seconds=(2e-8, 8.5e-8, OPERATION_SECONDS))})
        trickle = small_files("m.3", 4, size=65536)
        losses = run(bed, (window(12 + n, [*streams(rng, 28, 36, 37)], trickle) for n in range(6)))
        assert not any(map(found, losses))


def test_a_job_that_writes_a_large_file_and_then_at_random_in_it_is_found() -> None:
    """As recorded on a Lustre 2.17. It is no stream any more, though most of its half minute was one."""
    for seed in range(5):
        rng, bed = Random(seed), Bed(replace(COSTS, seconds=(6e-8, 6e-8, 0.028)))
        run(bed, (window(n, at(rng, 66)) for n in range(12)))
        run(bed, (window(12 + n, at(rng, 33), stream("f.2", 4, targets=TARGETS[:1])) for n in range(5)))
        losses = run(bed, (window(17 + n, at(rng, 42), small_io("f.2", 7, targets=TARGETS[:1])) for n in range(8)))
        loss = found(losses[-1])
        assert loss is not None, seed
        assert loss.quantile(-1.645) <= 1 - 42 / 66 <= loss.quantile(1.645)


def test_a_loss_stays_as_the_one_target_with_a_neighbour_is_known_to_hold_the_stream_up() -> None:
    """As recorded on a Lustre 2.17. First all four targets of the stream seem to, so that D is a quarter."""
    for seed in range(5):
        rng, bed = alone_first(seed, 12)
        reads = [JobLoad(TARGETS[0], "f.2", read_bytes=90 * 4096, reads=90, sizes={4096: 90})]
        losses = run(bed, (window(12 + n, at(rng, 0.6 * ALONE), reads) for n in range(9)))
        assert bed.model.newest.streams.count.tolist() == [1]
        for each in losses[1:]:
            (loss,) = each
            assert 0.2 < loss.quantile(-1.645) < 0.4 < loss.quantile(1.645) < 0.55, seed


def test_other_streams_take_as_much_before_costs_are_learned_as_since() -> None:
    bed, tracks = Bed(), Tracks(100.0, 100.0)
    reader = [JobLoad(load.target, load.job, read_bytes=load.write_bytes, reads=load.writes, sizes=load.sizes)
              for load in stream("r.1", 40)]
    for n in range(16):
        if n == 8:
            bed.learner = CostLearner({"hdd": replace(COSTS, seconds=(1e-8, 3e-8, OPERATION_SECONDS))})
        bed.see(seen := window(n, [*stream("s.1", 40, rpc_bytes=MIB), *reader]))
        tracks.add(seen.end, {bed.recent.jobs["s.1"]}, (), bed.model, jobs=bed.recent.jobs.by_number)
    track = tracks.known["s.1"]
    before, since = (track.doses(each)[-1] for each in (track.windows[:8], track.windows[8:]))
    assert before == pytest.approx(since)
    assert since == pytest.approx(log(2)), "by the costs of the time when the other was first seen"


def test_operations_that_are_learned_to_cost_nothing_leave_numbers() -> None:
    rng, bed = alone_first(6)
    for number, seconds in enumerate((OPERATION_SECONDS, 0.0, OPERATION_SECONDS)):
        bed.learner = CostLearner({"hdd": replace(COSTS, seconds=(BYTE_SECONDS, BYTE_SECONDS, seconds))})
        beside = small_io("m.2", 20, size=0)
        for loss in bed.see(window(9 + number, at(rng, ALONE * 0.9), beside)):
            assert isfinite(loss.mean)
            assert isfinite(loss.error)


def test_small_io_that_was_always_there_surely_costs_something_where_it_waits_for_the_disks() -> None:
    unlearned = (*COSTS.covariance[:2], (0.0, 0.0, (0.6 * OPERATION_SECONDS)**2))
    rng, bed = Random(1), Bed(replace(COSTS, covariance=unlearned))
    windows = [window(n, at(rng, ALONE / 2), small_io("fio.2", 100)) for n in range(9)]
    assert 0.6 <= run(bed, windows[:6])[-1][0].probability(0.05) <= 0.75, "a write cache may take it in"
    bed.writes = {"hdd": SmallWrites.WAIT}
    assert run(bed, windows[6:])[-1][0].probability(0.05) >= 0.9


def test_a_stream_that_begins_beside_a_neighbour_is_found_slow_once_its_targets_are_known_to_hold_it_up() -> None:
    """In its first windows the mean of the last half minute is of targets that were idle for a part of it."""
    rng, bed = Random(1), Bed()
    run(bed, (window(n, small_files("m.2", 20)) for n in range(10)))
    losses = run(bed, (window(10 + n, at(rng, ALONE * (1 - share(20))), small_files("m.2", 20)) for n in range(8)))
    loss = found(losses[-1], bed.recent.jobs["s.1"])
    assert loss.quantile(-1.645) <= share(20) <= loss.quantile(1.645)


def test_a_load_that_varies_teaches_what_device_time_alone_does_not() -> None:
    rng, bed, last = Random(2), Bed(), []
    for number in range(60):
        files = 25.0 if number // 6 % 2 else 5.0
        last = bed.see(window(number, at(rng, ALONE * (1 - share(files))), small_files("m.2", files)))
    (loss,) = last
    assert loss.carrier is Carrier.LOAD
    assert loss.share == pytest.approx(share(25.0), abs=0.1)
    assert loss.quantile(1.645) - loss.quantile(-1.645) < 0.3


MOVED = (60 * ALONE + 20 * ALONE * (1 - share(20))) * 1e6
"""Bytes of the stream in a minute alone and 20 s beside the neighbour."""


@pytest.mark.parametrize(("stream_age", "neighbour_age", "carrier"), [
    (80.0, 20.0, Carrier.HISTORY), (80.0, 60.0, Carrier.HISTORY), (80.0, 90.0, Carrier.DEVICE_TIME),
    (300.0, 20.0, Carrier.DEVICE_TIME), (130.0, 20.0, Carrier.DEVICE_TIME), (None, None, Carrier.HISTORY)])
def test_what_a_stream_got_earlier_counts_as_its_history(stream_age: float | None, neighbour_age: float | None,
                                                         carrier: Carrier) -> None:
    """By its counters if it is young and did not pause, though the neighbour may have; or as Prometheus knows it."""
    rng, bed = Random(3), Bed()
    one, other = bed.recent.jobs["s.1"], bed.recent.jobs["m.2"]
    if stream_age is None or neighbour_age is None:
        bed.model.remember({one: (log(ALONE * 1e6), 0.1)})
    else:
        bed.model.earlier = {one: EarlierWork(1000.0 - stream_age, stream_age, 70.0, MOVED),
                             other: EarlierWork(1000.0 - neighbour_age, neighbour_age, 20.0, 20e6)}
    losses = run(bed, (window(n, at(rng, ALONE * (1 - share(20))), small_files("m.2", 20)) for n in range(8)))
    (loss,) = losses[-1]
    assert loss.carrier is carrier
    assert loss.share == pytest.approx(share(20), abs=0.1)


# nobody's fault

@pytest.mark.parametrize("files_s", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("factor", [0.8, 0.5, 0.3])
def test_a_disk_that_becomes_slow_is_nobodys_fault(files_s: float, factor: float) -> None:
    rng, bed = Random(4), Bed()
    trickle: list[Part] = [small_files("m.2", files_s)] if files_s else []
    for number in range(30):
        losses = bed.see(window(number, at(rng, ALONE * (factor if number >= 10 else 1.0)), *trickle))
        assert found(losses) is None, number


@pytest.mark.parametrize("pauses", [{12}, {12, 20, 28}, {12, 13}])
def test_a_stream_that_pauses_by_itself_is_not_slowed(pauses: set[int]) -> None:
    rng, bed = Random(6), Bed()
    for number in range(40):
        losses = bed.see(window(number, at(rng, ALONE * (0.15 if number in pauses else 1.0)), small_files("m.2", 1.0)))
        assert found(losses) is None, number


def test_a_window_without_the_stream_teaches_nothing() -> None:
    usual, levels = at(Random(7), ALONE), []
    for between in ([], [window(10, small_files("m.2", 1.0))]):
        bed = Bed()
        run(bed, [*(window(n, usual) for n in range(10)), *between, window(11, usual)])
        levels.append(bed.model.newest.mean[0, 0])
    assert levels[0] == levels[1]


@pytest.mark.parametrize("hours", [0.5, 24])
@pytest.mark.parametrize("files_s", [3.0, 8.0])
def test_a_stream_that_comes_back_on_fewer_targets_beside_a_job_that_came_too_is_not_slower_than_its_targets(
        hours: float, files_s: float) -> None:
    truth, holds = files_s * FILE_SECONDS / 2, []
    for seed in range(4):
        rng, bed = alone_first(seed, 12)
        for n in range(8):
            again = stream("s.1", ALONE / 2 * (1 - truth) * exp(rng.gauss(0.0, 0.03)), targets=TARGETS[:2],
                           rpc_bytes=MIB)
            beside = small_files("m.2", files_s, targets=TARGETS[:2])
            (loss,) = bed.see(window(12 + int(hours * 720) + n, again, beside))
            holds.append(loss.quantile(-1.645) <= truth <= loss.quantile(1.645))
    assert np.mean(holds) >= 0.9
    assert (loss.came_at == 0) == (hours > 1), "after a day, nothing is known of the time before"


def test_a_trickle_is_not_blamed_when_another_stream_comes() -> None:
    rng, bed = Random(8), Bed()
    run(bed, (window(n, at(rng, ALONE), small_files("m.2", 1.0)) for n in range(10)))
    for number in range(10, 30):
        losses = bed.see(window(number, at(rng, ALONE / 2), stream("t.3", ALONE / 2), small_files("m.2", 1.0)))
        assert found(losses, bed.recent.jobs["s.1"]) is None
    rivals = {loss.victim: loss for loss in bed.rival_losses}
    mine = rivals[bed.recent.jobs["s.1"]]
    assert bed.names(mine.suspects) == {"t.3"}
    assert mine.share == pytest.approx(0.5, abs=0.1)


def test_a_stream_that_its_targets_do_not_hold_up_loses_nothing() -> None:
    """It takes a third of their time, and so does its neighbour."""
    rng, bed = Random(10), Bed()
    for number in range(20):
        here: list[Part] = [small_files("m.2", 15)] if number >= 8 else []
        assert found(bed.see(window(number, at(rng, ALONE / 3), *here))) is None


@pytest.mark.parametrize("elsewhere", [(), [stream("x.9", 60, targets=["lustre-OST0009"])]])
@pytest.mark.parametrize("condition", [UNSEEN, "degraded"])
def test_while_all_targets_of_a_stream_are_in_trouble_it_is_in_doubt_and_said_to_lose_nothing(
        condition: str, elsewhere: Sequence[Part]) -> None:
    bed = Bed()
    for number in range(16):
        there = [stream("s.1", ALONE)] if number < 8 else [stream("s.1", ALONE / 2), stream("t.3", ALONE / 2)]
        bed.see(window(number, *there, *elsewhere))
    assert bed.rival_losses
    for number in range(16, 32):
        bed.see(window(number, *(there if condition != UNSEEN else []), *elsewhere,
                       conditions=dict.fromkeys(TARGETS, condition)))
        assert bed.names(bed.model.in_doubt) == {"s.1", "t.3"}
        assert bed.rival_losses == []


def test_a_stream_that_left_a_target_full_for_weeks_is_not_in_doubt_and_is_forgotten() -> None:
    bed, full = Bed(), {"lustre-OST0009": "full"}
    for number in range(200):
        passing = [stream(f"p.{number}.{each}", 5, targets=[*full]) for each in range(20)]
        bed.see(window(number, stream("s.1", ALONE, targets=(*TARGETS, *full) if number < 9 else TARGETS), *passing,
                       conditions=full))
        bed.recent.forget_jobs(bed.model.jobs)
    assert bed.recent.jobs["s.1"] not in bed.model.in_doubt
    assert len(bed.recent.jobs.by_number) < 200, "of 4,000 jobs"


# many suspects

def test_suspects_are_blamed_together_the_most_costly_first() -> None:
    rng, bed = alone_first(12)
    jobs: list[Part] = [small_files("m.2", 12), small_files("n.3", 6), small_files("idle.4", 0.2)]
    losses = run(bed, (window(9 + n, at(rng, ALONE * (1 - share(18.2))), *jobs) for n in range(8)))
    (loss,) = losses[-1]
    assert [bed.recent.jobs.by_number[job] for job in loss.suspects] == ["m.2", "n.3"]
    assert loss.share == pytest.approx(share(18), abs=0.08)


def test_a_suspect_that_leaves_keeps_its_slot_and_what_it_taught() -> None:
    rng, bed = Random(13), Bed()
    noise = small_files("m.2", 20)

    def phase(begin: int, count: int, noisy: bool) -> list[list[Loss]]:
        rate = ALONE * (1 - share(20) * noisy)
        return run(bed, (window(begin + n, at(rng, rate), *([noise] if noisy else [])) for n in range(count)))

    phase(0, 9, noisy=False)
    first = phase(9, 20, noisy=True)
    assert not any(map(found, phase(29, 40, noisy=False)[1:]))
    slots = bed.slots()
    again = phase(69, 3, noisy=True)
    assert bed.slots() == slots
    assert found(again[0]) is not None, "at once"
    assert again[0][0].came_at == 69 * 5.0, "a minute later it has come again"
    assert again[0][0].error < first[0][0].error


def test_a_returning_job_may_do_work_that_costs_more() -> None:
    """As recorded on a Lustre 2.17: random reads, half a minute of nothing, then the unpacking of an archive."""
    for seed in range(5):
        rng, bed = alone_first(seed)
        run(bed, (window(9 + n, at(rng, ALONE * (1 - share(15))), small_files("m.2", 15)) for n in range(12)))
        run(bed, (window(21 + n, at(rng, ALONE)) for n in range(8)))
        losses = run(bed, (window(29 + n, at(rng, 0.65 * ALONE), small_files("m.2", 8)) for n in range(6)))
        for each in losses[1:]:
            (loss,) = each
            assert loss.came_at == 145.0
            assert loss.quantile(-1.645) <= 0.35 <= loss.quantile(1.645), seed


@pytest.mark.parametrize("count", [SUSPECTS, SUSPECTS + 1, 3 * SUSPECTS])
def test_more_suspects_than_slots(count: int) -> None:
    """The largest have slots, and what the others cost counts for them."""
    rng, bed = alone_first(14)
    each = [3.0 + 0.1 * n for n in range(count)] if count <= SUSPECTS + 1 else [4.0] * 5 + [0.4] * (count - 5)
    jobs = [small_files(f"m.{n}", files) for n, files in enumerate(each)]
    losses = run(bed, (window(9 + n, at(rng, ALONE * (1 - share(sum(each)))), *jobs) for n in range(10)))
    loss = found(losses[-1])
    assert len(loss.suspects) <= SUSPECTS
    assert loss.share == pytest.approx(share(sum(each)), abs=0.12)


def test_a_large_neighbour_takes_the_slot_of_a_small_one() -> None:
    rng, bed = Random(15), Bed()
    early = [small_files(f"early.{n}", 1.0) for n in range(SUSPECTS)]
    run(bed, (window(n, at(rng, ALONE * (1 - share(6))), *early) for n in range(9)))
    losses = run(bed, (window(9 + n, at(rng, ALONE * (1 - share(21))), *early, small_files("late.9", 15))
                       for n in range(8)))
    loss = found(losses[1])
    assert "late.9" in bed.names(loss.suspects[:1])
    assert losses[-1][0].share == pytest.approx(share(20), abs=0.08)
    slots = bed.slots()
    assert bed.recent.jobs["late.9"] in slots
    run(bed, (window(17 + n, at(rng, ALONE * (1 - share(22))), *early, small_files("late.9", 15),
                     small_files("small.10", 1.0)) for n in range(4)))
    assert bed.slots() == slots, "a slot does not go from one small job to the next"


def test_of_many_suspects_that_come_at_once_the_largest_have_slots() -> None:
    bed, files = Bed(), [1.5, 2.5, 12.0, 1.6, 1.7, 2.0, 1.8, 9.0, 1.9, 1.4]
    jobs = [small_files(f"m.{n}", each) for n, each in enumerate(files)]
    bed.see(window(0, stream("s.1", ALONE / 2, rpc_bytes=MIB), *jobs))
    assert bed.names(bed.slots()) == {"m.1", "m.2", "m.5", "m.6", "m.7", "m.8"}


def test_a_job_that_loses_its_slot_leaves_no_device_time_in_it_and_its_loss_in_the_level() -> None:
    """The job that takes it was known first, so it comes first in the window."""
    rng, bed = alone_first(15)
    early = [small_files(f"early.{n}", 3.0) for n in range(SUSPECTS)]
    bed.see(window(9, small_files("grows.9", 0.2), stream("s.1", ALONE, rpc_bytes=MIB)))
    run(bed, (window(10 + n, at(rng, ALONE * (1 - share(18))), small_files("grows.9", 0.2), *early) for n in range(9)))
    before = bed.model.newest
    bed.see(window(19, at(rng, ALONE * (1 - share(25))), small_files("grows.9", 7), *early))
    now = bed.model.newest
    grown, other = (bed.slots().index(bed.recent.jobs[job]) for job in ("grows.9", "early.5"))
    assert now.exposure[0, grown] == pytest.approx(7 / 3 * now.exposure[0, other], rel=0.05)
    assert (before.mean - now.mean)[0, 0] == pytest.approx((before.exposure * before.mean[:, 1:])[0, grown], rel=0.2)


def test_jobs_and_streams_that_are_long_gone_are_forgotten_and_change_nothing() -> None:
    """One stream and its neighbour stay; meanwhile thousands of jobs come and go on targets of their own."""
    rng, bed, alone = Random(16), Bed(), Bed()
    elsewhere = "lustre-OST0009",
    for n in range(150):
        parts: list[Part] = [at(rng, ALONE * (1 - share(20) * (n > 9))), *([small_files("m.2", 20)] if n > 9 else [])]
        passing = [stream(f"s.{n}.{each}", 10, targets=elsewhere) for each in range(30)]
        with_others = bed.see(window(n, *parts, *passing, small_files(f"n.{n}", 5, targets=elsewhere)))
        (loss,) = alone.see(window(n, *parts)) or (None,)
        bed.recent.forget_jobs(bed.model.jobs)
        same = next((each for each in with_others if bed.names([each.victim]) == {"s.1"}), None)
        assert (same is None) == (loss is None)
        if same is not None and loss is not None:
            assert (same.mean, same.error) == pytest.approx((loss.mean, loss.error))
            assert bed.names(same.suspects) == {"m.2"}
    assert len(bed.model.jobs) < 3 * MOST_AWAY
    assert len(bed.recent.jobs.by_number) < 3 * MOST_AWAY, "of 4,650 jobs"


# many streams, and windows of other lengths

def test_a_stream_is_judged_the_same_alone_and_among_many() -> None:
    """Each stream and its neighbour have a target of their own. The state grows beyond its first size."""
    count, windows = 150, 12

    def parts(of: int, number: int) -> list[Part]:
        rng, target = Random(1000 * of + number), (f"lustre-OST{of:04x}",)
        noisy = number >= 6 + of % 3
        rate = ALONE / 4 * (1 - 0.3 * noisy) * exp(rng.gauss(0.0, 0.03))
        mine = stream(f"s.{of}", rate, targets=target)
        return [mine, *([small_files(f"m.{of}", 0.3 / FILE_SECONDS, targets=target)] if noisy else [])]

    crowd = Bed()
    together = [crowd.see(window(n, *(part for of in range(count) for part in parts(of, n)))) for n in range(windows)]
    known = crowd.recent.jobs.by_number
    last = {known[loss.victim]: loss for loss in together[-1]}
    assert len(last) == count
    for of in (0, 63, 64, 149):
        bed = Bed()
        (alone,) = run(bed, (window(n, *parts(of, n)) for n in range(windows)))[-1]
        assert last[f"s.{of}"].mean == pytest.approx(alone.mean)
        assert last[f"s.{of}"].error == pytest.approx(alone.error)
        assert last[f"s.{of}"].came_at == alone.came_at
        assert crowd.names(last[f"s.{of}"].suspects) == {f"m.{of}"}


def longer(number: int, seconds: float, files_s: float, rate: float) -> Window:
    """A window over a lost reading or two."""
    made = window(0, stream("s.1", rate, seconds), *([small_files("m.2", files_s, seconds=seconds)] if files_s else []),
                  seconds=seconds)
    return Window(5.0 * number, 5.0 * number + seconds, made.loads, made.namespace)


def test_a_lost_reading_and_a_window_three_times_as_long_change_nothing() -> None:
    whole, gaps = Bed(), Bed()
    for bed, steps in ((whole, [1] * 30), (gaps, [1] * 9 + [3, 1, 2, 1, 3, 3, 1, 2, 1, 1, 3])):
        number = 0
        for step in steps:
            noisy = number >= 12
            losses = bed.see(longer(number, 5.0 * step, 20 * noisy, ALONE * (1 - share(20) * noisy)))
            assert (found(losses) is not None) == noisy, number
            number += step
    (one,), (other,) = (bed.see(longer(30, 5.0, 20, ALONE * (1 - share(20)))) for bed in (whole, gaps))
    assert one.share == pytest.approx(other.share, abs=0.03)
    assert one.error == pytest.approx(other.error, rel=0.3)


# whatever comes

SIZES = st.one_of(st.just(0.0), st.floats(1e-3, 1e15))
TIMES = st.sampled_from((1e-3, 1.0, 5.0, 15.0, 7200.0))


@st.composite
def any_windows(draw: st.DrawFn) -> list[Window]:
    found, now = [], 1e9
    for _ in range(draw(st.integers(1, 6))):
        loads = {}
        for target, job in draw(st.sets(st.tuples(st.sampled_from(TARGETS[:2]), st.sampled_from("abcdefghij")))):
            loads[target, job] = JobLoad(target, job, draw(SIZES), draw(SIZES), draw(SIZES), draw(SIZES), draw(SIZES),
                                         0.0, draw(st.sampled_from(({}, {4096: 5.0}, {MIB: 9.0}))))
        names = {job: NamespaceLoad(job, closes=draw(SIZES), creates=draw(SIZES), unlinks=draw(SIZES))
                 for job in draw(st.sets(st.sampled_from("abc")))}
        seconds = draw(TIMES)
        found.append(Window(now, now + seconds, loads, names))
        now += seconds + draw(st.sampled_from((0.0, 5.0, -3600.0)))
    return found


@given(any_windows(), st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 10)))
def test_losses_are_shares_and_their_chances_probabilities(windows: list[Window],
                                                           seconds: tuple[float, float, float]) -> None:
    bed = Bed(DeviceCosts(seconds, COSTS.covariance))
    for each in windows:
        for loss in (*bed.see(each), *bed.rival_losses):
            assert 0 <= loss.share < 1
            assert 0 <= loss.probability(0.05) <= 1
            assert 0 <= loss.quantile(-1.645) <= loss.quantile(1.645) < 1
            assert isfinite(loss.bytes_per_second)
            assert loss.error > 0
            assert loss.suspects
            assert loss.victim not in loss.suspects
        if (newest := bed.model.newest) is not None:
            assert np.all(np.isfinite(newest.mean[newest.rate > 0]))
            assert np.all(np.isfinite(newest.covariance[newest.rate > 0]))


def test_countless_operations_that_are_said_to_cost_nothing_leave_every_variance_positive() -> None:
    bed = Bed(DeviceCosts((0.75, 0.625, 0.0), COSTS.covariance))
    for target in TARGETS[:2]:
        loads = [JobLoad(target, "j", 1.0, 0.0, 0.0, 7e12, 0.0, 0.0, {4096: 5.0}),
                 JobLoad(target, "b", 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, {}),
                 JobLoad(target, "d", 0.0, 0.9, 0.0, 0.001, 0.0, 0.0, {})]
        bed.see(Window(1e9, 1e9 + 1e-3, {(target, load.job): load for load in loads}, {}))
        assert bed.model.newest.covariance.diagonal(axis1=1, axis2=2).min() >= 0


@pytest.mark.parametrize(("before", "usual"), [(0.0, 38.6e6), (38.0e6, 38.0e6), (42.4e6, 41.5e6), (33.0e6, 36.35e6)])
def test_the_usual_rate_is_that_of_just_before_as_far_as_the_interval_of_the_loss_allows(before: float,
                                                                                         usual: float) -> None:
    loss = Loss(0, (1,), (2,), 31.6e6, 0.2, 0.0411, Carrier.ARRIVAL, 1.0, before)
    assert loss.usual_bytes_per_second == pytest.approx(usual, rel=2e-3)


def test_a_stream_that_varies_by_a_tenth_is_known_to_and_its_arrivals_teach_less() -> None:
    """Every arrival makes the expected variance large: that says nothing about the noise of a window."""
    rng, bed = Random(9), Bed()
    run(bed, (window(n, at(rng, ALONE, noise=0.1)) for n in range(12)))
    run(bed, (window(12 + n, at(rng, ALONE * (1 - share(20)), noise=0.1), small_files("m.2", 20)) for n in range(2)))
    assert 0.05 < bed.model.newest.state["noise"][0]**0.5 < 0.2


def test_a_stream_that_wanders_is_known_to_and_its_wandering_is_no_loss() -> None:
    """The job that starts costs nothing. Unless the wandering is learned, it is five streams."""
    blamed = set()
    for seed in range(60):
        rng, bed, level = Random(seed), Bed(), 0.0
        for n in range(29):
            level += rng.gauss(0.0, 0.03)
            losses = bed.see(window(n, at(rng, ALONE * exp(level), noise=0.02), *[small_files("m.2", 10)] * (n >= 24)))
            if any(loss.probability(FOUND[0]) >= 0.95 for loss in losses) and n >= 25:
                blamed.add(seed)
    assert len(blamed) <= 3


def test_a_loss_is_that_to_all_suspects_though_only_the_costly_are_named() -> None:
    rng, bed = alone_first(5)
    both = share(20) + share(3)
    (loss,) = run(bed, (window(9 + n, at(rng, ALONE * (1 - both)), small_files("m.2", 20), small_files("n.3", 3))
                        for n in range(12)))[-1]
    assert bed.names(loss.suspects) == {"m.2"}
    assert loss.share == pytest.approx(both, abs=0.05)


def test_a_loss_stays_where_a_neighbour_costs_far_more_than_device_time() -> None:
    """The targets do less than the costs say as long as it is there. Windows show that, whatever is known of costs."""
    rng, bed = alone_first(6)
    beside = (window(9 + n, at(rng, ALONE * 0.3), small_files("m.2", 10)) for n in range(20))
    losses = run(bed, islice(beside, 10))
    zero = 0.0, 0.0, 0.0
    bed.learner = CostLearner({"hdd": replace(COSTS, covariance=(zero, zero, (0.0, 0.0, OPERATION_SECONDS**2)))})
    losses += run(bed, beside)
    assert [loss.share for (loss,) in losses[2:]] == pytest.approx([0.7] * 18, abs=0.05)
    assert {loss.carrier for (loss,) in losses} == {Carrier.ARRIVAL}


def test_no_stream_is_said_to_lose_more_than_its_targets_can_do() -> None:
    rng, bed = alone_first(1)
    losses = run(bed, (window(9 + n, at(rng, ALONE / 5, noise=0.3), small_files("m.2", 20)) for n in range(12)))
    assert max(loss.usual_bytes_per_second for each in losses for loss in each) < 1.2e6 * ALONE


@given(st.floats(0.01, 3), st.floats(0.01, 3), st.floats(0, 1), st.floats(0, 1), st.floats(0.001, 0.999))
def test_quantiles_and_probabilities_of_a_loss_agree(mean: float, error: float, limited: float, small_io: float,
                                                     share: float) -> None:
    loss = Loss(0, (1,), (2,), 30e6, mean, error, Carrier.LOAD, 1.0, limited=limited, small_io=small_io)
    assert 0 <= loss.probability(share) <= loss.probability(share / 2) <= 1
    low, middle, high = (loss.quantile(errors) for errors in (-1.645, 0.0, 1.645))
    assert 0 <= low <= middle <= high <= 1
    if low > 1e-6:
        assert loss.probability(low) == pytest.approx(0.95, abs=1e-3)


def test_a_loss_that_may_be_zero_has_a_probability_below_that_of_a_device_with_a_limit() -> None:
    sure = Loss(0, (1,), (2,), 30e6, 0.5, 0.3, Carrier.DEVICE_TIME, 1.0)
    assert sure.probability(0.05) > 0.99
    assert replace(sure, limited=0.2, small_io=1.0).probability(0.05) == pytest.approx(0.8, abs=0.01)


def test_what_a_neighbour_costs_one_stream_is_known_when_another_comes() -> None:
    rng, bed = alone_first(21)
    run(bed, (window(9 + n, at(rng, ALONE), small_files("m.2", 20)) for n in range(12)))
    losses = run(bed, (window(21 + n, at(rng, ALONE / 2), stream("t.3", ALONE / 2), small_files("m.2", 20))
                       for n in range(3)))
    t3 = bed.recent.jobs["t.3"]
    assert not [loss for found in losses for loss in found if loss.victim == t3 and loss.probability(0.05) > 0.6]


def test_of_two_streams_that_know_a_neighbour_for_as_long_the_surer_teaches_a_third_in_any_order() -> None:
    pairs = {"a.1": TARGETS[:2], "b.2": TARGETS[2:]}

    def third(order: Sequence[str]) -> Loss:
        rngs, bed = {job: Random(job) for job in pairs}, Bed()
        for n in range(24):
            rates = {job: ALONE / 2 * (1 - share(20) * (n > 8)) * exp(rng.gauss(0.0, 0.05))
                     for job, rng in rngs.items()}
            parts: list[Part] = [stream(job, rates[job] / (1 + (n > 20)), targets=pairs[job]) for job in order]
            parts += [small_files("m.9", 20)] if n > 8 else []
            losses = bed.see(window(n, *parts, *([stream("c.3", ALONE / 3)] if n > 20 else [])))
        return next(loss for loss in losses if bed.names([loss.victim]) == {"c.3"})

    assert third(["a.1", "b.2"]).mean == pytest.approx(third(["b.2", "a.1"]).mean)
