"""What both stacks do around their run: an option for its length, a temporary folder, and the signals that end it."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from stack.services import StartError
from tierd.clock import SystemClock


def run_until_stopped(prog: str, description: str, arguments: Sequence[str] | None,
                      run: Callable[[Path, SystemClock, float], None]) -> int:
    """Run until Ctrl-C, SIGTERM, or the end of ``--seconds``. ``run`` gets its folder, the clock that a signal wakes,
    and the seconds. Returns 1 if a program does not start.
    """
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after this many seconds")
    seconds = parser.parse_args(arguments).seconds
    clock = SystemClock()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: clock.wake())
    try:
        with tempfile.TemporaryDirectory(prefix="lustre-stack-") as folder:
            run(Path(folder), clock, seconds)
    except (OSError, StartError) as error:
        print(error, file=sys.stderr)
        return 1
    print("\nStopped. All temporary files are deleted.")
    return 0
