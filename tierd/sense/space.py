"""Reads what a plan needs from the file system: pools, free space, default layouts, sizes of files."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from enum import Enum, auto
from functools import partial
from typing import TypeVar

from lustre.filesystem import Filesystem
from lustre.layout.model import Layout
from tierd.model import Candidate, Capacity, DirectoryActivity, TargetFill

BATCH_FILES = 32
"""Files of each directory that are examined between two calls of ``enough``."""
Item = TypeVar("Item")
Answer = TypeVar("Answer")
SAMPLE_FILES = 200
"""Sampled file sizes of one directory: enough for the 99th percentile to be meaningful."""


def capacity(filesystem: Filesystem, directories: Iterable[str], executor: Executor | None = None,
             closed: Collection[str] = ()) -> Capacity:
    """Pools, their space, and the default layouts of these directories, as far as readable.

    Pools lack the targets in ``closed``, which take no files of moves.
    """
    every = filesystem.pools()
    pools = {pool: tuple(target for target in members if target not in closed) for pool, members in every.items()}
    space = filesystem.space()
    return Capacity(
        pools,
        {pool: sum(space[t].size_bytes for t in targets if t in space) for pool, targets in pools.items()},
        {pool: sum(space[t].avail_bytes for t in targets if t in space) for pool, targets in pools.items()},
        default_layouts(filesystem, directories, executor),
        fill={target: TargetFill(room.size_bytes, room.avail_bytes) for target, room in space.items()},
        closed={pool: found for pool, members in every.items()
                if (found := tuple(target for target in members if target in closed))},
    )


def default_layouts(filesystem: Filesystem, directories: Iterable[str],
                    executor: Executor | None = None) -> dict[str, Layout | None]:
    """Layouts that new files in these directories get: the directory's own default, or else that of the root directory.

    A directory that is removed or unreadable is absent. So is one without a default of its own if that of the root
    directory cannot be read.
    """
    places = list(directories)
    own = dict(zip(places, call_each(partial(_default_of, filesystem), places, executor), strict=True))
    root = _default_of(filesystem, "/") if any(layout is None for layout in own.values()) else None
    found: dict[str, Layout | None] = {}
    for directory, layout in own.items():
        default = root if layout is None else layout
        if not isinstance(default, Unreadable):
            found[directory] = default
    return found


class Unreadable(Enum):
    """A directory that is removed or unreadable.

    The error itself is no answer: by its traceback it would keep the variables of all callers until Python's cycle
    collector runs.
    """

    DIRECTORY = auto()


def _default_of(filesystem: Filesystem, directory: str) -> Layout | Unreadable | None:
    """The default layout of a directory itself; None if it has none of its own."""
    try:
        return filesystem.layout(directory)
    except OSError:
        return Unreadable.DIRECTORY


def with_sizes(filesystem: Filesystem, activities: Sequence[DirectoryActivity], limit: int = 1000,
             executor: Executor | None = None, enough: Callable[[], bool] = lambda: False) -> list[DirectoryActivity]:
    """The activities with the sizes of at most ``limit`` candidates per directory. Removed files are left out.

    Files with recent reads come first, then the newest. One batch of each directory is always examined. When ``enough``
    returns true, no further batch is: the other files are candidates again in the next plan.
    """
    waiting = [deque(sorted(activity.candidates, key=lambda c: (-c.reads, -c.closed_at))[:limit])
               for activity in activities]
    known: list[list[Candidate]] = [[] for _ in activities]
    first = True
    while any(waiting) and (first or not enough()):
        piece = [(number, files.popleft()) for number, files in enumerate(waiting)
                 for _ in range(min(len(files), BATCH_FILES if len(activities) < BATCH_FILES else 1))]
        examined = call_each(lambda one: _with_size(filesystem, one[1]), piece, executor)
        for (number, _), candidate in zip(piece, examined, strict=True):
            if candidate is not None:
                known[number].append(candidate)
        first = False
    return [replace(activity, candidates=tuple(found),
                    sizes=tuple(c.size_bytes for c in found[:SAMPLE_FILES] if c.size_bytes is not None))
            for activity, found in zip(activities, known, strict=True)]


def _with_size(filesystem: Filesystem, candidate: Candidate) -> Candidate | None:
    """The candidate with its size; None if the file was removed or replaced."""
    try:
        status = filesystem.status(candidate.path)
    except OSError:
        return None
    if status.is_directory or status.fid != candidate.fid:
        return None
    return replace(candidate, size_bytes=status.size_bytes)


def call_each(call: Callable[[Item], Answer], items: Sequence[Item], executor: Executor | None) -> list[Answer]:
    """Results in the order of the items. An executor makes several calls at the same time."""
    if executor is None or len(items) < 2:
        return [call(item) for item in items]
    return [future.result() for future in [executor.submit(call, item) for item in items]]
