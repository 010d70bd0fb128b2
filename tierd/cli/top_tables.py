"""What ``tierctl top`` asks the daemon, of now or of the past, and shows: lines, and tables that fit the terminal.

All cells are :class:`rich.text.Text` of printable characters: names of jobs may hold anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from typing import Literal

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tierd.cli.client import time_text
from tierd.cli.control import fault_lines, headline, queue_line
from tierd.daemon.answers import AboutAnswer, Json, MomentAnswer, RateRow, StatusAnswer, TopAnswer
from tierd.text import bytes_text, duration_text, printable

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
            shown.remove(min(shown, key=lambda column: (any(cell.plain for cell in column.cells), column.priority)))
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
    cells = [Text(printable(words), style) for words, style in zip(texts, chain(styles, repeat("")), strict=False)]
    for cell in cells:
        cell.truncate(MAX_CELL, overflow="ellipsis")
    return Column(title, LEFT, priority, cells)


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
        made = Table(box=None, pad_edge=False, padding=(0, COLUMN_GAP, 0, 0), header_style="bold underline",
                     expand=False)
        shown = rows.fitting(width)
        for column in shown:
            made.add_column(column.title, justify=column.side, no_wrap=True, overflow="ellipsis")
        for number in range(len(rows.names)):
            made.add_row(*(column.cells[number] for column in shown))
        parts += [Text(), made]
        if rows.all_rows > len(rows.names):
            parts.append(Text(f"and {rows.all_rows - len(rows.names)} more {rows.what}", "dim"))
    return Group(*parts)


Shown = tuple[list[Text], tuple[Rows, Rows]]
"""The lines above the tables, and the tables of targets and jobs."""


class Now:
    """The last reading."""

    time: float | None = None
    """What is shown; None for now."""

    def __init__(self, most: int) -> None:
        self.requests: tuple[Json, ...] = ({"request": "top", "most": most},)

    def shown(self, *found: Json) -> Shown:
        """Raises ValueError for answers that cannot be read."""
        answer = TopAnswer.from_json(found[0])
        return head_now(answer), (target_rows(answer), job_rows(answer))


class Past:
    """The records of one time, and steps to others."""

    def __init__(self, time: float) -> None:
        self.time: float | None = time
        self._moment = MomentAnswer()

    @property
    def requests(self) -> tuple[Json, ...]:
        return {"request": "moment", "time": self.time}, {"request": "status"}

    def shown(self, *found: Json) -> Shown:
        moment, state = MomentAnswer.from_json(found[0]), StatusAnswer.from_json(found[1])
        self._moment, self.time = moment, moment.time or self.time
        return head_then(moment, state), (rate_rows("targets", moment.targets, len(moment.targets)),
                                          rate_rows("jobs", moment.jobs, len(moment.jobs)))

    def step(self, seconds: float) -> None:
        """Go to the first record at least this many seconds later, or earlier if they are negative."""
        last = self._moment
        wanted = last.later if seconds > 0 else last.earlier
        if last.time is not None and wanted is not None:
            self.time = max(wanted, last.time + seconds) if seconds > 0 else min(wanted, last.time + seconds)


Source = Now | Past
"""What is asked, in another thread, and how the answers are shown."""


def head_now(answer: TopAnswer) -> list[Text]:
    """What tierd does, and what it has found."""
    parts = [Text(printable(f"tierd {headline(answer)}"), "bold red" if answer.restraint[0] else "bold")]
    parts += [Text(printable(line), "bold red") for line in fault_lines(answer)]
    parts.append(Text(f"last reading {time_text(answer.last_cycle)}, over {answer.seconds:.0f} s; "
                      f"{queue_line(answer)}, {bytes_text(answer.moved_bytes)} moved"))
    serious = [f for f in answer.findings if not f.advice_only]
    parts += [Text(printable(f"F{f.id} {f.kind}: {f.sentence}"), "red") for f in serious[:MAX_FINDINGS]]
    if not serious:
        parts.append(Text(quiet_text(answer), "green"))
    if answer.advice:
        parts.append(Text(f"advice: {answer.advice}; see tierctl advise"))
    return parts


MAX_FINDINGS = 4


def quiet_text(answer: TopAnswer) -> str:
    """The line for a cycle without findings."""
    if not answer.seconds:
        return "no reading yet"
    if answer.learning:
        return "learning: too few readings to detect slow streams"
    return "no interference found" if answer.jobs else "no active jobs"


def head_then(moment: MomentAnswer, state: StatusAnswer) -> list[Text]:
    """The time of a record, and the findings that held then."""
    if moment.time is None:
        return [Text("tierd has no record of the past yet: the first one comes after a minute", "bold")]
    begun = moment.time - moment.seconds
    cases = [case for case in state.cases if case.since <= moment.time and begun <= (case.ended_at or state.time)]
    return [Text(f"REPLAY {time_text(moment.time)}, over {duration_text(moment.seconds)}", "bold reverse"),
            *(Text(printable(f"{case.name} {case.kind}: {case.sentence}"), "red") for case in cases[:MAX_FINDINGS])]


def cases_of(about: AboutAnswer, until: float | None) -> list[Text]:
    """The last findings and orders about a target or job that had begun at a time; None is now."""
    return [Text(printable(f"{case.name} {time_text(case.since)} {case.sentence} ("
                           f"{case.done_text if case.state else 'active' if case.active else 'ended'})"),
                 "red" if case.active else "")
            for case in about.cases if case.since <= (until or case.since)][:MAX_FINDINGS]
