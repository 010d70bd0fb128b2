"""Limits of moves: the cost of a move, rate limits, and the circuit breaker.

Token buckets limit files and bytes: one pair for all moves, one for each pool and one for each target. A target may
have no budget left while others have. The circuit breaker stops all moves when too many fail, or when one file is not
as expected after its move, until an administrator resumes them.
"""

from __future__ import annotations

from bisect import bisect_left
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
    """Bytes read from each target. Bytes that are written count for the limit of the pool."""
    written: Mapping[str, int] = field(default_factory=dict)
    """Bytes written to each target that the layout names."""
    written_to_pools: Mapping[str, int] = field(default_factory=dict)
    """Bytes written to each pool of which Lustre chooses the targets."""


def cost_of_move(size_bytes: int, before: Layout | None, wanted: Layout, fsname: str) -> MoveCost:
    """The cost of giving a file of this size another layout.

    >>> from lustre.fid import Fid
    >>> from lustre.layout.model import StripeObject
    >>> hdd = Component(pool="hdd", stripe_count=2, objects=(StripeObject(2, Fid(1, 1)), StripeObject(3, Fid(1, 2))))
    >>> found = cost_of_move(3001, Layout((hdd,), composite=False), Layout((Component(pool="flash"),)), "fs")
    >>> dict(found.pools), dict(found.targets)
    ({'hdd': 3001, 'flash': 3001}, {'fs-OST0002': 1501, 'fs-OST0003': 1501})
    >>> dict(found.written), dict(found.written_to_pools)
    ({}, {'flash': 3001})
    """
    pools: dict[str, int] = {}
    targets: dict[str, int] = {}
    written: dict[str, int] = {}
    written_to_pools: dict[str, int] = {}
    for component, held_bytes in bytes_per_component(before, size_bytes):
        if component.pool:
            pools[component.pool] = pools.get(component.pool, 0) + held_bytes
        for number in component.objects:
            target = f"{fsname}-OST{number.ost_index:04x}"
            targets[target] = targets.get(target, 0) - (-held_bytes // len(component.objects))
    for component, held_bytes in bytes_per_component(wanted, size_bytes):
        if component.pool:
            pools[component.pool] = pools.get(component.pool, 0) + held_bytes
        for index in component.ost_list:
            target = f"{fsname}-OST{index:04x}"
            written[target] = written.get(target, 0) - (-held_bytes // len(component.ost_list))
        if component.pool and not component.ost_list:
            written_to_pools[component.pool] = written_to_pools.get(component.pool, 0) + held_bytes
    return MoveCost(size_bytes, pools, targets, written, written_to_pools)


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


MAX_PEAKS = 1000


class TokenBucket:
    """A token bucket. A file takes one file token, and its size in byte tokens. A large file may overdraw.

    Bytes that a move took and did not copy are returned as far as the bucket would have them now if the move had never
    taken them. The bucket may have been full meanwhile, and a full bucket takes no more. So all moves together never
    copy more than the rate allows, and one burst and one file.
    """

    def __init__(self, rate: Rate, burst_seconds: float, now: float) -> None:
        self._rate = rate
        self._files = self._most_files = max(1.0, rate.files_per_second * burst_seconds)
        self._bytes = self._most_bytes = rate.bytes_per_second * burst_seconds
        self._filled_at = now
        self._takings = 0
        """How often tokens were taken."""
        self._peaks: deque[tuple[int, float]] = deque(maxlen=MAX_PEAKS)
        """Number of takings before, and byte tokens just before the next one. Falling: a higher one replaces those
        before it."""
        self._returned = 0.0
        """Bytes returned. Peaks are less by what had been returned when they were noted."""

    def refusal(self, size_bytes: int, now: float) -> Refusal | None:
        self._refill(now)
        if self._files < 1 - _SLACK:
            return Refusal(Reason.LIMIT, f"the limit of {self._rate.files_per_second:g} files/s is reached")
        if size_bytes and self._bytes < min(size_bytes, self._most_bytes) * (1 - _SLACK):
            return Refusal(Reason.LIMIT, f"the limit of {rate_text(self._rate.bytes_per_second)} is reached")
        return None

    def _refill(self, now: float) -> None:
        if now > self._filled_at:  # all moves of a batch are checked at the same time
            passed, self._filled_at = now - self._filled_at, now
            self._files = min(self._files + passed * self._rate.files_per_second, self._most_files)
            self._bytes = min(self._bytes + passed * self._rate.bytes_per_second, self._most_bytes)

    @property
    def left(self) -> tuple[float, float]:
        """File tokens and byte tokens, as of the last call of :meth:`refusal`."""
        return self._files, self._bytes

    def spend(self, size_bytes: int) -> int:
        """Take the tokens of one file. Returns the number of this taking, for :meth:`give_back`."""
        level = self._bytes - self._returned
        while self._peaks and self._peaks[-1][1] <= level:
            self._peaks.pop()
        self._peaks.append((self._takings, level))
        self._takings += 1
        self._files -= 1
        self._bytes -= size_bytes
        return self._takings

    def give_back(self, size_bytes: float, taking: int, now: float) -> None:
        """Return byte tokens of a taking that were not used. The examination of the file has used the file token."""
        self._refill(now)
        since = bisect_left(self._peaks, taking, key=lambda peak: peak[0])
        highest = self._bytes
        if since < len(self._peaks):
            highest = max(highest, self._peaks[since][1] + self._returned)
        if since == 0 and len(self._peaks) == MAX_PEAKS:
            highest = self._most_bytes  # peaks since then were forgotten
        back = max(0.0, min(size_bytes, self._most_bytes - highest))
        self._bytes += back
        self._returned += back


@dataclass(frozen=True, slots=True)
class Spent:
    """What a move took: each bucket, the bytes, and the number of the taking."""

    takings: tuple[tuple[TokenBucket, int, int], ...] = ()

    def give_back(self, share: float, now: float) -> None:
        for bucket, size_bytes, taking in self.takings:
            bucket.give_back(share * size_bytes, taking, now)


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

    def spend(self, cost: MoveCost, now: float) -> Spent:
        """Take the tokens of a move, for which :meth:`why_not` has just found no limit."""
        concerned = [(self._all, cost.size_bytes),
                     *((bucket, size_bytes) for _, _, size_bytes, bucket in self._concerned(cost, now))]
        return Spent(tuple((bucket, size_bytes, bucket.spend(size_bytes)) for bucket, size_bytes in concerned))

    @property
    def left(self) -> tuple[float, float]:
        return self._all.left

    def why_not(self, cost: MoveCost, now: float) -> LimitReached | None:
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
