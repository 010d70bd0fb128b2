"""The pools of this node's file systems: ``lov.*.pools`` on a client, ``lod.*.pools`` on a metadata server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from exporter.reading import ParameterReader
from lustre.formats import pools
from lustre.parameters import parse_device


@dataclass(frozen=True, slots=True)
class PoolMembership:
    """Pools of each file system, with their targets (``OST0003``)."""

    pools: Mapping[str, Mapping[str, frozenset[str]]]
    by_target: Mapping[tuple[str, str], tuple[str, ...]]
    """The pools of a target, sorted; usually one."""

    def label(self, fs: str, target: str) -> str:
        """Return the pools of a target as one label value: empty, a name, or names joined by commas."""
        return ",".join(self.by_target.get((fs, target), ()))


PoolTargets = dict[str, frozenset[str]]
ParsedPools = dict[bytes, tuple[frozenset[str], int]]
"""Members and skipped lines of a pool, by its text."""


class PoolReader:
    """Reads the lists of pools, and parses only changed lists."""

    def __init__(self) -> None:
        self._parsed: ParsedPools = {}
        self._membership = PoolMembership({}, {})

    def membership(self, reader: ParameterReader) -> PoolMembership:
        """Return the pools as clients see them or, without a client, as metadata targets see them."""
        found: dict[str, PoolTargets] = {}
        kept: ParsedPools = {}
        for kind, wanted in (("lov", "clilov"), ("lod", "mdtlov"), ("lov", "mdtlov")):
            for name, device in reader.devices(kind):
                if (
                    device.kind == wanted
                    and device.fsname not in found
                    and (lists := self._pools(reader, kind, name, kept))
                ):
                    found[device.fsname] = lists
        self._parsed = kept
        membership = self._membership
        if found != membership.pools:  # a late reader must not replace the view of other readers
            membership = self._membership = PoolMembership(found, _by_target(found))
        return membership

    def _pools(self, reader: ParameterReader, kind: str, device: str, kept: ParsedPools) -> PoolTargets:
        lists: PoolTargets = {}
        if reader.is_hanging(kind, device):  # without its pools, the targets would move to other sums
            return dict(self._membership.pools.get(parse_device(device).fsname, {}))
        for pool in reader.children(kind, device, "pools"):
            data = reader.read(kind, device, f"pools/{pool}", may_be_empty=True)
            if data is None:
                continue
            if data not in kept:
                kept[data] = self._parsed.get(data) or _members(data)
            lists[pool], skipped = kept[data]
            reader.skipped(kind, f"pools/{pool}", skipped)
        return lists


def _members(data: bytes) -> tuple[frozenset[str], int]:
    listed = pools.parse(data)
    return frozenset(parse_device(member).target or member for member in listed.rows), listed.skipped


def _by_target(found: Mapping[str, PoolTargets]) -> dict[tuple[str, str], tuple[str, ...]]:
    by_target: dict[tuple[str, str], list[str]] = defaultdict(list)
    for fs, lists in found.items():
        for pool in sorted(lists):
            for target in lists[pool]:
                by_target[fs, target].append(pool)
    return {key: tuple(names) for key, names in by_target.items()}
