"""Faults of a simulated cluster, as tierd sees them in parameter files, changelogs and the port."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.scenarios.events import Event, schedule
from simulator.settings import recorded_test_bed
from tests.tierd.logged import logged
from tests.tierd.simulated import NOISE, STREAM
from tierd.config.settings import Settings
from tierd.sense.changelogs.tallies import Tally
from tierd.sense.readings import Reading
from tierd.sense.sources import LiveSource
from tierd.simulation.world import World, wire


@pytest.fixture(params=[Cluster, FluidCluster], ids=["events", "flows"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[World, list[str]]]:
    said = logged()
    at = wire(request.param(recorded_test_bed(), (STREAM, NOISE)), Settings(), tmp_path)
    yield at, said
    at.journal.close()


@pytest.mark.parametrize(("event", "target", "condition"), [
    (Event(10, "degraded", {"target": "OST0003"}), "lustre-OST0003", "degraded"),
    (Event(10, "recovery", {"target": "OST0003", "seconds": 60}), "lustre-OST0003", "in recovery"),
    (Event(10, "recovery", {"target": "MDT0000", "seconds": 60}), "lustre-MDT0000", "in recovery"),
    (Event(10, "full", {"target": "OST0000", "free_percent": 1.0}), "lustre-OST0000", "full"),
])  # fmt: skip
def test_targets_that_are_not_well_are_known(
    world: tuple[World, list[str]], event: Event, target: str, condition: str
) -> None:
    at, _ = world
    schedule([event], at.cluster)
    at.cluster.advance(9)
    assert target not in at.source.reading().conditions
    at.cluster.advance(3)
    assert at.source.reading().conditions == {target: condition}


@pytest.mark.parametrize(("name", "says"), [("degraded", "is degraded"), ("recovery", "is in recovery")])
def test_a_target_that_is_not_well_takes_no_files(world: tuple[World, list[str]], name: str, says: str) -> None:
    """Moves onto one in recovery waited for it, failed, and opened the circuit breaker."""
    at, _ = world
    schedule([Event(10, name, {"target": "OST0003", **({"seconds": 60} if name == "recovery" else {})})], at.cluster)
    at.run(20)
    assert at.gate.queue.closed == {"lustre-OST0003": says}


def test_clocks_that_are_set_make_no_noise(world: tuple[World, list[str]]) -> None:
    at, said = world
    schedule([Event(20, "clock_jump", {"seconds": 7200.0})], at.cluster)
    at.run(30)
    assert not [words for words in said if words.startswith("FOUND")]
    at.run(150)
    assert all(entry.place.startswith("/proj/ingest") for entry in at.journal.entries())


@pytest.mark.parametrize("seconds", [7200.0, -7200.0, -60.0])
def test_after_a_clock_was_set_a_neighbour_is_found_by_what_was_seen_before(tmp_path: Path, seconds: float) -> None:
    """What a stream gets alone does not change with the clock."""
    for begins in (30.0, 45.0):
        folder = tmp_path / str(begins)
        folder.mkdir()
        said = logged()
        jobs = (STREAM, replace(NOISE, start_seconds=begins))
        at = wire(FluidCluster(recorded_test_bed(), jobs), Settings(), folder)
        schedule([Event(20, "clock_jump", {"seconds": seconds})], at.cluster)
        while not any(words.startswith("FOUND") for words in said):
            at.run(at.cluster.now + 5)
            assert at.cluster.now < begins + 150
        (reported,) = [words for words in said if "tierd may have to learn baselines again" in words]
        assert reported.startswith("7205 s passed between two readings" if seconds > 0 else "the clock went back by ")
        first = next(words for words in said if words.startswith("FOUND"))
        assert f"since {NOISE.job_id} started" in first
        at.journal.close()


def test_an_act_before_the_clock_was_set_back_is_judged(tmp_path: Path) -> None:
    said = logged()
    at = wire(FluidCluster(recorded_test_bed(), (STREAM, NOISE)), Settings(), tmp_path)
    while not any(words.startswith("SET") for words in said):
        at.run(at.cluster.now + 5)
    at.cluster.epoch_ns -= 86400 * 10**9
    at.run(at.cluster.now + 200)
    assert any(words.startswith("KEPT: the effect cannot be judged: what the stream lost, or has regained, ")
               for words in said), "nothing before the act can be compared"
    at.journal.close()


def test_late_readings_are_no_clock_that_was_set_back(tmp_path: Path) -> None:
    """Samples of Prometheus are some time old, and tierd acts with its own clock."""
    past = deque[Reading](maxlen=17)

    class Late(LiveSource):
        def reading(self) -> Reading:
            past.append(super().reading())
            return past[0]

    said = logged()
    at = wire(FluidCluster(recorded_test_bed(), (STREAM, NOISE)), Settings(), tmp_path,
              hook=lambda near, _: Late(near.reading, near.follower))
    while not any(words.startswith("SET") for words in said):
        at.run(at.cluster.now + 5)
    assert past[-1].time - past[0].time == pytest.approx(80, abs=1)
    at.run(at.cluster.now + 140)
    assert not any(words.startswith(("KEPT", "UNDOING")) for words in said), "it is too early"
    at.run(at.cluster.now + 100)
    assert any(words.startswith("KEPT: it helped") for words in said)
    at.journal.close()


def test_a_user_who_moves_files_is_seen_in_the_changelog(world: tuple[World, list[str]]) -> None:
    at, _ = world
    schedule([Event(36, "mover", {"directory": "/proj/ingest", "pool": "flash", "files": 5})], at.cluster)
    at.cluster.advance(45)
    assert b"lfs.1500" in {record.job_id for records in at.source.records()
                             if not isinstance(records, Tally) for record in records}
