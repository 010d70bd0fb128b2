"""Which targets new objects go to: the pool (or where it spills to), one after the other, or the emptier ones more."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from lustre.layout.model import Component
from simulator.ost import Ost

ROOM_BYTES_MIN = 4 << 20
"""An OST with less room than this gets no new objects."""
QOS_THRESHOLD = 0.17
"""Up to this difference in room targets take turns; beyond it the emptier ones are likelier (``qos_threshold_rr``)."""
SPILL_HOPS_MAX = 10
LOOKED_AT_EACH_TIME = 32


@dataclass(frozen=True, slots=True)
class Spill:
    """``lod.*.pool.NAME.spill_target`` and ``spill_threshold_pct``."""

    target: str
    threshold_percent: float


class Choice:
    """Remembers whose turn it is."""

    def __init__(
        self, osts: Sequence[Ost], pools: Mapping[str, tuple[int, ...]], spills: Mapping[str, Spill], rng: Random
    ) -> None:  # fmt: skip
        self._osts = osts
        self._pools = pools
        self._spills = spills
        self._rng = rng
        self._turn: dict[str, int] = {}
        self._known: dict[str, tuple[int, list[Ost]]] = {}
        """By pool, how often the list may still be used, and who has room."""

    def pool(self, name: str) -> str:
        """The pool that is used when one is asked for: another while the first is fuller than its threshold."""
        for _ in range(SPILL_HOPS_MAX):
            spill = self._spills.get(name)
            if spill is None or self._used_percent(name) < spill.threshold_percent:
                break
            name = spill.target
        return name

    def targets(self, part: Component, room_bytes: int = ROOM_BYTES_MIN) -> list[Ost]:
        """OSTs for the objects of a component. Raises OSError ENOSPC when no target has room."""
        name = self.pool(part.pool)
        fit = self._fit(name, room_bytes)
        if not fit:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        healthy = [ost for ost in fit if not ost.degraded]
        count = self._count(part, len(fit))
        if len(healthy) >= min(count, len(fit)) or (part.stripe_count <= 0 and healthy):
            fit = healthy
            count = self._count(part, len(fit))
        if 0 <= part.stripe_offset < len(self._osts) and self._osts[part.stripe_offset] in fit:
            first = fit.index(self._osts[part.stripe_offset])
            return [fit[(first + i) % len(fit)] for i in range(count)]
        if count < len(fit) and self._uneven(fit):
            return self._weighted(fit, count)
        start = self._turn.get(name, 0)
        self._turn[name] = start + count
        return [fit[(start + i) % len(fit)] for i in range(count)]

    def _fit(self, name: str, room_bytes: int) -> list[Ost]:
        """Targets of a pool with room. Of a large pool they are looked at now and then, as an MDT does with statfs."""
        members = self._pools[name] if name else tuple(range(len(self._osts)))
        if len(members) <= LOOKED_AT_EACH_TIME:
            return [self._osts[i] for i in members if self._fits(self._osts[i], room_bytes)]
        uses, fit = self._known.get(name, (0, []))
        if not uses or not all(self._fits(ost, room_bytes) for ost in fit[:: max(len(fit) // 8, 1)]):
            uses, fit = len(members), [self._osts[i] for i in members if self._fits(self._osts[i], room_bytes)]
        self._known[name] = uses - 1, fit
        return fit

    def _count(self, part: Component, fit: int) -> int:
        if part.overstriped:
            return -part.stripe_count * fit if part.stripe_count < 0 else part.stripe_count or 1
        return fit if part.stripe_count < 0 else min(part.stripe_count or 1, fit)

    def _fits(self, ost: Ost, room_bytes: int) -> bool:
        return not ost.away and ost.store.space().avail_bytes >= room_bytes

    def _uneven(self, fit: list[Ost]) -> bool:
        some = fit if len(fit) <= LOOKED_AT_EACH_TIME else self._rng.sample(fit, 8)
        room = [ost.store.space().avail_bytes for ost in some]
        return max(room) - min(room) > QOS_THRESHOLD * max(room)

    def _weighted(self, fit: list[Ost], count: int) -> list[Ost]:
        left, chosen = list(fit), []
        for _ in range(count):
            weights = [ost.store.space().avail_bytes for ost in left]
            (ost,) = self._rng.choices(left, weights)
            left.remove(ost)
            chosen.append(ost)
        return chosen

    def _used_percent(self, name: str) -> float:
        spaces = [self._osts[i].store.space() for i in self._pools.get(name, ())]
        size = sum(space.size_bytes for space in spaces)
        return 100.0 * (1 - sum(space.avail_bytes for space in spaces) / size) if size else 0.0
