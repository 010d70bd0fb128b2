"""From ``rpc_stats`` to samples: requests under way now, and histograms of those sent.

The same form for object storage clients and metadata clients; the families differ by name only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from exporter.families import INFINITY, Family, Gauge, Histogram, cumulative
from exporter.sources import Rendered
from lustre.text import histogram
from lustre.text.rpc_reader import Reader
from lustre.text.rpc_stats import LATENCY_UNIT_NSEC, RpcStats

BucketKey = tuple[Histogram, bytes, float]
"""A family, further label text (the direction), the bucket's bound."""

READ, WRITE = b',direction="read"', b',direction="write"'


@dataclass(frozen=True, slots=True)
class RpcFamilies:
    """The families of one kind of client."""

    in_flight: Gauge
    pending_pages: Gauge
    at_send: Histogram
    pages: Histogram
    direct_in_flight: Gauge | None = None
    latency: Histogram | None = None
    modify_in_flight: Gauge | None = None
    modify_at_send: Histogram | None = None

    def __iter__(self) -> Iterator[Family]:
        every = (self.in_flight, self.pending_pages, self.direct_in_flight, self.at_send, self.pages, self.latency,
                 self.modify_in_flight, self.modify_at_send)  # fmt: skip
        return iter([family for family in every if family is not None])

    def gauges(self, rpcs: RpcStats) -> Iterator[tuple[Gauge, bytes, int]]:
        """Family, further label text and value of what is the case now."""
        for family, extra, value in (
            (self.in_flight, READ, rpcs.read_in_flight),
            (self.in_flight, WRITE, rpcs.write_in_flight),
            (self.direct_in_flight, b"", rpcs.dio_in_flight),
            (self.pending_pages, READ, rpcs.pending_read_pages),
            (self.pending_pages, WRITE, rpcs.pending_write_pages),
            (self.modify_in_flight, b"", rpcs.modify_in_flight),
        ):
            if family is not None and value is not None:
                yield family, extra, value

    def tables(self, rpcs: RpcStats) -> Iterator[tuple[Histogram, bytes, tuple[float, ...], tuple[int, ...]]]:
        """Family, further label text, bounds and counts (not cumulative) of each histogram."""
        for family, table, unit in (
            (self.at_send, rpcs.rpcs_in_flight, 1.0),
            (self.pages, rpcs.pages_per_rpc, 1.0),
            (self.latency, rpcs.latency_usec, LATENCY_UNIT_NSEC / 1e9),
            (self.modify_at_send, rpcs.modify_rpcs_in_flight, 1.0),
        ):
            if family is None or table is None or not table.uppers:
                continue
            bounds = bounds_of(table, unit)
            directions = (READ, WRITE) if len(table.columns) > 1 else (b"",)
            for extra, counts in zip(directions, table.columns, strict=True):
                yield family, extra, bounds, counts


def bounds_of(table: histogram.Histogram, unit: float = 1.0) -> tuple[float, ...]:
    """The bounds of a kernel table; its very last bucket counts all that is larger too, so it has none."""
    return _bounds(table.uppers, table.overflow, unit)


@lru_cache(maxsize=1024)
def _bounds(uppers: tuple[int, ...], overflow: bool, unit: float) -> tuple[float, ...]:
    bounds = [upper if unit == 1.0 else round(upper * unit, 12) for upper in uppers]
    if overflow:
        bounds[-1] = INFINITY
    return tuple(bounds)


class RpcRenderer:
    """Makes renderers for devices whose histograms are shown one by one."""

    def __init__(self, families: RpcFamilies) -> None:
        self._families = families
        self._reader = Reader()

    def __call__(self, labels: bytes) -> RpcsOfDevice:
        """The renderer of the device with these labels."""
        return RpcsOfDevice(self._families, self._reader, labels)


class RpcsOfDevice:
    """Renders one device's ``rpc_stats``; keeps a template per histogram until it gets another bucket."""

    __slots__ = ("_families", "_gauges", "_labels", "_reader", "_templates")

    def __init__(self, families: RpcFamilies, reader: Reader, labels: bytes) -> None:
        self._families = families
        self._reader = reader
        self._labels = labels
        self._gauges: dict[tuple[Gauge, bytes], bytes] = {}
        self._templates: dict[tuple[Histogram, bytes], tuple[tuple[float, ...], bytes]] = {}

    def __call__(self, data: bytes) -> Rendered:
        """Finished lines of one reading."""
        rpcs = self._reader.read(data)
        chunks: list[tuple[Family, bytes]] = []
        for gauge, extra, value in self._families.gauges(rpcs):
            if (gauge, extra) not in self._gauges:
                self._gauges[gauge, extra] = gauge.template(self._labels, extra)
            chunks.append((gauge, self._gauges[gauge, extra] % (b"%d" % value)))
        for family, extra, bounds, counts in self._families.tables(rpcs):
            known, template = self._templates.get((family, extra), ((), b""))
            if known is not bounds and known != bounds:
                template = family.buckets_template(self._labels + extra, bounds)
                self._templates[family, extra] = bounds, template
            chunks.append((family, template % cumulative(bounds, counts)))
        return Rendered(tuple(chunks), rpcs.skipped)


class RpcKeys:
    """The tables of a file as one flat row of keys and counts, the same keys object for the same set of buckets."""

    def __init__(self, families: RpcFamilies) -> None:
        self._families = families
        self._keys: dict[tuple[object, ...], tuple[BucketKey, ...]] = {}

    def flatten(self, rpcs: RpcStats) -> tuple[tuple[BucketKey, ...], list[int]]:
        """Keys and counts, not cumulative."""
        tables = list(self._families.tables(rpcs))
        shape = tuple([(family, extra, bounds) for family, extra, bounds, _ in tables])
        keys = self._keys.get(shape)
        if keys is None:
            if len(self._keys) > MOST_SHAPES:
                self._keys.clear()
            keys = tuple([(family, extra, upper) for family, extra, bounds in shape for upper in bounds])
            self._keys[shape] = keys
        return keys, [count for _, _, _, counts in tables for count in counts]


MOST_SHAPES = 4096
