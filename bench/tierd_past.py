"""What a daemon of a large file system has behind it: a day of Prometheus', and acts that wait for judgement."""

from __future__ import annotations

from collections.abc import Sequence

from bench.tierd_jobs import Job
from lustre.layout.model import Component, Layout
from tierd.cycle.cases import Case
from tierd.model import Finding, JobLoad, Window
from tierd.sense.prometheus_history import RATE_SECONDS, Learnt, busiest, ranges

DAY_SECONDS = 86400.0
COVERING = Layout((Component(0, 1 << 20, "flash"), Component(1 << 20, None, "hdd")))
SINCE_SECONDS = 55.0
"""The last act of each case was so long ago: it is looked at closely, and not judged yet."""
BEGUN_SECONDS = 120.0


def learnt(seen: Window, before: float) -> Learnt:
    """A day of the jobs the daemon would ask for, at the points in time it would ask for."""
    jobs = busiest(seen)
    loads = [load for load in seen.loads.values() if load.job in jobs]
    times = sorted(begin + number * step for begin, end, step in ranges(before - 1, DAY_SECONDS, len(loads))
                   for number in range(int((end - begin) / step) + 1))
    windows = [Window(time - RATE_SECONDS, time, {(load.target, load.job): JobLoad(
        load.target, load.job, write_bytes=load.moved_bytes / seen.seconds * RATE_SECONDS,
        writes=load.bulk_operations / seen.seconds * RATE_SECONDS) for load in loads}, {}, learnt=True)
        for time in times]
    return Learnt(tuple(windows), jobs)


def cases(count: int, jobs: Sequence[Job]) -> list[Case]:
    """Acts for streams on which jobs of small files have come down, not begun yet."""
    streams = [job for job in jobs if job.kind == "stream"]
    made = []
    for number, noise in enumerate([job for job in jobs if job.kind == "files"][:count]):
        places = set(noise.targets)
        stream = next((s for s in streams[number:] if places & set(s.targets)), streams[number])
        targets = tuple(f"big-OST{target:04x}" for target in stream.targets)
        finding = Finding("noisy-neighbour", 0.0, noise.name, stream.name, targets, "made up", {
            "victim_usual_bytes_per_second": 2e6, "victim_bytes_per_second": 1e6, "slowdown": 2.0})
        made.append(Case(finding, number + 1, 0.0, 0.0, COVERING))
    return made


def keep_open(made: Sequence[Case], now: float) -> None:
    """None of them is ever old enough to be judged."""
    for case in made:
        case.begun_at, case.acted_at, case.judged = now - BEGUN_SECONDS, now - SINCE_SECONDS, False
