"""Renames by the size of their directories: ``mdt.*.rename_stats``. Large directories make renames slow."""

from __future__ import annotations

from exporter.bounds import doubling
from exporter.collector import Collect, Collector, Context
from exporter.families import Histogram
from exporter.node import Node
from exporter.page import Page
from exporter.rpcs import bounds_of
from exporter.sources import Render, Rendered, Source
from lustre.formats import rename_stats
from lustre.formats.compiled import hash_of

SIZES = Histogram(
    "lustre_mdt_rename_directory_size_bytes",
    "Renames, by the size of the directory: same (within one directory), source or target (between two directories).",
    ("fs", "target", "directory"),
    "mdt.*.rename_stats",
    "bytes",
    usual=doubling(1 << 12, 1 << 24),
)
DIRECTORIES = {
    b"same_dir": b',directory="same"',
    b"crossdir_src": b',directory="source"',
    b"crossdir_tgt": b',directory="target"',
}


def start(_: Context) -> Collect:
    """Start without earlier readings."""
    source = Source("mdt", "rename_stats", _renderer, hash_of(rename_stats.after_header))

    def collect(node: Node, page: Page) -> None:
        source.collect(node, page, node.labelled_targets("mdt"))

    return collect


def _renderer(labels: bytes) -> Render:
    def render(data: bytes) -> Rendered:
        parsed = rename_stats.parse(data)
        found = []
        for table in parsed.histograms:
            bounds = bounds_of(table)
            below = [upper for upper in SIZES.usual if upper < bounds[0]] if bounds else []  # the kernel omits them
            counts = [0] * len(below) + [*table.columns[0]]
            found.append(SIZES.buckets(labels + DIRECTORIES[table.name], [*below, *bounds], counts))
        return Rendered(tuple([(SIZES, chunk) for chunk in found]), parsed.skipped)

    return render


COLLECTOR = Collector("renames", "sizes of directories in renames", (SIZES,), start)
