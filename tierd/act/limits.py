"""Limits of moves: the cost of a move, rate limits, and the circuit breaker.

Token buckets limit files and bytes: one pair for all moves, one for each pool and one for each target. A target may
have no budget left while others have. The circuit breaker stops all moves when too many fail, or when one file is not
as expected after its move, until an administrator resumes them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lustre.layout.model import Component, Layout
from tierd.acts import Outcome
from tierd.config.act import BreakerSettings, Limits, Rate
from tierd.refusal import Reason, Refusal
from tierd.text import rate_text


@dataclass(frozen=True, slots=True)
class MoveCost:
    """The cost of moving one file. Data on an MDT counts for the limit of all moves only."""

    size_bytes: int
    pools: Mapping[str, int] = field(default_factory=dict)
    """Bytes read from or written to each pool; 0 for a pool that the layout only names."""
    targets: Mapping[str, int] = field(default_factory=dict)
    """Bytes read from each target. The targets to be written are not known before; writes count for the pool."""


def cost_of_move(size_bytes: int, before: Layout | None, wanted: Layout, fsname: str) -> MoveCost:
    """The cost of giving a file of this size another layout.

    >>> from lustre.fid import Fid
    >>> from lustre.layout.model import StripeObject
    >>> hdd = Component(pool="hdd", stripe_count=2, objects=(StripeObject(2, Fid(1, 1)), StripeObject(3, Fid(1, 2))))
    >>> cost_of_move(3001, Layout((hdd,), composite=False), Layout((Component(pool="flash"),), composite=False), "fs")
    MoveCost(size_bytes=3001, pools={'hdd': 3001, 'flash': 3001}, targets={'fs-OST0002': 1501, 'fs-OST0003': 1501})
    """
    pools: dict[str, int] = {}
    targets: dict[str, int] = {}
    for component, held_bytes in bytes_per_component(before, size_bytes):
        if component.pool:
            pools[component.pool] = pools.get(component.pool, 0) + held_bytes
        for number in component.objects:
            target = f"{fsname}-OST{number.ost_index:04x}"
            targets[target] = targets.get(target, 0) - (-held_bytes // len(component.objects))
    for component, held_bytes in bytes_per_component(wanted, size_bytes):
        if component.pool:
            pools[component.pool] = pools.get(component.pool, 0) + held_bytes
    return MoveCost(size_bytes, pools, targets)


def bytes_per_component(layout: Layout | None, size_bytes: int) -> Iterator[tuple[Component, int]]:
    """The components on OSTs, each with the bytes of the file in it."""
    for component in layout.components if layout is not None else ():
        if not component.on_mdt:
            end = size_bytes if component.extent_end is None else min(component.extent_end, size_bytes)
            yield component, max(0, end - component.extent_start)


_SLACK = 1e-9
"""Tolerance for rounding: a bucket holds a sum of many small numbers."""


@dataclass(frozen=True, slots=True)
class LimitReached:
    """The limit that delays a move. ``everything``: it delays all other moves too."""

    refusal: Refusal
    everything: bool


class TokenBucket:
    """A token bucket. A file takes one file token, and its size in byte tokens. A large file may overdraw."""

    def __init__(self, rate: Rate, burst_seconds: float, now: float) -> None:
        self._rate = rate
        self._files = self._most_files = max(1.0, rate.files_per_second * burst_seconds)
        self._bytes = self._most_bytes = rate.bytes_per_second * burst_seconds
        self._filled_at = now

    def refusal(self, size_bytes: int, now: float) -> Refusal | None:
        """Refuses a file of this size while a rate is reached."""
        if now > self._filled_at:  # all moves of a batch are checked at the same time
            self._fill(now)
        if self._files < 1 - _SLACK:
            return Refusal(Reason.LIMIT, f"the limit of {self._rate.files_per_second:g} files/s is reached")
        if size_bytes and self._bytes < min(size_bytes, self._most_bytes) * (1 - _SLACK):
            return Refusal(Reason.LIMIT, f"the limit of {rate_text(self._rate.bytes_per_second)} is reached")
        return None

    def _fill(self, now: float) -> None:
        passed, self._filled_at = now - self._filled_at, now
        self._files = min(self._files + passed * self._rate.files_per_second, self._most_files)
        self._bytes = min(self._bytes + passed * self._rate.bytes_per_second, self._most_bytes)

    @property
    def left(self) -> tuple[float, float]:
        """File tokens and byte tokens, as of the last call of :meth:`refusal`."""
        return self._files, self._bytes

    def spend(self, size_bytes: int) -> None:
        """Take the tokens of one file."""
        self._files -= 1
        self._bytes -= size_bytes

    def give_back(self, size_bytes: int) -> None:
        """Return the byte tokens of a file that was not moved. Its examination has used the file token."""
        self._bytes = min(self._bytes + size_bytes, self._most_bytes)


class Budget:
    """All token buckets. Buckets of pools and targets are created on first use."""

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._all = TokenBucket(Rate(limits.files_per_second, limits.bytes_per_second), limits.burst_seconds, now)
        self._pools: dict[str, TokenBucket] = {}
        self._targets: dict[str, TokenBucket] = {}

    def take(self, cost: MoveCost, now: float) -> LimitReached | None:
        """Take the tokens of a move from all its buckets. Returns the limit, and takes none, if one is reached."""
        wait = self.why_not(cost, now)
        if wait is None:
            self.spend(cost, now)
        return wait

    def spend(self, cost: MoveCost, now: float) -> None:
        """Take the tokens of a move, for which :meth:`why_not` has just found no limit."""
        self._all.spend(cost.size_bytes)
        for _, _, size_bytes, bucket in self._concerned(cost, now):
            bucket.spend(size_bytes)

    def give_back(self, cost: MoveCost, now: float) -> None:
        """Return the byte tokens of a move that was refused before any byte was read."""
        self._all.give_back(cost.size_bytes)
        for _, _, size_bytes, bucket in self._concerned(cost, now):
            bucket.give_back(size_bytes)

    @property
    def left(self) -> tuple[float, float]:
        """Files and bytes that may be moved now, as of the last check."""
        return self._all.left

    def why_not(self, cost: MoveCost, now: float) -> LimitReached | None:
        """The limit that delays a move, or None."""
        reached = self._all.refusal(cost.size_bytes, now)
        if reached:
            return LimitReached(reached, everything=True)
        for kind, name, size_bytes, bucket in self._concerned(cost, now):
            reached = bucket.refusal(size_bytes, now)
            if reached:
                return LimitReached(reached.about(f"{kind} {name}"), everything=False)
        return None

    def _concerned(self, cost: MoveCost, now: float) -> Iterator[tuple[str, str, int, TokenBucket]]:
        """Buckets of the pools and targets of a move, with the bytes that it takes from each."""
        for name, size_bytes in cost.pools.items():
            yield "pool", name, size_bytes, self._pool(name, now)
        for name, size_bytes in cost.targets.items():
            yield "target", name, size_bytes, self._target(name, now)

    def _pool(self, name: str, now: float) -> TokenBucket:
        if name not in self._pools:
            rate = self._limits.pools.get(name, self._limits.per_pool)
            self._pools[name] = TokenBucket(rate, self._limits.burst_seconds, now)
        return self._pools[name]

    def _target(self, name: str, now: float) -> TokenBucket:
        if name not in self._targets:
            self._targets[name] = TokenBucket(self._limits.per_target, self._limits.burst_seconds, now)
        return self._targets[name]


class CircuitBreaker:
    """Counts failures among the last moves. A refusal or a busy file is no failure."""

    def __init__(self, settings: BreakerSettings) -> None:
        self._settings = settings
        self._failed: deque[bool] = deque(maxlen=settings.window)

    def note(self, result: Outcome, path: str) -> Refusal | None:
        """Count one outcome. Refuses all further moves if it trips the breaker."""
        if result == Outcome.DOUBTFUL:
            return Refusal(Reason.PAUSED, f"a file is not as expected after its move: {path}")
        self._failed.append(result == Outcome.FAILED)
        failures = sum(self._failed)
        if failures >= self._settings.failures and failures >= self._settings.share * len(self._failed):
            self._failed.clear()
            return Refusal(Reason.PAUSED, f"{failures} of the last moves failed")
        return None
