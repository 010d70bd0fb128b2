"""The other side of a connection to the control socket: its user and groups, by the kernel's credentials (unix(7))."""

from __future__ import annotations

import ctypes
import errno
import os
import pwd
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass

_CREDENTIALS = struct.Struct("iII")
"""``struct ucred``: process, user, group."""
_PEER_GROUPS = 59
"""SO_PEERGROUPS, since Linux 4.13; the module ``socket`` does not name it."""
_SHORT_BYTES = 1024
"""Maximum buffer of CPython's ``getsockopt``: space for 256 groups."""
_LONG_BYTES = 4 * 65536
"""Room for NGROUPS_MAX."""


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
            more = _groups(connection)
            groups.update(struct.unpack(f"{len(more) // 4}I", more))
        return Peer(uid, frozenset(groups))

    @property
    def name(self) -> str:
        """For a journal: who did it."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return f"uid {self.uid}"


def _groups(connection: socket.socket) -> bytes:
    """Supplementary groups, as the kernel gives them. Raises OSError."""
    try:
        return connection.getsockopt(socket.SOL_SOCKET, _PEER_GROUPS, _SHORT_BYTES)
    except OSError as error:
        if error.errno != errno.ERANGE:
            raise
    buffer, size = ctypes.create_string_buffer(_LONG_BYTES), ctypes.c_uint32(_LONG_BYTES)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.getsockopt(connection.fileno(), socket.SOL_SOCKET, _PEER_GROUPS, buffer, ctypes.byref(size)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return buffer.raw[: size.value]
