"""The control socket: a Unix socket that answers tierctl, one JSON request and one JSON answer per connection."""

from __future__ import annotations

import json
import os
import socket
import socketserver
import threading
from collections.abc import Callable, Collection
from pathlib import Path

from httpserver.connections import BoundedThreads, Connections, Slot
from tierd.act.orders import TryAgainError
from tierd.config.settings import ControlAccess
from tierd.daemon.answers import Json
from tierd.daemon.client import TIMEOUT_SECONDS, ControlError
from tierd.daemon.peers import Peer

Handle = Callable[[Json], Json]
"""Answers a request. Raises ValueError, with a message for the client, for an unknown request. Many threads call it."""
_CHANGE_REQUEST_MAX_BYTES = 8 << 20
"""Limit of a request from users who may change something: a thousand paths at once."""
_READ_REQUEST_MAX_BYTES = 1 << 16
UNAUTHORIZED_TIMEOUT_SECONDS = 2.0
"""Time limit for the request of a user without any permission."""
_WHO_MAY_READ = "root, control.change_users, and members of control.read_group may look"


class ControlServer:
    """Listens in its own threads. ``changing`` are the requests that need the permission to change something."""

    def __init__(self, path: str, handle: Handle, access: ControlAccess | None = None, changing: Collection[str] = (),
                 peer_of: Callable[[socket.socket], Peer] = Peer.of, staging: Collection[str] = ()) -> None:
        """``staging`` are the requests that ``control.stage_users`` may send."""
        self._path = Path(path)
        self._access = access or ControlAccess()
        self._changing = frozenset(changing)
        self._staging = frozenset(staging)
        self._changes = threading.BoundedSemaphore(MAX_CHANGES)
        refuse_second_daemon(path)
        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)  # systemd makes it for the unit only
        self._path.unlink(missing_ok=True)  # left by a daemon that was killed
        self._handle, self._peer_of = handle, peer_of
        umask = os.umask(0o177)  # no other user may connect until the group is set
        try:
            self._server = ControlSocketServer(str(self._path), self._respond)
        finally:
            os.umask(umask)
        if self._access.read_group is not None:
            os.chown(self._path, -1, self._access.read_group)
        # users who may change something need not be in the group: then all may connect, and the kernel names the user
        self._path.chmod(0o666 if self._access.by_user else 0o660)
        self._thread = threading.Thread(target=self._server.serve_forever, name="tierd-control", daemon=True)
        self._thread.start()

    def _respond(self, connection: socket.socket, on_request: Callable[[], None]) -> None:
        peer = self._peer_of(connection)
        connection.settimeout(
            TIMEOUT_SECONDS
            if self._access.may(peer.uid, peer.groups, change=False) or self._access.may_stage(peer.uid)
            else UNAUTHORIZED_TIMEOUT_SECONDS
        )
        max_bytes = (
            _CHANGE_REQUEST_MAX_BYTES
            if self._access.may(peer.uid, peer.groups, change=True)
            else _READ_REQUEST_MAX_BYTES
        )
        with connection.makefile("rb") as stream:
            line = stream.readline(max_bytes)
        on_request()
        connection.sendall(json.dumps(self.answer(line, self._handle, peer), allow_nan=False).encode() + b"\n")

    def answer(self, line: bytes, handle: Handle, peer: Peer) -> Json:
        """The answer to one request."""
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                return {"error": "a request is a JSON object"}
            name = str(request.get("request"))
            change = name in self._changing
            stages = name in self._staging and self._access.may_stage(peer.uid)
            if not stages and not self._access.may(peer.uid, peer.groups, change=change):
                return {"error": f"not allowed for {peer.name}: " + (
                    "root, and control.change_users, may change what tierd does" if change
                    else _WHO_MAY_READ)}
            if not change:
                return handle({**request, "by": peer.name if stages else ""})
            if not self._changes.acquire(blocking=False):
                raise TryAgainError(f"{MAX_CHANGES} requests are being carried out; try again later")
            try:
                return handle({**request, "by": peer.name})
            finally:
                self._changes.release()
        except TryAgainError as error:
            return {"error": str(error), "again": True}
        except (ValueError, RecursionError) as error:
            return {"error": str(error)}

    def close(self) -> None:
        """Stop listening and take the socket away."""
        self._server.shutdown()
        self._server.server_close()
        self._path.unlink(missing_ok=True)


MAX_CONNECTIONS = 32
MAX_CHANGES = 24
"""Requests that change something, which may wait for the file system, leave the other connections to reading ones."""
DROP_WAIT_SECONDS = 1.0
Respond = Callable[[socket.socket, Callable[[], None]], None]
"""Reads a request from the connection, calls the second argument when it has arrived, and sends the answer."""


class ControlSocketServer(BoundedThreads, socketserver.UnixStreamServer):
    """Listens on the socket. Robinhood may connect many times a second."""

    request_queue_size = 128

    def __init__(self, path: str, respond: Respond) -> None:
        self.connections = Connections(MAX_CONNECTIONS, DROP_WAIT_SECONDS)
        self._respond = respond
        super().__init__(path, socketserver.BaseRequestHandler)

    def serve(self, slot: Slot, client: object) -> None:
        """Serve one connection, in its thread."""

        def arrived() -> None:
            self.connections.request_arrived(slot)

        self._respond(slot.connection, arrived)

    def reject(self, connection: socket.socket) -> None:
        """Ask the client to try again."""
        words = f"{self.connections.limit} requests are being answered; try again later"
        connection.send(json.dumps({"error": words, "again": True}).encode() + b"\n", socket.MSG_DONTWAIT)


def refuse_second_daemon(path: str) -> None:
    """Raise ControlError if another daemon answers at the socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as to:
        to.settimeout(5.0)
        try:
            to.connect(path)
        except OSError:
            return
    raise ControlError(f"{path}: another tierd answers here; give this one an act.socket, act.journal and web.port of "
                       "its own, or stop the other")
