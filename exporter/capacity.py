"""Size, free space and files of a file system, a pool or a target, in five families."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from exporter.exposition import Gauge, MetricsPage
from lustre.formats.df import Df

OSD_KINDS = ("osd-ldiskfs", "osd-zfs", "osd-wbcfs")
"""Kinds of devices between a target and its disks. Their parameters have one format."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The five families: size, free, available, files and free files."""

    size: Gauge
    free: Gauge
    avail: Gauge
    files: Gauge
    files_free: Gauge

    @property
    def families(self) -> tuple[Gauge, ...]:
        return self.size, self.free, self.avail, self.files, self.files_free

    def put(self, page: MetricsPage, labels: bytes, df: Df) -> None:
        page.sample(self.size, labels, df.size_bytes)
        page.sample(self.free, labels, df.free_bytes)
        page.sample(self.avail, labels, df.avail_bytes)
        page.sample(self.files, labels, df.files)
        page.sample(self.files_free, labels, df.files_free)


def capacity_families(prefix: str, of: str, labels: tuple[str, ...], source: str) -> Capacity:
    """Make the five families; ``of`` names the object in HELP (``the file system``)."""

    def gauge(name: str, text: str, parameter: str) -> Gauge:
        return Gauge(f"{prefix}_{name}", text, labels, f"{source}.{parameter}")

    return Capacity(
        gauge("size_bytes", f"Size of {of}.", "kbytestotal"),
        gauge("free_bytes", f"Free space in {of}.", "kbytesfree"),
        gauge("avail_bytes", f"Space available to users (free, not reserved) in {of}.", "kbytesavail"),
        gauge("files", f"Total number of inodes (MDT) or objects (OST) in {of}.", "filestotal"),
        gauge("files_free", f"Free inodes (MDT) or objects (OST) in {of}.", "filesfree"),
    )


def total(parts: Iterable[Df]) -> Df:
    """Sum the capacities of several targets. A sum is known only if all its parts are known."""
    known = list(parts)

    def add(values: list[int | None]) -> int | None:
        numbers = [value for value in values if value is not None]
        return sum(numbers) if len(numbers) == len(values) and numbers else None

    return Df(*[add([df[field] for df in known]) for field in range(len(Df._fields))])
