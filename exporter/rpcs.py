"""From ``rpc_stats`` to samples: requests under way now, and histograms of those sent.

The same form for object storage clients and metadata clients; the families differ by name only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from exporter.families import INFINITY, Family, Gauge, Histogram, cumulative
from exporter.sources import Rendered, SampleLines
from lustre.text import histogram
from lustre.text.rpc_reader import Reader
from lustre.text.rpc_stats import LATENCY_UNIT_NSEC, RpcStats

BucketKey = tuple[Histogram, bytes, float]
"""A family, further label text (the direction), the bucket's bound."""

LATENCY_UNIT_SECONDS = LATENCY_UNIT_NSEC / 1e9
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

    def tables(self, rpcs: RpcStats) -> list[tuple[Histogram, tuple[float, ...], tuple[tuple[int, ...], ...]]]:
        """Family, bounds and counts (not cumulative) by direction (see ``directions``) of each histogram."""
        return [
            (family, bounds_of(table, unit), table.columns)
            for family, table, unit in (
                (self.at_send, rpcs.rpcs_in_flight, 1.0),
                (self.pages, rpcs.pages_per_rpc, 1.0),
                (self.latency, rpcs.latency_usec, LATENCY_UNIT_SECONDS),
                (self.modify_at_send, rpcs.modify_rpcs_in_flight, 1.0),
            )
            if family is not None and table is not None and table.uppers
        ]


def directions(columns: Sequence[object]) -> tuple[bytes, ...]:
    """Further label text of the columns of a table."""
    return (READ, WRITE) if len(columns) > 1 else (b"",)


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
    """Renders one device's ``rpc_stats``; keeps a template per family until it gets another bucket."""

    __slots__ = ("_families", "_gauges", "_labels", "_reader", "_templates")

    def __init__(self, families: RpcFamilies, reader: Reader, labels: bytes) -> None:
        self._families = families
        self._reader = reader
        self._labels = labels
        self._gauges = SampleLines(labels)
        self._templates: dict[Histogram, tuple[tuple[float, ...], int, bytes]] = {}

    def __call__(self, data: bytes) -> Rendered:
        """Finished lines of one reading."""
        rpcs = self._reader.read(data)
        chunks = list(self._gauges.lines(list(self._families.gauges(rpcs))))
        for family, bounds, columns in self._families.tables(rpcs):
            bounds = family.whole(bounds)  # noqa: PLW2901 - the table continued
            known, width, template = self._templates.get(family, ((), 0, b""))
            if (known is not bounds and known != bounds) or width != len(columns):
                template = b"".join([
                    family.buckets_template(self._labels + extra, bounds) for extra in directions(columns)
                ])  # fmt: skip
                self._templates[family] = bounds, len(columns), template
            counted = [count for column in columns for count in cumulative(bounds, column)]
            chunks.append((family, template % (*counted,)))
        return Rendered(tuple(chunks), rpcs.skipped)


class RpcKeys:
    """The tables of a file as one flat row of keys and counts, the same keys object for the same set of buckets."""

    def __init__(self, families: RpcFamilies) -> None:
        self._families = families
        self._keys: dict[tuple[object, ...], tuple[BucketKey, ...]] = {}
        self._last: tuple[tuple[object, ...], tuple[BucketKey, ...]] = (), ()
        """Most have the shape of the one before."""

    def flatten(self, rpcs: RpcStats) -> tuple[tuple[BucketKey, ...], list[int]]:
        """Keys and counts, not cumulative."""
        tables = self._families.tables(rpcs)
        shape = tuple([(family, len(columns), bounds) for family, bounds, columns in tables])
        if shape != self._last[0]:
            keys = self._keys.get(shape)
            if keys is None:
                if len(self._keys) > MOST_SHAPES:
                    self._keys.clear()
                keys = self._keys[shape] = tuple([
                    (family, extra, upper)
                    for family, bounds, columns in tables for extra in directions(columns) for upper in bounds
                ])  # fmt: skip
            self._last = shape, keys
        return self._last[1], [count for _, _, columns in tables for column in columns for count in column]


MOST_SHAPES = 4096
