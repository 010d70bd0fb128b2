"""Size and free space of mounted file systems: ``llite.*.kbytestotal`` and similar parameters."""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.node import Node
from exporter.page import Page
from exporter.room import room_families

ROOM = room_families("lustre_filesystem", "the file system", ("fs", "mount"), "llite.*")


def start(_: Context) -> Collect:
    """Start; no state is kept between passes."""

    def collect(node: Node, page: Page) -> None:
        for device, labels in node.mounts():
            ROOM.put(page, labels, node.room("llite", device))

    return collect


COLLECTOR = Collector("filesystem", "size and free space of mounted file systems", ROOM.families, start)
