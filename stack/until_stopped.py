"""What both stacks do around their run: an option for its length, a temporary folder, and the signals that end it."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from stack.services import StartError
from tierd.clock import SystemClock


@dataclass(frozen=True, slots=True)
class Options:
    """Options of both stacks."""

    seconds: float = float("inf")
    """Length of the run."""
    any_ports: bool = False

    def port(self, usual: int) -> int:
        """The port to try first; 0 for any free one."""
        return 0 if self.any_ports else usual


def run_until_stopped(prog: str, description: str, arguments: Sequence[str] | None,
                      run: Callable[[Path, SystemClock, Options], None]) -> int:
    """Run until Ctrl-C, SIGTERM, or the end of ``--seconds``. Returns 1 if a program does not start.

    ``run`` gets its folder, and the clock that a signal wakes.
    """
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after this many seconds")
    parser.add_argument("--any-ports", action="store_true",
                        help="use any free ports, so that several stacks can be started at the same time")
    options = Options(**vars(parser.parse_args(arguments)))
    clock = SystemClock()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: clock.wake())
    try:
        with tempfile.TemporaryDirectory(prefix="lustre-stack-") as folder:
            run(Path(folder), clock, options)
    except (OSError, StartError) as error:
        print(error, file=sys.stderr)
        return 1
    print("\nStopped. All temporary files are deleted.")
    return 0
