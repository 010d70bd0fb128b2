"""Latency of I/O by size (``io_latency_stats``), for bulk RPCs (``osc.*``) and for disks (``osd-*.*``).

Both collectors are off by default, because they have some hundred series per pool or target and read one more file per
target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from exporter.capacity import OSD_KINDS
from exporter.collector import Collect, Collector, Context, all_of, reads
from exporter.connections import OscClients, group_of, labels_of
from exporter.exposition import INFINITY, Histogram, MetricsPage, doubling
from exporter.node import Node
from exporter.rpc_stats import LATENCY_UNIT_SECONDS
from exporter.sources import Render, Rendered, Source
from exporter.totals import Contribution, MountPool, SummedParameter
from lustre.formats import io_latency_stats
from lustre.formats.io_latency_stats import IoLatency
from lustre.formats.rpc_stats import LATENCY_UNIT_NSEC


def latency_tables(latency: IoLatency) -> Iterator[tuple[bytes, tuple[float, ...], tuple[int, ...]]]:
    """Yield further label text, bounds and counts (not cumulative) of each direction and size."""
    for table in latency.tables:
        bounds = [round(upper * LATENCY_UNIT_NSEC / 1e9, 12) for upper in table.uppers]
        if table.overflow:
            bounds[-1] = INFINITY
        yield b',direction="%b",size="%d"' % (table.direction, table.size_bytes), tuple(bounds), table.counts


def renderer(family: Histogram) -> Callable[[bytes], Render]:
    """Make the renderers of one family, for files with their own series."""

    def of_device(labels: bytes) -> Render:
        def render(data: bytes) -> Rendered:
            latency = io_latency_stats.parse(data)
            found = [
                family.buckets(labels + extra, bounds, counts) for extra, bounds, counts in latency_tables(latency)
            ]
            return Rendered(tuple([(family, chunk) for chunk in found]), latency.skipped)

        return render

    return of_device


OSC_LATENCY = Histogram(
    "lustre_osc_io_latency_seconds",
    "Bulk RPCs to object servers, by size and time until the reply. The label size is the lower bound in bytes, the"
    " upper bound is twice that.", ("fs", "mount", "pool", "direction", "size"), "osc.*.io_latency_stats", "2.17+",
    doubling(1, 1 << 24, LATENCY_UNIT_SECONDS))


def contribution(data: bytes, _: Contribution | None = None) -> Contribution:
    """Read the contribution of a file that is summed."""
    latency = io_latency_stats.parse(data)
    rows = [
        ((OSC_LATENCY, extra, upper), count)
        for extra, bounds, counts in latency_tables(latency)
        for upper, count in zip(bounds, counts, strict=True)
    ]
    return Contribution(latency.start_time, [key for key, _ in rows], [count for _, count in rows], (), latency.skipped)


def start_osc(context: Context) -> Collect:
    return _per_target() if context.settings.osc_per_target else _summed()


def _summed() -> Collect:
    groups = OscClients(group_of)
    unchanging = io_latency_stats.after_header
    latency: SummedParameter[MountPool] = SummedParameter("osc", "io_latency_stats", contribution, unchanging)

    def collect(node: Node, page: MetricsPage) -> None:
        latency.refresh(node, groups.of(node))
        latency.put(page)

    return collect


def _per_target() -> Collect:
    labelled = OscClients(labels_of)
    source = Source("osc", "io_latency_stats", renderer(OSC_LATENCY), io_latency_stats.after_header)

    def collect(node: Node, page: MetricsPage) -> None:
        source.collect(node, page, labelled.of(node).items())

    return collect


OSC_COLLECTOR = Collector(
    "osc_latency", "reply times of object servers by request size", (OSC_LATENCY,), start_osc, default=False)
OSD_LATENCY = Histogram(
    "lustre_osd_io_latency_seconds",
    "Bulk requests, by size and duration of their disk I/O. The label size is the lower bound in bytes, the upper"
    " bound is twice that.", ("fs", "target", "direction", "size"), "osd-*.*.io_latency_stats", "2.17+",
    doubling(1, 1 << 24, LATENCY_UNIT_SECONDS))


OSD_COLLECTOR = Collector(
    "osd_latency", "duration of disk I/O by size", (OSD_LATENCY,), default=False, start=all_of(*[
        reads(kind, "io_latency_stats", lambda: renderer(OSD_LATENCY), part=io_latency_stats.after_header)
        for kind in OSD_KINDS]))
