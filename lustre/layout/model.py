"""File layouts: where the bytes of a file lie, or will lie. Components, extents, pools, stripes, mirrors.

>>> Component(pattern="raid0,released").released, Component(pattern="mdt").on_mdt
(True, True)
>>> small_files = Layout((Component(0, 2 << 20, pool="flash"), Component(2 << 20, EOF, pool="hdd")))
>>> explain(small_files)
'first 2M on flash (1 stripe), rest on hdd (1 stripe)'
>>> pools_within(small_files, 300_000), pools_within(small_files, 3 << 20)
(('flash',), ('flash', 'hdd'))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lustre.fid import Fid
from lustre.layout.size import size_text

EOF = None
"""Extent end of the last component: the end of the file, wherever that is."""

ALIGNMENT_BYTES = 65536
"""Unit of component ends and stripe sizes."""


@dataclass(frozen=True, slots=True)
class StripeObject:
    """One object of a component: the index of its OST, and its own FID."""

    ost_index: int
    fid: Fid


@dataclass(frozen=True, slots=True)
class Foreign:
    """Foreign content of a layout: a link into another storage system, which Lustre does not interpret."""

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
    """Stripe count; -1 means one object on every target, 0 the file system's default."""
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
    """Bytes by which an ``extension`` component extends the component before it; 0 for all other components."""
    mdt_index: int = -1
    """MDT of an ``mdt`` component, as ``lfs getstripe`` prints it. The extended attribute does not contain it."""
    timestamp: int = 0
    """Epoch seconds at which a ``nosync`` mirror was taken."""
    mirror_link_id: int = 0
    data_stripes: int = 0
    parity_stripes: int = 0
    """Parity stripes per set of a ``parity`` component (erasure coding). They protect ``data_stripes`` data stripes."""
    foreign: Foreign | None = None
    ost_list: tuple[int, ...] = ()
    """OST of each stripe of a component that is requested (``lfs setstripe -o``); empty leaves the choice to Lustre. An
    OST that appears twice holds two objects (overstriping)."""

    @property
    def released(self) -> bool:
        """Whether the data is only in an archive (HSM); reading it restores it."""
        return "released" in self.pattern.split(",")

    @property
    def on_mdt(self) -> bool:
        """Whether the data is on the MDT (DoM)."""
        return self.pattern == "mdt" or self.pattern.startswith("mdt,")

    @property
    def overstriped(self) -> bool:
        """Whether an OST may hold several objects of the component."""
        return "overstriped" in self.pattern.split(",")


@dataclass(frozen=True, slots=True)
class Layout:
    """A whole layout: one component for a plain file, several for PFL, DoM and mirrors."""

    components: tuple[Component, ...]
    generation: int = 0
    mirror_count: int = 1
    composite: bool = True
    state: str = ""
    """State of a mirrored file: ``ro`` in sync, ``wp`` written to one mirror, ``sp`` resync in progress."""


def names_osts(layout: Layout) -> bool:
    """Whether a requested layout names the OST of each stripe in some component."""
    return any(component.ost_list for component in layout.components)


def without_objects(layout: Layout) -> Layout:
    """The layout in a form that can be requested: without objects and component flags."""
    return replace(layout, generation=0, state="", components=tuple(
        replace(c, objects=(), flags=tuple(f for f in c.flags if f == "extension"), component_id=0, stripe_offset=-1,
                ost_list=())
        for c in layout.components))


def mirrors(layout: Layout) -> tuple[tuple[Component, ...], ...]:
    """Components of each mirror in file order. An extension component is merged into the component that it extends."""
    groups: dict[int, list[Component]] = {}
    for component in layout.components:
        group = groups.setdefault(component.mirror_id, [])
        if "extension" in component.flags and group:
            room = component.extension_size or component.stripe_size
            group[-1] = replace(group[-1], extent_end=component.extent_end, extension_size=room)
        else:
            group.append(component)
    return tuple(tuple(group) for group in groups.values())


def one_mirror(components: Sequence[Component]) -> Layout:
    """A layout to request, with the components of one mirror alone."""
    return without_objects(Layout(tuple(replace(c, mirror_id=0) for c in components), composite=len(components) > 1))


def with_mirror(present: Layout, wanted: Layout) -> Layout:
    """The present layout with the last mirror of another one added; unchanged if it has mirrors already."""
    first = without_objects(present)
    if present.mirror_count > 1:
        return first
    return Layout((*(replace(c, mirror_id=1) for c in first.components),
                   *(replace(c, mirror_id=2) for c in mirrors(wanted)[-1])), mirror_count=2)


def destination(layout: Layout) -> Component:
    """Where a move to a layout puts the first bytes that it copies: with mirrors, into the last one."""
    return mirrors(layout)[-1][0]


def in_sync(layout: Layout) -> bool:
    """Whether no mirror lacks what was written to another one."""
    return not any("stale" in component.flags for component in layout.components)


def pools_of(layout: Layout) -> tuple[str, ...]:
    """Names of the pools of a layout, in file order, without the empty name.

    A pool on a component of data on the MDT is ignored, because Lustre allocates nothing from it
    (``lod_qos_prep_create`` in lustre/lod/lod_qos.c). 2.17 copies the pool of the directory there if the layout of a
    file has no pool in that component.
    """
    return tuple(dict.fromkeys(c.pool for c in layout.components if c.pool and not c.on_mdt))


def pools_within(layout: Layout, size_bytes: int) -> tuple[str, ...]:
    """Pools that hold the data of a file of a size ("" for no pool); for an empty file, the pool of its first byte."""
    last = max(size_bytes, 1)
    return tuple(dict.fromkeys(c.pool for c in layout.components if not c.on_mdt and c.extent_start < last))


def same_shape(a: Layout, b: Layout) -> bool:
    """Whether two layouts place data in the same way, so that rewriting a file from one to the other changes nothing.

    Compares extents, pools, patterns and counts of all mirrors, not objects, ids or flags. A default stripe size or
    count matches any value. A count of -1 (all targets) matches a component with objects, because their number was
    chosen at its creation. Pools, counts and sizes of data on the MDT are ignored. A released file has the shape that
    it will have after a restore. A list of OSTs matches objects on exactly these OSTs, and a component without objects.
    """
    ours, theirs = mirrors(a), mirrors(b)
    return [len(mirror) for mirror in ours] == [len(mirror) for mirror in theirs] and all(
        _same_component(one, other)
        for mine, yours in zip(ours, theirs, strict=True)
        for one, other in zip(mine, yours, strict=True)
    )


def _same_component(a: Component, b: Component) -> bool:
    return (
        (a.extent_start, a.extent_end, a.extension_size) == (b.extent_start, b.extent_end, b.extension_size)
        and (a.pattern == b.pattern or _kind(a) == _kind(b)) and a.foreign == b.foreign
        and (a.on_mdt or (a.pool == b.pool and _same_count(a, b) and _same_size(a.stripe_size, b.stripe_size)
                          and _same_osts(a, b)))
    )


def _same_osts(a: Component, b: Component) -> bool:
    if not a.ost_list and not b.ost_list:
        return True
    ours, theirs = (c.ost_list or tuple(one.ost_index for one in c.objects) for c in (a, b))
    return not ours or not theirs or sorted(ours) == sorted(theirs)


def _kind(component: Component) -> tuple[str, ...]:
    return tuple(word for word in component.pattern.split(",") if word != "released")


def _same_size(a: int, b: int) -> bool:
    return a == b or 0 in (a, b)


def _same_count(a: Component, b: Component) -> bool:
    if a.stripe_count == b.stripe_count or 0 in (a.stripe_count, b.stripe_count):
        return True
    return (a.stripe_count < 0 and bool(b.objects)) or (b.stripe_count < 0 and bool(a.objects))


def explain(layout: Layout) -> str:
    """Describe in one line which extent of a file goes to which pool."""
    groups = mirrors(layout)
    lines = [", ".join(_phrase(component) for component in group) for group in groups]
    if len(lines) == 1:
        return f"a mirror: {lines[0]}" if layout.mirror_count > 1 else lines[0]
    stale = [", stale" if any("stale" in component.flags for component in group) else "" for group in groups]
    return "; ".join(f"mirror {n}{s}: {line}" for n, (s, line) in enumerate(zip(stale, lines, strict=True), start=1))


def _phrase(component: Component) -> str:
    if component.foreign is not None:
        return f"foreign layout of {len(component.foreign.value)} bytes"
    where = "the MDT" if component.on_mdt else component.pool or "any OST"
    notes = [] if component.on_mdt else [_stripes(component)]
    if component.ost_list:
        notes.append(f"on {', '.join(f'OST{index:04x}' for index in component.ost_list)}")
    notes += [f"grows by {size_text(component.extension_size)}"] if component.extension_size else []
    notes += ["released to the archive"] if component.released else []
    return f"{_extent(component)} on {where}" + (f" ({', '.join(notes)})" if notes else "")


def _extent(component: Component) -> str:
    start, end = component.extent_start, component.extent_end
    if end is None:
        return "rest" if start else "whole file"
    return f"{size_text(start)} to {size_text(end)}" if start else f"first {size_text(end)}"


def _stripes(component: Component) -> str:
    count = component.stripe_count
    size = f" of {size_text(component.stripe_size)}" if component.stripe_size and count != 1 else ""
    if count < 0:
        text = f"stripes{size} on every OST" if count == -1 else f"{-count} stripes{size} on every OST"
    else:
        text = {0: "default stripes", 1: "1 stripe"}.get(count, f"{count} stripes") + size
    return text + (", overstriped" if component.overstriped else "")
