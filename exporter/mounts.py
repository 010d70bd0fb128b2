r"""Which mount point belongs to which of Lustre's client instances.

Lustre names a client's devices after an address in kernel memory (``ff1100011d6c9800``), new at each mount. As a label
that would start new series at every reboot, so the mount point takes its place. The kernel shows both, but nowhere
together: ``/proc/mounts`` lists mounts in the order they were made, and the statistics of an instance say since when
they count.

>>> in_order(b"10.0.2.15@tcp:/lustre /mnt/a\\040b lustre rw 0 0\n/dev/vdb /mnt/ost lustre ro 0 0\n")
[('lustre', '/mnt/a b')]
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lustre.formats import header

if TYPE_CHECKING:
    from exporter.node import Node

Mounts = Mapping[tuple[str, str], str]
"""(fs, instance) -> mount point."""

Moment = tuple[int, bytes]
"""Seconds, and the digits of the fraction."""
_NEVER: Moment = (0, b"")

_CLIENT = re.compile(rb"^\S*:/([^/\s]+)\S* (\S+) lustre ", re.MULTILINE)
_OCTAL = re.compile(rb"\\([0-7]{3})")
_WHERE = ("mounts", "self/mounts", "1/mounts")
"""The first that lists a client mount is taken: in a container, only that of process 1 may."""
_DATED = (("llite", ("stats", "read_ahead_stats")), ("mdc", ("stats", "rpc_stats", "md_stats")), ("osc", ("stats",)))
"""What is created while a file system is being mounted and says when."""


def in_order(text: bytes) -> list[tuple[str, str]]:
    """(fs, mount point) of each client mount, oldest first. Servers' targets are of type lustre too, without ``:/``."""
    return [(_text(fs), _text(path)) for fs, path in _CLIENT.findall(text)]


def _text(field: bytes) -> str:
    return _OCTAL.sub(lambda octal: bytes((int(octal[1], 8) & 0xFF,)), field).decode("utf-8", "replace")


class MountNames:
    """Remembers which instance is which mount, so that a statistics file cleared later cannot change it."""

    def __init__(self) -> None:
        self._seen: tuple[list[tuple[str, str]], list[tuple[str, str]]] | None = None
        self._names: Mounts = {}

    def of(self, node: Node) -> Mounts:
        """The mount point of every instance on this node."""
        instances = node.instances()
        views = (in_order(node.root_text(path)) for path in _WHERE) if instances else ()
        listed = next(filter(None, views), [])
        if (instances, listed) != self._seen:
            self._names = dict(_assign(node, instances, listed))
            self._seen = (instances, listed)
        return self._names


def _assign(
    node: Node, instances: list[tuple[str, str]], listed: list[tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], str]]:
    by_fs: dict[str, list[str]] = defaultdict(list)
    for fs, instance in instances:
        by_fs[fs].append(instance)
    for fs, of_fs in by_fs.items():
        points = list(dict.fromkeys(point for listed_fs, point in listed if listed_fs == fs))
        for instance, name in _match(node, fs, of_fs, points):
            yield (fs, instance), name


def _match(node: Node, fs: str, instances: list[str], points: list[str]) -> list[tuple[str, str]]:
    if len(instances) == 1:  # further mount points are bind mounts of the same
        return [(instances[0], points[0] if points else "")]
    born = {instance: _born(node, fs, instance) for instance in instances}
    eldest_first = sorted(instances, key=lambda instance: (born[instance] or _NEVER, instance))
    if len(points) == len(instances) and all(born.values()):
        return list(zip(eldest_first, points, strict=True))
    return [(instance, str(number)) for number, instance in enumerate(eldest_first, 1)]


def _born(node: Node, fs: str, instance: str) -> Moment | None:
    """When the instance began to count; None where the release does not say."""
    starts: list[Moment] = []
    for kind, names in _DATED:
        for device in node.devices_of(kind, fs, instance):
            for name in names:
                start = header.split(node.read(kind, device, name) or b"").start_time
                whole, _, fraction = start.partition(b".")
                if whole.isdigit():
                    starts.append((int(whole), fraction.ljust(9, b"0")))
    return min(starts, default=None)
