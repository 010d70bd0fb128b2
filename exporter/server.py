"""Listening: a thread per connection, secured where the web configuration says so, and an end without a cut."""

from __future__ import annotations

import contextlib
import errno
import socket
import socketserver
import ssl
import threading
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler
from wsgiref.types import WSGIApplication

from prometheus_client.exposition import ThreadingWSGIServer

from exporter import clock
from exporter.config import Address
from exporter.connections import Connections, Place
from exporter.handler import Handler, Patience
from exporter.web.reload import Web
from exporter.web.tls import Tls

NO_IPV6 = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})
NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
A_DAY_SECONDS = 86400.0
BREATH_SECONDS = 0.2
"""Between two tries to accept a connection for which the system has no room: it stays at the door meanwhile."""
NOT_TLS = (
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"
    b"This is an HTTPS address.\n"
)


class Server(ThreadingWSGIServer):
    """One address; stops when the requests that have begun are answered."""

    request_queue_size = 128

    def __init__(
        self, address: tuple[str, int], web: Web | None, patience: Patience, connections: Connections | None
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

    def serve_forever(self, poll_interval: float = A_DAY_SECONDS) -> None:
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
            if error.errno in NO_ROOM:
                threading.Event().wait(BREATH_SECONDS)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a connection its thread."""
        place = self.connections.begin(request)
        if place is None:
            self.shutdown_request(request)
            return
        try:
            threading.Thread(target=self._serve, args=(place, client_address), daemon=True).start()
        except BaseException:
            self.connections.end(place)
            raise

    def _serve(self, place: Place, client: Any) -> None:
        try:
            tls = None if self._web is None else self._web.config().tls
            if tls is not None:
                self._handshake(place, tls)
            Handler(place.connection, client, self, lambda: self.connections.heard(place))
        except OSError:
            pass  # a client that hangs up early, says nothing, or may not come in is no news
        finally:
            if isinstance(place.connection, ssl.SSLSocket):
                _say_goodbye(place.connection)
            self.shutdown_request(place.connection)
            self.connections.end(place)

    def _handshake(self, place: Place, tls: Tls) -> None:
        place.connection.settimeout(self.patience.head_seconds)
        secured = tls.context.wrap_socket(place.connection, server_side=True, do_handshake_on_connect=False)
        place.connection = secured
        try:
            secured.do_handshake()
        except ssl.SSLError as error:
            if error.reason == "HTTP_REQUEST":
                socket.socket.send(secured, NOT_TLS)
            raise
        if not tls.welcome(secured):
            raise PermissionError

    def finish(self, patience_seconds: float) -> bool:
        """Wait for the requests that have begun; False when some did not end in time."""
        return self.connections.finish(patience_seconds)


def _say_goodbye(secured: ssl.SSLSocket) -> None:
    """Tell the client that this was all, without waiting for its goodbye."""
    with contextlib.suppress(OSError, ValueError):
        secured.settimeout(0)
        secured.unwrap()


class _Server6(Server):
    address_family = socket.AF_INET6


def listen(
    address: Address,
    app: WSGIApplication,
    web: Web | None = None,
    patience: Patience | None = None,
    connections: Connections | None = None,
) -> Server:
    """A server bound to the address; OSError when that is not possible. No host is every address, IPv4 and IPv6."""

    def bound(kind: type[Server], host: str) -> Server:
        server = kind((host, address.port), web, patience or Patience(clock.monotonic), connections)
        server.set_app(app)
        return server

    if ":" in address.host:
        return bound(_Server6, address.host)
    if address.host:
        return bound(Server, address.host)
    try:
        return bound(_Server6, "::")
    except OSError as error:
        if error.errno not in NO_IPV6:
            raise
        return bound(Server, "0.0.0.0")  # noqa: S104 - asked for
