"""Processes that are forked from one that imported tierd, in place of an interpreter for each.

A fork takes a few milliseconds of processor time, an interpreter that imports tierd about a second.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.process
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

FORKS = multiprocessing.get_context("forkserver")
IMPORTED = ("stack.role", "simulator.scenarios.scenario", "tierd.daemon.client")
"""Modules that are imported once, for all forks."""
Main = Callable[[Sequence[str]], int | None]
"""The main function of a process. Its value is the exit status."""


class Forked:
    """A process. Provides the methods of ``subprocess.Popen`` that are used here."""

    def __init__(self, main: Main, arguments: Sequence[str], log: Path) -> None:
        """Start it. It appends its output to a log, and ends with this process."""
        FORKS.set_forkserver_preload(list(IMPORTED))
        self._process = FORKS.Process(target=_run, args=(main, tuple(arguments), str(log)))
        self._process.start()
        self.pid = self._process.pid or 0

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout: float | None = None) -> None:
        self._process.join(timeout)
        if self.poll() is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0.0)


def _run(main: Main, arguments: Sequence[str], log: str) -> None:
    os.setsid()  # Ctrl-C is for the first process
    with open(log, "ab", buffering=0) as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    first = multiprocessing.parent_process()
    assert first is not None
    threading.Thread(target=_end_with, args=(first,), name="forked-parent", daemon=True).start()
    sys.exit(main(arguments))


def _end_with(first: multiprocessing.process.BaseProcess) -> None:
    """End this process by SIGKILL when the first one has ended, however it ended."""
    first.join()
    os.kill(os.getpid(), signal.SIGKILL)
