"""Space and quota at the destination of a move: members and free space of the pool, and the owner's quota.

A move by root ignores quotas, and Lustre places a file of an empty pool on any target. So tierd checks both before.
"""

from __future__ import annotations

import errno
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from lustre.filesystem import Calls, Quota, Space
from lustre.layout.model import Layout, names_osts
from tierd.act.limits import bytes_per_pool
from tierd.act.movers.checks import FileFacts, enters_mdt
from tierd.act.movers.moves import Move
from tierd.decide.relocation import bytes_per_ost, ost_index
from tierd.model import MetadataSpace
from tierd.refusal import Reason, Refusal
from tierd.text import bytes_text, percent

USER, GROUP, PROJECT = 0, 1, 2
_NO_QUOTAS = {errno.ESRCH, errno.ENOENT, errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL}
"""Errors of Lustre if quotas are not enforced."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Reads pools, space and quotas. Read again for every batch, because others fill pools too."""

    pools: Callable[[], Mapping[str, tuple[str, ...]]]
    space: Callable[[], Mapping[str, Space]]
    quota: Callable[[int, int, str], Quota]
    """Quota by kind of owner (user, group, project), id, and pool ("" for the file system)."""
    keep_free: float = 0.05
    """Share of a pool that moves leave free."""
    metadata: Callable[[], Sequence[MetadataSpace]] = tuple
    """Room on all MDTs; empty if that of an MDT is unknown."""


METADATA_KEEP_FREE = 0.2
"""Share of every MDT that moves leave free: a full MDT stops all users."""


class DestinationState:
    """Pools, free space and quotas for one batch of files, less what earlier files of the batch take.

    They are read once for the batch: on a file system with hundreds of targets that takes a thousand reads. So are the
    facts of directories. Any number of threads may use one.
    """

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._lock = threading.RLock()
        self._pools, self._space = cache(destination.pools), cache(destination.space)
        self._metadata = cache(destination.metadata)
        self._projects: dict[str, int] = {}
        self._taken: Counter[str] = Counter()
        self._taken_of_mdts = 0
        """Bytes of files that go to an MDT, as if all went to the same one."""
        self._taken_on_target: Counter[int] = Counter()
        self._quotas: dict[tuple[int, int, str], int | None] = {}

    @property
    def pools(self) -> Mapping[str, tuple[str, ...]]:
        with self._lock:
            return self._pools()

    def pools_afterwards(self) -> Mapping[str, tuple[str, ...]]:
        """Pools after a move, read again: they may have changed meanwhile. If that fails, those before the move."""
        try:
            return self._destination.pools()
        except OSError:
            return self.pools

    def project_beside(self, calls: Calls, path: str) -> int:
        directory = path.rpartition("/")[0]
        # under the lock, so that the threads of a batch ask once for each directory
        with self._lock:
            if directory not in self._projects:
                self._projects[directory] = calls.project_beside(path)
            return self._projects[directory]

    def no_room(self, move: Move, size_bytes: int) -> Refusal | None:
        """Refuses a file of this size, of any owner, if the pools have no room."""
        with self._lock:
            found = (self._no_room(move, pool, held, size_bytes)
                     for pool, held in bytes_per_pool(move.layout, size_bytes).items()
                     if pool or not names_osts(move.layout))
            return self._no_room_on_targets(move, size_bytes) or next(filter(None, found), None)

    def refusal(self, move: Move, facts: FileFacts, *, take: bool = True) -> Refusal | None:
        """Refuses a file without room or quota. Otherwise reserves its room, unless ``take`` is False."""
        size_bytes = facts.status.size_bytes
        wanted = bytes_per_pool(move.layout, size_bytes)
        with self._lock:
            refused = self.no_room(move, size_bytes)
            if refused is None and enters_mdt(move.layout, facts.layout):
                refused = self._no_metadata_room(move, size_bytes)
            refused = refused or self._over_quota(facts, wanted)
            if refused is None and take:
                self._taken.update(wanted)
                self._taken_of_mdts += bytes_on_mdt(move.layout, size_bytes)
                self._taken_on_target.update(bytes_per_ost(move.layout, size_bytes))
                self._take_quota(facts, wanted)
            return refused

    def _no_room(self, move: Move, pool: str, needed_bytes: int, size_bytes: int) -> Refusal | None:
        if (targets := self._pools().get(pool)) is None:
            return Refusal(Reason.NO_SUCH_POOL, f"pool {pool!r} does not exist")
        if not targets:
            return Refusal(Reason.EMPTY_POOL, f"pool {pool!r} has no targets: Lustre would use any target")
        space = self._space()
        rooms = [space[target] for target in targets if target in space]  # others are down, and get no stripes
        if any(c.pool == pool and not c.overstriped and c.stripe_count > max(len(rooms), 1)
               and c.extent_start < max(size_bytes, 1) for c in move.layout.components):  # those that get objects
            return Refusal(Reason.WANTED_LAYOUT, f"more stripes than targets of pool {pool!r} in reach: {len(rooms)}")
        avail_bytes = sum(room.avail_bytes for room in rooms) - self._taken[pool]
        keep_free = self._destination.keep_free
        if avail_bytes - needed_bytes < sum(room.size_bytes for room in rooms) * keep_free:
            return Refusal(Reason.ROOM, f"pool {pool!r} has {bytes_text(avail_bytes)} left, and must keep "
                           f"{percent(keep_free)} free")
        if all(room.avail_bytes <= needed_bytes for room in rooms):  # the pool may have room that no file can use
            return Refusal(Reason.ROOM, f"no target of pool {pool!r} has {bytes_text(needed_bytes)} left")
        return None

    def _no_metadata_room(self, move: Move, size_bytes: int) -> Refusal | None:
        if not (needed_bytes := bytes_on_mdt(move.layout, size_bytes)):
            return None
        if not self._metadata():
            return Refusal(Reason.MDT_UNKNOWN, "the free space of an MDT is unknown")
        # whichever MDT has the file: the fullest decides
        left = min(each.avail_bytes - METADATA_KEEP_FREE * each.size_bytes for each in self._metadata())
        if left < self._taken_of_mdts + 2 * needed_bytes:
            return Refusal(Reason.MDT_ROOM, f"an MDT has too little space for {bytes_text(needed_bytes)} of the file, "
                           f"and must keep {percent(METADATA_KEEP_FREE)} free")
        return None

    def _no_room_on_targets(self, move: Move, size_bytes: int) -> Refusal | None:
        rooms = {ost_index(target): room for target, room in self._space().items()} if names_osts(move.layout) else {}
        for component in move.layout.components:
            members = set(map(ost_index, self._pools().get(component.pool, ())))
            outside = [index for index in component.ost_list if component.pool and index not in members]
            if outside:
                return Refusal(Reason.POOL_CHANGED, f"OST{outside[0]:04x} is not in pool {component.pool!r}")
        for index, needed_bytes in bytes_per_ost(move.layout, size_bytes).items():
            if (room := rooms.get(index)) is None:
                return Refusal(Reason.ROOM, f"the space of OST{index:04x} is unknown")
            left = room.avail_bytes - self._taken_on_target[index] - needed_bytes
            if left < room.size_bytes * self._destination.keep_free:
                return Refusal(Reason.ROOM, f"OST{index:04x} has {bytes_text(room.avail_bytes)} left, and must keep "
                               f"{percent(self._destination.keep_free)} free")
        return None

    def _over_quota(self, facts: FileFacts, wanted: Mapping[str, int]) -> Refusal | None:
        # all of it, because a file counts twice while both copies exist
        places = (("", sum(wanted.values())), *wanted.items())
        for kind, word, owner in _owners(facts):
            for place, needed_bytes in places:
                try:
                    room_bytes = self._quota(kind, owner, place)
                except OSError as error:
                    return Refusal(Reason.QUOTA, f"tierd cannot read the quota of {word} {owner}: {error}")
                if room_bytes is not None and room_bytes < needed_bytes:
                    where = f" in pool {place!r}" if place else ""
                    return Refusal(Reason.QUOTA, f"{word} {owner} has {room_bytes} bytes of quota left{where}")
        return None

    def _quota(self, kind: int, owner: int, place: str) -> int | None:
        """Bytes left; None without a limit."""
        key, quota = (kind, owner, place), Quota(0, 0, 0)
        if key not in self._quotas:
            try:
                quota = self._destination.quota(kind, owner, place)
            except OSError as error:
                if error.errno not in _NO_QUOTAS:
                    raise
            if (left := quota.room_bytes()) is not None and not quota.whole:
                raise OSError(errno.EIO, "a target does not report its usage")
            self._quotas[key] = left
        return self._quotas[key]

    def _take_quota(self, facts: FileFacts, wanted: Mapping[str, int]) -> None:
        for kind, _, owner in _owners(facts):
            for place, taken_bytes in (("", sum(wanted.values())), *wanted.items()):
                if (left := self._quotas.get((kind, owner, place))) is not None:
                    self._quotas[kind, owner, place] = left - taken_bytes


def bytes_on_mdt(layout: Layout, size_bytes: int) -> int:
    """Bytes of a file of this size that the layout places on the MDT."""
    first = layout.components[0]
    return min(size_bytes, size_bytes if first.extent_end is None else first.extent_end) if first.on_mdt else 0


def _owners(facts: FileFacts) -> Iterator[tuple[int, str, int]]:
    """Owners whose quota the file counts for. Root and project 0 have no limits."""
    for kind, word, owner in ((USER, "user", facts.status.uid), (GROUP, "group", facts.status.gid),
                              (PROJECT, "project", facts.project)):
        if owner:
            yield kind, word, owner
