"""What a layout is made of, as values; :mod:`lustre.layout` says what can be asked of them.

>>> Component(pattern="raid0,released").released, Component(pattern="mdt").on_mdt
(True, True)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lustre.fid import Fid

EOF = None
"""Extent end of the last component: the end of the file, wherever that is."""

ALIGNMENT_BYTES = 65536
"""Lustre ends components and sizes stripes at multiples of this."""


@dataclass(frozen=True, slots=True)
class StripeObject:
    """One object of a component: which OST holds it, and the object's own FID there."""

    ost_index: int
    fid: Fid


@dataclass(frozen=True, slots=True)
class Foreign:
    """What a layout holds that Lustre does not interpret: a link into another storage system."""

    value: bytes
    kind: int = 0
    flags: int = 0


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
    extension_size: int = 0
    """Bytes by which an ``extension`` component gives room to the one before it; 0 for every other component."""
    mdt_index: int = -1
    """MDT of a ``mdt`` component as ``lfs getstripe`` prints it; the extended attribute does not hold it."""
    timestamp: int = 0
    """Epoch seconds at which a ``nosync`` mirror was taken."""
    mirror_link_id: int = 0
    data_stripes: int = 0
    parity_stripes: int = 0
    """Stripes per set of a ``parity`` component (erasure coding), and how many of data these protect."""
    foreign: Foreign | None = None

    @property
    def released(self) -> bool:
        """Whether the bytes are in an archive (HSM); reading them brings them back."""
        return "released" in self.pattern.split(",")

    @property
    def on_mdt(self) -> bool:
        """Whether the bytes lie on the MDT (DoM)."""
        return self.pattern.split(",")[0] == "mdt"

    @property
    def overstriped(self) -> bool:
        """Whether an OST may hold several objects of it."""
        return "overstriped" in self.pattern.split(",")


@dataclass(frozen=True, slots=True)
class Layout:
    """A whole layout: one component for a plain file, several for PFL, DoM and mirrors."""

    components: tuple[Component, ...]
    generation: int = 0
    mirror_count: int = 1
    composite: bool = True
    state: str = ""
    """Of a mirrored file: ``ro`` in sync, ``wp`` written to one mirror, ``sp`` being brought in sync."""


def mirrors(layout: Layout) -> tuple[tuple[Component, ...], ...]:
    """Components of each mirror in file order; an extension component is merged into the one it gives room to."""
    groups: dict[int, list[Component]] = {}
    for component in layout.components:
        group = groups.setdefault(component.mirror_id, [])
        if "extension" in component.flags and group:
            room = component.extension_size or component.stripe_size
            group[-1] = replace(group[-1], extent_end=component.extent_end, extension_size=room)
        else:
            group.append(component)
    return tuple(tuple(group) for group in groups.values())
