"""The journal's file and its tables: one process locks it, its threads share a connection, and errors name the path."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

Value = str | int | float | bytes | None
"""A value that SQLite stores."""
Row = tuple[Any, ...]
"""A row of a query. SQLite does not declare the types of its columns; the code that unpacks the row knows them."""
_PROGRAM_ERRORS = (sqlite3.ProgrammingError, sqlite3.IntegrityError, sqlite3.DataError)
BEGIN_ANEW = "move it away with -wal and -shm: tierd then begins a new journal, and cannot undo the acts in this one"
_REMEDIES = {sqlite3.SQLITE_FULL: ": free 16 MiB", **dict.fromkeys(
    (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB), f": restore a copy, or {BEGIN_ANEW}")}
FULL = f"the journal: database or disk is full{_REMEDIES[sqlite3.SQLITE_FULL]}"


class JournalError(OSError):
    """The journal cannot be read or written, or the file is not a journal. tierd does nothing without a journal."""


@contextmanager
def journal_errors(path: str | Path) -> Iterator[None]:
    """Raise JournalError with the path for a full disk, and for a damaged or read-only file."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if isinstance(error, _PROGRAM_ERRORS):
            raise  # a bug of tierd
        remedy = _REMEDIES.get(getattr(error, "sqlite_errorcode", 0), "")
        raise JournalError(None, f"the journal: {error}{remedy}", str(path)) from error


class JournalLock:
    """Allows one process to write a journal, by a lock file next to it that the kernel releases when the process ends.
    Held from construction until :meth:`close`. Raises OSError EBUSY if another process holds it.
    """

    def __init__(self, journal: Path) -> None:
        journal.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        # O_CLOEXEC: a child that outlives tierd would keep the lock
        self._descriptor = os.open(f"{journal}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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
            raise JournalError(None, "the journal: another file has replaced it since it was opened", str(self._path))

    def _present(self) -> tuple[int, int]:
        try:
            found = self._path.stat()
        except OSError as error:
            raise JournalError(None, f"the journal: {error.strerror}, though it was there when it was opened",
                               str(self._path)) from error
        return found.st_dev, found.st_ino


class Rows(list[Row]):
    """The result of a statement: its rows, already fetched, and the number of the row it inserted; 0 without one."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        super().__init__(cursor.fetchall() if cursor.description else ())
        self.lastrowid = cursor.lastrowid or 0
        self.rowcount = cursor.rowcount

    def fetchone(self) -> Row | None:
        return self[0] if self else None

    def only(self) -> Row:
        """The row of a statement that always has one, such as ``SELECT count(*)``."""
        return self[0]


class SharedConnection:
    """A connection that several threads write through: one statement, or one transaction, at a time.

    A transaction belongs to the thread that holds :attr:`lock`; statements of other threads wait for its end. No thread
    may call the file system while it holds the lock. Rows are fetched at once: a statement that is still being read
    would block writers (SQLITE_BUSY_SNAPSHOT).
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self.raw = db
        self.lock = threading.RLock()

    def execute(self, statement: str, values: Sequence[Value] = ()) -> Rows:
        with self.lock:
            return Rows(self.raw.execute(statement, values))

    def executemany(self, statement: str, rows: Iterable[Sequence[Value]]) -> None:
        """Write all rows or none: in the transaction of this thread, else in one of their own."""
        with self.lock, nullcontext() if self.raw.in_transaction else self.transaction():
            self.raw.executemany(statement, rows)

    def execute_whole(self, statement: str) -> None:
        """Run statements outside of transactions, each to its end: some PRAGMA give no rows, and do one step a call."""
        with self.lock:
            self.raw.executescript(statement)

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[None]:
        """Write all statements of this thread atomically. Other threads wait. A power cut may undo what is not
        ``durable``, as a whole; a kill does not.
        """
        with self.lock:
            # with a write-ahead log, NORMAL leaves the sync to the next checkpoint
            if not durable:
                self.raw.execute("PRAGMA synchronous=NORMAL")
            try:
                self.raw.execute("BEGIN IMMEDIATE")
                with self.raw:  # commits, or rolls back unless SQLite itself has, as where the disk is full
                    yield
            finally:
                if not durable:
                    self.raw.execute("PRAGMA synchronous=FULL")

    def close(self) -> None:
        with self.lock:
            self.raw.close()


def pragma(db: sqlite3.Connection | SharedConnection, name: str) -> int:
    """A number that SQLite stores with the file."""
    ((number,),) = db.execute(f"PRAGMA {name}")
    return int(number)


OWNER_ONLY = 0o600
"""The journal names files of all users. SQLite creates its log next to it with the same mode."""
APPLICATION_ID = 0x74696572
"""Marks a journal in the file's header."""
VERSION = 2
"""Of the tables. A file with another one is left alone: its tables mean something else."""

TABLES = """
CREATE TABLE findings (
    id INTEGER PRIMARY KEY, time REAL NOT NULL, kind TEXT NOT NULL, aggressor TEXT NOT NULL, victim TEXT NOT NULL,
    sentence TEXT NOT NULL, evidence TEXT NOT NULL, targets TEXT NOT NULL, directories TEXT NOT NULL,
    subject TEXT NOT NULL, ended_at REAL);
CREATE TABLE actions (
    id INTEGER PRIMARY KEY, finding INTEGER REFERENCES findings(id), kind TEXT NOT NULL, place BLOB NOT NULL,
    layout_before TEXT, layout_after TEXT, size_bytes INTEGER NOT NULL, reason TEXT NOT NULL, dry_run INTEGER NOT NULL,
    intended_at REAL NOT NULL, ended_at REAL, outcome TEXT NOT NULL DEFAULT 'under way',
    detail TEXT NOT NULL DEFAULT '', fid TEXT, verdict TEXT NOT NULL DEFAULT '', undoes INTEGER REFERENCES actions(id));
CREATE TABLE positions (mdt TEXT PRIMARY KEY, record INTEGER NOT NULL);
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE told (finding INTEGER NOT NULL REFERENCES findings(id), time REAL NOT NULL,
    sentence TEXT NOT NULL);
CREATE TABLE judgements (
    finding INTEGER PRIMARY KEY REFERENCES findings(id), time REAL NOT NULL, kind TEXT NOT NULL, pool TEXT NOT NULL,
    size_bytes INTEGER NOT NULL, verdict TEXT NOT NULL, won_back REAL NOT NULL,
    usual REAL NOT NULL, contended REAL NOT NULL, after REAL NOT NULL, low REAL, high REAL);
CREATE TABLE samples (time REAL NOT NULL, series TEXT NOT NULL, value REAL NOT NULL);
CREATE INDEX samples_by_time ON samples(time);
CREATE INDEX findings_by_time ON findings(time);
CREATE INDEX actions_by_time ON actions(intended_at);
CREATE INDEX told_of ON told(finding);
CREATE INDEX actions_of ON actions(finding);
CREATE INDEX undone_places ON actions(place, ended_at) WHERE outcome = 'undone';
CREATE INDEX unfinished ON actions(id) WHERE outcome = 'under way';
CREATE INDEX undoing ON actions(id) WHERE outcome = 'undoing';
CREATE INDEX default_layouts ON actions(id)
    WHERE kind = 'set-default-layout' AND outcome = 'done';
CREATE INDEX default_stripings ON actions(intended_at) WHERE kind = 'set-default-striping';
CREATE INDEX actions_by_end ON actions(ifnull(ended_at, 1e18));
CREATE INDEX actions_of_file ON actions(fid);
CREATE TABLE waiting_moves (
    id INTEGER PRIMARY KEY, place BLOB NOT NULL UNIQUE, finding INTEGER NOT NULL REFERENCES findings(id),
    key TEXT NOT NULL, pool TEXT NOT NULL, size_bytes INTEGER NOT NULL, fid TEXT, reason TEXT NOT NULL,
    fs TEXT NOT NULL, dry_run INTEGER NOT NULL, since REAL NOT NULL);
CREATE TABLE waiting_orders (
    id INTEGER PRIMARY KEY, direction TEXT NOT NULL, path BLOB NOT NULL, by TEXT NOT NULL, kind TEXT NOT NULL,
    reason TEXT NOT NULL, most_files INTEGER NOT NULL, most_bytes INTEGER NOT NULL, fid TEXT, fs TEXT NOT NULL,
    dry_run INTEGER NOT NULL, since REAL NOT NULL);
CREATE TABLE stagings (
    id INTEGER PRIMARY KEY, job TEXT NOT NULL, uid INTEGER NOT NULL, gid INTEGER NOT NULL, direction TEXT NOT NULL,
    path BLOB NOT NULL, deadline_at REAL NOT NULL, max_files INTEGER NOT NULL, max_bytes INTEGER NOT NULL,
    created_at REAL NOT NULL, user TEXT NOT NULL, state TEXT NOT NULL, finding INTEGER NOT NULL, files INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL, in_place INTEGER NOT NULL, dropped INTEGER NOT NULL, left_out TEXT NOT NULL,
    ended_at REAL NOT NULL);
CREATE INDEX stagings_of_job ON stagings(job);
CREATE TABLE scheduler_jobs (
    job TEXT PRIMARY KEY, number INTEGER NOT NULL, name TEXT NOT NULL, user TEXT NOT NULL, account TEXT NOT NULL,
    partition TEXT NOT NULL, directory BLOB NOT NULL, time REAL NOT NULL);
CREATE INDEX scheduler_jobs_by_number ON scheduler_jobs(number);
CREATE INDEX scheduler_jobs_by_name ON scheduler_jobs(name, user);
CREATE INDEX findings_by_aggressor ON findings(aggressor);
CREATE INDEX findings_by_victim ON findings(victim);
CREATE INDEX judgements_by_time ON judgements(time);
CREATE INDEX judgements_by_class ON judgements(kind, pool, size_bytes, time);
CREATE INDEX waiting_moves_of ON waiting_moves(finding);
CREATE INDEX waiting_moves_by_key ON waiting_moves(key);
CREATE TABLE act_directories (place BLOB PRIMARY KEY) WITHOUT ROWID;
"""
"""``actions.verdict`` is that on one act, where each is judged by itself, or the earlier one that kept it, where one
against later acts followed; ``actions.undoes`` is the act that a move undoes."""
RATES = """
CREATE TABLE IF NOT EXISTS rates (step INTEGER NOT NULL, kind TEXT NOT NULL, time INTEGER NOT NULL,
    names BLOB NOT NULL, numbers BLOB NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS rates_by_step ON rates(step, kind, time);
CREATE INDEX IF NOT EXISTS rates_by_time ON rates(time, step);
CREATE INDEX IF NOT EXISTS stagings_by_end ON stagings(ended_at);
CREATE INDEX IF NOT EXISTS scheduler_jobs_by_time ON scheduler_jobs(time);
"""
"""Throughput over time (:mod:`tierd.act.journal.rates`), and indexes. A journal of format 2 may lack them."""


def open_journal(path: Path) -> tuple[SharedConnection, bool]:
    """Open the file for the threads of the one process that writes it; the second value is whether it is new. Each
    statement is on the disk before it returns. Raises JournalError if the file is not a journal, or has another format.
    """
    with suppress(OSError):  # the file exists, or cannot be made, which SQLite reports better
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWNER_ONLY))
    with journal_errors(path):
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            new = not _has_tables(db, path)
            if new:
                _create(db)
            elif "ended_at" not in {row[1] for row in db.execute("PRAGMA table_info(findings)")}:
                db.execute("ALTER TABLE findings ADD COLUMN ended_at REAL")  # a journal of release 0.2
            db.executescript(RATES)
            db.execute("PRAGMA synchronous=FULL")
            return SharedConnection(db), new
        except BaseException:
            db.close()
            raise


def _has_tables(db: sqlite3.Connection, path: Path) -> bool:
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    application, version = pragma(db, "application_id"), pragma(db, "user_version")
    if application != APPLICATION_ID and (application or tables):
        raise JournalError(None, "this is a database of another program, not a journal: choose another act.journal",
                           str(path))
    if tables and version != VERSION:
        raise JournalError(None, f"another release of tierd wrote this journal (format {version}; this release reads "
                           f"format {VERSION}): install that release, or {BEGIN_ANEW}", str(path))
    return bool(tables)


def _create(db: sqlite3.Connection) -> None:
    """Make a new file a journal, with all tables or none, so that a kill leaves a file that is known."""
    # first: a kill before the tables leaves a file that is known
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute("PRAGMA journal_mode=WAL")
    db.executescript(f"BEGIN IMMEDIATE;{TABLES}PRAGMA user_version = {VERSION};COMMIT;")


def end_triggers(db: SharedConnection) -> None:
    """Remove triggers: the journal of a standby, or of a tierd without a cluster."""
    triggers = db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'copy\\_%' ESCAPE '\\'")
    for (name,) in triggers:
        db.execute(f"DROP TRIGGER IF EXISTS {name}")
