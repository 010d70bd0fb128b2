"""``tierctl top``: targets, jobs, interference and moves, live on a terminal.

A table is no wider than its terminal: where that is narrow, columns that matter less are left out, and none is cut.
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
from tierd.cli.client import utc_time
from tierd.cli.control import headline, queue_line
from tierd.daemon.answers import TopAnswer, from_json
from tierd.daemon.client import ControlError, ask
from tierd.text import bytes_text, printable

LEFT: Literal["left"] = "left"
RIGHT: Literal["right"] = "right"
COLUMN_GAP = 2
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


def fitting_table(width: int, columns: Sequence[Column]) -> Table:
    """The table without the columns there is no room for; empty ones go before all others."""
    kept = list(columns)
    while len(kept) > 1 and sum(column.width + COLUMN_GAP for column in kept) - COLUMN_GAP > width:
        kept.remove(min(kept, key=lambda column: (column.says_something, column.matters)))
    made = Table(box=None, pad_edge=False, padding=(0, COLUMN_GAP, 0, 0), header_style="bold underline", expand=False)
    for column in kept:
        made.add_column(column.title, justify=column.side, no_wrap=True, overflow="ellipsis")
    for number in range(len(columns[0].cells)):
        made.add_row(*(column.cells[number] for column in kept))
    return made


LINES_BESIDE_TABLES = 16
NOT_LIVE_ROWS = 20


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command line."""
    top = commands.add_parser("top", help="targets, jobs, interference and moves, live; Ctrl-C ends it",
                              description="The busiest targets and jobs of the last cycle, who slows whom, and what "
                                          "moves. Where output is no terminal, or one that cannot "
                                          "go back, it is shown once. A narrow one shows fewer columns.")
    client.add_daemon_options(top)
    top.add_argument("--interval", type=float, default=2.0, metavar="SECONDS",
                     help="between looks (default: %(default)s)")
    top.add_argument("--once", action="store_true", help="show it once, and end")
    top.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Show it until Ctrl-C; a daemon that does not answer is said, and asked again."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    live = console.is_terminal and not console.is_dumb_terminal and not chosen.once and not chosen.json
    try:
        found = ask(client.socket_of(chosen), {"request": "top", "most": rows(console) if live else NOT_LIVE_ROWS})
        answer = from_json(TopAnswer, found)
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
                    answer = from_json(TopAnswer, ask(client.socket_of(chosen), request, 10.0))
                    shown.update(screen(answer, console.width), refresh=True)
                except (ControlError, ValueError) as error:
                    trouble = Text(printable(f"NO ANSWER: {error}"), "bold red")
                    shown.update(Group(trouble, screen(answer, console.width)), refresh=True)
        except KeyboardInterrupt:
            return 0
    return 0


def rows(console: Console) -> int:
    """Of each table, as many as the terminal has room for at the moment."""
    return max(3, (console.size.height - LINES_BESIDE_TABLES) // 2)


def screen(answer: TopAnswer, width: int = 120) -> RenderableType:
    """The whole picture, in so many columns."""
    held = answer.held or answer.draining
    parts: list[RenderableType] = [Text(printable(f"tierd {headline(answer)}"), "bold red" if held else "bold")]
    parts += [Text(printable(f"CANNOT: {words}"), "bold red") for words in answer.faults.values()]
    parts.append(
        Text(
            f"last reading {utc_time(answer.last_cycle)}, over {answer.seconds:.0f} s; {queue_line(answer)}, "
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
    """What is said where nothing is found."""
    if not answer.seconds:
        return "no reading yet"
    if answer.learning:
        return "learning: too little is known yet to say whether a stream is slowed"
    return f"{'no interference found' if answer.jobs else 'no active jobs'}"


def targets(answer: TopAnswer, width: int) -> RenderableType:
    """The slowed ones first, then the busiest."""
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
    """Those of findings first, then the busiest."""
    found = answer.jobs
    colours = {"noise": "red", "slowed": "yellow"}
    made = fitting_table(width, (
        Column("JOB", LEFT, 9, [Text(printable(row.job)) for row in found]),
        Column("read/s", RIGHT, 6, [Text(bytes_text(row.read_bytes)) for row in found]),
        Column("write/s", RIGHT, 7, [Text(bytes_text(row.write_bytes)) for row in found]),
        Column("ops/s", RIGHT, 5, [Text(f"{row.operations:.0f}") for row in found]),
        Column("creates/s", RIGHT, 4, [Text(f"{row.creates:.0f}") for row in found]),
        Column("targets", RIGHT, 3, [Text(str(row.targets)) for row in found]),
        Column("part", LEFT, 8, [Text(row.role, colours.get(row.role, "")) for row in found]),
    ))
    return Group(Text(), made, *left_out(answer.all_jobs, len(found), "jobs"))


def left_out(all_of_them: int, shown: int, what: str) -> list[Text]:
    """How many rows there was no room for."""
    return [Text(f"and {all_of_them - shown} more {what}", "dim")] if all_of_them > shown else []
