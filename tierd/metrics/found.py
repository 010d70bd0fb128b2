"""Metrics of findings: counts by kind, slowdown by target, throughput of victims."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tierd.config import Settings
from tierd.cycle.loop import Daemon
from tierd.policies import JUDGED
from tierd.verify.totals import throughput


def found(daemon: Daemon, settings: Settings) -> Iterator[Metric]:
    """Started and active findings by kind, and the slowdown of victims."""
    tally = daemon.tally
    found = CounterMetricFamily("tierd_findings", "Findings started, by kind.", labels=("kind",))
    for kind in kinds(settings):
        found.add_metric((kind,), tally.found[kind])
    yield found
    active = GaugeMetricFamily("tierd_active_findings", "Findings active now, by kind.", labels=("kind",))
    slowdown = GaugeMetricFamily("tierd_interference_slowdown",
                                 "Slowdown factor of the victim compared with its throughput before the aggressor"
                                 " started, by target.", labels=("target", "aggressor", "victim"))
    for kind in kinds(settings):
        active.add_metric((kind,), sum(f.kind == kind for f in daemon.findings))
    for finding in daemon.findings:
        for target in finding.targets:
            if finding.kind in JUDGED:
                slowdown.add_metric((target, finding.aggressor, finding.victim), finding.evidence["slowdown"])
    yield active
    yield slowdown


def kinds(settings: Settings) -> tuple[str, ...]:
    """All possible kinds of findings, so that each has a series before its first."""
    return ("noisy-neighbour", "shared-bandwidth", *(c.detector.name for c in settings.detect))


def streams(daemon: Daemon) -> Iterator[Metric]:
    """Throughput of streams in findings and cases: before the aggressor, and now."""
    pairs = {(f.victim, f.aggressor): f for f in (*(c.finding for c in daemon.cases),
                                                 *daemon.findings) if f.kind in JUDGED}
    usual = GaugeMetricFamily("tierd_victim_usual_bytes_per_second",
                              "Throughput of the victim before the aggressor started, which acts are expected to"
                              " restore.", labels=("victim", "aggressor"))
    now = GaugeMetricFamily("tierd_victim_bytes_per_second", "Throughput of the victim in the latest window.",
                            labels=("victim", "aggressor"))
    windows = daemon.windows
    for (victim, aggressor), finding in pairs.items():
        usual.add_metric((victim, aggressor), finding.evidence["victim_usual_bytes_per_second"])
        if windows:
            now.add_metric((victim, aggressor), throughput(windows[-1], victim))
    yield usual
    yield now
