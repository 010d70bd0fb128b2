"""Limits of moves: the cost of a move, rate limits, the pace beside streams, and the circuit breaker.

Token buckets limit files and bytes: one pair for all moves, one for each pool and one for each target. A target may
have no budget left while others have. The circuit breaker stops all moves when too many fail, or when one file is not
as expected after its move, until an administrator resumes them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from lustre.layout.model import Component, Layout
from tierd.acts import OrderKind, Outcome
from tierd.config.act import Limits, Rate
from tierd.decide.relocation import bytes_per_component, bytes_per_ost
from tierd.model import StreamedTargets
from tierd.policies.registry import policy_of
from tierd.refusal import Reason, Refusal
from tierd.text import first_names, percent, rate_text


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
    read, wrote = bytes_per_pool(before, size_bytes), bytes_per_pool(wanted, size_bytes)
    pools = {pool: read.get(pool, 0) + wrote.get(pool, 0) for pool in (*read, *wrote) if pool}
    targets, written = ({f"{fsname}-OST{index:04x}": held_bytes
                         for index, held_bytes in bytes_per_ost(layout, size_bytes).items()}
                        for layout in (before, wanted))
    written_to_pools = bytes_per_pool(wanted, size_bytes, lambda part: bool(part.pool) and not part.ost_list)
    return MoveCost(size_bytes, pools, targets, written, written_to_pools)


def bytes_per_pool(layout: Layout | None, size_bytes: int,
                   counts: Callable[[Component], bool] = lambda _: True) -> dict[str, int]:
    """Bytes that the layout places in each pool, for a file of this size; 0 for a pool that it only names."""
    found: dict[str, int] = {}
    for component, held_bytes in bytes_per_component(layout, size_bytes):
        if counts(component):
            found[component.pool] = found.get(component.pool, 0) + held_bytes
    return found


_SLACK = 1e-9
"""Tolerance for rounding: a bucket holds a sum of many small numbers."""
GiveBack = Callable[[float, float], None]
"""Returns a share of what a move took and did not use, at a time."""


class TokenBucket:
    """A token bucket. A file takes one file token, and its size in byte tokens. A large file may overdraw.

    Bytes that a move took and did not copy are returned, up to a full bucket. So all moves together never copy more
    than the rate allows since the start, and one burst and one file.
    """

    def __init__(self, rate: Rate, burst_seconds: float, now: float) -> None:
        self._rate = rate
        self._files = self._most_files = max(1.0, rate.files_per_second * burst_seconds)
        self._bytes = self._most_bytes = rate.bytes_per_second * burst_seconds
        self._filled_at = now

    def refusal(self, size_bytes: int, now: float) -> Refusal | None:
        self._refill(now)
        if self._files < 1 - _SLACK:
            return Refusal(Reason.LIMIT, f"the limit of {self._rate.files_per_second:g} files/s is reached")
        # a file larger than a burst needs a full bucket, and overdraws it
        if size_bytes and self._bytes < min(size_bytes, self._most_bytes) * (1 - _SLACK):
            return Refusal(Reason.LIMIT, f"the limit of {rate_text(self._rate.bytes_per_second)} is reached")
        return None

    def _refill(self, now: float) -> None:
        (self._files, self._bytes), self._filled_at = self.left(now), now

    def left(self, now: float) -> tuple[float, float]:
        """File tokens and byte tokens at a time."""
        passed = max(0.0, now - self._filled_at)  # the clock may have been set back
        return (min(self._files + passed * self._rate.files_per_second, self._most_files),
                min(self._bytes + passed * self._rate.bytes_per_second, self._most_bytes))

    def overdrawn_seconds(self, now: float) -> float:
        """Time until no byte is overdrawn."""
        self._refill(now)
        return max(0.0, -self._bytes / self._rate.bytes_per_second)

    def spend(self, size_bytes: float) -> GiveBack:
        """Take the tokens of one file. The file token is not returned: the examination of the file has used it."""
        self._files -= 1
        self._bytes -= size_bytes
        return partial(self._give_back, size_bytes)

    def _give_back(self, size_bytes: float, share: float, now: float) -> None:
        self._refill(now)
        self._bytes = min(self._bytes + share * size_bytes, self._most_bytes)


class Budget:
    """All token buckets. Buckets of pools and targets are created on first use."""

    def __init__(self, limits: Limits, now: float, scope: str = "") -> None:
        """``scope`` is the path of the scope that has these limits; "" if they are for all moves."""
        self._limits, self._scope = limits, scope
        self.all = TokenBucket(Rate(limits.files_per_second, limits.bytes_per_second), limits.burst_seconds, now)
        self._buckets: dict[tuple[str, str], TokenBucket] = {}

    def spend(self, cost: MoveCost, now: float) -> tuple[GiveBack, ...]:
        """Take the tokens of a move, for which :meth:`why_not` has just found no limit."""
        return (self.all.spend(cost.size_bytes),
                *(bucket.spend(size_bytes) for _, _, size_bytes, bucket in self._concerned(cost, now)))

    def why_not(self, cost: MoveCost, now: float) -> Refusal | None:
        """The limit that delays a move. One that is about nothing in particular delays all other moves too."""
        if reached := self.all.refusal(cost.size_bytes, now):
            return replace(reached, what=self._scope)
        for kind, name, size_bytes, bucket in self._concerned(cost, now):
            if reached := bucket.refusal(size_bytes, now):
                named = reached.about(f"{kind} {name}")
                return replace(named, what=f"{self._scope} {named.what}".lstrip())
        return None

    def _concerned(self, cost: MoveCost, now: float) -> Iterator[tuple[str, str, int, TokenBucket]]:
        limits = self._limits
        for kind, sizes in (("pool", cost.pools), ("target", cost.targets)):
            for name, size_bytes in sizes.items():
                if (kind, name) not in self._buckets:
                    rate = limits.pools.get(name, limits.per_pool) if kind == "pool" else limits.per_target
                    self._buckets[kind, name] = TokenBucket(rate, limits.burst_seconds, now)
                yield kind, name, size_bytes, self._buckets[kind, name]


RPC_BYTES = 1 << 20
"""Size of the RPCs of a copy: the least default of ``max_pages_per_rpc``. Larger ones take fewer operations."""
OBJECT_OPERATIONS = 1.5
"""Small operations for each object that is created or destroyed (:data:`tierd.detect.columns.OTHER_IOS`)."""


def is_background(key: tuple[str, str, str]) -> bool:
    """Whether the moves of a finding or order can wait.

    >>> is_background(("imbalance", "", "fill of lustre-OST0003")), is_background(("noisy-neighbour", "a", "b"))
    (True, False)
    """
    return policy_of(key[0]).can_wait or key[0] == OrderKind.DRAIN


class BackgroundPace:
    """Spaces out moves that can wait for streams: those of rebalances, demotions and drains.

    While a target is busy with streams, each second in which it serves a move is lost for them. A stream over several
    targets waits for the slowest, so the seconds on all its targets add up. After a move that takes ``s`` seconds
    there, the next one beside this stream begins ``s / max_stream_loss`` seconds after it. So the stream loses at most
    this part of its throughput, and every move is made in the end. Moves on other targets do not wait. A stream is a
    token bucket without a burst, whose tokens are seconds.

    The queue of moves holds its lock during each call.
    """

    def __init__(self, max_stream_loss: float = 1.0, drain_max_stream_loss: float = 1.0) -> None:
        """The part of its throughput that a stream may lose to rebalances and demotions, and to drains."""
        self._max_stream_loss, self._drain_max_stream_loss = max_stream_loss, drain_max_stream_loss
        self.streamed: StreamedTargets | None = StreamedTargets()
        """None while it is not known which targets streams use."""
        self._overdrawn: dict[tuple[str, float], TokenBucket] = {}
        """Seconds that streams have lost, by job id and the part that it may lose."""

    def refusal(self, key: tuple[str, str, str], cost: MoveCost, now: float) -> Refusal | None:
        """Refuses a move while the streams on its targets have lost their part to earlier moves."""
        if not is_background(key):
            return None
        if self.streamed is None:
            return Refusal(Reason.STREAMS, "it is not known yet which targets streams use")
        part = self._part(key)
        if part >= 1:
            return None
        waits = {job: wait for job in sorted({job for job, _ in self._seconds(cost)})
                 if (lost := self._overdrawn.get((job, part))) and (wait := lost.overdrawn_seconds(now)) > 0}
        return None if not waits else Refusal(
            Reason.STREAMS, f"streams run on its targets ({first_names(waits)}), and may lose at most {percent(part)} "
            f"to such moves: the next one starts in {max(waits.values()):.0f} s", ", ".join(waits))

    def spend(self, key: tuple[str, str, str], cost: MoveCost, now: float) -> list[GiveBack]:
        """Enter a move that begins, and what it takes from each stream."""
        part, taken = self._part(key), list[GiveBack]()
        # streams that are owed nothing are forgotten
        self._overdrawn = {stream: lost for stream, lost in self._overdrawn.items() if lost.overdrawn_seconds(now)}
        for job, seconds in self._seconds(cost) if is_background(key) else ():
            lost = self._overdrawn.setdefault((job, part), TokenBucket(Rate(1.0, part), 0.0, now))
            taken.append(lost.spend(seconds))
        return taken

    def _part(self, key: tuple[str, str, str]) -> float:
        return self._drain_max_stream_loss if key[0] == OrderKind.DRAIN else self._max_stream_loss

    def _seconds(self, cost: MoveCost) -> Iterator[tuple[str, float]]:
        assert self.streamed is not None
        work = [(name, size, 0, 1.0) for name, size in cost.targets.items()]
        work += [(name, 0, size, 1.0) for name, size in cost.written.items()]
        for pool, size in cost.written_to_pools.items():
            members = self.streamed.pools.get(pool, ())
            # Lustre chooses: on average each target gets its part
            work += [(name, 0, size, 1 / len(members)) for name in members]
        for name, read_bytes, written_bytes, chance in work:
            target = self.streamed.by_target.get(name)
            if target is not None:
                operations = -(-(read_bytes + written_bytes) // RPC_BYTES) + OBJECT_OPERATIONS
                seconds = chance * target.seconds(read_bytes, written_bytes, operations)
                yield from ((job, seconds) for job in target.streams)


LAST_MOVES, FAILED_MOVES, FAILED_SHARE = 100, 10, 0.5
"""Moves that the circuit breaker considers, and how many of them must have failed, in number and as a share. A choice:
ten failures are not the accident of one file, and fewer than half of the moves may be those of one bad directory."""


class CircuitBreaker:
    """Counts failures among the last moves. A refusal or a busy file is not a failure."""

    def __init__(self) -> None:
        self._failed: deque[bool] = deque(maxlen=LAST_MOVES)

    def note(self, result: Outcome, path: str) -> Refusal | None:
        """Count one outcome. Refuses all further moves if it trips the breaker."""
        if result == Outcome.DOUBTFUL:
            return Refusal(Reason.PAUSED, f"a file is not as expected after its move, or cannot be examined: {path}")
        self._failed.append(result == Outcome.FAILED)
        failures = sum(self._failed)
        if failures >= FAILED_MOVES and failures >= FAILED_SHARE * len(self._failed):
            self._failed.clear()  # after a resume, counting begins again
            return Refusal(Reason.PAUSED, f"{failures} of the last moves failed")
        return None
