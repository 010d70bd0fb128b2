"""Layout: where the bytes of a file lie, or will lie; components, extents, pools, stripes, mirrors."""

from __future__ import annotations

from dataclasses import dataclass

from lustre.fid import Fid

EOF = None
"""Extent end of the last component: the end of the file, wherever that is."""


@dataclass(frozen=True, slots=True)
class StripeObject:
    """One object of a component: which OST holds it, and the object's own FID there."""

    ost_index: int
    fid: Fid


@dataclass(frozen=True, slots=True)
class Component:
    """One extent of a file and how it is striped."""

    extent_start: int = 0
    extent_end: int | None = EOF
    pool: str = ""
    stripe_count: int = 1
    """Objects of the component; -1 means one on every target, 0 the file system's default."""
    stripe_size: int = 0
    """Bytes per stripe; 0 means the file system's default."""
    stripe_offset: int = -1
    """First OST index; -1 leaves the choice to Lustre."""
    pattern: str = "raid0"
    """``raid0``, ``mdt`` (data on MDT), ``raid0,overstriped``, ``raid0,released``, ``foreign``."""
    flags: tuple[str, ...] = ()
    """``init`` once objects exist, ``stale``, ``prefer``, ``nosync``, ``extension``, …; empty for a default."""
    component_id: int = 0
    mirror_id: int = 0
    objects: tuple[StripeObject, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """A whole layout: one component for a plain file, several for PFL, DoM and mirrors."""

    components: tuple[Component, ...]
    generation: int = 0
    mirror_count: int = 1
    composite: bool = True
