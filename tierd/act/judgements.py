"""What acts came to, in the journal's file: what was measured afterwards, what it won back, and what waits for it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tierd.act.entry import ENTRY_COLUMNS, Entry, entry_of
from tierd.act.journal_connection import SharedConnection
from tierd.model import Finding


class Judgements:
    """The judgements, by the thread that writes the journal."""

    def __init__(self, db: SharedConnection) -> None:
        self._db = db

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

    def unjudged(self, since: float) -> Iterator[tuple[int, Finding, list[Entry]]]:
        """Findings whose default layouts were set since then and stand, and were never judged, with these acts."""
        return self._acted_on("id NOT IN (SELECT finding FROM judgements)", since)

    def helped(self, since: float) -> Iterator[tuple[int, Finding, list[Entry]]]:
        """The same of findings whose acts were judged to help, and of which moves still wait."""
        return self._acted_on("id IN (SELECT finding FROM judgements WHERE verdict = 'helped') "
                              "AND id IN (SELECT finding FROM waiting_moves)", since)

    def _acted_on(self, which: str, since: float) -> Iterator[tuple[int, Finding, list[Entry]]]:
        rows = self._db.execute(
            "SELECT id, kind, time, aggressor, victim, targets, sentence, evidence, directories FROM findings "  # noqa: S608
            "WHERE id IN (SELECT finding FROM actions WHERE kind = 'set-default-layout' AND outcome = 'done' "
            f"AND intended_at >= ?) AND {which} ORDER BY id", (since,)).fetchall()
        for number, kind, time, aggressor, victim, targets, sentence, evidence, directories in rows:
            finding = Finding(kind, time, aggressor, victim, tuple(json.loads(targets)), sentence,
                              json.loads(evidence), tuple(json.loads(directories)))
            yield number, finding, self._default_layouts(number)

    def standing(self) -> list[Entry]:
        """All default layouts that were set and not taken back, the newest first."""
        rows = self._db.execute(f"SELECT {ENTRY_COLUMNS} FROM actions WHERE "  # noqa: S608
                                "kind = 'set-default-layout' AND outcome = 'done' ORDER BY id DESC")
        return [entry_of(row) for row in rows.fetchall()]

    def _default_layouts(self, finding: int) -> list[Entry]:
        """Those that were set because of a finding, and stand."""
        rows = self._db.execute(f"SELECT {ENTRY_COLUMNS} FROM actions WHERE finding = ? AND "  # noqa: S608
                                "kind = 'set-default-layout' AND outcome = 'done' ORDER BY id", (finding,))
        return [entry_of(row) for row in rows.fetchall()]
