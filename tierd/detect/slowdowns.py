"""What policies about slowed streams see of the model of interference, and what their findings share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tierd.detect.accelerators import Accelerator
from tierd.detect.device_time import TargetTime
from tierd.detect.interference import Loss
from tierd.detect.profile import Classes, Profile
from tierd.model import Table
from tierd.text import percent, rate_text
from tierd.validators import Positive, Share


@dataclass(frozen=True)
class SlowdownSettings(Table):
    """Thresholds of the table ``[noisy_neighbour]``, for both kinds of slowdown. Losses are parts of the throughput
    that the stream would have without the other jobs.
    """

    classes: Classes = field(default_factory=Classes)
    recent_seconds: Positive = 30.0
    """Period from which profiles of jobs are made."""
    min_loss: Share = 0.05
    """Loss that a finding is about: users do not notice less, and disks vary as much."""
    probability: Share = 0.6
    """A finding begins when the stream loses ``min_loss`` with this probability."""
    end_probability: Share = 0.5
    """It ends when the probability is less."""


@dataclass(frozen=True, slots=True)
class SlowdownView:
    """What the findings are made of."""

    now: float
    losses: Sequence[Loss]
    """To suspects."""
    rival_losses: Sequence[Loss]
    """To other streams."""
    jobs: Sequence[str]
    """Names of jobs by their numbers."""
    targets: Sequence[str]
    """Names of all targets with work, by their numbers."""
    profiles: Mapping[str, Profile]
    """Of all jobs in the losses that may be reported."""
    active: Collection[tuple[str, str, str]]
    """Keys of active findings."""
    device_time: Mapping[str, TargetTime]
    accelerators: Mapping[str, Accelerator]
    """By target."""
    remembered: Mapping[str, int]
    """Windows of Prometheus' history by job, for streams whose usual throughput comes from it."""


def is_found(loss: Loss, held: bool, settings: SlowdownSettings) -> bool:
    """Whether a loss is reported. A finding that is active ends at a lower probability than it began."""
    return loss.probability(settings.min_loss) >= (settings.end_probability if held else settings.probability)


def slowdown_numbers(loss: Loss, settings: SlowdownSettings) -> dict[str, Any]:
    """Values of :class:`tierd.model.SlowdownEvidence`: what the stream gets, and would get without these jobs."""
    usual = loss.usual_bytes_per_second
    low, high = loss.interval
    return {
        "victim_usual_bytes_per_second": usual,
        "victim_bytes_per_second": loss.bytes_per_second,
        "slowdown": usual / loss.bytes_per_second,
        "loss_low": low,
        "loss_high": high,
        "loss_probability": loss.probability(settings.min_loss),
        "carrier": loss.carrier,
        "aggressor_came_at": loss.came_at,
    }


def names_of_targets(view: SlowdownView, loss: Loss) -> tuple[str, ...]:
    """The targets that hold the stream up."""
    return tuple(sorted(view.targets[target] for target in loss.targets))


def slower(victim: str, loss: Loss) -> str:
    """What the stream gets, and what it would get."""
    usual = loss.usual_bytes_per_second
    return (f"{victim} streams at {rate_text(loss.bytes_per_second)} instead of {rate_text(usual)} "
            f"({percent(loss.bytes_per_second / usual)})")
