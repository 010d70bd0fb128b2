"""How fast targets fill: the room they have now against that of some minutes ago, deletions and all."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from tierd.facts import TargetFill


class Growth:
    """Remembers the room of targets for a while."""

    def __init__(self, span_seconds: float = 900.0) -> None:
        self._span_seconds = span_seconds
        self._past: deque[tuple[float, Mapping[str, TargetFill]]] = deque()

    def measured(self, fill: Mapping[str, TargetFill], now: float) -> dict[str, TargetFill]:
        """The targets with the bytes a second by which they filled since the oldest look; 0 at the first."""
        self._past.append((now, fill))
        while len(self._past) > 1 and self._past[0][0] < now - self._span_seconds:
            self._past.popleft()
        then, before = self._past[0]
        if now <= then:
            return dict(fill)
        return {target: replace(room, growth_bytes_per_second=(before[target].avail_bytes - room.avail_bytes)
                                / (now - then) if target in before else 0.0)
                for target, room in fill.items()}
