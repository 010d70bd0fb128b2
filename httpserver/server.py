"""HTTP/1.1 server for one address: one request per connection, with limits of time and size, TLS and passwords.

A request must arrive, and the client must read the response, within :class:`Timeouts`. A response of known size has a
``Content-Length``, so a client detects a truncated one. The end of the connection ends any other.

With a web configuration, connections use TLS, and every request needs a user and password, as the file demands.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import io
import logging
import re
import socket
import socketserver
import ssl
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from email.message import Message
from email.utils import formatdate
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote
from wsgiref.types import WSGIApplication, WSGIEnvironment

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
_REQUEST_LINE = re.compile(r"(\S+) +(?:(?i:https?)://[^\s/?]+(?=/))?(\S+) +HTTP/(\d)\.(\d) *\r?\n")
_TEXT = ("Content-Type", "text/plain; charset=utf-8")
Headers = Iterable[tuple[str, str]]


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
        self.left_bytes = MAX_HEAD_BYTES
        self.ended = False
        """Whether the client closed its side, or used up the limit, before the end of the request."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        limit_time(self._connection, self._until - self._timeouts.clock())
        count = self._connection.recv_into(memoryview(buffer)[: self.left_bytes])
        self.left_bytes -= count
        self.ended = self.ended or count == 0
        return count

    def allow_body(self, size_bytes: int) -> None:
        """Allow the reader to read this many more bytes, within the time limit of a body."""
        self.left_bytes += size_bytes
        self._until = self._timeouts.clock() + self._timeouts.body_seconds

    def send(self, data: bytes) -> None:
        limit_time(self._connection, self._until - self._timeouts.clock())
        self._connection.sendall(data)


def limit_time(connection: socket.socket, seconds: float) -> None:
    if seconds <= 0:
        raise TimeoutError
    connection.settimeout(seconds)


class _RefusedError(Exception):
    def __init__(self, status: int, *headers: tuple[str, str]) -> None:
        super().__init__(status)
        self.status = HTTPStatus(status)
        self.headers = headers


class _Exchange:
    def __init__(self, server: Server, slot: Slot, config: WebConfig) -> None:
        self._server = server
        self._slot = slot
        self._config = config
        self._connection = slot.connection
        self._reader = _RequestReader(self._connection, server.timeouts)
        self._stream = io.BufferedReader(self._reader)
        self._until: float | None = None
        """When the response must have been sent; None before its first byte."""

    def run(self) -> None:
        try:
            environ = self._request()
            if environ is not None:
                self._respond(environ)
        except _RefusedError as refused:
            self._refuse(refused)

    def _request(self) -> WSGIEnvironment | None:
        line = self._stream.readline(MAX_LINE_BYTES + 1)
        if not line:
            return None
        if len(line) > MAX_LINE_BYTES:
            raise _RefusedError(414)
        parts = _REQUEST_LINE.fullmatch(line.decode("latin-1"))
        if parts is None:  # a line without an end, too: HTTP/0.9 is not supported
            raise _RefusedError(400)
        if parts[3] != "1":
            raise _RefusedError(505)
        try:
            headers = http.client.parse_headers(self._stream)
        except http.client.HTTPException:
            raise _RefusedError(431) from None
        if self._reader.ended:
            raise _RefusedError(431 if self._reader.left_bytes <= 0 else 400)
        body = self._body(headers)
        if not self._server.connections.request_arrived(self._slot):
            raise _RefusedError(503, ("Retry-After", str(RETRY_SECONDS)))
        return self._environ(parts, headers, body)

    def _body(self, headers: Message) -> bytes:
        """Read the body of the request; empty if the server reads no bodies."""
        most = self._server.max_body_bytes
        if not most:
            return b""
        if "Transfer-Encoding" in headers:
            raise _RefusedError(411)  # only a body with a length is read
        length = headers.get("Content-Length", "0").strip()
        if not (length.isascii() and length.isdigit()):
            raise _RefusedError(400)
        length = length.lstrip("0") or "0"
        if len(length) > len(str(most)) or int(length) > most:  # int() of many digits takes long
            raise _RefusedError(413)
        size_bytes = int(length)
        if not size_bytes:
            return b""
        self._reader.allow_body(size_bytes)
        if headers.get("Expect", "").lower() == "100-continue":
            self._reader.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = self._stream.read(size_bytes)
        if len(body) < size_bytes:
            raise ConnectionError("the request ended within its body")
        return body

    def _environ(self, parts: re.Match[str], headers: Message, body: bytes) -> WSGIEnvironment:
        path, _, query = parts[2].partition("?")
        environ: WSGIEnvironment = {
            "REQUEST_METHOD": parts[1], "SCRIPT_NAME": "", "QUERY_STRING": query,
            "PATH_INFO": unquote("/" + path.lstrip("/") if path.startswith("//") else path, "latin-1"),
            "SERVER_PROTOCOL": f"HTTP/{parts[3]}.{parts[4]}", "SERVER_NAME": self._server.name,
            "SERVER_PORT": str(self._server.server_port), "REMOTE_ADDR": self._slot.address,
            "CONTENT_TYPE": headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": io.BytesIO(body), "wsgi.errors": sys.stderr, SLOT_KEY: self._slot,
        }  # fmt: skip
        for name, value in headers.items():
            key = f"HTTP_{name.replace('-', '_').upper()}"
            environ[key] = f"{environ[key]},{value.strip()}" if key in environ else value.strip()
        return environ

    def _respond(self, environ: WSGIEnvironment) -> None:
        head = b""
        sized = False

        def start(status: str, headers: list[tuple[str, str]], _: object = None, /) -> Callable[[bytes], object]:
            nonlocal head, sized
            head = self._head(status, headers)
            sized = any(name.lower() == "content-length" for name, _ in headers)
            return _no_write

        try:
            environ["REMOTE_USER"] = self._user(environ)
            body = self._server.app(environ, start)
            with contextlib.ExitStack() as stack:
                stack.callback(getattr(body, "close", tuple))
                if isinstance(body, list) and body and not sized:  # a 304 has none
                    head = head[:-2] + b"Content-Length: %d\r\n\r\n" % sum(map(len, body))
                for piece in body:
                    if environ["REQUEST_METHOD"] == "HEAD":
                        break
                    if piece:
                        self._send(head + piece)
                        head = b""
                self._send(head)
        except _RefusedError:
            raise
        except Exception as error:
            if isinstance(error, OSError) and self._until is not None:  # the client left or is too slow
                raise
            log.error("cannot answer a request", exc_info=error)
            if self._until is None:
                raise _RefusedError(500) from None

    def _user(self, environ: WSGIEnvironment) -> str:
        users = self._config.users
        user = "" if users is None else users.user(environ.get("HTTP_AUTHORIZATION", ""))
        if user is None:
            self._server.deny()
            realm = f'Basic realm="{self._server.name}", charset="UTF-8"'
            raise _RefusedError(401, ("WWW-Authenticate", realm))
        return user

    def _head(self, status: str, headers: Headers) -> bytes:
        names = {name.lower() for name, _ in self._config.headers}
        kept = [(name, value) for name, value in headers if name.lower() not in names]
        own = [("Date", formatdate(usegmt=True)), ("Server", self._server.name), ("Connection", "close")]
        return response_head(status, (*own, *kept, *self._config.headers))

    def _send(self, data: bytes) -> None:
        timeouts = self._server.timeouts
        if self._until is None:
            self._slot.sending()
            self._until = timeouts.clock() + timeouts.response_seconds
        left = memoryview(data)
        while left:
            limit_time(self._connection, min(self._until - timeouts.clock(), timeouts.stall_seconds))
            left = left[self._connection.send(left) :]

    def _refuse(self, refused: _RefusedError) -> None:
        """Send an error, and read what the client still sends: closing with unread data discards the response."""
        text = f"{refused.status.phrase}.\n".encode()
        headers = (_TEXT, ("Content-Length", str(len(text))), *refused.headers)
        self._send(self._head(f"{refused.status:d} {refused.status.phrase}", headers) + text)
        timeouts = self._server.timeouts
        until, left = timeouts.clock() + timeouts.linger_seconds, MAX_DISCARDED_BYTES
        with contextlib.suppress(OSError, ValueError):
            socket.socket.shutdown(self._connection, socket.SHUT_WR)  # SSLSocket's would drop the TLS state
            while left > 0:
                limit_time(self._connection, until - timeouts.clock())
                data = socket.socket.recv(self._connection, BUFFER_BYTES)
                if not data:
                    return
                left -= len(data)


def _no_write(_: bytes) -> None:
    raise NotImplementedError("applications return their body")


def response_head(status: str, headers: Headers) -> bytes:
    lines = [f"HTTP/1.1 {status}", *[f"{name}: {value}" for name, value in headers], "", ""]
    return "\r\n".join(lines).encode("latin-1")


REFUSAL = response_head(
    "503 Service Unavailable", [("Retry-After", str(RETRY_SECONDS)), ("Connection", "close"), _TEXT]
) + b"All connections are in use.\n"  # fmt: skip
HTTPS_EXPECTED = response_head(
    "400 Bad Request", [("Connection", "close"), _TEXT]) + b"This is an HTTPS address.\n"  # fmt: skip
NO_IPV6_ERRORS = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})


class Server(BoundedThreads):
    """Serves an application on one address."""

    allow_reuse_address = True
    request_queue_size = 128

    def __init__(
        self,
        address: Address,
        app: WSGIApplication,
        *,
        name: str,
        web_config: WebConfigFile | None = None,
        timeouts: Timeouts | None = None,
        connections: Connections | None = None,
        max_body_bytes: int = 0,
    ) -> None:
        """Bind the address; an empty host means all IPv4 and IPv6 addresses. Raises OSError if it cannot be bound.

        ``name`` is the Server header and the realm of basic authentication. Bodies of requests are read up to
        ``max_body_bytes``; 0 ignores bodies. ``app`` must return its body instead of calling ``write``.
        """
        self.app = app
        self.name = name
        self.timeouts = timeouts or Timeouts()
        self.connections = connections or Connections()
        self.max_body_bytes = max_body_bytes
        self.config: Callable[[], WebConfig] = WebConfig if web_config is None else web_config.config
        self.deny: Callable[[], None] = (lambda: None) if web_config is None else web_config.deny
        try:
            self._bind(address.host or "::", address.port)
        except OSError as error:
            if address.host or error.errno not in NO_IPV6_ERRORS:
                raise
            self._bind("0.0.0.0", address.port)  # noqa: S104 - asked for
        self.server_port = int(self.server_address[1])

    def _bind(self, host: str, port: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), socketserver.BaseRequestHandler)

    def server_bind(self) -> None:
        """Bind. An IPv6 address also serves IPv4."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def serve(self, slot: Slot) -> None:
        config = self.config()
        try:
            if config.tls is not None:
                self._handshake(slot, config.tls)
            _Exchange(self, slot, config).run()
        finally:
            if isinstance(slot.connection, ssl.SSLSocket):
                _close_tls(slot.connection)

    def reject(self, connection: socket.socket) -> None:
        """Send a 503 response without waiting. Over TLS, which needs a handshake first, the connection just ends."""
        if self.config().tls is None:
            connection.setblocking(False)
            connection.send(REFUSAL)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(BUFFER_BYTES)

    def _handshake(self, slot: Slot, tls: TlsConfig) -> None:
        slot.connection.settimeout(self.timeouts.head_seconds)
        secured = tls.context.wrap_socket(slot.connection, server_side=True, do_handshake_on_connect=False)
        # before the handshake, so that another thread can end it
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
