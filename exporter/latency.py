"""From ``io_latency_stats`` to histograms: the same form on clients and below targets."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.bounds import INFINITY
from exporter.families import Histogram
from exporter.read_outs import Contribution
from exporter.sources import Render, Rendered
from lustre.formats import io_latency_stats
from lustre.formats.io_latency_stats import IoLatency
from lustre.formats.rpc_stats import LATENCY_UNIT_NSEC


def tables(latency: IoLatency) -> Iterator[tuple[bytes, tuple[float, ...], tuple[int, ...]]]:
    """Further label text, bounds and counts (not cumulative) of each direction and size."""
    for table in latency.tables:
        bounds = [round(upper * LATENCY_UNIT_NSEC / 1e9, 12) for upper in table.uppers]
        if table.overflow:
            bounds[-1] = INFINITY
        yield b',direction="%b",size="%d"' % (table.direction, table.size_bytes), tuple(bounds), table.counts


class LatencyRenderer:
    """Makes renderers of one family, for files that are shown one by one."""

    def __init__(self, family: Histogram) -> None:
        self._family = family

    def __call__(self, labels: bytes) -> Render:
        """The renderer of the device with these labels."""

        def render(data: bytes) -> Rendered:
            latency = io_latency_stats.parse(data)
            found = [self._family.buckets(labels + extra, bounds, counts) for extra, bounds, counts in tables(latency)]
            return Rendered(tuple([(self._family, chunk) for chunk in found]), latency.skipped)

        return render


class LatencyOut:
    """Reads out files that are summed."""

    def __init__(self, family: Histogram) -> None:
        self._family = family

    def __call__(self, data: bytes, _: Contribution | None = None) -> Contribution:
        """What one file adds to the sums."""
        latency = io_latency_stats.parse(data)
        rows = [
            ((self._family, extra, upper), count)
            for extra, bounds, counts in tables(latency)
            for upper, count in zip(bounds, counts, strict=True)
        ]
        keys, values = [key for key, _ in rows], [count for _, count in rows]
        return Contribution(latency.start_time, keys, values, (), latency.skipped)
