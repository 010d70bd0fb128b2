"""Measures metadata targets over the last minute or two: operations by MDT and job, and the service of each MDS."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tierd.model import MetadataLoad, MetadataService
from tierd.sense.counters import CounterTable, Increases, increases
from tierd.sense.readings import Reading, ServiceCounters, is_ost

SPAN_SECONDS = 120.0
STEP_SECONDS = 25.0
MAX_JOBS = 5
CREATES = frozenset({"mknod", "mkdir", "link", "symlink"})
UNLINKS = frozenset({"unlink", "rmdir"})
STATS = frozenset({"getattr", "getxattr", "statfs"})
OPENS = frozenset({"open"})
UNCOUNTED = frozenset({"close", "read", "write", "read_bytes", "write_bytes", "punch", "migrate"})
"""``close`` follows an open. Data on the MDT is no metadata operation."""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """MDT counters of one reading."""

    time: float
    jobs: CounterTable
    services: Mapping[str, ServiceCounters]


class MetadataMeter:
    """Keeps a few snapshots. One thread learns, another asks."""

    def __init__(self) -> None:
        self._past: deque[_Snapshot] = deque()
        self.loads: tuple[MetadataLoad, ...] = ()
        self.services: tuple[MetadataService, ...] = ()

    def learn(self, reading: Reading) -> None:
        """Take over a reading. Most are too close to the last one and are ignored."""
        if self._past and reading.time < self._past[-1].time:
            self._past.clear()  # the clock was set back
        if self._past and reading.time < self._past[-1].time + STEP_SECONDS:
            return
        every = CounterTable.of(reading.jobs)
        mine = every.rows(~every.targets_that(is_ost))
        self._past.append(_Snapshot(reading.time, mine, reading.services))
        while len(self._past) > 1 and self._past[0].time < reading.time - SPAN_SECONDS:
            self._past.popleft()
        first, last = self._past[0], self._past[-1]
        if last.time > first.time:
            mdts = {target for target in reading.targets if not is_ost(target)}
            more = increases(first.jobs, last.jobs)
            self.loads = tuple(load_of(mdt, last.jobs, more, last.time - first.time) for mdt in sorted(mdts))
            self.services = tuple(service for node in sorted(last.services)
                                  if (service := service_of(node, first, last)) is not None)

    def forget(self) -> None:
        """Forget everything: the source failed."""
        self._past.clear()
        self.loads, self.services = (), ()


def load_of(mdt: str, counters: CounterTable, more: Increases, seconds: float) -> MetadataLoad:
    """Operations of an MDT per second, from the increases of counters."""
    done: defaultdict[str, float] = defaultdict(float)
    jobs: defaultdict[str, float] = defaultdict(float)
    usec = 0.0
    here = counters.target == mdt
    samples, names = more.samples.rows(here), counters.job[here].tolist()
    for name in samples.names:
        counts = samples[name]
        if name not in UNCOUNTED and counts.any():
            done[_group(name)] += float(counts.sum())
            usec += float(more.sums[name][here][counts > 0].sum())
            for row in np.flatnonzero(counts > 0).tolist():
                jobs[names[row]] += float(counts[row])
    count = sum(done.values())
    rates = {name: value / seconds for name, value in done.items()}
    return MetadataLoad(mdt, rates.get("creates", 0.0), rates.get("unlinks", 0.0), rates.get("stats", 0.0),
                        rates.get("opens", 0.0), others=rates.get("others", 0.0),
                        jobs=tuple((job, value / seconds) for job, value in
                              sorted(jobs.items(), key=lambda item: (-item[1], item[0]))[:MAX_JOBS]),
                        usec_per_operation=usec / count if count else 0.0)


def _group(operation: str) -> str:
    for name, group in (("creates", CREATES), ("unlinks", UNLINKS), ("stats", STATS), ("opens", OPENS)):
        if operation in group:
            return name
    return "others"


def service_of(node: str, first: _Snapshot, last: _Snapshot) -> MetadataService | None:
    """Load of a service between two snapshots; None if it is unknown, restarted, or had no requests."""
    before, now = first.services.get(node), last.services[node]
    if before is None:
        return None
    more = {name: getattr(now, name) - getattr(before, name) for name in ("requests", "wait_usec", "active", "queued")}
    requests = more["requests"]
    if requests <= 0 or min(more.values()) < 0:
        return None
    return MetadataService(node, now.threads, now.threads_max, requests / (last.time - first.time),
                           more["wait_usec"] / requests, active=more["active"] / requests,
                           queued=more["queued"] / requests, mdts=now.mdts)
