"""Queries of the journal while the daemon writes it, by a separate connection, for any thread."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypedDict

from tierd.act.journal.connection import Row, Value
from tierd.act.journal.entry import ENTRY_COLUMNS, Entry, entry_of
from tierd.act.journal.rates import RateReader
from tierd.acts import ActKind, Outcome
from tierd.structs import FindingRow, JudgementRow, MessageRow, SameFindingRow

_FINDING = "id, time, kind, aggressor, victim, sentence, evidence, targets, directories, subject"
Query = Callable[..., Sequence[Row]]
"""Runs a query of the journal, with its values."""


class ActSums(TypedDict):
    """Acts as sums."""

    all_acts: int
    files_moved: int
    bytes_moved: int
    outcomes: dict[str, int]
    """Number of acts by kind and outcome: ``migrate done``."""


class PeriodSums(ActSums):
    """Acts, findings and verdicts of a period as sums."""

    kinds: dict[str, int]
    """Number of findings by kind."""
    verdicts: dict[str, int]
    """Number of verdicts by verdict."""


class JournalReader:
    """Opens the file anew for each query: queries are few, and a process that ends leaves nothing locked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.sums = Sums(self._all)
        self.rates = RateReader(self._all)

    def last(self, count: int, outcome: Outcome | None = None, path: str = "", job: str = "",
             since: float = 0.0, kind: ActKind | None = None) -> list[Entry]:
        """The last acts, oldest first. Each further argument selects.

        ``path``: the path of an act or of a directory above it; without a leading slash, any part of the path.
        ``job``: aggressor or victim of the finding.
        """
        place = os.fsencode(path.rstrip("/"))
        chosen: list[tuple[str, tuple[Value, ...]]] = []
        if outcome:
            chosen.append(("outcome = ?", (outcome,)))
        if place and not path.startswith("/"):
            chosen.append(("instr(place, ?) > 0", (place,)))
        elif place:
            chosen.append(("(place = ? OR substr(place, 1, ?) = ?)", (place, len(place) + 1, place + b"/")))
        if job:
            chosen.append(("finding IN (SELECT id FROM findings WHERE aggressor = ? OR victim = ?)", (job, job)))
        if kind:
            chosen.append(("kind = ?", (kind,)))
        if since:
            chosen.append(("intended_at >= ?", (since,)))
        where = f"WHERE {' AND '.join(words for words, _ in chosen)}" if chosen else ""
        rows = self._all(f"SELECT {ENTRY_COLUMNS} FROM actions {where} ORDER BY id DESC LIMIT ?",  # noqa: S608
                         *(value for _, values in chosen for value in values), count)
        return [entry_of(row) for row in reversed(rows)]

    def has_job(self, job: str) -> bool:
        return bool(self._all("SELECT 1 FROM findings WHERE aggressor = ? OR victim = ? LIMIT 1", job, job))

    def under_way(self) -> list[Entry]:
        """Acts without an outcome, oldest first."""
        return [entry_of(row) for row in self._all(
            f"SELECT {ENTRY_COLUMNS} FROM actions WHERE outcome = 'under way' ORDER BY id")]  # noqa: S608

    def acts_of(self, finding: int, count: int) -> list[Entry]:
        return [entry_of(row) for row in self._all(
            f"SELECT {ENTRY_COLUMNS} FROM actions WHERE finding = ? ORDER BY id LIMIT ?", finding, count)]  # noqa: S608

    def acts_between(self, since: float, until: float, most: int, kind: ActKind | None = None) -> list[Entry]:
        """The last acts of a period, oldest first, of one kind if it is given."""
        rows = self._all(f"SELECT {ENTRY_COLUMNS} FROM actions WHERE intended_at BETWEEN ? AND ? AND "  # noqa: S608
                         "kind LIKE ? ORDER BY intended_at DESC, id DESC LIMIT ?", since, until, kind or "%", most)
        return [entry_of(row) for row in reversed(rows)]

    def complete_since(self) -> float | None:
        """Time from which the journal has every act: older ones were removed, or there are none. None if it is empty.

        Acts in force are there though they are older.
        """
        removed = self._all("SELECT value + 0.0 FROM state WHERE name = 'removed_before'")
        first, = self._all("SELECT min(time) FROM (SELECT min(intended_at) AS time FROM actions UNION ALL "
                           "SELECT min(time) FROM findings)")
        return float(removed[0][0]) if removed else first[0]

    def removed_acts(self) -> int:
        (count,), = self._all("SELECT ifnull(sum(count), 0) FROM removed_by_day WHERE what = 'act'")
        return int(count)

    def finding_of(self, act: int) -> int | None:
        rows = self._all("SELECT finding FROM actions WHERE id = ?", act)
        return rows[0][0] if rows else None

    def finding(self, number: int) -> FindingRow | None:
        rows = self._all(f"SELECT {_FINDING} FROM findings WHERE id = ?", number)  # noqa: S608
        return _finding(rows[0]) if rows else None

    def same_as(self, finding: int, last: int = 20) -> list[SameFindingRow]:
        """Other findings about the same problem, oldest first."""
        rows = self._all(
            "SELECT other.id, other.time, (SELECT count(*) FROM actions WHERE finding = other.id) FROM findings other, "
            "findings this WHERE this.id = ? AND other.id != this.id AND (other.kind, other.aggressor, other.victim, "
            "other.subject) = (this.kind, this.aggressor, this.victim, this.subject) ORDER BY other.id DESC LIMIT ?",
            finding, last)
        return [SameFindingRow(*row) for row in reversed(rows)]

    def findings_between(self, since: float, until: float, most: int) -> list[FindingRow]:
        """The last findings and orders of a period, oldest first."""
        rows = self._all(f"SELECT {_FINDING} FROM findings WHERE time BETWEEN ? AND ? "  # noqa: S608
                         "ORDER BY time DESC, id DESC LIMIT ?", since, until, most)
        return [_finding(row) for row in reversed(rows)]

    def messages(self, finding: int) -> list[MessageRow]:
        return [MessageRow(*row) for row in self._all(
            "SELECT time, sentence FROM told WHERE finding = ? ORDER BY time, rowid LIMIT 1000", finding)]

    def judgements(self, since: float = 0.0, until: float = 1e18, finding: int | None = None) -> list[JudgementRow]:
        where, values = ("finding = ? AND", [finding]) if finding is not None else ("", [])
        rows = self._all("SELECT finding, time, verdict, usual, contended, after, won_back, low, high "  # noqa: S608
                         f"FROM judgements WHERE {where} time BETWEEN ? AND ? ORDER BY time", *values, since, until)
        return [JudgementRow(number, time, verdict, usual, contended, after=after,
                             regained=None if low is None else (part, low, high))
                for number, time, verdict, usual, contended, after, part, low, high in rows]

    def samples(self, since: float, until: float, most: int) -> dict[str, list[tuple[float, float]]]:
        """Series of a period, by name. Each has at most ``most`` points, spread evenly over the recorded time."""
        (first, last), = self._all("SELECT ifnull(min(time), 0), ifnull(max(time), 0) FROM samples "
                                   "WHERE time BETWEEN ? AND ?", since, until)
        found: dict[str, list[tuple[float, float]]] = {}
        for name, time, value in self._all(
                "SELECT series, min(time), value FROM samples WHERE time BETWEEN ? AND ? "
                "GROUP BY series, CAST((time - ?) / ? AS INTEGER) ORDER BY 2",
                since, until, first, max(last - first, 1.0) / most * (1 + 1e-9)):
            found.setdefault(name, []).append((time, value))
        return found

    def _all(self, query: str, *values: Value) -> Sequence[Row]:
        with closing(sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True, timeout=10.0)) as db:
            return db.execute(query, values).fetchall()


class Sums:
    """Acts and findings as sums. SQLite counts them, so memory does not grow with their number."""

    def __init__(self, query: Query) -> None:
        self._query = query

    def of_all(self) -> dict[str, int]:
        """Number of acts by outcome, those that were removed included."""
        return dict(self._query("SELECT outcome, sum(count) FROM (SELECT outcome, count(*) AS count "
                                "FROM actions GROUP BY 1 UNION ALL SELECT outcome, count FROM removed_by_day "
                                "WHERE what = 'act') GROUP BY 1"))

    def of_finding(self, finding: int) -> ActSums:
        """Sums of the acts that were done because of one finding, those that were removed included."""
        return summed(self._query("SELECT kind, outcome, count(*), sum(size_bytes) FROM actions "
                                  "WHERE finding = ? GROUP BY 1, 2 UNION ALL SELECT kind, outcome, count, size_bytes "
                                  "FROM removed_by_finding WHERE finding = ?", finding, finding))

    def of_period(self, since: float, until: float) -> PeriodSums:
        """Sums of the acts that began in a period, and the numbers of findings by kind and of verdicts.

        Records that were removed are included by days (UTC): a day counts if its middle is in the period.
        """
        removed = "FROM removed_by_day WHERE what = ? AND day * 86400 + 43200 BETWEEN ? AND ?"
        acts = summed(self._query("SELECT kind, outcome, count(*), sum(size_bytes) FROM actions "  # noqa: S608
                                  "WHERE intended_at BETWEEN ? AND ? GROUP BY 1, 2 UNION ALL "
                                  f"SELECT kind, outcome, count, size_bytes {removed}",
                                  since, until, "act", since, until))
        kinds = self._query("SELECT kind, sum(count) FROM (SELECT kind, 1 AS count FROM findings "  # noqa: S608
                            f"WHERE time BETWEEN ? AND ? UNION ALL SELECT kind, count {removed}) GROUP BY 1 "
                            "ORDER BY 2 DESC, 1", since, until, "finding", since, until)
        verdicts = self._query("SELECT verdict, sum(count) FROM (SELECT verdict, 1 AS count FROM judgements "  # noqa: S608
                               f"WHERE time BETWEEN ? AND ? UNION ALL SELECT outcome, count {removed}) GROUP BY 1 "
                               "ORDER BY 2 DESC, 1", since, until, "verdict", since, until)
        return {**acts, "kinds": dict(kinds), "verdicts": dict(verdicts)}


def summed(rows: Sequence[Row]) -> ActSums:
    """The sums of rows of kind, outcome, number of acts and bytes."""
    counts = Counter[str]()
    for kind, outcome, count, _ in rows:
        counts[f"{kind} {outcome}"] += count
    return {"all_acts": counts.total(), "files_moved": counts[f"{ActKind.MIGRATE} {Outcome.DONE}"],
            "bytes_moved": sum(row[3] for row in rows if row[:2] == (ActKind.MIGRATE, Outcome.DONE)),
            "outcomes": dict(counts)}


def _finding(row: Row) -> FindingRow:
    number, time, kind, aggressor, victim, sentence, evidence, targets, directories, subject = row
    return FindingRow(
        id=number, time=time, kind=kind, aggressor=aggressor, victim=victim, sentence=sentence,
        evidence=json.loads(evidence), targets=tuple(json.loads(targets)), directories=tuple(json.loads(directories)),
        subject=subject)
