"""The model of interference beside today's detection: it is fed the same windows, and nothing acts on what it says.

``tierctl evaluate`` shows both. When the model is at least as good on every row, it takes the place of
:mod:`tierd.detect.noisy_neighbour` and :mod:`tierd.detect.device_time`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from tierd.detect.columns import RecentWindows, pool_numbers, recent_work
from tierd.detect.costs import CostLearner
from tierd.detect.interference import Interference
from tierd.detect.profile import Classes
from tierd.model import Window

MIN_LOSS = 0.05
"""Loss that is reported: users do not notice less, and disks vary as much."""
REPORT, ACT = 0.6, 0.85
"""Probability of this loss from which the model reports it, and from which it would act. Choices: on devices with a
limit of I/Os counters alone cannot settle a case without a past, and a higher probability to report finds fewer."""
ACT_LOSS = 0.1
"""Expected loss from which the model would act: an act wins back four fifths of it."""
ERRORS_OF_90_PERCENT = 1.645
"""Standard errors on each side of the mean that hold nine tenths of a normal distribution."""


@dataclass(frozen=True, slots=True)
class ShadowLoss:
    """What one stream loses to some jobs, by the model. Losses are parts of its throughput without them."""

    time: float
    """End of the window; epoch seconds."""
    victim: str
    suspects: tuple[str, ...]
    loss: float
    low: float
    high: float
    """90% interval."""
    probability: float
    """That the loss is at least :data:`MIN_LOSS`."""

    @property
    def is_acted_on(self) -> bool:
        """Whether the model would act."""
        return self.probability >= ACT and self.loss >= ACT_LOSS


class Shadow:
    """The model, with a state of its own."""

    def __init__(self, recent_seconds: float, classes: Classes, flash: Collection[str]) -> None:
        """``flash`` are the pools of flash."""
        self._recent = RecentWindows(recent_seconds, classes)
        self._learner = CostLearner(flash=flash)
        self._interference = Interference()

    def observe(self, window: Window, pools: Mapping[str, Collection[str]]) -> list[ShadowLoss]:
        """Add a window. Returns the losses that the model reports."""
        recent = self._recent
        columns, kinds = recent.add(window), recent.kinds()
        names, pool = pool_numbers(recent.targets, pools)
        unhealthy = np.array([recent.targets[target] for target in window.conditions if target in recent.targets],
                             dtype=np.int64)
        self._learner.learn(columns, kinds, pool, names, unhealthy)
        losses = self._interference.update(columns, recent_work(recent.windows, kinds, len(recent.jobs)), kinds,
                                           self._learner.table(pool, names, unhealthy))
        jobs = list(recent.jobs)
        return [ShadowLoss(window.end, jobs[loss.victim], tuple(jobs[job] for job in loss.suspects), loss.share,
                           loss.quantile(-ERRORS_OF_90_PERCENT), loss.quantile(ERRORS_OF_90_PERCENT), probability)
                for loss in losses if (probability := loss.probability(MIN_LOSS)) >= REPORT]
