"""Operations of applications on the mounts of this node: ``llite.*.stats``.

The sum of each byte counter is a family of its own. All other counters are operations: their number and, since Lustre
measures it, their time. Releases that do not time reads and writes count them only in the byte counters; there, the
samples of ``read_bytes`` are the operations.
"""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.counters import Rule
from exporter.families import Counter
from exporter.node import Node
from exporter.page import Page
from exporter.sources import Source, StatsRenderer

LABELS = ("fs", "mount")
STATS = "llite.*.stats"

BYTES = {
    name: Counter(f"lustre_llite_{name.decode()}_total", text, LABELS, STATS, "bytes", versions)
    for name, text, versions in (
        (b"read_bytes", "Bytes read by applications through the mount.", "2.10+"),
        (b"write_bytes", "Bytes written by applications through the mount.", "2.10+"),
        (b"cached_read_bytes", "Bytes of application reads served from the page cache.", "2.18+"),
        (b"hybrid_read_bytes", "Bytes of buffered reads that Lustre carried out as direct I/O.", "2.17+"),
        (b"hybrid_write_bytes", "Bytes of buffered writes that Lustre carried out as direct I/O.", "2.17+"),
        (b"pcc_hit_bytes", "Bytes read from and written to the persistent client cache (PCC).", "2.17+"),
        (b"pcc_attach_bytes", "Bytes of files attached to the persistent client cache (PCC).", "2.17+"),
    )
}
OPERATIONS = Counter(
    "lustre_llite_operations_total",
    "File system operations by applications on the mount, by operation.",
    (*LABELS, "operation"),
    STATS,
)
SECONDS = Counter(
    "lustre_llite_operation_seconds_total",
    "Total time of applications' operations on the mount, by operation, summed over concurrent callers. The"
    " operation openclosetime is the time files stayed open.",
    (*LABELS, "operation"),
    STATS,
    "seconds",
    "2.14+",
)

RULE = Rule(OPERATIONS, SECONDS, BYTES, implied={b"read_bytes": b"read", b"write_bytes": b"write"})


def start(_: Context) -> Collect:
    """Start without earlier readings."""
    source = Source("llite", "stats", StatsRenderer(RULE))

    def collect(node: Node, page: Page) -> None:
        source.collect(node, page, node.mounts())

    return collect


COLLECTOR = Collector("llite", "bytes, operations and their times as applications see them", RULE.families(), start)
