"""What ``tierctl top`` asks the daemon, of now or of the past, and shows: lines, and tables that fit the terminal.

All cells are :class:`rich.text.Text` of printable characters: names of jobs may hold anything.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, repeat
from typing import Literal

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tierd.cli.client import time_text
from tierd.cli.control import fault_lines, headline, queue_line
from tierd.daemon.answers import Json, MomentAnswer, RateRow, StatusAnswer, TopAnswer
from tierd.text import bytes_text, duration_text, printable

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

    @property
    def width(self) -> int:
        """Width of the widest cell, in characters."""
        return max(cell_len(words) for words in (self.title, *(cell.plain for cell in self.cells)))


@dataclass(frozen=True, slots=True)
class Rows:
    """A table: one row for each target or job."""

    what: str
    columns: Sequence[Column]
    all_rows: int
    """Rows that the daemon has; it sends the first of them."""

    @property
    def shown(self) -> int:
        return len(self.columns[0].cells)

    def fitting(self, width: int) -> list[Column]:
        """The columns that fit; empty columns are hidden first."""
        shown = list(self.columns)
        while len(shown) > 1 and sum(column.width + COLUMN_GAP for column in shown) - COLUMN_GAP > width:
            shown.remove(min(shown, key=lambda column: (any(cell.plain for cell in column.cells), column.priority)))
        return shown


def text_column(title: str, priority: int, texts: Iterable[str], styles: Iterable[str] = ()) -> Column:
    """A column of words, each in a style of Rich."""
    cells = [Text(printable(words), style) for words, style in zip(texts, chain(styles, repeat("")), strict=False)]
    for cell in cells:
        cell.truncate(MAX_CELL, overflow="ellipsis")
    return Column(title, "left", priority, cells)


MAX_CELL = 40
"""Characters of a cell. A job id of Lustre has at most 31, and an escaped one more."""


def number_column(title: str, priority: int, numbers: Iterable[float], text_of: Callable[[float], str],
                  style: str = "") -> Column:
    return Column(title, "right", priority, [
        Text(text_of(number) if number or not style else "", style) for number in numbers])


bytes_column = partial(number_column, text_of=bytes_text)
count_column = partial(number_column, text_of="{:.0f}".format)


def target_rows(answer: TopAnswer) -> Rows:
    """Targets: slowed targets first, then the busiest."""
    found = answer.targets
    return Rows("targets", (
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
    return Rows("jobs", (
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
    """Targets or jobs of the past: those with the most operations first."""
    rows = sorted(found, key=lambda row: -row.operations - row.metadata_operations)
    return Rows(what, (
        text_column(what[:-1].upper(), 9, (row.name for row in rows)),
        bytes_column("read/s", 5, (row.read_bytes for row in rows)),
        bytes_column("write/s", 6, (row.write_bytes for row in rows)),
        count_column("ops/s", 8, (row.operations for row in rows)),
        count_column("metadata/s", 7, (row.metadata_operations for row in rows)),
    ), all_rows)


def screen(head: Sequence[Text], tables: Sequence[Rows], width: int, height: int = sys.maxsize) -> RenderableType:
    """The whole screen. Where it is too low for both tables, each has half of it, and what the other does not need."""
    parts: list[RenderableType] = [*head]
    above = sum(1 + cell_len(line.plain) // width for line in head)
    room = max(2 * len(tables), height - above - LINES_AROUND * len(tables))
    for number, rows in enumerate(tables):
        rest = sum(each.shown for each in tables) - rows.shown
        most = max((room + 1 - number) // 2, room - rest)
        made = Table(box=None, pad_edge=False, padding=(0, COLUMN_GAP, 0, 0), header_style="bold underline")
        shown = rows.fitting(width)
        for column in shown:
            made.add_column(column.title, justify=column.side, no_wrap=True, overflow="ellipsis")
        for cells in islice(zip(*(column.cells for column in shown), strict=True), most):
            made.add_row(*cells)
        parts += [Text(), made]
        if rows.all_rows > made.row_count:
            parts.append(Text(f"and {rows.all_rows - made.row_count} more {rows.what}", "dim"))
    return Group(*parts)


LINES_AROUND = 3
"""Lines of a table that are no rows: an empty one, the titles, and how many more rows there are."""
Shown = tuple[list[Text], tuple[Rows, ...]]
"""The lines above the tables, and the tables of targets and jobs."""


class Now:
    """The last reading."""

    def __init__(self, most: int) -> None:
        self.requests: tuple[Json, ...] = ({"request": "top", "most": most},)

    def shown(self, *found: Json) -> Shown:
        """Raises ValueError for answers that cannot be read."""
        answer = TopAnswer.from_json(found[0])
        return head_now(answer), (target_rows(answer), job_rows(answer))


class Past:
    """The records of the past, each a minute or more, from a time on."""

    def __init__(self, time: float) -> None:
        self._time = time

    @property
    def requests(self) -> tuple[Json, ...]:
        return {"request": "moment", "time": self._time}, {"request": "status"}

    def shown(self, *found: Json) -> Shown:
        """What a record has; the next request is for the one after it."""
        moment, state = MomentAnswer.from_json(found[0]), StatusAnswer.from_json(found[1])
        self._time = moment.later or moment.time or self._time
        return head_then(moment, state), (rate_rows("targets", moment.targets, len(moment.targets)),
                                          rate_rows("jobs", moment.jobs, len(moment.jobs)))


Source = Now | Past
"""What is asked, and how the answers are shown."""


def head_now(answer: TopAnswer) -> list[Text]:
    """What tierd does, and what it has found."""
    parts = [Text(printable(f"tierd {headline(answer)}"), "bold red" if answer.restraint[0] else "bold")]
    parts += [Text(printable(line), "bold red") for line in fault_lines(answer)]
    parts.append(Text(f"last reading {time_text(answer.last_cycle)}, over {answer.seconds:.0f} s; "
                      f"{queue_line(answer)}, {bytes_text(answer.moved_bytes)} moved"))
    serious = [f for f in answer.findings if not f.advice_only]
    parts += [Text(printable(f"{f.name} {f.kind}: {f.sentence}"), "red") for f in serious[:MAX_FINDINGS]]
    if not serious:
        parts.append(Text("no findings yet: learning" if answer.learning else "no findings", "green"))
    if answer.advice:
        parts.append(Text(f"advice: {answer.advice}; see tierctl advise"))
    return parts


MAX_FINDINGS = 4


def head_then(moment: MomentAnswer, state: StatusAnswer) -> list[Text]:
    """The time of a record, and the findings that held then."""
    if moment.time is None:
        return [Text("tierd has no record of the past yet: the first one comes after a minute", "bold")]
    begun = moment.time - moment.seconds
    cases = [case for case in state.cases if case.since <= moment.time and begun <= (case.ended_at or state.time)]
    return [Text(f"REPLAY {time_text(moment.time)}, over {duration_text(moment.seconds)}", "bold reverse"),
            *(Text(printable(f"{case.name} {case.kind}: {case.sentence}"), "red") for case in cases[:MAX_FINDINGS])]
