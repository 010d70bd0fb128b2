"""Objects made ahead of the files that will need them: a store that refills as fast as the target makes them."""

from __future__ import annotations

from simulator.engine import Engine

AHEAD_MAX = 20_000


class Precreated:
    """Of one OST. Files that want objects faster than they are made wait."""

    def __init__(self, engine: Engine, seconds_each: float, ahead: int = AHEAD_MAX) -> None:
        self._engine = engine
        self._seconds_each = seconds_each
        self._ahead = ahead
        self._spent_until = -ahead * seconds_each

    def seconds(self) -> float:
        """Take one; how long until it is there.

        >>> store = Precreated(Engine(), 0.001)
        >>> [store.seconds() for _ in range(20_002)][-2:]
        [0.0, 0.001]
        """
        full = self._engine.now - self._ahead * self._seconds_each
        self._spent_until = max(self._spent_until, full) + self._seconds_each
        return max(round(self._spent_until - self._engine.now, 9) - self._seconds_each, 0.0)
