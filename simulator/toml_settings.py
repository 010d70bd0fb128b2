"""Settings from the tables of a TOML file, and a whole cluster from ``[cluster]``.

Every key is a field of a settings class, and a nested table is a nested class. Sizes may be text: ``"4M"``. All
mistakes are collected, each with its place in the file.

The table ``[cluster]`` has the targets with their devices and pools, and the number of clients::

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

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from lustre.layout.model import Component, Layout
from lustre.layout.size import parse_size
from simulator.clients.mount import ClientSettings
from simulator.devices import DeviceSettings
from simulator.releases import RELEASES
from simulator.servers.mdt import MdtSettings
from simulator.servers.ost import OstSettings
from simulator.servers.placement import Spill
from simulator.settings import ClusterSettings

T = TypeVar("T")
_TYPE_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false", Mapping: "a table"}


def settings_from(kind: type[T], table: Mapping[str, Any], wrong: list[str], where: str, name: str = "") -> T | None:
    """Make a settings object from a table. Returns None for bad values and adds the reasons to ``wrong``.

    ``name`` is that of the class in a scenario.

    >>> wrong = []
    >>> settings_from(DEVICES["flash"], {"channels": 4, "size_bytes": "2M"}, wrong, "device")
    FlashSettings(bytes_per_second=400000000.0, latency_seconds=0.0002, channels=4, size_bytes=2097152, copies=1)
    >>> settings_from(DEVICES["flash"], {"colour": 1}, wrong, "device"), wrong
    (None, ['device.colour: flash has no such key'])
    """
    values = values_of(kind, table, wrong, where, name)
    if values is None:
        return None
    try:
        return kind(**values)
    except TypeError as error:
        wrong.append(f"{where}: {error}")
        return None


def kind_name(kind: Callable[..., Any]) -> str:
    """Name of a settings class in a scenario."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in kind.__name__).strip("_").removesuffix("_settings")


DEVICES: Mapping[str, type[Any]] = {kind_name(kind): kind for kind in get_args(DeviceSettings)}


def _value(hint: Any, value: Any, wrong: list[str], where: str) -> Any:
    if get_origin(hint) in (Union, UnionType):
        choices = [choice for choice in get_args(hint) if choice is not NoneType]
        if set(choices) <= set(DEVICES.values()):
            return _device(value, wrong, where)
        hint = choices[0]
    if hint is Layout:
        return _layout(value, wrong, where)
    if is_dataclass(hint) and isinstance(value, Mapping):
        assert isinstance(hint, type)
        return settings_from(hint, value, wrong, where)
    return _plain_value(hint, value, wrong, where)


def _plain_value(hint: Any, value: Any, wrong: list[str], where: str) -> Any:
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            wrong.append(f"{where}: {value!r} is not a list")
            return ()
        return tuple(_plain_value(get_args(hint)[0], item, wrong, where) for item in value)
    try:
        if hint is int and isinstance(value, str):
            return parse_size(value)
    except ValueError as error:
        wrong.append(f"{where}: {error}")
        return 0
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    fits = {int: number and isinstance(value, int), float: number, str: isinstance(value, str),
            bool: isinstance(value, bool), Mapping: isinstance(value, Mapping)}
    hint = Mapping if get_origin(hint) is Mapping else hint
    if not fits.get(hint, True):
        wrong.append(f"{where}: {value!r} is not {_TYPE_NAMES[hint]}")
    return float(value) if hint is float and isinstance(value, int) else value


def _layout(value: Any, wrong: list[str], where: str) -> Layout | None:
    """Make a layout from tables with the fields of a component. ``mirror_id`` distinguishes mirrors."""
    if not isinstance(value, list) or not all(isinstance(part, Mapping) for part in value) or not value:
        wrong.append(f"{where}: needs a list of tables, one for each component")
        return None
    found = [settings_from(Component, part, wrong, where, "a component") for part in value]
    parts = tuple(part for part in found if part is not None)
    mirrors = len({part.mirror_id for part in parts})
    return Layout(parts, mirror_count=mirrors, composite=len(parts) > 1 or any(part.on_mdt for part in parts))


def _device(table: Any, wrong: list[str], where: str) -> Any:
    kind = str(table.get("kind")) if isinstance(table, Mapping) else ""
    if kind not in DEVICES:
        wrong.append(f"{where}: kind {kind!r} is not one of {', '.join(DEVICES)}")
        return None
    return settings_from(DEVICES[kind], {key: value for key, value in table.items() if key != "kind"}, wrong, where)


def with_values(value: T, table: Mapping[str, Any], wrong: list[str], where: str) -> T:
    """Copy a settings object with other values of some fields."""
    new = values_of(type(value), table, wrong, where)
    return value if new is None else replace(value, **new)  # type: ignore[type-var]


def values_of(kind: Callable[..., Any], table: Mapping[str, Any], wrong: list[str], where: str,
              name: str = "") -> dict[str, Any] | None:
    """Values of fields of a settings class, or of parameters; None for bad values, with the reasons in ``wrong``."""
    hints, before = get_type_hints(kind), len(wrong)
    if unknown := sorted(set(table) - hints.keys() | table.keys() & {"cluster", "return"}):
        wrong += [f"{where}.{key}: {name or kind_name(kind)} has no such key" for key in unknown]
        return None
    values = {key: _value(hints[key], value, wrong, f"{where}.{key}") for key, value in table.items()}
    return values if len(wrong) == before else None


def cluster_from(table: Mapping[str, Any], wrong: list[str]) -> ClusterSettings | None:
    """Read a cluster from a table. Returns None for bad values and adds the reasons to ``wrong``."""
    rest = dict(table)
    osts, pools = _osts_from(rest.pop("ost", []), wrong)
    mdts = [settings_from(MdtSettings, entry, wrong, "cluster.mdt") for entry in _repeated(rest.pop("mdt", [{}]))]
    clients = _clients_from(dict(rest.pop("client", {})), wrong)
    spills = {
        pool: settings_from(Spill, entry, wrong, "cluster.spill") for pool, entry in rest.pop("spill", {}).items()
    }
    release = rest.pop("release", "2.17")
    if release not in RELEASES:
        wrong.append(f"cluster.release: {release!r} is not one of {', '.join(RELEASES)}")
    plain = {field.name for field in fields(ClusterSettings)} - {"osts", "pools", "mdts", "clients", "spills", "costs"}
    if unknown := sorted(set(rest) - plain):
        wrong += [f"cluster.{key}: a cluster has no such key" for key in unknown]
    if not osts:
        wrong.append("cluster.ost: a cluster needs at least one")
    if wrong:
        return None
    return ClusterSettings(
        tuple(osts), pools, {pool: spill for pool, spill in spills.items() if spill is not None},
        mdts=tuple(mdt for mdt in mdts if mdt is not None), clients=clients,
        version=RELEASES[release], **rest,
    )  # fmt: skip


def _repeated(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in entry.items() if key != "count"}
        for entry in entries
        for _ in range(entry.get("count", 1))
    ]


def _osts_from(entries: list[dict[str, Any]], wrong: list[str]) -> tuple[list[OstSettings], dict[str, tuple[int, ...]]]:
    osts: list[OstSettings] = []
    pools: dict[str, tuple[int, ...]] = {}
    for entry in _repeated(entries):
        pool, size = entry.pop("pool", ""), parse_size(str(entry.pop("size", "1T")))
        entry["capacity"] = {"size_bytes": size, "inodes": entry.pop("inodes", max(size >> 16, 4096))}
        entry["device"] = {"size_bytes": size, **entry.get("device", {})}
        ost = settings_from(OstSettings, entry, wrong, "cluster.ost")
        if ost is not None:
            if pool:
                pools[pool] = (*pools.get(pool, ()), len(osts))
            osts.append(ost)
    return osts, pools


def _clients_from(table: dict[str, Any], wrong: list[str]) -> tuple[ClientSettings, ...]:
    count = table.pop("count", 1)
    described = settings_from(ClientSettings, table, wrong, "cluster.client") or ClientSettings()
    return tuple(
        replace(described, instance=f"ff11{number:012x}", nid=f"10.1.{number // 250}.{number % 250 + 2}@o2ib",
                mount_point=described.mount_point if number == 0 else f"{described.mount_point}{number + 1}")
        for number in range(count)
    )  # fmt: skip
