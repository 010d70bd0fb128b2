"""Scrub, which checks and repairs the object index of this node's targets: ``osd-*.*.oi_scrub``.

The numbers belong to the current or last run and restart with the next, so they are gauges. The number of completed
runs is stored on disk and only grows.
"""

from __future__ import annotations

from exporter import runs
from exporter.collector import Collect, Collector, Context
from exporter.families import Counter, Gauge
from exporter.node import Node
from exporter.page import Page
from exporter.room import OSD_KINDS
from exporter.sources import Render, Rendered, Source
from lustre.formats import lfsck

LABELS = ("fs", "target")
SCRUB = "osd-*.*.oi_scrub"


def _gauge(name: str, text: str, unit: str = "") -> Gauge:
    return Gauge(f"lustre_osd_scrub_{name}", text, LABELS, SCRUB, unit)


STATE = Gauge(
    "lustre_osd_scrub_state",
    "Always 1. The label is the state of the object index scrub: init (never run), scanning, completed, failed,"
    " stopped (by an administrator), paused (resumes at the next mount), crashed (resumes after recovery).",
    (*LABELS, "state"),
    SCRUB,
)
FLAG = Gauge(
    "lustre_osd_scrub_flag",
    "Always 1 for each flag that is set: inconsistent (errors found and not yet repaired), recreated, auto, upgrade.",
    (*LABELS, "flag"),
    SCRUB,
)
NUMBERS = {
    "checked": _gauge("checked_objects", "Objects checked by the current or last scrub run."),
    "repaired": _gauge("repaired_objects", "Objects whose index entry was repaired by the current or last scrub run."),
    "inconsistent": _gauge(
        "inconsistent_objects", "Objects whose index entry was found inconsistent by a dry run of scrub."
    ),
    "failed": _gauge(
        "failed_objects", "Objects whose index entry could not be repaired by the current or last scrub run."
    ),
    "run_seconds": _gauge("run_seconds", "Run time of the current or last scrub run.", "seconds"),
    "since_started_seconds": _gauge(
        "since_start_seconds", "Time since the current or last scrub run started or resumed.", "seconds"
    ),
    "since_completed_seconds": _gauge("since_completed_seconds", "Time since a scrub run last completed.", "seconds"),
    "completed": Counter("lustre_osd_scrub_completed_total", "Scrub runs completed.", LABELS, SCRUB),
}


def start(_: Context) -> Collect:
    """Start without earlier readings."""
    sources = [(kind, Source(kind, "oi_scrub", _renderer)) for kind in OSD_KINDS]

    def collect(node: Node, page: Page) -> None:
        for kind, source in sources:
            source.collect(node, page, node.labelled_targets(kind))

    return collect


def _renderer(labels: bytes) -> Render:
    def render(data: bytes) -> Rendered:
        scrub = lfsck.parse_oi_scrub(data)
        page = Page()
        runs.show(page, labels, scrub, STATE, FLAG)
        for name, family in NUMBERS.items():
            page.sample(family, labels, getattr(scrub, name))
        return Rendered(page.lines(), scrub.skipped)

    return render


COLLECTOR = Collector(
    "scrub", "scrubs of the object index of this node's targets", (STATE, FLAG, *NUMBERS.values()), start
)
