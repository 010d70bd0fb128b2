"""The management server (``mgs.MGS.*``), and this node's connection to it (``mgc.*``).

Without that connection, this node can mount no file system and learns of no restarted target.
"""

from __future__ import annotations

from exporter.collector import Collector, stateless
from exporter.exposition import MetricsPage, escape, label_text
from exporter.families import FamilyMaker
from exporter.node import Node
from lustre.formats import fields, header, import_, mgs_live

OF_MGS = FamilyMaker("lustre_mgs", (), "mgs.MGS")
EXPORTS = OF_MGS.of("num_exports").gauge("exports", "Clients and servers connected to the management server.")
EVICTIONS = OF_MGS.of("eviction_count").counter(
    "evictions", "Clients evicted by the management server.", versions="2.16+")
LIVE = FamilyMaker("lustre_mgs", ("fs",), "mgs.MGS.live.*")
TARGETS = LIVE.gauge("targets", "Registered targets of the file system, by kind.", "kind")
STATE = LIVE.gauge(
    "imperative_recovery",
    "Always 1. The label is the state of imperative recovery (notification of clients about restarted targets):"
    " full, partial, startup, disabled.", "state")
CLIENTS_WITHOUT_RECOVERY = LIVE.gauge(
    "clients_without_imperative_recovery",
    "Clients without imperative recovery, which the management server cannot notify of restarted targets.")
STATES = frozenset({b"full", b"partial", b"startup", b"disabled"})
NO_FILE_SYSTEM = frozenset({"params", "nodemap"})


def collect_mgs(node: Node, page: MetricsPage) -> None:
    for server, _ in node.devices("mgs"):
        page.sample(EXPORTS, b"", node.number("mgs", server, "num_exports"))
        page.sample(EVICTIONS, b"", node.number("mgs", server, "eviction_count"))
        for fs in node.children("mgs", server, "live"):
            if fs not in NO_FILE_SYSTEM and (live := node.parsed("mgs", server, f"live/{fs}", mgs_live.parse)):
                _put(page, fs, live)
        break  # there is only one


def _put(page: MetricsPage, fs: str, live: mgs_live.Live) -> None:
    for kind in ("MDT", "OST"):
        number = sum([target.startswith(kind.encode()) for target in live.targets])
        page.sample(TARGETS, label_text(fs=fs, kind=kind), number)
    if live.recovery_state in STATES:
        page.sample(STATE, label_text(fs=fs, state=live.recovery_state or b""), 1)
    page.sample(
        CLIENTS_WITHOUT_RECOVERY, label_text(fs=fs), live.nonir_clients if (live.nonir_clients or 0) >= 0 else None
    )


MGS_FAMILIES = (EXPORTS, EVICTIONS, TARGETS, STATE, CLIENTS_WITHOUT_RECOVERY)
MGS_COLLECTOR = Collector("mgs", "the management server and its file systems", MGS_FAMILIES, stateless(collect_mgs))
OF_MGC = FamilyMaker("lustre_mgc", ("nid",), "mgc.*")
LINK = OF_MGC.of("import")
MGC_IMPORTS = LINK.gauge("imports", "Connections to management servers, by state. FULL is connected.", "state")
MGC_TARGETS = LINK.gauge("targets", "Connected management servers, by Lustre release.", "version")
ATTEMPTS = LINK.counter(
    "import_connection_attempts",
    "Attempts to connect to the management server. More than one means reconnection.")
RECOVERY = OF_MGC.of("ir_state").gauge(
    "imperative_recovery",
    "Whether imperative recovery is enabled (1) or not (0). With it the management server notifies this node of"
    " restarted targets.")
IR_STATES = {b"ENABLED": 1, b"DISABLED": 0}


def collect_mgc(node: Node, page: MetricsPage) -> None:
    for name, device in node.devices("mgc"):
        labels = label_text(nid=name.removeprefix("MGC"))
        if device.fsname or not name.startswith("MGC"):
            continue
        if (link := node.parsed("mgc", name, "import", import_.parse)) is not None:
            if link.state is not None:
                page.sample(MGC_IMPORTS, labels + b',state="%b"' % escape(link.state), 1)
            if link.target_version is not None:
                page.sample(MGC_TARGETS, labels + b',version="%b"' % escape(link.target_version), 1)
            page.sample(ATTEMPTS, labels, link.connection_attempts)
        page.sample(RECOVERY, labels, _recovery(node, name))


def _recovery(node: Node, name: str) -> int | None:
    data = node.read("mgc", name, "ir_state")
    if data is None:
        return None
    found = fields.parse(data)
    enabled = IR_STATES.get(found.values.get(b"imperative_recovery", b""))
    lines = header.skipped_lines(data, found.understood)
    node.skipped("mgc", "ir_state", lines or int(enabled is None))
    return enabled


MGC_COLLECTOR = Collector(
    "mgc", "the connection to the management server", (MGC_IMPORTS, MGC_TARGETS, ATTEMPTS, RECOVERY),
    stateless(collect_mgc))
