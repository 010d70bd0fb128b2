"""The connection to the management server: ``mgc.*``. Without it, no new mounts and no notice of restarts."""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.families import Counter, Gauge
from exporter.node import Node
from exporter.page import Page
from exporter.text_format import escape, label_text
from lustre.formats import fields, header, import_

LABELS = ("nid",)
STATE = Gauge(
    "lustre_mgc_imports", "Connections to management servers, by state. FULL is connected.", (*LABELS, "state"),
    "mgc.*.import",
)  # fmt: skip
TARGETS = Gauge(
    "lustre_mgc_targets", "Connected management servers, by Lustre release.", (*LABELS, "version"), "mgc.*.import"
)
ATTEMPTS = Counter(
    "lustre_mgc_import_connection_attempts_total", "Attempts to connect to the management server. More than one"
                                                   " means reconnection.", LABELS,
    "mgc.*.import",
)  # fmt: skip
RECOVERY = Gauge(
    "lustre_mgc_imperative_recovery",
    "Whether imperative recovery is enabled (1) or not (0). With it the management server notifies this node of"
    " restarted targets.",
    LABELS,
    "mgc.*.ir_state",
)
IR_STATES = {b"ENABLED": 1, b"DISABLED": 0}


def start(_: Context) -> Collect:
    """Start; no state is kept between passes."""

    def collect(node: Node, page: Page) -> None:
        for name, device in node.every("mgc"):
            labels = label_text(nid=name.removeprefix("MGC"))
            if device.fsname or not name.startswith("MGC"):
                continue
            if (data := node.read("mgc", name, "import")) is not None:
                link = import_.parse(data)
                node.skipped("mgc", "import", link.skipped)
                if link.state is not None:
                    page.sample(STATE, labels + b',state="%b"' % escape(link.state), 1)
                if link.target_version is not None:
                    page.sample(TARGETS, labels + b',version="%b"' % escape(link.target_version), 1)
                page.sample(ATTEMPTS, labels, link.connection_attempts)
            page.sample(RECOVERY, labels, _recovery(node, name))

    return collect


def _recovery(node: Node, name: str) -> int | None:
    data = node.read("mgc", name, "ir_state")
    if data is None:
        return None
    found = fields.parse(data)
    enabled = IR_STATES.get(found.values.get(b"imperative_recovery", b""))
    lines = header.skipped_lines(data, found.understood)
    node.skipped("mgc", "ir_state", lines or int(enabled is None))
    return enabled


COLLECTOR = Collector("mgc", "the connection to the management server", (STATE, TARGETS, ATTEMPTS, RECOVERY), start)
