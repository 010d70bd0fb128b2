"""What metadata targets of this node know of object targets, and ask of them: ``osp.*``."""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.families import Gauge, Page, label_text
from exporter.node import Node, integer

LABELS = ("fs", "target", "mdt")


def _gauge(name: str, text: str, parameter: str) -> Gauge:
    return Gauge(f"lustre_osp_{name}", text, LABELS, f"osp.*.{parameter}")


ERROR = _gauge(
    "precreate_error",
    "Error number (errno) of the last attempt to create objects ahead on the target; 0 is none. 28 is: no room.",
    "prealloc_status",
)
PRECREATED = _gauge("precreated_objects", "Objects created ahead that no file has yet.", "prealloc_last_id")
NUMBERS = {
    "active": _gauge("active", "Whether the metadata target uses the object target (1) or not (0).", "active"),
    "prealloc_reserved": _gauge(
        "reserved_objects", "Objects created ahead that are promised to files being made.", "prealloc_reserved"
    ),
    "sync_changes": _gauge(
        "sync_changes", "Changes (removed files, new owners) that are not sent to the target yet.", "sync_changes"
    ),
    "sync_in_progress": _gauge(
        "sync_in_progress_changes", "Changes that are sent and not on the target's disk yet.", "sync_in_progress"
    ),
    "destroys_in_flight": _gauge(
        "destroys_in_flight", "Objects of removed files that still take room on the target.", "destroys_in_flight"
    ),
}


def start(_: Context) -> Collect:
    """Nothing to keep."""

    def collect(node: Node, page: Page) -> None:
        for name, device in node.every("osp"):
            if not device.target.startswith("OST") or not device.instance.startswith("MDT"):
                continue
            labels = label_text(fs=device.fsname, target=device.target, mdt=device.instance)
            for parameter, family in NUMBERS.items():
                page.sample(family, labels, node.number("osp", name, parameter))
            status = node.number("osp", name, "prealloc_status", integer)
            page.sample(ERROR, labels, None if status is None else abs(status))
            page.sample(PRECREATED, labels, _precreated(node, name))

    return collect


def _precreated(node: Node, name: str) -> int | None:
    """Objects from the next one to the last; not known while a new sequence of object ids begins."""
    sequences = [node.read("osp", name, f"prealloc_{end}_seq") for end in ("next", "last")]
    following, last = [node.number("osp", name, f"prealloc_{end}_id") for end in ("next", "last")]
    if sequences[0] != sequences[1] or following is None or last is None or last < following - 1:
        return None
    return last - following + 1


FAMILIES = (ERROR, PRECREATED, *NUMBERS.values())
COLLECTOR = Collector("osp", "object targets as metadata targets of this node see them", FAMILIES, start)
