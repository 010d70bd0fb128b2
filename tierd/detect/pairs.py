"""Which pairs of a stream and another job are worth comparing: asked of tens of thousands in each cycle.

>>> stream = at_work(([5e6, 5e6, 0.0, 5e6, 5e6], [10.0, 10.0, 0.0, 10.0, 10.0]))
>>> stream
[(4, 10.0), (3, 10.0), (1, 10.0), (0, 10.0)]
>>> may_be_told_apart(stream, [0.0, 0.0, 9.0, 9.0, 9.0], 0.05, least=2)  # it came when the stream had paused
True
>>> may_be_told_apart(stream, [9.0, 9.0, 9.0, 9.0, 9.0], 0.05, least=2)  # it was always there
False
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tierd.detect.profile import Profile
from tierd.detect.tracks import Course

Asked = Mapping[str, tuple[float, float]]
"""By target: operations and bytes that a job asked for."""
AtWork = Sequence[tuple[int, float]]
"""Windows in which a stream moved anything, the newest first, and its operations in them."""


def asked(job: Profile) -> Asked:
    """Of one job, of late."""
    return {target: (load.reads + load.writes + load.other_operations, load.read_bytes + load.write_bytes)
            for target, load in job.by_target.items()}


def shared_targets(mine: Asked, theirs: Asked, ill: Collection[str], share: float) -> tuple[str, ...]:
    """Healthy targets where both work and the other does at least its share of the operations or bytes of the two.

    Either is enough: 4 KiB writes are many operations and hardly any bytes, 4 MiB files the other way round.
    """
    found = []
    for target in mine if len(mine) < len(theirs) else theirs:
        if target in mine and target in theirs and target not in ill:
            own_operations, own_moved = mine[target]
            operations, moved = theirs[target]
            if operations >= share * (operations + own_operations) or moved >= share * (moved + own_moved):
                found.append(target)
    return tuple(sorted(found)) if len(found) > 1 else tuple(found)


def at_work(stream: Course) -> AtWork:
    """When a stream was there, and how much it asked for."""
    both = list(zip(*stream, strict=True))
    return [(at, both[at][1]) for at in range(len(both) - 1, -1, -1) if both[at][0]]


def may_be_told_apart(mine: AtWork, theirs: Sequence[float], presence: float, least: int) -> bool:
    """Whether there are windows enough with and without the suspect, the former of late: else a series tells nothing.

    ``theirs`` are its operations, window by window. Of half of all pairs the last windows tell it.
    """
    stay = gap = quiet = 0
    stays = False
    for at, own in mine:
        other = theirs[at]
        if other > 0 and other >= presence * (own + other):
            if not stays:
                stay, gap = stay + gap + 1, 0
                stays = stay >= least
        else:
            quiet += 1
            if stays:
                if quiet >= least:
                    return True
            else:
                gap += 1
                if gap > 1:
                    return False
    return stays and quiet >= least
