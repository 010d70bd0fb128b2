"""Listens on one address, with a thread for each connection, and answers one request on each.

A request must arrive, and the client must read the response, within :class:`Timeouts`. A response of unknown length
is sent in chunks, so that a client which receives half of it notices. In HTTP/1.0, where the end of the connection is
the end of the text, a scrape cut between two lines would pass for a complete one.

With a web configuration, connections use TLS, and every request needs a user and the right password.
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
import threading
from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, cast
from wsgiref.headers import Headers
from wsgiref.simple_server import ServerHandler, WSGIRequestHandler
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client.exposition import ThreadingWSGIServer

from exporter import clock
from exporter.clock import Clock
from httpserver.config import WebConfig, WebConfigFile
from httpserver.connections import Connections, Slot
from httpserver.tls import TlsConfig

log = logging.getLogger("lustre-exporter")
SERVER_NAME = "lustre-exporter"
MAX_HEAD_BYTES = 1 << 16
MAX_LINE_BYTES = 1 << 14
BUFFER_BYTES = 1 << 15
_ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a connection may take; the time it takes to find the answer is not in it."""

    clock: Clock
    head_seconds: float = 10.0
    """Until the whole head of the request is there; a TLS handshake before may take as long."""
    answer_seconds: float = 60.0
    """From the first byte of the answer to its last."""


class _RequestReader(io.RawIOBase):
    """What the client sends, as long as it is not too long and does not take too long."""

    def __init__(self, connection: socket.socket, patience: Timeouts) -> None:
        self._connection = connection
        self._clock = patience.clock
        self._until = patience.clock() + patience.head_seconds
        self._left = MAX_HEAD_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        limit_time(self._connection, self._until - self._clock())
        count = self._connection.recv_into(memoryview(buffer)[: self._left])
        self._left -= count
        return count


class _ResponseWriter:
    """What the client gets, as long as it takes it."""

    def __init__(self, connection: socket.socket, patience: Timeouts) -> None:
        self._connection = connection
        self._patience = patience
        self._until: float | None = None
        self._held = bytearray()

    def write(self, data: bytes) -> int:
        if len(self._held) + len(data) > BUFFER_BYTES:
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
            limit_time(self._connection, self._until - self._patience.clock())
            left = left[self._connection.send(left) :]


def limit_time(connection: socket.socket, seconds: float) -> None:
    """What comes next on the connection must not take longer."""
    if seconds <= 0:
        raise TimeoutError
    connection.settimeout(seconds)


class Handler(WSGIRequestHandler):
    """Takes one request; ``heard`` is called when it has arrived."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = SERVER_NAME
    sys_version = ""

    def __init__(self, request: socket.socket, client: Any, server: Server, heard: Callable[[], None]) -> None:
        self._heard = heard
        super().__init__(request, client, server)

    def setup(self) -> None:
        """Streams that keep time."""
        self.connection = self.request
        self.rfile = io.BufferedReader(_RequestReader(self.connection, self.server.patience))
        self.wfile = cast("io.BufferedIOBase", _ResponseWriter(self.connection, self.server.patience))

    def finish(self) -> None:
        """The server closes the connection."""

    def handle(self) -> None:
        """Read the request's head and let the application answer."""
        self.raw_requestline = self.rfile.readline(MAX_LINE_BYTES + 1)
        if len(self.raw_requestline) > MAX_LINE_BYTES:
            self.requestline, self.request_version, self.command = "", "", ""
            self.send_error(414)
        elif self.raw_requestline and self.parse_request():
            self._heard()
            answering = _WsgiHandler(self.rfile, cast("IO[bytes]", self.wfile), self.get_stderr(), self.get_environ())
            answering.request_handler = self
            answering.run(cast("Callable[..., Any]", self.server.get_app()))
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: who scrapes how often is in Prometheus."""


class _WsgiHandler(ServerHandler):
    http_version = "1.1"
    server_software = SERVER_NAME
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


NO_IPV6_ERRORS = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})
NO_RESOURCES_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
POLL_INTERVAL_SECONDS = 86400.0
ACCEPT_RETRY_SECONDS = 0.2
"""Between two tries to accept a connection for which the system has no room: it stays at the door meanwhile."""
HTTPS_EXPECTED = (
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"
    b"This is an HTTPS address.\n"
)


class Server(ThreadingWSGIServer):
    """One address; stops when the requests that have begun are answered."""

    request_queue_size = 128

    def __init__(
        self, address: tuple[str, int], web: WebConfigFile | None, patience: Timeouts, connections: Connections | None
    ) -> None:
        self.patience = patience
        self.connections = connections or Connections()
        self._web = web
        super().__init__(address, WSGIRequestHandler)

    def server_bind(self) -> None:
        """Bind without asking the name service what this machine is called."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def serve_forever(self, poll_interval: float = POLL_INTERVAL_SECONDS) -> None:
        """Accept until ``shutdown``, without waking the processor in between."""
        super().serve_forever(poll_interval)

    def shutdown(self) -> None:
        """Accept nothing more."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes the loop up
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
        """Give a connection its thread."""
        slot = self.connections.begin(request)
        if slot is None:
            self.shutdown_request(request)
            return
        try:
            threading.Thread(target=self._serve, args=(slot, client_address), daemon=True).start()
        except BaseException:
            self.connections.end(slot)
            raise

    def _serve(self, slot: Slot, client: Any) -> None:
        try:
            tls = None if self._web is None else self._web.config().tls
            if tls is not None:
                self._handshake(slot, tls)
            Handler(slot.connection, client, self, lambda: self.connections.heard(slot))
        except OSError:
            pass  # a client that hangs up early, says nothing, or may not come in is no news
        finally:
            if isinstance(slot.connection, ssl.SSLSocket):
                _close_tls(slot.connection)
            self.shutdown_request(slot.connection)
            self.connections.end(slot)

    def _handshake(self, slot: Slot, tls: TlsConfig) -> None:
        slot.connection.settimeout(self.patience.head_seconds)
        secured = tls.context.wrap_socket(slot.connection, server_side=True, do_handshake_on_connect=False)
        slot.connection = secured
        try:
            secured.do_handshake()
        except ssl.SSLError as error:
            if error.reason == "HTTP_REQUEST":
                socket.socket.send(secured, HTTPS_EXPECTED)
            raise
        if not tls.accepts_client(secured):
            raise PermissionError

    def finish(self, patience_seconds: float) -> bool:
        """Wait for the requests that have begun; False when some did not end in time."""
        return self.connections.finish(patience_seconds)


def _close_tls(secured: ssl.SSLSocket) -> None:
    """Tell the client that this was all, without waiting for its goodbye."""
    with contextlib.suppress(OSError, ValueError):
        secured.settimeout(0)
        secured.unwrap()


class _Ipv6Server(Server):
    address_family = socket.AF_INET6


def listen(
    address: Address,
    app: WSGIApplication,
    web: WebConfigFile | None = None,
    patience: Timeouts | None = None,
    connections: Connections | None = None,
) -> Server:
    """A server bound to the address; OSError when that is not possible. No host is every address, IPv4 and IPv6."""

    def bound(kind: type[Server], host: str) -> Server:
        server = kind((host, address.port), web, patience or Timeouts(clock.monotonic), connections)
        server.set_app(app)
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


def protected(app: WSGIApplication, web: WebConfigFile) -> Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]:
    """The application for those who may see it."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        config = web.config()
        start = _with_headers(start_response, config)
        if config.users is None or config.users.authorised(environ.get("HTTP_AUTHORIZATION", "")):
            return app(environ, start)
        web.deny()
        plain = ("Content-Type", "text/plain; charset=utf-8")
        start("401 Unauthorized", [("WWW-Authenticate", 'Basic realm="lustre-exporter", charset="UTF-8"'), plain])
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
    """Read ``host:port``, ``:port``, ``[::1]:port``.

    >>> parse_address(":9169"), parse_address("[::1]:80")
    (Address(host='', port=9169), Address(host='::1', port=80))
    """
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(f"{text!r} is not a listen address; use host:port, :port or [::1]:port")
    return Address(match["v6"] or match["host"] or "", int(match["port"]))
