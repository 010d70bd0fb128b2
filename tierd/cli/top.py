"""``tierctl top``: show targets, jobs and interference, live or of the past on a terminal."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import suppress
from functools import partial

from tierd.cli import client
from tierd.clock import SystemClock
from tierd.daemon.client import ControlError, ask
from tierd.text import printable

TYPE_CHECKING = False  # tierctl starts faster without typing
if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from tierd.cli.top_tables import Source
    from tierd.daemon.answers import Ask


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    top = client.add_command(
        commands, "top", "show targets, jobs and interference, live or of the past", run,
        "Show the targets and jobs of the last cycle, and interference between jobs, until Ctrl-C. A small terminal "
        "shows fewer columns and rows. A file, a pipe or a dumb terminal gets one screen with the busiest.")
    top.add_argument("--interval", type=client.seconds, default=2.0, metavar="SECONDS",
                     help="refresh interval (default: %(default)s)")
    top.add_argument("--once", action="store_true", help="print one screen and exit")
    top.add_argument("--replay", type=client.moment_option, metavar="TIME",
                     help="play the past, a record for each interval: from a duration ago (2h) or a time "
                          "(2026-11-20T03:00); tierd keeps 30 days")


NOT_LIVE_ROWS, LIVE_ROWS = 20, 100
"""Targets and jobs that are asked for; live, more than a terminal has lines."""
LEAST_SECONDS, ANSWER_SECONDS = 0.2, 10.0
"""Between two screens, and until an answer."""


def run(chosen: argparse.Namespace) -> int:
    """Show one screen, or follow until Ctrl-C."""
    from rich.console import Console  # noqa: PLC0415 -- the help needs none of it

    from tierd.cli.top_tables import Now, Past, screen  # noqa: PLC0415

    console = Console(width=None if sys.stdout.isatty() else 120)
    live = console.is_terminal and not (console.is_dumb_terminal or chosen.once or chosen.json)
    source: Source = Now(LIVE_ROWS if live else NOT_LIVE_ROWS)
    if chosen.replay:
        source = Past(client.moment(chosen.replay, SystemClock().now()))
    try:
        path = client.socket_of(chosen)
        found = [ask(path, request) for request in source.requests]
        head, tables = client.understood(source.shown, *found)
    except ControlError as error:
        print(printable(str(error)), file=sys.stderr)
        return 1
    if live:
        with suppress(KeyboardInterrupt):
            follow(lambda request: ask(path, request, ANSWER_SECONDS), source, console,
                   partial(SystemClock().wait, max(LEAST_SECONDS, chosen.interval)))
    elif chosen.json:
        console.print_json(json.dumps(found[0]))
    else:
        console.print(screen(head, tables, console.width))
    return 0


def follow(asking: Ask, source: Source, console: Console, wait: Callable[[], object]) -> None:
    """Show a screen after each wait. After an error, what was shown before stays, with the error above it."""
    from rich.live import Live  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from tierd.cli.top_tables import Shown, screen  # noqa: PLC0415

    shown: Shown = [], ()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            trouble = []
            try:
                shown = client.understood(source.shown, *map(asking, source.requests))
            except ControlError as error:
                trouble = [Text(printable(f"NO ANSWER: {error}"), "bold red")]
            head, tables = shown
            live.update(screen([*trouble, *head], tables, console.width, console.height), refresh=True)
            wait()
