"""Orders that wait for the next cycle, in the journal's file too: neither a restart nor a kill loses them."""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from lustre.fid import Fid
from tierd.act.journal.entry import to_bytes, to_path
from tierd.act.journal.queue_store import MAX_STORED, Stamp
from tierd.act.orders import Intent, Order

PATIENCE_SECONDS = 3.0
"""So long whoever hands over waits for the journal to be written by others."""
_COLUMNS = "direction, path, by, kind, reason, most_files, most_bytes, fid, fs, dry_run, since"
Waiting = tuple[Order, Intent | None]
"""An order, and what it comes to where somebody has looked."""


class NotNowError(ValueError):
    """What was asked for cannot be taken in at present; the same may be asked for later."""


class Inbox:
    """Filled by any thread without waiting for a cycle. A full one refuses: whoever hands over tries again later."""

    def __init__(self, path: Path, stamp: Callable[[], Stamp], most: int = MAX_STORED) -> None:
        """``path`` is the journal's; ``stamp`` tells the circumstances of the moment."""
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=PATIENCE_SECONDS)
        self._db.execute("PRAGMA synchronous=NORMAL")  # a power cut may lose the last ones: a wish, not an act
        self._stamp = stamp
        self._most = most
        self._lock = threading.Lock()
        self._waiting: deque[tuple[int, Waiting]] = deque()
        self._taken: list[int] = []

    def put(self, orders: Sequence[Waiting]) -> None:
        """Take all in. Raises NotNowError, having taken in none, where there is no room or the journal takes none."""
        stamp = self._stamp()
        rows = [(o.direction, to_bytes(o.path), o.by, o.kind, o.reason, o.most_files, o.most_bytes,
                 None if o.fid is None else str(o.fid), stamp.fs, stamp.dry_run, stamp.since) for o, _ in orders]
        with self._lock:
            if len(self._waiting) + len(orders) > self._most:
                raise NotNowError(f"{len(self._waiting)} orders wait, of {self._most} at the most; try again later")
            try:
                numbers = self._kept(rows)
            except sqlite3.Error as error:
                raise NotNowError(f"the journal does not take it ({error}); try again later") from error
            self._waiting.extend(zip(numbers, orders, strict=True))

    def _kept(self, rows: Sequence[tuple[object, ...]]) -> list[int]:
        """All of them or none, in one go; their numbers."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            numbers = []
            for row in rows:
                cursor = self._db.execute(f"INSERT INTO waiting_orders ({_COLUMNS}) VALUES "  # noqa: S608
                                          "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
                assert cursor.lastrowid is not None
                numbers.append(cursor.lastrowid)
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        return numbers

    def take(self, most: int) -> list[Waiting]:
        """The oldest; they are kept until :meth:`done`."""
        with self._lock:
            taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
            self._taken += [number for number, _ in taken]
            return [each for _, each in taken]

    def done(self) -> None:
        """What was taken has become moves that wait, or nothing."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("DELETE FROM waiting_orders WHERE id = ?", [(number,) for number in self._taken])
            self._db.execute("COMMIT")
            self._taken.clear()

    def reload(self, out_of_date: Callable[[Stamp], str]) -> list[tuple[Order, str]]:
        """At the start: orders that waited when tierd ended wait again; those that do not, and why."""
        dropped = []
        with self._lock:
            rows = self._db.execute(f"SELECT id, {_COLUMNS} FROM waiting_orders ORDER BY id").fetchall()  # noqa: S608
            for (number, direction, place, by, kind, reason, most_files, most_bytes, fid, fs, dry_run, since) in rows:
                order = Order(direction, to_path(place), by, kind, reason, most_files, most_bytes,
                              None if fid is None else Fid.parse(fid))
                if why := out_of_date(Stamp(fs, bool(dry_run), since)):
                    dropped.append((order, why))
                    self._taken.append(number)
                else:
                    self._waiting.append((number, (order, None)))
        self.done()
        return dropped

    def __len__(self) -> int:
        return len(self._waiting)

    def close(self) -> None:
        """Nobody hands over any more."""
        with self._lock:
            self._db.close()
