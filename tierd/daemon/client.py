"""The client of the control socket: one JSON request, one JSON answer.

Imports next to nothing: ``tierctl submit`` runs once for every file.
"""

from __future__ import annotations

import json
import math
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

TIMEOUT_SECONDS = 30.0
TROUBLES: Mapping[type[Exception], tuple[str, bool]] = {
    FileNotFoundError: ("socket not found: is tierd running (act.socket)? see journalctl -u tierd", True),
    ConnectionRefusedError: ("no process listens; run systemctl start tierd", True),
    PermissionError: ("not allowed: tierd answers only root and users named in [control]", False),
    BlockingIOError: ("control socket busy; try again", True),
    json.JSONDecodeError: ("another program than tierd answers there, or another release", False),
    TimeoutError: ("no answer within {seconds:g} s; a change may go on: tierctl history, journalctl -u tierd", True),
}
"""What to do about an error, and whether the same request may be answered later."""


class ControlError(OSError):
    """The daemon did not answer, or refused the request."""

    def __init__(self, words: str, *, again: bool = False) -> None:
        """``again``: the same request may be answered later, as while the daemon restarts."""
        super().__init__(words)
        self.again = again


def ask(path: str, request: Mapping[str, object], timeout_seconds: float = TIMEOUT_SECONDS) -> dict[str, Any]:
    """Ask the daemon. Returns a JSON object, for ``tierd.daemon.answers.from_json``.

    Raises ControlError with what to do about it.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as to:
            # with a time-out of Python's own, connecting would not wait for a place in the queue
            to.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", math.ceil(timeout_seconds), 0))
            to.connect(path)
            to.settimeout(timeout_seconds)
            with suppress(BrokenPipeError, ConnectionResetError):  # not heard to the end: the answer says why
                to.sendall(json.dumps(request).encode() + b"\n")
                to.shutdown(socket.SHUT_WR)
            said = b""
            with suppress(ConnectionResetError):  # until the other side hangs up, however it does that
                while part := to.recv(1 << 16):
                    said += part
            if not said:
                raise ControlError(f"{path}: connection closed without reply: tierd is stopping or overloaded",
                                   again=True)
            answer = json.loads(said)
    except ControlError:
        raise
    except (OSError, ValueError) as error:
        words, again = TROUBLES.get(type(error), ("{error}", False))
        why = getattr(error, "strerror", None) or error
        raise ControlError(f"{path}: {words.format(error=why, seconds=timeout_seconds)}", again=again) from error
    if not isinstance(answer, dict):
        raise ControlError(f"{path}: unexpected answer")
    if "error" in answer:
        raise ControlError(str(answer["error"]), again=bool(answer.get("again")))
    return answer
