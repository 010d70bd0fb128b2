"""The driver in real time, with a clock whose speed the test sets."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.engine import Completion
from simulator.filesystem import SimulatedFilesystem
from simulator.jobs.large_files import StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.realtime import RealTimeDriver, WallClock
from simulator.settings import recorded_test_bed

MIB = 1 << 20


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
