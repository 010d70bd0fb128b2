"""The journal, read beside the daemon that writes it: a connection of its own, for any thread."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tierd.act.entry import ENTRY_COLUMNS, Entry, entry_of
from tierd.act.journal_sums import OUTCOME, Sums

_FINDING = "id, time, kind, aggressor, victim, sentence, evidence, targets, directories, subject"


class JournalReader:
    """Opens the file anew for each question: they are few, and a process that ends leaves nothing locked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.sums = Sums(self._all)
        """What there is too much of to be told one by one."""

    def last(self, count: int, outcome: str = "") -> list[Entry]:
        """The last acts, oldest first; those with one outcome only, if asked for."""
        where = f"WHERE {OUTCOME} = ?" if outcome else ""
        rows = self._all(f"SELECT {ENTRY_COLUMNS} FROM actions {where} ORDER BY id DESC LIMIT ?",  # noqa: S608
                         *([outcome] if outcome else []), count)
        return [entry_of(row) for row in reversed(rows)]

    def under_way(self) -> list[Entry]:
        """Acts that have not come to their end, oldest first."""
        return [entry_of(row) for row in self._all(
            f"SELECT {ENTRY_COLUMNS} FROM actions WHERE outcome IS NULL ORDER BY id")]  # noqa: S608

    def acts_of(self, finding: int, count: int) -> list[Entry]:
        """The first acts because of a finding."""
        return [entry_of(row) for row in self._all(
            f"SELECT {ENTRY_COLUMNS} FROM actions WHERE finding = ? ORDER BY id LIMIT ?", finding, count)]  # noqa: S608

    def acts_between(self, since: float, until: float, most: int, kind: str = "") -> list[Entry]:
        """The last acts of a period, oldest first; those of one kind only, if asked for."""
        rows = self._all(f"SELECT {ENTRY_COLUMNS} FROM actions WHERE intended_at BETWEEN ? AND ? AND "  # noqa: S608
                         "kind LIKE ? ORDER BY intended_at DESC, id DESC LIMIT ?", since, until, kind or "%", most)
        return [entry_of(row) for row in reversed(rows)]

    def finding_of(self, act: int) -> int | None:
        """The finding an act was done for."""
        rows = self._all("SELECT finding FROM actions WHERE id = ?", act)
        return rows[0][0] if rows else None

    def finding(self, number: int) -> dict[str, Any] | None:
        """One finding."""
        rows = self._all(f"SELECT {_FINDING} FROM findings WHERE id = ?", number)  # noqa: S608
        return _finding(rows[0]) if rows else None

    def same_as(self, finding: int, last: int = 20) -> list[dict[str, Any]]:
        """The same trouble at other times, oldest first: number, time, and how many acts were done for it."""
        rows = self._all(
            "SELECT other.id, other.time, (SELECT count(*) FROM actions WHERE finding = other.id) FROM findings other, "
            "findings this WHERE this.id = ? AND other.id != this.id AND (other.kind, other.aggressor, other.victim, "
            "other.subject) = (this.kind, this.aggressor, this.victim, this.subject) ORDER BY other.id DESC LIMIT ?",
            finding, last)
        return [{"id": number, "time": time, "acts": acts} for number, time, acts in reversed(rows)]

    def findings_between(self, since: float, until: float, most: int) -> list[dict[str, Any]]:
        """The last findings and orders of a period, oldest first."""
        rows = self._all(f"SELECT {_FINDING} FROM findings WHERE time BETWEEN ? AND ? "  # noqa: S608
                         "ORDER BY time DESC, id DESC LIMIT ?", since, until, most)
        return [_finding(row) for row in reversed(rows)]

    def told(self, finding: int) -> list[tuple[float, str]]:
        """What was said of a finding, and when."""
        return [tuple(row) for row in self._all(
            "SELECT time, sentence FROM told WHERE finding = ? ORDER BY time, rowid LIMIT 1000", finding)]

    def judgements(self, since: float = 0.0, until: float = 1e18, finding: int | None = None) -> list[dict[str, Any]]:
        """What was measured of acts afterwards."""
        names = ("finding", "time", "verdict", "usual", "contended", "after")
        where, values = ("finding = ? AND", [finding]) if finding is not None else ("", [])
        rows = self._all(f"SELECT {', '.join(names)} FROM judgements WHERE {where} time BETWEEN ? AND ? "  # noqa: S608
                         "ORDER BY time", *values, since, until)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def samples(self, since: float, until: float, most: int) -> dict[str, list[tuple[float, float]]]:
        """Series of a period, by name, of each no more points than that, evenly over the time there are any of."""
        (first, last), = self._all("SELECT ifnull(min(time), 0), ifnull(max(time), 0) FROM samples "
                                   "WHERE time BETWEEN ? AND ?", since, until)
        found: dict[str, list[tuple[float, float]]] = {}
        for name, time, value in self._all(
                "SELECT series, min(time), value FROM samples WHERE time BETWEEN ? AND ? "
                "GROUP BY series, CAST((time - ?) / ? AS INTEGER) ORDER BY 2",
                since, until, first, max(last - first, 1.0) / most * (1 + 1e-9)):
            found.setdefault(name, []).append((time, value))
        return found

    def _all(self, query: str, *values: Any) -> Sequence[Any]:
        with self._open() as db:
            return db.execute(query, values).fetchall()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True, timeout=10.0)) as db:
            yield db


def _finding(row: Sequence[Any]) -> dict[str, Any]:
    names = _FINDING.split(", ")
    found = dict(zip(names, row, strict=True))
    return found | {name: json.loads(found[name]) for name in ("evidence", "targets", "directories")}
