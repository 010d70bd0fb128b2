"""What a plan needs to know of the file system itself: pools, room, default layouts, sizes of files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lustre.filesystem import Filesystem
from lustre.layout import Layout
from tierd.model import Candidate, DirectoryActivity, Room

SAMPLE = 200
"""Files whose size is asked for in one directory: enough for the 99th percentile to mean something."""


def room(filesystem: Filesystem, directories: Iterable[str]) -> Room:
    """Pools, their room, and the default layouts of these directories, as far as they can be read."""
    pools = filesystem.pools()
    space = filesystem.space()
    return Room(
        pools,
        {pool: sum(space[t].size_bytes for t in targets if t in space) for pool, targets in pools.items()},
        {pool: sum(space[t].avail_bytes for t in targets if t in space) for pool, targets in pools.items()},
        default_layouts(filesystem, directories),
    )


def default_layouts(filesystem: Filesystem, directories: Iterable[str]) -> dict[str, Layout | None]:
    """What new files in these directories get: the directory's own default, else that of the root of the file system.

    A directory that is gone or forbidden is absent, as is one without a default while the root's cannot be read.
    """
    found: dict[str, Layout | None] = {}
    root: list[Layout | None] = []
    for directory in directories:
        try:
            own = filesystem.layout(directory)
            if own is None and not root:
                root.append(filesystem.layout("/"))
        except OSError:
            continue
        found[directory] = own if own is not None else root[0]
    return found


def measured(filesystem: Filesystem, activities: Sequence[DirectoryActivity], limit: int = 1000,
             ) -> list[DirectoryActivity]:
    """The activities with sizes, of at most ``limit`` files a directory; those that are gone fall out.

    The files known to be read come first, then the youngest.
    """
    return [_measured(filesystem, activity, limit) for activity in activities]


def _measured(filesystem: Filesystem, activity: DirectoryActivity, limit: int) -> DirectoryActivity:
    first = sorted(activity.candidates, key=lambda c: (-c.reads, -c.closed_at))[:limit]
    known: list[Candidate] = []
    for candidate in first:
        try:
            status = filesystem.status(candidate.path)
        except OSError:
            continue
        if not status.is_directory and status.fid == candidate.fid:
            known.append(replace(candidate, size_bytes=status.size_bytes))
    sizes = tuple(c.size_bytes for c in known[:SAMPLE] if c.size_bytes is not None)
    return replace(activity, candidates=tuple(known), sizes=sizes)
