"""Giving a directory another default layout: which are left as they are, and whether Lustre did what it was asked.

An act that could not be taken back is not begun. And Lustre may take a default that it then changes: where the limit
of the MDT on data in it (``lod.*.dom_stripesize``) is below what is asked for, it makes the first component smaller, or
leaves it out, and reports nothing.
"""

from __future__ import annotations

from dataclasses import replace

from lustre.filesystem import Filesystem
from lustre.layout.model import Layout, explain, same_shape

_PATTERNS = {"raid0", "mdt", "overstriped"}
_FLAGS = {"extension", "prefer", "prefrd", "prefwr"}


def kept(own: Layout | None, of_the_root: Layout | None) -> str:
    """Why a directory's own default is not replaced, nor that of the root where it has none; or ""."""
    holds = own or of_the_root
    if holds is not None and holds.mirror_count > 1:
        return f"the default there gives new files {holds.mirror_count} mirrors, which they would no longer have"
    for component in own.components if own is not None else ():
        if component.objects or component.stripe_offset >= 0:
            return "the default there names OSTs, which cannot be put back"
        unknown = set(component.pattern.split(",")) - _PATTERNS | set(component.flags) - _FLAGS
        if unknown or component.foreign is not None:
            return f"the default there has {', '.join(sorted(unknown)) or 'foreign parts'}, which cannot be put back"
    return ""


def give(filesystem: Filesystem, directory: str, wanted: Layout, before: Layout | None) -> str:
    """Set it, and look; "", or what it has now instead. Raises OSError, and ValueError for what no default can be."""
    failure: OSError | None = None
    try:
        filesystem.set_default_layout(directory, wanted)
    except OSError as error:
        failure = error
    try:
        found = filesystem.layout(directory)
    except OSError:
        if failure is not None:
            raise failure from None
        return ""  # it was set without an error; whoever takes it back looks again
    if failure is not None and not same(found, wanted):
        raise failure
    if same(found, wanted):
        return ""
    if _cut(found, wanted):
        filesystem.set_default_layout(directory, before)
        return "the MDT takes less data into itself than was asked for (lod.*.dom_stripesize); taken back at once"
    now = "none" if found is None else explain(found)
    return f"its default is another one now, and is left so: {now}"


def same(one: Layout | None, other: Layout | None) -> bool:
    """Whether two defaults, either of which may be none, give new files the same."""
    return one is other if one is None or other is None else same_shape(one, other)


def _cut(found: Layout | None, wanted: Layout) -> bool:
    """Whether all that differs is the part on the MDT: it is smaller, or not there."""
    if found is None or not wanted.components[0].on_mdt or len(wanted.components) < 2:
        return False
    rest = [component for component in found.components if not component.on_mdt]
    return bool(rest) and same_shape(
        replace(found, components=(replace(rest[0], extent_start=wanted.components[1].extent_start), *rest[1:])),
        replace(wanted, components=wanted.components[1:]))
