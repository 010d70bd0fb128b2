"""The gather over HTTP: the exposition of the rack, its own metrics, a list of the nodes, and a health check."""

from __future__ import annotations

import platform
import zlib
from collections.abc import Callable, Iterable, Iterator
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from httpserver.bodies import RETRY_SECONDS, Body, Client, HeldBodies, LocalClient, NoRoomError
from httpserver.config import WebConfigFile
from httpserver.connections import Connections
from httpserver.metrics import ConnectionMetrics, WebConfigMetrics
from httpserver.server import SLOT_KEY
from lustre import __version__
from tierd.gather.exposition import Family
from tierd.gather.scrape import MALFORMED, UNREACHABLE, Gather, Pass
from tierd.text import printable

PREFIX = "lustre_gather_"
TEXT = "text/plain; version=0.0.4; charset=utf-8"
PLAIN = "text/plain; charset=utf-8"
HEALTH_PATH = "/-/healthy"
METRICS_PATH = "/metrics"
MARGIN_SECONDS = 0.5
"""Share of Prometheus' scrape timeout for adding up and sending."""
GZIP_LEVEL, GZIP_FORMAT = 1, 31


class GatherMetrics(Collector):
    """State of the nodes and of the sums."""

    def __init__(self, gather: Gather, clock: Callable[[], float]) -> None:
        self._gather = gather
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Yield all families about the gather."""
        info = GaugeMetricFamily(PREFIX + "build_info", "Always 1. The labels name the release and its Python version.",
                                 labels=("version", "python"))
        info.add_metric((__version__, platform.python_version()), 1)
        yield info
        last = self._gather.last
        if last is not None:
            yield from self._nodes(last)
            yield from _of_pass(last)
        yield from self._counters()

    def _nodes(self, last: Pass) -> Iterator[Metric]:
        nodes = last.nodes.values()
        ages = [self._clock() - node.answered_at for node in nodes if node.answered_at is not None]
        yield GaugeMetricFamily(PREFIX + "nodes", "Nodes in the list.", len(nodes))
        yield GaugeMetricFamily(PREFIX + "nodes_up", "Nodes that answered in the last scrape.",
                                sum(node.up for node in nodes))
        yield GaugeMetricFamily(PREFIX + "nodes_never_seen", "Listed nodes that have not answered since the start.",
                                sum(node.answered_at is None for node in nodes))
        if ages:
            yield GaugeMetricFamily(PREFIX + "oldest_answer_age_seconds",
                                    "Age of the last answer of the node that has been silent for longest. Nodes that"
                                    " never answered do not count.", max(ages))

    def _counters(self) -> Iterator[Metric]:
        counters, statistics = self._gather.counters, self._gather.sums.statistics
        yield CounterMetricFamily(PREFIX + "scrapes", "Scrapes of all nodes.", counters.scrapes)
        failures = CounterMetricFamily(
            PREFIX + "node_failures", "Failed scrapes of single nodes, by reason: unreachable (no complete answer in"
            " time, or an error), malformed (the answer is not a valid exposition).", labels=("reason",))
        for reason in (UNREACHABLE, MALFORMED):
            failures.add_metric((reason,), counters.failures[reason])
        yield failures
        yield CounterMetricFamily(PREFIX + "resets", "Resets of counters on nodes, which the sums do not show.",
                                  statistics.resets)
        yield CounterMetricFamily(PREFIX + "implausible_values", "Values of counters that were left out because no node"
                                  " can do so much in the time.", statistics.implausible)


def _of_pass(last: Pass) -> Iterator[Metric]:
    yield GaugeMetricFamily(PREFIX + "scrape_seconds", "Duration of the last scrape of all nodes.", last.seconds)
    yield GaugeMetricFamily(PREFIX + "series", "Series of counters in the exposition of the rack.", last.series)
    yield GaugeMetricFamily(PREFIX + "series_dropped", "Series left out because of max_series.", last.series_dropped)
    yield GaugeMetricFamily(PREFIX + "jobs", "Jobs with series of their own.", last.jobs)
    yield GaugeMetricFamily(PREFIX + "jobs_beyond_limit", 'Jobs summed under jobid="other" because of max_jobs.',
                            last.jobs_beyond_limit)


def registry(gather: Gather, web_config: WebConfigFile | None, connections: Connections | None,
             held_bytes: Callable[[], int], clock: Callable[[], float]) -> CollectorRegistry:
    """The registry of the gather's own metrics."""
    own = CollectorRegistry()
    own.register(GatherMetrics(gather, clock))
    if web_config is not None:
        own.register(WebConfigMetrics(web_config, PREFIX))
    if connections is not None:
        own.register(ConnectionMetrics(connections, held_bytes, PREFIX))
    ProcessCollector(registry=own)
    return own


class App:
    """The WSGI application."""

    def __init__(self, gather: Gather, deadline_seconds: float, clock: Callable[[], float],
                 web_config: WebConfigFile | None = None, connections: Connections | None = None) -> None:
        """``clock`` is the monotonic clock of the gather."""
        self._gather = gather
        self._deadline_seconds = deadline_seconds
        self._clock = clock
        self._bodies = HeldBodies[bool](clock=clock)
        self._refuse = connections.refuse if connections is not None else lambda _: None
        self._registry = registry(gather, web_config, connections, self._bodies.held_bytes, clock)

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        """Answer one request. For HEAD, the server leaves the body out."""
        path, method = environ.get("PATH_INFO", "") or "/", environ["REQUEST_METHOD"]
        if path not in {METRICS_PATH, HEALTH_PATH, "/"}:
            return _respond(start, "404 Not Found", f"Page not found. Metrics are at {METRICS_PATH}.\n")
        if method not in {"GET", "HEAD"}:
            return _respond(start, "405 Method Not Allowed", "Only GET and HEAD are allowed.\n")
        if path == HEALTH_PATH:
            return _respond(start, "200 OK", "Healthy.\n")
        if path == "/":
            return _respond(start, "200 OK", self._page())
        return self._metrics(environ, start)

    def _metrics(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        gzip = "gzip" in environ.get("HTTP_ACCEPT_ENCODING", "").lower()
        headers = [("Content-Type", TEXT), ("Vary", "Accept-Encoding")]
        if gzip:
            headers.append(("Content-Encoding", "gzip"))
        if environ["REQUEST_METHOD"] == "HEAD":
            start("200 OK", headers)
            return ()
        client: Client = environ.get(SLOT_KEY) or LocalClient()
        try:
            pieces = self._bodies.recent(gzip, client)
            if pieces is None:
                pieces = self._bodies.send(gzip, self._body(environ, gzip=gzip), client)
        except NoRoomError:
            self._refuse("bytes")
            return _respond(start, "503 Service Unavailable", "Slow clients use all the memory for responses.\n",
                            ("Retry-After", str(RETRY_SECONDS)))
        start("200 OK", headers)
        return pieces

    def _body(self, environ: WSGIEnvironment, *, gzip: bool) -> Body:
        limit = scrape_seconds(environ.get("HTTP_X_PROMETHEUS_SCRAPE_TIMEOUT_SECONDS", ""))
        found = self._gather.run(min(self._deadline_seconds, limit or self._deadline_seconds))
        data = b"".join((*(_head(family) + lines for family, lines in found.families), generate_latest(self._registry)))
        if gzip:
            compressor = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP_FORMAT)
            data = compressor.compress(data) + compressor.flush()
        return Body(lambda: (data,), len(data))

    def _page(self) -> str:
        """The nodes as text, the failed ones first."""
        last = self._gather.last
        if last is None:
            return "lustre-gather: no scrape yet. Metrics are at /metrics.\n"
        up = sum(node.up for node in last.nodes.values())
        rows = [f"lustre-gather: {up} of {len(last.nodes)} nodes answer; metrics are at /metrics"]
        for url, node in sorted(last.nodes.items(), key=lambda item: (item[1].up, item[0])):
            age = ("never answered" if node.answered_at is None else
                   f"answered {self._clock() - node.answered_at:.0f} s ago")
            problem = node.problem.removeprefix(f"{url}: ")
            rows.append(printable(f"{'up  ' if node.up else 'DOWN'} {url} ({age}) {problem}".rstrip()))
        return "\n".join([*rows, ""])


def _head(family: Family) -> bytes:
    text = f"# HELP {family.name} {family.help}\n" if family.help else ""
    return f"{text}# TYPE {family.name} {family.kind}\n".encode()


def scrape_seconds(header: str) -> float | None:
    """The time for the nodes from the scrape timeout that Prometheus sends; None without a valid one.

    >>> scrape_seconds("10"), scrape_seconds("0.2"), scrape_seconds("nan")
    (9.5, None, None)
    """
    try:
        seconds = float(header) - MARGIN_SECONDS
    except ValueError:
        return None
    return seconds if 0 < seconds < 1e6 else None


def _respond(start: StartResponse, status: str, text: str, *headers: tuple[str, str]) -> Iterable[bytes]:
    start(status, [("Content-Type", PLAIN), *headers])
    return [text.encode("utf-8", "replace")]
