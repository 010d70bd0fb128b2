"""How tierctl talks to the daemon: a Unix socket, one JSON request and one JSON answer a connection.

Who may: root and the user the daemon runs as may do all; users of ``control.change_users`` too; members of
``control.read_group`` may look. Known by the credentials the kernel gives of the other side, not by what it says.
"""

from __future__ import annotations

import json
import os
import pwd
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Answer = Mapping[str, Any]
Handle = Callable[[Mapping[str, Any]], Answer]
"""Answers a request; raises ValueError for one it does not know, in words for whoever asked. Called by many threads."""

_MOST_BYTES = 8 << 20
_CREDENTIALS = struct.Struct("3i")
_PEER_GROUPS = 59
"""SO_PEERGROUPS, since Linux 4.13; the module ``socket`` does not name it."""
TIMEOUT_SECONDS = 30.0


class ControlError(OSError):
    """The daemon could not be asked, or refused."""


def ask(path: str, request: Mapping[str, Any], timeout_seconds: float = TIMEOUT_SECONDS) -> dict[str, Any]:
    """Ask the daemon. Raises ControlError with what to do about it."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as to:
            to.settimeout(timeout_seconds)
            to.connect(path)
            to.sendall(json.dumps(request).encode() + b"\n")
            to.shutdown(socket.SHUT_WR)
            answer = json.loads(to.makefile("rb").read())
    except FileNotFoundError as error:
        raise ControlError(f"{path}: no such socket: is tierd running, and does act.socket name this one?") from error
    except ConnectionRefusedError as error:
        raise ControlError(f"{path}: nobody listens: tierd was killed; systemctl start tierd") from error
    except PermissionError as error:
        raise ControlError(f"{path}: not allowed: tierd answers root, and whom its [control] names") from error
    except TimeoutError as error:
        raise ControlError(f"{path}: no answer within {timeout_seconds:g} s; journalctl -u tierd says what it does"
                           ) from error
    except (OSError, ValueError) as error:
        raise ControlError(f"{path}: {error}") from error
    if not isinstance(answer, dict) or "error" in answer:
        raise ControlError(str(answer.get("error", answer)) if isinstance(answer, dict) else f"{path}: odd answer")
    return answer


@dataclass(frozen=True)
class Access:
    """Who may look, and who may change something, besides root and the user we are."""

    read_group: int | None = None
    change_users: frozenset[int] = frozenset()

    def may(self, peer: Peer, *, change: bool) -> bool:
        """Whether the other side may."""
        if peer.uid in {0, os.geteuid()} | self.change_users:
            return True
        return not change and self.read_group is not None and self.read_group in peer.groups


@dataclass(frozen=True)
class Peer:
    """The other side of a connection, as the kernel knows it."""

    uid: int
    groups: frozenset[int] = frozenset()

    @staticmethod
    def of(connection: socket.socket) -> Peer:
        """Ask the kernel."""
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _, uid, gid = _CREDENTIALS.unpack(raw)
        groups = {gid}
        with suppress(OSError):  # an older kernel: then the first group counts alone
            more = connection.getsockopt(socket.SOL_SOCKET, _PEER_GROUPS, 4 * 65536)
            groups.update(struct.unpack(f"{len(more) // 4}I", more))
        return Peer(uid, frozenset(groups))

    @property
    def name(self) -> str:
        """For a journal: who did it."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return f"uid {self.uid}"


class ControlServer:
    """Listens in threads of its own. ``changing`` are the requests that not everybody who may look may make."""

    def __init__(self, path: str, handle: Handle, access: Access | None = None, changing: Collection[str] = ()) -> None:
        self._path = Path(path)
        self._access = access or Access()
        self._changing = frozenset(changing)
        refuse_a_second(path)
        self._path.unlink(missing_ok=True)  # left by a daemon that was killed
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            timeout = TIMEOUT_SECONDS

            def handle(self) -> None:
                with suppress(OSError):  # whoever asked has gone
                    answer = outer.answer(self.rfile.readline(_MOST_BYTES), handle, Peer.of(self.connection))
                    self.wfile.write(json.dumps(answer).encode() + b"\n")

        umask = os.umask(0o177)  # until its group is set, it is for nobody else
        try:
            self._server = Server(str(self._path), Handler)
        finally:
            os.umask(umask)
        if self._access.read_group is not None:
            os.chown(self._path, -1, self._access.read_group)
        # users who may change something need not be of that group: then the file is open, and the kernel says who asks
        self._path.chmod(0o666 if self._access.change_users else 0o660)
        self._thread = threading.Thread(target=self._server.serve_forever, name="tierd-control", daemon=True)
        self._thread.start()

    def answer(self, line: bytes, handle: Handle, peer: Peer) -> Answer:
        """The answer to one request."""
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                return {"error": "a request is a JSON object"}
            change = str(request.get("request")) in self._changing
            if not self._access.may(peer, change=change):
                return {"error": f"not allowed for {peer.name}: " + (
                    "root, and control.change_users, may change what tierd does" if change
                    else "root, control.change_users, and members of control.read_group may look")}
            return handle({**request, "by": peer.name})
        except (ValueError, RecursionError) as error:
            return {"error": str(error)}

    def close(self) -> None:
        """Stop listening and take the socket away."""
        self._server.shutdown()
        self._server.server_close()
        self._path.unlink(missing_ok=True)


class Server(socketserver.ThreadingUnixStreamServer):
    """A thread a connection; robinhood may connect many times a second."""

    daemon_threads = True
    request_queue_size = 128


def refuse_a_second(path: str) -> None:
    """Raise ControlError where somebody answers at that socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as to:
        to.settimeout(5.0)
        try:
            to.connect(path)
        except OSError:
            return
    raise ControlError(f"{path}: another tierd answers here; give this one an act.socket, act.journal and web.port of "
                       "its own, or stop the other")
