"""When acts are judged, and by what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Lt


@dataclass(frozen=True)
class Settings:
    """When to judge, and by what."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    settle_seconds: Annotated[float, Gt(0)] = 10.0
    """Time for files that were open at the change, and for data still to be written, before measuring begins."""
    moving_seconds: Annotated[float, Gt(0)] = 600.0
    """An act that only moves files is judged once they are moved, or after so long. Places a job goes on to within this
    time are judged together with the first."""
    judge_seconds: Annotated[float, Gt(0)] = 60.0
    """Measuring time after that."""
    least_gain: Annotated[float, Gt(0), Lt(1)] = 0.2
    """Part of the loss that must be won back, at the least, for an act to be kept."""
    harm_seconds: Annotated[float, Gt(0)] = 30.0
    """Measuring time after which an act is taken back when others pay for it."""
    most_harm: Annotated[float, Gt(0), Lt(1)] = 0.1
    """Fraction of its throughput that a steady job may lose since the act."""
    least_controls: Annotated[int, Ge(1)] = 3
    """Jobs on other targets, at the least, to tell how the whole file system fared meanwhile."""
    cooldown_seconds: Annotated[float, Ge(0)] = 21600.0
    """A directory whose default was taken back is left alone so long."""
