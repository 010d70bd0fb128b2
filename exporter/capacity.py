"""Size, free space and files of a file system, a pool or a target, in five families."""

from __future__ import annotations

from collections.abc import Iterable

from exporter.exposition import Gauge, MetricsPage
from exporter.families import FamilyMaker
from lustre.formats.df import Df

OSD_KINDS = ("osd-ldiskfs", "osd-zfs", "osd-wbcfs")
"""Kinds of devices between a target and its disks. Their parameters have one format."""


def capacity_families(make: FamilyMaker, of: str) -> tuple[Gauge, ...]:
    """Make the five families, in the order of ``Df``; ``of`` names the object in HELP (``the file system``)."""
    return tuple(make.numbers(
        ("kbytestotal", "size_bytes", f"Size of {of}."),
        ("kbytesfree", "free_bytes", f"Free space in {of}."),
        ("kbytesavail", "avail_bytes", f"Space available to users (free, not reserved) in {of}."),
        ("filestotal", "files", f"Total number of inodes (MDT) or objects (OST) in {of}."),
        ("filesfree", "files_free", f"Free inodes (MDT) or objects (OST) in {of}."),
    ).values())


def put_capacity(page: MetricsPage, families: tuple[Gauge, ...], labels: bytes, df: Df) -> None:
    for family, number in zip(families, df, strict=True):
        page.sample(family, labels, number)


def total(parts: Iterable[Df]) -> Df:
    """Sum the capacities of several targets. A sum is known only if all its parts are known."""
    known = list(parts)

    def add(values: list[int | None]) -> int | None:
        numbers = [value for value in values if value is not None]
        return sum(numbers) if len(numbers) == len(values) and numbers else None

    return Df(*[add([df[field] for df in known]) for field in range(len(Df._fields))])
