"""What tierd did and meant to do: an intent before each act, its outcome after, in SQLite. Nothing is forgotten.

The layout that was there before stands beside the one that was set: undoing needs nothing but the journal.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lustre.fid import Fid
from lustre.layout import Layout
from lustre.layout_yaml import from_yaml, to_yaml
from tierd.act import journal_form, kept
from tierd.act.kept import to_bytes, to_path
from tierd.model import Action, Finding

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

UNDOING = "undoing"
"""Outcome of an act while it is being taken back."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One act, from the journal."""

    id: int
    kind: str
    place: str
    layout_before: Layout | None
    layout_after: Layout | None
    size_bytes: int
    outcome: str
    """Empty while it is under way, or when tierd died in the middle of it."""
    detail: str
    reason: str
    intended_at: float
    dry_run: bool = False
    fid: Fid | None = None
    """Of the file that was moved, or the directory: another one of that name is not touched. None in old journals."""


class Journal:
    """One file, used by one thread at a time.

    Safe to be killed at any instruction: SQLite's write-ahead log. An intent is on the disk before the act begins; an
    outcome may be lost with the power, and is then found again by a look (:mod:`tierd.act.recovery`).
    """

    def __init__(self, path: Path) -> None:
        """Raises JournalError for a file that is no journal of ours, or one of a later release."""
        with journal_form.explained(path):
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            try:
                self._opened(path)
            except BaseException:
                self._db.close()
                raise

    def _opened(self, path: Path) -> None:
        self.new = not journal_form.begun(self._db, path)
        journal_form.claim(self._db)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.executescript(_SCHEMA + kept.SCHEMA)
        self.waiting = kept.KeptMoves(self._db)
        """Moves whose turn has not come."""
        if "fid" not in {row[1] for row in self._db.execute("PRAGMA table_info(actions)")}:
            self._db.execute("ALTER TABLE actions ADD COLUMN fid TEXT")
        self._db.execute("CREATE INDEX IF NOT EXISTS actions_of_file ON actions(fid)")
        if "subject" not in {row[1] for row in self._db.execute("PRAGMA table_info(findings)")}:
            self._db.execute("ALTER TABLE findings ADD COLUMN subject TEXT NOT NULL DEFAULT ''")
        journal_form.finish(self._db)

    def close(self) -> None:
        """Write what is in the log into the file."""
        self._db.close()

    def found(self, finding: Finding) -> int:
        """Enter a finding; its number is what actions refer to."""
        cursor = self._db.execute(
            "INSERT INTO findings (time, kind, aggressor, victim, sentence, evidence, targets, directories, subject) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (finding.time, finding.kind, finding.aggressor, finding.victim, finding.sentence,
             json.dumps(dict(finding.evidence)), json.dumps(finding.targets), json.dumps(finding.directories),
             finding.subject))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def located(self, number: int, finding: Finding) -> None:
        """Enter where it was found to come from, which may be known later than the finding."""
        self._db.execute("UPDATE findings SET directories = ?, targets = ? WHERE id = ?",
                         (json.dumps(finding.directories), json.dumps(finding.targets), number))

    def intend(self, action: Action, finding: int, before: Layout | None, now: float, dry_run: bool,
               fid: Fid | None = None) -> int:
        """Enter what is about to be done, and what was there before."""
        cursor = self._db.execute(
            "INSERT INTO actions (finding, kind, place, layout_before, layout_after, size_bytes, reason, dry_run, "
            "intended_at, fid) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (finding, action.kind, to_bytes(action.path or action.directory), _text(before), _text(action.layout),
             action.size_bytes, action.reason, dry_run, now, None if fid is None else str(fid)))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def ended(self, entry: int, outcome: str, detail: str, now: float) -> None:
        """Enter how it went: ``done``, ``refused``, ``failed``, ``dry-run``, ``undone``, ``interrupted``, …"""
        self._db.execute("PRAGMA synchronous=NORMAL")
        try:
            self._db.execute("UPDATE actions SET outcome = ?, detail = ?, ended_at = ? WHERE id = ?",
                             (outcome, detail, now, entry))
        finally:
            self._db.execute("PRAGMA synchronous=FULL")

    def undoing(self, entry: int, now: float) -> None:
        """Enter that an act is about to be taken back; on the disk before it is."""
        self._db.execute("UPDATE actions SET outcome = ?, detail = '', ended_at = ? WHERE id = ?",
                         (UNDOING, now, entry))

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is entered meanwhile reaches the disk in one go, or not at all."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # where the disk is full, SQLite has taken it back itself
                self._db.execute("ROLLBACK")
            raise

    def positions(self) -> dict[str, int]:
        """MDT to the last changelog record that was dealt with."""
        return dict(self._db.execute("SELECT mdt, record FROM positions").fetchall())

    def keep_positions(self, positions: Mapping[str, int]) -> None:
        """Remember how far the changelogs were dealt with."""
        self._db.executemany("INSERT INTO positions VALUES (?, ?) ON CONFLICT (mdt) DO UPDATE "
                             "SET record = excluded.record", positions.items())

    def state(self) -> dict[str, str]:
        """What holds over a restart: whether things are paused."""
        return dict(self._db.execute("SELECT name, value FROM state").fetchall())

    def keep_state(self, values: Mapping[str, str]) -> None:
        """Remember it. Nothing is written where nothing has changed."""
        known = self.state()
        self._db.executemany("INSERT INTO state VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                             [item for item in values.items() if known.get(item[0], "") != item[1]])

    def tell(self, finding: int, sentences: Iterable[str], now: float) -> None:
        """Enter what was said of a finding, for whoever asks later."""
        self._db.executemany("INSERT INTO told VALUES (?, ?, ?)", [(finding, now, s) for s in sentences])

    def directories(self) -> frozenset[str]:
        """Directories whose default layout was set, or files of which were moved: where files on flash may lie."""
        rows = self._db.execute("SELECT DISTINCT kind, place FROM actions WHERE outcome = 'done'").fetchall()
        places = [(kind, to_path(place)) for kind, place in rows]
        return frozenset(place if kind == "set-default-layout" else place.rpartition("/")[0] or "/"
                         for kind, place in places)

    def tried(self, finding: int) -> frozenset[str]:
        """Files a move was tried of because of a finding."""
        rows = self._db.execute("SELECT place FROM actions WHERE finding = ? AND kind = 'migrate'", (finding,))
        return frozenset(to_path(place) for (place,) in rows.fetchall())

    def moved(self, fid: Fid, since: float) -> bool:
        """Whether a file was being moved, or moved back, at some time since then, by us."""
        return self._db.execute("SELECT 1 FROM actions WHERE fid = ? AND NOT dry_run AND kind = 'migrate' AND "
                                "ifnull(ended_at, 1e18) >= ? LIMIT 1", (str(fid), since)).fetchone() is not None

    def moved_since(self, since: float) -> tuple[int, int]:
        """Files we were moving, or moving back, at some time since then, and their bytes; twice for both."""
        files, size_bytes = self._db.execute(
            "SELECT ifnull(sum(times), 0), ifnull(sum(times * size_bytes), 0) FROM (SELECT size_bytes, "
            "CASE WHEN outcome IN ('undone', 'undoing') THEN 2 ELSE 1 END AS times FROM actions "
            "WHERE kind = 'migrate' AND NOT dry_run AND ifnull(outcome, '') NOT IN ('refused', 'already', 'gone') AND "
            "ifnull(ended_at, 1e18) >= ?)", (since,)).fetchone()
        return files, size_bytes

    def judged(self, finding: int, kind: str, pool: str, size_bytes: int, verdict: str, won_back: float,
               now: float, usual: float = 0.0, contended: float = 0.0, after: float = 0.0) -> None:
        """Enter what the acts about a finding came to: later decisions go by it.

        The last three are what the victim had before, during and after, in bytes per second: for people.
        """
        self._db.execute("INSERT OR REPLACE INTO judgements VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                         (finding, now, kind, pool, size_bytes, verdict, won_back, usual, contended, after))

    def won_back(self, kind: str, pool: str, size_bytes: int, last: int = 20) -> list[float]:
        """What the last such acts won back of the victim's loss, the newest first."""
        rows = self._db.execute("SELECT won_back FROM judgements WHERE kind = ? AND pool = ? AND size_bytes = ? AND "
                                "verdict IN ('helped', 'did-not-help') ORDER BY time DESC LIMIT ?",
                                (kind, pool, size_bytes, last))
        return [row[0] for row in rows]

    def undone_at(self, place: str) -> float:
        """When the default layout of a directory was last taken back; 0 when it never was."""
        (time,) = self._db.execute("SELECT ifnull(max(ended_at), 0) FROM actions WHERE place = ? "
                                   "AND outcome = 'undone' AND kind = 'set-default-layout'",
                                   (to_bytes(place),)).fetchone()
        return float(time)

    def unjudged(self, since: float) -> Iterator[tuple[int, Finding, list[Entry]]]:
        """Findings whose default layouts were set since then and stand, and were never judged, with these acts."""
        rows = self._db.execute(
            "SELECT id, kind, time, aggressor, victim, targets, sentence, evidence, directories FROM findings "
            "WHERE id IN (SELECT finding FROM actions WHERE kind = 'set-default-layout' AND outcome = 'done' "
            "AND intended_at >= ?) AND id NOT IN (SELECT finding FROM judgements) ORDER BY id", (since,)).fetchall()
        for number, kind, time, aggressor, victim, targets, sentence, evidence, directories in rows:
            finding = Finding(kind, time, aggressor, victim, tuple(json.loads(targets)), sentence,
                              json.loads(evidence), tuple(json.loads(directories)))
            yield number, finding, list(self._select("WHERE finding = ? AND kind = 'set-default-layout' "
                                                     "AND outcome = 'done'", number))

    def sample(self, values: Mapping[str, float], now: float) -> None:
        """Enter points of curves, for reports."""
        self._db.executemany("INSERT INTO samples VALUES (?, ?, ?)", [(now, *item) for item in values.items()])

    def forget_samples(self, before: float) -> None:
        """Points of curves older than that."""
        self._db.execute("DELETE FROM samples WHERE time < ?", (before,))

    def size_bytes(self) -> int:
        """What is in it, without the log that is still to be written into it."""
        return journal_form.number(self._db, "page_count") * journal_form.number(self._db, "page_size")

    def entry(self, number: int) -> Entry | None:
        """One act by its number."""
        return next(self._select("WHERE id = ?", number), None)

    def entries(self, outcome: str | None = None) -> Iterator[Entry]:
        """Acts in order; those with one outcome only ("" for the unfinished), if asked for."""
        if outcome is None:
            return self._select("")
        return self._select("WHERE ifnull(outcome, '') = ?", outcome)

    def _select(self, where: str, *values: int | str) -> Iterator[Entry]:
        """Acts in order. All rows are fetched at once, so that the journal may be written while they are gone over."""
        rows = self._db.execute(f"SELECT {ENTRY_COLUMNS} FROM actions {where} ORDER BY id", values)  # noqa: S608
        yield from map(entry_of, rows.fetchall())


ENTRY_COLUMNS = ("id, kind, place, layout_before, layout_after, size_bytes, ifnull(outcome, ''), ifnull(detail, ''), "
                 "reason, intended_at, dry_run, fid")


def entry_of(row: Sequence[Any]) -> Entry:
    """An act, from a row of these columns."""
    return Entry(row[0], row[1], to_path(row[2]), _layout(row[3]), _layout(row[4]),
                 row[5], row[6], row[7], row[8], row[9], bool(row[10]),
                 None if row[11] is None else Fid.parse(row[11]))


def _text(layout: Layout | None) -> str | None:
    return None if layout is None else to_yaml(layout)


def _layout(text: str | None) -> Layout | None:
    return None if text is None else from_yaml(text)
