"""Prometheus metrics of the web configuration, and of the connections and the bytes held for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from httpserver.bodies import HeldBodies
from httpserver.config import WebConfigFile
from httpserver.connections import Connections


@dataclass(frozen=True)
class WebConfigMetrics(Collector):
    """Whether the last load of the web configuration succeeded, and how many requests it denied."""

    web_config: WebConfigFile
    prefix: str
    """Start of the metric names, for example ``tierd_``."""

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            self.prefix + "web_config_reload_successful",
            "Whether the last load of --web.config.file succeeded (1) or the previous configuration is still in use"
            " (0).", float(self.web_config.successful))
        yield CounterMetricFamily(self.prefix + "web_requests_denied",
                                  "Requests denied because of missing or wrong credentials.", self.web_config.denied)


@dataclass(frozen=True)
class ConnectionMetrics(Collector):
    """Open connections, connections refused and dropped by reason, and bytes held for responses."""

    connections: Connections
    bodies: HeldBodies
    prefix: str

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(self.prefix + "connections", "Open connections to the web server.",
                                self.connections.count())
        refused = CounterMetricFamily(
            self.prefix + "connections_refused",
            "Requests and connections refused, by reason: limit (all connections are in use), address (the source"
            " address uses its share of them), bytes (responses to other clients use the memory for responses).",
            labels=("reason",))
        dropped = CounterMetricFamily(
            self.prefix + "connections_dropped",
            "Connections ended in favour of another client, by reason: waiting (the request was not complete), slow"
            " (the client read its response slowly).", labels=("reason",))
        counted = {**self.connections.refused, "bytes": self.bodies.refused}
        for family, numbers in ((refused, counted), (dropped, self.connections.ended)):
            for reason, number in numbers.items():
                family.add_metric((reason,), number)
            yield family
        yield GaugeMetricFamily(
            self.prefix + "response_held_bytes",
            "Bytes of responses that clients are reading now. Bytes shared by several clients count once.",
            self.bodies.held_bytes())
