"""``tierctl top``: show targets, jobs, interference and moves live on a terminal.

A table fits the width of the terminal: on a narrow one, columns of low priority are hidden, and none is cut.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tierd.cli import client
from tierd.cli.client import time_text
from tierd.cli.control import headline, queue_line
from tierd.daemon.answers import TopAnswer
from tierd.daemon.client import ControlError, ask
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

    @property
    def width(self) -> int:
        """Width of the widest cell, in characters."""
        return max(cell_len(words) for words in (self.title, *(cell.plain for cell in self.cells)))

    @property
    def has_content(self) -> bool:
        """Whether any cell is not empty."""
        return any(cell.plain for cell in self.cells)


def fitting_table(width: int, columns: Sequence[Column]) -> Table:
    """The table with the columns that fit; empty columns are hidden first."""
    shown = list(columns)
    while len(shown) > 1 and sum(column.width + COLUMN_GAP for column in shown) - COLUMN_GAP > width:
        shown.remove(min(shown, key=lambda column: (column.has_content, column.priority)))
    made = Table(box=None, pad_edge=False, padding=(0, COLUMN_GAP, 0, 0), header_style="bold underline", expand=False)
    for column in shown:
        made.add_column(column.title, justify=column.side, no_wrap=True, overflow="ellipsis")
    for number in range(len(columns[0].cells)):
        made.add_row(*(column.cells[number] for column in shown))
    return made


LINES_BESIDE_TABLES = 16
NOT_LIVE_ROWS = 20


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    top = commands.add_parser("top", help="show targets, jobs, interference and moves live",
                              description="Show the busiest targets and jobs of the last cycle, interference between "
                                          "jobs, and moves, until Ctrl-C. A narrow terminal shows fewer columns. "
                                          "A file, a pipe or a dumb terminal gets one screen.")
    client.add_daemon_options(top)
    top.add_argument("--interval", type=float, default=2.0, metavar="SECONDS",
                     help="refresh interval (default: %(default)s)")
    top.add_argument("--once", action="store_true", help="print one screen and exit")
    top.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Refresh the screen until Ctrl-C; if the daemon does not answer, show the error and retry."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    live = console.is_terminal and not console.is_dumb_terminal and not chosen.once and not chosen.json
    try:
        found = ask(client.socket_of(chosen), {"request": "top", "most": rows(console) if live else NOT_LIVE_ROWS})
        answer = TopAnswer.from_json(found)
    except (ControlError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    if not live:
        console.print_json(json.dumps(found)) if chosen.json else console.print(screen(answer, console.width))
        return 0
    waiting = threading.Event()
    with Live(screen(answer, console.width), console=console, screen=True, auto_refresh=False) as shown:
        try:
            while not waiting.wait(max(0.2, chosen.interval)):
                try:
                    request = {"request": "top", "most": rows(console)}
                    answer = TopAnswer.from_json(ask(client.socket_of(chosen), request, 10.0))
                    shown.update(screen(answer, console.width), refresh=True)
                except (ControlError, ValueError) as error:
                    trouble = Text(printable(f"NO ANSWER: {error}"), "bold red")
                    shown.update(Group(trouble, screen(answer, console.width)), refresh=True)
        except KeyboardInterrupt:
            return 0
    return 0


def rows(console: Console) -> int:
    """Rows of each table that fit on the terminal."""
    return max(3, (console.size.height - LINES_BESIDE_TABLES) // 2)


def screen(answer: TopAnswer, width: int = 120) -> RenderableType:
    """The whole screen, ``width`` characters wide."""
    held = answer.held or answer.draining
    parts: list[RenderableType] = [Text(printable(f"tierd {headline(answer)}"), "bold red" if held else "bold")]
    parts += [Text(printable(f"CANNOT: {words}"), "bold red") for words in answer.faults.values()]
    parts.append(
        Text(
            f"last reading {time_text(answer.last_cycle)}, over {answer.seconds:.0f} s; {queue_line(answer)}, "
            f"{bytes_text(answer.moved_bytes)} moved"
        )
    )
    serious = [f for f in answer.findings if not f.advice_only]
    parts += [Text(printable(f"F{f.id} {f.kind}: {f.sentence}"), "red") for f in serious[:4]]
    if not serious:
        parts.append(Text(quiet_text(answer), "green"))
    if answer.advice:
        parts.append(Text(f"advice: {answer.advice}; see tierctl advise"))
    return Group(*parts, targets(answer, width), jobs(answer, width))


def quiet_text(answer: TopAnswer) -> str:
    """The line for a cycle without findings."""
    if not answer.seconds:
        return "no reading yet"
    if answer.learning:
        return "learning: too few readings to detect slow streams"
    return "no interference found" if answer.jobs else "no active jobs"


def targets(answer: TopAnswer, width: int) -> RenderableType:
    """The table of targets: slowed targets first, then the busiest."""
    found = answer.targets
    made = fitting_table(width, (
        Column("TARGET", LEFT, 9, [Text(printable(row.target)) for row in found]),
        Column("read/s", RIGHT, 5, [Text(bytes_text(row.read_bytes)) for row in found]),
        Column("write/s", RIGHT, 6, [Text(bytes_text(row.write_bytes)) for row in found]),
        Column("ops/s", RIGHT, 4, [Text(f"{row.operations:.0f}") for row in found]),
        Column("jobs", RIGHT, 3, [Text(str(row.jobs)) for row in found]),
        Column("slowdown", RIGHT, 8, [Text(f"{row.slowdown:.2f} x" if row.slowdown else "", "red")
                                      for row in found]),
        Column("condition", LEFT, 7, [Text(printable(row.condition), "yellow") for row in found]),
    ))
    return Group(Text(), made, *left_out(answer.all_targets, len(found), "targets"))


def jobs(answer: TopAnswer, width: int) -> RenderableType:
    """The table of jobs: jobs of findings first, then the busiest."""
    found = answer.jobs
    colours = {"noise": "red", "slowed": "yellow"}
    made = fitting_table(width, (
        Column("JOB", LEFT, 9, [Text(printable(row.job)) for row in found]),
        Column("user", LEFT, 2, [Text(printable(answer.users.get(row.job, ""))) for row in found]),
        Column("read/s", RIGHT, 6, [Text(bytes_text(row.read_bytes)) for row in found]),
        Column("write/s", RIGHT, 7, [Text(bytes_text(row.write_bytes)) for row in found]),
        Column("ops/s", RIGHT, 5, [Text(f"{row.operations:.0f}") for row in found]),
        Column("creates/s", RIGHT, 4, [Text(f"{row.creates:.0f}") for row in found]),
        Column("targets", RIGHT, 3, [Text(str(row.targets)) for row in found]),
        Column("role", LEFT, 8, [Text(row.role, colours.get(row.role, "")) for row in found]),
    ))
    return Group(Text(), made, *left_out(answer.all_jobs, len(found), "jobs"))


def left_out(all_of_them: int, shown: int, what: str) -> list[Text]:
    return [Text(f"and {all_of_them - shown} more {what}", "dim")] if all_of_them > shown else []
