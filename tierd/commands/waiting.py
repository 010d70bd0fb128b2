"""``--wait``: a progress bar until what is queued is done, or something holds it."""

from __future__ import annotations

import argparse
import sys
import threading

from tierd.commands import asking
from tierd.commands.asking import Answer
from tierd.commands.progress import bar
from tierd.service.ask import ControlError, ask
from tierd.text import printable

INTERVAL_SECONDS = 1.0


def option(command: argparse.ArgumentParser) -> None:
    """The option."""
    command.add_argument("--wait", action="store_true", help="until the queue is empty, with a progress bar; 1 if held")


def wait(chosen: argparse.Namespace, nap: threading.Event | None = None) -> int:
    """Look again and again; 0 when nothing waits any more, 1 when something holds it or tierd does not answer."""
    nap = nap or threading.Event()
    try:
        status = ask(asking.socket_of(chosen), {"request": "status"})
        whole = left(status)
        with bar("moves", float(whole)) as progress:
            while left(status) and not status["held"]:
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
    return 0


def left(status: Answer) -> int:
    """What is still to be done."""
    return int(status["waiting_moves"]) + int(status["waiting_orders"])
