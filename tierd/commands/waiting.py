"""``--wait``: a progress bar until what is queued is done, or something holds it."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable, Mapping

from tierd.commands import asking
from tierd.commands.asking import Answer
from tierd.commands.progress import bar
from tierd.service.ask import ControlError, ask
from tierd.text import printable

INTERVAL_SECONDS = 1.0


def option(command: argparse.ArgumentParser) -> None:
    """The option."""
    command.add_argument("--wait", action="store_true", help="until the queue is empty, with a progress bar; 1 if held")


def asked(chosen: argparse.Namespace, ask_it: Callable[[], int], *, waits: bool) -> int:
    """Ask for something, and wait for it where that is wanted and it was taken; an exit code."""
    before = ended(chosen) if waits else {}
    code = ask_it()
    return wait(chosen, before) if waits and not code else code


def ended(chosen: argparse.Namespace) -> dict[str, int]:
    """How acts have ended so far; empty where tierd does not answer, which what follows tells."""
    try:
        return dict(ask(asking.socket_of(chosen), {"request": "status"})["outcomes"])
    except ControlError:
        return {}


def wait(chosen: argparse.Namespace, before: Mapping[str, int], nap: threading.Event | None = None) -> int:
    """Look again and again; 0 when nothing waits any more, 1 when something holds it or tierd does not answer.

    ``before`` is how acts had ended until then: the difference is told.
    """
    nap = nap or threading.Event()
    try:
        status = ask(asking.socket_of(chosen), {"request": "status"})
        whole = left(status)
        with bar("moves", float(whole)) as progress:
            while (left(status) or status["under_way_moves"]) and not status["held"]:
                nap.wait(INTERVAL_SECONDS)
                status = ask(asking.socket_of(chosen), {"request": "status"})
                whole = max(whole, left(status))
                progress(float(whole - left(status)))
    except ControlError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("not waited for any longer; it goes on", file=sys.stderr)
        return 1
    if status["held"]:
        print(printable(f"held: {status['held']}; {left(status)} wait"), file=sys.stderr)
        return 1
    if not chosen.json:
        print(meanwhile(before, status["outcomes"]))
    return 0


def meanwhile(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """How acts ended while one waited, whoever wanted them.

    >>> meanwhile({"migrate done": 2}, {"migrate done": 5, "migrate gone": 1}), meanwhile({}, {})
    ('ended meanwhile: 3 migrate done, 1 migrate gone', 'nothing was done meanwhile')
    """
    more = {name: count - before.get(name, 0) for name, count in sorted(after.items())}
    told = ", ".join(f"{count} {name}" for name, count in more.items() if count > 0)
    return f"ended meanwhile: {told}" if told else "nothing was done meanwhile"


def left(status: Answer) -> int:
    """What is still to be done."""
    return int(status["waiting_moves"]) + int(status["waiting_orders"])
