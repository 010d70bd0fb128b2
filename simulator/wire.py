"""A client's network adapter: bytes pass one after the other in each direction."""

from __future__ import annotations

from simulator.engine import Engine


class Wire:
    """Shared by all connections of one mount.

    >>> wire = Wire(Engine(), 1e9)
    >>> wire.seconds(True, 10**6), wire.seconds(True, 10**6), wire.seconds(False, 10**6)
    (0.001, 0.002, 0.001)
    """

    def __init__(self, engine: Engine, bytes_per_second: float | None) -> None:
        self._engine = engine
        self._rate = bytes_per_second
        self._free_at = [0.0, 0.0]

    def seconds(self, outgoing: bool, size_bytes: int) -> float:
        """Time until so many bytes more have passed; none when the adapter is never the limit."""
        if self._rate is None:
            return 0.0
        start = max(self._engine.now, self._free_at[outgoing])
        self._free_at[outgoing] = start + size_bytes / self._rate
        return self._free_at[outgoing] - self._engine.now
