"""Prometheus metrics of the web configuration."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from httpserver.config import WebConfigFile


class WebConfigMetrics(Collector):
    """Whether the last load of the web configuration succeeded, and how many requests it denied."""

    def __init__(self, web_config: WebConfigFile, prefix: str) -> None:
        """``prefix`` begins the names of the metrics, for example ``tierd_``."""
        self._web_config = web_config
        self._prefix = prefix

    def collect(self) -> Iterator[Metric]:
        """Both families."""
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
