"""The node as one collector sees it during a scrape: its devices, mounts, targets and pools.

:class:`NodeMemory` is what the exporter keeps between scrapes, :class:`NodeSnapshot` the view of one scrape.
"""

from __future__ import annotations

from exporter.exposition import label_text
from exporter.hanging import PassState
from exporter.mounts import ClientDevice, Mounts, MountTable
from exporter.pools import PoolMembership, PoolReader
from exporter.reading import NamedDevice, ParameterIndex, ParameterReader, ReadStats
from lustre.formats import df
from lustre.formats.df import Df
from lustre.parameters import Tree

IDLE_STATE = b"\n    state: IDLE\n"
"""The line of ``import`` of a disconnected client. Any request, such as that of ``kbytesfree``, connects it again."""


class NodeMemory:
    """State between scrapes."""

    def __init__(self, tree: Tree) -> None:
        self.parameters = ParameterIndex(tree)
        self.mounts = MountTable()
        self.pools = PoolReader()


class NodeSnapshot:
    """The view of the node that the collectors of one scrape share. Each part is read once, at its first use."""

    def __init__(self, memory: NodeMemory) -> None:
        self.memory = memory
        self.devices: dict[str, tuple[NamedDevice, ...]] = {}
        self.mounts: Mounts | None = None
        self.membership: PoolMembership | None = None
        self.idle: frozenset[str] | None = None


class Node(ParameterReader):
    """The view of one collector."""

    def __init__(self, snapshot: NodeSnapshot, reads: ReadStats, state: PassState | None = None) -> None:
        super().__init__(snapshot.memory.parameters, reads, snapshot.devices, state)
        self.snapshot = snapshot
        self._memory = snapshot.memory

    def mount_points(self) -> Mounts:
        if self.snapshot.mounts is None:
            self.snapshot.mounts = self._memory.mounts.mounts(self)
        return self.snapshot.mounts

    def clients(self, kind: str) -> tuple[ClientDevice, ...]:
        """Return the devices of this node's mounts, without the connections of servers to other servers.

        Returns the object of the previous pass if no mount or connection has changed.
        """
        return self._memory.mounts.clients(kind, self.devices(kind), self.mount_points())

    def mounts(self) -> list[tuple[str, bytes]]:
        return [
            (client.name, label_text(fs=client.device.fsname, mount=client.mount)) for client in self.clients("llite")
        ]

    def idle_clients(self) -> frozenset[str]:
        """Object storage clients that Lustre disconnected because they were unused (``osc.*.idle_timeout``)."""
        if self.snapshot.idle is None:
            self.snapshot.idle = frozenset([client.name for client in self.clients("osc")
                                            if IDLE_STATE in (self.read("osc", client.name, "import") or b"")])
        return self.snapshot.idle

    def targets(self, kind: str) -> list[NamedDevice]:
        """Devices of this node's own targets (``obdfilter``, ``mdt``)."""
        return [t for t in self.devices(kind) if t.device.target and not t.device.instance]

    def labelled_targets(self, kind: str) -> list[tuple[str, bytes]]:
        return [(name, label_text(fs=device.fsname, target=device.target)) for name, device in self.targets(kind)]

    def membership(self) -> PoolMembership:
        if self.snapshot.membership is None:
            self.snapshot.membership = self._memory.pools.membership(self)
        return self.snapshot.membership

    def room(self, kind: str, device: str) -> Df:
        """Read the size and free space of a device. Unknown values are None."""
        return df.of_numbers(*[values[0] for values in self.numbers_of(kind, df.FILES, (device,))])


class Rooms:
    """Reads the size and free space of many devices, and makes values only of changed numbers."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[list[list[int | None]], list[Df]]] = {}

    def read(self, node: Node, kind: str, devices: list[str]) -> list[Df]:
        """Return the space of each device. Unknown values are None."""
        numbers = node.numbers_of(kind, df.FILES, devices)
        before = self._last.get(kind)
        if before is None or before[0] != numbers:
            rooms = [df.of_numbers(*of_device) for of_device in zip(*numbers, strict=True)]
            before = self._last[kind] = numbers, rooms
        return before[1]
