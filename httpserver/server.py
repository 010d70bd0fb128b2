"""HTTP/1.1 server for one address: one request per connection, with limits of time and size, TLS and passwords.

A request must arrive, and the client must read the response, within :class:`Timeouts`. A response of known size has a
``Content-Length``, so a client detects a truncated one. The end of the connection ends any other.

With a web configuration, connections use TLS, and every request needs a user and password, as the file demands.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import itertools
import logging
import re
import signal
import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from email.message import Message
from email.utils import formatdate
from http import HTTPStatus
from urllib.parse import unquote
from wsgiref.types import WSGIApplication, WSGIEnvironment

from httpserver.bodies import RETRY_SECONDS
from httpserver.config import WebConfig, WebConfigFile
from httpserver.connections import BoundedThreads, Connections, Slot, State
from httpserver.tls import TlsConfig

log = logging.getLogger("httpserver")
MAX_LINE_BYTES = 1 << 14
MAX_HEAD_BYTES = 1 << 16
MAX_DISCARDED_BYTES = 1 << 20
"""Limit of bytes to discard after a refused request."""
BUFFER_BYTES = 1 << 12
SLOT_KEY = "httpserver.slot"
"""Key of the connection's :class:`Slot` in the WSGI environment."""
SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
SHUTDOWN_SECONDS = 30.0
"""Time limit for responses in progress after SIGTERM."""
_REQUEST_LINE = re.compile(r"(\S+) +(?:(?i:https?)://[^\s/?]+(?=/))?(\S+) +HTTP/(\d)\.\d *\r?\n")
_ADDRESS = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:]*)):(?P<port>\d{1,5})")
_PAGE = b"HTTP/1.1 %s\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n%s\n"
REFUSAL = _PAGE % (b"503 Service Unavailable\r\nRetry-After: %d" % RETRY_SECONDS, b"All connections are in use.")
HTTPS_EXPECTED = _PAGE % (b"400 Bad Request", b"This is an HTTPS address.")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits of a connection. They do not limit the time of the application."""

    request_seconds: float = 10.0
    """Time for the TLS handshake and the whole request."""
    response_seconds: float = 60.0
    """Time from the first to the last byte of the response."""
    stall_seconds: float = 10.0
    """Time for each part of the response, up to the next part that the client accepts."""
    linger_seconds: float = 1.0
    """Time to read and discard the rest of a refused request, so that the client gets the response."""


class _RefusedError(Exception):
    """Its arguments are the status of the response, and further headers."""


class _Exchange:
    """One connection: the TLS handshake, a request, and the response."""

    def __init__(self, server: Server, slot: Slot) -> None:
        self._server = server
        self._slot = slot
        self._config = server.config()
        self._received = bytearray()
        self._limit_time(server.timeouts.request_seconds)

    def run(self) -> None:
        try:
            if self._config.tls is not None:
                self._secure(self._config.tls)
            self._respond(self._request())
        except _RefusedError as refused:
            self._refuse(refused)
        finally:
            if isinstance(self._slot.connection, ssl.SSLSocket):
                with contextlib.suppress(OSError, ValueError):
                    self._slot.connection.settimeout(0)  # does not wait until the client ends the TLS session, too
                    self._slot.connection.unwrap()

    def _limit_time(self, seconds: float) -> None:
        self._until = self._server.connections.clock() + seconds

    def _timed(self, most_seconds: float = float("inf")) -> socket.socket:
        """The connection, for one operation within the time limit."""
        left_seconds = min(self._until - self._server.connections.clock(), most_seconds)
        if left_seconds <= 0:
            raise TimeoutError
        self._slot.connection.settimeout(left_seconds)
        return self._slot.connection

    def _secure(self, tls: TlsConfig) -> None:
        secured = tls.context.wrap_socket(self._timed(), server_side=True, do_handshake_on_connect=False)
        self._slot.connection = secured  # before the handshake, so that another thread can end it
        if self._slot.state is State.DROPPED:  # perhaps while neither object had the descriptor
            raise ConnectionAbortedError
        try:
            secured.do_handshake()
        except ssl.SSLError as error:
            if error.reason == "HTTP_REQUEST":
                socket.socket.send(secured, HTTPS_EXPECTED)
                self._discard()
            raise
        if not tls.accepts_client(secured):
            raise PermissionError

    def _request(self) -> WSGIEnvironment:
        line = self._receive_to(rb"\n", MAX_LINE_BYTES, 414)
        parts = _REQUEST_LINE.fullmatch(self._received.decode("latin-1"), 0, line)
        if parts is None:
            raise _RefusedError(400)
        if parts[3] != "1":
            raise _RefusedError(505)
        end = self._receive_to(rb"\n\r?\n", MAX_HEAD_BYTES, 431)
        try:
            headers = http.client.parse_headers(io.BytesIO(self._received[line:end]))
        except http.client.HTTPException:
            raise _RefusedError(431) from None
        body = self._body(headers, end)
        if not self._server.connections.request_arrived(self._slot):
            raise _RefusedError(503, ("Retry-After", str(RETRY_SECONDS)))
        path, _, query = parts[2].partition("?")
        environ: WSGIEnvironment = {
            "REQUEST_METHOD": parts[1], "QUERY_STRING": query, "CONTENT_TYPE": headers.get("Content-Type", ""),
            "PATH_INFO": unquote("/" + path.lstrip("/") if path.startswith("//") else path, "latin-1"),
            "wsgi.input": io.BytesIO(body), SLOT_KEY: self._slot,
        }  # fmt: skip
        for name, value in headers.items():
            key = f"HTTP_{name.replace('-', '_').upper()}"
            environ[key] = f"{environ[key]},{value.strip()}" if key in environ else value.strip()
        return environ

    def _receive_to(self, end: bytes, most_bytes: int, status: int) -> int:
        """Receive a part of the request, and return where it ends. Refuses a longer part with this status."""
        pattern, searched = re.compile(end), 0
        while (found := pattern.search(self._received, searched)) is None:
            searched = max(len(self._received) - 2, 0)
            if len(self._received) >= most_bytes:
                raise _RefusedError(status)
            self._receive(most_bytes - len(self._received))
        return found.end()

    def _receive(self, most_bytes: int) -> None:
        data = self._timed().recv(min(most_bytes, BUFFER_BYTES))
        if not data:  # the client ended its side: within the request, or before it, like a port scanner
            raise _RefusedError(400) if self._received else ConnectionResetError
        self._received += data

    def _body(self, headers: Message, begin: int) -> bytes:
        if not self._server.max_body_bytes:
            return b""
        if "Transfer-Encoding" in headers:
            raise _RefusedError(411)  # only a body with a length is read
        length = headers.get("Content-Length", "0").strip()
        if not (length.isascii() and length.isdigit()):
            raise _RefusedError(400)
        if float(length) > self._server.max_body_bytes:  # int() refuses thousands of digits
            raise _RefusedError(413)
        end = begin + int(float(length))
        if len(self._received) < end and headers.get("Expect", "").lower() == "100-continue":
            self._timed().sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        while len(self._received) < end:
            self._receive(end - len(self._received))
        return bytes(self._received[begin:end])

    def _user(self, environ: WSGIEnvironment) -> str:
        users = self._config.users
        user = "" if users is None else users.user(environ.get("HTTP_AUTHORIZATION", ""))
        if user is None:
            self._server.deny()
            realm = f'Basic realm="{self._server.name}", charset="UTF-8"'
            raise _RefusedError(401, ("WWW-Authenticate", realm))
        return user

    def _respond(self, environ: WSGIEnvironment) -> None:
        status, headers, written = "", list[tuple[str, str]](), list[bytes]()

        def start(given: str, names: list[tuple[str, str]], _: object = None, /) -> Callable[[bytes], object]:
            nonlocal status, headers
            status, headers = given, names
            return written.append

        environ["REMOTE_USER"] = self._user(environ)
        try:
            body = self._server.app(environ, start)
            with contextlib.ExitStack() as stack:
                stack.callback(getattr(body, "close", tuple))
                pieces = itertools.chain(written, body)
                piece = next(pieces, b"")  # an application that is a generator calls start now
                if isinstance(body, list) and body:  # a 304 has none
                    headers = [("Content-Length", str(sum(map(len, body)))), *headers]
                if environ["REQUEST_METHOD"] == "HEAD":
                    piece, pieces = b"", itertools.chain()
                self._send(self._head(status, headers) + piece)
                for piece in pieces:
                    self._send(piece)
        except Exception as error:
            if self._slot.sending_since is not None:  # the response has begun
                raise
            log.error("cannot answer a request", exc_info=error)
            raise _RefusedError(500) from None

    def _head(self, status: str, headers: Iterable[tuple[str, str]]) -> bytes:
        """The first lines of a response. Of headers with the same name, the last counts."""
        own = ("Date", formatdate(usegmt=True)), ("Server", self._server.name), ("Connection", "close")
        last = {name.lower(): f"{name}: {value}" for name, value in (*own, *headers, *self._config.headers)}
        return "\r\n".join([f"HTTP/1.1 {status}", *last.values(), "", ""]).encode("latin-1")

    def _send(self, data: bytes) -> None:
        if self._slot.sending_since is None:
            self._slot.sending()
            self._limit_time(self._server.timeouts.response_seconds)
        left = memoryview(data)
        while left:
            left = left[self._timed(self._server.timeouts.stall_seconds).send(left) :]

    def _refuse(self, refused: _RefusedError) -> None:
        status, *headers = refused.args
        phrase = HTTPStatus(status).phrase
        own = ("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(phrase) + 2))
        self._send(self._head(f"{status} {phrase}", (*own, *headers)) + f"{phrase}.\n".encode())
        self._discard()

    def _discard(self) -> None:
        """Read what the client still sends: closing with unread data discards the response."""
        self._limit_time(self._server.timeouts.linger_seconds)
        socket.socket.shutdown(self._slot.connection, socket.SHUT_WR)  # SSLSocket's would drop the TLS state
        left_bytes = MAX_DISCARDED_BYTES
        while left_bytes > 0 and (data := socket.socket.recv(self._timed(), BUFFER_BYTES)):
            left_bytes -= len(data)


class Server(BoundedThreads):
    """Serves an application on one address."""

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
        ``max_body_bytes``; 0 ignores bodies.
        """
        listener = address.listen()
        super().__init__(listener, connections or Connections(), f"{name}-web")
        self.port = int(listener.getsockname()[1])
        self.app = app
        self.name = name
        self.timeouts = timeouts or Timeouts()
        self.max_body_bytes = max_body_bytes
        self.config: Callable[[], WebConfig] = WebConfig if web_config is None else web_config.config
        self.deny: Callable[[], None] = (lambda: None) if web_config is None else web_config.deny

    def serve(self, slot: Slot) -> None:
        _Exchange(self, slot).run()

    def reject(self, connection: socket.socket) -> None:
        """Send a 503 response without waiting. Over TLS, which needs a handshake first, the connection just ends."""
        if self.config().tls is None:
            connection.setblocking(False)
            connection.send(REFUSAL)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(BUFFER_BYTES)


@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen on. An empty host means all addresses of this machine."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def listen(self) -> socket.socket:
        """Listen; an IPv6 address also serves IPv4."""
        both = socket.has_dualstack_ipv6()
        host = self.host or ("::" if both else "0.0.0.0")  # noqa: S104 - asked for
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            return socket.create_server((host, self.port), family=family, backlog=128,
                                        dualstack_ipv6=both and family == socket.AF_INET6)  # fmt: skip
        except OSError as error:
            raise OSError(error.errno, str(error.strerror).partition(" (while")[0]) from None


def parse_address(text: str) -> Address:
    """Parse ``host:port``, ``:port`` or ``[::1]:port``.

    >>> parse_address(":9169"), parse_address("[::1]:80")
    (Address(host='', port=9169), Address(host='::1', port=80))
    """
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(f"{text!r} is not a listen address; use host:port, :port or [::1]:port")
    return Address(match["v6"] or match["host"] or "", int(match["port"]))


def serve(
    addresses: Sequence[Address],
    app: WSGIApplication,
    *,
    name: str,
    web_config: WebConfigFile | None,
    connections: Connections,
) -> int:
    """Serve every address until SIGTERM or SIGINT, finish requests in progress, and return the exit status.

    All addresses share ``connections``. SIGHUP reloads the web configuration.

    The signals are blocked and received with sigwait. A signal handler could run between the check of its flag and the
    wait, and the signal would then take effect only after the next signal.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # new threads inherit it
    with contextlib.ExitStack() as stack:
        for address in addresses:
            try:
                server = Server(address, app, name=name, web_config=web_config, connections=connections)
            except OSError as error:
                log.error("cannot listen on %s: %s", address, error.strerror or error)
                return 1
            stack.callback(server.close)
            server.start()
            log.info("listening on %s%s", address, " with TLS" if server.config().tls else "")
        while signal.sigwait(SIGNALS) == signal.SIGHUP:
            if web_config is None:
                log.info("SIGHUP: there is no web configuration to reload; changes of options need a restart")
            elif web_config.reload():
                log.info("SIGHUP: web configuration reloaded")
    if not connections.drain(SHUTDOWN_SECONDS):
        log.warning("stopping although a response was not finished within %g s", SHUTDOWN_SECONDS)
    return 0
