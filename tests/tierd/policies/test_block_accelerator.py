"""Accelerators are found by the step in the durations of writes, and nothing else is taken for one."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lustre.parameters import Roots, Tree
from simulator.cluster import Cluster
from simulator.jobs import Job
from simulator.jobs.large_files import StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.parameters import write_parameters
from simulator.scenarios import scenario
from simulator.settings import ClusterSettings
from tests.tierd.policies.views import FLASH, POOLS, filled, halves, look
from tests.tierd.sense.clocks import SettableClock
from tests.tierd.worlds import TARGETS, small_io
from tierd.detect.accelerators import (
    Accelerator,
    SmallWrites,
    accelerators,
    all_absorbed,
    of_latency,
    of_mixes,
    small_writes,
)
from tierd.model import DiskWrites, Facts, JobLoad
from tierd.policies import small_random_io
from tierd.policies.block_accelerator import POLICY
from tierd.sense.nodes import DiskPoller, read_disks
from tierd.simulation.beds import BedKind, draw_bed

KIB, MIB = 1024, 1 << 20
SIZES = (4096, 8192, 16384, 32768, 65536, 131072, MIB)


def mixes(bypass: int, shares: Sequence[float] = (0.2, 0.7, 0.4, 0.9, 0.5),
          slow_msec: int = 16) -> tuple[DiskWrites, ...]:
    """Readings of ``brw_stats`` in which the share of small writes changes: two sizes below 16 KiB, two above 64."""
    found = []
    for number, share in enumerate(shares):
        sizes = {4096: 500 * share, 16384: 500 * share, 65536: 500 * (1 - share), MIB: 500 * (1 - share)}
        fast = sum(count for size, count in sizes.items() if size <= bypass)
        msec = {1: fast, slow_msec: 1000 - fast}
        found.append(DiskWrites(float(number), sizes, {key: count for key, count in msec.items() if count}))
    return tuple(found)


def by_size(usec: dict[int, int]) -> tuple[DiskWrites, ...]:
    """A reading of ``io_latency_stats`` with one duration for each size."""
    return (DiskWrites(0.0, usec_by_size={size: {time: 200.0} for size, time in usec.items()}),)


def facts(writes: tuple[DiskWrites, ...], targets: Sequence[str] = TARGETS) -> Facts:
    return Facts(pools=POOLS, fill=filled(), disk_writes=dict.fromkeys(targets, writes))


def test_a_step_at_the_bypass_size_is_found_with_its_size() -> None:
    (found,) = look(POLICY, facts=facts(mixes(32 * KIB)))
    assert (found.subject, found.targets, found.advice_only) == ("hdd", tuple(sorted(TARGETS)), True)
    numbers = found.evidence.numbers()
    assert numbers["bypass_low_bytes"] <= 32 * KIB < numbers["bypass_high_bytes"]
    assert "or a write cache that larger writes bypass; counters do not tell which" in found.sentence
    assert found.advice[0].command.startswith("raise the bypass size to 64 KiB")
    of_cray = tuple(DiskWrites(0.0, {4096: small, 65536: 1e3 - small}, {1: small, 16: 1e3 - small})  # writes of 40 KiB
                    for small in (200.0, 700.0, 400.0, 900.0))
    assert look(POLICY, facts=facts(of_cray))[0].advice[0].command.startswith("raise the bypass size to 64 KiB")


SLOW = mixes(0, (0.0,) * 7 + (0.25, 0.25), slow_msec=128)


@pytest.mark.parametrize(("writes", "targets"), [
    pytest.param(mixes(0), TARGETS, id="plain disks"),
    pytest.param(mixes(MIB), TARGETS, id="a cache that takes all writes in"),
    pytest.param(mixes(32 * KIB), FLASH, id="flash targets"),
    pytest.param(mixes(32 * KIB), ["lustre-2-OST0000"], id="another file system on the same servers"),
    pytest.param(mixes(32 * KIB, (0.5,) * 8), TARGETS, id="a constant mix"),
    pytest.param(SLOW, TARGETS, id="slow writes alone"),
    pytest.param(SLOW[4:8], TARGETS, id="few readings of slow writes"),
    pytest.param(mixes(32 * KIB)[:3], TARGETS, id="few readings"),
])
def test_no_accelerator_is_found_elsewhere(writes: tuple[DiskWrites, ...], targets: Sequence[str]) -> None:
    assert look(POLICY, facts=facts(writes, targets)) == []


def reading(sizes: dict[int, float], msec: dict[int, float]) -> tuple[DiskWrites, ...]:
    return DiskWrites(0.0, sizes, msec),


@pytest.mark.parametrize(("writes", "done"), [
    pytest.param(mixes(0), SmallWrites.WAIT, id="plain disks"),
    pytest.param(mixes(32 * KIB), None, id="an accelerator for some of them"),
    pytest.param(reading({MIB: 2000.0, 65536: 100.0}, {1: 100.0, 64: 2000.0}), SmallWrites.ABSORBED, id="a cache"),
    pytest.param(reading({65536: 100.0}, {1: 100.0}), SmallWrites.ABSORBED, id="a cache, and nothing large"),
    pytest.param(reading({MIB: 500.0, 4096: 800.0}, {1: 100.0, 64: 500.0}), SmallWrites.ABSORBED,
                 id="a cache, and eight disk I/Os for a request"),
    pytest.param(reading({MIB: 2000.0, 65536: 100.0}, {1: 90.0, 64: 2010.0}), None, id="some wait"),
    pytest.param(reading({MIB: 2000.0, 65536: 100.0}, {1: 2100.0}), None, id="nothing waits"),
    pytest.param(reading({524288: 4000.0}, {64: 1000.0}), None, id="large requests in small disk I/Os"),
    pytest.param(reading({MIB: 990.0, 4096: 10.0}, {16: 1000.0}), None, id="few small writes"),
    pytest.param((), None, id="no readings"),
])
def test_durations_show_how_small_writes_are_done(writes: tuple[DiskWrites, ...], done: SmallWrites | None) -> None:
    assert small_writes(writes) is done


@pytest.mark.parametrize(("usec", "seen"), [
    ({4096: 256, 16384: 300, 32768: 400, 65536: 9000, MIB: 20000}, Accelerator(32768, 65536, 400, 9000)),
    ({4096: 9000, 65536: 9500, MIB: 18000}, None),  # disks
    ({4096: 200, 65536: 400, MIB: 2500, 4 * MIB: 9000}, None),  # a cache for all writes, limited by its bandwidth
    ({4096: 100, 65536: 150, MIB: 600}, None),  # flash
    ({4096: 1000, MIB: 1000, 2 * MIB: 67000}, None),  # volumes held to 16 MiB/s, under a stream of a real Lustre 2.17
], ids=["accelerator", "disks", "write cache", "flash", "throttled volume"])  # fmt: skip
def test_durations_by_size_show_the_step_at_once_and_those_that_grow_with_the_bytes_none(
        usec: dict[int, int], seen: Accelerator | None) -> None:
    assert of_latency(by_size(usec)) == seen


@given(st.dictionaries(st.sampled_from(SIZES), st.integers(1, 10**7), min_size=1), st.integers(1, 1000))
def test_a_step_lies_between_fast_and_slow_sizes(usec: dict[int, int], count: int) -> None:
    seen = of_latency((DiskWrites(0.0, usec_by_size={size: {time: float(count)} for size, time in usec.items()}),))
    if seen is not None:
        assert count >= 100
        assert all(time <= 2000 for size, time in usec.items() if size <= seen.bypass_low_bytes)
        assert all(time >= 4 * usec[seen.bypass_low_bytes] for size, time in usec.items()
                   if size >= seen.bypass_high_bytes)


@example([({4096: 0}, {1: 100})])
@given(st.lists(st.tuples(st.dictionaries(st.sampled_from(SIZES), st.integers(0, 5000)),
                          st.dictionaries(st.sampled_from((1, 2, 4, 8, 16)), st.integers(0, 5000))), max_size=8))
def test_any_readings_give_an_accelerator_or_none(readings: list[tuple[dict[int, int], dict[int, int]]]) -> None:
    seen = of_mixes([DiskWrites(0.0, {k: float(v) for k, v in sizes.items()}, {k: float(v) for k, v in msec.items()})
                     for sizes, msec in readings])
    assert seen is None or seen.bypass_low_bytes < seen.bypass_high_bytes


def test_small_random_writes_that_the_accelerator_takes_in_are_not_sent_to_flash() -> None:
    busy = halves(small_io("fio.7", 48, seconds=30.0))
    assert look(small_random_io.POLICY, busy)
    assert look(small_random_io.POLICY, busy, facts(by_size({4096: 256, 32768: 400, 65536: 9000, MIB: 20000}))) == []
    assert look(small_random_io.POLICY, busy, facts(mixes(32 * KIB))), "mixes alone do not hide a job"
    assert look(small_random_io.POLICY, busy, facts(mixes(0)))


def test_all_that_a_neighbour_does_must_be_taken_in() -> None:
    seen = {"l-OST0001": Accelerator(32768, 65536, 400.0, 9000.0)}
    small = {"l-OST0001": JobLoad("l-OST0001", "fio.7", write_bytes=4096e3, writes=1e3, sizes={4096: 1e3})}
    assert all_absorbed(seen, small, ("l-OST0001",))
    assert not all_absorbed({}, small, ("l-OST0001",))
    assert not all_absorbed(seen, small, ())
    reads = {"l-OST0001": small["l-OST0001"]._replace(reads=500.0, read_bytes=2e6)}
    assert not all_absorbed(seen, reads, ("l-OST0001",)), "an accelerator does not serve reads from disks"
    large = {"l-OST0001": small["l-OST0001"]._replace(sizes={4096: 500.0, MIB: 500.0})}
    assert not all_absorbed(seen, large, ("l-OST0001",))
    assert not all_absorbed(seen, small, ("l-OST0001", "l-OST0002"))
    inferred = {"l-OST0001": Accelerator(32768, 65536)}
    assert not all_absorbed(inferred, small, ("l-OST0001",)), "mixes alone do not stop tierd"


def found_in(settings: ClusterSettings, jobs: Sequence[Job], until: float, root: Path) -> list[dict[str, Accelerator]]:
    """Accelerators found in each half minute."""
    cluster = Cluster(settings, jobs)
    poller = DiskPoller({"node": lambda _: read_disks(Tree(Roots.of(root / "proc", root / "sys")))}, SettableClock(0.0))
    found = []
    while cluster.now < until:
        cluster.advance(30)
        write_parameters(cluster, root, clients=False)
        found.append(accelerators(poller()))
    return found


@pytest.mark.parametrize("accelerated", [True, False])
def test_a_simulated_accelerator_is_found_and_plain_disks_are_not(accelerated: bool, tmp_path: Path) -> None:
    scene = scenario.library("accelerator-mixes")
    settings = scene.cluster(1)
    if not accelerated:
        settings = replace(settings, osts=tuple(replace(ost, accelerator=None) for ost in settings.osts))
    found = found_in(settings, scene.jobs, 180.0, tmp_path)[-1]
    assert set(found) == ({"lustre-OST0000", "lustre-OST0001"} if accelerated else set())
    for seen in found.values():
        assert seen.bypass_low_bytes <= 32 * KIB < seen.bypass_high_bytes


@pytest.mark.parametrize("seed", [1, 3])
def test_neighbours_on_plain_raid_groups_are_no_accelerator(seed: int, tmp_path: Path) -> None:
    bed = draw_bed(BedKind.RAID, seed)
    small = SmallFileWriter(files_per_second=8.0, sizes=(4 * KIB, 16 * KIB, 64 * KIB), keep=2000,
                            start_seconds=121.0, stop_seconds=185.0)
    found = found_in(bed.cluster, bed.placed([StreamingWriter(), small]), 240.0, tmp_path)
    assert found == [{}] * 8
