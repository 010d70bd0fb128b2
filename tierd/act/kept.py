"""Moves that wait, in the journal's file: neither a restart nor a kill loses them without a word.

What is kept is the wish, not the layout: whoever takes it up looks at the file and at the settings of that day
(:mod:`tierd.act.left_over`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from lustre.fid import Fid
from tierd.act.journal_connection import SharedConnection
from tierd.model import Action
from tierd.text import printable

MOST_KEPT = 100_000
"""Moves and orders each: what waits beyond it would be lost with a restart, and ``tierctl status`` says so."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS waiting_moves (
    id INTEGER PRIMARY KEY, place BLOB NOT NULL UNIQUE, finding INTEGER NOT NULL REFERENCES findings(id),
    key TEXT NOT NULL, pool TEXT NOT NULL, size_bytes INTEGER NOT NULL, fid TEXT, reason TEXT NOT NULL,
    fs TEXT NOT NULL, dry_run INTEGER NOT NULL, since REAL NOT NULL);
CREATE TABLE IF NOT EXISTS waiting_orders (
    id INTEGER PRIMARY KEY, direction TEXT NOT NULL, path BLOB NOT NULL, by TEXT NOT NULL, kind TEXT NOT NULL,
    reason TEXT NOT NULL, most_files INTEGER NOT NULL, most_bytes INTEGER NOT NULL, fid TEXT, fs TEXT NOT NULL,
    dry_run INTEGER NOT NULL, since REAL NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Under which circumstances something was kept."""

    fs: str
    """Name of the file system."""
    dry_run: bool
    since: float
    """Epoch seconds."""


@dataclass(frozen=True, slots=True)
class KeptMove:
    """A move that waited."""

    path: str
    finding: int
    key: tuple[str, str, str]
    pool: str
    """Where its first bytes were to go."""
    size_bytes: int
    fid: Fid | None
    reason: str
    stamp: Stamp


class KeptMoves:
    """The moves of the queue, by the thread that writes the journal."""

    def __init__(self, db: SharedConnection, most: int = MOST_KEPT) -> None:
        self._db = db
        self._most = most

    def add(self, actions: Iterable[Action], finding: int, stamp: Stamp) -> None:
        """Keep these, as far as there is room."""
        rows = [(to_bytes(a.path), finding, json.dumps(a.finding), a.layout.components[0].pool, a.size_bytes,
                 None if a.fid is None else str(a.fid), printable(a.reason), stamp.fs, stamp.dry_run, stamp.since)
                for a in actions][: max(0, self._most - len(self))]
        self._db.executemany(
            "INSERT OR REPLACE INTO waiting_moves (place, finding, key, pool, size_bytes, fid, reason, fs, dry_run, "
            "since) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def remove(self, paths: Iterable[str]) -> None:
        """Their turn has come, or never will."""
        self._db.executemany("DELETE FROM waiting_moves WHERE place = ?", [(to_bytes(path),) for path in paths])

    def drop(self, key: tuple[str, str, str]) -> None:
        """Forget those of one finding."""
        self._db.execute("DELETE FROM waiting_moves WHERE key = ?", (json.dumps(key),))

    def all(self) -> list[KeptMove]:
        """In the order in which they came."""
        rows = self._db.execute("SELECT place, finding, key, pool, size_bytes, fid, reason, fs, dry_run, since "
                                "FROM waiting_moves ORDER BY id").fetchall()
        return [KeptMove(to_path(place), finding, _key(key), pool, size_bytes, None if fid is None else Fid.parse(fid),
                         reason, Stamp(fs, bool(dry_run), since))
                for place, finding, key, pool, size_bytes, fid, reason, fs, dry_run, since in rows]

    def __len__(self) -> int:
        (count,) = self._db.execute("SELECT count(*) FROM waiting_moves").fetchone()
        return int(count)


def to_bytes(path: str) -> bytes:
    """A path for the journal: names may hold any byte but NUL and the slash."""
    return path.encode("utf-8", "surrogateescape")


def to_path(place: bytes) -> str:
    """A path from the journal."""
    return place.decode("utf-8", "surrogateescape")


def _key(text: str) -> tuple[str, str, str]:
    kind, aggressor, about = json.loads(text)
    return kind, aggressor, about
