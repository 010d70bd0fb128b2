"""A RAID group: whole stripes stream, pieces of stripes cost reads and turns of the disks."""

from __future__ import annotations

from simulator.devices.device import Io
from simulator.devices.raid import Raid, RaidSettings
from simulator.engine import Engine

MIB = 1 << 20
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


def test_whole_stripes_stream_at_the_data_share_of_all_disks() -> None:
    got = rate([n * 4 * MIB for n in range(400)], 4 * MIB)
    assert 0.9 < got / (GROUP.disks * GROUP.disk_bytes_per_second * 8 / 10) <= 1.01


def test_three_quarters_of_a_stripe_cost_more_than_a_whole_one() -> None:
    whole = rate([n * 4 * MIB for n in range(200)], 4 * MIB) / (4 * MIB)
    tails = rate([n * 4 * MIB + MIB for n in range(200)], 3 * MIB) / (3 * MIB)
    assert tails < 0.6 * whole


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
