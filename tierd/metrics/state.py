"""Metrics of tierd's state: settings, cycles, holds, budget, queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric

from lustre import __version__
from tierd.act.gate import Gate
from tierd.act.hold import Hold, NoClaim
from tierd.config import Settings
from tierd.cycle.loop import Daemon


@dataclass(frozen=True)
class Beside:
    """State of objects outside the daemon, for its metrics."""

    fs: str = ""
    """Name of the file system, a label of all families. Empty means no label."""
    claim: Hold = field(default_factory=NoClaim)
    journal_bytes: Callable[[], int] = int
    positions: Callable[[], Mapping[str, int]] = dict
    """Last changelog record read, by MDT."""
    under_way_seconds: Callable[[], Mapping[str, float]] = dict
    """Time of the current step by activity, in seconds; 0 between two steps."""


def state(daemon: Daemon, gate: Gate, settings: Settings) -> Iterator[Metric]:
    """Settings, holds and cycles."""
    tally = daemon.tally
    info = InfoMetricFamily("tierd_build", "Always 1. The label names the release of tierd.")
    info.add_metric((), {"version": __version__})
    yield info
    act = settings.act
    yield GaugeMetricFamily("tierd_dry_run", "Whether tierd is in dry run and changes nothing (1) or acts (0).",
                            float(act.dry_run))
    yield GaugeMetricFamily("tierd_paused",
                            "Whether acts are paused by an administrator, the pause file or the circuit breaker (1)"
                            " or not (0).", float(bool(gate.stance.paused or gate.stance.stopped)))
    yield GaugeMetricFamily("tierd_held",
                            "Whether tierd starts no new acts (1), because it is paused or outside the maintenance"
                            " windows, or may start them (0).", float(bool(gate.stance.held)))
    yield GaugeMetricFamily("tierd_breaker_open",
                            "Whether the circuit breaker is open and blocks acts (1) or closed (0).",
                            float(bool(gate.stance.paused) and gate.stance.tripped))
    yield GaugeMetricFamily("tierd_last_cycle_timestamp_seconds", "Unix time when the last cycle ended.",
                            tally.last_cycle_at)
    yield GaugeMetricFamily("tierd_cycle_duration_seconds", "Duration of the last cycle.", tally.cycle_seconds)
    yield CounterMetricFamily("tierd_cycles", "Cycles completed since tierd started.", tally.cycles)
    yield CounterMetricFamily("tierd_changelog_records", "Changelog records read.", tally.records)


def held(daemon: Daemon, gate: Gate, beside: Beside) -> Iterator[Metric]:
    """Claims, budget, queue, activities and changelog positions."""
    yield GaugeMetricFamily("tierd_draining",
                            "Whether tierd is draining (1) or not (0). While draining it finishes the queue and"
                            " starts nothing new.", float(bool(gate.stance.draining)))
    yield GaugeMetricFamily("tierd_claim_generation",
                            "Generation of the claim on the file system. 0 means that tierd holds no claim, as in a"
                            " dry run.", beside.claim.generation)
    yield GaugeMetricFamily("tierd_claim_refused",
                            "Whether another tierd holds the claim, so that this one may not act (1), or not (0).",
                            float("claim" in daemon.faults))
    yield GaugeMetricFamily("tierd_other_mover",
                            "Whether another program moves files under a job id of tierd (1) or not (0). tierd then"
                            " moves no files and starts no acts.", float("mover" in daemon.faults))
    files, size_bytes = gate.budget_left
    yield GaugeMetricFamily("tierd_budget_files",
                            "Files that may be moved now without waiting. The configured limits refill this budget.",
                            files)
    yield GaugeMetricFamily("tierd_budget_bytes",
                            "Bytes that may be moved now without waiting. Negative after a large file.", size_bytes)
    yield GaugeMetricFamily("tierd_waiting_moves_bytes", "Bytes of the files queued for migration.",
                            gate.waiting_bytes)
    yield GaugeMetricFamily("tierd_waiting_default_layouts", "Default layouts of directories queued to be set.",
                            gate.waiting_defaults)
    under_way = GaugeMetricFamily("tierd_activity_under_way_seconds",
                                  "Time that the current step of the activity has taken so far. 0 between two steps.",
                                  labels=("activity",))
    for name, seconds in beside.under_way_seconds().items():
        under_way.add_metric((name,), seconds)
    yield under_way
    yield GaugeMetricFamily("tierd_journal_bytes", "Size of the journal.", beside.journal_bytes())
    yield GaugeMetricFamily("tierd_changelog_lag_seconds",
                            "Age of the oldest changelog record read in the last cycle, at the time it was read.",
                            daemon.tally.changelog_lag_seconds)
    position = GaugeMetricFamily("tierd_changelog_position", "Index of the last changelog record read, by MDT.",
                                 labels=("mdt",))
    for mdt, index in beside.positions().items():
        position.add_metric((mdt,), index)
    yield position
