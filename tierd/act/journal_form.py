"""Whether a file is a journal of ours, of a form that this release knows; and what SQLite says of it, for people."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

APPLICATION = 0x74696572
"""Says in the file's header that it is one of ours; journals of the first releases have 0."""
FORM = 1
"""Of the tables: a later one may mean other things by them, and is not touched."""
_TABLES = {"actions", "findings"}
_MISTAKES = (sqlite3.ProgrammingError, sqlite3.IntegrityError, sqlite3.DataError)


class Executes(Protocol):
    """A connection, shared or not."""

    def execute(self, statement: str, /) -> Any:
        """One statement."""


class JournalError(OSError):
    """The journal cannot be read or written, or is none of ours. Nothing is done without one."""


@contextmanager
def explained(path: str | Path) -> Iterator[None]:
    """A disk that is full, a file that is damaged or read-only, as an error with its path. Raises JournalError."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if isinstance(error, _MISTAKES):  # of the program
            raise
        raise JournalError(None, f"the journal: {error}", str(path)) from error


def begun(db: sqlite3.Connection, path: Path) -> bool:
    """Whether anything is in it yet. Raises JournalError for what another program, or a later release, wrote."""
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    application, form = number(db, "application_id"), number(db, "user_version")
    if application != APPLICATION and (application or (tables and not tables >= _TABLES)):
        raise JournalError(None, "a database of another program, and no journal: choose another act.journal", str(path))
    if form > FORM:
        raise JournalError(None, f"a later release of tierd wrote this journal (form {form}; this one knows {FORM}): "
                           "install that release, or choose another act.journal", str(path))
    return bool(tables)


def claim(db: sqlite3.Connection) -> None:
    """Say whose file it is, before any table is made: a process killed in between leaves one that is known again."""
    if number(db, "application_id") != APPLICATION:
        db.execute(f"PRAGMA application_id = {APPLICATION}")


def finish(db: sqlite3.Connection) -> None:
    """Say which form the tables have, now that they have it."""
    if number(db, "user_version") < FORM:
        db.execute(f"PRAGMA user_version = {FORM}")


def number(db: Executes, pragma: str) -> int:
    """A number SQLite keeps with the file."""
    (value,) = db.execute(f"PRAGMA {pragma}").fetchone()
    return int(value)
