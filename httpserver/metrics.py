"""Prometheus metrics of the web configuration, and of the connections and the bytes held for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from httpserver.config import WebConfigFile
from httpserver.connections import Connections


class WebConfigMetrics(Collector):
    """Whether the last load of the web configuration succeeded, and how many requests it denied."""

    def __init__(self, web_config: WebConfigFile, prefix: str) -> None:
        """``prefix`` is the start of the metric names, for example ``tierd_``."""
        self._web_config = web_config
        self._prefix = prefix

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            self._prefix + "web_config_reload_successful",
            "Whether the last load of --web.config.file succeeded (1) or the previous configuration is still in use"
            " (0).",
            float(self._web_config.successful),
        )
        yield CounterMetricFamily(
            self._prefix + "web_requests_denied", "Requests denied because of missing or wrong credentials.",
            self._web_config.denied,
        )  # fmt: skip


class ConnectionMetrics(Collector):
    """Open connections, connections refused and dropped by reason, and bytes held for responses."""

    def __init__(self, connections: Connections, held_bytes: Callable[[], int], prefix: str) -> None:
        """``prefix`` is the start of the metric names, for example ``tierd_``."""
        self._connections = connections
        self._held_bytes = held_bytes
        self._prefix = prefix

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            self._prefix + "connections", "Open connections to the web server.", self._connections.count()
        )
        refused = CounterMetricFamily(
            self._prefix + "connections_refused",
            "Requests and connections refused, by reason: limit (all connections are in use), address (the source"
            " address uses its share of them), bytes (responses to other clients use the memory for responses).",
            labels=("reason",),
        )
        dropped = CounterMetricFamily(
            self._prefix + "connections_dropped",
            "Connections ended in favour of another client, by reason: waiting (the request was not complete), slow"
            " (the client read its response slowly).",
            labels=("reason",),
        )
        for reason, number in self._connections.refused().items():
            refused.add_metric((reason,), number)
        for reason, number in self._connections.dropped().items():
            dropped.add_metric((reason,), number)
        yield refused
        yield dropped
        yield GaugeMetricFamily(
            self._prefix + "response_held_bytes",
            "Bytes of responses that clients are reading now. Bytes shared by several clients count once.",
            self._held_bytes(),
        )
