"""One workload, five ways: the stream alone, with its neighbour, with flash that holds the files, with flash that does
not, and with tierd deciding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lustre.layout import Component, Layout
from simulator.jobs import Job, SmallFileWriter, StreamingReader, StreamingWriter
from tierd.decide.sizing import UNIT_BYTES, boundary

NAMES = ("alone", "contended", "flash_covers", "flash_too_small", "tierd")


def streams(jobs: Sequence[Job]) -> list[Job]:
    """The jobs whose throughput is looked at."""
    return [job for job in jobs if isinstance(job, (StreamingWriter, StreamingReader))]


def variants(jobs: Sequence[Job]) -> Iterator[tuple[str, tuple[Job, ...]]]:
    """Name and jobs of each; the last runs with tierd."""
    yield "alone", tuple(streams(jobs))
    yield "contended", tuple(jobs)
    yield "flash_covers", tuple(on_flash(job, whole=True) for job in jobs)
    yield "flash_too_small", tuple(on_flash(job, whole=False) for job in jobs)
    yield "tierd", tuple(jobs)


def on_flash(job: Job, whole: bool) -> Job:
    """A job of small files with a flash component that holds them, or that holds a quarter of the largest."""
    if not isinstance(job, SmallFileWriter):
        return job
    largest = max(job.sizes)
    end = boundary(largest) if whole else max(UNIT_BYTES, boundary(largest) // 4)
    tail = job.layout.components[-1] if job.layout is not None else Component(pool="hdd")
    return replace(job, layout=Layout((
        Component(0, end, "flash"), replace(tail, extent_start=end, extent_end=None))))
