"""Scopes: parts of the file system with their own mode, pools, limits and policy settings.

The deepest scope that contains a path applies to it. A scope inherits all other settings from the rest of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from pydantic import AfterValidator

from tierd.config import act
from tierd.config.act import Mode
from tierd.config.files import over
from tierd.decide import plans
from tierd.model import PoolPair, Table

Item = TypeVar("Item")


def two_pools(settings: plans.FlashSettings) -> plans.FlashSettings:
    """The settings. Raises ValueError if both pools are the same, or if one has no name."""
    if not settings.flash_pool or not settings.hdd_pool:
        raise ValueError("flash_pool and hdd_pool must have names")
    if settings.flash_pool == settings.hdd_pool:
        raise ValueError(f"flash_pool and hdd_pool are both {settings.flash_pool!r}: give two different pools")
    return settings


Pools = Annotated[plans.FlashSettings, AfterValidator(two_pools)]


def below(mount: str, path: str) -> str:
    """A path from the root of the file system, given below its mount point or from the root.

    >>> below("/mnt/lustre", "/mnt/lustre/a"), below("/mnt/lustre", "/a"), below("/mnt/lustre", "/mnt/lustre2")
    ('/a', '/a', '/mnt/lustre2')
    """
    mount = mount.rstrip("/")
    return path[len(mount):] if mount and (path + "/").startswith(mount + "/") else path


def scope_path(path: str) -> str:
    """The path in the form used for comparison. Raises ValueError for a relative path.

    >>> scope_path("/scratch/"), scope_path("/")
    ('/scratch', '/')
    """
    if not path.startswith("/") or {".", ".."} & set(path.split("/")):
        raise ValueError("a scope's path begins with / at the root of the file system, and has no . and .. in it")
    return "/" + "/".join(part for part in path.split("/") if part)


@dataclass(frozen=True)
class Scope(Table):
    """One part of the file system."""

    path: Annotated[str, AfterValidator(scope_path)]
    mode: Mode = Mode.FULL
    small_files_to_flash: Pools = field(default_factory=plans.FlashSettings)
    limits: act.Limits | None = None
    """Limits for moves in this scope, in addition to the general limits; None: no further limits."""

    @property
    def pools(self) -> PoolPair:
        return PoolPair(self.small_files_to_flash.flash_pool, self.small_files_to_flash.hdd_pool)


def is_below(path: str, scope: str) -> bool:
    """Whether a path is the path of a scope, or below it.

    >>> is_below("/proj/a/x", "/proj/a"), is_below("/proj/ab", "/proj/a"), is_below("/x", "/")
    (True, False, True)
    """
    return scope in {"/", path} or path.startswith(scope + "/")


class ResolvedScopes:
    """The settings for each path, resolved once when the configuration is loaded. All packages use this view.

    ``whole`` is the scope of all paths that are in no other scope.
    """

    def __init__(self, whole: Scope, scopes: Iterable[Scope] = ()) -> None:
        configured = tuple(scopes)
        self.whole = whole
        self._deepest_first = sorted(configured, key=lambda scope: -len(scope.path))
        disks: dict[str, str] = {}
        for scope in (whole, *configured):
            disks.setdefault(scope.pools.flash, scope.pools.hdd)
        self.pool_pairs = tuple(PoolPair(flash, hdd) for flash, hdd in disks.items())
        """Each flash pool once, that of ``whole`` first, with the disk pool of the first scope that has it."""
        self.flash_pools = frozenset(disks)
        self.modes = frozenset(scope.mode for scope in (whole, *configured))

    def of(self, path: str) -> Scope:
        """The deepest scope that contains a path (below the root of the file system), or else ``whole``."""
        return next((scope for scope in self._deepest_first if is_below(path, scope.path)), self.whole)

    def pools_of(self, path: str) -> PoolPair:
        return self.of(path).pools

    def by_scope(self, items: Iterable[Item], path_of: Callable[[Item], str]) -> list[tuple[Scope, list[Item]]]:
        """The items of each scope that has any, in their order."""
        found: dict[str, tuple[Scope, list[Item]]] = {}
        for item in items:
            scope = self.of(path_of(item))
            found.setdefault(scope.path, (scope, []))[1].append(item)
        return list(found.values())


def unique_paths(scopes: tuple[Scope, ...]) -> tuple[Scope, ...]:
    """The scopes. Raises ValueError if two have the same path."""
    paths = [scope.path for scope in scopes]
    twice = sorted({path for path in paths if paths.count(path) > 1})
    if twice:
        raise ValueError(f"each path may have one scope; these have several: {', '.join(twice)}")
    return scopes


Scopes = Annotated[tuple[Scope, ...], AfterValidator(unique_paths)]


def with_inherited(tables: object, mount: str, general: Mapping[str, object]) -> object:
    """The tables of scopes with the settings that they inherit, and their paths from the root of the file system.

    A path may have the mount point before it.

    >>> with_inherited([{"path": "/mnt/lustre/proj"}, {"mode": "full"}], "/mnt/lustre", {"mode": "observe"})
    [{'mode': 'observe', 'path': '/proj'}, {'mode': 'full'}]
    """
    if not isinstance(tables, list) or not all(isinstance(scope, Mapping) for scope in tables):
        return tables
    found = [over(general, scope) for scope in tables]
    return [scope | {"path": below(mount, path) or "/"} if isinstance(path := scope.get("path"), str) else scope
            for scope in found]
