"""Neighbours without a past: what device time, dose and cross-section say, and when they are not enough."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

import pytest

from tests.tierd.worlds import MIB, TARGETS, small_files, small_io, stream, window
from tierd.config.settings import DeviceTimeSettings, Settings
from tierd.detect.device_time import DeviceCosts, Work
from tierd.detect.noisy_neighbour import signature
from tierd.detect.noisy_neighbour.baseline import LoadTracks
from tierd.engine import Engine
from tierd.model import Facts, Finding, JobLoad, NoisyNeighbourEvidence, Window

FREE = ("lustre-OST0006", "lustre-OST0007", "lustre-OST0008")
POOLS = {"hdd": (*TARGETS, *FREE), "flash": ("lustre-OST0000", "lustre-OST0001")}
ZERO = (0.0, 0.0, 0.0)


def known(seconds_per_operation: float, error: float = 0.0005) -> dict[str, DeviceCosts]:
    """Costs of an earlier run: 16 MB/s a target, and an operation as given."""
    return {"hdd": DeviceCosts(Work(6e-8, 6e-8, seconds_per_operation), (ZERO, ZERO, (0.0, 0.0, error**2)), 90)}


def found(windows: Sequence[Window], costs: dict[str, DeviceCosts] | None = None,
          pools: Mapping[str, tuple[str, ...]] = POOLS) -> list[list[Finding]]:
    """Noisy neighbours after each window. The targets are disks, without a limit of I/Os."""
    engine = Engine(Settings(device_time=DeviceTimeSettings({"hdd": False})))
    if costs:
        engine.use_costs(costs)
    return [[f for f in engine.run_cycle(each, lambda *_: (), lambda: Facts(pools=pools)).findings
             if f.kind == "noisy-neighbour"] for each in windows]


def evidence_of(finding: Finding) -> NoisyNeighbourEvidence:
    assert isinstance(finding.evidence, NoisyNeighbourEvidence)
    return finding.evidence


def always(count: int, *parts: object) -> list[Window]:
    return [window(n, *parts) for n in range(count)]  # type: ignore[arg-type]


def test_small_files_that_take_a_third_of_the_bytes_are_found_within_a_few_windows() -> None:
    looks = found(always(8, stream("s.1", 40.0), small_files("m.2", 20)))
    first = next(n for n, findings in enumerate(looks) if findings)
    (finding,) = looks[first]
    assert first < 6
    assert (finding.aggressor, finding.victim, finding.targets) == ("m.2", "s.1", TARGETS)
    evidence = evidence_of(finding)
    assert evidence.lacks_past
    assert evidence.device_time_share == pytest.approx(0.4, abs=0.1)
    assert evidence.victim_usual_bytes_per_second > 1.3 * evidence.victim_bytes_per_second
    assert finding.sentence.startswith("m.2 accesses 20 files/s of 1 MiB on the 4 targets to which s.1 streams")
    assert "both were active before tierd started; evidence: device time (" in finding.sentence


def test_a_trickle_is_no_neighbour() -> None:
    assert not any(found(always(20, stream("s.1", 62.0), small_files("m.2", 0.5, size=64 << 10))))


def test_targets_far_below_what_their_pool_can_do_have_no_victims() -> None:
    """The stream could have had the rest: something else than the neighbour holds it up."""
    windows = always(20, stream("s.1", 8.0), small_files("m.2", 5))
    assert not any(found(windows, known(0.005)))
    busy = always(20, stream("s.1", 40.0), small_files("m.2", 20))
    assert any(found(busy, known(0.005)))


def test_an_uncertain_cost_alone_blames_nobody() -> None:
    """Operations that never vary could cost as little as nothing."""
    assert not any(found(always(20, stream("s.1", 50.0), small_io("f.2", 9))))


def test_small_writes_that_wait_for_commits_are_found_though_they_never_vary() -> None:
    """Six a second and target, as 11 of a recording took 44%: each costs the write and its part of a commit."""
    looks = found(always(20, stream("s.1", 50.0), small_io("f.2", 24)))
    assert looks[3], "after four windows"
    evidence = evidence_of(looks[-1][0])
    assert evidence.device_time_share == pytest.approx(0.22, abs=0.04)


def test_a_stripe_that_is_less_busy_since_it_waits_for_another_does_not_hide_the_loss() -> None:
    """One of four targets has half of the neighbour's operations. The stream waits for the other three."""
    some = [load for target, files in zip(TARGETS, (8.0, 8.0, 8.0, 2.0), strict=True)
            for load in small_io("f.2", files, targets=(target,))]
    looks = found(always(10, stream("s.1", 30.0), some), known(0.025, error=0.002))
    assert looks[-1]
    assert (evidence_of(looks[-1][0]).gain_low or 1.0) > 1.1


def test_learned_costs_make_it_certain() -> None:
    windows = always(20, stream("s.1", 36.0), small_io("f.2", 48))
    looks = found(windows, known(0.03 / 2.5))
    assert looks[-1]
    assert evidence_of(looks[-1][0]).device_time_share == pytest.approx(0.36 / 1.16, abs=0.12)


def varying(rate: Callable[[float], float], seed: int = 3, count: int = 24) -> list[Window]:
    """A stream beside small I/O that comes and goes a little, the rate of the stream as a function of it."""
    rng = Random(seed)
    windows = []
    for n in range(count):
        operations = rng.uniform(30, 60)
        windows.append(window(n, stream("s.1", rate(operations)), small_io("f.2", operations)))
    return windows


def test_the_dose_confirms_what_device_time_holds_likely() -> None:
    looks = found(varying(lambda operations: 66.0 - 0.6 * operations))
    assert looks[-1]
    evidence = evidence_of(looks[-1][0])
    assert evidence.dose_probability is not None
    assert evidence.dose_probability <= 0.05
    assert evidence.dose_loss == pytest.approx(0.6 * 45 / 66, abs=0.02), "66 MB/s without the operations, 39 with 45"


def test_without_a_dose_nothing_is_confirmed() -> None:
    rng = Random(11)
    assert not found(varying(lambda _: rng.uniform(36, 38)))[-1]


def test_one_window_in_which_the_disks_stood_still_is_no_dose() -> None:
    """The stream waited, and the neighbour did more. In the other windows one has nothing to do with the other."""
    rates = [36.0, 38.0, 37.0, 36.5, 2.0, 37.5, 36.2, 37.8]
    operations = [40.0, 43.0, 41.0, 42.0, 80.0, 40.5, 41.5, 42.5]
    windows = [window(n, stream("s.1", rate), small_io("f.2", files))
               for n, (rate, files) in enumerate(zip(rates, operations, strict=True))]
    dose = signature.dose_of(LoadTracks(windows), "s.1", ["f.2"], TARGETS)
    assert dose is not None
    assert dose.probability > 0.1
    assert dose.loss > 0.4, "the regression follows the one window"


def test_streams_alike_on_free_targets_confirm_it() -> None:
    def spread(mb_s: float, targets: Sequence[str]) -> list[JobLoad]:
        return stream("s.1", mb_s, targets=targets)

    windows = [window(n, [*spread(36.0, TARGETS), *spread(45.0, FREE)], small_io("f.2", 40)) for n in range(20)]
    looks = found(windows)
    assert looks[-1]
    evidence = evidence_of(looks[-1][0])
    assert evidence.cross_section_ratio == pytest.approx((45.0 / 3) / (36.0 / 4), rel=0.01)
    assert "cross-section" in looks[-1][0].sentence


def test_the_past_decides_where_there_is_one() -> None:
    """A stream that was as fast before the neighbour came has lost nothing, whatever the costs say."""
    windows = [*always(8, stream("s.1", 40.0)),
               *(window(8 + n, stream("s.1", 40.0), small_files("m.2", 20)) for n in range(12))]
    assert not any(found(windows, known(0.02)))


def large_calls(number: int, usual_mb_s: float) -> float:
    """MB/s in one window of a stream whose calls do not fit: a window has one call less or more than the next."""
    return usual_mb_s * (1.2 if number % 3 == 0 else 0.9)


def calls_beside_files(now_mb_s: float) -> list[Window]:
    """A stream of large calls alone, then beside files that take a fifth of the bytes."""
    alone = [window(n, stream("s.1", large_calls(n, 64.0))) for n in range(12)]
    return alone + [window(n, stream("s.1", large_calls(n, now_mb_s)), small_files("m.2", 12)) for n in range(12, 22)]


def test_past_and_device_time_together_show_a_loss_that_single_windows_do_not() -> None:
    looks = found(calls_beside_files(51.2), known(0.001))
    first = next(n for n, findings in enumerate(looks) if findings)
    (finding,) = looks[first]
    assert first <= 17, "within half a minute"
    assert (finding.aggressor, finding.victim, finding.targets) == ("m.2", "s.1", TARGETS)
    assert "s.1 streams at" in finding.sentence
    assert "evidence: past" in finding.sentence
    assert not evidence_of(finding).lacks_past, "what is usual was measured"


def test_a_past_that_shows_less_than_half_of_what_device_time_predicts_denies_it() -> None:
    assert not any(found(calls_beside_files(60.0), known(0.001)))


def test_tasks_of_an_array_are_named_though_none_takes_much() -> None:
    tasks = [small_files(f"array.{n}", 1.0) for n in range(20)]
    looks = found(always(10, stream("s.1", 40.0), *tasks))
    assert len({finding.aggressor for finding in looks[-1]}) >= 15
    assert {finding.victim for finding in looks[-1]} == {"s.1"}


def test_large_rpcs_between_a_stream_and_small_io_are_reported_only() -> None:
    looks = found(always(10, stream("s.1", 36.0), small_io("f.2", 140, size=128 << 10)), known(0.01))
    assert all(finding.advice_only for finding in looks[-1])
    assert looks[-1]


def test_two_streams_share_and_neither_is_noise() -> None:
    assert not any(found(always(20, stream("s.1", 33.0), stream("t.2", 33.0))))


def test_a_finding_ends_when_the_neighbour_leaves() -> None:
    windows = [*always(10, stream("s.1", 40.0), small_files("m.2", 20)),
               *(window(10 + n, stream("s.1", 66.0)) for n in range(10))]
    looks = found(windows)
    assert looks[9]
    assert not looks[-1]


def test_targets_in_trouble_are_left_out() -> None:
    unhealthy = dict.fromkeys(TARGETS, "degraded")
    windows = [window(n, stream("s.1", 40.0), small_files("m.2", 20), conditions=unhealthy) for n in range(12)]
    assert not any(found(windows, known(0.01)))


def test_a_disk_that_fails_beside_a_trickle_is_no_neighbour() -> None:
    """All operations cost twice as much since: four a second take no more of the device time than before."""
    windows = [*(window(n, stream("s.1", 60.0)) for n in range(8)),
               *(window(8 + n, stream("s.1", 30.0), small_files("m.2", 4, size=64 << 10)) for n in range(10))]
    assert not any(found(windows, known(0.01)))
    assert any(found(windows, pools={})), "an operation may cost that much while the pools are not known"


def beside_a_fast_stream(fast: float) -> list[Window]:
    """A stream that takes a tenth of the disks and loses 40% since 7 files a second came; the other gets ``fast``."""
    alone = stream("s.1", 60.0), stream("s.2", 6.7)
    beside = stream("s.1", fast), stream("s.2", 4.0), small_files("m.3", 7, size=64 << 10)
    return [*(window(n, *alone) for n in range(8)), *(window(8 + n, *beside) for n in range(8))]


def test_a_slow_stream_beside_a_fast_one_loses_much_of_its_little_to_few_operations() -> None:
    last = found(beside_a_fast_stream(60.0), known(0.01))[-1]
    assert {(finding.aggressor, finding.victim) for finding in last} == {("m.3", "s.2")}


def test_where_the_fast_stream_loses_as_much_it_is_the_disk() -> None:
    assert not any(found(beside_a_fast_stream(36.0), known(0.01)))


def test_beside_another_new_stream_small_io_is_blamed_by_the_device_time_it_takes() -> None:
    """Its operations are more than those of the other stream, and its bytes are few, in both cases."""
    def blamed(small_operations: float, operation_seconds: float, new_stream: float, now: float) -> bool:
        alone = [window(n, stream("s.1", 60.0)) for n in range(8)]
        both = [window(8 + n, stream("s.1", now), stream("t.3", new_stream), small_io("f.2", small_operations))
                for n in range(6)]
        return "s.1" in {finding.victim for finding in found([*alone, *both], known(operation_seconds))[-1]}

    assert not blamed(24, 0.007, new_stream=24.0, now=52.0), "97 ms a target beside 396"
    assert blamed(12, 0.015, new_stream=16.0, now=45.0), "107 ms beside 294"


def test_two_neighbours_share_the_blame_by_device_time() -> None:
    """One makes many cheap operations, the other few large files: the second takes more time."""
    jobs = stream("s.1", 30.0), small_io("f.2", 60), small_files("m.3", 6, size=4 * MIB)
    looks = found(always(10, *jobs), known(0.01))
    shares = {finding.aggressor: evidence_of(finding).device_time_share or 0.0 for finding in looks[-1]}
    assert shares["m.3"] > 1.3 * shares["f.2"]
    assert sum(shares.values()) > 0.4


def test_a_dose_is_tested_again_after_half_a_minute() -> None:
    windows = varying(lambda operations: 66.0 - 0.6 * operations, count=40)
    tracks, tested = None, []
    for last in range(signature.MIN_DOSE_WINDOWS, 40):
        tracks = LoadTracks(windows[:last], tracks)
        assert signature.recent_dose(tracks, "s.1", ["f.2"], TARGETS) is not None
        ((at, *_),) = tracks.doses.values()
        tested.append(at)
        tracks.settle()
    assert [later - earlier for earlier, later in itertools.pairwise(sorted({*tested}))] == [30.0] * 5


def test_costs_are_known_at_the_first_look_from_the_history_of_prometheus() -> None:
    """Hours in which the neighbour's rate varied tell what its operations cost; tierd's first windows do not."""
    before = [replace(each, start=each.start - 10_000, end=each.end - 10_000, learned=True)
              for each in varying(lambda operations: 66.0 - 0.6 * operations)]
    engine = Engine(Settings())
    engine.use_history(before, {"s.1", "f.2"})
    engine.run_cycle(window(0, stream("s.1", 36.0), small_io("f.2", 50)), lambda *_: (), lambda: Facts(pools=POOLS))
    assert engine.device_time[TARGETS[0]].share(["f.2"]) == pytest.approx(0.6 * 50 / 66, abs=0.08)
    without = Engine(Settings())
    without.run_cycle(window(0, stream("s.1", 36.0), small_io("f.2", 50)), lambda *_: (), lambda: Facts(pools=POOLS))
    assert not without.device_time


def beside_slow_disks(rates_mb_s: Sequence[float], files_s: float, size: int) -> list[Window]:
    """A stream alone on healthy disks, then at these rates beside files."""
    return [*always(10, stream("s.1", 67.1)), *(window(10 + n, stream("s.1", rate), small_files("m.2", files_s, size))
                                                for n, rate in enumerate(rates_mb_s))]


def test_disks_that_get_slow_as_a_neighbour_comes_lose_more_than_it_can_take() -> None:
    """Two operations a second on each of four disks cannot take half of them, not even one stripe after the other."""
    assert not any(found(beside_slow_disks([50.0, *[32.2] * 12], 4, 124 << 10)))
    assert any(found(beside_slow_disks([50.0, *[32.2] * 12], 20, 1 << 20)))


def test_disks_that_get_slow_some_windows_after_a_neighbour_came_are_not_its_fault() -> None:
    assert not any(found(beside_slow_disks([*[66.8] * 4, 52.0, *[34.4] * 20], 10, 9 << 10)))
    assert any(found(beside_slow_disks([*[60.0] * 4, 52.0, 34.4, 34.4, 34.4], 20, 512 << 10)))
