"""Lustre's health check of this node: ``health_check``."""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.families import Gauge
from exporter.node import Node
from exporter.page import Page
from lustre.formats import health_check

CHECK = "health_check"
HEALTHY = Gauge(
    "lustre_healthy",
    "Whether Lustre's health check on this node passes (1) or fails (0). It fails after a device error or a failed"
    " assertion.",
    (),
    CHECK,
)


def start(_: Context) -> Collect:
    """Start; no state is kept between passes."""

    def collect(node: Node, page: Page) -> None:
        if (data := node.read_of_node(CHECK)) is not None:
            health = health_check.parse(data)
            node.skipped_of_node(CHECK, health.skipped)
            page.sample(HEALTHY, b"", None if health.healthy is None else int(health.healthy))

    return collect


COLLECTOR = Collector("health", "Lustre's own health check", (HEALTHY,), start)
