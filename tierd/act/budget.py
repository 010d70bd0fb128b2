"""How much may be moved, and how fast: token buckets for files and bytes, filled by the clock that is handed in.

One pair of buckets for everything, one for each pool and one for each target: a target may be busy with a file while
there is still budget for others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Gt

from tierd.act.cost import Cost

_SLACK = 1e-9
"""A bucket holds a sum of many small numbers: what is missing less than this is not missing."""


@dataclass(frozen=True)
class Rate:
    """Files and bytes a second."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    files_per_second: Annotated[float, Gt(0)] = 10.0
    bytes_per_second: Annotated[float, Gt(0)] = 20e6


@dataclass(frozen=True)
class Limits:
    """Rates the mover keeps below, however many files wait."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    files_per_second: Annotated[float, Gt(0)] = 10.0
    bytes_per_second: Annotated[float, Gt(0)] = 20e6
    burst_seconds: Annotated[float, Gt(0)] = 2.0
    """A bucket holds this many seconds' worth."""
    per_pool: Rate = field(default_factory=Rate)
    """For each pool, what is read from it and what is written to it taken together."""
    per_target: Rate = field(default_factory=Rate)
    """For each target that files are read from."""
    pools: dict[str, Rate] = field(default_factory=dict)
    """Pools with a rate of their own, by name."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a move has to wait. ``everything`` when no other move may go either."""

    sentence: str
    everything: bool


class Bucket:
    """Tokens left. A file takes one file token and its size in byte tokens; a large file may overdraw a full bucket."""

    def __init__(self, rate: Rate, burst_seconds: float, now: float) -> None:
        self._rate = rate
        self._burst_seconds = burst_seconds
        self._files = max(1.0, rate.files_per_second * burst_seconds)
        self._bytes = rate.bytes_per_second * burst_seconds
        self._filled_at = now

    def short(self, size_bytes: int, now: float) -> str:
        """Which rate is reached, so that a file of this size must wait; "" when it need not."""
        rate = self._rate
        passed = max(0.0, now - self._filled_at)
        self._filled_at = max(now, self._filled_at)
        most_files = max(1.0, rate.files_per_second * self._burst_seconds)
        most_bytes = rate.bytes_per_second * self._burst_seconds
        self._files = min(self._files + passed * rate.files_per_second, most_files)
        self._bytes = min(self._bytes + passed * rate.bytes_per_second, most_bytes)
        if self._files < 1 - _SLACK:
            return f"{rate.files_per_second:g} files a second are reached"
        if size_bytes and self._bytes < min(size_bytes, most_bytes) * (1 - _SLACK):
            return f"{rate.bytes_per_second / 1e6:g} MB a second are reached"
        return ""

    @property
    def left(self) -> tuple[float, float]:
        """Tokens for files and for bytes, as of the last look."""
        return self._files, self._bytes

    def spend(self, size_bytes: int) -> None:
        """Take the tokens."""
        self._files -= 1
        self._bytes -= size_bytes

    def give_back(self, size_bytes: int) -> None:
        """Byte tokens of a file that was not moved; looking at it has cost its file token."""
        self._bytes = min(self._bytes + size_bytes, self._rate.bytes_per_second * self._burst_seconds)


class Budget:
    """All buckets. Those of pools and targets are made when they are first needed."""

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._all = Bucket(Rate(limits.files_per_second, limits.bytes_per_second), limits.burst_seconds, now)
        self._pools: dict[str, Bucket] = {}
        self._targets: dict[str, Bucket] = {}

    def take(self, cost: Cost, now: float) -> Wait | None:
        """Take the tokens for a move from every bucket it concerns; or say why not yet, with nothing taken."""
        wait = self.why_not(cost, now)
        if wait is None:
            self._all.spend(cost.size_bytes)
            for _, _, size_bytes, bucket in self._concerned(cost, now):
                bucket.spend(size_bytes)
        return wait

    def give_back(self, cost: Cost, now: float) -> None:
        """The bytes of a move that was refused before any of them was read."""
        self._all.give_back(cost.size_bytes)
        for _, _, size_bytes, bucket in self._concerned(cost, now):
            bucket.give_back(size_bytes)

    @property
    def left(self) -> tuple[float, float]:
        """Files and bytes that may be moved at once, as of the last look."""
        return self._all.left

    def why_not(self, cost: Cost, now: float) -> Wait | None:
        """Which rate a move would pass, if any."""
        reached = self._all.short(cost.size_bytes, now)
        if reached:
            return Wait(reached, everything=True)
        for kind, name, size_bytes, bucket in self._concerned(cost, now):
            reached = bucket.short(size_bytes, now)
            if reached:
                return Wait(f"{kind} {name}: {reached}", everything=False)
        return None

    def _concerned(self, cost: Cost, now: float) -> list[tuple[str, str, int, Bucket]]:
        """Buckets of the pools and targets of a move, and what it takes from each."""
        found = [("pool", name, size_bytes, self._pool(name, now)) for name, size_bytes in cost.pools.items()]
        return found + [("target", name, size_bytes, self._target(name, now))
                        for name, size_bytes in cost.targets.items()]

    def _pool(self, name: str, now: float) -> Bucket:
        if name not in self._pools:
            rate = self._limits.pools.get(name, self._limits.per_pool)
            self._pools[name] = Bucket(rate, self._limits.burst_seconds, now)
        return self._pools[name]

    def _target(self, name: str, now: float) -> Bucket:
        if name not in self._targets:
            self._targets[name] = Bucket(self._limits.per_target, self._limits.burst_seconds, now)
        return self._targets[name]
