"""A reading over HTTP, from lustre-exporter on each server: one scrape each, put together."""

from __future__ import annotations

from collections.abc import Sequence

from tierd.sense.access import Access, SourceError
from tierd.sense.collected import MOST_ENTRIES, SUCCESS, Collected
from tierd.sense.exposition import samples
from tierd.sense.http import Client
from tierd.sense.readings import ChangelogState, JobCounters, Reading

TEXT = ("text/plain",)
ACCEPT = "text/plain; version=0.0.4"
JOB_FAMILIES = ("lustre_job_operations_total", "lustre_job_operation_seconds_total", "lustre_job_read_bytes_total",
                "lustre_job_write_bytes_total", "lustre_job_io_size_bytes_bucket", "lustre_job_io_size_bytes_count")
TARGET_FAMILIES = ("lustre_jobs",)
"""Shown for every target of which there are job statistics, by the same collector at the same moment."""
_BEGINNINGS = (b"lustre_job", b"lustre_ost_", b"lustre_mdt_", b"lustre_changelog_", SUCCESS.encode())


def fetch(url: str, timeout_seconds: float) -> str:
    """The exposition of one exporter, as text. Raises SourceError naming the URL."""
    return Client(Access(), timeout_seconds).get(url, (*TEXT, "text/html"), ACCEPT).body.decode("utf-8", "replace")


def reading(expositions: Sequence[str | bytes], time: float, origins: Sequence[str] = ()) -> Reading:
    """Job counters of all targets of several exporters, read at about the same time. Raises SourceError.

    ``origins`` name them, for complaints.
    """
    views = []
    for number, text in enumerate(expositions):
        views.append(view(text.encode() if isinstance(text, str) else text,
                          origins[number] if origins else f"exporter {number + 1}"))
    return together(views, time)


def view(body: bytes, origin: str) -> Collected:
    """What one exporter shows. Raises SourceError naming it."""
    collected = Collected(origin)
    try:
        for name, head, tail, value in samples(body, _BEGINNINGS):
            collected.add(name, head, tail, value)
    except ValueError as error:
        raise SourceError(f"{origin}: not to be believed: {error}") from error
    if b"lustre_" not in body:
        raise SourceError(f"{origin}: not an exposition of lustre-exporter")
    if not body.endswith(b"\n"):
        raise SourceError(f"{origin}: the answer is cut short: its last line has no end")
    if collected.failed:
        raise SourceError(f"{origin}: its collector {collected.failed} did not finish: half a view is none")
    return collected


def together(views: Sequence[Collected], time: float) -> Reading:
    """One reading of several views. Raises SourceError when two show the same target."""
    shown: dict[str, str] = {}
    for one in views:
        for target in one.targets:
            if target in shown:
                raise SourceError(f"{target} is shown by both {shown[target]} and {one.origin}: one server has it, so "
                                  "one of them shows what was, or is named twice")
            shown[target] = one.origin
    if sum(len(one.entries) for one in views) > MOST_ENTRIES:
        raise SourceError(f"more than {MOST_ENTRIES} pairs of job and target")
    jobs: dict[tuple[str, str], JobCounters] = {}
    conditions: dict[str, str] = {}
    changelogs: dict[str, ChangelogState] = {}
    for one in views:
        jobs.update(one.counters())
        conditions.update(one.conditions())
        changelogs.update(one.changelogs())
    return Reading(time, jobs, frozenset(shown), conditions, hides_idle=True, changelogs=changelogs)
