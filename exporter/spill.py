"""Spilling of new files from a full pool to another: ``lod.*.pool.*.spill_*`` on metadata servers."""

from __future__ import annotations

from exporter.families import Counter, Gauge
from exporter.ledger import Ledger
from exporter.node import Node
from exporter.page import Page
from exporter.text_format import label_text

LABELS = ("fs", "pool")
ACTIVE = Gauge(
    "lustre_pool_spill_active",
    "Whether new files spill to another pool now (1), because this pool is above its threshold, or not (0).",
    LABELS,
    "lod.*.pool.*.spill_is_active",
    versions="2.15+",
)
THRESHOLD = Gauge(
    "lustre_pool_spill_threshold_ratio",
    "Used share of the pool above which new files spill to another pool. 0 disables spilling.",
    LABELS,
    "lod.*.pool.*.spill_threshold_pct",
    "ratio",
    "2.15+",
)
HITS = Counter(
    "lustre_pool_spilled_files_total",
    "Files created in another pool because this pool was above its threshold, summed over this node's metadata"
    " targets.",
    LABELS,
    "lod.*.pool.*.spill_hit",
    versions="2.15+",
)
FAMILIES = (ACTIVE, THRESHOLD, HITS)
_KEYS = ("hits",)


class Spill:
    """Combines the metadata targets, each of which decides by itself, into one series per pool."""

    def __init__(self) -> None:
        self._hits: Ledger[tuple[str, str], str] = Ledger()

    def collect(self, node: Node, page: Page) -> None:
        """Show a pool as active if any metadata target spills it, with the sum of all hits."""
        places = {
            f"{name}/{pool}": (name, device.fsname, pool)
            for name, device in node.every("lod")
            for pool in node.children("lod", name, "pool")
        }
        self._hits.begin({place: (fs, pool) for place, (_, fs, pool) in places.items()})
        active: dict[tuple[str, str], int] = {}
        threshold: dict[tuple[str, str], int] = {}
        for place, (name, fs, pool) in places.items():
            for values, parameter in ((active, "spill_is_active"), (threshold, "spill_threshold_pct")):
                if (value := node.number("lod", name, f"pool/{pool}/{parameter}")) is not None:
                    values[fs, pool] = max(value, values.get((fs, pool), 0))
            if (hits := node.number("lod", name, f"pool/{pool}/spill_hit")) is not None:
                self._hits.credit(place, b"", _KEYS, (hits,))
        for fs, pool in sorted(self._hits.groups):
            labels = label_text(fs=fs, pool=pool)
            page.sample(ACTIVE, labels, active.get((fs, pool)))
            percent = threshold.get((fs, pool))
            page.sample(THRESHOLD, labels, None if percent is None else percent / 100)
            page.sample(HITS, labels, self._hits.totals((fs, pool)).get("hits"))
