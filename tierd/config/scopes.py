"""Scopes: parts of the file system with a mode, pools, limits and policy settings of their own.

The deepest scope that holds a path decides. A scope inherits what it does not set from the rest of the configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator

from tierd.config import act
from tierd.config.act import Mode
from tierd.decide import plans


def two_pools(settings: plans.FlashSettings) -> plans.FlashSettings:
    """Flash apart from the disks. Raises ValueError where both are one pool, or one has no name."""
    if not settings.flash_pool or not settings.hdd_pool:
        raise ValueError("flash_pool and hdd_pool need names: nothing is placed where no pool is named")
    if settings.flash_pool == settings.hdd_pool:
        raise ValueError(f"flash_pool and hdd_pool are both {settings.flash_pool!r}: name two")
    return settings


"""``observe`` finds and tells; ``recommend`` tells what it would do as well; ``new-files-only`` sets default layouts
and moves no file; ``full`` does both."""
Pools = Annotated[plans.FlashSettings, AfterValidator(two_pools)]


def scope_path(path: str) -> str:
    """The path as it is compared. Raises ValueError for one that is not from the root of the file system.

    >>> scope_path("/scratch/"), scope_path("/")
    ('/scratch', '/')
    """
    if not path.startswith("/") or {".", ".."} & set(path.split("/")):
        raise ValueError("a scope's path begins with / at the root of the file system, and has no . and .. in it")
    return "/" + "/".join(part for part in path.split("/") if part)


@dataclass(frozen=True)
class Scope:
    """One part of the file system."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    path: Annotated[str, AfterValidator(scope_path)]
    mode: Mode = "full"
    small_files_to_flash: Pools = field(default_factory=plans.FlashSettings)
    limits: act.Limits | None = None
    """For moves inside it, besides the limits for all; None for no more than those."""


def unique_paths(scopes: tuple[Scope, ...]) -> tuple[Scope, ...]:
    """The scopes. Raises ValueError where two have one path."""
    paths = [scope.path for scope in scopes]
    twice = sorted({path for path in paths if paths.count(path) > 1})
    if twice:
        raise ValueError(f"each path has one scope; more than one are for {', '.join(twice)}")
    return scopes


def is_below(path: str, scope: str) -> bool:
    """Whether a path is a scope's, or in it.

    >>> is_below("/proj/a/x", "/proj/a"), is_below("/proj/ab", "/proj/a"), is_below("/x", "/")
    (True, False, True)
    """
    return scope in {"/", path} or path.startswith(scope + "/")


def deepest_scope(scopes: Iterable[Scope], path: str, otherwise: Scope) -> Scope:
    """The scope that decides for a path."""
    return max((s for s in scopes if is_below(path, s.path)), key=lambda s: len(s.path), default=otherwise)


def inherit_settings(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values, each scope filled up with what the rest of the file says.

    >>> inherit_settings({"act": {"mode": "observe"}, "scopes": [{"path": "/a"}]})["scopes"]
    [{'mode': 'observe', 'path': '/a'}]
    """
    found = values.get("scopes")
    if not isinstance(found, list) or not all(isinstance(scope, dict) for scope in found):
        return values
    act = values.get("act")
    mode = {"mode": act["mode"]} if isinstance(act, dict) and "mode" in act else {}
    policy = "small_files_to_flash"
    general = {policy: values[policy]} if isinstance(values.get(policy), dict) else {}
    return {**values, "scopes": [overlay({**mode, **general}, scope) for scope in found]}


def original_location(location: Sequence[int | str], values: Mapping[str, Any]) -> tuple[int | str, ...]:
    """Where a setting of a scope stands that the scope has from the rest of the file; else its own place.

    >>> values = {"act": {"mode": "x"}, "scopes": [{"path": "/a"}, {"path": "/b", "mode": "y"}]}
    >>> original_location(("scopes", 0, "mode"), values), original_location(("scopes", 1, "mode"), values)
    (('act', 'mode'), ('scopes', 1, 'mode'))
    """
    if len(location) < 3 or location[0] != "scopes":
        return tuple(location)
    said: Any = values["scopes"][location[1]]
    for part in location[2:]:
        if not isinstance(said, dict) or part not in said:
            return ("act", "mode") if location[2] == "mode" else tuple(location[2:])
        said = said[part]
    return tuple(location)


def overlay(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two tables as one: where both say something, the second counts."""
    both = dict(below)
    for name, value in above.items():
        under = both.get(name)
        both[name] = overlay(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return both
