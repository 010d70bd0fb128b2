"""The exporter's metrics about itself. They are few, so they are ordinary prometheus_client objects."""

from __future__ import annotations

import platform
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from exporter.jobs.lines import compiled as compiled_lines
from exporter.reading import reading_name
from exporter.scrape import Scraper
from httpserver.bodies import HeldBodies
from httpserver.config import WebConfigFile
from httpserver.connections import Connections
from httpserver.metrics import ConnectionMetrics, WebConfigMetrics
from lustre import __version__
from lustre.formats import compiled
from lustre.parameters import parse_device

PREFIX = "lustre_exporter_"


def _gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(PREFIX + name, text, labels=labels)


def _counter(name: str, text: str, *labels: str) -> CounterMetricFamily:
    return CounterMetricFamily(PREFIX + name, text, labels=labels)


class ExporterMetrics(Collector):
    """The state of the collectors, read from the scraper at each scrape."""

    def __init__(self, scraper: Scraper) -> None:
        self._scraper = scraper

    def collect(self) -> Iterator[Metric]:
        yield _info()
        yield from self._outcomes()
        yield from self._reads()
        yield self._readable_paths()
        yield self._unreadable()
        yield self._file_systems()
        yield GaugeMetricFamily(
            PREFIX + "lustre_loaded",
            "Whether Lustre is loaded on this node (1) or not (0). Without Lustre there are no Lustre metrics.",
            float(self._scraper.tree.loaded()),
        )

    def _outcomes(self) -> Iterator[Metric]:
        success = _gauge(
            "collector_success", "Whether the collector's last pass succeeded (1) or failed (0).", "collector")
        duration = _gauge("collector_duration_seconds", "Duration of the collector's last pass.", "collector")
        read_at = _gauge(
            "collector_read_timestamp_seconds",
            "Time at which the collector's last successful pass began, by the clock of this node.", "collector")
        chunks = _counter(
            "chunks", "Parameter texts that the exporter compared with the last scrape.", "collector")
        reused = _counter(
            "chunks_reused",
            "Parameter texts that were unchanged since the last scrape, so that the exporter reused their lines.",
            "collector")
        for name, outcome in self._scraper.outcomes.items():
            success.add_metric((name,), float(outcome.success))
            duration.add_metric((name,), outcome.seconds)
            if outcome.read_at is not None:
                read_at.add_metric((name,), outcome.read_at)
            if outcome.chunks:
                chunks.add_metric((name,), outcome.chunks)
                reused.add_metric((name,), outcome.chunks_reused)
        yield from (success, duration, read_at, chunks, reused)

    def _reads(self) -> Iterator[Metric]:
        read = _counter("read_bytes", "Bytes read from Lustre parameters.", "collector")
        skipped = _counter(
            "skipped_lines", "Lines of Lustre parameters skipped because they were not understood.", "collector",
            "parameter")
        implausible = _counter(
            "implausible_values",
            "Values left out of sums over targets because they grew faster than any target can work. The sums continue"
            " from the previous values.", "collector", "parameter")
        errors = _counter(
            "read_errors", "Failed reads of Lustre parameters. An empty parameter counts as failed.", "collector",
            "parameter", "error")
        for name, outcome in self._scraper.outcomes.items():
            read.add_metric((name,), outcome.reads.bytes_read)
            for parameter, lines in sorted(outcome.reads.skipped.copy().items()):
                skipped.add_metric((name, parameter), lines)
            for parameter, values in sorted(outcome.reads.implausible.copy().items()):
                implausible.add_metric((name, parameter), values)
            for (parameter, error), times in sorted(outcome.reads.errors.copy().items()):
                errors.add_metric((name, parameter, error), times)
        yield from (read, skipped, implausible, errors)

    def _unreadable(self) -> Metric:
        unreadable = _gauge(
            "target_unreadable",
            "Always 1. A read of this parameter has not returned. The device, named by file system and target, is left"
            " out until it does.", "fs", "target", "parameter")
        found = {
            (device.fsname, device.target, reading_name(reading))
            for reading in self._scraper.memory.parameters.hanging.all()
            for device in (parse_device(reading[1]),)
        }
        for labels in sorted(found):
            unreadable.add_metric(labels, 1)
        return unreadable

    def _file_systems(self) -> Metric:
        up = _gauge(
            "filesystem_up",
            "Whether the parameters of the file system on this node can be read (1), or a read of one has not returned"
            " (0).", "fs")
        parameters = self._scraper.memory.parameters
        hanging = {parse_device(device).fsname for _, device, _ in parameters.hanging.all()}
        for fs in sorted(parameters.file_systems() | hanging - {""}):
            up.add_metric((fs,), float(fs not in hanging))
        return up

    def _readable_paths(self) -> Metric:
        closed = self._scraper.tree.closed()
        readable = _gauge(
            "path_readable",
            "Whether the exporter may read Lustre's directory in the kernel file system (1) or not (0).", "path")
        for name in ("procfs", "sysfs", "debugfs"):
            readable.add_metric((name,), float(name not in closed))
        return readable


def _info() -> Metric:
    info = _gauge(
        "build_info",
        "Always 1. The labels name the exporter's release, its Python version, and whether its C modules were built.",
        "version", "python", "compiled")
    both = compiled.AVAILABLE and compiled_lines is not None
    info.add_metric((__version__, platform.python_version(), "yes" if both else "no"), 1)
    return info


def registry(
    scraper: Scraper,
    web_config: WebConfigFile | None = None,
    connections: Connections | None = None,
    bodies: HeldBodies | None = None,
    *,
    slim: bool = False,
    in_file: bool = False,
) -> CollectorRegistry:
    """Make the registry of the exporter's own metrics, including its process and its garbage collector.

    The slim profile has the state of the collectors and the process only. A file for node_exporter has nothing of the
    process: node_exporter shows ``process_…`` of its own, without labels, and reports an error for each one that
    comes twice.
    """
    own = CollectorRegistry()
    own.register(ExporterMetrics(scraper))
    if in_file:
        return own
    if slim:
        ProcessCollector(registry=own)
        return own
    if web_config is not None:
        own.register(WebConfigMetrics(web_config, PREFIX))
    if connections is not None and bodies is not None:
        own.register(ConnectionMetrics(connections, bodies, PREFIX))
    ProcessCollector(registry=own)
    GCCollector(registry=own)
    return own
