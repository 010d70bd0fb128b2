"""Converts ``rpc_stats`` to samples: RPCs in flight now, and histograms of RPCs sent.

Object clients (osc) and metadata clients (mdc) share the format. Their families differ only by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from exporter.exposition import INFINITY, Family, Gauge, Histogram
from lustre.formats import histogram
from lustre.formats.rpc_stats import LATENCY_UNIT_NSEC, RpcStats

BucketKey = tuple[Histogram, bytes, float]
"""A family, further label text (the direction), and the bound of the bucket."""
Buckets = tuple[Histogram, tuple[bytes, ...], tuple[float, ...]]
"""A family, the further label text of each column of a table, and the bounds of its rows."""
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

    def of_gauges(self) -> dict[str, tuple[Gauge, bytes]]:
        """Family and further label text of each gauge, by the field of ``RpcStats``."""
        every = {
            "read_in_flight": (self.in_flight, READ),
            "write_in_flight": (self.in_flight, WRITE),
            "dio_in_flight": (self.direct_in_flight, b""),
            "pending_read_pages": (self.pending_pages, READ),
            "pending_write_pages": (self.pending_pages, WRITE),
            "modify_in_flight": (self.modify_in_flight, b""),
        }
        return {field: (family, extra) for field, (family, extra) in every.items() if family is not None}

    def of_tables(self) -> dict[str, tuple[Histogram, float]]:
        """Family and unit of each histogram, by the field of ``RpcStats``."""
        every = {
            "rpcs_in_flight": (self.at_send, 1.0),
            "pages_per_rpc": (self.pages, 1.0),
            "latency_usec": (self.latency, LATENCY_UNIT_SECONDS),
            "modify_rpcs_in_flight": (self.modify_at_send, 1.0),
        }
        return {field: (family, unit) for field, (family, unit) in every.items() if family is not None}

    def gauges(self, rpcs: RpcStats) -> Iterator[tuple[Gauge, bytes, int]]:
        """Family, further label text and value of each gauge."""
        for field, (family, extra) in self.of_gauges().items():
            value = getattr(rpcs, field)
            if value is not None:
                yield family, extra, value

    def tables(self, rpcs: RpcStats) -> list[tuple[Histogram, tuple[float, ...], tuple[tuple[int, ...], ...]]]:
        """Family, bounds and counts (not cumulative) by direction (see ``directions``) of each histogram."""
        found = [(family, getattr(rpcs, field), unit) for field, (family, unit) in self.of_tables().items()]
        return [
            (family, bounds_of(table, unit), table.columns)
            for family, table, unit in found
            if table is not None and table.uppers
        ]


    def counts(self, rpcs: RpcStats) -> tuple[tuple[BucketKey, ...], list[int]]:
        """Key and count (not cumulative) of each bucket of all histograms."""
        tables = self.tables(rpcs)
        keys = bucket_keys(tuple([(family, directions(columns), bounds) for family, bounds, columns in tables]))
        return keys, [count for _, _, columns in tables for column in columns for count in column]


@lru_cache(maxsize=4096)
def bucket_keys(tables: tuple[Buckets, ...]) -> tuple[BucketKey, ...]:
    """The key of each bucket, column by column. Files with equal tables share the object."""
    return tuple([(family, extra, upper) for family, extras, bounds in tables for extra in extras for upper in bounds])


def directions(columns: Sequence[object]) -> tuple[bytes, ...]:
    """Further label text of the columns of a table."""
    return (READ, WRITE) if len(columns) > 1 else (b"",)


def bounds_of(table: histogram.Histogram, unit: float = 1.0) -> tuple[float, ...]:
    """Return the bounds of a kernel table. Its last possible bucket also counts larger values: its bound is +Inf."""
    return _bounds(table.uppers, table.overflow, unit)


@lru_cache(maxsize=1024)
def _bounds(uppers: tuple[int, ...], overflow: bool, unit: float) -> tuple[float, ...]:
    bounds = [upper if unit == 1.0 else round(upper * unit, 12) for upper in uppers]
    if overflow:
        bounds[-1] = INFINITY
    return tuple(bounds)
