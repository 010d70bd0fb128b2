"""Which targets are in which pools: ``lov.*.pools`` on a client, ``lod.*.pools`` on a metadata server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lustre.formats import pools
from lustre.parameters import parse_device

if TYPE_CHECKING:
    from exporter.node import Node


@dataclass(frozen=True, slots=True)
class Membership:
    """Pools of each file system, with their targets (``OST0003``)."""

    pools: Mapping[str, Mapping[str, frozenset[str]]]
    by_target: Mapping[tuple[str, str], tuple[str, ...]]
    """The pools of a target, sorted; usually one."""

    def label(self, fs: str, target: str) -> str:
        """The pools of a target in one label: nothing, a name, or names joined by commas."""
        return ",".join(self.by_target.get((fs, target), ()))


Lists = dict[str, frozenset[str]]


class PoolReader:
    """Reads the lists; parses one again only when it changed."""

    def __init__(self) -> None:
        self._parsed: dict[bytes, tuple[frozenset[str], int]] = {}
        self._membership = Membership({}, {})

    def read(self, node: Node) -> Membership:
        """The client's view where there is a client, else the metadata server's."""
        found: dict[str, Lists] = {}
        kept: dict[bytes, tuple[frozenset[str], int]] = {}
        for kind, wanted in (("lov", "clilov"), ("lod", "mdtlov"), ("lov", "mdtlov")):
            for name, device in node.every(kind):
                if (
                    device.kind == wanted
                    and device.fsname not in found
                    and (lists := self._pools(node, kind, name, kept))
                ):
                    found[device.fsname] = lists
        self._parsed = kept
        membership = self._membership
        if found != membership.pools:  # a reader that comes back late must not hand its view to others
            membership = self._membership = Membership(found, _by_target(found))
        return membership

    def _pools(self, node: Node, kind: str, device: str, kept: dict[bytes, tuple[frozenset[str], int]]) -> Lists:
        lists: Lists = {}
        for pool in node.children(kind, device, "pools"):
            data = node.read(kind, device, f"pools/{pool}", may_be_empty=True)
            if data is None:
                continue
            if data not in kept:
                kept[data] = self._parsed.get(data) or _members(data)
            lists[pool], skipped = kept[data]
            node.skipped(kind, f"pools/{pool}", skipped)
        return lists


def _members(data: bytes) -> tuple[frozenset[str], int]:
    listed = pools.parse(data)
    return frozenset(parse_device(member).target or member for member in listed.members), listed.skipped


def _by_target(found: Mapping[str, Lists]) -> dict[tuple[str, str], tuple[str, ...]]:
    by_target: dict[tuple[str, str], list[str]] = defaultdict(list)
    for fs, lists in found.items():
        for pool in sorted(lists):
            for target in lists[pool]:
                by_target[fs, target].append(pool)
    return {key: tuple(names) for key, names in by_target.items()}
