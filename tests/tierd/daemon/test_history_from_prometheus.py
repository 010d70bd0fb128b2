"""A start in the middle of the noise: what Prometheus remembers of before is what the stream is compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from simulator.fluid.cluster import FluidCluster
from simulator.jobs import Job
from simulator.settings import recorded_test_bed
from tests.tierd.logged import logged
from tests.tierd.simulated import NOISE, STREAM
from tierd.config.settings import Settings
from tierd.daemon.node import AskHistory
from tierd.daemon.observe import MAX_TRIES, RETRY_SECONDS
from tierd.model import Window
from tierd.sense.http_client import SourceError
from tierd.sense.prometheus_history import LearnedHistory
from tierd.sense.readings import window
from tierd.simulation.world import World, parameter_files, wire
from tierd.text import evidence_text

JOBS = frozenset({STREAM.job_id, NOISE.job_id})
FEW_FILES = replace(NOISE, files_per_second=2.0)
"""For long simulations that judge nothing."""
Started = tuple[World, list[str]]


def started_late(folder: Path, history: Callable[[list[Window]], AskHistory | None], noise: Job = NOISE) -> Started:
    """tierd begins at 60 s, the noise at 30 s. Another source has the history."""
    cluster = FluidCluster(recorded_test_bed(), (STREAM, noise))
    read = parameter_files(cluster, folder / "before")
    readings = []
    for _ in range(6):
        cluster.advance(4.9)
        readings.append(read())
    before = [window(*pair) for pair in pairwise(readings)]
    cluster.advance(60 - cluster.now)
    said = logged()
    return wire(cluster, Settings(), folder, history=history(before)), said


def test_without_a_history_the_device_time_names_the_neighbour(tmp_path: Path) -> None:
    at, said = started_late(tmp_path, lambda before: None)
    at.run(300)
    (found,) = [words for words in said if words.startswith("FOUND")]
    assert NOISE.job_id in found
    assert "(by device time alone)" in found


def test_with_one_the_neighbour_is_found_at_once(tmp_path: Path) -> None:
    requested: list[float] = []

    def remembering(before: list[Window]) -> AskHistory:
        def ask(seen: Window, until: float) -> LearnedHistory:
            requested.append(until)
            assert {job for _, job in seen.loads} == JOBS
            return LearnedHistory(tuple(before), JOBS)
        return ask

    at, said = started_late(tmp_path, remembering)
    at.run(90)
    assert said[0] == "learned from Prometheus' history: 5 windows of 2 jobs"
    (found,) = [words for words in said if words.startswith("FOUND")]
    assert "(68%), compared with Prometheus' history beside" in found
    at.run(330)
    assert len(requested) == 1
    assert any(words.startswith("SET default layout of /proj/ingest") for words in said)
    (case,) = at.daemon.cases
    learned = case.finding.evidence.numbers()["learnt_windows"]
    assert learned == 5
    assert evidence_text("learnt_windows", learned) == "windows from Prometheus' history: 5"


def test_of_a_stream_nobody_remembers_device_time_tells(tmp_path: Path) -> None:
    """That it is not in what was remembered does not mean that it was not there."""
    at, said = started_late(
        tmp_path, lambda before: lambda seen, until: LearnedHistory(tuple(before), JOBS - {STREAM.job_id})
    )
    at.run(150)
    (found,) = [words for words in said if words.startswith("FOUND")]
    assert "(by device time alone)" in found


@pytest.mark.parametrize("answers", [1, MAX_TRIES + 3])
def test_a_silent_history_is_queried_a_limited_number_of_times(tmp_path: Path, answers: int) -> None:
    tries: list[float] = []

    def failing(before: list[Window]) -> AskHistory:
        def ask(seen: Window, until: float) -> LearnedHistory:
            tries.append(until)
            if len(tries) <= answers:
                raise SourceError("http://p:9090: refused")
            return LearnedHistory(tuple(before), JOBS)
        return ask

    at, said = started_late(tmp_path, failing, FEW_FILES)
    at.run(60 + (MAX_TRIES + 2) * RETRY_SECONDS)
    assert len(tries) == min(answers + 1, MAX_TRIES)
    assert len(set(tries)) == 1, "only history from before the start"
    assert said.count(
        "no history from Prometheus: http://p:9090: refused; tierd learns baselines from its own readings") == min(
        answers, MAX_TRIES)
