"""What tierd did and meant to do: an intent before each act, its outcome after, in SQLite. Nothing is forgotten.

The layout that was there before stands beside the one that was set: undoing needs nothing but the journal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lustre.fid import Fid
from lustre.layout.model import Layout
from tierd.act import journal_form
from tierd.act.entry import ENTRY_COLUMNS, Entry, entry_of, text_of
from tierd.act.journal_schema import opened
from tierd.act.judgements import Judgements
from tierd.act.kept import KeptMoves, to_bytes, to_path
from tierd.model import Action, Finding
from tierd.text import printable

MOST_WORDS = 2000
"""Of a sentence about how an act went."""
UNDOING = "undoing"
"""Outcome of an act while it is being taken back."""


class Journal:
    """One file, written by the threads of one process.

    Safe to be killed at any instruction: SQLite's write-ahead log. An intent is on the disk before the act begins; an
    outcome may be lost with the power, and is then found again by a look (:mod:`tierd.act.recovery`).
    """

    def __init__(self, path: Path) -> None:
        """Raises JournalError for a file that is no journal of ours, or one of a later release."""
        self._db, self.new = opened(path)
        self.waiting = KeptMoves(self._db)
        """Moves whose turn has not come."""
        self.judgements = Judgements(self._db)
        """What acts came to."""
        self._directories: set[bytes] = set()
        self._directories_until = 0
        """Act up to which they are known."""

    def close(self) -> None:
        """Write what is in the log into the file."""
        self._db.close()

    def found(self, finding: Finding) -> int:
        """Enter a finding; its number is what actions refer to."""
        cursor = self._db.execute(
            "INSERT INTO findings (time, kind, aggressor, victim, sentence, evidence, targets, directories, subject) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (finding.time, finding.kind, finding.aggressor, finding.victim, printable(finding.sentence),
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
            (finding, action.kind, to_bytes(action.path or action.directory), text_of(before), text_of(action.layout),
             action.size_bytes, printable(action.reason), dry_run, now, None if fid is None else str(fid)))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def ended(self, entry: int, outcome: str, detail: str, now: float) -> None:
        """Enter how it went: ``done``, ``refused``, ``failed``, ``dry-run``, ``undone``, ``interrupted``, …

        ``detail`` may be what ``lfs`` wrote, with the names of files in it: any bytes, and of any length.
        """
        with self._db.lock:  # an intent of another thread must not be entered with what holds for outcomes
            if self._db.in_transaction:
                self._ended(entry, outcome, detail, now)
                return
            self._db.execute("PRAGMA synchronous=NORMAL")
            try:
                self._ended(entry, outcome, detail, now)
            finally:
                self._db.execute("PRAGMA synchronous=FULL")

    def _ended(self, entry: int, outcome: str, detail: str, now: float) -> None:
        self._db.execute("UPDATE actions SET outcome = ?, detail = ?, ended_at = ? WHERE id = ?",
                         (outcome, printable(detail[:MOST_WORDS]), now, entry))

    def undoing(self, entry: int, now: float) -> None:
        """Enter that an act is about to be taken back; on the disk before it is."""
        self._db.execute("UPDATE actions SET outcome = ?, detail = '', ended_at = ? WHERE id = ?",
                         (UNDOING, now, entry))

    @contextmanager
    def together(self) -> Iterator[None]:
        """What this thread enters meanwhile reaches the disk in one go, or not at all. Other threads wait."""
        with self._db.lock:
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
        self._db.executemany("INSERT INTO told VALUES (?, ?, ?)", [(finding, now, printable(s)) for s in sentences])

    def directories(self) -> frozenset[str]:
        """Directories whose default layout was set, or files of which were moved: where files on flash may lie.

        What was asked before is remembered: a journal may hold a million acts, of which only the new ones are read.
        """
        with self._db.lock:
            while rows := self._db.execute(
                    "SELECT id, kind, place, outcome FROM actions WHERE id > ? ORDER BY id LIMIT 10000",
                    (self._directories_until,)).fetchall():
                for number, kind, place, outcome in rows:
                    if outcome is None:  # under way: it is read again next time
                        return frozenset(map(to_path, self._directories))
                    if outcome in {"done", UNDOING}:
                        self._directories.add(place if kind == "set-default-layout"
                                              else place.rpartition(b"/")[0] or b"/")
                    self._directories_until = number
            return frozenset(map(to_path, self._directories))

    def given_defaults(self) -> frozenset[str]:
        """Directories that have the default layout tierd gave them."""
        rows = self._db.execute("SELECT place FROM actions WHERE outcome = 'done' AND kind = 'set-default-layout'")
        return frozenset(to_path(place) for (place,) in rows.fetchall())

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

    def undone_at(self, place: str) -> float:
        """When the default layout of a directory was last taken back; 0 when it never was."""
        (time,) = self._db.execute("SELECT ifnull(max(ended_at), 0) FROM actions WHERE place = ? "
                                   "AND outcome = 'undone' AND kind = 'set-default-layout'",
                                   (to_bytes(place),)).fetchone()
        return float(time)

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

    def done_for(self, finding: int) -> list[Entry]:
        """Acts that were done for a finding and not taken back, in order."""
        return list(self._select("WHERE finding = ? AND outcome = 'done'", finding))

    def has_finding(self, number: int) -> bool:
        """Whether there is a finding, or an order, of that number."""
        return self._db.execute("SELECT 1 FROM findings WHERE id = ?", (number,)).fetchone() is not None

    def finding_of(self, act: int) -> int:
        """Number of the finding, or the order, an act was done for."""
        (number,) = self._db.execute("SELECT finding FROM actions WHERE id = ?", (act,)).fetchone()
        return int(number)

    def entries(self, outcome: str | None = None) -> Iterator[Entry]:
        """Acts in order; those with one outcome only ("" for the unfinished), if asked for."""
        if outcome is None:
            return self._select("")
        return self._select("WHERE ifnull(outcome, '') = ?", outcome)

    def _select(self, where: str, *values: int | str) -> Iterator[Entry]:
        """Acts in order. All rows are fetched at once, so that the journal may be written while they are gone over."""
        rows = self._db.execute(f"SELECT {ENTRY_COLUMNS} FROM actions {where} ORDER BY id", values)  # noqa: S608
        yield from map(entry_of, rows.fetchall())
