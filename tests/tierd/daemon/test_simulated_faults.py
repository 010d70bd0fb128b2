"""Faults of a simulated cluster, as tierd sees them in parameter files, changelogs and the port."""

from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.scenarios.events import Event, schedule
from tests.tierd.simulated import NOISE, STREAM, Faulty, world
from tierd.sense.readings import Reading
from tierd.sense.sources import LiveSource


@pytest.mark.parametrize("model", [Cluster, FluidCluster], ids=["events", "flows"])
@pytest.mark.parametrize(("name", "says"), [("degraded", "is degraded"), ("recovery", "is in recovery")])
def test_a_target_that_is_not_well_takes_no_files(tmp_path: Path, model: type[Cluster], name: str, says: str) -> None:
    """Moves onto one in recovery waited for it, failed, and opened the circuit breaker."""
    at = world(tmp_path, model=model)
    schedule([Event(10, name, {"target": "OST0003", **({"seconds": 60} if name == "recovery" else {})})], at.cluster)
    at.run(20)
    assert at.gate.queue.closed == {"lustre-OST0003": says}


@pytest.mark.parametrize("seconds", [7200.0, -7200.0, -60.0])
def test_after_a_clock_was_set_a_neighbour_is_found_by_what_was_seen_before(tmp_path: Path, seconds: float) -> None:
    """What a stream gets alone does not change with the clock."""
    for begins in (30.0, 45.0):
        (folder := tmp_path / str(begins)).mkdir()
        at = world(folder, (STREAM, replace(NOISE, start_seconds=begins)))
        schedule([Event(20, "clock_jump", {"seconds": seconds})], at.cluster)
        first = at.run_until_said("FOUND", before=begins + 150)
        (reported,) = [words for words in at.said if "tierd may have to learn baselines again" in words]
        assert reported.startswith("7205 s passed between two readings" if seconds > 0 else "the clock went back by ")
        assert f"since {NOISE.job_id} started" in first


def test_a_clock_that_was_set_ahead_shows_no_loss(tmp_path: Path) -> None:
    """What was done in 5 s was compared with hours, and the stream seemed to have lost a tenth since."""
    at = world(tmp_path, (STREAM, replace(NOISE, start_seconds=0.0, files_per_second=2.0)))
    schedule([Event(60, "clock_jump", {"seconds": 7200.0})], at.cluster)
    at.run(120)
    assert not any("FOUND" in words for words in at.said)


def test_an_act_before_the_clock_was_set_back_is_judged(tmp_path: Path) -> None:
    at = world(tmp_path)
    at.run_until_said("SET ", before=100)
    at.cluster.epoch_ns -= 86400 * 10**9
    at.run(at.cluster.now + 200)
    assert any(words.startswith("KEPT: the effect cannot be judged: what the stream lost, or has regained, ")
               for words in at.said), "nothing before the act can be compared"


def test_an_act_whose_effect_nobody_saw_is_not_said_to_be_of_a_job_that_ended(tmp_path: Path) -> None:
    sources: list[Faulty] = []

    def hook(near: LiveSource, _: object) -> LiveSource:
        sources.append(Faulty(near))
        return sources[0]

    at = world(tmp_path, hook=hook)
    at.run_until_said("SET ", before=100)
    sources[0].fault = OSError("no exporter answers")
    at.run(at.cluster.now + 300)
    sources[0].fault = None
    assert "or not seen. " in at.run_until_said("KEPT: the effect cannot be judged", before=450)


def test_late_readings_are_no_clock_that_was_set_back(tmp_path: Path) -> None:
    """Samples of Prometheus are some time old, and tierd acts with its own clock."""
    past = deque[Reading](maxlen=17)

    class Late(LiveSource):
        def reading(self) -> Reading:
            past.append(super().reading())
            return past[0]

    at = world(tmp_path, hook=lambda near, _: Late(near.reading, near.follower))
    at.run_until_said("SET ", before=300)
    assert past[-1].time - past[0].time == pytest.approx(80, abs=1)
    at.run(at.cluster.now + 140)
    assert not any(words.startswith(("KEPT", "UNDOING")) for words in at.said), "it is too early"
    at.run(at.cluster.now + 100)
    assert any(words.startswith("KEPT: it helped") for words in at.said)
