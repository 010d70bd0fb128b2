"""``tierctl top``: show targets, jobs, interference and moves live on a terminal."""

from __future__ import annotations

import argparse
import json
import sys

from tierd.cli import client
from tierd.daemon.client import ControlError, ask


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    top = commands.add_parser("top", help="show targets, jobs, interference and moves live",
                              description="Show the targets and jobs of the last cycle, and interference between jobs. "
                                          "Keys sort, filter, and open a target or job; ? lists them. A narrow "
                                          "terminal shows fewer columns. A file, a pipe or a dumb terminal gets one "
                                          "screen with the busiest.")
    client.add_daemon_options(top)
    top.add_argument("--interval", type=float, default=2.0, metavar="SECONDS",
                     help="refresh interval (default: %(default)s)")
    top.add_argument("--once", action="store_true", help="print one screen and exit")
    top.set_defaults(run=run)


NOT_LIVE_ROWS, LIVE_ROWS = 20, 1000
"""Rows of each table."""
ANSWER_SECONDS = 10.0


def run(chosen: argparse.Namespace) -> int:
    """Show one screen, or follow until ``q``. If the daemon does not answer at first, the error is the result."""
    from rich.console import Console  # noqa: PLC0415 -- the help needs none of it

    from tierd.cli.top_tables import screen  # noqa: PLC0415
    from tierd.daemon.answers import TopAnswer  # noqa: PLC0415

    console = Console(width=None if sys.stdout.isatty() else 120)
    live = (console.is_terminal and sys.stdin.isatty() and not console.is_dumb_terminal
            and not (chosen.once or chosen.json))
    try:
        path = client.socket_of(chosen)
        found = ask(path, {"request": "top", "most": 1 if live else NOT_LIVE_ROWS})
        answer = TopAnswer.from_json(found)
    except (ControlError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    if live:
        from tierd.cli.top_app import TopApp  # noqa: PLC0415 -- half a second

        TopApp(lambda request: ask(path, request, ANSWER_SECONDS), chosen.interval).run()
    elif chosen.json:
        console.print_json(json.dumps(found))
    else:
        console.print(screen(answer, console.width))
    return 0
