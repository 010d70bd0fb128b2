"""Acts and findings of the journal as sums: a week may have a million of them, which nobody reads one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

OUTCOME = "ifnull(nullif(outcome, ''), 'under way')"
"""How an act ended, in SQL and for people."""
Ask = Callable[..., Sequence[Any]]
"""Makes a query of the journal, with its values."""


class Sums:
    """Counted by SQLite, so that neither memory nor time grows with their number."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def of_all(self) -> dict[str, int]:
        """How all acts ended, and how many did."""
        return dict(self._ask(f"SELECT {OUTCOME}, count(*) FROM actions GROUP BY 1"))  # noqa: S608

    def of_finding(self, finding: int) -> dict[str, Any]:
        """Those that were done because of one finding."""
        return summed(self._ask(f"SELECT kind, {OUTCOME}, count(*), sum(size_bytes) FROM actions "  # noqa: S608
                                "WHERE finding = ? GROUP BY 1, 2", finding))

    def of_period(self, since: float, until: float) -> dict[str, Any]:
        """Those that were begun in a period, and how many findings of each kind there were."""
        acts = summed(self._ask(f"SELECT kind, {OUTCOME}, count(*), sum(size_bytes) FROM actions "  # noqa: S608
                                "WHERE intended_at BETWEEN ? AND ? GROUP BY 1, 2", since, until))
        kinds = self._ask("SELECT kind, count(*) FROM findings WHERE time BETWEEN ? AND ? GROUP BY 1 "
                          "ORDER BY 2 DESC, 1", since, until)
        return {**acts, "kinds": dict(kinds)}


def summed(rows: Sequence[tuple[str, str, int, int]]) -> dict[str, Any]:
    """Kinds of acts with their outcomes, and what was moved."""
    moved = next(((files, size) for kind, outcome, files, size in rows if (kind, outcome) == ("migrate", "done")),
                 (0, 0))
    return {"all_acts": sum(row[2] for row in rows), "files_moved": moved[0], "bytes_moved": moved[1],
            "outcomes": {f"{kind} {outcome}": count for kind, outcome, count, _ in rows}}
