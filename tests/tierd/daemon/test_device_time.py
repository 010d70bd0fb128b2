"""A neighbour that was there before tierd: found by device time, acted on gently, and judged by the act."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from simulator.fluid.cluster import FluidCluster
from simulator.jobs import Job
from simulator.settings import recorded_test_bed
from tests.tierd.logged import logged
from tests.tierd.simulated import NOISE, STREAM, World, world
from tests.tierd.site import READ_AGAIN
from tierd.acts import ActKind, Outcome
from tierd.cli.control import device_time_lines
from tierd.config.settings import Settings
from tierd.daemon.loop import COSTS_STATE
from tierd.daemon.metrics import MetricsContext, registry
from tierd.daemon.node import AskHistory
from tierd.daemon.observe import MAX_TRIES, RETRY_SECONDS
from tierd.daemon.status import device_time_rows
from tierd.detect.costs import costs_from_json
from tierd.model import Window
from tierd.sense.http_client import SourceError
from tierd.sense.prometheus_history import LearnedHistory
from tierd.sense.readings import window
from tierd.simulation.world import World as Wired
from tierd.simulation.world import parameter_files, wire
from tierd.text import evidence_text

ALWAYS_THERE = replace(NOISE, start_seconds=0.0)
BEFORE_TIERD = 60.0


def late(tmp_path: Path, *jobs: object) -> World:
    """A world whose jobs have been at work for a minute when tierd looks first."""
    at = world(tmp_path, jobs=(STREAM, *jobs))  # type: ignore[arg-type]
    at.cluster.advance(BEFORE_TIERD)
    return at


def test_files_are_moved_only_after_the_default_layout_has_helped(tmp_path: Path) -> None:
    at = late(tmp_path, replace(READ_AGAIN, start_seconds=0.0, keep=3000))
    at.run_until_said("SET default layout", before=BEFORE_TIERD + 70)
    at.run_until_said("KEPT: it helped", before=BEFORE_TIERD + 200)
    judged = next(n for n, sentence in enumerate(at.said) if "KEPT: it helped" in sentence)
    assert not any("queued" in sentence for sentence in at.said[:judged])
    assert any("before a default layout has helped" in sentence for sentence in at.said[:judged])
    at.run(until=at.cluster.now + 60)
    assert list(at.journal.entries(Outcome.DONE))[-1].kind == ActKind.MIGRATE


def test_a_stream_alone_is_nobodys_victim(tmp_path: Path) -> None:
    at = late(tmp_path)
    at.run(until=BEFORE_TIERD + 60)
    assert (at.daemon.findings, at.said) == ((), [])
    times = at.daemon.engine.device_time
    assert times
    assert all(time.device_time(STREAM.job_id).share == pytest.approx(1.0, abs=0.01) for time in times.values())


def test_metrics_and_status_show_who_takes_the_time_and_costs_outlive_tierd(tmp_path: Path) -> None:
    at = late(tmp_path, ALWAYS_THERE)
    at.run(until=BEFORE_TIERD + 30)
    metrics = registry(at.daemon, MetricsContext(fs="lustre"))

    def value(name: str, **labels: str) -> float | None:
        return metrics.get_sample_value(name, {"fs": "lustre", "target": "OST0002", **labels})

    shares = [value("lustre_target_device_time_share", jobid=job.job_id) for job in (STREAM, ALWAYS_THERE)]
    assert sum(share or 0.0 for share in shares) == pytest.approx(1.0, abs=0.02)
    assert (value("lustre_target_utilisation_ratio") or 0.0) == pytest.approx(1.0, abs=0.2)
    shown = "\n".join(device_time_lines(device_time_rows(at.daemon.engine.device_time)))
    assert f"# {STREAM.job_id} {100 * (shares[0] or 0.0):.0f}%" in shown
    stored = costs_from_json(at.journal.state()[COSTS_STATE])
    assert stored["hdd"].seconds[1] > 0
    at.journal.close()
    again = world(tmp_path)
    again.run(until=15)
    assert again.daemon.engine.device_time, "from the first window on"


# A start in the middle of the noise: what Prometheus remembers of before is what the stream is compared with


JOBS = frozenset({STREAM.job_id, NOISE.job_id})
FEW_FILES = replace(NOISE, files_per_second=2.0)
"""For long simulations that judge nothing."""
Started = tuple[Wired, list[str]]


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


def test_with_history_the_neighbour_is_found_at_once(tmp_path: Path) -> None:
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
    assert "(67%), alongside mdt_small.1001, compared with its earlier throughput;" in found
    at.run(330)
    assert len(requested) == 1
    assert any(words.startswith("SET default layout of /proj/ingest") for words in said)
    (case,) = at.daemon.store
    learned = case.finding.evidence.numbers()["learnt_windows"]
    assert learned == 5
    assert evidence_text("learnt_windows", learned) == "windows from Prometheus' history: 5"


def test_of_a_stream_that_prometheus_does_not_know_its_own_counters_tell(tmp_path: Path) -> None:
    at, said = started_late(
        tmp_path, lambda before: lambda seen, until: LearnedHistory(tuple(before), JOBS - {STREAM.job_id})
    )
    at.run(150)
    (found,) = [words for words in said if words.startswith("FOUND")]
    assert "(65%), alongside mdt_small.1001, compared with its earlier throughput;" in found


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
