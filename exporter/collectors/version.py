"""The Lustre release running on this node: ``version``."""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.families import Gauge
from exporter.node import Node
from exporter.page import Page
from exporter.text_format import label_text
from lustre.formats import version

VERSION = "version"
INFO = Gauge(
    "lustre_version_info", "Always 1, labelled with the Lustre release running on this node.", ("version",), VERSION
)


def start(_: Context) -> Collect:
    """Start; no state is kept between passes."""

    def collect(node: Node, page: Page) -> None:
        if (data := node.read_of_node(VERSION)) is not None:
            parsed = version.parse(data)
            node.skipped_of_node(VERSION, parsed.skipped)
            if parsed.release is not None:
                page.sample(INFO, label_text(version=parsed.release), 1)

    return collect


COLLECTOR = Collector("version", "the running Lustre release", (INFO,), start)
