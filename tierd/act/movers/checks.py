"""Checks before a move: the facts of a file, and the reasons for which a mover refuses it.

All facts are read through one descriptor. A mover refuses a file whose facts cannot be read.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain

from lustre.fid import Fid
from lustre.filesystem import Belongings, Calls, FileFlags, Hsm, HsmFlags, Status
from lustre.layout.model import Component, Layout, StripeObject, mirrors, names_osts
from tierd.act.movers.moves import Move
from tierd.decide.relocation import unknown_form
from tierd.refusal import Reason, Refusal


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Status, layout, flags, archive state and attributes of a file, read at one time."""

    fid: Fid
    status: Status
    layout: Layout | None
    flags: FileFlags
    hsm: Hsm
    belongings: Belongings
    project: int

    @property
    def kept(self) -> tuple[object, ...]:
        """What must not change while the file is copied. Names, modes and attributes may."""
        status = self.status
        return (self.fid, status.size_bytes, status.mtime_ns, status.uid, status.gid, self.project,
                layout_objects(self.layout), self.flags, self.hsm, self.belongings.pin)


def read_facts(calls: Calls, path: str) -> FileFacts:
    descriptor = calls.open_for_reading(path)
    try:
        return read_open_facts(calls, descriptor)
    finally:
        calls.close(descriptor)


def read_open_facts(calls: Calls, descriptor: int, hsm: Hsm | None = None) -> FileFacts:
    """Facts of an open file; only status and FID if it is not a regular file. ``hsm`` is its archive state, if it was
    read just before: each read is a request to the MDT.
    """
    status = calls.status(descriptor)
    fid = calls.fid(descriptor)
    if not stat.S_ISREG(status.mode):
        return FileFacts(fid, status, None, FileFlags.NONE, Hsm(), belongings=Belongings(), project=0)
    return FileFacts(fid, status, calls.layout(descriptor), calls.flags(descriptor),
                 calls.hsm(descriptor) if hsm is None else hsm, belongings=calls.belongings(descriptor),
                     project=calls.project(descriptor))


def layout_objects(layout: Layout | None) -> tuple[tuple[StripeObject, ...], ...]:
    """Objects of each component. Two layouts with the same objects are the same layout."""
    return () if layout is None else tuple(component.objects for component in layout.components)


def objects_digest(layout: Layout | None) -> str:
    """Digest of the objects that hold a file. Every move and restripe changes it."""
    words = [f"{each.ost_index}:{each.fid}" for component in layout_objects(layout) for each in component]
    return sha256(" ".join(words).encode()).hexdigest()[:32] if words else ""


_KNOWN_FLAGS = {"init", "stale", "prefer", "prefrd", "prefwr", "nosync", "extension"}
"""Component flags for state and for mirrors. Compression is not among them: a move would drop it."""
_SETTLED = HsmFlags.EXISTS | HsmFlags.ARCHIVED | HsmFlags.NO_RELEASE | HsmFlags.NO_ARCHIVE
"""HSM states of a file that can be moved: the copy in the archive is current."""


def refusal_for(move: Move, facts: FileFacts) -> Refusal | None:
    return next(chain(_of_file(facts), _of_archive(facts), _of_present(move, facts),
                      _of_wanted(move.layout, facts.status.size_bytes, facts.layout)), None)


def is_ordinary(move: Move, status: Status, layout: Layout | None) -> bool:
    """Whether a mover may open the file for writing, as far as this shows without opening it.

    An executable cannot be started while a mover has it open for writing. Opening a file for writing may trigger an
    archive, a cache or another storage system that holds its data. All other checks are made under the lease.
    """
    shown = FileFacts(move.fid or Fid(0, 0), status, layout, FileFlags.NONE, Hsm(), belongings=Belongings(), project=0)
    return not (refusal_for(move, shown) or changed_layout_refusal(move, layout) or enters_mdt(move.layout, layout))


def changed_layout_refusal(move: Move, present: Layout | None) -> Refusal | None:
    """Refuses a file whose layout is not the one with which it was chosen."""
    generation = present.generation if present is not None else 0
    if ((move.objects and move.objects != objects_digest(present))
            or (move.layout_generation and move.layout_generation != generation)):
        return Refusal(Reason.CHANGED, "its layout was changed since it was chosen")
    return None


def leaves_mdt(wanted: Layout, present: Layout | None) -> bool:
    """Whether the move takes data from the MDT to OSTs.

    Lustre then truncates the MDT inode after the exchange, which sets its modification and change time to the server's
    present time (``mdd_dom_fixup`` in lustre/mdd/mdd_object.c, ``osd_execute_truncate`` in
    lustre/osd-ldiskfs/osd_io.c). No other exchange changes a time.
    """
    return _on_mdt(present) > 0 and not _on_mdt(wanted)


def enters_mdt(wanted: Layout, present: Layout | None) -> bool:
    """Whether the move takes data from OSTs to the MDT.

    Lustre refuses to exchange such layouts (``mdd_swap_layouts`` in lustre/mdd/mdd_object.c). ``lfs migrate`` of
    2.13 and newer adds the new layout as a mirror instead, synchronises it and removes the old one
    (``lfs_migrate_to_dom`` in lustre/utils/lfs.c). The file is whole at any time. An MDT from
    2.15 on refuses to remove the only mirror in sync.
    """
    return _on_mdt(wanted) > 0 and not _on_mdt(present)


def mirror_left(before: Layout | None, now: Layout | None) -> int:
    """Id of the mirror with data on the MDT that an interrupted move has left beside the old layout; 0 for none.

    >>> from lustre.fid import Fid
    >>> had = Component(pool="hdd", objects=(StripeObject(2, Fid(1, 1)),), mirror_id=1)
    >>> new = Component(0, 65536, pattern="mdt", mirror_id=2), Component(65536, None, "hdd", mirror_id=2)
    >>> mirror_left(Layout((had,)), Layout((had, *new), mirror_count=2)), mirror_left(Layout((had,)), Layout((had,)))
    (2, 0)
    """
    if before is None or now is None or now.mirror_count != 2:
        return 0
    kept, added = mirrors(now)
    had = {each for objects in layout_objects(before) for each in objects}
    there = {each for component in kept for each in component.objects}
    return added[0].mirror_id if had and had <= there and added[0].on_mdt else 0


def _of_file(facts: FileFacts) -> Iterator[Refusal]:
    if not stat.S_ISREG(facts.status.mode):
        yield Refusal(Reason.NOT_A_FILE, "not a regular file")
    if facts.status.mode & (stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH):
        yield Refusal(Reason.EXECUTABLE, "the file is executable: starting it during a move would fail "
                       "(text file busy)")
    if facts.status.link_count < 1:
        yield Refusal(Reason.GONE, "the file was removed")
    if FileFlags.IMMUTABLE in facts.flags:
        yield Refusal(Reason.IMMUTABLE, "the file is immutable (chattr +i)")
    if FileFlags.APPEND_ONLY in facts.flags:
        yield Refusal(Reason.APPEND_ONLY, "the file is append-only (chattr +a)")
    if pin := facts.belongings.pin:
        yield Refusal(Reason.PINNED, f"the file is pinned: {pin.decode('utf-8', 'replace').strip()}")


def _of_archive(facts: FileFacts) -> Iterator[Refusal]:
    hsm = facts.hsm
    released = facts.layout is not None and any(component.released for component in facts.layout.components)
    if released or HsmFlags.RELEASED in hsm.flags:
        yield Refusal(Reason.RELEASED, "the file is released: a move would restore it from the archive first")
    if hsm.in_progress:
        yield Refusal(Reason.ARCHIVING, "an HSM request for the file is in progress")
    if HsmFlags.DIRTY in hsm.flags:
        yield Refusal(Reason.ARCHIVED_DIRTY, "the file changed since it was archived")
    if hsm.left_behind or (hsm.copied and not facts.status.size_bytes):  # that of an empty file is lost up to 2.17.51
        yield Refusal(Reason.ARCHIVED, "after a move this Lustre would no longer accept the copy in the archive as "
                       "current, and could no longer release the file")
    if hsm.flags & ~_SETTLED or hsm.unknown_flags:
        yield Refusal(Reason.ARCHIVE_STATE, f"archive state {hsm.flags!r}"
                       + (f" and {hsm.unknown_flags:#x} (unknown)" if hsm.unknown_flags else ""))


def _of_present(move: Move, facts: FileFacts) -> Iterator[Refusal]:
    layout = facts.layout
    for component in layout.components if layout is not None else ():
        if refused := unknown_form(component):
            yield refused
        if unknown := set(component.flags) - _KNOWN_FLAGS:
            names = ", ".join(sorted(unknown))
            yield Refusal(Reason.LAYOUT, f"the layout has the flags {names}, which a move would drop")
    if layout is not None and layout.mirror_count > 1:
        yield Refusal(Reason.MIRRORED, f"the file has {layout.mirror_count} mirrors, which a move would drop")
    if move.fid is not None and move.fid != facts.fid:
        yield Refusal(Reason.CHANGED, f"another file has this name now ({facts.fid}, not {move.fid})")
    if move.size_bytes is not None and move.size_bytes != facts.status.size_bytes:
        yield Refusal(Reason.CHANGED, f"the file has {facts.status.size_bytes} bytes, and had {move.size_bytes} "
                       "when it was chosen")


def _of_wanted(wanted: Layout, size_bytes: int, present: Layout | None) -> Iterator[Refusal]:
    """Refuses a layout that Lustre would not place as requested, or that is too short for the file. A layout that names
    the OST of each stripe needs no pool: components without OSTs hold no data.
    """
    end: int | None = 0
    if wanted.mirror_count > 1:
        yield Refusal(Reason.WANTED_LAYOUT, "the new layout has mirrors")
    for component in wanted.components:
        if component.extent_start != end:
            yield Refusal(Reason.WANTED_LAYOUT, f"the new layout has a gap or an overlap at {component.extent_start}")
        end = component.extent_end
        if set(component.pattern.split(",")) - {"raid0", "mdt", "overstriped"}:
            yield Refusal(Reason.WANTED_LAYOUT, f"tierd cannot request the layout pattern {component.pattern!r}")
        # "any target" would include those that the file should leave
        if not component.on_mdt and not component.pool and not names_osts(wanted):
            yield Refusal(Reason.WANTED_LAYOUT, f"the component from byte {component.extent_start} has no pool")
    if end is not None and size_bytes > end:
        yield Refusal(Reason.WANTED_LAYOUT, f"the new layout ends at {end}, the file at {size_bytes}")
    if _on_mdt(present) and _on_mdt(wanted) not in {0, _on_mdt(present)}:
        yield Refusal(Reason.WANTED_LAYOUT, "a move cannot resize the component on the MDT")


def _on_mdt(layout: Layout | None) -> int:
    """Bytes of a file that the layout places on the MDT."""
    first: Component | None = layout.components[0] if layout is not None and layout.components else None
    return first.extent_end or 0 if first is not None and first.on_mdt else 0
