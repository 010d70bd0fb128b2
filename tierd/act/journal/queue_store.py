"""Queued moves, stored in the journal's file, so that neither a restart nor a kill loses them.

A row holds the requested move without the layout: after a restart the layout follows from the present file and settings
(:mod:`tierd.act.recovery`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from lustre.fid import Fid
from tierd.act.journal.connection import SharedConnection
from tierd.act.journal.entry import to_bytes, to_path
from tierd.model import Action
from tierd.text import printable

MAX_STORED = 100_000
"""Moves, and orders, that are stored: a restart loses those beyond it, and ``tierctl status`` shows their number."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """The circumstances under which a move or an order was stored."""

    fs: str
    """Name of the file system."""
    dry_run: bool
    since: float
    """Epoch seconds."""


@dataclass(frozen=True, slots=True)
class StoredMove:
    """A move that waited when it was stored."""

    path: str
    finding: int
    key: tuple[str, str, str]
    pool: str
    """Destination of the file's first bytes."""
    size_bytes: int
    fid: Fid | None
    reason: str
    stamp: Stamp


class QueueStore:
    """Stores the moves of the queue through the connection of the thread that writes the journal."""

    def __init__(self, db: SharedConnection, maximum: int = MAX_STORED) -> None:
        self._db = db
        self._maximum = maximum
        self._stored = self._count()

    def add(self, actions: Iterable[Action], finding: int, stamp: Stamp) -> None:
        """Store these moves, as far as there is room."""
        rows = [(to_bytes(a.path), finding, json.dumps(a.finding), a.layout.components[0].pool, a.size_bytes,
                 None if a.fid is None else str(a.fid), printable(a.reason), stamp.fs, stamp.dry_run, stamp.since)
                for a in actions][: max(0, self._maximum - len(self))]
        self._db.executemany(
            "INSERT OR REPLACE INTO waiting_moves (place, finding, key, pool, size_bytes, fid, reason, fs, dry_run, "
            "since) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        self._count()

    def remove(self, paths: Iterable[str]) -> None:
        """Delete the moves of these files: they begin, or were dropped."""
        self._db.executemany("DELETE FROM waiting_moves WHERE place = ?", [(to_bytes(path),) for path in paths])
        self._count()

    def drop(self, key: tuple[str, str, str]) -> None:
        self._db.execute("DELETE FROM waiting_moves WHERE key = ?", (json.dumps(key),))
        self._count()

    def all(self) -> list[StoredMove]:
        """All moves, in the order in which they were added."""
        rows = self._db.execute("SELECT place, finding, key, pool, size_bytes, fid, reason, fs, dry_run, since "
                                "FROM waiting_moves ORDER BY id").fetchall()
        return [StoredMove(to_path(place), finding, _key(key), pool, size_bytes,
                           fid=None if fid is None else Fid.parse(fid), reason=reason,
                           stamp=Stamp(fs, bool(dry_run), since))
                for place, finding, key, pool, size_bytes, fid, reason, fs, dry_run, since in rows]

    def __len__(self) -> int:
        """Number of stored moves. It waits for no transaction of another thread."""
        return self._stored

    def _count(self) -> int:
        with self._db.lock:
            (count,) = self._db.execute("SELECT count(*) FROM waiting_moves").only()
            self._stored = int(count)
        return self._stored


def _key(text: str) -> tuple[str, str, str]:
    kind, aggressor, about = json.loads(text)
    return kind, aggressor, about
