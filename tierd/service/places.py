"""Servers that anybody on the machine may connect to: a bounded number of threads, and nobody kept out by the silent.

The unit grants tierd so many tasks, and a cycle needs some of them. When all places are taken, the connection that has
been silent longest gives up its own: whoever has a question asks it at once. One that is being answered never does.
"""

from __future__ import annotations

import errno
import socket
import socketserver
import sys
import threading
from contextlib import suppress
from typing import Any

NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
BREATH_SECONDS = 0.2
A_DAY_SECONDS = 86400.0
CUT_SECONDS = 1.0
"""So long is waited for the thread of a connection that was cut off."""


class Places(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Mixed into a server. Its handlers call :meth:`heard` when a request has arrived."""

    daemon_threads = True
    most_at_once = 32

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._changed = threading.Condition()
        self._silent: dict[Any, None] = {}
        self._answered: set[Any] = set()
        self._cut: set[Any] = set()
        """Cut off, and their threads have not noticed yet."""
        super().__init__(*arguments, **named)

    def heard(self, connection: Any) -> None:
        """Its request has arrived."""
        with self._changed:
            if connection in self._silent:
                del self._silent[connection]
                self._answered.add(connection)

    def count(self) -> int:
        """How many are open."""
        return len(self._silent) + len(self._answered) + len(self._cut)

    def turn_away(self, connection: Any) -> None:
        """Say that all places are taken, without waiting for anybody."""

    def serve_forever(self, poll_interval: float = A_DAY_SECONDS) -> None:
        """Accept until ``shutdown``, without waking the processor in between."""
        super().serve_forever(poll_interval)

    def shutdown(self) -> None:
        """Accept nothing more."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes the loop up
        super().shutdown()

    def get_request(self) -> tuple[Any, Any]:
        """Accept a connection. Where the system has no room for it, it is tried again soon, and not all the time."""
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in NO_ROOM:
                threading.Event().wait(BREATH_SECONDS)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for a connection, where there is a place."""
        if not self._placed(request):
            with suppress(OSError):
                self.turn_away(request)
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # the system gives no more threads
            self._gone(request)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """In its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._gone(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away, or stop reading, are no errors; what else is raised is."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def _placed(self, connection: Any) -> bool:
        with self._changed:
            if self.count() >= self.most_at_once and self._silent:
                first = next(iter(self._silent))
                del self._silent[first]
                self._cut.add(first)
                with suppress(OSError):  # gone already; else its thread sees the end of input, and ends
                    first.shutdown(socket.SHUT_RDWR)
            if self._cut:
                self._changed.wait_for(lambda: self.count() < self.most_at_once, CUT_SECONDS)
            if self.count() >= self.most_at_once:
                return False
            self._silent[connection] = None
            return True

    def _gone(self, connection: Any) -> None:
        with self._changed:
            self._silent.pop(connection, None)
            self._answered.discard(connection)
            self._cut.discard(connection)
            self._changed.notify_all()
