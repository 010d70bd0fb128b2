"""``tierctl top``: targets, jobs, interference and moves, live on a terminal."""

from __future__ import annotations

import argparse
import json
import sys
import threading

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tierd.commands import asking
from tierd.commands.asking import Answer, clock, megabytes
from tierd.commands.daemon import headline
from tierd.service.ask import ControlError, ask
from tierd.text import printable

LINES_BESIDE_TABLES = 16


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command line."""
    top = commands.add_parser("top", help="targets, jobs, interference and moves, live; Ctrl-C ends it",
                              description="The busiest targets and jobs of the last cycle, who slows whom, and what "
                                          "moves. Where output is no terminal, it is shown once.")
    asking.options(top)
    top.add_argument("--interval", type=float, default=2.0, metavar="SECONDS",
                     help="between looks (default: %(default)s)")
    top.add_argument("--once", action="store_true", help="show it once, and end")
    top.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Show it until Ctrl-C; a daemon that does not answer is said, and asked again."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    live = console.is_terminal and not chosen.once and not chosen.json
    rows = max(3, (console.size.height - LINES_BESIDE_TABLES) // 2) if live else 20
    try:
        answer = ask(asking.socket_of(chosen), {"request": "top", "most": rows})
    except ControlError as error:
        print(error, file=sys.stderr)
        return 1
    if not live:
        console.print_json(json.dumps(answer)) if chosen.json else console.print(screen(answer))
        return 0
    waiting = threading.Event()
    with Live(screen(answer), console=console, screen=True, auto_refresh=False) as shown:
        try:
            while not waiting.wait(max(0.2, chosen.interval)):
                try:
                    answer = ask(asking.socket_of(chosen), {"request": "top", "most": rows}, 10.0)
                    shown.update(screen(answer), refresh=True)
                except ControlError as error:
                    trouble = Text(printable(f"NO ANSWER: {error}"), "bold red")
                    shown.update(Group(trouble, screen(answer)), refresh=True)
        except KeyboardInterrupt:
            return 0
    return 0


def screen(answer: Answer) -> RenderableType:
    """The whole picture."""
    held = answer["held"] or answer["draining"]
    parts: list[RenderableType] = [Text(printable(f"tierd {headline(answer)}"), "bold red" if held else "bold")]
    parts += [Text(printable(f"CANNOT: {words}"), "bold red") for words in answer["faults"].values()]
    moves = f"{answer['waiting_moves']} moves wait ({megabytes(answer['waiting_bytes'])})"
    parts.append(Text(f"last look {clock(answer['last_cycle'])}, over {answer['seconds']:.0f} s; {moves}, "
                      f"{megabytes(answer['moved_bytes'])} moved"))
    serious = [f for f in answer["findings"] if not f["advice_only"]]
    parts += [Text(printable(f"F{f['id']} {f['kind']}: {f['evidence']['sentence']}"), "red") for f in serious[:4]]
    if not serious:
        parts.append(Text(quiet(answer), "green"))
    if answer["advice"]:
        parts.append(Text(f"{answer['advice']} pieces of advice: tierctl advise"))
    return Group(*parts, targets(answer), jobs(answer))


def quiet(answer: Answer) -> str:
    """What is said where nothing is found."""
    if not answer["seconds"]:
        return "no look yet"
    return f"{'nobody slows anybody' if answer['jobs'] else 'no job is at work'}, as far as can be seen"


def table(*columns: tuple[str, str]) -> Table:
    """A table without lines; a column is its title and ``left`` or ``right``."""
    made = Table(box=None, pad_edge=False, header_style="bold underline", expand=False)
    for title, side in columns:
        made.add_column(title, justify="right" if side == "right" else "left", no_wrap=True, overflow="ellipsis")
    return made


def targets(answer: Answer) -> RenderableType:
    """The slowed ones first, then the busiest."""
    made = table(("TARGET", "left"), ("read/s", "right"), ("write/s", "right"), ("ops/s", "right"), ("jobs", "right"),
                 ("slowdown", "right"), ("condition", "left"))
    for row in answer["targets"]:
        slow = row["slowdown"]
        made.add_row(Text(printable(row["target"])), megabytes(row["read_bytes"]), megabytes(row["write_bytes"]),
                     f"{row['operations']:.0f}", str(row["jobs"]),
                     Text(f"{slow:.2f} x", "red") if slow else "", Text(printable(row["condition"]), "yellow"))
    return Group(Text(), made, *left_out(answer.get("all_targets", 0), len(answer["targets"]), "targets"))


def jobs(answer: Answer) -> RenderableType:
    """Those of findings first, then the busiest."""
    made = table(("JOB", "left"), ("read/s", "right"), ("write/s", "right"), ("ops/s", "right"), ("creates/s", "right"),
                 ("targets", "right"), ("part", "left"))
    for row in answer["jobs"]:
        colour = {"noise": "red", "slowed": "yellow"}.get(row["role"], "")
        made.add_row(Text(printable(row["job"])), megabytes(row["read_bytes"]), megabytes(row["write_bytes"]),
                     f"{row['operations']:.0f}", f"{row['creates']:.0f}", str(row["targets"]),
                     Text(row["role"], colour))
    return Group(Text(), made, *left_out(answer.get("all_jobs", 0), len(answer["jobs"]), "jobs"))


def left_out(all_of_them: int, shown: int, what: str) -> list[Text]:
    """How many rows there was no room for."""
    return [Text(f"and {all_of_them - shown} more {what}", "dim")] if all_of_them > shown else []
