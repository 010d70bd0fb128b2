"""Connections shown one by one: the kernel's digits passed through, chunks kept while nothing changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from exporter.connected import ConnectionFamilies, Sample
from exporter.families import Page, label_text, seconds
from exporter.links import LinkFamilies
from exporter.node import Client, Node
from exporter.rpcs import RpcRenderer
from exporter.sources import Render, Rendered, Source, StatsRenderer
from lustre.text import import_


class ConnectionSources:
    """Requests and state of each connection of one kind."""

    def __init__(self, kind: str, families: ConnectionFamilies) -> None:
        self._families = families
        self._imports = import_.BriefReader()
        self._sources = (
            Source(kind, "stats", StatsRenderer(families.rule)),
            Source(kind, "import", self._import, import_.essence),
        )

    def collect(self, node: Node, page: Page, labelled: Sequence[tuple[str, bytes]]) -> None:
        """Show each (device, label text)."""
        for source in self._sources:
            source.collect(node, page, labelled)

    def _import(self, labels: bytes) -> Render:
        def render(data: bytes) -> Rendered:
            link = self._imports.read(data)
            page = Page()
            samples: list[Sample] = [*self._families.import_gauges(link), *self._families.import_counters(link)]
            for family, extra, value in samples:
                digits = b"%d" % value
                page.sample(family, labels + extra, seconds(digits) if family.unit == "seconds" else digits)
            return Rendered(page.lines(), link.skipped)

        return render


class LinkSources:
    """All there is to show of each connection of one kind of client."""

    def __init__(self, kind: str, families: LinkFamilies) -> None:
        self._kind = kind
        self._families = families
        self._connections = ConnectionSources(kind, families)
        self._rpcs = Source(kind, "rpc_stats", RpcRenderer(families.rpcs))

    def collect(self, node: Node, page: Page, clients: Iterable[tuple[Client, Mapping[str, str]]]) -> None:
        """Show each client, labelled with its mount, its target and what else is given."""
        labelled = [
            (name, label_text(fs=device.fsname, mount=mount, target=device.target, **more))
            for (name, device, mount), more in clients
        ]
        self._connections.collect(node, page, labelled)
        self._rpcs.collect(node, page, labelled)
        for device, labels in labelled:
            for name, family in self._families.limits.items():
                page.sample(family, labels, node.number(self._kind, device, name))
