"""Metrics about slowed streams: how long their series live, what is usual, and what tierd does about them."""

from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from simulator.scenarios import events
from tests.tierd.simulated import NOISE, STREAM, World, world
from tierd.config.act import Mode
from tierd.config.settings import Settings
from tierd.daemon.metrics import MetricsContext, registry, stream_metrics
from tierd.daemon.status import snapshot_of

PAIR = {"victim": STREAM.job_id, "aggressor": NOISE.job_id}


def exposed(at: World) -> CollectorRegistry:
    """The metrics at each scrape, of the status that is published then."""
    return registry(at.daemon, MetricsContext(fs="lustre", cases=lambda: snapshot_of(at.daemon).cases))


def family(metrics: CollectorRegistry, name: str) -> Metric:
    (found,) = [metric for metric in metrics.collect() if metric.name == name]
    return found


def case(metrics: CollectorRegistry) -> dict[str, str]:
    (sample,) = family(metrics, "tierd_case_begun_timestamp_seconds").samples
    assert sample.value > 0
    return {name: sample.labels[name] for name in ("id", "victim", "aggressor", "state", "verdict", "reason")}


def test_a_case_is_exposed_with_its_state_until_after_its_verdict(tmp_path: Path) -> None:
    """The finding ends before the verdict, which closed the case: no scrape saw the verdict."""
    at = world(tmp_path)
    at.run_until_said("FOUND noisy-neighbour", before=80)
    finding = next(each for each in at.daemon.findings if each.kind == "noisy-neighbour")
    metrics, seen = exposed(at), list[tuple[str, str, int, bool]]()
    targets = {(s.labels["fs"], s.labels["target"]) for s in family(metrics, "tierd_interference_slowdown").samples}
    assert targets == {("lustre", target.removeprefix("lustre-")) for target in finding.targets}
    while family(metrics, "tierd_case_begun_timestamp_seconds").samples:
        shown, slow = case(metrics), family(metrics, "tierd_interference_slowdown").samples
        assert shown.items() >= (PAIR | {"id": "F1", "reason": ""}).items()
        seen.append((shown["state"], shown["verdict"], len(slow), bool(at.daemon.findings)))
        at.run(until=at.cluster.now + 5)
        assert at.cluster.now < 400, seen
    states = list(dict.fromkeys(state for state, *_ in seen))
    assert set(states) <= {"found", "planned", "acting", "judging", "kept", "closed"}
    assert states[-2:] == ["judging", "closed"]
    assert ("judging", "", 4, False) in seen, "the finding ended, the case was open"
    assert {row[1:3] for row in seen if row[0] == "closed"} == {("helped", 0)}
    verdict, slowdown = (metrics.get_sample_value(
        "tierd_last_event_timestamp_seconds", {"fs": "lustre", "event": event}) for event in ("verdict", "slowdown"))
    assert verdict > slowdown > 0  # type: ignore[operator]


@pytest.mark.parametrize("reason", ["dry-run", "paused", "mode"])
def test_a_case_has_the_reason_why_nothing_is_done(tmp_path: Path, reason: str) -> None:
    act = replace(Settings().act, mode=Mode.OBSERVE if reason == "mode" else Mode.FULL)
    at = world(tmp_path, dry_run=reason == "dry-run", settings=replace(Settings(), act=act))
    if reason == "paused":
        at.gate.operating_state.pause("checking disks")
    at.run_until_said("FOUND noisy-neighbour", before=80)
    at.run(until=at.cluster.now + 10)
    metrics = exposed(at)
    assert case(metrics)["reason"] == reason
    assert metrics.get_sample_value("tierd_observes_only", {"fs": "lustre"}) == (reason == "mode")
    of_now = "tierd_victim_bytes_per_second", "tierd_interference_slowdown", "lustre_target_utilisation_ratio"
    assert all(family(metrics, name).samples for name in of_now)
    at.daemon.log.fault("claim", "of this test")
    assert case(metrics)["reason"] == ("claim-held" if reason == "mode" else reason)
    events.exporter_unreachable(at.cluster)
    at.run(until=at.cluster.now + 20)
    assert not any(family(metrics, name).samples for name in of_now), "they would alert for as long as nothing is seen"


def test_tierd_learns_first_and_the_first_act_is_an_increase(tmp_path: Path) -> None:
    at = world(tmp_path)
    metrics = exposed(at)
    assert [metric.samples for metric in stream_metrics(at.daemon, ())] == [[], [], [], []]
    for name in ("tierd_moves_total", "tierd_default_layouts_total"):
        for outcome in ("done", "failed"):
            assert metrics.get_sample_value(name, {"fs": "lustre", "outcome": outcome}) == 0
    assert metrics.get_sample_value("tierd_learning", {"fs": "lustre"}) == 1
    at.run(until=60)
    assert metrics.get_sample_value("tierd_learning", {"fs": "lustre"}) == 0
    assert metrics.get_sample_value("tierd_observes_only", {"fs": "lustre"}) == 0
    assert {s.labels["jobid"] for s in family(metrics, "tierd_own_job_info").samples} == set(Settings().own_jobs)
