"""Targets on which streams would lose throughput to further work, and the time that such work takes there.

A stream has its next request ready when one is done. On a target that is busy all the time, every second of service
for others is a second in which the stream waits. Where the targets of a stream are clearly idle for a part of the time,
the stream waits for something else, and idle time costs it nothing.

The times are the costs of :mod:`tierd.detect.costs`. While the costs of a pool are not known, a byte takes as long as
in the fastest window of any of its targets: a target can do what it, or a similar one, has done. Then the streams there
count as held up, because nothing shows that they are not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from tierd.detect.columns import JobKinds, RecentWork
from tierd.detect.costs import DISK_OPERATION_SECONDS, FLASH_OPERATION_SECONDS, SATURATED, Vector
from tierd.detect.device_time import TargetTime
from tierd.detect.groups import grouped
from tierd.loads import Loads, Numbers
from tierd.model import Facts, StreamedTarget, StreamedTargets, Window

CLEARLY_IDLE = SATURATED / 2
"""Utilisation, less its error, up to which no target of a stream holds it up, even if its disk is half as fast as its
pool: such a disk looks half as busy as it is."""
PAUSED_SECONDS, PAUSED_WINDOWS = 10.0, 2
"""A stream that moved nothing on a target for this many seconds and windows has paused there: a reading may be late."""


class StreamWatch:
    """Finds these targets after each window. It remembers the fastest window of each target."""

    def __init__(self, flash: Collection[str] = ()) -> None:
        self._flash = frozenset(flash)
        self.fastest: dict[str, float] = {}
        """Bytes per second of each target in its fastest window."""

    def targets(self, held_up: Collection[str], recent: Sequence[Window],
                device_time: Mapping[str, TargetTime], facts: Facts) -> StreamedTargets:
        """The targets with streams that further work would slow, as of the newest window.

        ``held_up`` are the streams that may be (:func:`streams_held_up`), ``recent`` the windows of late.
        """
        for window in recent[-1:]:
            self._learn(window)
        latest = [Loads.of(window.loads) for window in latest_windows(recent)]
        streams = grouped({pair for loads in latest for pair in loads.rows(
            (loads.moved_bytes > 0) & loads.jobs_among(held_up)).keys_by_row()})
        assumed = self._assumed(facts) if streams else {}
        return StreamedTargets({
            target: StreamedTarget(tuple(sorted(jobs)), *(device_time[target].costs.seconds if target in device_time
                                                          else assumed[facts.pool_of(target) or target]))
            for target, jobs in streams.items()}, facts.pools)

    def _learn(self, window: Window) -> None:
        loads, targets = Loads.of(window.loads), Numbers[str]()
        at = targets.of(loads.target.tolist(), len(loads))
        for target, size_bytes in zip(targets, np.bincount(at, loads.moved_bytes).tolist(), strict=True):
            if size_bytes:
                self.fastest[target] = max(self.fastest.get(target, 0.0), size_bytes / window.seconds_of(target))

    def _assumed(self, facts: Facts) -> Mapping[str, Vector]:
        """By pool, or by target without a pool: seconds for a byte, and the most of an operation, while costs are
        not known.
        """
        fastest: dict[str, float] = {}
        for target, rate in self.fastest.items():
            key = facts.pool_of(target) or target  # of several pools, the smallest says most
            fastest[key] = max(fastest.get(key, 0.0), rate)
        return {key: (1 / rate, 1 / rate, FLASH_OPERATION_SECONDS if key in self._flash else DISK_OPERATION_SECONDS)
                for key, rate in fastest.items()}


def latest_windows(windows: Sequence[Window]) -> Sequence[Window]:
    """The newest windows, of at least :data:`PAUSED_SECONDS` and :data:`PAUSED_WINDOWS`."""
    count, seconds = 0, 0.0
    for window in reversed(windows):
        if seconds >= PAUSED_SECONDS and count >= PAUSED_WINDOWS:
            break
        count, seconds = count + 1, seconds + window.seconds
    return windows[len(windows) - count:]


def streams_held_up(recent: RecentWork, kinds: JobKinds, jobs: Sequence[str], targets: Sequence[str],
                    device_time: Mapping[str, TargetTime]) -> Collection[str]:
    """Streams that may wait for one of their targets. Unknown costs do not prove that they do not."""
    idle = np.array([target in device_time and device_time[target].utilisation + device_time[target].utilisation_error
                     <= CLEARLY_IDLE for target in targets], bool)
    waiting = kinds.stream[recent.job] & ~idle[recent.target]
    return {jobs[job] for job in np.unique(recent.job[waiting]).tolist()}
