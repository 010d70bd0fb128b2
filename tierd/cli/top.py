"""``tierctl top``: show targets, jobs and interference, live or of the past on a terminal."""

from __future__ import annotations

import argparse
import json
import sys

from tierd.cli import client
from tierd.clock import SystemClock
from tierd.daemon.client import ControlError, ask
from tierd.text import printable


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    top = client.add_command(
        commands, "top", "show targets, jobs and interference, live or of the past", run,
        "Show the targets and jobs of the last cycle, and interference between jobs. Keys sort, filter, and open a "
        "target or job; ? lists them. A narrow terminal shows fewer columns. A file, a pipe or a dumb terminal gets "
        "one screen with the busiest.")
    top.add_argument("--interval", type=client.seconds, default=2.0, metavar="SECONDS",
                     help="refresh interval (default: %(default)s)")
    top.add_argument("--once", action="store_true", help="print one screen and exit")
    top.add_argument("--replay", type=client.moment_option, metavar="TIME",
                     help="start in the past: a duration ago (2h) or a time (2026-11-20T03:00); tierd keeps 30 "
                          "days; Left and Right step")


NOT_LIVE_ROWS, LIVE_ROWS = 20, 500
"""Targets and jobs that are asked for; live, more than a person reads. 500 of each need 0.2 s of a processor."""


def run(chosen: argparse.Namespace) -> int:
    """Show one screen, or follow until ``q``."""
    from rich.console import Console  # noqa: PLC0415 -- the help needs none of it

    from tierd.cli.top_tables import Now, Past, Source, screen  # noqa: PLC0415

    console = Console(width=None if sys.stdout.isatty() else 120)
    live = (console.is_terminal and sys.stdin.isatty() and not console.is_dumb_terminal
            and not (chosen.once or chosen.json))
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
        from tierd.cli.top_app import ANSWER_SECONDS, TopApp  # noqa: PLC0415 -- its import takes long

        TopApp(lambda request: ask(path, request, ANSWER_SECONDS), source, chosen.interval).run()
    elif chosen.json:
        console.print_json(json.dumps(found[0]))
    else:
        console.print(screen(head, tables, console.width))
    return 0
