"""Orders: requests of an administrator or a program (robinhood) to promote or demote files by name.

Any thread may submit an order without waiting. The journal's file stores orders until the next cycle, so neither a
restart nor a kill loses them. In that cycle they become actions, with the layouts that the policy of each scope gives,
and pass the gate like all other actions.

Moves that waited when tierd ended are queued again, unless the settings have changed or the finding is over: findings
that hold are detected again. A move of an order is planned as if the order were given when its turn comes.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lustre.fid import Fid
from lustre.filesystem import FileStatus, Filesystem
from lustre.layout.model import Component, Layout, mirrors
from tierd.act.journal.connection import SharedConnection
from tierd.act.journal.entry import MAX_STORED, Stamp, StoredMove, to_bytes, to_path
from tierd.acts import ORDER_KINDS, ActKind, OrderKind
from tierd.config.settings import Settings
from tierd.decide.plans import FlashSettings, covers, flash_first, missing_pool, reserved
from tierd.decide.sizing import boundary
from tierd.model import Action, Capacity, FindingKey
from tierd.refusal import Reason, Refusal, of_error
from tierd.sense import space
from tierd.sense.file_walks import walk
from tierd.text import bytes_text, quoted

Allowed = Callable[[str, FileStatus], Refusal | None]
"""Refuses a file, or a directory with all files below it."""
_STRIPES = 4
"""Stripes of a file with one on every target, or the default count, that is moved to a pool as a whole. A choice."""


@dataclass(frozen=True, slots=True)
class Order:
    """One order: a file or a directory, and the direction."""

    direction: str
    """``promote`` (to flash) or ``demote`` (to disks)."""
    path: str
    by: str
    kind: OrderKind = OrderKind.REQUEST
    reason: str = ""
    most_files: int = 1000
    most_bytes: int = 1 << 40
    fid: Fid | None = None
    """The file that had this path when the order was given; None if unknown."""

    @property
    def what(self) -> str:
        return f"{self.by} asked to {self.direction} {quoted(self.path)}"


@dataclass(slots=True)
class OrderPlan:
    """The actions of an order, and the numbers of files left out, by reason."""

    actions: list[Action] = field(default_factory=list)
    left_out: Counter[Refusal] = field(default_factory=Counter)

    @property
    def size_bytes(self) -> int:
        return sum(action.size_bytes for action in self.actions)

    def add(self, other: OrderPlan) -> None:
        self.actions += other.actions
        self.left_out += other.left_out


def plan_order(order: Order, filesystem: Filesystem, settings: Settings, now: Callable[[], float],
           until: float = float("inf"), allowed: Allowed = lambda *_: None) -> OrderPlan:
    """The actions of an order. Raises OSError if its path cannot be read."""
    found = OrderPlan()
    if order.fid is not None and filesystem.status(order.path).fid != order.fid:  # replaced since the order
        found.left_out[Refusal(Reason.CHANGED, "another file has this name now")] += 1
        return found
    room = space.capacity(filesystem)
    left, size_bytes = dict(room.avail_bytes), 0
    for path, status in files_below(filesystem, order.path, found.left_out, allowed):
        why: Refusal | None = None
        try:
            made = allowed(path, status) or planned_move(order, path, status, filesystem.layout(path), room=room,
                                                         left=left, settings=settings)
        except OSError as error:
            made = of_error(error)
        if order.kind == OrderKind.SUBMISSION and path != order.path:
            why = Refusal(Reason.IS_DIRECTORY, "the path is a directory: submit files one by one")
        elif now() > until:
            why = Refusal(Reason.OUT_OF_TIME, "this file and all further ones: the time of one order is over; split it")
        elif isinstance(made, Refusal):
            found.left_out[made] += 1
        elif len(found.actions) >= order.most_files or size_bytes + status.size_bytes > order.most_bytes:
            options = ("max_files, max_size" if order.kind == OrderKind.STAGING else
                       f"tierctl {order.direction} --max-files, --max-bytes")
            why = Refusal(Reason.ORDER_LIMIT, "this file and all further ones: the limit of "
                          f"{order.most_files} files or {bytes_text(order.most_bytes)} is reached ({options})")
        else:
            found.actions.append(made)
            size_bytes += status.size_bytes
        if why is not None:
            found.left_out[why] += 1
            break
    return found


def planned_move(order: Order, path: str, status: FileStatus, present: Layout | None, room: Capacity,
                 left: dict[str, int], settings: Settings) -> Action | Refusal:
    """The move of one file, whose room is taken from ``left``, or why it is not moved."""
    policy = settings.resolved_scopes.of(path).small_files_to_flash
    promotes = order.direction == "promote"
    pool = policy.flash_pool if promotes else policy.hdd_pool
    if missing := missing_pool(room, pool):
        return missing
    layout = layout_in(pool, len(room.pools[pool]), present, status.size_bytes, policy)
    if isinstance(layout, Refusal):
        return layout
    if left[pool] - status.size_bytes < (reserved(room, policy) if promotes else 0):
        above = " above its reserve" if promotes else ""
        return Refusal(Reason.NO_ROOM, f"pool {pool!r} has no room for the file{above}")
    left[pool] -= status.size_bytes
    why = f"requested by {order.by}" + (f": {order.reason}" if order.reason else "")
    return Action(ActKind.MIGRATE, layout, why, (order.kind, order.by, order.path), path.rpartition("/")[0] or "/",
                  path=path, size_bytes=status.size_bytes, fid=status.fid)


def layout_in(pool: str, targets: int, present: Layout | None, size_bytes: int,
              policy: FlashSettings) -> Layout | Refusal:
    """The layout that brings a whole file to the flash pool or the disk pool of a policy, or why it gets none.

    ``targets`` is their number in the pool. If the file does not fit a first component on flash, it gets the stripes of
    the component in which it ends.
    """
    promotes, size = pool == policy.flash_pool, boundary(max(size_bytes, 1))
    if present is None or not present.components:
        return Refusal(Reason.NO_LAYOUT, "the file has no layout to change (not a regular file, or empty)")
    if (covers(present, size_bytes, pool) if promotes
            else all(component.pool == pool and not component.on_mdt for component in present.components)):
        return Refusal(Reason.HAS_LAYOUT, f"the file is in pool {pool!r} already")
    if promotes and size <= policy.sizing.largest_component_bytes:
        return flash_first(size, present, policy)
    last = [Component(), *(c for c in mirrors(present)[-1] if c.extent_start < max(size_bytes, 1) and not c.on_mdt)][-1]
    count = min(last.stripe_count if last.stripe_count > 0 else _STRIPES, targets)
    return Layout((Component(0, None, pool, max(1, count), last.stripe_size),), composite=False)


def files_below(filesystem: Filesystem, path: str, left_out: Counter[Refusal],
                allowed: Allowed = lambda *_: None) -> Iterator[tuple[str, FileStatus]]:
    """The file at the path, or all files below a directory. Counts unreadable entries in ``left_out``. It does not
    enter directories that are not ``allowed``, and counts them too.
    """
    status = filesystem.status(path)
    if not status.is_directory:
        yield path, status
        return

    def leave(directory: str, why: Refusal) -> None:
        left_out[why.about(f"directory {quoted(directory)}") if why.reason == Reason.UNREADABLE else why] += 1

    for visit in walk(filesystem, (path,), leave=leave, allowed=lambda place: allowed(place, filesystem.status(place))):
        if visit.name:
            try:
                status = filesystem.status(visit.path)
            except OSError as error:
                left_out[of_error(error)] += 1
                continue
            if not status.is_directory:
                yield visit.path, status


_ORDER_COLUMNS = "direction, path, by, kind, reason, most_files, most_bytes, fid, fs, dry_run, since"


class TryAgainError(ValueError):
    """The order cannot be accepted at present. The submitter may try again later."""


class OrderInbox:
    """Accepts orders from any thread without waiting for a cycle. Refuses orders when full."""

    def __init__(self, db: SharedConnection, stamp: Callable[[], Stamp], most: int = MAX_STORED) -> None:
        """``db`` is the journal's; ``stamp`` returns the present file system, dry-run setting and time."""
        self._db = db
        self._stamp = stamp
        self._most = most
        self._lock = threading.Lock()
        self._waiting: deque[tuple[int, Order]] = deque()
        self._taken: list[int] = []

    def put(self, orders: Sequence[Order]) -> None:
        """Accept all orders, or none. Raises TryAgainError if the inbox is full or the journal cannot be written."""
        stamp = self._stamp()
        rows = [(o.direction, to_bytes(o.path), o.by, o.kind, o.reason, o.most_files, o.most_bytes,
                 None if o.fid is None else str(o.fid), stamp.fs, stamp.dry_run, stamp.since) for o in orders]
        with self._lock:
            if len(self._waiting) + len(orders) > self._most:
                raise TryAgainError(f"{len(self._waiting)} of at most {self._most} orders wait; try again later")
            try:
                with self._db.transaction(durable=False):  # a power cut may lose the last orders, but no act
                    numbers = [self._db.execute(f"INSERT INTO waiting_orders ({_ORDER_COLUMNS}) "  # noqa: S608
                                                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row).lastrowid
                               for row in rows]
            except sqlite3.Error as error:
                raise TryAgainError(f"the journal cannot be written ({error}); try again later") from error
            self._waiting.extend(zip(numbers, orders, strict=True))

    def take(self, most: int) -> list[Order]:
        """Take the oldest orders. The journal stores them until :meth:`done`."""
        with self._lock:
            taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
            self._taken += [number for number, _ in taken]
            return [each for _, each in taken]

    def done(self) -> None:
        """Delete the taken orders: their moves are queued."""
        with self._lock:
            with self._db.transaction(durable=False):
                self._db.executemany("DELETE FROM waiting_orders WHERE id = ?", [(number,) for number in self._taken])
            self._taken.clear()

    def reload(self, out_of_date: Callable[[Stamp], Refusal | None]) -> list[tuple[Order, Refusal]]:
        """Load the orders of an earlier run. Returns outdated orders with the reason."""
        dropped = []
        with self._lock:
            rows = self._db.execute(f"SELECT id, {_ORDER_COLUMNS} FROM waiting_orders ORDER BY id")  # noqa: S608
            for (number, direction, place, by, kind, reason, most_files, most_bytes, fid, fs, dry_run, since) in rows:
                order = Order(direction, to_path(place), by, OrderKind(kind), reason, most_files=most_files,
                              most_bytes=most_bytes, fid=None if fid is None else Fid.parse(fid))
                if why := out_of_date(Stamp(fs, bool(dry_run), since)):
                    dropped.append((order, why))
                    self._taken.append(number)
                else:
                    self._waiting.append((number, order))
        self.done()  # without the lock, which it takes itself
        return dropped

    def __len__(self) -> int:
        return len(self._waiting) + len(self._taken)  # the files of these are being looked up


MAX_WAITING_SECONDS = 7 * 86400.0
"""Age from which moves and orders of an earlier run are dropped."""


def requeue_refusal(move: StoredMove, fs: str, settings: Settings, stands: Callable[[FindingKey], bool],
                    now: float) -> Refusal | None:
    """Why a move of an earlier run is not queued again. ``stands``: whether more may move for a finding."""
    if why := out_of_date_refusal(move.stamp, fs, settings, now):
        return why
    kind, *_ = move.action.finding
    if kind in {OrderKind.DRAIN, OrderKind.STAGING}:
        return Refusal(Reason.OUT_OF_DATE, f"the {kind} looks for its files again")
    by_name = kind in ORDER_KINDS
    if not by_name and not stands(move.action.finding):
        return Refusal(Reason.REMEDIATION_OVER, "the case is closed, or too old to be judged; tierd detects "
                       "a finding that still holds again")
    if not move.pool:
        return Refusal(Reason.REMEDIATION_OVER, "moves to an MDT, and mirrors, are planned again if their finding "
                       "still holds")
    policy = settings.resolved_scopes.of(move.path).small_files_to_flash
    if move.pool not in ({policy.flash_pool, policy.hdd_pool} if by_name else {policy.flash_pool}):
        return Refusal(Reason.POOL_CHANGED, f"pool {move.pool!r} is no longer the configured one")
    return None


def planned_again(move: Action, status: FileStatus, present: Layout | None, filesystem: Filesystem,
                  settings: Settings) -> Action | Refusal:
    """A move by name of an earlier run, of which only the pool is known, as it would be planned now. Raises OSError."""
    pool, policy = move.layout.components[0].pool, settings.resolved_scopes.of(move.path).small_files_to_flash
    layout = layout_in(pool, len(filesystem.pools().get(pool, ())), present, status.size_bytes, policy)
    return layout if isinstance(layout, Refusal) else replace(move, layout=layout, size_bytes=status.size_bytes)


def out_of_date_refusal(stamp: Stamp, fs: str, settings: Settings, now: float) -> Refusal | None:
    """Refuses a move or an order of another file system or dry-run setting, and one that is too old."""
    if stamp.fs != fs:
        return Refusal(Reason.OUT_OF_DATE, f"queued for another file system: {quoted(stamp.fs)}")
    if stamp.dry_run != settings.act.dry_run:
        return Refusal(Reason.OUT_OF_DATE, "queued in a dry run" if stamp.dry_run else "tierd is in a dry run now")
    if now - stamp.since > MAX_WAITING_SECONDS:
        return Refusal(Reason.OUT_OF_DATE, f"queued more than {MAX_WAITING_SECONDS / 86400:.0f} days ago")
    return None
