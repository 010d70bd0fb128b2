"""Bulk RPCs between clients and servers, and the network adapter that limits their rate."""

from __future__ import annotations

from dataclasses import dataclass, field

from simulator.engine import Completion, Engine
from simulator.servers.objects import StoredObject

NETWORK_SECONDS = 0.0002
"""One-way latency between a client and a server."""
Fragment = tuple[int, int]
"""Offset in the object and number of bytes."""


@dataclass(eq=False, slots=True)
class Rpc:
    """Reads or writes of one object by one job; contiguous pieces are one fragment."""

    write: bool
    stored: StoredObject
    fragments: list[Fragment]
    size_bytes: int
    job_id: str
    sync: bool
    sent_at: float = 0.0
    sender: str = ""
    done: Completion = field(default_factory=Completion)

    def merge(self, other: Rpc, size_bytes_max: int) -> bool:
        """Merge another RPC of the same kind for the same object, if it fits; returns whether it did."""
        if other.stored is not self.stored or other.write is not self.write or other.job_id != self.job_id:
            return False
        if other.sync is not self.sync or self.size_bytes + other.size_bytes > size_bytes_max:
            return False
        self.fragments = merged_fragments([*self.fragments, *other.fragments])
        self.size_bytes += other.size_bytes
        return True


def merged_fragments(fragments: list[Fragment]) -> list[Fragment]:
    """Join contiguous fragments.

    >>> merged_fragments([(1048576, 4096), (0, 1048576), (2097152, 512)])
    [(0, 1052672), (2097152, 512)]
    """
    result: list[Fragment] = []
    start, end = 0, -1
    for offset, size in sorted(fragments):
        if offset <= end:
            end = max(end, offset + size)
            result[-1] = (start, end - start)
        else:
            start, end = offset, offset + size
            result.append((offset, size))
    return result


class NetworkAdapter:
    """The network adapter of one mount, which all its connections share.

    >>> wire = NetworkAdapter(Engine(), 1e9)
    >>> wire.seconds(True, 10**6), wire.seconds(True, 10**6), wire.seconds(False, 10**6)
    (0.001, 0.002, 0.001)
    """

    def __init__(self, engine: Engine, bytes_per_second: float | None) -> None:
        self._engine = engine
        self._rate = bytes_per_second
        self._free_at = [0.0, 0.0]

    def seconds(self, outgoing: bool, size_bytes: int) -> float:
        """Seconds until further bytes have passed; 0 for an unlimited adapter."""
        if self._rate is None:
            return 0.0
        start = max(self._engine.now, self._free_at[outgoing])
        self._free_at[outgoing] = start + size_bytes / self._rate
        return self._free_at[outgoing] - self._engine.now
