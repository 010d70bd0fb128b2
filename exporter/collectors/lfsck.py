"""Consistency checks: ``mdd.*.lfsck_*``, ``obdfilter.*.lfsck_layout``, and OI Scrub (``osd-*.*.oi_scrub``).

LFSCK checks names and layouts across the targets of a file system. OI Scrub checks and repairs a target's object
index. The numbers describe the current or last run and start again with the next run, so they are gauges. The number
of completed runs is on disk and only grows.
"""

from __future__ import annotations

from exporter.capacity import OSD_KINDS
from exporter.collector import Collector, Devices, all_of, reads
from exporter.exposition import Gauge, MetricsPage
from exporter.families import FamilyMaker
from exporter.sources import paged
from lustre.formats import lfsck


def show_run(page: MetricsPage, labels: bytes, run: lfsck.Lfsck | lfsck.OiScrub, state: Gauge, flag: Gauge) -> None:
    """Show the state of a run and each of its flags once."""
    if run.status:
        page.sample(state, labels + b',state="%b"' % run.status, 1)
    for name in dict.fromkeys(run.flags):
        page.sample(flag, labels + b',flag="%b"' % name, 1)


PARAMETERS = (("mdd", "namespace"), ("mdd", "layout"), ("obdfilter", "layout"))
OF_CHECK = FamilyMaker(
    "lustre_lfsck", ("fs", "target", "kind"), "mdd.*.lfsck_namespace, mdd.*.lfsck_layout, obdfilter.*.lfsck_layout")
STATE = OF_CHECK.gauge(
    "state", "Always 1. The label is the state of LFSCK: init (never run), scanning-phase1, scanning-phase2, completed,"
    " partial (a target did not take part), failed, stopped (by an administrator), paused (resumes at the next"
    " mount), crashed (resumes after recovery), or co-... (follows the state of the coordinating target).", "state")
FLAG = OF_CHECK.gauge(
    "flag",
    "Always 1 for each flag that is set: inconsistent (errors found and not yet repaired), scanned-once, upgrade,"
    " incomplete, crashed_lastid.", "flag")
PHASES = {
    "checked": OF_CHECK.gauge("checked_items", "Items checked by the current or last LFSCK run, by phase.", "phase"),
    "failed": OF_CHECK.gauge(
        "failed_items", "Items that the current or last LFSCK run could not check or repair, by phase.", "phase"),
    "run_seconds": OF_CHECK.gauge("run_seconds", "Run time of the current or last LFSCK run, by phase.", "phase"),
}
PROBLEM = OF_CHECK.gauge(
    "problems",
    "Problems found by the current or last LFSCK run, by problem, repaired or (in a dry run) only reported. A"
    " problem without findings has no series.", "problem")
NUMBERS = {
    "repaired": OF_CHECK.gauge("repaired_items", "Items repaired by the current or last LFSCK run."),
    "inconsistent": OF_CHECK.gauge("inconsistent_items", "Items found inconsistent by a dry run of LFSCK."),
    "started": OF_CHECK.gauge(
        "start_timestamp_seconds",
        "Time when the current or last LFSCK run started or resumed, in seconds since 1970."),
    "ended": OF_CHECK.gauge(
        "completed_timestamp_seconds", "Time when an LFSCK run last completed, in seconds since 1970."),
    "completed": OF_CHECK.counter("completed", "LFSCK runs completed."),
}


def targets_of(kind: str, check: str) -> Devices:
    extra = b',kind="%b"' % check.encode()
    return lambda node: [(name, labels + extra) for name, labels in node.labelled_targets(kind)]


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
LFSCK_COLLECTOR = Collector(
    "lfsck", "LFSCK: checks of names and layouts across targets", LFSCK_FAMILIES, all_of(*[
        reads(kind, f"lfsck_{of}", lambda: paged(_lfsck), targets_of(kind, of)) for kind, of in PARAMETERS]))
OF_SCRUB = FamilyMaker("lustre_osd_scrub", ("fs", "target"), "osd-*.*.oi_scrub")
SCRUB_STATE = OF_SCRUB.gauge(
    "state",
    "Always 1. The label is the state of the object index scrub: init (never run), scanning, completed, failed,"
    " stopped (by an administrator), paused (resumes at the next mount), crashed (resumes after recovery).", "state")
SCRUB_FLAG = OF_SCRUB.gauge(
    "flag",
    "Always 1 for each flag that is set: inconsistent (errors found and not yet repaired), recreated, auto, upgrade.",
    "flag")
SCRUB_NUMBERS = {
    "checked": OF_SCRUB.gauge("checked_objects", "Objects checked by the current or last scrub run."),
    "repaired": OF_SCRUB.gauge(
        "repaired_objects", "Objects whose index entry was repaired by the current or last scrub run."),
    "inconsistent": OF_SCRUB.gauge(
        "inconsistent_objects", "Objects whose index entry was found inconsistent by a dry run of scrub."),
    "failed": OF_SCRUB.gauge(
        "failed_objects", "Objects whose index entry could not be repaired by the current or last scrub run."),
    "run_seconds": OF_SCRUB.gauge("run_seconds", "Run time of the current or last scrub run."),
    "since_started_seconds": OF_SCRUB.gauge(
        "since_start_seconds", "Time since the current or last scrub run started or resumed."),
    "since_completed_seconds": OF_SCRUB.gauge("since_completed_seconds", "Time since a scrub run last completed."),
    "completed": OF_SCRUB.counter("completed", "Scrub runs completed."),
}


def _scrub(page: MetricsPage, labels: bytes, data: bytes) -> int:
    scrub = lfsck.parse_oi_scrub(data)
    show_run(page, labels, scrub, SCRUB_STATE, SCRUB_FLAG)
    for name, family in SCRUB_NUMBERS.items():
        page.sample(family, labels, getattr(scrub, name))
    return scrub.skipped


SCRUB_COLLECTOR = Collector(
    "scrub", "scrubs of the object index of this node's targets", (SCRUB_STATE, SCRUB_FLAG, *SCRUB_NUMBERS.values()),
    all_of(*[reads(kind, "oi_scrub", lambda: paged(_scrub)) for kind in OSD_KINDS]))
