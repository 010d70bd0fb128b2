"""Several activities at once, in virtual time."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.concurrently import Concurrently, StuckError
from simulator.filesystem import SimulatedFilesystem
from simulator.fluid import FluidCluster
from simulator.jobs import SmallFileWriter, StreamingWriter
from simulator.settings import recorded_test_bed

MIB = 1 << 20
FLASH = Layout((Component(pool="flash"),), composite=False)


@pytest.fixture
def at_once() -> Iterator[Concurrently]:
    with Concurrently(Cluster(recorded_test_bed())) as made:
        yield made


@pytest.fixture
def cluster(at_once: Concurrently) -> Cluster:
    return at_once._cluster


def test_what_one_waits_for_does_not_hold_up_another(at_once: Concurrently, cluster: Cluster) -> None:
    seen: list[tuple[str, float]] = []

    def slow() -> None:
        at_once.sleep(10)
        seen.append(("slow", cluster.now))

    at_once.spawn("slow", slow)
    at_once.every("quick", 3.0, lambda: seen.append(("quick", cluster.now)))
    at_once.run_until(10.5)
    assert seen == [("quick", 3.0), ("quick", 6.0), ("quick", 9.0), ("slow", 10.0)]


def test_a_step_longer_than_its_period_is_followed_at_once_by_the_next(at_once: Concurrently, cluster: Cluster) -> None:
    begun: list[float] = []

    def step() -> None:
        begun.append(cluster.now)
        cluster.advance(7)

    at_once.every("step", 5.0, step)
    at_once.run_until(20)
    assert begun == [5.0, 12.0, 19.0]


def test_steps_under_way_can_be_brought_to_their_end(at_once: Concurrently, cluster: Cluster) -> None:
    done: list[tuple[str, float]] = []

    def step(name: str, seconds: float) -> None:
        at_once.sleep(seconds)
        done.append((name, cluster.now))

    at_once.every("long", 5.0, lambda: step("long", 7.0))
    at_once.every("short", 3.0, lambda: step("short", 2.0))
    at_once.run_until(6)
    assert done == [("short", 5.0)]
    at_once.finish()
    assert done == [("short", 5.0), ("short", 8.0), ("long", 12.0)], "no step was begun after 6 s"
    assert cluster.now == 12.0
    at_once.finish()
    assert cluster.now == 12.0
    at_once.run_until(14)
    assert done[3:] == [("short", 14.0)], "what was held up goes on"


def run(model: type[Cluster], seed: int) -> list[tuple[str, float]]:
    """Two that move files and one that looks, beside jobs."""
    cluster = model(recorded_test_bed(seed), (StreamingWriter(), SmallFileWriter()))
    for number in range(20):
        cluster.make_file(f"/proj/old/{number}", MIB)
    filesystem = SimulatedFilesystem(cluster)
    seen: list[tuple[str, float]] = []

    def move(name: str, numbers: range) -> None:
        for number in numbers:
            filesystem.migrate(f"/proj/old/{number}", FLASH)
            seen.append((name, cluster.now))

    with Concurrently(cluster) as at_once:
        at_once.spawn("even", lambda: move("even", range(0, 20, 2)))
        at_once.spawn("odd", lambda: move("odd", range(1, 20, 2)))
        at_once.every("look", 0.5, lambda: seen.append((f"{cluster.throughput('ior_stream.1002', 0, 9)}", cluster.now)))
        at_once.run_until(10)
    return seen


@pytest.mark.parametrize("model", [Cluster, FluidCluster])
def test_the_same_seed_gives_the_same_run_and_another_seed_another(model: type[Cluster]) -> None:
    one = run(model, 1)
    assert one == run(model, 1)
    assert one != run(model, 2)
    assert [time for _, time in one] == sorted(time for _, time in one)
    assert {name for name, _ in one} > {"even", "odd"}


def test_two_moves_at_once_overlap() -> None:
    alone = [time for name, time in run(Cluster, 1) if name == "even"]
    cluster = Cluster(recorded_test_bed(1), (StreamingWriter(), SmallFileWriter()))
    for number in range(20):
        cluster.make_file(f"/proj/old/{number}", MIB)
    for number in range(20):
        SimulatedFilesystem(cluster).migrate(f"/proj/old/{number}", FLASH)
    assert alone[-1] < 0.75 * cluster.now


def test_an_error_of_an_activity_ends_the_run(at_once: Concurrently) -> None:
    def broken() -> None:
        at_once.sleep(1)
        raise ValueError("a bug")

    at_once.spawn("broken", broken)
    with pytest.raises(ValueError, match="a bug"):
        at_once.run_until(5)


def test_activities_end_with_the_run_and_the_cluster_has_its_time_back() -> None:
    cluster = Cluster(recorded_test_bed())
    ended: list[bool] = []

    def forever() -> None:
        try:
            while True:
                cluster.advance(1)
        finally:
            ended.append(True)

    with Concurrently(cluster) as at_once:
        going_on = at_once.spawn("forever", forever)
        never_begun = at_once.spawn("never begun", forever)
        at_once._ready.remove(never_begun)
        at_once.run_until(3.5)
        assert not going_on.over.done
    assert ended == [True]
    assert going_on.thread is not None
    assert not going_on.thread.is_alive()
    cluster.advance(1)
    assert cluster.now == 4.5


def test_a_lock_is_waited_for_in_virtual_time(at_once: Concurrently, cluster: Cluster) -> None:
    lock, had = at_once.lock(), list[tuple[str, float]]()

    def hold(name: str, seconds: float) -> None:
        with lock, lock:
            had.append((name, cluster.now))
            at_once.sleep(seconds)

    def impatient() -> None:
        assert not lock.acquire(blocking=False)
        assert not lock.acquire(timeout=1.5)
        had.append(("impatient", cluster.now))
        assert lock.acquire(timeout=5.0)
        had.append(("impatient", cluster.now))
        lock.release()

    at_once.spawn("first", lambda: hold("first", 4))
    at_once.spawn("second", lambda: hold("second", 1))
    at_once.spawn("impatient", impatient)
    at_once.run_until(10)
    assert had == [("first", 0.0), ("impatient", 1.5), ("second", 4.0), ("impatient", 5.0)]
    with pytest.raises(RuntimeError):
        lock.release()


def test_an_event_is_waited_for_in_virtual_time(at_once: Concurrently, cluster: Cluster) -> None:
    event, seen = at_once.event(), list[tuple[bool, float]]()

    def waiting() -> None:
        seen.append((event.wait(2.0), cluster.now))
        seen.append((event.wait(), cluster.now))
        event.clear()
        seen.append((event.wait(1.0), cluster.now))

    def happening() -> None:
        at_once.sleep(5)
        event.set()

    at_once.spawn("waiting", waiting)
    at_once.spawn("happening", happening)
    at_once.run_until(10)
    assert seen == [(False, 2.0), (True, 5.0), (False, 6.0)]
    assert not event.is_set()


def test_an_executor_works_abreast(at_once: Concurrently, cluster: Cluster) -> None:
    def work(seconds: float) -> float:
        at_once.sleep(seconds)
        if seconds == 4.0:
            raise OSError("it failed")
        return cluster.now

    def asking() -> None:
        with at_once.executor(2) as executor:
            assert list(executor.map(work, (3.0, 1.0, 1.0, 3.0))) == [3.0, 1.0, 2.0, 5.0]
            broken = executor.submit(work, 4.0)
            with pytest.raises(OSError, match="it failed"):
                broken.result()
            assert isinstance(broken.exception(), OSError)
        assert cluster.now == 9.0

    asked = at_once.spawn("asking", asking)
    at_once.run_until(20)
    assert asked.over.done


def test_who_is_no_activity_lets_all_of_them_live(at_once: Concurrently, cluster: Cluster) -> None:
    seen: list[float] = []
    at_once.every("step", 1.0, lambda: seen.append(cluster.now))
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
    assert seen == [float(number) for number in range(1, int(cluster.now) + 1)]


def test_an_activity_that_waits_for_a_lock_of_the_machine_is_named(cluster: Cluster) -> None:
    lock = threading.Lock()
    with Concurrently(cluster, patience_seconds=0.2) as at_once:

        def holds() -> None:
            with lock:
                at_once.sleep(1)

        def wants() -> None:
            with lock:
                pass

        at_once.spawn("holds", holds)
        at_once.spawn("wants", wants)
        with pytest.raises(StuckError, match=r"(?s)wants waits for something that is not virtual.*in wants"):
            at_once.run_until(5)


def test_an_activity_does_not_drive(at_once: Concurrently) -> None:
    at_once.spawn("driver", lambda: at_once.run_until(5))
    with pytest.raises(RuntimeError, match="cannot drive"):
        at_once.run_until(1)
