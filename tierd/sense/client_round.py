"""Client after client is looked at, a few each time; what is known of each stays until it is looked at again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lustre.parameters import Tree
from tierd.clock import Clock
from tierd.facts import ClientLoad
from tierd.sense import client_exporters, clients
from tierd.sense.client_counters import ClientCounters, difference
from tierd.sense.http import Client

Pools = Mapping[str, str]
"""Full target name to pool."""
Look = Callable[[Pools], Sequence[ClientCounters]]
"""Counters of the mounts of one node. Raises OSError."""
KEEP_SECONDS = 900.0
"""What is known of a client is dropped then: it may be gone."""


@dataclass(slots=True)
class _Node:
    """One node and how its counters stood."""

    name: str
    look: Look
    time: float = 0.0
    before: dict[str, ClientCounters] = field(default_factory=dict)
    loads: list[ClientLoad] = field(default_factory=list)


class ClientRound:
    """The nodes, in the order of their turns."""

    def __init__(self, looks: Mapping[str, Look], clock: Clock, each_time: int = 5) -> None:
        self._nodes = deque(_Node(name, look) for name, look in looks.items())
        self._clock = clock
        self._each_time = each_time
        self.faults: dict[str, str] = {}
        """Nodes that could not be looked at when it was their turn, and why."""

    def __call__(self, pools: Pools) -> tuple[ClientLoad, ...]:
        """Look at the next few, and tell what is known of all."""
        for _ in range(min(self._each_time, len(self._nodes))):
            node = self._nodes[0]
            self._nodes.rotate(-1)
            self._look(node, pools)
        oldest = self._clock.now() - KEEP_SECONDS
        return tuple(load for node in self._nodes for load in node.loads if load.time > oldest)

    def _look(self, node: _Node, pools: Pools) -> None:
        try:
            found = node.look(pools)
        except (OSError, ValueError) as error:
            self.faults[node.name] = str(error)
            node.before, node.loads = {}, []
            return
        self.faults.pop(node.name, None)
        now = self._clock.now()
        loads = [difference(node.before[c.mount], c, now, now - node.time)
                 for c in found if c.mount in node.before and now > node.time]
        node.loads = [load for load in loads if load is not None]
        node.before, node.time = {c.mount: c for c in found}, now


def of_tree(tree: Tree) -> Look:
    """The mounts of this node."""
    return lambda pools: list(clients.counters(tree, pools))


def of_exporter(url: str, client: Client) -> Look:
    """The mounts of a node by its exporter, which knows the pools itself."""
    return lambda _: client_exporters.asked(url, client)
