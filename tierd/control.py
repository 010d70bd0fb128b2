"""How tierctl talks to the daemon: a Unix socket, one JSON request and one JSON answer a connection.

Who may: root, and the user the daemon runs as, by the credentials the kernel gives of the other side.
"""

from __future__ import annotations

import json
import os
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Answer = Mapping[str, Any]
Handle = Callable[[Mapping[str, Any]], Answer]
"""Answers a request; raises ValueError for one it does not know, in words for whoever asked."""

_MOST_BYTES = 1 << 20
_CREDENTIALS = struct.Struct("3i")
TIMEOUT_SECONDS = 30.0


class ControlError(OSError):
    """The daemon could not be asked, or refused."""


def ask(path: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Ask the daemon. Raises ControlError with what to do about it."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as to:
            to.settimeout(TIMEOUT_SECONDS)
            to.connect(path)
            to.sendall(json.dumps(request).encode() + b"\n")
            to.shutdown(socket.SHUT_WR)
            answer = json.loads(to.makefile("rb").read())
    except FileNotFoundError as error:
        raise ControlError(f"{path}: no such socket: is tierd running, and does act.socket name this one?") from error
    except PermissionError as error:
        raise ControlError(f"{path}: not allowed: tierd answers root and the user it runs as") from error
    except (OSError, ValueError) as error:
        raise ControlError(f"{path}: {error}") from error
    if not isinstance(answer, dict) or "error" in answer:
        raise ControlError(str(answer.get("error", answer)) if isinstance(answer, dict) else f"{path}: odd answer")
    return answer


class ControlServer:
    """Listens in threads of its own. ``handle`` is called with one request at a time."""

    def __init__(self, path: str, handle: Handle) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()
        self._path.unlink(missing_ok=True)  # left by a daemon that was killed; a living one holds the lease
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            timeout = TIMEOUT_SECONDS

            def handle(self) -> None:
                if not allowed(self.connection):
                    self.wfile.write(b'{"error": "not allowed: root, or the user tierd runs as"}\n')
                    return
                self.wfile.write(json.dumps(outer.answer(self.rfile.readline(_MOST_BYTES), handle)).encode() + b"\n")

        self._server = socketserver.ThreadingUnixStreamServer(str(self._path), Handler)
        self._server.daemon_threads = True
        self._path.chmod(0o660)
        self._thread = threading.Thread(target=self._server.serve_forever, name="tierd-control", daemon=True)
        self._thread.start()

    def answer(self, line: bytes, handle: Handle) -> Answer:
        """The answer to one request."""
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                return {"error": "a request is a JSON object"}
            with self._lock:
                return handle(request)
        except ValueError as error:
            return {"error": str(error)}

    def close(self) -> None:
        """Stop listening and take the socket away."""
        self._server.shutdown()
        self._server.server_close()
        self._path.unlink(missing_ok=True)


def allowed(connection: socket.socket) -> bool:
    """Whether the other side is root or the user we are."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(raw)
    return uid in {0, os.geteuid()}
