"""tierd over HTTP: metrics, health and readiness, the status page, and the webhook of Alertmanager.

The server is that of :mod:`httpserver`, with a small number of connections: the unit limits tierd's threads, and
cycles need some of them. TLS and passwords come from ``--web.config.file`` or ``[web] config_file``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from httpserver.config import WebConfigFile
from httpserver.connections import Connections
from httpserver.server import Address
from httpserver.serving import BackgroundServer
from tierd.config.settings import WebSettings
from tierd.daemon.answers import FaultsAnswer, HistoryAnswer, Json, PageAnswer, from_json
from tierd.daemon.page import status_page
from tierd.text import printable

MAX_CONNECTIONS = 16
DROP_WAIT_SECONDS = 1.0
"""Wait for the thread of a dropped connection, so that there are never more threads than connections."""
MAX_BODY_BYTES = 1 << 20
"""Limit on a message of Alertmanager. A longer one is answered with status 413."""
TEXT = "text/plain; charset=utf-8"
HEADERS = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
)
Ask = Callable[[Json], Json]


class App:
    """The WSGI application. ``ask`` answers like the control socket; ``evaluate`` starts a cycle soon."""

    def __init__(self, registry: CollectorRegistry, ask: Ask, alive: Callable[[], bool],
                 evaluate: Callable[[], None]) -> None:
        self._registry = registry
        self._ask = ask
        self._alive = alive
        self._evaluate = evaluate

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        """Answer one request. For HEAD, the server leaves the body out."""
        path, method = environ.get("PATH_INFO", "/"), environ.get("REQUEST_METHOD", "GET")
        if method == "POST" and path == "/-/evaluate":
            self._evaluate()
            return respond(start, "202 Accepted", "a cycle begins at once\n")
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
            return respond(start, "503 Service Unavailable", "the last cycle ended too long ago\n")
        faults = from_json(FaultsAnswer, self._ask({"request": "status"})).faults if path == "/-/ready" else {}
        if faults:
            return respond(start, "503 Service Unavailable", printable("; ".join(faults.values())) + "\n")
        return respond(start, "200 OK", "well\n")

    def _page(self) -> str:
        status = from_json(PageAnswer, self._ask({"request": "status"}))
        return status_page(status, from_json(HistoryAnswer, self._ask({"request": "history", "last": 20})))


def respond(start: StartResponse, status: str, body: str | bytes, kind: str = TEXT) -> list[bytes]:
    """A complete response."""
    data = body.encode() if isinstance(body, str) else body
    start(status, [("Content-Type", kind), ("Content-Length", str(len(data))), *HEADERS])
    return [data]


def listen(web: WebSettings, app: App, web_config: WebConfigFile | None) -> BackgroundServer:
    """Serve the application on the port of the settings. Raises OSError if the address cannot be bound."""
    return BackgroundServer(Address(web.address, web.port), app, name="tierd", web_config=web_config,
                            connections=Connections(MAX_CONNECTIONS, DROP_WAIT_SECONDS), max_body_bytes=MAX_BODY_BYTES)


def config_path(web: WebSettings, config: Path | None, option: Path | None) -> Path | None:
    """The web configuration file: that of the option, or ``[web] config_file`` relative to the folder of ``config``.

    None: the port has neither TLS nor passwords. A port that is not enabled counts too, as a reload may enable it.
    """
    if option is not None or not web.config_file:
        return option
    return (config.parent if config is not None else Path()) / web.config_file
