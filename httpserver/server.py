"""HTTP/1.1 server for one address: one request per connection, with limits of time and size, TLS and passwords.

A request must arrive, and the client must read the response, within :class:`Timeouts`. A response of unknown length
is sent in chunks, so that a client detects a truncated response. In HTTP/1.0 the end of the connection ends the
response, so a scrape truncated between two lines would look complete.

With a web configuration, connections use TLS, and every request needs a user and password, as the file demands.
"""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import re
import socket
import socketserver
import ssl
import time
from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import IO, Any, cast
from wsgiref.headers import Headers
from wsgiref.simple_server import ServerHandler, WSGIRequestHandler, WSGIServer
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from httpserver.bodies import RETRY_SECONDS
from httpserver.config import WebConfig, WebConfigFile
from httpserver.connections import BoundedThreads, Connections, Slot
from httpserver.tls import TlsConfig

log = logging.getLogger("httpserver")
MAX_HEAD_BYTES = 1 << 16
MAX_LINE_BYTES = 1 << 14
MAX_DISCARDED_BYTES = 1 << 20
"""Limit of bytes to discard after a refused request."""
BUFFER_BYTES = 1 << 15
SLOT_KEY = "httpserver.slot"
"""Key of the connection's :class:`Slot` in the WSGI environment."""
_ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits of a connection. They do not limit the time of the application."""

    clock: Callable[[], float] = time.monotonic
    head_seconds: float = 10.0
    """Time for the head of the request. A TLS handshake before it may take the same time."""
    body_seconds: float = 10.0
    """Time from the end of the head to the end of the body."""
    response_seconds: float = 60.0
    """Time from the first to the last byte of the response."""
    stall_seconds: float = 10.0
    """Time for each part of the response, up to the next part that the client accepts."""
    linger_seconds: float = 1.0
    """Time to read and discard the rest of a refused request, so that the client gets the response."""


class _RequestReader(io.RawIOBase):
    """Reads a request from a connection, up to a limit of bytes and of time."""

    def __init__(self, connection: socket.socket, timeouts: Timeouts) -> None:
        self._connection = connection
        self._timeouts = timeouts
        self._until = timeouts.clock() + timeouts.head_seconds
        self._left = MAX_HEAD_BYTES
        self.ended = False
        """Whether the client closed its side, or used up the limit, before the end of the request."""

    @property
    def too_large(self) -> bool:
        """Whether the request reached the limit of bytes."""
        return self._left <= 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        limit_time(self._connection, self._until - self._timeouts.clock())
        count = self._connection.recv_into(memoryview(buffer)[: self._left])
        self._left -= count
        self.ended = self.ended or count == 0
        return count

    def allow_body(self, size_bytes: int) -> None:
        """Allow the reader to read this many more bytes, within the time limit of a body."""
        self._left += size_bytes
        self._until = self._timeouts.clock() + self._timeouts.body_seconds

    def send(self, data: bytes) -> None:
        """Send an interim response within the remaining time of the request."""
        limit_time(self._connection, self._until - self._timeouts.clock())
        self._connection.sendall(data)


class _ResponseWriter:
    """Sends a response to a connection, up to a limit of time."""

    def __init__(self, connection: socket.socket, timeouts: Timeouts, on_send: Callable[[], None]) -> None:
        self._connection = connection
        self._timeouts = timeouts
        self._on_send = on_send
        """Called before the first byte."""
        self._until: float | None = None
        self._buffer = bytearray()

    def write(self, data: bytes) -> int:
        if len(self._buffer) + len(data) > BUFFER_BYTES:
            self.flush()
            self._send(data)
        else:
            self._buffer += data
        return len(data)

    def flush(self) -> None:
        buffered, self._buffer = bytes(self._buffer), bytearray()
        self._send(buffered)

    def _send(self, data: bytes) -> None:
        if self._until is None:
            self._on_send()
            self._until = self._timeouts.clock() + self._timeouts.response_seconds
        left = memoryview(data)
        while left:
            limit_time(self._connection, min(self._until - self._timeouts.clock(), self._timeouts.stall_seconds))
            left = left[self._connection.send(left) :]


def limit_time(connection: socket.socket, seconds: float) -> None:
    """Limit the time of the next operation on the connection. Raises TimeoutError if no time is left."""
    if seconds <= 0:
        raise TimeoutError
    connection.settimeout(seconds)


class _RequestError(Exception):
    """A request that is answered with an HTTP error status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Handler(WSGIRequestHandler):
    """Reads one request and answers it, with an HTTP status line in every case."""

    server: Server
    protocol_version = "HTTP/1.1"

    def __init__(self, request: socket.socket, client: Any, server: Server, slot: Slot) -> None:
        self._slot = slot
        self.server_version = server.name
        super().__init__(request, client, server)

    def setup(self) -> None:
        """Make the streams, which enforce the time limits."""
        self.connection = self.request
        self._reader = _RequestReader(self.connection, self.server.timeouts)
        self.rfile = io.BufferedReader(self._reader)
        writer = _ResponseWriter(self.connection, self.server.timeouts, self._slot.sending)
        self.wfile = cast("io.BufferedIOBase", writer)

    def finish(self) -> None:
        """Do nothing: the server closes the connection."""

    def handle(self) -> None:
        """Read the request and let the application answer."""
        self.raw_requestline = self.rfile.readline(MAX_LINE_BYTES + 1)
        if len(self.raw_requestline) > MAX_LINE_BYTES:
            self.requestline, self.request_version, self.command = "", "", ""
            self.send_error(414)
        elif self.raw_requestline and self.parse_request():
            if self._reader.ended and self.request_version != "HTTP/0.9":
                self.send_error(431 if self._reader.too_large else 400)
                return
            try:
                body = self._read_body()
            except _RequestError as error:
                self.send_error(error.status)
                return
            if self.server.connections.request_arrived(self._slot):
                self._respond(body)
            else:
                self.send_error(503, headers=(("Retry-After", str(RETRY_SECONDS)),))
        self.wfile.flush()

    def send_error(
        self, code: int, message: str | None = None, explain: str | None = None,
        headers: Iterable[tuple[str, str]] = (),
    ) -> None:  # fmt: skip
        """Send an error with a status line, whatever the protocol of the request, and discard the rest of it."""
        phrase = HTTPStatus(code).phrase
        text = f"{phrase}.\n".encode()
        lines = [
            f"HTTP/1.1 {int(code)} {phrase}", f"Date: {self.date_time_string()}", f"Server: {self.server.name}",
            "Connection: close", "Content-Type: text/plain; charset=utf-8", f"Content-Length: {len(text)}",
            *[f"{name}: {value}" for name, value in headers],
        ]  # fmt: skip
        self.wfile.write("\r\n".join([*lines, "", ""]).encode("latin-1") + text)
        self.wfile.flush()
        self._discard_input()

    def _discard_input(self) -> None:
        """Read what the client still sends, because closing a connection with unread data discards the response."""
        until, left = self.server.timeouts.clock() + self.server.timeouts.linger_seconds, MAX_DISCARDED_BYTES
        with contextlib.suppress(OSError, ValueError):
            socket.socket.shutdown(self.connection, socket.SHUT_WR)
            while left > 0:
                limit_time(self.connection, until - self.server.timeouts.clock())
                data = socket.socket.recv(self.connection, BUFFER_BYTES)
                if not data:
                    return
                left -= len(data)

    def _read_body(self) -> bytes:
        """Read the body of the request; empty if the server reads no bodies."""
        if not self.server.max_body_bytes:
            return b""
        if "Transfer-Encoding" in self.headers:
            raise _RequestError(411)
        length = self.headers.get("Content-Length", "0").strip()
        if not (length.isascii() and length.isdigit()):
            raise _RequestError(400)
        length = length.lstrip("0") or "0"
        if len(length) > len(str(self.server.max_body_bytes)) or int(length) > self.server.max_body_bytes:
            raise _RequestError(413)
        size_bytes = int(length)
        if not size_bytes:
            return b""
        self._reader.allow_body(size_bytes)
        if self.headers.get("Expect", "").lower() == "100-continue":
            self._reader.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = self.rfile.read(size_bytes)
        if len(body) < size_bytes:
            raise ConnectionError("the request ended within its body")
        return body

    def _respond(self, body: bytes) -> None:
        environ = self.get_environ() | {SLOT_KEY: self._slot}
        answering = _WsgiHandler(io.BytesIO(body), cast("IO[bytes]", self.wfile), self.get_stderr(), environ)
        answering.server_software = self.server.name
        answering.request_handler = self
        answering.run(cast("Callable[..., Any]", self.server.get_app()))

    def handle_expect_100(self) -> bool:
        """Continue without a response. :meth:`_read_body` sends the interim response if it reads the body."""
        return True

    def version_string(self) -> str:
        """Return the Server header."""
        return self.server.name

    def log_message(self, format: str, *args: Any) -> None:
        """Log no requests."""


class _WsgiHandler(ServerHandler):
    http_version = "1.1"
    os_environ: MutableMapping[str, str] = {}  # noqa: RUF012 - never written; keeps the process environment out of requests
    environ: WSGIEnvironment
    headers: Headers
    headers_sent: bool
    request_handler: Handler
    _chunked = False

    def _head_only(self) -> bool:
        return bool(self.environ.get("REQUEST_METHOD") == "HEAD")

    def cleanup_headers(self) -> None:
        """Add the headers that mark the end of the response."""
        if not self._head_only() or self.bytes_sent:
            super().cleanup_headers()
        self.headers["Connection"] = "close"
        if "Content-Length" not in self.headers and self.environ.get("SERVER_PROTOCOL") == "HTTP/1.1":
            self.headers["Transfer-Encoding"] = "chunked"
            self._chunked = not self._head_only()

    def write(self, data: bytes) -> None:
        """Send one piece of the body. An empty piece is skipped, because it would end a chunked body."""
        if not data:
            return
        if not self.headers_sent:
            self.bytes_sent = len(data)
            self.send_headers()
        if not self._head_only():
            self._write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
            self._flush()

    def finish_content(self) -> None:
        """Send the end of the body."""
        if not self.headers_sent:
            self.send_headers()
        if self._chunked:
            self._write(b"0\r\n\r\n")
        self._flush()

    def log_exception(self, exc_info: _ExcInfo) -> None:
        """Log an error of the application, unless the client disconnected."""
        if not isinstance(exc_info[1], OSError):
            log.error("cannot answer a request", exc_info=exc_info)


REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: %d\r\nConnection: close\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\n\r\nAll connections are in use.\n" % RETRY_SECONDS
)
NO_IPV6_ERRORS = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})
HTTPS_EXPECTED = (
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"
    b"This is an HTTPS address.\n"
)


class Server(BoundedThreads, WSGIServer):
    """Serves an application on one address. Make it with :func:`listen`."""

    request_queue_size = 128

    def __init__(self, address: tuple[str, int], name: str, web_config: WebConfigFile | None, timeouts: Timeouts,
                 connections: Connections, max_body_bytes: int) -> None:  # fmt: skip
        self.name = name
        self.timeouts = timeouts
        self.connections = connections
        self.max_body_bytes = max_body_bytes
        self._web_config = web_config
        super().__init__(address, WSGIRequestHandler)

    def server_bind(self) -> None:
        """Bind without looking up the name of this machine."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def serve(self, slot: Slot, client: Any) -> None:
        """Serve one connection, in its thread."""
        try:
            tls = None if self._web_config is None else self._web_config.config().tls
            if tls is not None:
                self._handshake(slot, tls)
            Handler(slot.connection, client, self, slot)
        finally:
            if isinstance(slot.connection, ssl.SSLSocket):
                _close_tls(slot.connection)

    def reject(self, connection: socket.socket) -> None:
        """Send a 503 response without waiting. Over TLS, which needs a handshake first, the connection just ends."""
        if self._web_config is None or self._web_config.config().tls is None:
            connection.setblocking(False)
            connection.send(REFUSAL)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(BUFFER_BYTES)

    def _handshake(self, slot: Slot, tls: TlsConfig) -> None:
        slot.connection.settimeout(self.timeouts.head_seconds)
        secured = tls.context.wrap_socket(slot.connection, server_side=True, do_handshake_on_connect=False)
        self.connections.replace(slot, secured)
        try:
            secured.do_handshake()
        except ssl.SSLError as error:
            if error.reason == "HTTP_REQUEST":
                socket.socket.send(secured, HTTPS_EXPECTED)
            raise
        if not tls.accepts_client(secured):
            raise PermissionError


def _close_tls(secured: ssl.SSLSocket) -> None:
    """End the TLS session without waiting for the client to end it."""
    with contextlib.suppress(OSError, ValueError):
        secured.settimeout(0)
        secured.unwrap()


class _Ipv6Server(Server):
    address_family = socket.AF_INET6


def listen(
    address: Address,
    app: WSGIApplication,
    *,
    name: str,
    web_config: WebConfigFile | None = None,
    timeouts: Timeouts | None = None,
    connections: Connections | None = None,
    max_body_bytes: int = 0,
) -> Server:
    """Return a server bound to the address. Raises OSError on failure. An empty host means all IPv4 and IPv6 addresses.

    ``name`` is the Server header and the realm of basic authentication. A web configuration may require authentication
    of every request. Bodies of requests are read up to ``max_body_bytes``; 0 ignores bodies.
    """
    served = app if web_config is None else protected(app, web_config, name)

    def bound(kind: type[Server], host: str) -> Server:
        server = kind((host, address.port), name, web_config, timeouts or Timeouts(), connections or Connections(),
                      max_body_bytes)  # fmt: skip
        server.set_app(served)
        return server

    if ":" in address.host:
        return bound(_Ipv6Server, address.host)
    if address.host:
        return bound(Server, address.host)
    try:
        return bound(_Ipv6Server, "::")
    except OSError as error:
        if error.errno not in NO_IPV6_ERRORS:
            raise
        return bound(Server, "0.0.0.0")  # noqa: S104 - asked for


def protected(
    app: WSGIApplication, web_config: WebConfigFile, realm: str
) -> Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]:
    """Wrap the application with basic authentication and the additional headers of the web configuration.

    ``REMOTE_USER`` is the user whose password was checked; empty where the configuration has no users.
    """

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        config = web_config.config()
        start = _with_headers(start_response, config)
        user = None if config.users is None else config.users.user(environ.get("HTTP_AUTHORIZATION", ""))
        if config.users is None or user is not None:
            return app({**environ, "REMOTE_USER": user or ""}, start)
        web_config.deny()
        plain = ("Content-Type", "text/plain; charset=utf-8")
        start("401 Unauthorized", [("WWW-Authenticate", f'Basic realm="{realm}", charset="UTF-8"'), plain])
        return [b"Unauthorized.\n"]

    return answer


def _with_headers(start_response: StartResponse, config: WebConfig) -> StartResponse:
    names = {name.lower() for name, _ in config.headers}

    def start(status: str, headers: list[tuple[str, str]], exc_info: _ExcInfo | None = None, /) -> Any:
        kept = [(name, value) for name, value in headers if name.lower() not in names]
        return start_response(status, [*kept, *config.headers], exc_info)

    return start


_ADDRESS = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:]*)):(?P<port>\d{1,5})")


@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen on. An empty host means all addresses of this machine."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Parse ``host:port``, ``:port`` or ``[::1]:port``.

    >>> parse_address(":9169"), parse_address("[::1]:80")
    (Address(host='', port=9169), Address(host='::1', port=80))
    """
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(f"{text!r} is not a listen address; use host:port, :port or [::1]:port")
    return Address(match["v6"] or match["host"] or "", int(match["port"]))
