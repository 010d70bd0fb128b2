"""Disks, flash, RAID groups and the journals on them cost what they cost."""

from collections.abc import Iterator
from itertools import count, repeat
from random import Random

import pytest

from simulator.devices import DeviceSettings, build
from simulator.devices.device import Io
from simulator.devices.flash import FlashSettings
from simulator.devices.hdd import HddSettings
from simulator.devices.raid import Raid, RaidSettings
from simulator.engine import Engine
from simulator.servers.journal import Journal

MIB = 1 << 20
HDD = HddSettings(bytes_per_second=150e6, size_bytes=4 << 40)


class Load:
    """Keeps so many I/Os at a device at all times and counts what is done."""

    def __init__(self, settings: DeviceSettings) -> None:
        self.engine = Engine()
        self.device = build(self.engine, settings)
        self.ios = 0
        """Done."""

    def keep(self, places: Iterator[int], size: int, *, write: bool = True) -> None:
        """One I/O after the other, at these places."""
        def done() -> None:
            self.ios += 1
            self.keep(places, size, write=write)

        self.device.submit(Io(write, next(places), size, done))


def scattered(seed: int, span: int = 4 << 40) -> Iterator[int]:
    """Places of pages."""
    rng = Random(seed)
    return iter(lambda: rng.randrange(span // 4096) * 4096, None)


def test_a_disk_streams_at_its_bandwidth() -> None:
    load = Load(HDD)
    load.keep(count(0, MIB), MIB)
    load.engine.run_until(10)
    assert load.ios * MIB / 10 == pytest.approx(150e6, rel=0.02)


def test_random_io_costs_a_seek_and_half_a_revolution_each() -> None:
    load = Load(HDD)
    load.keep(scattered(1), 4096)
    load.engine.run_until(10)
    assert 60 < load.ios / 10 < 130


def test_a_deep_queue_lets_the_elevator_shorten_the_way() -> None:
    shallow, deep = Load(HDD), Load(HDD)
    shallow.keep(scattered(1), 4096)
    for number in range(32):
        deep.keep(scattered(number), 4096)
    shallow.engine.run_until(20)
    deep.engine.run_until(20)
    assert deep.ios > 1.2 * shallow.ios


def test_two_streams_cost_seeks_between_them() -> None:
    load = Load(HDD)
    load.keep(count(0, MIB), MIB)
    load.keep(count(1 << 40, MIB), MIB)
    load.engine.run_until(10)
    assert 0.5 * 150e6 < load.ios * MIB / 10 < 0.99 * 150e6


@pytest.mark.parametrize(("settings", "streams", "size", "place", "most_seconds"), [
    (HDD, [count(0, MIB)], MIB, 3 << 40, 1.0),
    (RaidSettings(), [count((1 << 40) + n * 4 * MIB, 256 * MIB) for n in range(64)], 4 * MIB, 0,
     RaidSettings().deadline_seconds + 0.5),
], ids=["disk", "raid"])
def test_nobody_starves_behind_streams(settings: DeviceSettings, streams: list[Iterator[int]], size: int, place: int,
                                       most_seconds: float) -> None:
    load = Load(settings)
    for places in streams:
        load.keep(places, size)
    load.engine.run_until(0.5)
    seen: list[float] = []
    load.device.submit(Io(False, place, 4096, lambda: seen.append(load.engine.now)))
    load.engine.run_until(5)
    assert seen
    assert seen[0] < 0.5 + most_seconds


def test_flash_seeks_nothing_and_serves_many_at_once() -> None:
    load = Load(FlashSettings(bytes_per_second=400e6, latency_seconds=0.0002, channels=16))
    for number in range(16):
        load.keep(scattered(number, 1 << 30), 4096)
    load.engine.run_until(1)
    assert load.ios > 30_000


@pytest.mark.parametrize(("write", "share"), [(True, 0.5), (False, 1.0)])
@pytest.mark.parametrize("size", [4096, 4 * MIB])
def test_a_mirrored_volume_stores_each_write_twice(write: bool, share: float, size: int) -> None:
    single, mirrored = (Load(FlashSettings(1e9, 0.0002, 4, copies=copies)) for copies in (1, 2))
    for load in (single, mirrored):
        for _ in range(16):
            load.keep(repeat(0), size, write=write)
        load.engine.run_until(1.0)
    assert mirrored.ios / single.ios == pytest.approx(share, rel=0.1)


GROUP = RaidSettings()


def rate(offsets: list[int], size: int, *, write: bool = True, missing: int = 0) -> float:
    """Bytes per second with all of it queued at once."""
    engine = Engine()
    raid = Raid(engine, GROUP)
    raid.missing_disks = missing
    finished: list[float] = []
    for offset in offsets:
        raid.submit(Io(write, offset, size, lambda: finished.append(engine.now)))
    engine.run_until(1000.0)
    assert len(finished) == len(offsets)
    assert raid.queued == 0
    return len(offsets) * size / max(finished)


def test_neighbours_that_wait_together_become_whole_stripes() -> None:
    quarters = rate([n * MIB for n in range(400)], MIB)
    alone = rate([n * 4 * MIB for n in range(100)], MIB)
    assert quarters > 5 * alone


def test_pieces_of_a_stripe_are_reads_and_writes() -> None:
    raid = Raid(Engine(), GROUP)
    page, _ = raid.cost(write=True, first=0, size=4096, positioning=0.0)
    revolution = 60 / GROUP.revolutions_per_minute
    assert 3 * revolution < page < 3.3 * revolution  # data, two parities: read, a whole turn, write
    assert raid.partial_stripes == 1


def test_reads_of_a_degraded_group_cost_the_others_more() -> None:
    offsets = [n * 1024 * MIB for n in range(100)]
    assert rate(offsets, MIB, write=False, missing=1) < 0.9 * rate(offsets, MIB, write=False)


def journal(engine: Engine) -> Journal:
    return Journal(engine, build(engine, HddSettings()), 1 << 30)


def test_those_who_ask_together_share_a_commit() -> None:
    engine = Engine()
    log = journal(engine)
    waiting = []
    for number in range(20):
        log.change(("inode", number))
        waiting.append(log.commit())
    engine.run_until(1.0)
    assert all(done.done for done in waiting)
    assert log.commits <= 2


def test_changes_are_committed_without_anybody_asking() -> None:
    engine = Engine()
    log = journal(engine)
    log.change("inode")
    engine.run_until(4.9)
    assert log.commits == 0
    engine.run_until(10)
    assert log.commits == 1


def test_whoever_asks_during_a_commit_waits_for_the_next() -> None:
    engine = Engine()
    device = build(engine, HddSettings())
    log = Journal(engine, device, 1 << 30)
    device.submit(Io(True, 0, 16 << 20, lambda: None))
    log.change("one")
    first = log.commit()
    engine.run_until(0.01)
    log.change("two")
    second = log.commit()
    engine.run_until(5)
    assert first.done
    assert second.done
    assert log.commits == 2
