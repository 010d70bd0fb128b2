"""Measures metadata targets over the last minutes: operations by MDT and job, and the service of each MDS."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from tierd.loads import OTHERS, NamespaceLoads, Texts, names_together
from tierd.model import MetadataLoad, MetadataService, NamespaceLoad, Window
from tierd.sense.counters import CounterTable, Increases, increases
from tierd.sense.readings import Reading, is_ost, of_unknown_start

SPAN_SECONDS = 120.0
STEP_SECONDS = 25.0
MAX_JOBS = 5
GROUPS = {
    **dict.fromkeys(("mknod", "mkdir", "link", "symlink"), "creates"), **dict.fromkeys(("unlink", "rmdir"), "unlinks"),
    **dict.fromkeys(("getattr", "getxattr", "statfs"), "stats"), "open": "opens"}
"""Groups of operations. Those without one are others."""
UNCOUNTED = frozenset({"close", "read", "write", "read_bytes", "write_bytes", "punch", "migrate"})
"""``close`` follows an open. Data on the MDT is not a metadata operation."""


class MetadataMeter:
    """Keeps a few snapshots. One thread learns, another asks."""

    def __init__(self, own_jobs: Collection[str] = ()) -> None:
        """Operations of ``own_jobs`` do not count."""
        self._own_jobs = frozenset(own_jobs)
        self._last: Reading | None = None
        """With the counters of MDTs only."""
        self._steps: deque[Step] = deque()
        self._lost: dict[str, float] = {}
        self.loads: tuple[MetadataLoad, ...] = ()
        self.services: tuple[MetadataService, ...] = ()

    def learn(self, reading: Reading) -> None:
        """Take over a reading. Most are too close to the last one and are ignored."""
        before = self._last
        if before is not None and reading.time < before.time:  # the clock was set back
            before = None
            self._steps.clear()
        if before is not None and reading.time < before.time + STEP_SECONDS:
            return
        every = CounterTable.of(reading.jobs)
        last = self._last = replace(reading, jobs=every.rows(
            ~every.targets_that(is_ost) & ~every.jobs_among(self._own_jobs)))
        if before is not None:
            self._steps.append(Step.between(before, last, self._lost))
        while self._steps and self._steps[0].before.time < reading.time - SPAN_SECONDS:
            self._steps.popleft()
        if self._steps:
            first = self._steps[0].before
            mdts = {target for target in reading.targets if not is_ost(target)}
            self.loads = tuple(load_of(mdt, seen) for mdt in sorted(mdts)
                               if (seen := [step for step in self._steps if mdt in step.targets]))
            self.services = tuple(service for node in sorted(last.services)
                                  if (service := service_of(node, first, last)) is not None)

    def forget(self) -> None:
        """Forget everything: the source failed."""
        self._last = None
        self._steps.clear()
        self.loads, self.services = (), ()


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What was counted between two snapshots."""

    before: Reading
    """The earlier one, without its counters of jobs."""
    seconds: float
    targets: Set[str]
    """Targets that both have."""
    target: Texts
    job: Texts
    more: Increases
    """Of rows of the later one whose counts are of this time."""

    @classmethod
    def between(cls, before: Reading, after: Reading, lost: dict[str, float]) -> Step:
        counters = CounterTable.of(after.jobs)
        more = increases(CounterTable.of(before.jobs), counters)
        known = ~of_unknown_start(counters, more, before, after, lost)
        return cls(replace(before, jobs={}), after.time - before.time, before.targets & after.targets,
                   counters.target[known], counters.job[known], more=more.rows(known))


def load_of(mdt: str, steps: Sequence[Step]) -> MetadataLoad:
    """Operations of an MDT per second, from the increases of counters in steps that have it."""
    done: defaultdict[str, float] = defaultdict(float)
    jobs: defaultdict[str, float] = defaultdict(float)
    usec, seconds = 0.0, sum(step.seconds for step in steps)
    for step in steps:
        here = step.target == mdt
        samples, names = step.more.samples.rows(here), step.job[here].tolist()
        for name in samples.names:
            counts = samples[name]
            if name not in UNCOUNTED and counts.any():
                done[GROUPS.get(name, "others")] += float(counts.sum())
                usec += float(step.more.sums[name][here][counts > 0].sum())
                for row in np.flatnonzero(counts > 0).tolist():
                    jobs[names[row]] += float(counts[row])
    count = sum(done.values())
    busiest = sorted(jobs.items(), key=lambda item: (-item[1], item[0]))[:MAX_JOBS]
    return MetadataLoad(mdt, **{name: value / seconds for name, value in done.items()},
                        jobs=tuple((job, value / seconds) for job, value in busiest),
                        usec_per_operation=usec / count if count else 0.0)


def service_of(node: str, first: Reading, last: Reading) -> MetadataService | None:
    """Load of a service between two snapshots; None if it is unknown, restarted, or had no requests."""
    before, now = first.services.get(node), last.services[node]
    if before is None:
        return None
    more = {name: getattr(now, name) - getattr(before, name) for name in ("requests", "wait_usec", "active")}
    requests = more["requests"]
    if requests <= 0 or min(more.values()) < 0:
        return None
    return MetadataService(node, now.threads, now.threads_max, requests / (last.time - first.time),
                           more["wait_usec"] / requests, active=more["active"] / requests, mdts=now.mdts)


UNLISTED_FACTOR = 4.0
"""A job counts as not listed if the changelogs have more than this multiple of its operations in ``job_stats``. A
choice: the two are read at different times, so they differ in the windows in which a job begins or ends."""
LATE_RECORD_SECONDS = 15.0
"""Records this much older than the window are not those of the window: tierd catches up with missed ones. A choice."""


class UnlistedJobs:
    """Adds metadata operations of jobs that no MDT lists in its ``job_stats``, from changelog records, to windows.

    An MDT of Lustre 2.17.57 no longer listed a job after its entry had been cleaned up, while the job made
    thousands of files and the changelog named it. Call it for each window in turn.
    """

    def __init__(self, recorded: Callable[[Collection[str]], Mapping[str, NamespaceLoad]]) -> None:
        """``recorded`` returns the operations of jobs since its last call."""
        self._recorded = recorded
        self._before: Collection[str] = ()
        """Jobs of the window before, as far as records named them."""
        self._end = 0.0
        """End of that window."""

    def completed(self, window: Window, oldest_record: float) -> Window:
        """The window with these operations. ``oldest_record`` is the time of the oldest record that was read last."""
        recorded = NamespaceLoads.of(self._recorded(window.jobs))
        before, self._before = self._before, frozenset(recorded)
        follows, self._end = window.start == self._end, window.end
        if not follows or oldest_record < window.start - LATE_RECORD_SECONDS:  # these are not of this window alone
            return window
        known, recorded = NamespaceLoads.of(window.namespace), recorded.rows(recorded.jobs_among(before))
        row = [known.row_of.get(job, -1) for job in recorded.keys_by_row()]
        listed = np.append(known.numbers, np.zeros((1, 5)), axis=0)[row]
        recorded.numbers[:, OTHERS] = listed[:, OTHERS]
        # operations that changelogs record, if their masks have all of these types
        more = recorded.numbers[:, :OTHERS].sum(axis=1) > UNLISTED_FACTOR * listed[:, :OTHERS].sum(axis=1)
        found = recorded.rows(more)
        others = known.rows(~known.jobs_among(frozenset(found)))
        return replace(window, namespace=names_together((others, found))) if found else window
