from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.worlds import MIB, TARGETS, small_files, small_io, stream, window
from tierd.detect import shared_bandwidth
from tierd.detect.noisy_neighbour import detection
from tierd.detect.noisy_neighbour.baseline import SlowdownSettings as Settings
from tierd.detect.noisy_neighbour.pairs import SlowdownDetector, slowdown_view
from tierd.model import Finding, Window

QUIET, NOISY = 8, 6


def detect(windows: list[Window], settings: Settings, active: Collection[tuple[str, str, str]] = (),
           detector: SlowdownDetector = detection.DETECTOR) -> Iterator[Finding]:
    yield from detector.detect(slowdown_view(windows, settings, active=active), settings)


def episode(*noise: list, usual: float = 66.0, now: float = 44.0) -> list[Window]:  # type: ignore[type-arg]
    """Some windows of a stream alone, then some with noise beside it."""
    alone = [window(n, stream("s.1", usual)) for n in range(QUIET)]
    return alone + [window(QUIET + n, stream("s.1", now), *noise) for n in range(NOISY)]


def pairs(windows: list[Window], settings: Settings | None = None) -> list[tuple[str, str]]:
    return [(f.aggressor, f.victim) for f in detect(windows, settings or Settings())]


def test_whole_small_files_in_full_rpcs_are_found() -> None:
    (found,) = detect(episode(small_files("m.2", 20)), Settings())
    assert (found.aggressor, found.victim, found.targets) == ("m.2", "s.1", TARGETS)
    assert found.evidence.numbers()["slowdown"] == pytest.approx(1.5)
    assert found.evidence.numbers()["aggressor_files_per_second"] == pytest.approx(20)
    assert found.evidence.numbers()["aggressor_bytes_per_file"] == pytest.approx(MIB)
    assert "s.1 streams at 44.0 MB/s instead of 66.0 MB/s (67%) since m.2" in found.sentence


def test_small_random_writes_are_found_and_are_no_files() -> None:
    (found,) = detect(episode(small_io("f.2", 48)), Settings())
    assert found.aggressor == "f.2"
    assert found.evidence.numbers()["aggressor_bytes_per_file"] == 0


def test_an_undisturbed_victim_is_no_victim() -> None:
    assert pairs(episode(small_files("m.2", 20), now=64.0)) == []


def test_a_slow_disk_without_a_neighbour_is_no_finding() -> None:
    assert pairs(episode(now=32.0)) == []


def test_a_neighbour_on_other_targets_is_innocent() -> None:
    assert pairs(episode(small_files("m.2", 20, targets=("lustre-OST0000", "lustre-OST0001")))) == []


def test_a_second_stream_is_shared_bandwidth_not_noise() -> None:
    windows = episode(stream("t.2", 33), now=33.0)
    assert pairs(windows) == []
    (advice,) = detect(windows, Settings(), detector=shared_bandwidth.DETECTOR)
    assert (advice.aggressor, advice.victim, advice.advice_only) == ("t.2", "s.1", True)


def test_a_job_that_opened_its_large_files_once_is_not_at_work_on_files() -> None:
    loads, names = small_files("t.2", 30)
    first = window(QUIET, stream("s.1", 33), (loads, names))
    windows = [*episode(now=33.0)[:QUIET], first, *(window(QUIET + n, stream("s.1", 33), stream("t.2", 33))
                                                    for n in range(1, NOISY))]
    assert pairs(windows) == []


def test_a_trickle_beside_a_slow_disk_is_not_blamed() -> None:
    assert pairs(episode(small_files("m.2", 0.5), now=32.0)) == []


def test_a_disk_that_gets_sick_as_a_trickle_begins_is_not_the_trickle_s_fault() -> None:
    def windows(files_s: float) -> list[Window]:
        alone = [window(n, stream("s.1", 27, rpc_bytes=4 * MIB)) for n in range(QUIET)]
        return alone + [window(QUIET + n, stream("s.1", 9, rpc_bytes=4 * MIB), small_files("m.2", files_s, 64 << 10))
                        for n in range(NOISY)]

    assert pairs(windows(1.5)) == []  # three operations a second cannot take two thirds of four disks
    assert pairs(windows(5)) == [("m.2", "s.1")]


def test_of_two_neighbours_the_one_with_the_load_is_blamed() -> None:
    assert pairs(episode(small_files("m.2", 30), small_files("x.3", 1, 64 << 10))) == [("m.2", "s.1")]


def test_two_heavy_neighbours_are_both_named() -> None:
    assert set(pairs(episode(small_files("m.2", 15), small_files("n.3", 15)))) == {("m.2", "s.1"), ("n.3", "s.1")}


def test_slow_before_the_neighbour_came_is_not_its_fault() -> None:
    alone = [window(n, stream("s.1", 66)) for n in range(QUIET)]
    already = [window(QUIET + n, stream("s.1", 40)) for n in range(4)]
    both = [window(QUIET + 4 + n, stream("s.1", 40), small_files("m.2", 20)) for n in range(NOISY)]
    assert pairs(alone + already + both) == []


def test_a_disk_that_got_slow_before_the_neighbour_came_does_not_hide_it() -> None:
    windows = [window(n, stream("s.1", 66)) for n in range(QUIET)]
    windows += [window(QUIET + n, stream("s.1", 24)) for n in range(4)]
    windows += [window(QUIET + 4 + n, stream("s.1", 6), small_files("m.2", 20)) for n in range(4)]
    (found,) = detect(windows, Settings())
    assert found.evidence.numbers()["victim_usual_bytes_per_second"] == pytest.approx(24e6)


def test_nightly_slowness_that_comes_while_the_neighbour_is_there_is_not_its_fault() -> None:
    windows = episode(small_files("m.2", 20), now=65.0)
    windows += [window(len(windows) + n, stream("s.1", 65), small_files("m.2", 20)) for n in range(60)]
    for _ in range(40):
        windows.append(window(len(windows), stream("s.1", 50), stream("backup.9", 20), small_files("m.2", 20)))
        assert pairs(windows) == []


def test_of_a_steady_stream_a_small_loss_is_sure_of_an_unsteady_one_it_is_not() -> None:
    noise = [window(QUIET + n, stream("s.1", 60), small_files("m.2", 20)) for n in range(4)]
    assert pairs([window(n, stream("s.1", 66)) for n in range(QUIET)] + noise) == [("m.2", "s.1")]
    assert pairs([window(n, stream("s.1", 66 + (8 if n % 2 else -8))) for n in range(QUIET)] + noise) == []


def test_what_another_stream_won_meanwhile_is_told() -> None:
    windows = [window(n, stream("s.1", 66), stream("t.9", 7)) for n in range(QUIET)]
    windows += [window(QUIET + n, stream("s.1", 50), stream("t.9", 11), small_files("m.2", 20)) for n in range(NOISY)]
    (found,) = detect(windows, Settings())
    assert found.evidence.numbers()["bystanders_gain_bytes_per_second"] == pytest.approx(4e6)
    assert found.evidence.numbers()["bystanders_gain_share"] == pytest.approx(4 / 11)


def test_what_another_stream_won_counts_from_when_the_victim_got_slow() -> None:
    def now(number: int, files_s: float) -> Window:
        return window(QUIET + number, stream("s.1", 40, rpc_bytes=4 * MIB), stream("t.9", 53),
                      small_files("m.2", files_s))

    windows = [window(n, stream("s.1", 60, rpc_bytes=4 * MIB), stream("t.9", 46)) for n in range(QUIET)]
    windows += [now(0, 0.5), now(1, 20), now(2, 20), now(3, 20)]  # of the many requests of t.9 the first are a fiftieth
    (found,) = detect(windows, Settings())
    assert found.evidence.numbers()["bystanders_gain_bytes_per_second"] == pytest.approx(7e6)


def test_a_disk_that_gets_slow_long_after_the_neighbour_came_is_not_its_fault() -> None:
    windows = episode(small_files("m.2", 10), now=65.0)
    windows += [window(len(windows) + n, stream("s.1", 65), small_files("m.2", 10)) for n in range(8)]
    for _ in range(10):
        windows.append(window(len(windows), stream("s.1", 35), small_files("m.2", 10)))
        assert pairs(windows) == []


def test_noise_that_builds_up_is_found() -> None:
    windows = episode(small_files("m.2", 20), now=60.0)
    windows += [window(len(windows) + n, stream("s.1", 58 - n), small_files("m.2", 20)) for n in range(12)]
    assert pairs(windows) == [("m.2", "s.1")]


@pytest.mark.parametrize("condition", ["degraded", "in recovery", "full", "PowerFlex rebuild"])
def test_targets_that_are_slow_for_their_own_reason_are_left_out(condition: str) -> None:
    windows = episode(small_files("m.2", 20))
    windows[-1] = replace(windows[-1], conditions=dict.fromkeys(TARGETS, condition))
    assert pairs(windows) == []
    windows[-1] = replace(windows[-1], conditions={TARGETS[0]: condition})
    (found,) = detect(windows, Settings())
    assert TARGETS[0] not in found.targets


def test_a_cold_start_knows_no_usual_speed() -> None:
    assert pairs([window(n, stream("s.1", 44), small_files("m.2", 20)) for n in range(20)]) == []


def test_few_windows_are_no_evidence() -> None:
    assert pairs(episode(small_files("m.2", 20))[:QUIET + 3]) == []


def test_a_bursty_stream_is_compared_with_its_own_range() -> None:
    rates = [10, 100, 15, 110, 12, 95, 10, 105]
    alone = [window(n, stream("s.1", rate)) for n, rate in enumerate(rates)]
    both = [window(QUIET + n, stream("s.1", rate), small_files("m.2", 20))
            for n, rate in enumerate([14, 90, 12, 100, 16, 20])]
    assert pairs(alone + both) == []


def test_a_call_more_or_less_in_a_window_is_no_loss() -> None:
    alone = [window(n, stream("s.1", 27 if n % 2 else 40)) for n in range(QUIET + 1)]
    for rates, found in (([27, 27, 40, 27], False), ([27, 27, 27, 27], True)):
        both = [window(QUIET + 1 + n, stream("s.1", rate), small_files("m.2", 5)) for n, rate in enumerate(rates)]
        assert pairs(alone + both) == ([("m.2", "s.1")] if found else [])


def test_large_calls_of_a_steady_stream_do_not_delay_a_small_loss() -> None:
    """A window holds 20 calls of 16 MiB, or 18 or 19 beside the neighbour. Half of these windows are over 94%."""
    alone = [window(n, stream("s.1", 65.4 if n % 4 == 3 else 67.1)) for n in range(QUIET + 3)]
    both = [window(len(alone) + n, stream("s.1", rate), small_files("m.2", 20, size=64 << 10))
            for n, rate in enumerate([67.1, 63.8, 63.8, 60.4, 60.4])]
    assert pairs(alone + both[:-1]) == []
    assert pairs(alone + both) == [("m.2", "s.1")]


def test_two_slow_windows_of_four_may_be_a_pause() -> None:
    alone = [window(n, stream("s.1", 66.0 - n % 2)) for n in range(QUIET)]
    both = [window(QUIET + n, stream("s.1", rate), small_files("m.2", 20)) for n, rate in enumerate([66, 65, 50, 50])]
    assert pairs(alone + both) == []


def test_a_loss_in_every_other_window_is_not_yet_one() -> None:
    """The others are slower than alone too, but by half a percent."""
    alone = [window(n, stream("s.1", 67.1)) for n in range(QUIET)]
    for last, found in ((66.8, False), (63.8, True)):
        both = [window(QUIET + n, stream("s.1", rate), small_io("f.2", 33))
                for n, rate in enumerate([60.0, 66.8, 60.0, 66.8, 59.0, 66.8, 59.0, last])]
        assert pairs(alone + both) == ([("f.2", "s.1")] if found else [])


def test_hysteresis_holds_a_finding_that_no_longer_would_begin() -> None:
    windows = episode(small_files("m.2", 20), now=63.0)
    assert pairs(windows) == []
    key = ("noisy-neighbour", "m.2", "s.1")
    assert [f.key for f in detect(windows, Settings(), active={key})] == [key]


@given(st.floats(0.3, 1.2), st.floats(0.1, 100), st.integers(12, 26))
def test_any_finding_means_a_real_loss(ratio: float, files: float, size_bits: int) -> None:
    for found in detect(episode(small_files("m.2", files, 1 << size_bits), now=66.0 * ratio), Settings()):
        assert found.evidence.numbers()["slowdown"] >= 1 / 0.94 - 1e-9
        assert found.aggressor == "m.2"


@pytest.mark.parametrize("tasks", [2, 4, 5, 8, 10])
def test_tasks_that_do_together_what_one_job_would_are_found(tasks: int) -> None:
    array = [small_files(f"{7000 + n}", 24 / tasks) for n in range(tasks)]
    found = pairs(episode(*array))
    assert len(found) >= 0.8 * tasks
    assert {victim for _, victim in found} == {"s.1"}
    assert pairs(episode(*array, now=64.0)) == []


def test_of_two_neighbours_that_differ_both_are_found() -> None:
    assert set(pairs(episode(small_files("m.2", 20), small_io("f.3", 30)))) == {("m.2", "s.1"), ("f.3", "s.1")}


def test_tasks_beside_a_stream_that_brought_most_of_the_load_are_not_blamed() -> None:
    trickle = [small_files(f"{7000 + n}", 2, 64 << 10) for n in range(4)]
    assert pairs(episode(stream("t.2", 400, rpc_bytes=MIB), *trickle, now=33.0)) == []


def test_who_was_blamed_stays_so_while_it_does_a_fair_part() -> None:
    windows = episode(small_files("m.2", 20), small_files("n.3", 4))
    assert pairs(windows) == [("m.2", "s.1")]
    held = detect(windows, Settings(), [("noisy-neighbour", "n.3", "s.1")])
    assert {finding.aggressor for finding in held} == {"m.2", "n.3"}


@pytest.mark.parametrize(("rpc_bytes", "found", "told_only"), [(64 << 10, 1, False), (128 << 10, 1, True),
                                                               (192 << 10, 1, True), (256 << 10, 0, False)])
def test_requests_neither_small_nor_those_of_a_stream_are_told(rpc_bytes: int, found: int, told_only: bool) -> None:
    seen = list(detect(episode(small_io("f.2", 60, rpc_bytes)), Settings()))
    assert [f.advice_only for f in seen] == [told_only] * found
