"""Load of the metadata targets: service time of their operations now, compared with quiet times.

Each operation is compared with itself, because a create takes longer than a close on any MDT, and the mix of operations
changes with the jobs. An operation that was never seen in quiet times is left out. An MDT without such operations is
quiet if it has hardly anything to do: by Little's law, its service times per second are its requests at a time.

>>> from tierd.model import Service
>>> quiet = [Window(n * 5.0, n * 5.0 + 5, {}, {}, metadata={"l-MDT0000": {"open": Service(100.0, 40_000.0)}})
...          for n in range(12)]
>>> busy = [Window(60.0 + n * 5, 65.0 + n * 5, {}, {}, metadata={"l-MDT0000": {"open": Service(100.0, 90_000.0)}})
...         for n in range(6)]
>>> slowdown(quiet + busy), slowdown(quiet), slowdown(quiet[:1]), slowdown([])
(2.25, 1.0, 1.0, None)
"""

from __future__ import annotations

from collections.abc import Sequence

from tierd.detect.groups import grouped, totals
from tierd.model import MetadataSpace, MetadataTargets, Window

NOW_SECONDS = 30.0
"""Length of "now"."""
MIN_OPERATIONS = 20.0
"""Operations of one kind in a window from which their mean service time counts."""
MIN_WINDOWS = 4
"""Number of such windows that are needed."""
QUIET_REQUESTS = 0.5
"""Mean number of requests at a time up to which an MDT is quiet."""


def metadata_targets(spaces: Sequence[MetadataSpace], windows: Sequence[Window]) -> MetadataTargets | None:
    """Room, limits and load of the MDTs; None if their room is unknown."""
    if not spaces:
        return None
    limits = windows[-1].data_limits.values() if windows else ()
    return MetadataTargets(tuple(spaces), min(limits, default=None), slowdown(windows))


def slowdown(windows: Sequence[Window]) -> float | None:
    """Service time now as a multiple of that in quiet times, on the slowest MDT. None if too little is known.

    Quiet is the faster quarter of the windows, for each operation. Nothing is known of an MDT that is not seen.
    """
    every = [(window.end, (target, name), service) for window in windows for target, services in window.metadata.items()
             for name, service in services.items()]
    means = grouped((kind, each.usec / each.operations) for _, kind, each in every if each.operations >= MIN_OPERATIONS)
    now = [(kind, each) for end, kind, each in every if end > windows[-1].end - NOW_SECONDS]
    operations = totals((kind, each.operations) for kind, each in now)
    usec = totals((kind, each.usec) for kind, each in now)
    quiet = {kind: sorted(means[kind])[len(means[kind]) // 4] for kind in usec if len(means[kind]) >= MIN_WINDOWS}
    ratios = []
    for kinds in grouped((kind[0], kind) for kind in usec).values():
        expected = sum(operations[kind] * quiet[kind] for kind in kinds if kind in quiet)
        at_a_time = sum(usec[kind] for kind in kinds) / 1e6 / NOW_SECONDS
        if expected > 0:
            ratios.append(sum(usec[kind] for kind in kinds if kind in quiet) / expected)
        elif at_a_time <= QUIET_REQUESTS:
            ratios.append(1.0)
        else:
            return None
    return round(max(ratios), 6) if ratios and not any("-MDT" in target for target in windows[-1].unseen) else None
