"""Enforcement of quotas by this node's targets: ``osd-*.*.quota_slave_*.info``."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.collector import Collect, Collector, Context
from exporter.families import Gauge
from exporter.node import Node
from exporter.page import Page
from exporter.room import OSD_KINDS
from lustre.formats import quota
from lustre.formats.quota import QuotaSlave

LABELS = ("fs", "target", "resource")
INFO = "osd-*.*.quota_slave_dt.info, osd-*.*.quota_slave_md.info"
CONNECTED = Gauge(
    "lustre_quota_slave_connected",
    "Whether the target is connected to the quota master (1) or not (0), by resource: bytes or files.",
    LABELS,
    INFO,
)
ENFORCED = Gauge(
    "lustre_quota_slave_enforced",
    "Whether the target enforces quotas (1) or not (0), by type of quota.",
    (*LABELS, "type"),
    INFO,
)
UP_TO_DATE = Gauge(
    "lustre_quota_slave_up_to_date",
    "Whether the target's copy of quota limits and grants is current (1) or outdated (0), by type of quota. Shown"
    " for enforced types only.",
    (*LABELS, "type"),
    INFO,
)
RESOURCES = {b"dt": b',resource="bytes"', b"md": b',resource="files"'}


def start(_: Context) -> Collect:
    """Start; no state is kept between passes."""

    def collect(node: Node, page: Page) -> None:
        for kind in OSD_KINDS:
            for target, labels in node.labelled_targets(kind):
                for resource, slave in _slaves(node, kind, target):
                    _put(page, labels + RESOURCES[resource], slave)

    return collect


def _slaves(node: Node, kind: str, target: str) -> Iterator[tuple[bytes, QuotaSlave]]:
    """Quota state by resource. ``quota_slave`` links to one of the others; up to 2.11 it is the only one."""
    found = {resource: _read(node, kind, target, f"quota_slave_{resource.decode()}") for resource in RESOURCES}
    if not any(found.values()) and (slave := _read(node, kind, target, "quota_slave")) is not None:
        found[slave.resource] = slave
    yield from ((resource, slave) for resource, slave in found.items() if slave is not None and resource)


def _read(node: Node, kind: str, target: str, folder: str) -> QuotaSlave | None:
    data = node.read(kind, target, f"{folder}/info")
    if data is None:
        return None
    slave = quota.parse_slave(data)
    node.skipped(kind, f"{folder}/info", slave.skipped)
    return slave


def _put(page: Page, labels: bytes, slave: QuotaSlave) -> None:
    page.sample(CONNECTED, labels, None if slave.connected is None else int(slave.connected))
    if slave.enforced is None:
        return
    for type_ in quota.TYPES.values():
        page.sample(ENFORCED, labels + b',type="%b"' % type_, int(type_ in slave.enforced))
    for type_, is_so in slave.up_to_date:
        if type_ in slave.enforced:  # other types have no copies
            page.sample(UP_TO_DATE, labels + b',type="%b"' % type_, int(is_so))


COLLECTOR = Collector("quota_slave", "whether targets enforce quotas", (CONNECTED, ENFORCED, UP_TO_DATE), start)
