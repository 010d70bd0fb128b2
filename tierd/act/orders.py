"""What somebody asked for by name: promote, demote, and what robinhood hands over. It goes through the gate like all.

Taken in by any thread without waiting; made into actions here, by the layouts the policy of each scope would give.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lustre.fid import Fid
from lustre.filesystem import FileStatus, Filesystem
from lustre.layout.model import Component, Layout
from tierd.act.guard import REQUEST
from tierd.config import Settings
from tierd.decide.sizing import boundary
from tierd.decide.small_files_to_flash import covers, flash_first, reserved
from tierd.model import Action, Room
from tierd.sense import space
from tierd.sense.paths import join
from tierd.text import quoted

SUBMISSION = "submission"
"""The kind of what a program hands over: modes hold for it, as for what tierd finds itself."""
_WIDEST = 4
"""Stripes of a file that goes to a pool as a whole, at the most."""


@dataclass(frozen=True, slots=True)
class Order:
    """One wish."""

    direction: str
    """``promote`` (to flash) or ``demote`` (to disks)."""
    path: str
    by: str
    kind: str = REQUEST
    reason: str = ""
    most_files: int = 1000
    most_bytes: int = 1 << 40
    fid: Fid | None = None
    """What had that name when it was ordered; None where nobody looked."""

    @property
    def what(self) -> str:
        """In words."""
        return f"{self.by} asked to {self.direction} {quoted(self.path)}"


@dataclass(slots=True)
class Intent:
    """An order made into actions, and what was left out of it, by reason."""

    actions: list[Action] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def size_bytes(self) -> int:
        """Of all its files."""
        return sum(action.size_bytes for action in self.actions)

    def add(self, other: Intent) -> None:
        """Take another one in."""
        self.actions += other.actions
        self.left_out += other.left_out


def intent(order: Order, filesystem: Filesystem, settings: Settings, now: Callable[[], float],
           until: float = float("inf")) -> Intent:
    """What an order comes to. Raises OSError where its path cannot be looked at."""
    found = Intent()
    if order.fid is not None and filesystem.status(order.path).fid != order.fid:
        found.left_out["something else has this name now"] += 1
        return found
    room = space.room(filesystem, ())
    left = dict(room.avail_bytes)
    size_bytes = 0
    for path, status in files(filesystem, order.path, found.left_out):
        if order.kind == SUBMISSION and path != order.path:
            found.left_out["it is a directory: files are handed over one by one"] += 1
            break
        if len(found.actions) >= order.most_files:
            found.left_out[f"this one and all after it: {order.most_files} files are the most (--max-files)"] += 1
            break
        if size_bytes + status.size_bytes > order.most_bytes:
            found.left_out[f"this one and all after it: {order.most_bytes / 1e9:g} GB are the most (--max-bytes)"] += 1
            break
        if now() > until:
            found.left_out["there was no time to look further; order it in parts"] += 1
            break
        try:
            why = add(found, order, path, status, filesystem.layout(path), room, left, settings)
        except OSError as error:
            why = error.strerror or str(error)
        if why:
            found.left_out[why] += 1
        else:
            size_bytes += status.size_bytes
    return found


def add(found: Intent, order: Order, path: str, status: FileStatus, present: Layout | None, room: Room,
        left: dict[str, int], settings: Settings) -> str:
    """Add the move of one file; or why it is left out."""
    policy = settings.scope_of(path).small_files_to_flash
    pool = policy.flash_pool if order.direction == "promote" else policy.hdd_pool
    if not room.pools.get(pool):
        return f"pool {pool!r} does not exist or has no targets"
    if present is None or not present.components:
        return "it has no layout to change (no regular file, or nothing is in it)"
    if order.direction == "promote":
        size = boundary(max(status.size_bytes, 1))
        if covers(present, status.size_bytes, pool):
            return "it is there already"
        whole = size > policy.sizing.largest_component_bytes
        layout = on_one_pool(pool, room, present) if whole else flash_first(size, present, policy)
        if left[pool] - status.size_bytes < reserved(room, policy):
            return f"pool {pool!r} has no room for it above its reserve"
    else:
        if all(component.pool == pool and not component.on_mdt for component in present.components):
            return "it is there already"
        layout = on_one_pool(pool, room, present)
        if left[pool] < status.size_bytes:
            return f"pool {pool!r} has no room for it"
    left[pool] -= status.size_bytes
    why = f"{order.by} asked for it" + (f": {order.reason}" if order.reason else "")
    found.actions.append(Action("migrate", layout, why, (order.kind, order.by, order.path),
                                path.rpartition("/")[0] or "/", path, status.size_bytes, status.fid))
    return ""


def on_one_pool(pool: str, room: Room, present: Layout) -> Layout:
    """The whole file on one pool, as wide as its last component is now."""
    last = present.components[-1]
    count = last.stripe_count if last.stripe_count > 0 else len(room.pools[pool])
    return Layout((Component(0, None, pool, max(1, min(count, len(room.pools[pool]), _WIDEST)), last.stripe_size),),
                  composite=False)


def files(filesystem: Filesystem, path: str, left_out: Counter[str]) -> Iterator[tuple[str, FileStatus]]:
    """A file, or all files below a directory, by name. What cannot be looked at below it is counted."""
    status = filesystem.status(path)
    if not status.is_directory:
        yield path, status
        return
    waiting = [path]
    while waiting:
        directory = waiting.pop()
        try:
            names = sorted(filesystem.entries(directory))
        except OSError as error:
            left_out[f"directory {quoted(directory)}: {error.strerror or error}"] += 1
            continue
        deeper = []
        for name in names:
            place = join(directory, name)
            try:
                status = filesystem.status(place)
            except OSError as error:
                left_out[error.strerror or str(error)] += 1
                continue
            if status.is_directory:
                deeper.append(place)
            else:
                yield place, status
        waiting += reversed(deeper)
