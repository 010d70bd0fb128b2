"""Jobs that open existing files for writing and only read them.

The NOTUR striping guide advises to open files read-only whenever possible. The open mode comes from the OPEN records of
the changelog, and what a job writes from its job statistics: bytes of all its files together, so a job that also writes
other files is not reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tierd.detect.view import View
from tierd.model import Advice, Finding
from tierd.policies.protocol import Common, Policy, edge
from tierd.text import percent, quoted
from tierd.validators import AtLeastOne, Share

WRITTEN_SHARE = 0.01
"""Largest share of written bytes among all bytes of the job. A choice."""


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    min_opens: AtLeastOne = 50
    """Minimum number of recent opens for writing in one directory. A choice."""
    enter: Share = 0.5
    """The finding begins at this share of opens for writing. Most of them: a choice."""


def find(view: View, settings: Settings) -> Iterator[Finding]:
    jobs = view.profiles()
    for activity in view.facts.directories:
        job, least = jobs.get(activity.job), edge(settings.enter, view, POLICY.name, activity.job, activity.directory)
        if (job is not None and not activity.creates
                and activity.write_opens >= max(settings.min_opens, least * activity.opens)
                and job.total.moved_bytes > 0 and job.total.write_bytes <= WRITTEN_SHARE * job.total.moved_bytes):
            share = activity.write_opens / max(activity.opens, activity.write_opens)
            yield POLICY.finding(
                view, f"{quoted(activity.job)} opens files in {quoted(activity.directory)} for writing, "
                f"{activity.write_opens} recently ({percent(share)} of its opens), and only reads them",
                {"opens": activity.opens, "write_opens": activity.write_opens, "write_open_share": share,
                 "written_share": job.total.write_bytes / job.total.moved_bytes}, job=activity.job,
                targets=sorted(job.by_target), directories=(activity.directory,), subject=activity.directory,
                advice=(Advice(
                    "open read-only: O_RDONLY, fopen \"r\", Fortran ACTION='READ', MPI_MODE_RDONLY, H5F_ACC_RDONLY",
                    f"in {quoted(activity.job)}",
                    "clients keep each other's cached pages and layouts, and tierd can move the files: an open for "
                    "writing breaks the lease of a move"),))


POLICY = Policy("opened-for-writing", Settings, find)
