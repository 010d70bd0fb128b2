"""Reads what a plan needs: pools and their devices, free space, default layouts, sizes of files."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from lustre.filesystem import Filesystem
from lustre.layout.model import Layout
from tierd.model import Candidate, Capacity, DirectoryActivity, PoolPair, TargetFill
from tierd.text import first_names

BATCH_FILES = 32
"""Files of each directory that are examined between two calls of ``enough``."""
Item = TypeVar("Item")
Answer = TypeVar("Answer")
SAMPLE_FILES = 200
"""Sampled file sizes of one directory: enough for the 99th percentile to be meaningful."""


def capacity(filesystem: Filesystem, closed: Collection[str] = ()) -> Capacity:
    """Pools and their space. Pools lack the targets in ``closed``, which take no files of moves."""
    every = filesystem.pools()
    pools = {pool: tuple(target for target in members if target not in closed) for pool, members in every.items()}
    space = filesystem.space()
    return Capacity(
        pools,
        {pool: sum(space[t].size_bytes for t in targets if t in space) for pool, targets in pools.items()},
        {pool: sum(space[t].avail_bytes for t in targets if t in space) for pool, targets in pools.items()}, {},
        fill={target: TargetFill(room.size_bytes, room.avail_bytes) for target, room in space.items()},
        closed={pool: found for pool, members in every.items()
                if (found := tuple(target for target in members if target in closed))})


def default_layouts(filesystem: Filesystem, directories: Iterable[str],
                    executor: Executor | None = None) -> dict[str, Layout | None]:
    """Layouts that new files in these directories get: the directory's own default, or else that of the root directory.

    A directory that is removed or unreadable is absent. So is one without a default of its own if that of the root
    directory cannot be read.
    """
    places = list(directories)
    own = dict(zip(places, call_each(partial(_default_of, filesystem), places, executor), strict=True))
    root = _default_of(filesystem, "/") if (None,) in own.values() else ()
    return {directory: layout for directory, found in own.items() for layout in (root if found == (None,) else found)}


def _default_of(filesystem: Filesystem, directory: str) -> tuple[Layout | None, ...]:
    """The default layout of a directory itself, None if it has none of its own; nothing if it is unreadable. The error
    is not returned: its traceback would keep the variables of all callers until Python's cycle collector runs.
    """
    with suppress(OSError):
        return (filesystem.layout(directory),)
    return ()


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
    with suppress(OSError):
        status = filesystem.status(candidate.path)
        if not status.is_directory and status.fid == candidate.fid:
            return replace(candidate, size_bytes=status.size_bytes)
    return None


def call_each(call: Callable[[Item], Answer], items: Sequence[Item], executor: Executor | None) -> list[Answer]:
    """Results in the order of the items. An executor makes several calls at the same time."""
    if executor is None or len(items) < 2:
        return [call(item) for item in items]
    futures = [executor.submit(call, item) for item in items]
    for future in futures:
        future.exception()  # waits: if one has raised, the others must end first, as they may change the file system
    return [future.result() for future in futures]


class PoolMedia:
    """Which pools are on flash, as far as the servers report it.

    The kernel of a server knows whether the device of a target rotates (``osd-*.*.nonrotational``, Lustre 2.11). A
    target that no source reports is unknown, and prevents nothing. One thread learns about pools, another about
    devices; any thread asks.

    >>> media = PoolMedia([PoolPair("flash", "hdd")])
    >>> media.learn_pools({"flash": ["l-OST0000"], "hdd": ["l-OST0001"]})
    >>> media.learn_devices({"l-OST0000": False})
    >>> media.problem
    "pool 'flash' is configured as flash, but the servers report rotating disks: l-OST0000"
    """

    def __init__(self, pool_pairs: Iterable[PoolPair]) -> None:
        """``pool_pairs`` are the configured pools."""
        self.pool_pairs = tuple(pool_pairs)
        self._is_flash: Mapping[str, bool] = {}
        self._pools: Mapping[str, Sequence[str]] = {}

    def learn_devices(self, is_flash: Mapping[str, bool]) -> None:
        """Whether the device of each target (full name) is flash. One whose server does not answer now stays known."""
        self._is_flash = {**self._is_flash, **is_flash}

    def learn_pools(self, pools: Mapping[str, Sequence[str]]) -> None:
        self._pools = pools

    def rotating(self, pool: str) -> list[str]:
        """The targets of a pool that are known to be on rotating disks."""
        return [target for target in self._pools.get(pool, ()) if self._is_flash.get(target) is False]

    def is_on_flash(self, pool: str, *, partly: bool = False) -> bool:
        """Whether all targets of a pool are known to be flash; ``partly``: all that are known, and there are some."""
        known = {self._is_flash.get(target) for target in self._pools.get(pool, ())}
        return True in known and False not in known and (partly or None not in known)

    def wrong_pools(self) -> dict[str, str]:
        """What is wrong with each configured pool, for pools whose devices are known to be of the other kind."""
        found: dict[str, str] = {}
        for pair in self.pool_pairs:
            flash, disks = pair.flash, pair.hdd
            if rotating := self.rotating(flash):
                found[flash] = (f"pool {flash!r} is configured as flash, but the servers report rotating disks: "
                                f"{first_names(rotating)}")
            if self.is_on_flash(disks):
                found[disks] = f"pool {disks!r} is configured as disks, but all its targets are flash"
        return found

    @property
    def problem(self) -> str:
        """All that is wrong with the configured pools; "" if nothing is known to be wrong."""
        return "; ".join(self.wrong_pools().values())
