"""Programs of other people, started for as long as the stack runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tierd.clock import Clock

PATIENCE_SECONDS = 60.0


class StartError(RuntimeError):
    """A program did not come up; the words say which, and the end of what it wrote."""


@contextmanager
def program(command: Sequence[str], ready: str, log: Path, clock: Clock,
            environment: Mapping[str, str] | None = None) -> Iterator[None]:
    """Run a program until the block ends; entered when its URL answers. Raises StartError."""
    if shutil.which("setpriv"):
        command = ["setpriv", "--pdeathsig", "TERM", *command]  # even kill -9 of this process leaves nothing running
    with log.open("wb") as out:
        process = subprocess.Popen(  # noqa: S603 -- Prometheus, Alertmanager, Grafana, with arguments of our own
            command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, **(environment or {})})
    try:
        await_answer(process, ready, log, clock)
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def await_answer(process: subprocess.Popen[bytes], url: str, log: Path, clock: Clock) -> None:
    """Wait until a URL answers."""
    until = clock.now() + PATIENCE_SECONDS
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()  # noqa: S310 -- on loopback
            return
        except OSError as error:
            stopped = process.poll() is not None or clock.wait(0.2)
            if stopped or clock.now() > until:
                raise StartError(f"{url} does not answer: {log.read_text(errors='replace')[-1000:]}") from error
