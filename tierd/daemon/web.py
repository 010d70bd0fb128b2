"""tierd over HTTP: metrics, health and readiness, the status page, and the webhook of Alertmanager.

The server has a bounded number of threads: the unit grants tierd so many tasks, and a cycle needs some of them. When
all are taken, the connection that has been silent longest is closed, and a new one takes its place. A connection that
is being answered is never closed.
"""

from __future__ import annotations

import errno
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from tierd.daemon.answers import FaultsAnswer, HistoryAnswer, Json, StatusAnswer, from_json
from tierd.daemon.page import status_page
from tierd.text import printable

NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
ACCEPT_RETRY_SECONDS = 0.2
POLL_SECONDS = 86400.0
CUT_SECONDS = 1.0
"""So long is waited for the thread of a connection that was cut off."""


class ConnectionSlots(socketserver.ThreadingMixIn, socketserver.TCPServer):
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

    def reject(self, connection: Any) -> None:
        """Say that all places are taken, without waiting for anybody."""

    def serve_forever(self, poll_interval: float = POLL_SECONDS) -> None:
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
                threading.Event().wait(ACCEPT_RETRY_SECONDS)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for a connection, where there is a place."""
        if not self._placed(request):
            with suppress(OSError):
                self.reject(request)
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


_MAX_BODY_BYTES = 1 << 20
TEXT = "text/plain; charset=utf-8"
HEADERS = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
)
Ask = Callable[[Json], Json]


class App:
    """The WSGI application. ``ask`` answers as the control socket does; ``evaluate`` asks for a cycle soon."""

    def __init__(self, registry: CollectorRegistry, ask: Ask, alive: Callable[[], bool],
                 evaluate: Callable[[], None]) -> None:
        self._registry = registry
        self._ask = ask
        self._alive = alive
        self._evaluate = evaluate

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        """Answer one request; one of HEAD without a body."""
        body = self._answer(environ, start)
        return [] if environ.get("REQUEST_METHOD") == "HEAD" else body

    def _answer(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        path, method = environ.get("PATH_INFO", "/"), environ.get("REQUEST_METHOD", "GET")
        if method == "POST" and path == "/-/evaluate":
            discard_body(environ)
            self._evaluate()
            return respond(start, "202 Accepted", "a cycle will begin at once\n")
        if method not in {"GET", "HEAD"} or path == "/-/evaluate":
            return respond(start, "405 Method Not Allowed", "GET, or POST to /-/evaluate\n")
        if path == "/metrics":
            encode, kind = choose_encoder(environ.get("HTTP_ACCEPT", ""))
            return respond(start, "200 OK", encode(self._registry), kind)
        if path in {"/-/healthy", "/-/ready"}:
            return self._health(path, start)
        if path == "/":
            try:
                return respond(start, "200 OK", self._page(), "text/html; charset=utf-8")
            except ValueError as error:  # the journal cannot be read
                return respond(start, "503 Service Unavailable", printable(str(error)) + "\n")
        return respond(start, "404 Not Found", "/, /metrics, /-/healthy, /-/ready\n")

    def _health(self, path: str, start: StartResponse) -> Iterable[bytes]:
        if not self._alive():
            return respond(start, "503 Service Unavailable", "no cycle for too long\n")
        faults = from_json(FaultsAnswer, self._ask({"request": "status"})).faults if path == "/-/ready" else {}
        if faults:
            return respond(start, "503 Service Unavailable", printable("; ".join(faults.values())) + "\n")
        return respond(start, "200 OK", "well\n")

    def _page(self) -> str:
        status = from_json(StatusAnswer, self._ask({"request": "status"}))
        return status_page(status, from_json(HistoryAnswer, self._ask({"request": "history", "last": 20})))


def discard_body(environ: WSGIEnvironment) -> None:
    """Read what Alertmanager sent, and forget it: closing before would look like a failure to it."""
    length = environ.get("CONTENT_LENGTH") or "0"
    if length.isdigit():
        environ["wsgi.input"].read(min(int(length), _MAX_BODY_BYTES))


def respond(start: StartResponse, status: str, body: str | bytes, kind: str = TEXT) -> list[bytes]:
    """A whole answer."""
    data = body.encode() if isinstance(body, str) else body
    start(status, [("Content-Type", kind), ("Content-Length", str(len(data))), *HEADERS])
    return [data]


class QuietHandler(WSGIRequestHandler):
    """No line in the log for each scrape; a client that says nothing is not waited for."""

    timeout = 15

    def parse_request(self) -> bool:
        """A request with a body counts as silent until it is answered: it may come drop by drop."""
        parsed = super().parse_request()
        if parsed and self.headers.get("Content-Length", "0") == "0" and isinstance(self.server, ConnectionSlots):
            self.server.heard(self.connection)
        return parsed

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class BoundedServer(ConnectionSlots, WSGIServer):
    """Scrapers, a health check and a few people."""

    most_at_once = 16
    request_queue_size = 64

    def server_bind(self) -> None:
        """Without asking the name service what we are called: it may be down, and then takes its time."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()


class WebServer:
    """Serves in threads of its own."""

    def __init__(self, host: str, port: int, app: App) -> None:
        self._server = make_server(host, port, app, BoundedServer, QuietHandler)
        self.port: int = self._server.server_port
        threading.Thread(target=self._server.serve_forever, name="tierd-web", daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
