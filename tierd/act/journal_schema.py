"""The tables of the journal, and opening its file: made where it is new, brought up to date where it is old."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from tierd.act import journal_form, kept
from tierd.act.journal_connection import SharedConnection

OWNER_ONLY = 0o600
"""Names of everybody's files stand in it. SQLite makes its log beside it with the same mode."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS findings (
    id INTEGER PRIMARY KEY, time REAL NOT NULL, kind TEXT NOT NULL, aggressor TEXT NOT NULL, victim TEXT NOT NULL,
    sentence TEXT NOT NULL, evidence TEXT NOT NULL, targets TEXT NOT NULL, directories TEXT NOT NULL,
    subject TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS actions (
    id INTEGER PRIMARY KEY, finding INTEGER REFERENCES findings(id), kind TEXT NOT NULL, place BLOB NOT NULL,
    layout_before TEXT, layout_after TEXT, size_bytes INTEGER NOT NULL, reason TEXT NOT NULL, dry_run INTEGER NOT NULL,
    intended_at REAL NOT NULL, ended_at REAL, outcome TEXT, detail TEXT, fid TEXT);
CREATE TABLE IF NOT EXISTS positions (mdt TEXT PRIMARY KEY, record INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS told (finding INTEGER NOT NULL REFERENCES findings(id), time REAL NOT NULL,
    sentence TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS judgements (
    finding INTEGER PRIMARY KEY REFERENCES findings(id), time REAL NOT NULL, kind TEXT NOT NULL, pool TEXT NOT NULL,
    size_bytes INTEGER NOT NULL, verdict TEXT NOT NULL, won_back REAL NOT NULL,
    usual REAL NOT NULL, contended REAL NOT NULL, after REAL NOT NULL);
CREATE TABLE IF NOT EXISTS samples (time REAL NOT NULL, series TEXT NOT NULL, value REAL NOT NULL);
CREATE INDEX IF NOT EXISTS samples_by_time ON samples(time);
CREATE INDEX IF NOT EXISTS findings_by_time ON findings(time);
CREATE INDEX IF NOT EXISTS actions_by_time ON actions(intended_at);
CREATE INDEX IF NOT EXISTS told_of ON told(finding);
CREATE INDEX IF NOT EXISTS actions_of ON actions(finding);
CREATE INDEX IF NOT EXISTS undone_places ON actions(place, ended_at) WHERE outcome = 'undone';
CREATE INDEX IF NOT EXISTS unfinished ON actions(id) WHERE outcome IS NULL;
CREATE INDEX IF NOT EXISTS actions_by_end ON actions(ifnull(ended_at, 1e18));
"""


def opened(path: Path) -> tuple[SharedConnection, bool]:
    """The file, for the threads of the one process that writes it, and whether it is new.

    What is entered is on the disk before the call returns. Raises JournalError for a file that is no journal of ours.
    """
    with suppress(OSError):  # it is there, or cannot be made, which SQLite says better
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWNER_ONLY))
    with journal_form.explained(path):
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            new = _brought_up_to_date(db, path)
            return SharedConnection(db), new
        except BaseException:
            db.close()
            raise


def _brought_up_to_date(db: sqlite3.Connection, path: Path) -> bool:
    new = not journal_form.begun(db, path)
    journal_form.claim(db)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.executescript(_SCHEMA + kept.SCHEMA)
    if "fid" not in {row[1] for row in db.execute("PRAGMA table_info(actions)")}:
        db.execute("ALTER TABLE actions ADD COLUMN fid TEXT")
    db.execute("CREATE INDEX IF NOT EXISTS actions_of_file ON actions(fid)")
    if "subject" not in {row[1] for row in db.execute("PRAGMA table_info(findings)")}:
        db.execute("ALTER TABLE findings ADD COLUMN subject TEXT NOT NULL DEFAULT ''")
    journal_form.finish(db)
    return new
