"""HTTP: the metrics, a page for people, a sign of life."""

from __future__ import annotations

import errno
import socket
import socketserver
import threading
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import ThreadingWSGIServer

from exporter import exposition, landing
from exporter.config import Address
from exporter.flight import SingleFlight
from exporter.scrape import Result, Scraper

NO_IPV6 = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})
IDLE_SECONDS = 30
"""A connection that says nothing for so long is closed."""

Answer = tuple[str, list[tuple[str, str]], Iterable[bytes]]
"""Status, headers, body."""


class App:
    """The WSGI application."""

    def __init__(self, scraper: Scraper, registry: CollectorRegistry, telemetry_path: str) -> None:
        self._scraper = scraper
        self._registry = registry
        self._telemetry_path = telemetry_path
        self._flight: SingleFlight[Result] = SingleFlight()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        status, headers, body = self._answer(environ)
        start_response(status, headers)
        return () if environ["REQUEST_METHOD"] == "HEAD" else body

    def _answer(self, environ: WSGIEnvironment) -> Answer:
        if environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
            return _plain("405 Method Not Allowed", "Only GET and HEAD.", ("Allow", "GET, HEAD"))
        path = environ.get("PATH_INFO", "") or "/"
        if path == self._telemetry_path:
            return self._metrics(environ)
        if path == "/-/healthy":
            return _plain("200 OK", "Healthy.")
        if path == "/":
            body = landing.page(self._scraper, self._telemetry_path)
            return "200 OK", [("Content-Type", "text/html; charset=utf-8")], [body]
        return _plain("404 Not Found", f"Nothing here. Metrics are at {self._telemetry_path}.")

    def _metrics(self, environ: WSGIEnvironment) -> Answer:
        names = frozenset(parse_qs(environ.get("QUERY_STRING", "")).get("collect[]", ()))
        if unknown := sorted(names - {*self._scraper.names}):
            return _plain("400 Bad Request", f"No such collector, or not enabled: {', '.join(unknown)}.")
        wanted = exposition.negotiate(environ.get("HTTP_ACCEPT", ""), environ.get("HTTP_ACCEPT_ENCODING", ""))
        result = self._flight.do(names, lambda: self._scraper.run(names or None))
        body = exposition.text(result, self._registry, openmetrics=wanted.openmetrics)
        headers = [("Content-Type", wanted.content_type), ("Vary", "Accept, Accept-Encoding")]
        if not wanted.gzip:
            return "200 OK", headers, body
        return "200 OK", [*headers, ("Content-Encoding", "gzip")], exposition.compressed(body)


def _plain(status: str, text: str, *headers: tuple[str, str]) -> Answer:
    return status, [("Content-Type", "text/plain; charset=utf-8"), *headers], [text.encode() + b"\n"]


class Server(ThreadingWSGIServer):
    """A thread per request; stops when the requests that have begun are answered."""

    def __init__(self, address: tuple[str, int], handler: type[socketserver.BaseRequestHandler]) -> None:
        self._open = 0
        self._changed = threading.Condition()
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind without asking the name service what this machine is called."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin a request."""
        with self._changed:
            self._open += 1
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Carry a request out."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._changed:
                self._open -= 1
                self._changed.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A scraper that hangs up early is no news."""

    def finish(self, patience_seconds: float) -> bool:
        """Wait for the requests that have begun; False when some did not end in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._open == 0, patience_seconds)


class _Handler(WSGIRequestHandler):
    timeout = IDLE_SECONDS

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: who scrapes how often is in Prometheus."""


class _Server6(Server):
    address_family = socket.AF_INET6


def listen(address: Address, app: Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]) -> Server:
    """A server bound to the address; OSError when that is not possible. No host is every address, IPv4 and IPv6."""
    if ":" in address.host:
        return make_server(address.host, address.port, app, _Server6, _Handler)
    if address.host:
        return make_server(address.host, address.port, app, Server, _Handler)
    try:
        return make_server("::", address.port, app, _Server6, _Handler)
    except OSError as error:
        if error.errno not in NO_IPV6:
            raise
        return make_server("0.0.0.0", address.port, app, Server, _Handler)  # noqa: S104 - asked for
