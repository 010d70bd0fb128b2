"""A cluster described in tables: how many targets of which kind, in which pools, how many clients.

::

    [cluster]
    release = "2.15"
    [[cluster.ost]]
    count = 4
    pool = "hdd"
    size = "180T"
    device = {kind = "raid", disks = 41}
    [[cluster.mdt]]
    count = 2
    [cluster.client]
    count = 64
    [cluster.spill]
    flash = {target = "hdd", threshold_percent = 80}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from lustre.layout.size import parse_size
from simulator.choice import Spill
from simulator.client import ClientSettings
from simulator.description import settings
from simulator.mdt_settings import MdtSettings
from simulator.ost_settings import OstSettings
from simulator.releases import RELEASES
from simulator.settings import ClusterSettings


@dataclass(frozen=True, slots=True)
class Machine:
    """A described cluster; ``with_seed`` makes it one that can be run."""

    described: ClusterSettings

    def with_seed(self, seed: int) -> ClusterSettings:
        """The same for one run."""
        return replace(self.described, seed=seed)


def machine(table: Mapping[str, Any], wrong: list[str]) -> Machine | None:
    """The cluster of a table, or None with the reasons in ``wrong``."""
    rest = dict(table)
    osts, pools = _osts(rest.pop("ost", []), wrong)
    mdts = [settings(MdtSettings, entry, wrong, "cluster.mdt") for entry in _repeated(rest.pop("mdt", [{}]))]
    clients = _clients(dict(rest.pop("client", {})), wrong)
    spills = {pool: settings(Spill, entry, wrong, "cluster.spill") for pool, entry in rest.pop("spill", {}).items()}
    release = rest.pop("release", "2.17")
    if release not in RELEASES:
        wrong.append(f"cluster.release: {release!r} is not one of {', '.join(RELEASES)}")
    plain = {field.name for field in fields(ClusterSettings)} - {"osts", "pools", "mdts", "clients", "spills", "costs"}
    if unknown := sorted(set(rest) - plain):
        wrong.append(f"cluster: has no {', '.join(unknown)}")
    if not osts:
        wrong.append("cluster.ost: a cluster needs at least one")
    if wrong:
        return None
    return Machine(ClusterSettings(
        tuple(osts), pools, {pool: spill for pool, spill in spills.items() if spill is not None},
        mdts=tuple(mdt for mdt in mdts if mdt is not None), clients=clients,
        version=RELEASES[release].version, **rest,
    ))  # fmt: skip


def _repeated(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in entry.items() if key != "count"}
        for entry in entries
        for _ in range(entry.get("count", 1))
    ]


def _osts(entries: list[dict[str, Any]], wrong: list[str]) -> tuple[list[OstSettings], dict[str, tuple[int, ...]]]:
    osts: list[OstSettings] = []
    pools: dict[str, tuple[int, ...]] = {}
    for entry in _repeated(entries):
        pool, size = entry.pop("pool", ""), parse_size(str(entry.pop("size", "1T")))
        entry["capacity"] = {"size_bytes": size, "inodes": entry.pop("inodes", max(size >> 16, 4096))}
        entry["device"] = {"size_bytes": size, **entry.get("device", {})}
        ost = settings(OstSettings, entry, wrong, "cluster.ost")
        if ost is not None:
            if pool:
                pools[pool] = (*pools.get(pool, ()), len(osts))
            osts.append(ost)
    return osts, pools


def _clients(table: dict[str, Any], wrong: list[str]) -> tuple[ClientSettings, ...]:
    count = table.pop("count", 1)
    described = settings(ClientSettings, table, wrong, "cluster.client") or ClientSettings()
    return tuple(
        replace(described, instance=f"ff11{number:012x}", nid=f"10.1.{number // 250}.{number % 250 + 2}@o2ib",
                mount_point=described.mount_point if number == 0 else f"{described.mount_point}{number + 1}")
        for number in range(count)
    )  # fmt: skip
