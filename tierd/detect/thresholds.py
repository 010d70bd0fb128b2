"""From which throughput on a stream counts as slow, and from which on it does no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Lt

from tierd.detect.baseline import spread
from tierd.detect.profile import Classes

TELLING = 8
"""Undisturbed windows that tell how steady a stream is by itself; fewer may look steady by chance."""

DOUBT = 0.03
"""Fraction of its throughput by which a stream must be slower than its own variation explains."""


@dataclass(frozen=True)
class Settings:
    """Thresholds. Fractions are of the victim's undisturbed throughput unless said otherwise."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    classes: Classes = field(default_factory=Classes)
    recent_seconds: Annotated[float, Gt(0)] = 30.0
    """What a job is like is told from its last so many seconds."""
    enter: Annotated[float, Gt(0), Lt(1)] = 0.85
    """Throughput below this fraction begins a finding."""
    leave: Annotated[float, Gt(0), Lt(1)] = 0.91
    """Throughput above this fraction ends it: 1/1.1."""
    enter_steady: Annotated[float, Gt(0), Lt(1)] = 0.94
    """The same for a stream that hardly varies by itself: of it less is enough to be sure."""
    leave_steady: Annotated[float, Gt(0), Lt(1)] = 0.965
    """Where a finding about such a stream ends."""
    least_windows: Annotated[int, Ge(2)] = 4
    """Windows with and windows without the aggressor, at the least: fewer are no evidence."""
    before_windows: Annotated[int, Ge(1)] = 6
    """Windows before the aggressor came that tell what the victim got then."""
    slow_windows: Annotated[float, Gt(0), Lt(1)] = 0.6
    """Share of the windows since the aggressor came in which the victim must have been slow."""
    target_share: Annotated[float, Gt(0), Lt(1)] = 0.1
    """Aggressor's part of the operations or of the bytes of the two on a target, for the target to count as shared."""
    presence: Annotated[float, Gt(0), Lt(1)] = 0.05
    """Aggressor's part of the operations of the two for a window to count as disturbed."""


def threshold(quiet: Sequence[float], held: bool, settings: Settings) -> float:
    """Fraction of its usual throughput below which this stream is slow: the steadier it is by itself, the higher.

    >>> threshold([100.0] * 8, False, Settings()), threshold([80.0, 100.0, 90.0, 120.0], False, Settings())
    (0.94, 0.85)
    """
    if len(quiet) < TELLING:
        return settings.leave if held else settings.enter
    if held:
        return max(settings.leave, min(settings.leave_steady, 1 - spread(quiet)))
    return max(settings.enter, min(settings.enter_steady, 1 - DOUBT - spread(quiet)))
