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
    layouts: dict[str, Layout | None] = {}
    for directory in directories:
        try:
            layouts[directory] = filesystem.layout(directory)
        except OSError:
            continue  # gone or forbidden: absent, and nothing will be planned for it
    return Room(
        pools,
        {pool: sum(space[t].size_bytes for t in targets if t in space) for pool, targets in pools.items()},
        {pool: sum(space[t].avail_bytes for t in targets if t in space) for pool, targets in pools.items()},
        layouts,
    )


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
