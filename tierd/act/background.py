"""Moves that can wait give way to streams: those of rebalances, demotions and drains.

While a target is busy with streams, each second in which it serves a move is lost for them. A stream over several
targets waits for the slowest, so the seconds on all its targets add up. After a move that takes ``s`` seconds there,
the next one beside this stream begins ``s / max_stream_loss`` seconds after it. So the stream loses at most
this part of its throughput, and every move is made in the end. Moves on other targets do not wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tierd.act.limits import MoveCost
from tierd.acts import OrderKind
from tierd.model import StreamedTargets
from tierd.policies.registry import policy_of
from tierd.refusal import Reason, Refusal
from tierd.text import first_names, percent

RPC_BYTES = 1 << 20
"""Size of the RPCs of a copy: the least default of ``max_pages_per_rpc``. Larger ones take fewer operations."""
OBJECT_OPERATIONS = 1.5
"""Small operations for each object that is created or destroyed (:data:`tierd.detect.columns.OTHER_IOS`)."""
Charge = Mapping[tuple[str, float], float]
"""Seconds that a move takes from each stream, by job id and the part that it may lose."""


def is_background(key: tuple[str, str, str]) -> bool:
    """Whether the moves of a finding or order can wait.

    >>> is_background(("imbalance", "", "fill of lustre-OST0003")), is_background(("noisy-neighbour", "a", "b"))
    (True, False)
    """
    return policy_of(key[0]).can_wait or key[0] == OrderKind.DRAIN


class BackgroundPace:
    """Spaces out background moves beside streams. The queue of moves holds its lock during each call."""

    def __init__(self, max_stream_loss: float = 1.0, drain_max_stream_loss: float = 1.0) -> None:
        """The part of its throughput that a stream may lose to rebalances and demotions, and to drains."""
        self._max_stream_loss = max_stream_loss
        self._drain_max_stream_loss = drain_max_stream_loss
        self.streamed: StreamedTargets | None = StreamedTargets()
        """None while it is not known which targets streams use."""
        self._next_at: dict[tuple[str, float], float] = {}
        """When the next move may begin beside a stream."""

    def refusal(self, key: tuple[str, str, str], cost: MoveCost, now: float) -> Refusal | None:
        """Refuses a move while the streams on its targets have lost their part to earlier moves."""
        if not is_background(key):
            return None
        if self.streamed is None:
            return Refusal(Reason.STREAMS, "it is not known yet which targets streams use")
        part = self._part(key)
        if part >= 1:
            return None
        waits = {job: at for job in self._streams_beside(cost) if (at := self._next_at.get((job, part), now)) > now}
        if not waits:
            return None
        return Refusal(Reason.STREAMS, f"streams are at work on its targets ({first_names(sorted(waits))}),"
                       f" and lose at most {percent(part)} to such moves: the next one in "
                       f"{max(waits.values()) - now:.0f} s", ", ".join(sorted(waits)))

    def spend(self, key: tuple[str, str, str], cost: MoveCost, now: float) -> Charge:
        """Enter a move that begins. Returns what it takes from each stream."""
        if not is_background(key):
            return {}
        part = self._part(key)
        charge: dict[tuple[str, float], float] = {}
        for job, seconds in self._seconds(cost):
            charge[job, part] = charge.get((job, part), 0.0) + seconds
        self._next_at = {stream: at for stream, at in self._next_at.items() if at > now}
        for stream, seconds in charge.items():
            self._next_at[stream] = max(now, self._next_at.get(stream, now)) + seconds / part
        return charge

    def give_back(self, charge: Charge, share: float = 1.0) -> None:
        """Return this share of what a move took, which was not copied."""
        for (job, part), seconds in charge.items():
            if (job, part) in self._next_at:
                self._next_at[job, part] -= share * seconds / part

    def _part(self, key: tuple[str, str, str]) -> float:
        return self._drain_max_stream_loss if key[0] == OrderKind.DRAIN else self._max_stream_loss

    def _streams_beside(self, cost: MoveCost) -> set[str]:
        assert self.streamed is not None
        by_target = self.streamed.by_target
        names = {*cost.targets, *cost.written,
                 *(target for pool in cost.written_to_pools for target in self.streamed.pools.get(pool, ()))}
        return {job for name in names if name in by_target for job in by_target[name].streams}

    def _seconds(self, cost: MoveCost) -> Iterator[tuple[str, float]]:
        """Service time of a move on each target, for each stream there.

        A pool of which Lustre chooses targets takes its part on all of them, on average.
        """
        assert self.streamed is not None
        work = [(name, size, 0, 1.0) for name, size in cost.targets.items()]
        work += [(name, 0, size, 1.0) for name, size in cost.written.items()]
        for pool, size in cost.written_to_pools.items():
            members = self.streamed.pools.get(pool, ())
            work += [(name, 0, size, 1 / len(members)) for name in members]
        for name, read_bytes, written_bytes, chance in work:
            target = self.streamed.by_target.get(name)
            if target is not None:
                operations = -(-(read_bytes + written_bytes) // RPC_BYTES) + OBJECT_OPERATIONS
                seconds = chance * target.seconds(read_bytes, written_bytes, operations)
                yield from ((job, seconds) for job in target.streams)
