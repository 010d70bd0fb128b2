"""Lustre on this node as a whole: ``health_check``, ``version``, and allocated memory (``memused``,
``lnet_memused``).
"""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.exposition import Gauge, MetricsPage, label_text
from exporter.node import Node
from lustre.formats import health_check, version

CHECK = "health_check"
HEALTHY = Gauge(
    "lustre_healthy",
    "Whether Lustre's health check on this node passes (1) or fails (0). It fails after a device error or a failed"
    " assertion.",
    (),
    CHECK,
)


def start_health(_: Context) -> Collect:
    """Start; no state is kept between passes."""

    def collect(node: Node, page: MetricsPage) -> None:
        if (data := node.read_global(CHECK)) is not None:
            health = health_check.parse(data)
            node.skipped_global(CHECK, health.skipped)
            page.sample(HEALTHY, b"", None if health.healthy is None else int(health.healthy))

    return collect


HEALTH_COLLECTOR = Collector("health", "Lustre's own health check", (HEALTHY,), start_health)
VERSION = "version"
VERSION_INFO = Gauge(
    "lustre_version_info", "Always 1, labelled with the Lustre release running on this node.", ("version",), VERSION
)


def start_version(_: Context) -> Collect:
    """Start; no state is kept between passes."""

    def collect(node: Node, page: MetricsPage) -> None:
        if (data := node.read_global(VERSION)) is not None:
            parsed = version.parse(data)
            node.skipped_global(VERSION, parsed.skipped)
            if parsed.release is not None:
                page.sample(VERSION_INFO, label_text(version=parsed.release), 1)

    return collect


VERSION_COLLECTOR = Collector("version", "the running Lustre release", (VERSION_INFO,), start_version)
MEMORY = {
    "memused": Gauge("lustre_memory_used_bytes", "Memory allocated by Lustre.", (), "memused", "bytes"),
    "lnet.lnet_memused": Gauge(
        "lustre_lnet_memory_used_bytes", "Memory allocated by LNet.", (), "lnet.lnet_memused", "bytes"
    ),
}


def start_memory(_: Context) -> Collect:
    """Start; no state is kept between passes."""

    def collect(node: Node, page: MetricsPage) -> None:
        for parameter, family in MEMORY.items():
            page.sample(family, b"", node.number_global(parameter))

    return collect


MEMORY_COLLECTOR = Collector("memory", "memory allocated by Lustre and LNet", tuple(MEMORY.values()), start_memory)
