"""Several activities at once in virtual time, the events below them, and the driver in real time."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.engine import Completion, Engine, Steps
from simulator.filesystem import SimulatedFilesystem
from simulator.jobs.large_files import StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.realtime import RealTimeDriver, WallClock
from simulator.scheduler import StuckError, VirtualScheduler
from simulator.settings import recorded_test_bed

MIB = 1 << 20
FLASH = Layout((Component(pool="flash"),), composite=False)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(recorded_test_bed())


@pytest.fixture
def scheduler(cluster: Cluster) -> Iterator[VirtualScheduler]:
    with VirtualScheduler(cluster) as made:
        yield made


def test_a_wait_of_one_activity_does_not_delay_another(scheduler: VirtualScheduler, cluster: Cluster) -> None:
    seen: list[tuple[str, float]] = []

    def slow() -> None:
        scheduler.sleep(10)
        seen.append(("slow", cluster.now))

    scheduler.spawn("slow", slow)
    scheduler.every("quick", 3.0, lambda: seen.append(("quick", cluster.now)))
    scheduler.run_until(10.5)
    assert seen == [("quick", 0.0), ("quick", 3.0), ("quick", 6.0), ("quick", 9.0), ("slow", 10.0)]


def test_a_step_longer_than_its_period_is_followed_at_once_by_the_next(
        scheduler: VirtualScheduler, cluster: Cluster) -> None:
    begun: list[float] = []

    def step() -> None:
        begun.append(cluster.now)
        cluster.advance(7)

    scheduler.every("step", 5.0, step)
    scheduler.run_until(20)
    assert begun == [0.0, 7.0, 14.0]


def test_steps_under_way_can_be_brought_to_their_end(scheduler: VirtualScheduler, cluster: Cluster) -> None:
    done: list[tuple[str, float]] = []

    def step(name: str, seconds: float) -> None:
        scheduler.sleep(seconds)
        done.append((name, cluster.now))

    scheduler.every("long", 5.0, lambda: step("long", 7.0))
    scheduler.every("short", 3.0, lambda: step("short", 2.0))
    scheduler.run_until(4)
    assert done == [("short", 2.0)]
    scheduler.finish()
    assert done == [("short", 2.0), ("short", 5.0), ("long", 7.0)], "no step was begun after 4 s"
    assert cluster.now == 7.0
    scheduler.finish()
    assert cluster.now == 7.0
    scheduler.run_until(9)
    assert done[3:] == [("short", 9.0)], "delayed work continues"


def test_an_error_of_an_activity_ends_the_run(scheduler: VirtualScheduler) -> None:
    def broken() -> None:
        scheduler.sleep(1)
        raise ValueError("a bug")

    scheduler.spawn("broken", broken)
    with pytest.raises(ValueError, match="a bug"):
        scheduler.run_until(5)


def test_activities_end_with_the_run_and_the_cluster_has_its_time_back() -> None:
    cluster = Cluster(recorded_test_bed())
    ended: list[bool] = []

    def forever() -> None:
        try:
            while True:
                cluster.advance(1)
        finally:
            ended.append(True)

    with VirtualScheduler(cluster) as scheduler:
        going_on = scheduler.spawn("forever", forever)
        scheduler.run_until(3.5)
        assert not going_on.finished.done
        scheduler.spawn("never begun", forever)
    assert ended == [True]
    assert not going_on.thread.is_alive()
    cluster.advance(1)
    assert cluster.now == 4.5


def test_an_executor_works_abreast(scheduler: VirtualScheduler, cluster: Cluster) -> None:
    def work(seconds: float) -> float:
        scheduler.sleep(seconds)
        if seconds == 4.0:
            raise OSError("it failed")
        return cluster.now

    def asking() -> None:
        with scheduler.executor(2) as executor:
            assert list(executor.map(work, (3.0, 1.0, 1.0, 3.0))) == [3.0, 1.0, 2.0, 5.0]
            broken = executor.submit(work, 4.0)
            with pytest.raises(OSError, match="it failed"):
                broken.result()
            assert isinstance(broken.exception(), OSError)
        assert cluster.now == 9.0

    waiting = scheduler.spawn("asking", asking)
    scheduler.run_until(20)
    assert waiting.finished.done


def test_a_thread_outside_the_activities_lets_them_run(scheduler: VirtualScheduler, cluster: Cluster) -> None:
    seen: list[float] = []
    scheduler.every("step", 1.0, lambda: seen.append(cluster.now))
    cluster.make_file("/old", 64 * MIB)
    SimulatedFilesystem(cluster).migrate("/old", FLASH)
    assert seen
    cluster.advance(2)
    answered: list[float] = []

    def asking() -> None:
        cluster.advance(1)
        answered.append(cluster.now)

    stranger = threading.Thread(target=asking)
    stranger.start()
    stranger.join()
    assert answered == [cluster.now]
    assert seen == [float(number) for number in range(int(cluster.now) + 1)]


def test_an_activity_that_waits_for_a_lock_of_the_machine_is_named(cluster: Cluster) -> None:
    lock = threading.Lock()
    with VirtualScheduler(cluster, timeout_seconds=0.2) as scheduler:

        def holds() -> None:
            with lock:
                scheduler.sleep(1)

        def wants() -> None:
            with lock:
                pass

        scheduler.spawn("holds", holds)
        scheduler.spawn("wants", wants)
        with pytest.raises(StuckError, match=r"(?s)wants waits for something that is not virtual.*in wants"):
            scheduler.run_until(5)


def test_an_activity_does_not_drive(scheduler: VirtualScheduler) -> None:
    scheduler.spawn("driver", lambda: scheduler.run_until(5))
    with pytest.raises(RuntimeError, match="cannot run other activities"):
        scheduler.run_until(1)


def test_the_threads_of_a_run_share_one_processor_and_the_caller_gets_its_own_back() -> None:
    before = os.sched_getaffinity(0)
    cluster = Cluster(recorded_test_bed(), ())
    seen: list[set[int]] = []
    with VirtualScheduler(cluster) as scheduler:
        scheduler.spawn("look", lambda: seen.append(os.sched_getaffinity(0)))
        scheduler.run_until(1.0)
    (during,) = seen
    assert len(during) == 1
    assert during <= before == os.sched_getaffinity(0)


def test_events_of_one_instant_keep_their_order() -> None:
    engine, seen = Engine(), list[int]()
    for number in range(5):
        engine.after(1.0, seen.append, number)
    engine.run_until(1.0)
    assert seen == [0, 1, 2, 3, 4]


def test_waiting_for_what_is_done_takes_no_time_and_no_stack() -> None:
    engine, ready = Engine(), Completion()
    ready.succeed(1)

    def process() -> Steps[int]:
        total = 0
        for _ in range(5000):
            total += yield ready
        return total

    assert engine.spawn(process()).value == 5000


class QuickClock(WallClock):
    """Waiting ends at once and passes virtual time. After ``seconds``, waiting ends only by the event."""

    def __init__(self, seconds: float = float("inf")) -> None:
        self.now = 1000.0
        self._end = self.now + seconds
        self.ended = Event()

    def monotonic(self) -> float:
        return self.now

    def wait(self, seconds: float, until: Event) -> bool:
        if self.now >= self._end:
            self.ended.set()
            return until.wait(60)
        self.now += seconds
        return until.is_set()


def test_time_moves_along_with_the_clock(tmp_path: Path) -> None:
    clock = QuickClock(seconds=5)
    cluster = Cluster(recorded_test_bed(1), (StreamingWriter(),))
    with RealTimeDriver(cluster, tmp_path, clock) as driver:
        assert clock.ended.wait(60)
    assert driver.error is None
    assert cluster.now == pytest.approx(5.0, abs=0.1)
    text = (tmp_path / "sys/kernel/debug/lustre/obdfilter/lustre-OST0002/stats").read_text()
    assert int(text.split("write_bytes")[1].split()[0]) > 25


def test_a_move_from_another_thread_waits_for_the_driver() -> None:
    cluster = Cluster(recorded_test_bed(1), (StreamingWriter(),))
    cluster.make_file("/proj/file", MIB)
    with RealTimeDriver(cluster, None, QuickClock()):
        filesystem = SimulatedFilesystem(cluster)
        filesystem.migrate("/proj/file", Layout((Component(pool="flash"),), composite=False))
        layout = filesystem.layout("/proj/file")
    assert layout.components[0].pool == "flash"


def test_waiting_ends_when_time_does() -> None:
    driver = RealTimeDriver(Cluster(recorded_test_bed(1)), None, QuickClock(seconds=1))
    with driver:
        pass
    with pytest.raises(TimeoutError):
        driver.wait_for(Completion())


def test_an_error_of_the_model_is_kept_for_the_owner() -> None:
    cluster = Cluster(recorded_test_bed(1))

    def broken() -> None:
        raise RuntimeError("a bug")

    cluster.engine.after(0.5, broken)
    with RealTimeDriver(cluster, None, QuickClock()) as driver, pytest.raises(TimeoutError):
        driver.wait_for(Completion())
    assert isinstance(driver.error, RuntimeError)


def test_readers_see_whole_moments_while_time_moves(tmp_path: Path) -> None:
    cluster = Cluster(recorded_test_bed(1), (StreamingWriter(), SmallFileWriter()))
    with RealTimeDriver(cluster, tmp_path, QuickClock()):
        for _ in range(20):
            for path in tmp_path.glob("proc/fs/lustre/obdfilter/*/job_stats"):
                assert path.read_bytes().startswith(b"job_stats:\n")
            assert all(space.avail_bytes >= 0 for space in SimulatedFilesystem(cluster).space().values())
