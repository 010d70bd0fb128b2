"""Counters of clients, as they stood at one look; two looks make a ``ClientLoad``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from tierd.facts import ClientLoad, RpcLoad

K = TypeVar("K", str, int)

Of = tuple[str, str, str]
"""``osc`` or ``mdc``; the pool, or the metadata target; the direction."""


@dataclass(slots=True)
class RpcCounters:
    """RPCs sent by one mount to one pool (or metadata target) in one direction, since it was mounted."""

    in_flight: dict[int, float] = field(default_factory=dict)
    pages: dict[int, float] = field(default_factory=dict)
    most_in_flight: float = 0.0
    most_pages: float = 0.0


@dataclass(slots=True)
class ClientCounters:
    """One mount."""

    client: str
    mount: str
    fsname: str
    read_ahead: dict[str, float] = field(default_factory=dict)
    statahead: dict[str, float] = field(default_factory=dict)
    read_ahead_bytes: float = 0.0
    read_ahead_file_bytes: float = 0.0
    statahead_most: float = 0.0
    rpcs: dict[Of, RpcCounters] = field(default_factory=dict)

    def rpc(self, of: Of) -> RpcCounters:
        """Those of one pool and direction, begun when they were not there."""
        return self.rpcs.setdefault(of, RpcCounters())


def difference(before: ClientCounters, after: ClientCounters, time: float, seconds: float) -> ClientLoad | None:
    """What the mount did between; None where a counter fell, as after a mount: what it did before that is not known."""
    pairs = [(earlier, after.rpcs.get(of, RpcCounters())) for of, earlier in before.rpcs.items()]
    if (fell(before.read_ahead, after.read_ahead) or fell(before.statahead, after.statahead)
            or any(fell(a.in_flight, b.in_flight) or fell(a.pages, b.pages) for a, b in pairs)):
        return None
    return ClientLoad(
        after.client, after.mount, after.fsname, time, seconds, less(before.read_ahead, after.read_ahead),
        after.read_ahead_bytes, after.read_ahead_file_bytes, less(before.statahead, after.statahead),
        after.statahead_most, tuple(rpc_load(of, before.rpcs.get(of), rpcs) for of, rpcs in sorted(after.rpcs.items())),
    )


def rpc_load(of: Of, before: RpcCounters | None, after: RpcCounters) -> RpcLoad:
    """RPCs sent between two looks."""
    earlier = before or RpcCounters()
    return RpcLoad(*of, less(earlier.in_flight, after.in_flight), less(earlier.pages, after.pages),
                   after.most_in_flight, after.most_pages)


def fell(before: Mapping[K, float], after: Mapping[K, float]) -> bool:
    """Whether a counter is lower than it was."""
    return any(after.get(name, 0.0) < count for name, count in before.items())


def less(before: Mapping[K, float], after: Mapping[K, float]) -> dict[K, float]:
    """What came on top, where anything did."""
    return {name: count - before.get(name, 0.0) for name, count in after.items() if count > before.get(name, 0.0)}
