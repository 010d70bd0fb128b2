"""The control socket: a Unix socket that answers tierctl, one JSON request and one JSON answer per connection.

The kernel names the user of the other side and its groups (unix(7)).
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from httpserver.connections import BoundedThreads, Connections, Slot
from tierd.act.orders import TryAgainError
from tierd.config.settings import ControlSettings
from tierd.daemon.answers import Ask, Json, NoAnswerError
from tierd.daemon.client import TIMEOUT_SECONDS, ControlError
from tierd.daemon.users import name_of

_CHANGE_REQUEST_MAX_BYTES = 8 << 20
"""Limit of a request from users who may change something: a thousand paths at once."""
_READ_REQUEST_MAX_BYTES = 1 << 16
UNAUTHORIZED_TIMEOUT_SECONDS = 2.0
"""Time limit for the request of a user without any permission."""
_WHO_MAY_CHANGE = "root, and control.change_users, may change what tierd does"
_WHO_MAY_READ = "root, control.change_users, and members of control.read_group may read"
_CREDENTIALS = struct.Struct("iII")
"""``struct ucred``: process, user, group."""
_PEER_GROUPS = 59
"""SO_PEERGROUPS, since Linux 4.13; the module ``socket`` does not name it."""
_GROUPS_BYTES = 4 * 65536
"""Room for NGROUPS_MAX."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The other side of a connection, as the kernel knows it."""

    uid: int
    groups: frozenset[int] = frozenset()

    @staticmethod
    def of(connection: socket.socket) -> Peer:
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _, uid, gid = _CREDENTIALS.unpack(raw)
        groups = {gid}
        with suppress(OSError):  # an older kernel: then the first group counts alone
            more = _groups(connection)
            groups.update(struct.unpack(f"{len(more) // 4}I", more))
        return Peer(uid, frozenset(groups))

    @property
    def name(self) -> str:
        """For a journal: who did it."""
        return name_of(self.uid) or f"uid {self.uid}"


def _groups(connection: socket.socket) -> bytes:
    # CPython's getsockopt has room for 256 groups
    buffer, size = ctypes.create_string_buffer(_GROUPS_BYTES), ctypes.c_uint32(_GROUPS_BYTES)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.getsockopt(connection.fileno(), socket.SOL_SOCKET, _PEER_GROUPS, buffer, ctypes.byref(size)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return buffer.raw[: size.value]


MAX_CONNECTIONS = 32
MAX_CHANGES = 24
"""Requests that change something, which may wait for the file system, leave the other connections to reading ones."""


class ControlServer(BoundedThreads):
    """Listens in its own threads. ``changing`` are the requests that need the permission to change something, and
    ``staging`` those that ``control.stage_users`` may send.
    """

    def __init__(self, path: str, handle: Ask, access: ControlSettings | None = None, changing: Collection[str] = (),
                 staging: Collection[str] = (), peer_of: Callable[[socket.socket], Peer] = Peer.of) -> None:
        self._path = Path(path)
        self._access, self._changing, self._staging = access or ControlSettings(), changing, staging
        self._changes = threading.BoundedSemaphore(MAX_CHANGES)
        refuse_second_daemon(path)
        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)  # systemd makes it for the unit only
        self._path.unlink(missing_ok=True)  # left by a daemon that was killed
        self._handle, self._peer_of = handle, peer_of
        listener = socket.socket(socket.AF_UNIX)
        super().__init__(listener, Connections(MAX_CONNECTIONS), "tierd-control")
        umask = os.umask(0o177)  # no other user may connect until the group is set
        try:
            listener.bind(path)
            listener.listen(128)  # robinhood may connect many times a second
        finally:
            os.umask(umask)
        if self._access.read_group is not None:
            os.chown(self._path, -1, self._access.read_group)
        # users who may change something need not be in the group: then all may connect, and the kernel names the user
        self._path.chmod(0o666 if self._access.by_user else 0o660)
        self.start()

    def serve(self, slot: Slot) -> None:
        connection = slot.connection
        peer = self._peer_of(connection)
        changes = self._access.may(peer.uid, peer.groups, change=True) or peer.uid in self._access.stage_users
        known = changes or self._access.may(peer.uid, peer.groups, change=False)
        connection.settimeout(TIMEOUT_SECONDS if known else UNAUTHORIZED_TIMEOUT_SECONDS)
        with connection.makefile("rb") as stream:
            line = stream.readline(_CHANGE_REQUEST_MAX_BYTES if changes else _READ_REQUEST_MAX_BYTES)
        self.connections.request_arrived(slot)
        said = json.dumps(self.answer(line, peer), allow_nan=False).encode() + b"\n"
        slot.sending()  # whoever does not read it gives way to others
        connection.sendall(said)

    def answer(self, line: bytes, peer: Peer) -> Json:
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                return {"error": "a request is a JSON object"}
            change = (name := str(request.get("request"))) in self._changing
            stages = name in self._staging and peer.uid in self._access.stage_users
            if not stages and not self._access.may(peer.uid, peer.groups, change=change):
                return {"error": f"not allowed for {peer.name}: {_WHO_MAY_CHANGE if change else _WHO_MAY_READ}"}
            if not change:
                # the name is that of the kernel, whatever the request says
                return self._handle({**request, "by": peer.name if stages else ""})
            if not self._changes.acquire(blocking=False):
                raise TryAgainError(f"{MAX_CHANGES} requests are being carried out; try again later")
            try:
                return self._handle({**request, "by": peer.name})
            finally:
                self._changes.release()
        except TryAgainError as error:
            return {"error": str(error), "again": True}
        except (ValueError, RecursionError, NoAnswerError) as error:
            return {"error": str(error)}

    def reject(self, connection: socket.socket) -> None:
        words = f"{self.connections.limit} requests are being answered; try again later"
        # whoever does not read it must not hold up the others
        connection.send(json.dumps({"error": words, "again": True}).encode() + b"\n", socket.MSG_DONTWAIT)

    def close(self, drain_seconds: float = 0.0) -> None:
        super().close(drain_seconds)
        self._path.unlink(missing_ok=True)


def refuse_second_daemon(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as to:
        to.settimeout(5.0)
        try:
            to.connect(path)
        except OSError as error:
            if not isinstance(error, TimeoutError | BlockingIOError):  # it has more connections than may wait
                return
    raise ControlError(f"{path}: another tierd answers here; give this one an act.socket, act.journal and web.port of "
                       "its own, or stop the other")
