"""Object storage clients: their families, and the sums that both ``osc`` and ``pools`` show."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from exporter.links import link_families
from exporter.node import Node, Survey
from exporter.places import Client
from exporter.pools import Membership
from exporter.read_outs import stats_out
from exporter.text_format import label_text
from exporter.totals import Group, Summed

OSC = link_families("osc", ("fs", "mount", "pool"), "object servers")


class Groups:
    """The group of each object storage client of this node's mounts: the same mapping as long as nothing changes."""

    def __init__(self) -> None:
        self._made: tuple[tuple[Client, ...], Membership, dict[str, Group]] = (), Membership({}, {}), {}

    def of(self, node: Node) -> Mapping[str, Group]:
        """As of this pass."""
        clients, membership = node.clients("osc"), node.membership()
        if self._made[0] is not clients or self._made[1] is not membership:
            groups = {
                name: Group(device.fsname, mount, membership.label(device.fsname, device.target))
                for name, device, mount in clients
            }
            self._made = clients, membership, groups
        return self._made[2]


class Labelled:
    """Label text of each of them, when they are shown one by one."""

    def __init__(self) -> None:
        self._made: tuple[tuple[Client, ...], Membership, dict[str, bytes]] = (), Membership({}, {}), {}

    def of(self, node: Node) -> Mapping[str, bytes]:
        """As of this pass; the same mapping as long as nothing changes."""
        clients, membership = node.clients("osc"), node.membership()
        if self._made[0] is not clients or self._made[1] is not membership:
            labels = {
                name: label_text(fs=device.fsname, mount=mount, target=device.target,
                                 pool=membership.label(device.fsname, device.target))
                for name, device, mount in clients
            }  # fmt: skip
            self._made = clients, membership, labels
        return self._made[2]


class OscTotals:
    """``osc.*.stats`` summed by group, read once a pass by whoever asks first."""

    def __init__(self) -> None:
        self.groups = Groups()
        self._lock = threading.Lock()
        self._survey: Survey | None = None
        self.stats: Summed[Group] = Summed("osc", "stats", stats_out(OSC.rule))

    def refresh(self, node: Node) -> Summed[Group]:
        """The sums as of this pass."""
        with self._lock:
            if self._survey is not node.survey:
                self.stats.refresh(node, self.groups.of(node))
                self._survey = node.survey
            return self.stats
