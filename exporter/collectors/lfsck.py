"""LFSCK, the check of names and layouts across targets: ``mdd.*.lfsck_*``, ``obdfilter.*.lfsck_layout``.

The numbers belong to the current or last run and restart with the next, so they are gauges. The number of completed
runs is stored on disk and only grows.
"""

from __future__ import annotations

from exporter import runs
from exporter.collector import Collect, Collector, Context
from exporter.families import Counter, Gauge
from exporter.node import Node
from exporter.page import Page
from exporter.sources import Render, Rendered, Source
from lustre.formats import lfsck

LABELS = ("fs", "target", "kind")
CHECKS = "mdd.*.lfsck_namespace, mdd.*.lfsck_layout, obdfilter.*.lfsck_layout"
PARAMETERS = (("mdd", "namespace"), ("mdd", "layout"), ("obdfilter", "layout"))


def _gauge(name: str, text: str, unit: str = "", *labels: str) -> Gauge:
    return Gauge(f"lustre_lfsck_{name}", text, (*LABELS, *labels), CHECKS, unit)


STATE = _gauge(
    "state",
    "Always 1. The label is the state of LFSCK: init (never run), scanning-phase1, scanning-phase2, completed,"
    " partial (a target did not take part), failed, stopped (by an administrator), paused (resumes at the next"
    " mount), crashed (resumes after recovery), or co-... (follows the state of the coordinating target).",
    "",
    "state",
)
FLAG = _gauge(
    "flag",
    "Always 1 for each flag that is set: inconsistent (errors found and not yet repaired), scanned-once, upgrade,"
    " incomplete, crashed_lastid.",
    "",
    "flag",
)
PHASES = {
    "checked": _gauge("checked_items", "Items checked by the current or last LFSCK run, by phase.", "", "phase"),
    "failed": _gauge(
        "failed_items", "Items that the current or last LFSCK run could not check or repair, by phase.", "", "phase"
    ),
    "run_seconds": _gauge("run_seconds", "Run time of the current or last LFSCK run, by phase.", "seconds", "phase"),
}
PROBLEM = _gauge(
    "problems",
    "Problems found by the current or last LFSCK run, by problem, repaired or (in a dry run) only reported. A"
    " problem without findings has no series.",
    "",
    "problem",
)
NUMBERS = {
    "repaired": _gauge("repaired_items", "Items repaired by the current or last LFSCK run."),
    "inconsistent": _gauge("inconsistent_items", "Items found inconsistent by a dry run of LFSCK."),
    "started": _gauge(
        "start_timestamp_seconds",
        "Time when the current or last LFSCK run started or resumed, in seconds since 1970.",
        "seconds",
    ),
    "ended": _gauge(
        "completed_timestamp_seconds", "Time when an LFSCK run last completed, in seconds since 1970.", "seconds"
    ),
    "completed": Counter("lustre_lfsck_completed_total", "LFSCK runs completed.", LABELS, CHECKS),
}


def start(_: Context) -> Collect:
    """Start without earlier readings."""
    sources = [(kind, of, Source(kind, f"lfsck_{of}", _renderer)) for kind, of in PARAMETERS]

    def collect(node: Node, page: Page) -> None:
        for kind, of, source in sources:
            extra = b',kind="%b"' % of.encode()
            source.collect(node, page, [(name, labels + extra) for name, labels in node.labelled_targets(kind)])

    return collect


def _renderer(labels: bytes) -> Render:
    def render(data: bytes) -> Rendered:
        check = lfsck.parse(data)
        page = Page()
        runs.show(page, labels, check, STATE, FLAG)
        for name, family in PHASES.items():
            for phase, number in getattr(check, name):
                page.sample(family, labels + b',phase="%b"' % phase, number)
        for problem, number in check.problems:
            page.sample(PROBLEM, labels + b',problem="%b"' % problem, number)
        for name, of_run in NUMBERS.items():
            page.sample(of_run, labels, getattr(check, name))
        return Rendered(page.lines(), check.skipped)

    return render


FAMILIES = (STATE, FLAG, *PHASES.values(), PROBLEM, *NUMBERS.values())
COLLECTOR = Collector("lfsck", "LFSCK: checks of names and layouts across targets", FAMILIES, start)
