"""Exporters of loaded servers: late, lost and doubled answers. Rates stay what they were, and the verdict is true."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.fluid.cluster import FluidCluster
from simulator.settings import ExporterLoad
from tests.tierd.daemon.test_lying_sources import lied_to
from tests.tierd.simulated import NOISE, STREAM, World, world
from tierd.model import Window
from tierd.sense.readings import Reading
from tierd.verify.judgement import bytes_per_second_by_job

PROMPT = 4.0
LOADS = {
    "late within a cycle": ExporterLoad(1.0, PROMPT),
    "later than a cycle": ExporterLoad(1.0, 9.0),
    "lost": ExporterLoad(1.0, PROMPT, lost_share=0.3),
    "doubled": ExporterLoad(1.0, PROMPT, doubled_share=0.3),
    "all of it": ExporterLoad(0.5, 8.0, lost_share=0.15, doubled_share=0.15),
}


def loaded(tmp_path: Path, load: ExporterLoad, jobs: Sequence[object] = (STREAM, NOISE)) -> World:
    at = world(tmp_path, jobs=jobs, model=FluidCluster)  # type: ignore[arg-type]
    at.cluster.exporter_load = load
    return at


@pytest.mark.parametrize("name", sorted(LOADS))
def test_no_rate_above_the_truth_and_a_true_verdict(tmp_path: Path, name: str) -> None:
    at = loaded(tmp_path, LOADS[name])
    windows: dict[float, Window] = {}
    while at.cluster.now < 240:
        at.run(at.cluster.now + 5)
        windows.update({seen.end: seen for seen in at.daemon.windows if seen.seconds < 25})
    alone = at.rate(STREAM.job_id, 5, NOISE.start_seconds) * 1e6
    rates = [rate for seen in windows.values() if (rate := bytes_per_second_by_job(seen).get(STREAM.job_id))]
    assert len(rates) > 15
    assert max(rates) <= 1.1 * alone
    assert any("FOUND noisy-neighbour" in sentence for sentence in at.said)
    (judged,) = [case.judgement for case in at.daemon.cases if case.judgement is not None]
    after = at.rate(STREAM.job_id, 120, 200) * 1e6
    assert judged.verdict == "helped"
    assert judged.after == pytest.approx(after, rel=0.1)


def test_an_answer_that_is_lost_makes_one_longer_window(tmp_path: Path) -> None:
    at = loaded(tmp_path, ExporterLoad(0.2, 0.4), (STREAM,))
    at.run(60)
    at.cluster.exporter_load = ExporterLoad(0.2, 0.4, lost_share=1.0)
    at.run(70)
    at.cluster.exporter_load = ExporterLoad(0.2, 0.4)
    at.run(90)
    spans = [max(seen.spans.values()) for seen in at.daemon.windows if seen.spans and seen.start > 40]
    assert max(spans) > 12
    rates = [bytes_per_second_by_job(seen)[STREAM.job_id] for seen in at.daemon.windows if seen.start > 40]
    assert max(rates) <= 1.05 * min(rates)


def without(target: str) -> Callable[[Reading, int], Reading]:
    """As while the exporter of one server does not answer."""
    return lambda reading, _: replace(
        reading, targets=frozenset(each for each in reading.targets if not each.endswith(target)),
        jobs={key: counters for key, counters in reading.jobs.items() if not key[0].endswith(target)})


def test_nothing_is_found_about_a_stream_that_uses_a_target_which_is_not_seen(tmp_path: Path) -> None:
    at, source = lied_to(tmp_path, STREAM, NOISE)
    at.run(until=28)
    source.lie = without("OST0003")
    at.run(until=100)
    assert not any("FOUND" in sentence for sentence in at.said)
    assert list(at.journal.entries()) == []
    assert any("OST0003: no new counters; tierd finds nothing there" in sentence for sentence in at.said)
    assert not any(sentence.startswith("blind") for sentence in at.said)
    assert "without lustre-OST0003, not seen since" in source.guard.age.state(at.cluster.epoch)
    source.lie = None
    at.run(until=240)
    assert any("FOUND" in sentence for sentence in at.said)


def test_a_finding_is_held_while_a_target_of_its_stream_is_not_seen(tmp_path: Path) -> None:
    at, source = lied_to(tmp_path, STREAM, NOISE)
    at.run_until_said("FOUND noisy-neighbour", before=100)
    source.lie = without("OST0003")
    at.run(at.cluster.now + 60)
    assert [(each.kind, each.held) for each in at.daemon.findings] == [("noisy-neighbour", True)]
    assert not any(sentence.startswith("ended") for sentence in at.said)
