"""Consistency checks: ``mdd.*.lfsck_*``, ``obdfilter.*.lfsck_layout``, and OI Scrub (``osd-*.*.oi_scrub``).

LFSCK checks names and layouts across the targets of a file system. OI Scrub checks and repairs a target's object
index. The numbers describe the current or last run and start again with the next run, so they are gauges. The number
of completed runs is on disk and only grows.
"""

from __future__ import annotations

from exporter.capacity import OSD_KINDS
from exporter.collector import Collect, Collector, Context
from exporter.exposition import Counter, Gauge, MetricsPage
from exporter.node import Node
from exporter.sources import Source, paged
from lustre.formats import lfsck


def show_run(page: MetricsPage, labels: bytes, run: lfsck.Lfsck | lfsck.OiScrub, state: Gauge, flag: Gauge) -> None:
    """Show the state of a run and each of its flags once."""
    if run.status:
        page.sample(state, labels + b',state="%b"' % run.status, 1)
    for name in dict.fromkeys(run.flags):
        page.sample(flag, labels + b',flag="%b"' % name, 1)


LABELS = ("fs", "target", "kind")
CHECKS = "mdd.*.lfsck_namespace, mdd.*.lfsck_layout, obdfilter.*.lfsck_layout"
PARAMETERS = (("mdd", "namespace"), ("mdd", "layout"), ("obdfilter", "layout"))


def _gauge(name: str, text: str, *labels: str) -> Gauge:
    return Gauge(f"lustre_lfsck_{name}", text, (*LABELS, *labels), CHECKS)


STATE = _gauge(
    "state", "Always 1. The label is the state of LFSCK: init (never run), scanning-phase1, scanning-phase2, completed,"
    " partial (a target did not take part), failed, stopped (by an administrator), paused (resumes at the next"
    " mount), crashed (resumes after recovery), or co-... (follows the state of the coordinating target).", "state")
FLAG = _gauge(
    "flag",
    "Always 1 for each flag that is set: inconsistent (errors found and not yet repaired), scanned-once, upgrade,"
    " incomplete, crashed_lastid.", "flag")
PHASES = {
    "checked": _gauge("checked_items", "Items checked by the current or last LFSCK run, by phase.", "phase"),
    "failed": _gauge(
        "failed_items", "Items that the current or last LFSCK run could not check or repair, by phase.", "phase"),
    "run_seconds": _gauge("run_seconds", "Run time of the current or last LFSCK run, by phase.", "phase"),
}
PROBLEM = _gauge(
    "problems",
    "Problems found by the current or last LFSCK run, by problem, repaired or (in a dry run) only reported. A"
    " problem without findings has no series.", "problem")
NUMBERS = {
    "repaired": _gauge("repaired_items", "Items repaired by the current or last LFSCK run."),
    "inconsistent": _gauge("inconsistent_items", "Items found inconsistent by a dry run of LFSCK."),
    "started": _gauge(
        "start_timestamp_seconds",
        "Time when the current or last LFSCK run started or resumed, in seconds since 1970."),
    "ended": _gauge("completed_timestamp_seconds", "Time when an LFSCK run last completed, in seconds since 1970."),
    "completed": Counter("lustre_lfsck_completed_total", "LFSCK runs completed.", LABELS, CHECKS),
}


def start_lfsck(_: Context) -> Collect:
    sources = [(kind, of, Source(kind, f"lfsck_{of}", paged(_lfsck))) for kind, of in PARAMETERS]

    def collect(node: Node, page: MetricsPage) -> None:
        for kind, of, source in sources:
            extra = b',kind="%b"' % of.encode()
            source.collect(node, page, [(name, labels + extra) for name, labels in node.labelled_targets(kind)])

    return collect


def _lfsck(page: MetricsPage, labels: bytes, data: bytes) -> int:
    check = lfsck.parse(data)
    show_run(page, labels, check, STATE, FLAG)
    for name, family in PHASES.items():
        for phase, number in getattr(check, name):
            page.sample(family, labels + b',phase="%b"' % phase, number)
    for problem, number in check.problems:
        page.sample(PROBLEM, labels + b',problem="%b"' % problem, number)
    for name, of_run in NUMBERS.items():
        page.sample(of_run, labels, getattr(check, name))
    return check.skipped


LFSCK_FAMILIES = (STATE, FLAG, *PHASES.values(), PROBLEM, *NUMBERS.values())
LFSCK_COLLECTOR = Collector("lfsck", "LFSCK: checks of names and layouts across targets", LFSCK_FAMILIES, start_lfsck)
SCRUB_LABELS = ("fs", "target")
SCRUB = "osd-*.*.oi_scrub"


def _scrub_gauge(name: str, text: str) -> Gauge:
    return Gauge(f"lustre_osd_scrub_{name}", text, SCRUB_LABELS, SCRUB)


SCRUB_STATE = Gauge(
    "lustre_osd_scrub_state",
    "Always 1. The label is the state of the object index scrub: init (never run), scanning, completed, failed,"
    " stopped (by an administrator), paused (resumes at the next mount), crashed (resumes after recovery).",
    (*SCRUB_LABELS, "state"), SCRUB)
SCRUB_FLAG = Gauge(
    "lustre_osd_scrub_flag",
    "Always 1 for each flag that is set: inconsistent (errors found and not yet repaired), recreated, auto, upgrade.",
    (*SCRUB_LABELS, "flag"), SCRUB)
SCRUB_NUMBERS = {
    "checked": _scrub_gauge("checked_objects", "Objects checked by the current or last scrub run."),
    "repaired": _scrub_gauge(
        "repaired_objects", "Objects whose index entry was repaired by the current or last scrub run."),
    "inconsistent": _scrub_gauge(
        "inconsistent_objects", "Objects whose index entry was found inconsistent by a dry run of scrub."),
    "failed": _scrub_gauge(
        "failed_objects", "Objects whose index entry could not be repaired by the current or last scrub run."),
    "run_seconds": _scrub_gauge("run_seconds", "Run time of the current or last scrub run."),
    "since_started_seconds": _scrub_gauge(
        "since_start_seconds", "Time since the current or last scrub run started or resumed."),
    "since_completed_seconds": _scrub_gauge("since_completed_seconds", "Time since a scrub run last completed."),
    "completed": Counter("lustre_osd_scrub_completed_total", "Scrub runs completed.", SCRUB_LABELS, SCRUB),
}


def start_scrub(_: Context) -> Collect:
    sources = [(kind, Source(kind, "oi_scrub", paged(_scrub))) for kind in OSD_KINDS]

    def collect(node: Node, page: MetricsPage) -> None:
        for kind, source in sources:
            source.collect(node, page, node.labelled_targets(kind))

    return collect


def _scrub(page: MetricsPage, labels: bytes, data: bytes) -> int:
    scrub = lfsck.parse_oi_scrub(data)
    show_run(page, labels, scrub, SCRUB_STATE, SCRUB_FLAG)
    for name, family in SCRUB_NUMBERS.items():
        page.sample(family, labels, getattr(scrub, name))
    return scrub.skipped


SCRUB_COLLECTOR = Collector(
    "scrub", "scrubs of the object index of this node's targets", (SCRUB_STATE, SCRUB_FLAG, *SCRUB_NUMBERS.values()),
    start_scrub)
