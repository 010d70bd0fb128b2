"""The management server: ``mgs.MGS.*``."""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.families import Counter, Gauge
from exporter.node import Node
from exporter.page import Page
from exporter.text_format import label_text
from lustre.formats import mgs_live

LIVE = "mgs.MGS.live.*"
EXPORTS = Gauge(
    "lustre_mgs_exports", "Clients and servers connected to the management server.", (), "mgs.MGS.num_exports"
)
EVICTIONS = Counter(
    "lustre_mgs_evictions_total", "Clients evicted by the management server.", (), "mgs.MGS.eviction_count",
    versions="2.16+",
)  # fmt: skip
TARGETS = Gauge("lustre_mgs_targets", "Registered targets of the file system, by kind.", ("fs", "kind"), LIVE)
STATE = Gauge(
    "lustre_mgs_imperative_recovery",
    "Always 1. The label is the state of imperative recovery (notification of clients about restarted targets):"
    " full, partial, startup, disabled.",
    ("fs", "state"),
    LIVE,
)
WITHOUT = Gauge(
    "lustre_mgs_clients_without_imperative_recovery",
    "Clients without imperative recovery, which the management server cannot notify of restarted targets.",
    ("fs",),
    LIVE,
)
STATES = frozenset({b"full", b"partial", b"startup", b"disabled"})
NO_FILE_SYSTEM = frozenset({"params", "nodemap"})


def start(_: Context) -> Collect:
    """Start; no state is kept between passes."""

    def collect(node: Node, page: Page) -> None:
        for server, _ in node.every("mgs"):
            page.sample(EXPORTS, b"", node.number("mgs", server, "num_exports"))
            page.sample(EVICTIONS, b"", node.number("mgs", server, "eviction_count"))
            for fs in node.children("mgs", server, "live"):
                if fs not in NO_FILE_SYSTEM and (data := node.read("mgs", server, f"live/{fs}")) is not None:
                    node.skipped("mgs", f"live/{fs}", _put(page, fs, data))
            break  # there is only one

    return collect


def _put(page: Page, fs: str, data: bytes) -> int:
    """Show one file system and return the number of skipped lines."""
    live = mgs_live.parse(data)
    for kind in ("MDT", "OST"):
        number = sum([target.startswith(kind.encode()) for target in live.targets])
        page.sample(TARGETS, label_text(fs=fs, kind=kind), number)
    if live.recovery_state in STATES:
        page.sample(STATE, label_text(fs=fs, state=live.recovery_state or b""), 1)
    page.sample(WITHOUT, label_text(fs=fs), live.nonir_clients if (live.nonir_clients or 0) >= 0 else None)
    return live.skipped


FAMILIES = (EXPORTS, EVICTIONS, TARGETS, STATE, WITHOUT)
COLLECTOR = Collector("mgs", "the management server and its file systems", FAMILIES, start)
