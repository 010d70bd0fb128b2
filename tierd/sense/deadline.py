"""So many seconds for a whole answer, however slowly it comes."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from http.client import HTTPConnection


class Deadline:
    """Hangs up on a server that keeps sending a little: the time-out of a socket is for each read only."""

    def __init__(self, connection: HTTPConnection, seconds: float) -> None:
        self._connection = connection
        self._socket: socket.socket | None = None
        self.passed = False
        self._timer = threading.Timer(seconds, self._hang_up)
        self._timer.daemon = True
        self._timer.start()

    def watch(self) -> None:
        """Take hold of the socket, now that there is one: a response takes it away from the connection."""
        self._socket = self._connection.sock

    def cancel(self) -> None:
        """The request is over."""
        self._timer.cancel()

    def _hang_up(self) -> None:
        self.passed = True
        held: socket.socket | None = self._socket or self._connection.sock
        if held is not None:
            with suppress(OSError):  # closed meanwhile
                socket.socket.shutdown(held, socket.SHUT_RDWR)
