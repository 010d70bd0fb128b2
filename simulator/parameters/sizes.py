"""Room, as every layer shows it: ``kbytestotal`` and its siblings of targets, their clients, and the mounts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from simulator.mdt import Mdt
from simulator.ost import Ost

if TYPE_CHECKING:
    from simulator.cluster import Cluster


_SYSFS = "sys/fs/lustre"


def of_targets(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Sizes as the servers show them."""
    for ost in cluster.osts:
        yield from _under(f"{_SYSFS}/obdfilter/{ost.name}", _of(ost))
        yield f"{_SYSFS}/obdfilter/{ost.name}/degraded", f"{int(ost.degraded)}\n"
    for mdt in cluster.mdts:
        yield from _under(f"{_SYSFS}/osd-ldiskfs/{mdt.name}", _of(mdt))


def of_clients(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """The same sizes as every mount and its connections show them."""
    per_target = {target.name: _of(target) for target in cluster.targets}
    whole = _sum([per_target[ost.name] for ost in cluster.osts])
    whole["filestotal"] = sum(mdt.settings.capacity.inodes for mdt in cluster.mdts)
    whole["filesfree"] = sum(mdt.inodes_free for mdt in cluster.mdts)
    for client in cluster.clients:
        suffix = client.settings.instance
        yield from _under(f"{_SYSFS}/llite/{cluster.settings.fsname}-{suffix}", whole)
        for osc in client.oscs:
            yield from _under(f"{_SYSFS}/osc/{osc.name}", per_target[osc.ost.name])
        for mdc in client.mdcs:
            yield from _under(f"{_SYSFS}/mdc/{mdc.name}", per_target[mdc.mdt.name])


def _of(target: Ost | Mdt) -> dict[str, int]:
    if isinstance(target, Ost):
        space = target.store.space()
        numbers = (space.size_bytes, space.free_bytes, space.avail_bytes)
        inodes = target.store.capacity.inodes, target.store.inodes_free
    else:
        size = target.settings.capacity.size_bytes
        numbers = (size, size - (64 << 20), size - (160 << 20))
        inodes = target.settings.capacity.inodes, target.inodes_free
    total, free, avail = (number >> 10 for number in numbers)
    return {
        "kbytestotal": total, "kbytesfree": free, "kbytesavail": avail,
        "filestotal": inodes[0], "filesfree": inodes[1],
    }  # fmt: skip


def _sum(parts: list[dict[str, int]]) -> dict[str, int]:
    return {name: sum(part[name] for part in parts) for name in parts[0]}


def _under(directory: str, numbers: dict[str, int]) -> Iterator[tuple[str, str]]:
    for name, number in numbers.items():
        yield f"{directory}/{name}", f"{number}\n"
    yield f"{directory}/blocksize", "4096\n"
