"""Metrics about slowed streams: how long their series live, what is usual, and what tierd does about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from tests.tierd.simulated import NOISE, STREAM, World, world
from tierd.config.act import Mode
from tierd.config.settings import Settings
from tierd.daemon.answers import Case
from tierd.daemon.metrics import MetricsContext, registry, stream_metrics
from tierd.daemon.states import State
from tierd.daemon.status import StatusPublisher
from tierd.model import Finding

PAIR = {"victim": STREAM.job_id, "aggressor": NOISE.job_id}


def exposed(at: World) -> CollectorRegistry:
    """The metrics at each scrape, of the status that is published then."""
    publisher = StatusPublisher()

    def cases() -> Sequence[Case]:
        publisher.publish(at.daemon)
        return publisher.view.cases

    return registry(at.daemon, MetricsContext(fs="lustre", cases=cases))


def family(metrics: CollectorRegistry, name: str) -> Metric:
    (found,) = [metric for metric in metrics.collect() if metric.name == name]
    return found


def case(metrics: CollectorRegistry) -> dict[str, str]:
    (sample,) = family(metrics, "tierd_case_begun_timestamp_seconds").samples
    assert sample.value > 0
    return {name: sample.labels[name] for name in ("id", "victim", "aggressor", "state", "verdict", "reason")}


def run_until_found(at: World, before: float = 80) -> Finding:
    while True:
        found = [f for f in at.daemon.findings if f.kind == "noisy-neighbour"]
        if found:
            return found[0]
        at.run(until=at.cluster.now + 5)
        assert at.cluster.now < before


def test_a_case_is_exposed_with_its_verdict_after_it_is_closed(tmp_path: Path) -> None:
    """The finding ends before the verdict, which closed the case: no scrape saw the verdict."""
    at = world(tmp_path)
    finding = run_until_found(at)
    states = []
    while at.cluster.now < 400:
        at.run(until=at.cluster.now + 5)
        samples = family(exposed(at), "tierd_case_begun_timestamp_seconds").samples
        if not samples and "closed" in states:
            break
        states += [sample.labels["state"] for sample in samples if not states or sample.labels["state"] != states[-1]]
        if states[-1] == "closed":
            assert case(exposed(at)) == {"id": "F1", "victim": finding.victim, "aggressor": finding.aggressor,
                                         "state": "closed", "verdict": "helped", "reason": ""}
    assert states[-2:] == ["judging", "closed"]
    assert family(exposed(at), "tierd_interference_slowdown").samples == []


def test_labels_are_those_of_the_exporter(tmp_path: Path) -> None:
    at = world(tmp_path, dry_run=True)
    run_until_found(at)
    slow = family(exposed(at), "tierd_interference_slowdown")
    assert {(s.labels["fs"], s.labels["target"]) for s in slow.samples} == {
        ("lustre", target.removeprefix("lustre-")) for target in run_until_found(at).targets}


def test_the_slowdown_is_exposed_until_the_remediation_is_closed(tmp_path: Path) -> None:
    at = world(tmp_path)
    run_until_found(at)
    metrics = exposed(at)
    at.run(until=at.cluster.now + 10)
    seen: list[tuple[bool, int, str]] = []
    while not any(state == "closed" for _, _, state in seen):
        at.run(until=at.cluster.now + 5)
        (remediation,) = at.daemon.cases
        slow = family(metrics, "tierd_interference_slowdown").samples
        seen.append((bool(at.daemon.findings), len(slow), str(remediation.state)))
        assert at.cluster.now < 300, seen
    assert any(not holds and count == 4 for holds, count, state in seen), "the finding ended, the case was open"
    assert seen[-1][1:] == (0, "closed")


def test_a_case_has_its_state_and_verdict(tmp_path: Path) -> None:
    at = world(tmp_path)
    finding = run_until_found(at)
    metrics = exposed(at)
    states = [case(metrics)]
    while at.cluster.now < 300 and any(c.state is not State.CLOSED for c in at.daemon.cases):
        at.run(until=at.cluster.now + 5)
        states += [case(metrics)] if at.daemon.cases[0].state is not State.CLOSED else []
    assert {entry["state"] for entry in states} <= {"found", "planned", "acting", "judging", "kept"}
    assert "judging" in {entry["state"] for entry in states}
    assert {entry["id"] for entry in states} == {f"F{at.daemon.log.known_number(finding)}"}
    assert {entry["reason"] for entry in states} == {""}
    at_verdict = metrics.get_sample_value("tierd_last_event_timestamp_seconds", {"fs": "lustre", "event": "verdict"})
    assert at_verdict is not None
    assert at_verdict > metrics.get_sample_value(  # type: ignore[operator]
        "tierd_last_event_timestamp_seconds", {"fs": "lustre", "event": "slowdown"}) > 0


def test_a_case_has_the_reason_why_nothing_is_done(tmp_path: Path) -> None:
    (tmp_path / "dry").mkdir()
    at = world(tmp_path / "dry", dry_run=True)
    run_until_found(at)
    at.run(until=at.cluster.now + 10)
    assert case(exposed(at))["reason"] == "dry-run"
    (tmp_path / "paused").mkdir()
    at = world(tmp_path / "paused")
    at.gate.operating_state.pause("checking disks")
    run_until_found(at)
    at.run(until=at.cluster.now + 10)
    assert case(exposed(at))["reason"] == "paused"
    observing = replace(Settings(), act=replace(Settings().act, mode=Mode.OBSERVE))
    (tmp_path / "observe").mkdir()
    at = world(tmp_path / "observe", settings=observing)
    run_until_found(at)
    at.run(until=at.cluster.now + 10)
    metrics = exposed(at)
    assert (case(metrics)["state"], case(metrics)["reason"]) == ("found", "mode")
    assert metrics.get_sample_value("tierd_observes_only", {"fs": "lustre"}) == 1


def test_tierd_learns_first(tmp_path: Path) -> None:
    at = world(tmp_path)
    metrics = exposed(at)
    assert metrics.get_sample_value("tierd_learning", {"fs": "lustre"}) == 1
    at.run(until=60)
    assert metrics.get_sample_value("tierd_learning", {"fs": "lustre"}) == 0
    assert metrics.get_sample_value("tierd_observes_only", {"fs": "lustre"}) == 0
    assert {s.labels["jobid"] for s in family(metrics, "tierd_own_job").samples} == set(Settings().own_jobs)


def test_without_findings_there_are_no_series(tmp_path: Path) -> None:
    at = world(tmp_path)
    assert [metric.samples for metric in stream_metrics(at.daemon, ())] == [[], [], [], []]


@pytest.mark.parametrize("name", ["tierd_moves_total", "tierd_default_layouts_total"])
def test_the_first_act_is_an_increase(tmp_path: Path, name: str) -> None:
    at = world(tmp_path)
    metrics = exposed(at)
    assert metrics.get_sample_value(name, {"fs": "lustre", "outcome": "done"}) == 0
    assert metrics.get_sample_value(name, {"fs": "lustre", "outcome": "failed"}) == 0
