"""tierd over HTTP: metrics, health and readiness, the pages, and the webhook of Alertmanager.

The server is that of :mod:`httpserver`, with a small number of connections: the unit limits tierd's threads, and
cycles need some of them. TLS and passwords come from ``[web] config_file``.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from httpserver.config import WebConfigFile
from httpserver.connections import Connections
from httpserver.server import Address, Server
from tierd.config.settings import WebSettings
from tierd.daemon.answers import Ask, NoAnswerError, to_json
from tierd.daemon.page import PageError, Pages, Viewer
from tierd.daemon.requests import Handler
from tierd.text import printable

MAX_CONNECTIONS = 16
MAX_BODY_BYTES = 1 << 20
"""Limit on a message of Alertmanager. A longer one is answered with status 413."""
MAX_FORM_BYTES = 1 << 14
TEXT = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
          "form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
"""Nothing is loaded from elsewhere, and nothing in a page is run or styled but the files of tierd."""
HEADERS = (
    ("Content-Security-Policy", POLICY),
    ("Referrer-Policy", "same-origin"),
    ("X-Content-Type-Options", "nosniff"),
)


def token_of(user: str, key: bytes) -> str:
    """The token in the forms of a user. A form without it was not made for this user by the process with this key."""
    return hmac.digest(key, user.encode("utf-8", "surrogateescape"), "sha256").hex()


@dataclass(eq=False)
class App:
    """The WSGI application."""

    registry: CollectorRegistry
    ask: Ask
    """Answers like the control socket."""
    alive: Callable[[], bool]
    evaluate: Callable[[], None]
    """Starts a cycle soon."""
    change_users: Collection[str] = ()
    """Who may use the buttons of the page."""
    posted: Mapping[str, Handler] = field(default_factory=dict)
    """Answers what other nodes post, by path."""

    def __post_init__(self) -> None:
        # of this process: forms from before a restart are void
        self._key, self._pages = secrets.token_bytes(32), Pages(self.ask)

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        """Answer one request. For HEAD, the server leaves the body out."""
        method = environ.get("REQUEST_METHOD", "GET")
        # WSGI has the bytes of a path as latin-1
        path = environ.get("PATH_INFO", "/").encode("latin-1", "replace").decode("utf-8", "surrogateescape")
        if method == "POST" and path == "/-/evaluate":
            self.evaluate()
            return respond(start, "202 Accepted", "cycle scheduled\n")
        if method == "POST" and path in self.posted:
            return self._take(self.posted[path], environ, start)
        if method == "POST" and path == "/do":
            return self._do(environ, start)
        if method not in {"GET", "HEAD"} or path in {"/-/evaluate", "/do"}:
            return respond(start, "405 Method Not Allowed", "GET, or POST to /-/evaluate\n")
        if path == "/metrics":
            try:
                encode, kind = choose_encoder(environ.get("HTTP_ACCEPT", ""))
            except (ValueError, TypeError):  # an invalid version
                encode, kind = choose_encoder("")
            return respond(start, "200 OK", encode(self.registry), kind)
        if path in {"/-/healthy", "/healthz", "/-/ready"}:
            return self._health(path, start)
        if asset := self._pages.assets.get(path):
            return respond(start, "200 OK", *asset, "max-age=31536000, immutable")
        return self._page(path, environ, start)

    def _page(self, path: str, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        query = first_values(environ.get("QUERY_STRING", ""))
        try:
            found = self._pages.page(path, query, self._viewer(environ))
        except PageError as error:
            return respond(start, error.status, error.body, HTML)
        except (ValueError, NoAnswerError) as error:  # the journal cannot be read
            return respond(start, "503 Service Unavailable", printable(str(error)) + "\n")
        if found is None:
            return respond(start, "404 Not Found", "no such page; pages: /, /targets, /jobs, /target/NAME, /job/NAME, "
                           "/history, /runbooks/, /metrics, /-/healthy, /-/ready\n")
        return respond(start, "200 OK", found, HTML)

    def _viewer(self, environ: WSGIEnvironment) -> Viewer:
        user = environ.get("REMOTE_USER", "")
        may_change = bool(user) and user in self.change_users
        return Viewer(user, token_of(user, self._key) if may_change else "")

    def _do(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        """Carry out what a button asks for, if the user may, and the form is one that tierd made for this user."""
        user = environ.get("REMOTE_USER", "")
        if not user or user not in self.change_users:
            return respond(start, "403 Forbidden", "this user may not change anything: [web] change_users\n")
        if not same_origin(environ):
            return respond(start, "403 Forbidden", "the request comes from another site\n")
        form = read_form(environ)
        if form is None:
            return respond(start, "400 Bad Request", "not a form of this page\n")
        token = form.get("token", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(token_of(user, self._key).encode(), token):  # takes as long for any token
            return respond(start, "403 Forbidden", "the page is older than the last start of tierd: load it again\n")
        body, well = self._pages.done(form, self._viewer(environ))
        return respond(start, "200 OK" if well else "409 Conflict", body, HTML)

    @staticmethod
    def _take(answer: Handler, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        # a page of another site may not send this type (CORS)
        if environ.get("CONTENT_TYPE", "") != "application/json":
            return respond(start, "415 Unsupported Media Type", "application/json\n")
        try:
            request = json.loads(environ["wsgi.input"].read(MAX_BODY_BYTES))
            return respond(start, "200 OK", json.dumps(to_json(answer(request))), "application/json")
        except (ValueError, RecursionError) as error:
            return respond(start, "400 Bad Request", printable(str(error)) + "\n")

    def _health(self, path: str, start: StartResponse) -> Iterable[bytes]:
        if not self.alive():
            return respond(start, "503 Service Unavailable", "the last cycle ended too long ago\n")
        faults = self.ask({"request": "status"})["faults"] if path == "/-/ready" else None
        if isinstance(faults, Mapping) and faults:
            return respond(start, "503 Service Unavailable", printable("; ".join(faults.values())) + "\n")
        return respond(start, "200 OK", "OK\n")


def first_values(query: str) -> dict[str, str]:
    """The first value of each name of a query or form."""
    return {name: values[0] for name, values in parse_qs(query, encoding="utf-8", errors="surrogateescape").items()}


def read_form(environ: WSGIEnvironment) -> dict[str, str] | None:
    """The fields of a form; None for anything else."""
    if not environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        return None
    body = environ["wsgi.input"].read(MAX_FORM_BYTES + 1)
    try:
        return None if len(body) > MAX_FORM_BYTES else first_values(body.decode("ascii"))
    except ValueError:
        return None


def same_origin(environ: WSGIEnvironment) -> bool:
    """Whether the headers of a request prove that a page of this server sent it. A request without them proves nothing.

    ``Sec-Fetch-Site`` (Fetch Metadata) and ``Origin`` cannot be set by a page of another site.
    """
    site = environ.get("HTTP_SEC_FETCH_SITE", "")
    if site:
        return bool(site == "same-origin")
    origin = environ.get("HTTP_ORIGIN", "")
    return bool(origin) and urlsplit(origin).netloc == environ.get("HTTP_HOST", "")


def respond(start: StartResponse, status: str, body: str | bytes, kind: str = TEXT,
            cache: str = "no-store") -> list[bytes]:
    data = body.encode() if isinstance(body, str) else body
    start(status, [("Content-Type", kind), ("Content-Length", str(len(data))), ("Cache-Control", cache), *HEADERS])
    return [data]


def listen(web: WebSettings, app: App, web_config: WebConfigFile | None) -> Server:
    """Serve the application on the port of the settings. Raises OSError if the address cannot be bound."""
    server = Server(Address(web.address, web.port), app, name="tierd", web_config=web_config,
                    max_body_bytes=MAX_BODY_BYTES, connections=Connections(MAX_CONNECTIONS))
    server.start()
    return server


def config_path(web: WebSettings, config: Path | None) -> Path | None:
    """The web configuration file: ``[web] config_file``, relative to the folder of ``config``.

    None: the port has neither TLS nor passwords. A port that is not enabled counts too, as a reload may enable it.
    """
    if not web.config_file:
        return None
    return (config.parent if config is not None else Path()) / web.config_file
