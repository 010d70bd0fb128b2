"""A neighbour that was there before tierd: found by device time, acted on gently, and judged by the act."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.tierd.simulated import NOISE, STREAM, World, world
from tests.tierd.site import READ_AGAIN
from tierd.acts import ActKind, Outcome
from tierd.cli.control import device_time_lines
from tierd.daemon.loop import COSTS_STATE
from tierd.daemon.metrics import MetricsContext, registry
from tierd.daemon.status import device_time_rows
from tierd.detect.costs import costs_from_json
from tierd.policies.noisy_neighbour import NoisyNeighbourEvidence

ALWAYS_THERE = replace(NOISE, start_seconds=0.0)
BEFORE_TIERD = 60.0


def late(tmp_path: Path, *jobs: object) -> World:
    """A world whose jobs have been at work for a minute when tierd looks first."""
    at = world(tmp_path, jobs=(STREAM, *jobs))  # type: ignore[arg-type]
    at.cluster.advance(BEFORE_TIERD)
    return at


def test_a_neighbour_that_was_always_there_is_found_and_moved_off_the_disks(tmp_path: Path) -> None:
    at = late(tmp_path, ALWAYS_THERE)
    slow = at.rate(STREAM.job_id, 30, BEFORE_TIERD)
    sentence = at.run_until_said("FOUND noisy-neighbour", before=BEFORE_TIERD + 60)
    assert f"beside {NOISE.job_id} (by device time alone)" in sentence
    (finding,) = [f for f in at.daemon.findings if f.kind == "noisy-neighbour"]
    assert (finding.aggressor, finding.victim) == (NOISE.job_id, STREAM.job_id)
    assert isinstance(finding.evidence, NoisyNeighbourEvidence)
    assert finding.evidence.lacks_past
    at.run_until_said("SET default layout", before=BEFORE_TIERD + 70)
    at.run_until_said("KEPT: it helped", before=BEFORE_TIERD + 200)
    assert at.rate(STREAM.job_id, at.cluster.now - 30, at.cluster.now) > 1.2 * slow


def test_files_are_moved_only_after_the_default_layout_has_helped(tmp_path: Path) -> None:
    at = late(tmp_path, replace(READ_AGAIN, start_seconds=0.0, keep=3000))
    at.run_until_said("SET default layout", before=BEFORE_TIERD + 70)
    at.run_until_said("KEPT: it helped", before=BEFORE_TIERD + 200)
    judged = next(n for n, sentence in enumerate(at.said) if "KEPT: it helped" in sentence)
    assert not any("queued" in sentence for sentence in at.said[:judged])
    assert any("once the default layout has helped" in sentence for sentence in at.said[:judged])
    at.run(until=at.cluster.now + 60)
    assert list(at.journal.entries(Outcome.DONE))[-1].kind == ActKind.MIGRATE


def test_a_stream_alone_is_nobodys_victim(tmp_path: Path) -> None:
    at = late(tmp_path)
    at.run(until=BEFORE_TIERD + 60)
    assert at.daemon.findings == ()
    times = at.daemon.engine.device_time
    assert times
    assert all(time.device_time(STREAM.job_id).share == pytest.approx(1.0, abs=0.01) for time in times.values())


def test_costs_outlive_tierd(tmp_path: Path) -> None:
    at = late(tmp_path, ALWAYS_THERE)
    at.run(until=BEFORE_TIERD + 30)
    stored = costs_from_json(at.journal.state()[COSTS_STATE])
    assert stored["hdd"].seconds[1] > 0
    at.journal.close()
    again = world(tmp_path)
    again.run(until=15)
    assert again.daemon.engine.device_time, "from the first window on"


def test_metrics_and_status_show_who_takes_the_time(tmp_path: Path) -> None:
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
