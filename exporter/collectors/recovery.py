"""Recovery of object and metadata targets after a restart: ``recovery_status``.

A target with an unknown status counts as recovering, because tierd should not move files to or from it.
"""

from __future__ import annotations

from dataclasses import dataclass

from exporter.collector import Collector, stateless
from exporter.exposition import Counter, Family, Gauge, MetricsPage
from exporter.families import FamilyMaker
from exporter.node import Node
from lustre.formats import recovery_status
from lustre.formats.recovery_status import RecoveryStatus


@dataclass(frozen=True, slots=True)
class RecoveryFamilies:
    """Families of one kind of target."""

    recovering: Gauge
    remaining: Gauge
    took: Gauge
    numbers: dict[str, Gauge]
    """Gauges by the field of ``RecoveryStatus``."""
    evictions: Counter

    def families(self) -> tuple[Family, ...]:
        return self.recovering, self.remaining, self.took, *self.numbers.values(), self.evictions

    def put(self, page: MetricsPage, labels: bytes, status: RecoveryStatus) -> None:
        page.sample(self.recovering, labels, int(status.in_recovery))
        page.sample(self.remaining, labels, status.time_remaining_seconds)
        page.sample(self.took, labels, status.recovery_duration_seconds)
        for field, family in self.numbers.items():
            page.sample(family, labels, getattr(status, field))


def _families(prefix: str, kind: str) -> RecoveryFamilies:
    of_target = FamilyMaker(f"lustre_{prefix}", ("fs", "target"), f"{kind}.*")
    gauge = of_target.of("recovery_status").gauge
    return RecoveryFamilies(
        gauge("recovering", "Whether the target is in recovery after a restart (1) or serves all clients (0)."),
        gauge("recovery_remaining_seconds", "Time until recovery ends even if clients are still missing."),
        gauge("recovery_duration_seconds", "Duration of the last recovery."),
        {
            "clients": gauge("recovery_clients", "Clients connected to the target before its last restart."),
            "connected_clients": gauge(
                "recovery_connected_clients", "Clients that have reconnected to the target since its last restart."),
            "completed_clients": gauge(
                "recovery_completed_clients", "Clients that have completed recovery since the target's last restart."),
            "evicted_clients": gauge(
                "recovery_evicted_clients",
                "Clients evicted because they did not recover after the target's last restart."),
            "queued_requests": gauge("recovery_queued_requests", "Requests waiting for the target's recovery to end."),
        },
        of_target.of("eviction_count").counter("evictions", "Clients evicted by the target.", versions="2.16+"),
    )


BY_KIND = {"obdfilter": _families("ost", "obdfilter"), "mdt": _families("mdt", "mdt")}


def _collect(node: Node, page: MetricsPage) -> None:
    for kind, families in BY_KIND.items():
        for name, labels in node.labelled_targets(kind):
            page.sample(families.evictions, labels, node.number(kind, name, "eviction_count"))
            if (data := node.read(kind, name, "recovery_status")) is not None:
                status = recovery_status.parse(data)
                node.skipped(kind, "recovery_status", status.skipped + (not status.status))
                families.put(page, labels, status)


FAMILIES = tuple([family for families in BY_KIND.values() for family in families.families()])
COLLECTOR = Collector("recovery", "recovery of targets after a restart, and evictions", FAMILIES, stateless(_collect))
