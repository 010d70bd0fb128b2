"""Layouts that move objects of a file from some OSTs to others of the same pool, and the space there.

A relocation keeps everything of a layout but the OSTs: extents, pools, stripe sizes and counts, data on the MDT, and
components without objects. It names the OST of each stripe, because a pool alone lets Lustre choose any of its targets,
even the one that the file should leave. A file with a form that a move would change is refused, with the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from lustre.layout.model import Component, Layout, without_objects
from tierd.model import TargetFill
from tierd.refusal import Reason, Refusal


def ost_index(target: str) -> int:
    """The index in a full target name.

    >>> ost_index("lustre-OST001a")
    26
    """
    return int(target[-4:], 16)


class Destinations:
    """The OSTs of all pools, and which of them may take bytes."""

    def __init__(self, pools: Mapping[str, Iterable[str]], fill: Mapping[str, TargetFill], reserve: float,
                 closed: Collection[int] = (), most_used: Mapping[int, float] | None = None) -> None:
        """``reserve`` is the share of each OST that stays free. ``closed`` OSTs take nothing.

        ``most_used`` limits the used share of some OSTs further. Others take nothing if it is given.
        """
        self.pools = {pool: frozenset(map(ost_index, targets)) for pool, targets in pools.items()}
        self._size_bytes = {ost_index(target): room.size_bytes for target, room in fill.items()}
        self.avail_bytes: dict[int, float] = {ost_index(target): room.avail_bytes for target, room in fill.items()}
        """Free bytes of each OST, less what was planned for it."""
        self._reserve = reserve
        self._closed = frozenset(closed)
        self._most_used = most_used

    def used(self, index: int, more_bytes: float = 0.0) -> float:
        """Used share of an OST of known space after this many bytes are added, or (negative) removed."""
        size = self._size_bytes[index]
        return 1 - (self.avail_bytes[index] - more_bytes) / size if size else 1.0

    def may_take(self, index: int, size_bytes: float) -> bool:
        """Whether an OST has room for this many bytes. An OST of unknown space has none."""
        if index not in self.avail_bytes or index in self._closed:
            return False
        limit = 1 - self._reserve
        if self._most_used is not None:
            limit = min(limit, self._most_used.get(index, -1.0))
        return self.used(index, size_bytes) <= limit

    def emptiest(self, pool: Iterable[int], size_bytes: float, without: Collection[int]) -> int | None:
        """The OST with the smallest used share that may take this many bytes; None if there is none."""
        fit = [index for index in pool if index not in without and self.may_take(index, size_bytes)]
        return min(fit, key=lambda index: (self.used(index), index), default=None)

    def take(self, index: int, size_bytes: float) -> None:
        """Reserve bytes on an OST; a negative number frees them."""
        if index in self.avail_bytes:
            self.avail_bytes[index] -= size_bytes

    def pool_of(self, component: Component, leave: Collection[int]) -> frozenset[int]:
        """OSTs that may hold a component: its pool, or without a pool the smallest one that has all its OSTs."""
        if component.pool:
            return self.pools.get(component.pool, frozenset())
        held = {one.ost_index for one in component.objects} - set(leave)
        left = {one.ost_index for one in component.objects} & set(leave)
        holding = [members for members in self.pools.values() if held <= members and left <= members]
        return min(holding, key=lambda members: (len(members), sorted(members)), default=frozenset())


def hard_case(layout: Layout | None) -> Refusal | None:
    """Refuses a layout that a move would change. The sentence says what an administrator can do."""
    if layout is None or not layout.components:
        return Refusal(Reason.NO_LAYOUT, "the file has no layout")
    if layout.mirror_count > 1:
        return Refusal(Reason.MIRRORED, "the file has mirrors: add one elsewhere and remove the one on this target "
                       "(lfs mirror extend, lfs mirror split -d)")
    if any(component.released for component in layout.components):
        return Refusal(Reason.RELEASED, "the file is released to the archive: it has no data here, and a restore "
                       "creates new objects")
    return next(filter(None, map(unknown_form, layout.components)), None)


def unknown_form(component: Component) -> Refusal | None:
    """Refuses a component of a form that no move keeps."""
    words = set(component.pattern.split(","))
    if component.foreign is not None or "foreign" in words:
        return Refusal(Reason.FOREIGN, "the data of the file is outside of Lustre")
    if "parity" in words or "parity" in component.flags or component.parity_stripes:
        return Refusal(Reason.ERASURE_CODED, "the file has erasure coding, which a move would drop")
    if words - {"raid0", "mdt", "overstriped", "released"}:
        return Refusal(Reason.LAYOUT, f"the layout pattern {component.pattern!r} is unknown")
    return None


def osts_of(layout: Layout | None) -> frozenset[int]:
    return frozenset(one.ost_index for component in (layout.components if layout else ()) for one in component.objects)


def bytes_per_component(layout: Layout | None, size_bytes: int) -> Iterator[tuple[Component, int]]:
    """The components on OSTs, each with the bytes of the file in it."""
    for component in layout.components if layout is not None else ():
        if not component.on_mdt:
            end = size_bytes if component.extent_end is None else min(component.extent_end, size_bytes)
            yield component, max(0, end - component.extent_start)


def bytes_per_ost(layout: Layout | None, size_bytes: int) -> dict[int, int]:
    """Bytes on each OST that the layout names, or that has objects of it, of a file of this size; rounded up by stripe.

    >>> bytes_per_ost(Layout((Component(pool="hdd", stripe_count=2, ost_list=(4, 2)),), composite=False), 1001)
    {4: 501, 2: 501}
    """
    found: dict[int, int] = {}
    for component, held_bytes in bytes_per_component(layout, size_bytes):
        osts = component.ost_list or tuple(each.ost_index for each in component.objects)
        for index in osts:
            found[index] = found.get(index, 0) - (-held_bytes // len(osts))
    return found


def relocate(layout: Layout, size_bytes: int, leave: Collection[int], room: Destinations, *,
             may_narrow: bool = False) -> Layout | Refusal:
    """The layout with other OSTs of the same pools in place of those to leave, the emptiest first.

    It names the OST of each stripe. Each OST keeps at most one stripe of a component, unless the component is
    overstriped. ``may_narrow`` leaves out stripes if all other OSTs of the pool have one already. Reserves the room if
    it succeeds.
    """
    refusal = hard_case(layout)
    if refusal is not None:
        return refusal
    wanted: list[Component] = []
    before = dict(room.avail_bytes)
    for had, plain in zip(layout.components, without_objects(layout).components, strict=True):
        placed = _placed(had, size_bytes, leave, room, may_narrow=may_narrow)
        if isinstance(placed, Refusal):
            room.avail_bytes = before
            return placed
        wanted.append(replace(plain, ost_list=placed, stripe_count=len(placed)) if placed else plain)
    for index, held in bytes_per_ost(layout, size_bytes).items():
        if index in leave:
            room.take(index, -held)
    return replace(without_objects(layout), components=tuple(wanted))


def _placed(component: Component, size_bytes: int, leave: Collection[int], room: Destinations, *,
            may_narrow: bool) -> tuple[int, ...] | Refusal:
    """OST of each stripe of a component; empty for one without objects. Reserves the room."""
    present = [one.ost_index for one in component.objects]
    if not set(present) & set(leave):
        return tuple(present)
    members = room.pool_of(component, leave)
    if not members:
        where = f"pool {component.pool!r} does not exist" if component.pool else "no pool has all targets of the file"
        return Refusal(Reason.NO_POOL, f"{where}: move it by hand (lfs migrate --non-block -o)")
    share = sum(held for _, held in bytes_per_component(Layout((component,)), size_bytes)) / len(present)
    found: list[int] = []
    narrowed = 0
    for index in present:
        if index not in leave:
            found.append(index)
            continue
        taken = set() if component.overstriped else set(found) | (set(present) - set(leave))
        other = room.emptiest(members, share, {*leave, *taken})
        if other is None and may_narrow and (found or set(present) - set(leave)):
            narrowed += 1
            continue
        if other is None:
            return Refusal(Reason.NO_ROOM, "no other target of the pool has room for the file, or all of them hold a "
                           "stripe of it already")
        room.take(other, share)
        found.append(other)
    if narrowed:  # the other stripes take over its bytes
        wider = share * narrowed / len(found)
        if not all(room.may_take(index, wider) for index in found):
            return Refusal(Reason.NO_ROOM, "the other targets of the pool have no room for the file")
        for index in found:
            room.take(index, wider)
    return tuple(found)
