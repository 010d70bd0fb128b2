"""What policies see: windows of half a minute and the facts. They read it and store nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tierd.detect.groups import totals
from tierd.detect.profile import Profile, profiles
from tierd.model import Activities, Facts, PoolPair, Window


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

    def recent(self, seconds: float) -> Sequence[Window]:
        return [window for window in self.windows if window.end > self.now - seconds]

    @cached_property
    def seconds_active(self) -> Mapping[str, float]:
        """Seconds of all windows in which each job was active."""
        return totals((job, window.seconds) for window in self.windows for job in window.jobs)

    def profiles(self, seconds: float) -> Mapping[str, Profile]:
        if seconds not in self.memory:
            self.memory[seconds] = profiles(self.recent(seconds))
        return self.memory[seconds]
