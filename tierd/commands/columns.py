"""A table no wider than its terminal: where that is narrow, columns that matter less are left out, and none is cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

LEFT: Literal["left"] = "left"
RIGHT: Literal["right"] = "right"
BETWEEN = 2
"""Spaces from one column to the next."""


@dataclass(frozen=True, slots=True)
class Column:
    """One of a table, whole."""

    title: str
    side: Literal["left", "right"]
    matters: int
    """How much: where there is no room, the column with the least of it goes first."""
    cells: Sequence[Text]

    @property
    def width(self) -> int:
        """What it takes."""
        return max(cell_len(words) for words in (self.title, *(cell.plain for cell in self.cells)))

    @property
    def says_something(self) -> bool:
        """Whether any cell is not empty."""
        return any(cell.plain for cell in self.cells)


def fitting(width: int, columns: Sequence[Column]) -> Table:
    """The table without the columns there is no room for; empty ones go before all others."""
    kept = list(columns)
    while len(kept) > 1 and sum(column.width + BETWEEN for column in kept) - BETWEEN > width:
        kept.remove(min(kept, key=lambda column: (column.says_something, column.matters)))
    made = Table(box=None, pad_edge=False, padding=(0, BETWEEN, 0, 0), header_style="bold underline", expand=False)
    for column in kept:
        made.add_column(column.title, justify=column.side, no_wrap=True, overflow="ellipsis")
    for number in range(len(columns[0].cells)):
        made.add_row(*(column.cells[number] for column in kept))
    return made
