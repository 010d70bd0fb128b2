"""Progress bars on a terminal, and ``--wait``: wait until the queue is empty or held.

A file or pipe gets no progress bar.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from tierd.cli import client
from tierd.daemon.answers import StatusAnswer
from tierd.daemon.client import ControlError, ask
from tierd.text import printable

TYPE_CHECKING = False  # tierctl starts faster without typing
if TYPE_CHECKING:
    from threading import Event


@contextmanager
def bar(title: str, total: float) -> Iterator[Callable[[float], None]]:
    """Show a progress bar; the function it yields sets how much of the total is done."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 -- only on terminals
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    console = Console(file=sys.stderr)
    percent = TextColumn("{task.percentage:3.0f}%")
    columns = TextColumn("{task.description}"), BarColumn(), percent, TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.update(task, completed=done)


INTERVAL_SECONDS = 1.0


def add_wait_option(command: argparse.ArgumentParser) -> None:
    command.add_argument("--wait", action="store_true",
                         help="wait until the queue is empty; exit status 1 if it is held")


def ask_and_wait(chosen: argparse.Namespace, ask_it: Callable[[], int], *, waits: bool) -> int:
    """Send a request; if it succeeds and ``waits`` is set, wait for the queue. Returns the exit status."""
    before: Mapping[str, int] = {}
    if waits:
        with suppress(ControlError):  # the next request reports the error
            before = status_of(chosen).outcomes
    code = ask_it()
    return wait_for_queue(chosen, before) if waits and not code else code


def wait_for_queue(chosen: argparse.Namespace, before: Mapping[str, int], nap: Event | None = None) -> int:
    """Poll the status; 0 when the queue is empty, 1 when it is held or tierd does not answer.

    ``before`` has the number of acts by outcome at the start; the difference is printed.
    """
    from threading import Event  # noqa: PLC0415 -- not for commands that do not wait

    nap = nap or Event()
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
        print("stopped waiting; tierd continues", file=sys.stderr)
        return 1
    if status.held:
        print(printable(f"held: {status.held}; {moves_left(status)} left in the queue"), file=sys.stderr)
        return 1
    if not chosen.json:
        print(ended_meanwhile(before, status.outcomes))
    return 0


def ended_meanwhile(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """The number of acts by outcome that ended during the wait, of all orders and findings.

    >>> ended_meanwhile({"migrate done": 2}, {"migrate done": 5, "migrate gone": 1}), ended_meanwhile({}, {})
    ('ended while waiting: 3 migrate done, 1 migrate gone', 'no acts ended while waiting')
    """
    more = {name: count - before.get(name, 0) for name, count in sorted(after.items())}
    ended = ", ".join(f"{count} {name}" for name, count in more.items() if count > 0)
    return f"ended while waiting: {ended}" if ended else "no acts ended while waiting"


def status_of(chosen: argparse.Namespace) -> StatusAnswer:
    """The queue of the daemon. Raises ControlError."""
    try:
        return StatusAnswer.from_json(ask(client.socket_of(chosen), {"request": "status"}))
    except ValueError as error:
        raise ControlError(str(error)) from error


def moves_left(status: StatusAnswer) -> int:
    return status.waiting_moves + status.waiting_orders
