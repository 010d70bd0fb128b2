"""Connections of this node's targets to metadata targets, for quotas and sequences of object ids: ``lwp.*``.

A server that waits here makes its clients wait: a write above the granted quota needs an answer first.
"""

from __future__ import annotations

from typing import NamedTuple

from exporter.collector import Collect, Collector, Context
from exporter.connected import connection_families
from exporter.node import Node
from exporter.page import Page
from exporter.peers import PeerSums
from exporter.text_format import label_text

LWP = connection_families("lwp", ("fs", "target"), "metadata targets from this node's targets", "2.18+")


class Asked(NamedTuple):
    """The metadata target of a connection."""

    fs: str
    target: str

    def labels(self) -> bytes:
        """The label text between the braces of a sample."""
        return label_text(fs=self.fs, target=self.target)


def start(_: Context) -> Collect:
    """Start without earlier readings."""
    connections: PeerSums[Asked] = PeerSums("lwp", LWP)

    def collect(node: Node, page: Page) -> None:
        asked = {name: Asked(d.fsname, d.target) for name, d in node.every("lwp") if d.kind == "lwp"}
        connections.collect(node, page, asked)

    return collect


COLLECTOR = Collector(
    "lwp", "requests from this node's targets to metadata targets, mostly for quotas", LWP.families(), start
)
