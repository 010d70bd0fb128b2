"""The journal's file: one process locks it, all its threads share a connection, and errors name the path."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Value = str | int | float | bytes | None
"""A value that SQLite stores."""
Row = tuple[Any, ...]
"""A row of a query. SQLite does not declare the types of its columns; the code that unpacks the row knows them."""
_PROGRAM_ERRORS = (sqlite3.ProgrammingError, sqlite3.IntegrityError, sqlite3.DataError)


class JournalError(OSError):
    """The journal cannot be read or written, or the file is no journal. tierd does nothing without a journal."""


@contextmanager
def journal_errors(path: str | Path) -> Iterator[None]:
    """Raise JournalError with the path for a full disk, and for a damaged or read-only file."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if isinstance(error, _PROGRAM_ERRORS):
            raise
        raise JournalError(None, f"the journal: {error}", str(path)) from error


class JournalLock:
    """Allows one process to write a journal, by a lock file beside it that the kernel releases when the process ends.

    Held from construction until :meth:`close`. Raises OSError EBUSY if another process holds it.
    """

    def __init__(self, journal: Path) -> None:
        path = Path(f"{journal}.lock")
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise OSError(errno.EBUSY, "another tierd writes this journal; give this one an act.journal of its own, or "
                          "stop the other", str(journal)) from error

    def close(self) -> None:
        os.close(self._descriptor)


class JournalFile:
    """Checks that the open journal is still the file of its name.

    A file that was removed or replaced can be written for as long as it is open. Nobody else can read it, and it is
    lost, with every earlier layout in it, when the process ends.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened = self._present()

    def check(self) -> None:
        """Raises JournalError if the name belongs to another file now, or to none."""
        if self._present() != self._opened:
            raise JournalError(None, "the journal: another file has its name since it was opened", str(self._path))

    def _present(self) -> tuple[int, int]:
        try:
            found = self._path.stat()
        except OSError as error:
            raise JournalError(None, f"the journal: {error.strerror}, though it was there when it was opened",
                               str(self._path)) from error
        return found.st_dev, found.st_ino


class Rows:
    """The result of a statement: its rows, already fetched, and the number of the row it inserted."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._rows: deque[Row] = deque(cursor.fetchall() if cursor.description else ())
        self.lastrowid = cursor.lastrowid
        self.rowcount = cursor.rowcount

    def fetchone(self) -> Row | None:
        return self._rows.popleft() if self._rows else None

    def only(self) -> Row:
        """The row of a statement that always has one, such as ``SELECT count(*)``."""
        return self._rows[0]

    def fetchall(self) -> list[Row]:
        return list(self)

    def __iter__(self) -> Iterator[Row]:
        while self._rows:
            yield self._rows.popleft()


class SharedConnection:
    """A connection that several threads write through: one statement, or one transaction, at a time.

    A transaction belongs to the thread that holds :attr:`lock`; statements of other threads wait for its end. No thread
    may call the file system while it holds the lock. Rows are fetched at once: a statement that is still being read
    would block writers (SQLITE_BUSY_SNAPSHOT).
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self.raw = db
        self.lock = threading.RLock()

    @property
    def in_transaction(self) -> bool:
        return self.raw.in_transaction

    def execute(self, statement: str, values: Sequence[Value] = ()) -> Rows:
        with self.lock:
            return Rows(self.raw.execute(statement, values))

    def executemany(self, statement: str, rows: Iterable[Sequence[Value]]) -> None:
        with self.lock:
            self.raw.executemany(statement, rows)

    def execute_whole(self, statement: str) -> None:
        """Run a PRAGMA that has to be stepped to its end though it gives no rows, outside of transactions."""
        with self.lock:
            self.raw.executescript(statement)

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[None]:
        """Write all statements of this thread atomically. Other threads wait.

        A power cut may take back what is not ``durable``, as a whole; a kill does not.
        """
        with self.lock:
            if not durable:
                self.raw.execute("PRAGMA synchronous=NORMAL")
            try:
                yield from self._begun()
            finally:
                if not durable:
                    self.raw.execute("PRAGMA synchronous=FULL")

    def _begun(self) -> Iterator[None]:
        self.raw.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.raw.execute("COMMIT")
        except BaseException:
            if self.raw.in_transaction:  # SQLite itself has rolled back where the disk is full
                self.raw.execute("ROLLBACK")
            raise

    def close(self) -> None:
        with self.lock:
            self.raw.close()


def pragma(db: sqlite3.Connection | SharedConnection, name: str) -> int:
    """A number that SQLite stores with the file."""
    row = db.execute(f"PRAGMA {name}").fetchone()
    assert row is not None
    return int(row[0])
