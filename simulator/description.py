"""Settings from tables of a TOML file: every key is a field of a settings class, a nested table a nested class.

Sizes may be written as text: ``"4M"``. What is wrong is collected, all of it, with where it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from lustre.layout.model import Component, Layout
from lustre.layout.size import parse_size
from simulator.devices import FlashSettings, HddSettings, RaidSettings, ThrottledSettings

T = TypeVar("T")
_WORDS = {int: "whole number", float: "number", str: "text", bool: "true or false"}
DEVICES: Mapping[str, type[Any]] = {
    "flash": FlashSettings, "hdd": HddSettings, "raid": RaidSettings, "throttled": ThrottledSettings,
}  # fmt: skip


def settings(kind: type[T], table: Mapping[str, Any], wrong: list[str], where: str) -> T | None:
    """A settings object, or None with the reasons in ``wrong``.

    >>> wrong = []
    >>> settings(FlashSettings, {"channels": 4, "size_bytes": "2M"}, wrong, "device")
    FlashSettings(bytes_per_second=400000000.0, latency_seconds=0.0002, channels=4, size_bytes=2097152)
    >>> settings(FlashSettings, {"colour": 1}, wrong, "device"), wrong
    (None, ['device: flash has no colour'])
    """
    values = _fields(kind, table, wrong, where)
    if values is None:
        return None
    try:
        return kind(**values)
    except TypeError as error:
        wrong.append(f"{where}: {error}")
        return None


def name_of(kind: type[Any]) -> str:
    """A class as people call it in a scenario."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in kind.__name__).strip("_").removesuffix("_settings")


def layout(components: list[dict[str, Any]]) -> Layout:
    """A layout from tables with the fields of a component; several mirrors are told apart by ``mirror_id``."""
    parts = tuple(Component(**{key: _plain(key, value) for key, value in part.items()}) for part in components)
    mirrors = len({part.mirror_id for part in parts})
    return Layout(parts, mirror_count=mirrors, composite=len(parts) > 1 or any(part.on_mdt for part in parts))


def _plain(key: str, value: Any) -> Any:
    if isinstance(value, str) and key.startswith(("extent_", "stripe_size", "extension_")):
        return parse_size(value)
    return tuple(value) if isinstance(value, list) else value


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
        return settings(hint, value, wrong, where)
    return _plain_value(hint, value, wrong, where)


def _plain_value(hint: Any, value: Any, wrong: list[str], where: str) -> Any:
    """A number, a text, a list of them; a size may be a text."""
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            wrong.append(f"{where}: {value!r} is no list")
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
            bool: isinstance(value, bool)}  # fmt: skip
    if not fits.get(hint, True):
        wrong.append(f"{where}: {value!r} is no {_WORDS[hint]}")
    return float(value) if hint is float and isinstance(value, int) else value


def _layout(value: Any, wrong: list[str], where: str) -> Layout | None:
    known = {field.name for field in fields(Component)}
    if not isinstance(value, list) or not all(isinstance(part, Mapping) for part in value) or not value:
        wrong.append(f"{where}: needs a list of tables, one for each component")
        return None
    if unknown := sorted({key for part in value for key in part} - known):
        wrong.append(f"{where}: a component has no {', '.join(unknown)}")
        return None
    try:
        return layout(value)
    except (TypeError, ValueError) as error:
        wrong.append(f"{where}: {error}")
        return None


def _device(table: Any, wrong: list[str], where: str) -> Any:
    kind = str(table.get("kind")) if isinstance(table, Mapping) else ""
    if kind not in DEVICES:
        wrong.append(f"{where}: kind {kind!r} is not one of {', '.join(DEVICES)}")
        return None
    return settings(DEVICES[kind], {key: value for key, value in table.items() if key != "kind"}, wrong, where)


def changed(value: T, table: Mapping[str, Any], wrong: list[str], where: str) -> T:
    """A settings object with other values for some of its fields."""
    new = _fields(type(value), table, wrong, where)
    return value if new is None else replace(value, **new)  # type: ignore[type-var]


def _fields(kind: type[Any], table: Mapping[str, Any], wrong: list[str], where: str) -> dict[str, Any] | None:
    """Values for fields of a settings class, or None with the reasons in ``wrong``."""
    if unknown := sorted(set(table) - {field.name for field in fields(kind)}):
        wrong.append(f"{where}: {name_of(kind)} has no {', '.join(unknown)}")
        return None
    hints, before = get_type_hints(kind), len(wrong)
    values = {key: _value(hints[key], value, wrong, f"{where}.{key}") for key, value in table.items()}
    return values if len(wrong) == before else None
