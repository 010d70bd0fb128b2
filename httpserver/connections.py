"""Bounded connections: a server accepts a limited number of them, each with a thread of its own.

A connection waits until its whole request has arrived; then it is answered. When the limit is reached, a new
connection replaces the one that has waited longest: scrapers send their request at once, and only other clients
wait. A connection that is being answered is never dropped.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import resource
import socket
import socketserver
import sys
import threading
from typing import Any

MAX_CONNECTIONS = 128
DESCRIPTOR_SHARE = 4
"""Connections may use one in this many file descriptors of the process. The application needs the others."""
NO_RESOURCES_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
ACCEPT_RETRY_SECONDS = 0.2
"""Pause before the next accept when the system has no resources for a connection."""
POLL_INTERVAL_SECONDS = 86400.0

log = logging.getLogger("httpserver")


def connection_limit() -> int:
    """The number of connections for this process: fewer than MAX_CONNECTIONS where RLIMIT_NOFILE is low."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        MAX_CONNECTIONS
        if soft == resource.RLIM_INFINITY
        else max(DESCRIPTOR_SHARE, min(MAX_CONNECTIONS, soft // DESCRIPTOR_SHARE))
    )


class Slot:
    """One connection among the limited number."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        """The socket object in use. TLS replaces the first one."""


class Connections:
    """The open connections: waiting for their request, being answered, or dropped until their thread ends."""

    def __init__(self, limit: int = MAX_CONNECTIONS, drop_wait_seconds: float = 0.0) -> None:
        """Threads of dropped connections count towards the limit only if ``drop_wait_seconds`` is not 0.

        In that case :meth:`begin` waits so long for the thread of a dropped connection. Use it where the number of
        threads matters, for example below systemd's TasksMax.
        """
        self.limit = limit
        self._drop_wait_seconds = drop_wait_seconds
        self._changed = threading.Condition()
        self._waiting: dict[Slot, None] = {}
        self._answering: set[Slot] = set()
        self._dropped: set[Slot] = set()

    def begin(self, connection: socket.socket) -> Slot | None:
        """Take a slot, if necessary that of the longest waiting connection. None: all are being answered."""
        with self._changed:
            if self._full() and self._waiting:
                self._drop(next(iter(self._waiting)), socket.SHUT_RDWR)
            if self._dropped and self._drop_wait_seconds:
                self._changed.wait_for(lambda: not self._full(), self._drop_wait_seconds)
            if self._full():
                return None
            slot = Slot(connection)
            self._waiting[slot] = None
            return slot

    def replace(self, slot: Slot, connection: socket.socket) -> None:
        """Use another socket object over the same connection, as TLS does."""
        with self._changed:
            slot.connection = connection
            if slot in self._dropped:  # in between, when neither object had the descriptor
                _shut_down(connection, socket.SHUT_RDWR)

    def request_arrived(self, slot: Slot) -> None:
        """The whole request of the connection has arrived; from now on it is not dropped."""
        with self._changed:
            if slot in self._waiting:
                del self._waiting[slot]
                self._answering.add(slot)

    def end(self, slot: Slot) -> None:
        """The connection is closed and its thread ends."""
        with self._changed:
            self._waiting.pop(slot, None)
            self._answering.discard(slot)
            self._dropped.discard(slot)
            self._changed.notify_all()

    def drain(self, seconds: float) -> bool:
        """Wait for responses in progress, not for requests that have not arrived. False: some took longer."""
        with self._changed:
            for slot in [*self._waiting]:
                self._drop(slot, socket.SHUT_RD)  # a request that has arrived can still be read and answered
            return self._changed.wait_for(lambda: not (self._answering or self._dropped), seconds)

    def count(self) -> int:
        """Open connections, dropped ones included until their threads end."""
        with self._changed:
            return len(self._waiting) + len(self._answering) + len(self._dropped)

    def _full(self) -> bool:
        dropped = len(self._dropped) if self._drop_wait_seconds else 0
        return len(self._waiting) + len(self._answering) + dropped >= self.limit

    def _drop(self, slot: Slot, how: int) -> None:
        """End its input; its thread sees that. Closing the socket here would reuse the descriptor below the thread."""
        del self._waiting[slot]
        self._dropped.add(slot)
        _shut_down(slot.connection, how)


def _shut_down(connection: socket.socket, how: int) -> None:
    with contextlib.suppress(OSError):  # closed already
        socket.socket.shutdown(connection, how)  # SSLSocket.shutdown would discard the TLS state


class BoundedThreads(socketserver.TCPServer):
    """A server with a thread for each connection, limited by ``connections``. Name it first among the bases."""

    connections: Connections

    def serve(self, slot: Slot, client: Any) -> None:
        """Serve one connection, in its thread. An OSError ends it silently: the client has gone, or is too slow."""
        self.finish_request(slot.connection, client)

    def reject(self, connection: socket.socket) -> None:
        """Answer a connection for which there is no slot, without waiting for the client. Default: no answer."""

    def serve_forever(self, poll_interval: float = POLL_INTERVAL_SECONDS) -> None:
        """Accept until :meth:`shutdown`, without periodic wakeups."""
        super().serve_forever(poll_interval)

    def shutdown(self) -> None:
        """Stop accepting."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes the loop
        super().shutdown()

    def get_request(self) -> tuple[Any, Any]:
        """Accept a connection."""
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in NO_RESOURCES_ERRORS:
                threading.Event().wait(ACCEPT_RETRY_SECONDS)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start the thread of a connection, or reject it."""
        slot = self.connections.begin(request)
        if slot is None:
            with contextlib.suppress(OSError):
                self.reject(request)
            self.shutdown_request(request)
            return
        try:
            threading.Thread(target=self._serve_slot, args=(slot, client_address), daemon=True).start()
        except (RuntimeError, MemoryError) as error:
            log.warning("cannot start a thread for a connection: %s", error)
            self.connections.end(slot)
            self.shutdown_request(request)

    def _serve_slot(self, slot: Slot, client: Any) -> None:
        try:
            self.serve(slot, client)
        except Exception:  # noqa: BLE001 - logged; the other connections go on
            self.handle_error(slot.connection, client)
        finally:
            self.shutdown_request(slot.connection)
            self.connections.end(slot)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log an error, but not that of a client that has gone."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            log.error("cannot serve a connection", exc_info=error)
