"""The connection to the journal's file that all threads of the daemon write through."""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any


class Rows:
    """What a statement came to: its rows, fetched, and the number of the row it entered."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._rows = deque(cursor.fetchall())
        self.lastrowid = cursor.lastrowid

    def fetchone(self) -> Any:
        """The next row; None after the last."""
        return self._rows.popleft() if self._rows else None

    def fetchall(self) -> list[Any]:
        """The rows that are left."""
        return list(self)

    def __iter__(self) -> Iterator[Any]:
        while self._rows:
            yield self._rows.popleft()


class SharedConnection:
    """A connection that several threads write through: one statement, or one transaction, at a time.

    A transaction belongs to the thread that holds :attr:`lock`; statements of other threads wait for its end. Nobody
    may hold it while asking the file system for something. Rows are fetched at once: a statement that is still being
    read would keep others from writing (SQLITE_BUSY_SNAPSHOT).
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.lock = threading.RLock()

    @property
    def in_transaction(self) -> bool:
        """Whether one was begun and has not ended."""
        return self._db.in_transaction

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        """One statement."""
        with self.lock:
            return Rows(self._db.execute(statement, values))

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """One statement for each row of values."""
        with self.lock:
            self._db.executemany(statement, rows)

    def close(self) -> None:
        """No statement after this."""
        with self.lock:
            self._db.close()
