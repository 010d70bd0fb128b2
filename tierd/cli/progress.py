"""Progress bars on a terminal, and ``--wait``: wait until the queue is empty, or something holds it.

There is no bar where the output goes to a file.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from tierd.cli import client
from tierd.daemon.answers import QueueAnswer, from_json
from tierd.daemon.client import ControlError, ask
from tierd.text import printable


@contextmanager
def bar(title: str, total: float) -> Iterator[Callable[[float], None]]:
    """What it gives is called with how much of the total is done."""
    console = Console(file=sys.stderr)
    if not console.is_terminal:
        yield lambda _: None
        return
    percent = TextColumn("{task.percentage:3.0f}%")
    columns = TextColumn("{task.description}"), BarColumn(), percent, TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.update(task, completed=done)


INTERVAL_SECONDS = 1.0


def add_wait_option(command: argparse.ArgumentParser) -> None:
    """The option."""
    command.add_argument("--wait", action="store_true", help="until the queue is empty, with a progress bar; 1 if held")


def ask_and_wait(chosen: argparse.Namespace, ask_it: Callable[[], int], *, waits: bool) -> int:
    """Ask for something, and wait for it where that is wanted and it was taken; an exit code."""
    before = outcome_counts(chosen) if waits else {}
    code = ask_it()
    return wait_for_queue(chosen, before) if waits and not code else code


def outcome_counts(chosen: argparse.Namespace) -> dict[str, int]:
    """How acts have ended so far; empty where tierd does not answer, which what follows tells."""
    try:
        return dict(status_of(chosen).outcomes)
    except ControlError:
        return {}


def wait_for_queue(chosen: argparse.Namespace, before: Mapping[str, int], nap: threading.Event | None = None) -> int:
    """Look again and again; 0 when nothing waits any more, 1 when something holds it or tierd does not answer.

    ``before`` is how acts had ended until then: the difference is told.
    """
    nap = nap or threading.Event()
    try:
        status = status_of(chosen)
        whole = moves_left(status)
        with bar("moves", float(whole)) as progress:
            while (moves_left(status) or status.under_way_moves) and not status.held:
                nap.wait(INTERVAL_SECONDS)
                status = status_of(chosen)
                whole = max(whole, moves_left(status))
                progress(float(whole - moves_left(status)))
    except ControlError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("not waited for any longer; it goes on", file=sys.stderr)
        return 1
    if status.held:
        print(printable(f"held: {status.held}; {moves_left(status)} wait"), file=sys.stderr)
        return 1
    if not chosen.json:
        print(ended_meanwhile(before, status.outcomes))
    return 0


def ended_meanwhile(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """How acts ended while one waited, whoever wanted them.

    >>> ended_meanwhile({"migrate done": 2}, {"migrate done": 5, "migrate gone": 1}), ended_meanwhile({}, {})
    ('ended meanwhile: 3 migrate done, 1 migrate gone', 'nothing was done meanwhile')
    """
    more = {name: count - before.get(name, 0) for name, count in sorted(after.items())}
    told = ", ".join(f"{count} {name}" for name, count in more.items() if count > 0)
    return f"ended meanwhile: {told}" if told else "nothing was done meanwhile"


def status_of(chosen: argparse.Namespace) -> QueueAnswer:
    """The queue of the daemon. Raises ControlError."""
    try:
        return from_json(QueueAnswer, ask(client.socket_of(chosen), {"request": "status"}))
    except ValueError as error:
        raise ControlError(str(error)) from error


def moves_left(status: QueueAnswer) -> int:
    """Moves and orders in the queue."""
    return status.waiting_moves + status.waiting_orders
