"""tierd over HTTP: its metrics, whether it lives and is ready, a page for people, and Alertmanager's webhook."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from tierd.service.places import Places
from tierd.text import printable

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="10"><title>tierd</title><style>
:root{{color-scheme:light dark}}body{{font:16px/1.5 system-ui,sans-serif;margin:0 auto;padding:1em;max-width:60em;
overflow-wrap:anywhere}}h1{{font-size:1.5em}}h2{{font-size:1.15em;margin:1.6em 0 .4em}}table{{border-collapse:collapse;
width:100%}}td:nth-child(-n+3),th{{white-space:nowrap}}
th,td{{padding:.3em .8em .3em 0;text-align:left;border-bottom:1px solid #8884;vertical-align:top}}
.bad{{color:#c33;font-weight:600}}</style></head><body><h1>tierd</h1>
<p>{state}</p>{faults}<p><a href="/metrics">Metrics</a></p>
<h2>Findings now</h2>{findings}<h2>Last acts</h2>{acts}</body></html>
"""

_MOST_BODY_BYTES = 1 << 20
TEXT = "text/plain; charset=utf-8"
HEADERS = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
)

HELD = {"paused": "Paused", "held": "Held", "draining": "Draining"}
"""What may hold tierd back, in words; as ``tierctl status`` has it, the first that does counts."""

Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]


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
            swallow(environ)
            self._evaluate()
            return answer(start, "202 Accepted", "a cycle will begin at once\n")
        if method not in {"GET", "HEAD"} or path == "/-/evaluate":
            return answer(start, "405 Method Not Allowed", "GET, or POST to /-/evaluate\n")
        if path == "/metrics":
            encode, kind = choose_encoder(environ.get("HTTP_ACCEPT", ""))
            return answer(start, "200 OK", encode(self._registry), kind)
        if path in {"/-/healthy", "/-/ready"}:
            return self._health(path, start)
        if path == "/":
            try:
                return answer(start, "200 OK", self._page(), "text/html; charset=utf-8")
            except ValueError as error:  # the journal cannot be read
                return answer(start, "503 Service Unavailable", printable(str(error)) + "\n")
        return answer(start, "404 Not Found", "/, /metrics, /-/healthy, /-/ready\n")

    def _health(self, path: str, start: StartResponse) -> Iterable[bytes]:
        if not self._alive():
            return answer(start, "503 Service Unavailable", "no cycle for too long\n")
        faults = self._ask({"request": "status"})["faults"] if path == "/-/ready" else {}
        if faults:
            return answer(start, "503 Service Unavailable", printable("; ".join(faults.values())) + "\n")
        return answer(start, "200 OK", "well\n")

    def _page(self) -> str:
        status, history = self._ask({"request": "status"}), self._ask({"request": "history", "last": 20})
        held = next((f"{word}: {status[what]}." for what, word in HELD.items() if status[what]), "At work.")
        dry = " Dry run: nothing is changed." if status["dry_run"] else ""
        faults = "".join(f'<p class="bad">Cannot see: {safe(words)}</p>' for words in status["faults"].values())
        found = zip(status["finding_ids"], status["findings"], strict=True)
        findings = "".join(f"<p>F{number}: {safe(sentence)}</p>{not_done(whys)}" for (number, sentence), whys
                           in zip(found, status["why_not"], strict=True)) or "<p>None.</p>"
        faults += "".join(f'<p class="bad">Stalled: {safe(words)}</p>' for words in status["stalled"])
        rows = "".join(
            f"<tr><td>{entry['id']}</td><td>{moment(entry['time'])}</td><td>{escape(entry['outcome'])}</td>"
            f"<td>{escape(entry['kind'])} {safe(entry['place'])}"
            f"{safe(': ' + entry['detail']) if entry['detail'] else ''}</td><td>{safe(str(entry['after']))}</td>"
            f"<td>{safe(entry['reason'])}</td></tr>" for entry in reversed(history["entries"]))
        acts = (f"<table><tr><th>No.</th><th>When (UTC)</th><th>Outcome</th><th>Act</th><th>Layout</th><th>Because</th>"
                f"</tr>{rows}</table>" if rows else "<p>None.</p>")
        return _PAGE.format(state=safe(f"{held} Mode {status['mode']}.{dry}"), faults=faults, findings=findings,
                            acts=acts)


def not_done(whys: list[dict[str, str]]) -> str:
    """Why nothing, or nothing more, is done about a finding, and what would change that."""
    return "".join(f"<p>Not done: {safe(why['sentence'])}" + (
        f"; to change that: {safe(why['remedy'])}" if why["remedy"] else "") + "</p>" for why in whys)


def safe(words: str) -> str:
    """Text of a page: names may hold anything, halves of characters too."""
    return escape(printable(words))


def moment(seconds: float) -> str:
    """A time for people.

    >>> moment(1_795_000_000)
    '11-18 11:06:40'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%m-%d %H:%M:%S")


def swallow(environ: WSGIEnvironment) -> None:
    """Read what Alertmanager sent, and forget it: closing before would look like a failure to it."""
    length = environ.get("CONTENT_LENGTH") or "0"
    if length.isdigit():
        environ["wsgi.input"].read(min(int(length), _MOST_BODY_BYTES))


def answer(start: StartResponse, status: str, body: str | bytes, kind: str = TEXT) -> list[bytes]:
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
        if parsed and self.headers.get("Content-Length", "0") == "0" and isinstance(self.server, Places):
            self.server.heard(self.connection)
        return parsed

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class Server(Places, WSGIServer):
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
        self._server = make_server(host, port, app, Server, QuietHandler)
        self.port: int = self._server.server_port
        threading.Thread(target=self._server.serve_forever, name="tierd-web", daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
