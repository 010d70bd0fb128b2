"""Disks, flash, RAID groups and the journals on them cost what they cost."""

from __future__ import annotations

from random import Random

import pytest

from simulator.devices import DeviceSettings, build
from simulator.devices.device import DeviceTimeAccount, Io
from simulator.devices.flash import Flash, FlashSettings
from simulator.devices.hdd import HddSettings
from simulator.devices.raid import Raid, RaidSettings
from simulator.devices.throttled import ThrottledSettings
from simulator.engine import Engine
from simulator.servers.journal import Journal

MIB = 1 << 20
HDD = HddSettings(bytes_per_second=150e6, size_bytes=4 << 40)


class Load:
    """Keeps so many I/Os at a device at all times and counts what is done."""

    def __init__(self, settings: DeviceSettings) -> None:
        self.engine = Engine()
        self.device = build(self.engine, settings)
        self.bytes = 0
        self.ios = 0

    def stream(self, start: int, size: int) -> None:
        def done() -> None:
            self.bytes += size
            self.ios += 1
            self.stream(start + size, size)

        self.device.submit(Io(True, start, size, done))

    def scatter(self, rng: Random, size: int, span: int) -> None:
        def done() -> None:
            self.ios += 1
            self.scatter(rng, size, span)

        self.device.submit(Io(True, rng.randrange(span // size) * size, size, done))


def test_a_disk_streams_at_its_bandwidth() -> None:
    load = Load(HDD)
    load.stream(0, MIB)
    load.engine.run_until(10)
    assert load.bytes / 10 == pytest.approx(150e6, rel=0.02)


def test_random_io_costs_a_seek_and_half_a_revolution_each() -> None:
    load = Load(HDD)
    load.scatter(Random(1), 4096, 4 << 40)
    load.engine.run_until(10)
    assert 60 < load.ios / 10 < 130


def test_a_deep_queue_lets_the_elevator_shorten_the_way() -> None:
    shallow, deep = Load(HDD), Load(HDD)
    shallow.scatter(Random(1), 4096, 4 << 40)
    for number in range(32):
        deep.scatter(Random(number), 4096, 4 << 40)
    shallow.engine.run_until(20)
    deep.engine.run_until(20)
    assert deep.ios > 1.2 * shallow.ios


def test_two_streams_cost_seeks_between_them() -> None:
    load = Load(HDD)
    load.stream(0, MIB)
    load.stream(1 << 40, MIB)
    load.engine.run_until(10)
    assert 0.5 * 150e6 < load.bytes / 10 < 0.99 * 150e6


def test_nobody_starves_behind_a_stream() -> None:
    load = Load(HDD)
    load.stream(0, MIB)
    seen: list[float] = []
    load.device.submit(Io(False, 3 << 40, 4096, lambda: seen.append(load.engine.now)))
    load.engine.run_until(5)
    assert seen
    assert seen[0] < 1.0


def test_flash_seeks_nothing_and_serves_many_at_once() -> None:
    load = Load(FlashSettings(bytes_per_second=400e6, latency_seconds=0.0002, channels=16))
    for number in range(16):
        load.scatter(Random(number), 4096, 1 << 30)
    load.engine.run_until(1)
    assert load.ios > 30_000


@pytest.mark.parametrize(("write", "share"), [(True, 0.5), (False, 1.0)])
@pytest.mark.parametrize("size", [4096, 4 * MIB])
def test_a_mirrored_volume_stores_each_write_twice(write: bool, share: float, size: int) -> None:
    done = [0, 0]
    for copies in (1, 2):
        engine = Engine()
        device = Flash(engine, FlashSettings(1e9, 0.0002, 4, copies=copies))

        def again(device: Flash = device, at: int = copies - 1) -> None:
            done[at] += 1
            device.submit(Io(write, 0, size, again))

        for _ in range(16):
            again()
        engine.run_until(1.0)
    assert done[1] / done[0] == pytest.approx(share, rel=0.1)


@pytest.mark.parametrize("settings", [HDD, FlashSettings(), RaidSettings(), ThrottledSettings(16 << 20, 40)],
                         ids=["disk", "flash", "raid", "throttled"])
def test_io_is_booked_for_no_more_time_than_a_busy_device_has(settings: DeviceSettings) -> None:
    load, account = Load(settings), DeviceTimeAccount()

    def stream(at: int) -> None:
        load.device.submit(Io(True, at, 4 * MIB, lambda: stream(at + 4 * MIB), lambda s: account.book({"ior.1": 1}, s)))

    for queue in range(4):
        stream(queue << 32)
    load.engine.run_until(10)
    assert account.seconds["ior.1"] == pytest.approx(10, rel=0.1)


def test_scattered_io_is_booked_for_its_seeks_and_a_stream_for_its_bytes() -> None:
    load, account = Load(HDD), DeviceTimeAccount()
    rng = Random(1)
    ios = 0

    def scatter() -> None:
        nonlocal ios
        ios += 1
        place = rng.randrange(1 << 30) * 4096
        load.device.submit(Io(True, place, 4096, scatter, lambda s: account.book({"fio.1": 1}, s)))

    def stream(at: int) -> None:
        load.device.submit(Io(True, at, MIB, lambda: stream(at + MIB), lambda s: account.book({"ior.1": 1}, s)))

    scatter()
    stream(0)
    load.engine.run_until(10)
    assert account.seconds["ior.1"] + account.seconds["fio.1"] == pytest.approx(10, rel=0.01)
    assert 0.005 < account.seconds["fio.1"] / ios < 0.02


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


def test_an_overdue_io_is_served_first() -> None:
    engine = Engine()
    raid = Raid(engine, GROUP)
    seen: list[float] = []

    def stream(offset: int) -> None:
        raid.submit(Io(True, offset, 4 * MIB, lambda: stream(offset + 64 * MIB)))

    for n in range(64):
        stream((1 << 40) + n * 4 * MIB)
    engine.run_until(0.5)
    raid.submit(Io(False, 0, 4096, lambda: seen.append(engine.now)))
    engine.run_until(5.0)
    assert seen
    assert seen[0] < 0.5 + GROUP.deadline_seconds + 0.5


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


def test_jobs_pay_for_their_part_of_a_transaction() -> None:
    engine, account = Engine(), DeviceTimeAccount()
    device = build(engine, HddSettings())
    log = Journal(engine, device, 1 << 30, account=account)
    for number in range(3):
        log.change(("inode", number), job="mdtest.1")
    log.change(("inode", 9), job="ior.1")
    log.commit()
    engine.run_until(1.0)
    assert account.seconds["mdtest.1"] == pytest.approx(3 * account.seconds["ior.1"])
    assert sum(account.seconds.values()) > 0
