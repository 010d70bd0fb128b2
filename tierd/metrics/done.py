"""Metrics of acts: counts, verdicts, times."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tierd.act.gate import Gate
from tierd.act.undo import Undo
from tierd.cycle.loop import Daemon
from tierd.cycle.tally import Tally
from tierd.reasons import Reason


def done(gate: Gate) -> Iterator[Metric]:
    """Moves and default layouts, by outcome."""
    moves = CounterMetricFamily("tierd_moves", "Files taken from the queue, by outcome.", labels=("outcome",))
    defaults = CounterMetricFamily("tierd_default_layouts",
                                   "Default layouts of directories taken from the queue, by outcome.",
                                   labels=("outcome",))
    for (kind, result), count in sorted(gate.endings.counts.items()):
        (moves if kind == "migrate" else defaults).add_metric((result,), count)
    yield moves
    yield defaults
    yield CounterMetricFamily("tierd_moved_bytes", "Bytes of moved files.", gate.endings.moved_bytes)
    yield GaugeMetricFamily("tierd_waiting_moves", "Files queued for migration.", gate.waiting)


def judged(tally: Tally, undo: Undo) -> Iterator[Metric]:
    """Verdicts, refusals, undone acts, and gains."""
    verdicts = CounterMetricFamily("tierd_judgements", "Acts judged by the throughput of the victim, by verdict.",
                                   labels=("verdict",))
    for verdict in ("helped", "did-not-help", "harmed-others", "cannot-tell"):
        verdicts.add_metric((verdict,), tally.verdicts[verdict])
    yield verdicts
    refusals = CounterMetricFamily("tierd_refusals", "Refused plans and parts of plans, by reason.",
                                   labels=("reason",))
    for reason in Reason:
        refusals.add_metric((reason,), tally.refusals[reason])
    yield refusals
    yield CounterMetricFamily("tierd_undone", "Acts undone.", undo.undone)
    gained = GaugeMetricFamily("tierd_won_back_ratio",
                               "Share of the victim's lost throughput that the last judged act recovered.",
                               labels=("victim",))
    for victim, part in sorted(tally.gained.items()):
        gained.add_metric((victim,), part)
    yield gained
    expected = GaugeMetricFamily("tierd_expected_gain_bytes_per_second",
                                 "Throughput that the victim had lost, which the last judged act could recover at"
                                 " most.", labels=("victim",))
    measured = GaugeMetricFamily("tierd_measured_gain_bytes_per_second",
                                 "Throughput that the last judged act recovered for the victim.", labels=("victim",))
    for victim, (could, did) in sorted(tally.gains.items()):
        expected.add_metric((victim,), could)
        measured.add_metric((victim,), did)
    yield from (expected, measured)


def happened(daemon: Daemon, gate: Gate, undo: Undo) -> Metric:
    """Times of the last events. They start at 0, so that the first event is a change."""
    when = GaugeMetricFamily("tierd_last_event_timestamp_seconds",
                             "Unix time of the last event, by kind of event. 0 means there was none.",
                             labels=("event",))
    tally, last = daemon.tally, gate.endings.last
    for event, at in (
        ("finding", max(tally.found_at.values(), default=0.0)),
        ("default-layout", last.get(("set-default-layout", "done"), 0.0)),
        ("move", last.get(("migrate", "done"), 0.0)),
        ("dry-run", max(last.get((kind, "dry-run"), 0.0) for kind in ("set-default-layout", "migrate"))),
        ("failure", max(last.get((kind, "failed"), 0.0) for kind in ("set-default-layout", "migrate"))),
        ("undo", undo.undone_at),
    ):
        when.add_metric((event,), at)
    return when
