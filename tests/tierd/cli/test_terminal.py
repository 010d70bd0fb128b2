"""tierctl where people and programs stop listening: Ctrl-C, a terminal that cannot go back."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tierd.site import Site

CTL = [sys.executable, "-m", "tierd.cli.tierctl"]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Children inherit that SIGINT is ignored, as it is where a shell runs the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


MAY_GO_ON = "interrupted; tierd may still carry out {}: see tierctl status and tierctl history\n"


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("command", "sentence"), [
    (["status"], "interrupted\n"), (["top"], "interrupted\n"), (["promote", "/a"], MAY_GO_ON.format("promote")),
    (["undo", "F3"], MAY_GO_ON.format("undo")), (["submit", "/a"], "interrupted; accepted before: 0 of 1\n"),
], ids=lambda part: part[0] if isinstance(part, list) else "")
def test_ctrl_c_is_not_an_error(tmp_path: Path, command: list[str], sentence: str) -> None:
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(tmp_path / "s"))
        daemon.listen()
        process = subprocess.Popen([*CTL, *command, "--socket", str(tmp_path / "s")], stderr=subprocess.PIPE)
        connection, _ = daemon.accept()  # it waits for an answer now
        with connection:
            connection.recv(1)
            process.send_signal(signal.SIGINT)
            _, complaint = process.communicate(timeout=60)
    assert (process.returncode, complaint.decode()) == (130, sentence)


def test_a_terminal_that_cannot_go_back_is_shown_it_once(site: Site) -> None:
    supervisor, terminal = os.openpty()
    with open(supervisor, "rb", buffering=0) as shown:
        with open(terminal, "wb", buffering=0) as out:
            done = subprocess.run([*CTL, "top", "--socket", site.socket], stdout=out, check=False, timeout=60,
                                  env={**os.environ, "TERM": "dumb"})
        assert done.returncode == 0
        assert shown.read(4096).startswith(b"tierd running; mode full\r\n")
