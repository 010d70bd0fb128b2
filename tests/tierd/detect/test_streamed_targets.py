"""Which targets streams would lose throughput on, and what further work costs there."""

from dataclasses import replace

import pytest

from tierd.detect.columns import RecentWindows, recent_work
from tierd.detect.costs import DISK_OPERATION_SECONDS, DeviceCosts
from tierd.detect.device_time import StreamWatch, TargetTime
from tierd.detect.profile import Classes
from tierd.model import Facts, JobLoad, StreamedTargets, Window

FACTS = Facts(pools={"hdd": ("l-OST0002", "l-OST0003"), "flash": ("l-OST0000",)})
NO_ERROR = ((0.0, 0.0, 0.0),) * 3
COSTS = DeviceCosts((1e-8, 2e-8, 0.01), NO_ERROR)


def window(end: float, *loads: JobLoad) -> Window:
    return Window(end - 5.0, end, {(load.target, load.job): load for load in loads}, {})


def stream(target: str, megabytes_per_second: float, job: str = "ior") -> JobLoad:
    return JobLoad(target, job, 0.0, 5e6 * megabytes_per_second, 0.0, 5 * megabytes_per_second)


def found(windows: list[Window], device_time: dict[str, TargetTime] | None = None) -> StreamedTargets:
    recent, watch = RecentWindows(30.0, Classes()), StreamWatch(("flash",))
    for each in windows:
        recent.add(each)
        kinds, jobs = recent.kinds(), recent.jobs.by_number
        streamed = watch.targets(recent_work(recent.windows, kinds, len(jobs)), kinds, jobs, list(recent.targets),
                                 device_time=device_time or {}, facts=FACTS)
    return streamed


def test_a_stream_on_targets_of_known_costs_is_given_way_to_with_these_costs() -> None:
    busy = {"l-OST0003": TargetTime("l-OST0003", COSTS, {"ior": (0.0, 40e6, 10.0)})}
    at = found([window(5.0, stream("l-OST0003", 40.0))], busy).by_target
    assert set(at) == {"l-OST0003"}
    assert at["l-OST0003"].streams == ("ior",)
    assert at["l-OST0003"].seconds(1e6, 1e6, 2) == pytest.approx(0.01 + 0.02 + 0.02)


def test_a_stream_whose_targets_are_clearly_idle_waits_for_something_else() -> None:
    idle = {"l-OST0003": TargetTime("l-OST0003", COSTS, {"ior": (0.0, 10e6, 10.0)})}
    assert idle["l-OST0003"].utilisation == pytest.approx(0.3)
    assert found([window(5.0, stream("l-OST0003", 10.0))], idle).by_target == {}


def test_a_stripe_on_a_target_of_unknown_costs_may_hold_the_stream_up() -> None:
    idle = {"l-OST0003": TargetTime("l-OST0003", COSTS, {"ior": (0.0, 10e6, 10.0)})}
    windows = [window(5.0, stream("l-OST0003", 10.0), stream("l-OST0002", 10.0))]
    assert set(found(windows, idle).by_target) == {"l-OST0002", "l-OST0003"}


def test_a_pool_of_unknown_costs_can_do_what_any_of_its_targets_has_done() -> None:
    windows = [window(5.0, stream("l-OST0002", 80.0), stream("l-OST0000", 900.0)),
               window(10.0, stream("l-OST0003", 5.0))]
    at = found(windows).by_target
    assert at["l-OST0003"].seconds(80e6, 0, 0) == pytest.approx(1.0)
    assert at["l-OST0003"].operation_seconds == DISK_OPERATION_SECONDS
    assert at["l-OST0000"].seconds(0, 900e6, 0) == pytest.approx(1.0)
    assert at["l-OST0000"].operation_seconds < 0.001


def test_a_target_of_no_pool_can_do_what_it_has_done_itself() -> None:
    late = stream("x-OST0009", 50.0)
    at = found([window(5.0, late), window(10.0, stream("l-OST0002", 80.0)), window(15.0)]).by_target
    assert at["x-OST0009"].seconds(50e6, 0, 0) == pytest.approx(1.0)


def test_a_target_does_in_the_time_of_a_lost_reading_what_it_did_in_that_time() -> None:
    late = replace(window(10.0, stream("l-OST0002", 200.0)), spans={"l-OST0002": 25.0})
    at = found([window(5.0, stream("l-OST0002", 40.0)), late]).by_target
    assert at["l-OST0002"].seconds(40e6, 0, 0) == pytest.approx(1.0)


def test_small_files_are_no_stream_and_a_watch_without_windows_of_streams_finds_none() -> None:
    small = JobLoad("l-OST0003", "untar", 0.0, 5e5, 0.0, 50.0)
    assert found([window(5.0, small)]).by_target == {}
    assert found([window(5.0)]).by_target == {}


def test_a_stream_that_has_paused_for_half_a_minute_is_not_waited_for() -> None:
    later = [window(end) for end in (10.0, 15.0, 20.0, 25.0, 30.0, 35.0)]
    assert set(found([window(5.0, stream("l-OST0003", 40.0)), *later[:-1]]).by_target) == {"l-OST0003"}
    assert found([window(5.0, stream("l-OST0003", 40.0)), *later]).by_target == {}
