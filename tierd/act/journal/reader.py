"""Queries of the journal while the daemon writes it, by a separate connection, for any thread."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from tierd.act.journal.connection import Row, Value
from tierd.act.journal.entry import (
    ENTRY_COLUMNS,
    FINDING_COLUMNS,
    JUDGEMENT_COLUMNS,
    Entry,
    Recorded,
    entry_of,
    finding_of,
    judgement_of,
    to_path,
)
from tierd.act.journal.rates import JOBS, RateReader
from tierd.acts import ActKind, Outcome
from tierd.structs import MessageRow, SameFindingRow
from tierd.verify.judgement import Judgement

CASE_SERIES = "case "
"""Begins the name of the series with the curve of a case."""


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
    """Opens the file for each query: queries are few, and a process that ends leaves nothing locked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rates = RateReader(self._all)

    def last(self, count: int, wanted: Wanted) -> list[Entry]:
        """The last acts, oldest first."""
        where, values = wanted.clause()
        return self._entries(f"{where} ORDER BY id DESC LIMIT ?", *values, count)

    def _entries(self, where: str, *values: Value) -> list[Entry]:
        return [entry_of(row) for row in reversed(
            self._all(f"SELECT {ENTRY_COLUMNS} FROM actions {where}", *values))]  # noqa: S608

    def findings_about(self, kind: str, name: str, most: int) -> list[Recorded]:
        """The last findings and orders about a job, or on a target, the newest first."""
        where = "aggressor = ?1 OR victim = ?1" if kind == JOBS else "instr(targets, ?1) > 0"
        rows = self._all(f"SELECT {FINDING_COLUMNS} FROM findings WHERE {where} ORDER BY time DESC, id DESC LIMIT ?2",  # noqa: S608
                         name if kind == JOBS else json.dumps(name), most)
        return [finding_of(row) for row in rows]

    def under_way(self) -> list[Entry]:
        """Acts without an outcome, oldest first."""
        return self._entries("WHERE outcome = 'under way' ORDER BY id DESC")

    def acts_of(self, finding: int, count: int) -> list[Entry]:
        return self._entries("WHERE finding = ? ORDER BY id LIMIT ?", finding, count)[::-1]

    def complete_since(self) -> float | None:
        """Time from which the journal has every act: older ones were removed, or there are none. None if it is empty.
        Acts in force are there though they are older.
        """
        removed = self._all("SELECT value + 0.0 FROM state WHERE name = 'removed_before'")
        first, = self._all("SELECT min(time) FROM (SELECT min(intended_at) AS time FROM actions UNION ALL "
                           "SELECT min(time) FROM findings)")
        return float(removed[0][0]) if removed else first[0]

    def finding_of(self, act: int) -> int | None:
        rows = self._all("SELECT finding FROM actions WHERE id = ?", act)
        return rows[0][0] if rows else None

    def finding(self, number: int) -> Recorded | None:
        rows = self._all(f"SELECT {FINDING_COLUMNS} FROM findings WHERE id = ?", number)  # noqa: S608
        return finding_of(rows[0]) if rows else None

    def same_as(self, finding: int, last: int = 20) -> list[SameFindingRow]:
        """Other findings about the same problem, oldest first."""
        rows = self._all(
            "SELECT other.id, other.time, (SELECT count(*) FROM actions WHERE finding = other.id) FROM findings other, "
            "findings this WHERE this.id = ? AND other.id != this.id AND (other.kind, other.aggressor, other.victim, "
            "other.subject) = (this.kind, this.aggressor, this.victim, this.subject) ORDER BY other.id DESC LIMIT ?",
            finding, last)
        return [SameFindingRow(*row) for row in reversed(rows)]

    def findings_between(self, since: float, until: float, most: int) -> list[Recorded]:
        """The last findings and orders of a period, oldest first."""
        rows = self._all(f"SELECT {FINDING_COLUMNS} FROM findings WHERE time BETWEEN ? AND ? "  # noqa: S608
                         "ORDER BY time DESC, id DESC LIMIT ?", since, until, most)
        return [finding_of(row) for row in reversed(rows)]

    def messages(self, finding: int) -> list[MessageRow]:
        """The last sentences about a finding, oldest first."""
        return [MessageRow(*row) for row in reversed(self._all(
            "SELECT time, sentence FROM told WHERE finding = ? ORDER BY time DESC, rowid DESC LIMIT 1000", finding))]

    def not_moved(self, finding: int, since: float) -> list[tuple[str, int, str]]:
        """Files whose last move for a finding began after a time and did not succeed: detail, number and an example."""
        rows = self._all(
            "SELECT ifnull(nullif(detail, ''), outcome), count(*), min(place) FROM actions WHERE id IN "
            "(SELECT max(id) FROM actions WHERE finding = ? AND intended_at >= ? GROUP BY place) "
            "AND outcome NOT IN ('done', 'already', 'gone', 'dry-run', 'under way') GROUP BY 1 ORDER BY 2 DESC "
            "LIMIT 30", finding, since)
        return [(str(detail), int(count), to_path(example)) for detail, count, example in rows]

    def judgements(self, findings: Sequence[int]) -> dict[int, Judgement]:
        """The verdicts on the acts for these findings, by the number of the finding."""
        rows = self._all(f"SELECT {JUDGEMENT_COLUMNS} FROM judgements "  # noqa: S608
                         f"WHERE finding IN ({places(findings)})", *findings)
        return {row[0]: judgement_of(row) for row in rows}

    def defaults_of(self, findings: Sequence[int]) -> dict[int, list[Entry]]:
        """Defaults of directories that were set, even in a dry run, or undone, by the number of the finding."""
        found = defaultdict(list)
        for number, *row in self._all(f"SELECT finding, {ENTRY_COLUMNS} FROM actions WHERE finding IN "  # noqa: S608
                                      f"({places(findings)}) AND kind IN ('set-default-layout', "
                                      "'set-default-striping') AND outcome IN ('done', 'dry-run', 'undoing', 'undone')"
                                      " ORDER BY id", *findings):
            found[number].append(entry_of(tuple(row)))
        return found

    def moves_of(self, findings: Sequence[int]) -> dict[int, tuple[dict[str, int], float]]:
        """Moves for these findings that have ended, not those that undo: their number by outcome, and when the first
        began, by the number of the finding.
        """
        counts, first = defaultdict[int, dict[str, int]](dict), dict[int, float]()
        for number, outcome, count, begun in self._all(
                "SELECT finding, outcome, count(*), min(intended_at) FROM actions WHERE kind = 'migrate' AND "  # noqa: S608
                f"undoes IS NULL AND outcome != 'under way' AND finding IN ({places(findings)}) GROUP BY 1, 2",
                *findings):
            counts[number][outcome] = count
            first[number] = min(begun, first.get(number, begun))
        return {number: (moves, first[number]) for number, moves in counts.items()}

    def curve(self, finding: int, since: float, until: float) -> tuple[tuple[float, float], ...]:
        """What was stored in this time of the throughput of the victim of a case: time and bytes per second."""
        return tuple(self._all("SELECT time, value FROM samples WHERE time BETWEEN ? AND ? AND series = ? ORDER BY 1",
                               since, until, f"{CASE_SERIES}{finding}"))

    def sums_of_all(self) -> dict[str, int]:
        """Number of acts by outcome. SQLite counts: they need no memory."""
        return dict(self._all("SELECT outcome, count(*) FROM actions GROUP BY 1"))

    def sums_of_finding(self, finding: int) -> ActSums:
        """Sums of the acts that were done because of one finding."""
        return summed(self._all("SELECT kind, outcome, count(*), sum(size_bytes) FROM actions "
                                "WHERE finding = ? GROUP BY 1, 2", finding))

    def sums_of_period(self, since: float, until: float) -> PeriodSums:
        """Sums of the acts that began in a period, and the numbers of findings by kind and of verdicts."""
        acts = summed(self._all("SELECT kind, outcome, count(*), sum(size_bytes) FROM actions "
                                "WHERE intended_at BETWEEN ? AND ? GROUP BY 1, 2", since, until))
        kinds = self._all("SELECT kind, count(*) FROM findings WHERE time BETWEEN ? AND ? GROUP BY 1 "
                          "ORDER BY 2 DESC, 1", since, until)
        verdicts = self._all("SELECT verdict, count(*) FROM judgements WHERE time BETWEEN ? AND ? GROUP BY 1 "
                             "ORDER BY 2 DESC, 1", since, until)
        return {**acts, "kinds": dict(kinds), "verdicts": dict(verdicts)}

    def _all(self, query: str, *values: Value) -> Sequence[Row]:
        with closing(sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True, timeout=10.0)) as db:
            return db.execute(query, values).fetchall()


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which acts to select. An empty value does not select."""

    outcome: Outcome | None = None
    path: str = ""
    """The path of an act or of a directory above it; without a leading slash, any part of the path."""
    job: str = ""
    """Aggressor or victim of the finding."""
    since: float = 0.0
    kind: ActKind | None = None
    finding: int | None = None

    def clause(self) -> tuple[str, list[Value]]:
        """The clause of a query, and its values."""
        place, is_whole = os.fsencode(self.path.rstrip("/")), self.path.startswith("/")
        every: tuple[tuple[object, str, tuple[Value, ...]], ...] = (
            (self.outcome, "outcome = ?", (self.outcome,)),
            (place and not is_whole, "instr(place, ?) > 0", (place,)),
            (place and is_whole, "(place = ? OR substr(place, 1, ?) = ?)", (place, len(place) + 1, place + b"/")),
            (self.job, "finding IN (SELECT id FROM findings WHERE aggressor = ? OR victim = ?)", (self.job, self.job)),
            (self.kind, "kind = ?", (self.kind,)),
            (self.since, "intended_at >= ?", (self.since,)),
            (self.finding is not None, "finding = ?", (self.finding,)))
        chosen = [(words, values) for wanted, words, values in every if wanted]
        where = f"WHERE {' AND '.join(words for words, _ in chosen)}" if chosen else ""
        return where, [value for _, values in chosen for value in values]


def places(values: Sequence[int]) -> str:
    """The places of values in a statement."""
    return ", ".join("?" * len(values))


def summed(rows: Sequence[Row]) -> ActSums:
    """The sums of rows of kind, outcome, number of acts and bytes."""
    counts = Counter({f"{kind} {outcome}": count for kind, outcome, count, _ in rows})
    return {"all_acts": counts.total(), "files_moved": counts[f"{ActKind.MIGRATE} {Outcome.DONE}"],
            "bytes_moved": sum(row[3] for row in rows if row[:2] == (ActKind.MIGRATE, Outcome.DONE)),
            "outcomes": dict(counts)}
