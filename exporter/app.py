"""The exporter's WSGI application: metrics, landing page, health check."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qs
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import CollectorRegistry

from exporter import clock as clocks
from exporter import exposition
from exporter.clock import Clock
from exporter.exposition import ScrapeResult
from exporter.landing import LandingPage
from exporter.scrape import Scraper
from exporter.single_flight import SingleFlight, WaitTimeoutError
from httpserver.bodies import RETRY_SECONDS, Body, HeldBodies, NoRoomError
from httpserver.connections import Slot
from httpserver.server import SLOT_KEY

HEALTH_PATH = "/-/healthy"
MARGIN_SECONDS = 0.5
"""Share of the scrape timeout reserved for rendering and sending the answer."""
MIN_PASS_SECONDS = 2.0
"""Time of a pass even if its client waits less: other clients share it, and in less time reads would seem to hang."""
Response = tuple[str, list[tuple[str, str]], Iterable[bytes]]
"""Status, headers, body."""


class App:
    """The WSGI application."""

    def __init__(
        self,
        scraper: Scraper,
        registry: CollectorRegistry,
        telemetry_path: str,
        clock: Clock = clocks.monotonic,
        bodies: HeldBodies | None = None,
    ) -> None:
        self._bodies = HeldBodies(clock=clock) if bodies is None else bodies
        self._scraper = scraper
        self._registry = registry
        self._telemetry_path = telemetry_path
        self._flight: SingleFlight[ScrapeResult] = SingleFlight(clock)
        self._landing = LandingPage(scraper, telemetry_path, HEALTH_PATH)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        status, headers, body = self._answer(environ)
        start_response(status, headers)
        return body

    def _answer(self, environ: WSGIEnvironment) -> Response:
        path = environ.get("PATH_INFO", "") or "/"
        if path not in {self._telemetry_path, HEALTH_PATH, "/"}:
            return _plain_text("404 Not Found", f"Page not found. Metrics are at {self._telemetry_path}.")
        if environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
            return _plain_text("405 Method Not Allowed", "Only GET and HEAD are allowed.", ("Allow", "GET, HEAD"))
        if path == self._telemetry_path:
            return self._metrics(environ)
        if path == HEALTH_PATH:
            return _plain_text("200 OK", "Healthy.")
        return "200 OK", [*self._landing.headers], [self._landing.page()]

    def _metrics(self, environ: WSGIEnvironment) -> Response:
        query = parse_qs(environ.get("QUERY_STRING", ""))
        wanted_names, left_out = (frozenset(query.get(name, ())) for name in ("collect[]", "exclude[]"))
        if wanted_names and left_out:
            return _plain_text("400 Bad Request", "Use either collect[] or exclude[], not both.")
        if unknown := sorted((wanted_names | left_out) - {*self._scraper.names}):
            return _plain_text("400 Bad Request", f"Unknown or disabled collectors: {', '.join(unknown)}.")
        names = wanted_names or frozenset(self._scraper.names) - left_out
        wanted = exposition.negotiate(environ.get("HTTP_ACCEPT", ""), environ.get("HTTP_ACCEPT_ENCODING", ""))
        headers = [("Content-Type", wanted.content_type), ("Vary", "Accept, Accept-Encoding")]
        if wanted.gzip:
            headers.append(("Content-Encoding", "gzip"))
        if environ["REQUEST_METHOD"] == "HEAD":
            return "200 OK", headers, iter(())
        limit = _scrape_timeout_seconds(environ.get("HTTP_X_PROMETHEUS_SCRAPE_TIMEOUT_SECONDS", ""))
        seconds = min(self._scraper.deadline_seconds, limit or self._scraper.deadline_seconds)
        client: Slot = environ[SLOT_KEY]
        key = names, wanted.openmetrics, wanted.gzip
        try:
            size_bytes, body = self._bodies.send(
                key, lambda: self._made(names, wanted, seconds, client.address), client)
            return "200 OK", [*headers, ("Content-Length", str(size_bytes))], body
        except WaitTimeoutError:
            return _unavailable(f"Another scrape of these collectors has been running for {seconds:g} s.")
        except NoRoomError:
            return _unavailable("Slow clients use all the memory for responses.")

    def _made(self, names: frozenset[str], wanted: exposition.ResponseFormat, seconds: float, address: str) -> Body:
        """Return the exposition of a pass. Raises WaitTimeoutError."""
        result = self._flight.do(names, lambda left: self._scraper.run(names, max(left, MIN_PASS_SECONDS)), seconds,
                                 address)
        return result.body(self._registry, openmetrics=wanted.openmetrics, gzip=wanted.gzip)


def _scrape_timeout_seconds(timeout: str) -> float | None:
    try:
        seconds = float(timeout) - MARGIN_SECONDS
    except ValueError:
        return None
    return seconds if 0 < seconds < 1e6 else None


def _unavailable(text: str) -> Response:
    return _plain_text("503 Service Unavailable", text, ("Retry-After", str(RETRY_SECONDS)))


def _plain_text(status: str, text: str, *headers: tuple[str, str]) -> Response:
    return status, [("Content-Type", "text/plain; charset=utf-8"), *headers], [text.encode("utf-8", "replace") + b"\n"]
