"""How tierd stands: its settings, its cycles, what holds acts back, and how much may be done."""

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
    """What metrics tell of things that stand beside the daemon."""

    fs: str = ""
    """Name of the file system, a label of all families; empty for none."""
    claim: Hold = field(default_factory=NoClaim)
    journal_bytes: Callable[[], int] = int
    positions: Callable[[], Mapping[str, int]] = dict
    """MDT to the last changelog record that was read."""
    under_way_seconds: Callable[[], Mapping[str, float]] = dict
    """Activity to how long its step under way has taken so far; 0 between two steps."""


def state(daemon: Daemon, gate: Gate, settings: Settings) -> Iterator[Metric]:
    """How tierd is set, whether it is at work, and its cycles."""
    tally = daemon.tally
    info = InfoMetricFamily("tierd_build", "Release of tierd.")
    info.add_metric((), {"version": __version__})
    yield info
    act = settings.act
    yield GaugeMetricFamily("tierd_dry_run", "1 while tierd changes nothing.", float(act.dry_run))
    yield GaugeMetricFamily("tierd_paused", "1 while acts are paused, by hand, by the pause file or by the "
                            "circuit breaker.",
                            float(bool(gate.stance.paused or gate.stance.stopped)))
    yield GaugeMetricFamily("tierd_held", "1 while nothing new is done: paused, or outside of the maintenance "
                            "windows.", float(bool(gate.stance.held)))
    yield GaugeMetricFamily("tierd_breaker_open", "1 while the circuit breaker keeps acts from being done.",
                            float(bool(gate.stance.paused) and gate.stance.tripped))
    yield GaugeMetricFamily("tierd_last_cycle_timestamp_seconds", "When the last cycle ended.", tally.last_cycle_at)
    yield GaugeMetricFamily("tierd_cycle_duration_seconds", "How long the last cycle took.", tally.cycle_seconds)
    yield CounterMetricFamily("tierd_cycles", "Cycles since the start.", tally.cycles)
    yield CounterMetricFamily("tierd_changelog_records", "Changelog records taken in.", tally.records)


def held(daemon: Daemon, gate: Gate, beside: Beside) -> Iterator[Metric]:
    """What holds acts back, and how much may be done."""
    yield GaugeMetricFamily("tierd_draining", "1 while nothing new is begun and the queue is finished.",
                            float(bool(gate.stance.draining)))
    yield GaugeMetricFamily("tierd_claim_generation", "Generation of the claim on the file system; 0 while it is "
                            "not held, as in a dry run.", beside.claim.generation)
    yield GaugeMetricFamily("tierd_claim_refused", "1 while another tierd holds the claim: this one may not act.",
                            float("claim" in daemon.faults))
    yield GaugeMetricFamily("tierd_other_mover", "1 while somebody else moves files under a job id of ours: "
                            "nothing is moved and no act begun.", float("mover" in daemon.faults))
    files, size_bytes = gate.budget_left
    yield GaugeMetricFamily("tierd_budget_files", "Files that may be moved at once; refilled by the limits.", files)
    yield GaugeMetricFamily("tierd_budget_bytes", "Bytes that may be moved at once; below 0 after a large file.",
                            size_bytes)
    yield GaugeMetricFamily("tierd_waiting_moves_bytes", "Bytes of the files in the queue.",
                            gate.waiting_bytes)
    yield GaugeMetricFamily("tierd_waiting_default_layouts", "Default layouts of directories that wait to be set.",
                            gate.waiting_defaults)
    under_way = GaugeMetricFamily("tierd_activity_under_way_seconds", "How long the step of an activity that is under "
                                  "way has taken so far; 0 between two steps.", labels=("activity",))
    for name, seconds in beside.under_way_seconds().items():
        under_way.add_metric((name,), seconds)
    yield under_way
    yield GaugeMetricFamily("tierd_journal_bytes", "Size of the journal.", beside.journal_bytes())
    yield GaugeMetricFamily("tierd_changelog_lag_seconds", "Age of the oldest changelog record of the last cycle, "
                            "when it was taken in.", daemon.tally.changelog_lag_seconds)
    position = GaugeMetricFamily("tierd_changelog_position", "Index of the last record taken in.", labels=("mdt",))
    for mdt, index in beside.positions().items():
        position.add_metric((mdt,), index)
    yield position
