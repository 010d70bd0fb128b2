"""Whether targets wait for their clients after a restart: ``recovery_status`` of object and metadata targets.

A target whose file cannot be understood counts as recovering: nothing should be moved to or from it.
"""

from __future__ import annotations

from dataclasses import dataclass

from exporter.collector import Collect, Collector, Context
from exporter.families import Counter, Family, Gauge
from exporter.node import Node
from exporter.page import Page
from lustre.formats import recovery_status
from lustre.formats.recovery_status import RecoveryStatus

LABELS = ("fs", "target")


@dataclass(frozen=True, slots=True)
class RecoveryFamilies:
    """Families of one kind of target."""

    recovering: Gauge
    remaining: Gauge
    took: Gauge
    numbers: dict[str, Gauge]
    """By the field of ``RecoveryStatus``."""
    evictions: Counter

    def families(self) -> tuple[Family, ...]:
        """All of them."""
        return self.recovering, self.remaining, self.took, *self.numbers.values(), self.evictions

    def put(self, page: Page, labels: bytes, status: RecoveryStatus) -> None:
        """What is known of one target."""
        page.sample(self.recovering, labels, int(status.in_recovery))
        page.sample(self.remaining, labels, status.time_remaining_seconds)
        page.sample(self.took, labels, status.recovery_duration_seconds)
        for field, family in self.numbers.items():
            page.sample(family, labels, getattr(status, field))


def _families(prefix: str, kind: str) -> RecoveryFamilies:
    source = f"{kind}.*.recovery_status"

    def gauge(name: str, text: str, unit: str = "") -> Gauge:
        return Gauge(f"lustre_{prefix}_{name}", text, LABELS, source, unit)

    return RecoveryFamilies(
        gauge("recovering", "Whether the target waits for its clients after a restart (1) or serves all (0)."),
        gauge("recovery_remaining_seconds", "Time until recovery ends for lack of clients.", "seconds"),
        gauge("recovery_duration_seconds", "How long the last recovery took.", "seconds"),
        {
            "clients": gauge("recovery_clients", "Clients that were connected before the restart."),
            "connected_clients": gauge("recovery_connected_clients", "Those of them that have come back."),
            "completed_clients": gauge("recovery_completed_clients", "Those of them that have recovered."),
            "evicted_clients": gauge("recovery_evicted_clients", "Those of them that were given up."),
            "queued_requests": gauge("recovery_queued_requests", "Requests that wait for recovery to end."),
        },
        Counter(
            f"lustre_{prefix}_evictions_total",
            "Clients the target has evicted.",
            LABELS,
            f"{kind}.*.eviction_count",
            versions="2.16+",
        ),
    )


BY_KIND = {"obdfilter": _families("ost", "obdfilter"), "mdt": _families("mdt", "mdt")}


def start(_: Context) -> Collect:
    """Nothing to keep."""

    def collect(node: Node, page: Page) -> None:
        for kind, families in BY_KIND.items():
            for name, labels in node.labelled_targets(kind):
                page.sample(families.evictions, labels, node.number(kind, name, "eviction_count"))
                if (data := node.read(kind, name, "recovery_status")) is not None:
                    status = recovery_status.parse(data)
                    node.skipped(kind, "recovery_status", status.skipped + (not status.status))
                    families.put(page, labels, status)

    return collect


FAMILIES = tuple([family for families in BY_KIND.values() for family in families.families()])
COLLECTOR = Collector("recovery", "recovery of targets after a restart, and evictions", FAMILIES, start)
