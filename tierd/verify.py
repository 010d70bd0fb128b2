"""Did it help? The victim's throughput after an act against before and against its usual: keep, or undo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Annotated, ClassVar

from annotated_types import Gt, Lt

from tierd.model import Finding, Window


@dataclass(frozen=True)
class Settings:
    """When to judge, and by what."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    settle_seconds: Annotated[float, Gt(0)] = 10.0
    """Time for files that were open at the change, and for data still to be written, before measuring begins."""
    moving_seconds: Annotated[float, Gt(0)] = 600.0
    """Moves load the disks themselves; so long they may go on before the act is judged all the same."""
    judge_seconds: Annotated[float, Gt(0)] = 60.0
    """Measuring time after that."""
    least_gain: Annotated[float, Gt(0), Lt(1)] = 0.2
    """Part of the loss that must be won back, at the least, for an act to be kept."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """``verdict`` is ``too-early``, ``helped``, ``did-not-help`` or ``cannot-tell``. Rates in bytes per second."""

    verdict: str
    usual: float
    contended: float
    after: float

    @property
    def won_back(self) -> float:
        """Part of the loss that was won back; 1 is all of it."""
        loss = self.usual - self.contended
        return (self.after - self.contended) / loss if loss > 0 else 0.0


def judge(finding: Finding, acted_at: float, windows: Sequence[Window], now: float, settings: Settings) -> Judgement:
    """Judge one act by the windows since.

    ``cannot-tell`` when the victim or the aggressor has gone: then nothing was proven, and nothing disproven.
    """
    usual = finding.evidence["victim_usual_bytes_per_second"]
    contended = finding.evidence["victim_bytes_per_second"]
    since = acted_at + settings.settle_seconds
    later = [w for w in windows if w.start >= since]
    rates = [rate for w in later if (rate := throughput(w, finding.victim)) > 0 and finding.aggressor in w.jobs]
    after = median(rates) if rates else 0.0
    if now < since + settings.judge_seconds:
        return Judgement("too-early", usual, contended, after)
    if len(rates) < max(2, len(later) // 2):
        return Judgement("cannot-tell", usual, contended, after)
    gained = after - contended >= settings.least_gain * (usual - contended)
    return Judgement("helped" if gained else "did-not-help", usual, contended, after)


def throughput(window: Window, job: str) -> float:
    """Bytes per second of a job in a window, on all targets."""
    return sum(load.moved_bytes for (_, name), load in window.loads.items() if name == job) / window.seconds
