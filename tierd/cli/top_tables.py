"""The tables of ``tierctl top``: columns, their order, and what fits on a narrow terminal.

All cells are :class:`rich.text.Text` of printable characters: names of jobs may hold anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tierd.daemon.answers import RateRow, TopAnswer
from tierd.text import bytes_text, printable

LEFT: Literal["left"] = "left"
RIGHT: Literal["right"] = "right"
COLUMN_GAP = 2
"""Spaces between columns."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    side: Literal["left", "right"]
    priority: int
    """On a narrow terminal, columns with the lowest priority are hidden first."""
    cells: Sequence[Text]
    numbers: Sequence[float] = ()
    """What the column is sorted by; empty for a column of texts."""

    @property
    def width(self) -> int:
        """Width of the widest cell, in characters."""
        return max(cell_len(words) for words in (self.title, *(cell.plain for cell in self.cells)))

    @property
    def has_content(self) -> bool:
        """Whether any cell is not empty."""
        return any(cell.plain for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Rows:
    """A table: one row for each target or job."""

    what: str
    names: Sequence[str]
    """Of the rows, as the daemon has them."""
    columns: Sequence[Column]
    all_rows: int
    """Rows that the daemon has; it sends the first of them."""

    def fitting(self, width: int) -> list[Column]:
        """The columns that fit; empty columns are hidden first."""
        shown = list(self.columns)
        while len(shown) > 1 and sum(column.width + COLUMN_GAP for column in shown) - COLUMN_GAP > width:
            shown.remove(min(shown, key=lambda column: (column.has_content, column.priority)))
        return shown

    def chosen(self, words: str, by: str = "", *, reverse: bool = False) -> list[int]:
        """Rows with the words in one of their texts, in the order of a column; ``by`` "" keeps that of the daemon.

        Numbers come from large to small, texts from a to z; ``reverse`` turns that round.
        """
        texts = [column for column in self.columns if not column.numbers]
        found = [number for number in range(len(self.names))
                 if any(words.lower() in column.cells[number].plain.lower() for column in texts)]
        column = next((column for column in self.columns if column.title == by), None)
        if column is None:
            return found[::-1] if reverse else found
        if column.numbers:
            return sorted(found, key=lambda number: column.numbers[number], reverse=not reverse)
        return sorted(found, key=lambda number: column.cells[number].plain, reverse=reverse)


def text_column(title: str, priority: int, texts: Iterable[str], styles: Iterable[str] = ()) -> Column:
    """A column of words, each in a style of Rich."""
    coloured = [*styles]
    return Column(title, LEFT, priority, [name_text(words, coloured[n] if coloured else "")
                                          for n, words in enumerate(texts)])


def name_text(words: str, style: str) -> Text:
    made = Text(printable(words), style)
    made.truncate(MAX_CELL, overflow="ellipsis")
    return made


MAX_CELL = 40
"""Characters of a cell. A job id of Lustre has at most 31, and an escaped one more."""


def number_column(title: str, priority: int, numbers: Iterable[float], text_of: Callable[[float], str],
                  style: str = "") -> Column:
    found = [*numbers]
    cells = [Text(text_of(number) if number or not style else "", style, justify=RIGHT) for number in found]
    return Column(title, RIGHT, priority, cells, found)


bytes_column = partial(number_column, text_of=bytes_text)
count_column = partial(number_column, text_of="{:.0f}".format)


def target_rows(answer: TopAnswer) -> Rows:
    """Targets: slowed targets first, then the busiest."""
    found = answer.targets
    return Rows("targets", [row.target for row in found], (
        text_column("TARGET", 9, (row.target for row in found)),
        bytes_column("read/s", 5, (row.read_bytes for row in found)),
        bytes_column("write/s", 6, (row.write_bytes for row in found)),
        count_column("ops/s", 4, (row.operations for row in found)),
        count_column("jobs", 3, (row.jobs for row in found)),
        number_column("slowdown", 8, (row.slowdown or 0.0 for row in found), "{:.2f} x".format, "red"),
        text_column("condition", 7, (row.condition for row in found), ["yellow"] * len(found)),
    ), answer.all_targets)


COLOURS = {"noise": "red", "slowed": "yellow"}
"""Of the roles of jobs."""


def job_rows(answer: TopAnswer) -> Rows:
    """Jobs: jobs of findings first, then the busiest."""
    found = answer.jobs
    return Rows("jobs", [row.job for row in found], (
        text_column("JOB", 9, (row.job for row in found)),
        text_column("user", 2, (answer.users.get(row.job, "") for row in found)),
        bytes_column("read/s", 6, (row.read_bytes for row in found)),
        bytes_column("write/s", 7, (row.write_bytes for row in found)),
        count_column("ops/s", 5, (row.operations for row in found)),
        count_column("creates/s", 4, (row.creates for row in found)),
        count_column("targets", 3, (row.targets for row in found)),
        text_column("role", 8, (row.role for row in found), (COLOURS.get(row.role, "") for row in found)),
    ), answer.all_jobs)


def rate_rows(what: str, found: Sequence[RateRow], all_rows: int) -> Rows:
    """Targets or jobs of the past, or beside one: those with the most operations first."""
    rows = sorted(found, key=lambda row: -row.operations - row.metadata_operations)
    return Rows(what, [row.name for row in rows], (
        text_column(what[:-1].upper(), 9, (row.name for row in rows)),
        bytes_column("read/s", 5, (row.read_bytes for row in rows)),
        bytes_column("write/s", 6, (row.write_bytes for row in rows)),
        count_column("ops/s", 8, (row.operations for row in rows)),
        count_column("metadata/s", 7, (row.metadata_operations for row in rows)),
    ), all_rows)


def screen(head: Sequence[Text], tables: Sequence[Rows], width: int = 120) -> RenderableType:
    """The whole screen, ``width`` characters wide."""
    parts: list[RenderableType] = [*head]
    for rows in tables:
        parts += [Text(), printed(rows, width)]
        if rows.all_rows > len(rows.names):
            parts.append(Text(f"and {rows.all_rows - len(rows.names)} more {rows.what}", "dim"))
    return Group(*parts)


def printed(rows: Rows, width: int) -> Table:
    made = Table(box=None, pad_edge=False, padding=(0, COLUMN_GAP, 0, 0), header_style="bold underline", expand=False)
    shown = rows.fitting(width)
    for column in shown:
        made.add_column(column.title, justify=column.side, no_wrap=True, overflow="ellipsis")
    for number in range(len(rows.names)):
        made.add_row(*(column.cells[number] for column in shown))
    return made
