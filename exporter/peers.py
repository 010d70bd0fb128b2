"""Connections that servers hold to other servers (osp, lwp), summed by group: few series, however many targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic

from exporter.connected import ConnectionFamilies
from exporter.node import Node
from exporter.page import Page
from exporter.read_outs import imports_out, stats_out
from exporter.totals import G, Summed
from lustre.formats import import_
from lustre.formats.compiled import hash_of


class PeerSums(Generic[G]):
    """Requests and state of the connections of one kind."""

    def __init__(self, kind: str, families: ConnectionFamilies) -> None:
        self._average_wait = families.average_wait
        self._stats: Summed[G] = Summed(kind, "stats", stats_out(families.rule))
        self._imports: Summed[G] = Summed(kind, "import", imports_out(families), hash_of(import_.essence))

    def collect(self, node: Node, page: Page, groups: Mapping[str, G]) -> None:
        """Read every device, and show the sums of the group each belongs to."""
        for summed in (self._stats, self._imports):
            summed.refresh(node, groups)
            summed.put(page, {self._average_wait: max})
