"""Object storage clients: their families, and the sums that both ``osc`` and ``pools`` show."""

from __future__ import annotations

import threading

from exporter.links import link_families
from exporter.node import Node, Survey
from exporter.totals import Group, Summed, stats_out

OSC = link_families("osc", ("fs", "mount", "pool"), "object servers")


def groups(node: Node) -> dict[str, Group]:
    """The group of each object storage client of this node's mounts."""
    membership = node.membership()
    return {
        name: Group(device.fsname, mount, membership.label(device.fsname, device.target))
        for name, device, mount in node.clients("osc")
    }


class OscTotals:
    """``osc.*.stats`` summed by group, read once a pass by whoever asks first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._survey: Survey | None = None
        self.stats: Summed[Group] = Summed("osc", "stats", stats_out(OSC.rule))

    def refresh(self, node: Node) -> Summed[Group]:
        """The sums as of this pass."""
        with self._lock:
            if self._survey is not node.survey:
                self.stats.refresh(node, groups(node))
                self._survey = node.survey
            return self.stats
