"""One request on one connection: read within its time, answered so that a cut answer shows.

Of unknown length, an answer goes out in chunks: a client that gets half of it knows. In HTTP/1.0, where the end of the
connection is the end of the text, a scrape cut between two lines would pass for a whole one.
"""

from __future__ import annotations

import io
import logging
import socket
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, cast
from wsgiref.headers import Headers
from wsgiref.simple_server import ServerHandler, WSGIRequestHandler
from wsgiref.types import WSGIEnvironment

from exporter.clock import Clock

if TYPE_CHECKING:
    from exporter.server import Server

log = logging.getLogger("lustre-exporter")
NAME = "lustre-exporter"
HEAD_BYTES = 1 << 16
LINE_BYTES = 1 << 14
HELD_BYTES = 1 << 15
_ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a connection may take; the time it takes to find the answer is not in it."""

    clock: Clock
    head_seconds: float = 10.0
    """Until the whole head of the request is there; a TLS handshake before may take as long."""
    answer_seconds: float = 60.0
    """From the first byte of the answer to its last."""


class _Head(io.RawIOBase):
    """What the client sends, as long as it is not too long and does not take too long."""

    def __init__(self, connection: socket.socket, patience: Patience) -> None:
        self._connection = connection
        self._clock = patience.clock
        self._until = patience.clock() + patience.head_seconds
        self._left = HEAD_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        within(self._connection, self._until - self._clock())
        count = self._connection.recv_into(memoryview(buffer)[: self._left])
        self._left -= count
        return count


class _Answer:
    """What the client gets, as long as it takes it."""

    def __init__(self, connection: socket.socket, patience: Patience) -> None:
        self._connection = connection
        self._patience = patience
        self._until: float | None = None
        self._held = bytearray()

    def write(self, data: bytes) -> int:
        if len(self._held) + len(data) > HELD_BYTES:
            self.flush()
            self._send(data)
        else:
            self._held += data
        return len(data)

    def flush(self) -> None:
        held, self._held = bytes(self._held), bytearray()
        self._send(held)

    def _send(self, data: bytes) -> None:
        if self._until is None:
            self._until = self._patience.clock() + self._patience.answer_seconds
        left = memoryview(data)
        while left:
            within(self._connection, self._until - self._patience.clock())
            left = left[self._connection.send(left) :]


def within(connection: socket.socket, seconds: float) -> None:
    """What comes next on the connection must not take longer."""
    if seconds <= 0:
        raise TimeoutError
    connection.settimeout(seconds)


class Handler(WSGIRequestHandler):
    """Takes one request; ``heard`` is called when it has arrived."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = NAME
    sys_version = ""

    def __init__(self, request: socket.socket, client: Any, server: Server, heard: Callable[[], None]) -> None:
        self._heard = heard
        super().__init__(request, client, server)

    def setup(self) -> None:
        """Streams that keep time."""
        self.connection = self.request
        self.rfile = io.BufferedReader(_Head(self.connection, self.server.patience))
        self.wfile = cast("io.BufferedIOBase", _Answer(self.connection, self.server.patience))

    def finish(self) -> None:
        """The server closes the connection."""

    def handle(self) -> None:
        """Read the request's head and let the application answer."""
        self.raw_requestline = self.rfile.readline(LINE_BYTES + 1)
        if len(self.raw_requestline) > LINE_BYTES:
            self.requestline, self.request_version, self.command = "", "", ""
            self.send_error(414)
        elif self.raw_requestline and self.parse_request():
            self._heard()
            answering = _Answering(self.rfile, cast("IO[bytes]", self.wfile), self.get_stderr(), self.get_environ())
            answering.request_handler = self
            answering.run(cast("Callable[..., Any]", self.server.get_app()))
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: who scrapes how often is in Prometheus."""


class _Answering(ServerHandler):
    http_version = "1.1"
    server_software = NAME
    os_environ: MutableMapping[str, str] = {}  # noqa: RUF012 - never written; this process's own are no part of a request
    environ: WSGIEnvironment
    headers: Headers
    headers_sent: bool
    request_handler: Handler
    _chunked = False

    def _head_only(self) -> bool:
        return bool(self.environ.get("REQUEST_METHOD") == "HEAD")

    def cleanup_headers(self) -> None:
        """Say how the end of the answer will show."""
        if not self._head_only() or self.bytes_sent:
            super().cleanup_headers()
        self.headers["Connection"] = "close"
        if "Content-Length" not in self.headers and self.environ.get("SERVER_PROTOCOL") == "HTTP/1.1":
            self.headers["Transfer-Encoding"] = "chunked"
            self._chunked = not self._head_only()

    def write(self, data: bytes) -> None:
        """Send a piece; an empty one would end the answer."""
        if not data:
            return
        if not self.headers_sent:
            self.bytes_sent = len(data)
            self.send_headers()
        if not self._head_only():
            self._write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
            self._flush()

    def finish_content(self) -> None:
        """Send what marks the end."""
        if not self.headers_sent:
            self.send_headers()
        if self._chunked:
            self._write(b"0\r\n\r\n")
        self._flush()

    def log_exception(self, exc_info: _ExcInfo) -> None:
        """A client that went away or stopped reading is no news; a mistake of ours is."""
        if not isinstance(exc_info[1], OSError):
            log.error("cannot answer a request", exc_info=exc_info)
