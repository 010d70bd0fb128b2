"""What policies see: windows of half a minute and the facts, or the model of interference, with what findings share.

They read it and store nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tierd.detect.accelerators import Accelerator
from tierd.detect.device_time import TargetTime
from tierd.detect.groups import totals
from tierd.detect.interference import Loss
from tierd.detect.profile import Classes, Profile, profiles
from tierd.model import Activities, Facts, PoolPair, Table, Window
from tierd.text import percent, rate_text
from tierd.validators import Positive, Share

LATEST_SECONDS, RECENT_SECONDS = 30.0, 60.0
"""The last half minute shows what a job does now. Loads that vary more are measured over two."""


@dataclass(frozen=True)
class View:
    """The input of :attr:`tierd.policies.protocol.Policy.find`."""

    windows: Sequence[Window]
    """Windows of half a minute, oldest first; at least one."""
    facts: Facts = field(default_factory=Facts)
    activities: Activities = lambda _, __: ()
    active: Collection[tuple[str, str, str]] = ()
    """Keys of active findings."""
    pool_pairs: Sequence[PoolPair] = (PoolPair("flash", "hdd"),)
    """Each flash pool with its disk pool: first the pools of the whole file system, then the pools of scopes."""
    pools_of: Callable[[str], PoolPair] = lambda _: PoolPair("flash", "hdd")
    """The pools for a path, by its scope."""
    memory: dict[float, Mapping[str, Profile]] = field(default_factory=dict, compare=False, repr=False)
    """Cache of ``profiles``, shared by all policies."""

    @property
    def now(self) -> float:
        return self.windows[-1].end

    @cached_property
    def flash(self) -> Collection[str]:
        """Full names of the flash targets of the file system and of scopes; empty if the pools are unknown."""
        return tuple(dict.fromkeys(target for pools in self.pool_pairs
                                   for target in self.facts.pools.get(pools.flash, ())))

    def recent(self, seconds: float = RECENT_SECONDS) -> Sequence[Window]:
        return [window for window in self.windows if window.end > self.now - seconds]

    @cached_property
    def seconds_active(self) -> Mapping[str, float]:
        """Seconds of all windows in which each job was active."""
        return totals((job, window.seconds) for window in self.windows for job in window.jobs)

    def profiles(self, seconds: float = RECENT_SECONDS) -> Mapping[str, Profile]:
        if seconds not in self.memory:
            self.memory[seconds] = profiles(self.recent(seconds))
        return self.memory[seconds]


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

    def found(self, losses: Sequence[Loss], kind: str, settings: SlowdownSettings) -> Iterator[tuple[
            Loss, str, Sequence[Profile], tuple[str, ...]]]:
        """The losses to report as findings of this kind, each with the victim, the profiles of the suspects, and the
        targets that hold the victim up.
        """
        for loss in losses:
            victim, suspects = self.jobs[loss.victim], [self.jobs[job] for job in loss.suspects]
            known = [self.profiles[job] for job in suspects if job in self.profiles]
            if known and is_found(loss, any((kind, job, victim) in self.active for job in suspects), settings):
                yield loss, victim, known, tuple(sorted(self.targets[target] for target in loss.targets))


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


def slower(victim: str, loss: Loss) -> str:
    """What the stream gets, and what it would get."""
    usual = loss.usual_bytes_per_second
    return (f"{victim} streams at {rate_text(loss.bytes_per_second)} instead of {rate_text(usual)} "
            f"({percent(loss.bytes_per_second / usual)})")
