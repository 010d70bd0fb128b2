"""A standby's control socket and port: who leads, and how far its copy of the journal is.

They listen at the addresses of the leader's, and close before this process leads. Requests other than the status are
refused with the name of the leader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Protocol
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from httpserver.config import WebConfigFile
from httpserver.metrics import WebConfigMetrics
from lustre import __version__
from tierd.config.settings import Settings
from tierd.daemon import web
from tierd.daemon.answers import Json, StandbyAnswer, to_json
from tierd.daemon.control import ControlServer
from tierd.daemon.metrics import STANDING_BY
from tierd.daemon.requests import CHANGING_REQUESTS
from tierd.text import printable

HUNG_SECONDS = 120.0
"""A standby whose last attempt to lead is older is not healthy: the file system or NATS does not answer."""


class Standby(Protocol):
    """A standby, as its servers show it."""

    @property
    def seen(self) -> float:
        """Time of the last attempt to lead, epoch seconds."""

    @property
    def name(self) -> str:
        """Its name among standbys."""

    @property
    def leader(self) -> str:
        """Who leads, in words; "" if nobody does."""

    @property
    def generation(self) -> int:
        """Generation of the leader's claim; 0 without a leader."""

    @property
    def position(self) -> int:
        """Sequence of the last message that the copy contains."""

    @property
    def behind_messages(self) -> int | None:
        """Messages that the copy lacks; None if unknown."""

    @property
    def copy_age_seconds(self) -> float | None:
        """Time since the copy was complete at the last attempt; None if it never was."""

    @property
    def problem(self) -> str:
        """Why it could not lead; "" if it could."""


class StandbyCollector(Collector):
    """Metrics of a standby."""

    def __init__(self, fs: str, standby: Callable[[], Standby], connected: Callable[[], bool],
                 web_config: WebConfigFile | None) -> None:
        self._fs = fs
        self._standby = standby
        self._connected = connected
        self._web_config = web_config

    def collect(self) -> Iterator[Metric]:
        """All families, with the label of the file system."""
        for family in self._families():
            family.samples = [each._replace(labels={**each.labels, "fs": self._fs}) for each in family.samples]
            yield family

    def _families(self) -> Iterator[Metric]:
        now = self._standby()
        info = InfoMetricFamily("tierd_build", "Always 1. The label names the release of tierd.")
        info.add_metric((), {"version": __version__})
        yield info
        yield GaugeMetricFamily("tierd_standing_by", STANDING_BY, 1.0)
        yield GaugeMetricFamily("tierd_nats_up", "Whether tierd is connected to NATS (1) or not (0). Without NATS a"
                                " standby cannot lead.", float(self._connected()))
        yield GaugeMetricFamily("tierd_leader_generation", "Generation of the claim of the tierd that leads. 0 means"
                                " that nobody leads.", now.generation)
        yield GaugeMetricFamily("tierd_standby_problem", "Whether this standby could not lead now (1), or could (0).",
                                float(bool(now.problem)))
        behind, age = now.behind_messages, now.copy_age_seconds
        yield GaugeMetricFamily("tierd_journal_copy_behind_messages", "Messages of the journal's stream that the copy"
                                " lacks. NaN if unknown.", float("nan") if behind is None else behind)
        yield GaugeMetricFamily("tierd_journal_copy_age_seconds", "Time since the copy of the journal was complete, at"
                                " the last attempt to lead. +Inf if it never was.",
                                float("inf") if age is None else age)
        if self._web_config is not None:
            yield from WebConfigMetrics(self._web_config, "tierd_").collect()


class StandbyApp(web.App):
    """The port of a standby: the status as text instead of the pages."""

    def __init__(self, registry: CollectorRegistry, ask: web.Ask, alive: Callable[[], bool],
                 page: Callable[[], str]) -> None:
        super().__init__(registry, ask, alive, lambda: None)
        self._text = page

    def _page(self, path: str, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if path != "/":
            return web.respond(start, "404 Not Found", "/, /metrics, /-/healthy, /-/ready\n")
        return web.respond(start, "200 OK", printable(self._text()) + "\n")


class StandbyServer:
    """The socket and the port of a standby, from construction to :meth:`close`."""

    def __init__(self, settings: Settings, fs: str, standby: Callable[[], Standby], connected: Callable[[], bool],
                 now: Callable[[], float], web_config: WebConfigFile | None = None) -> None:
        """``standby`` returns the present state, for any thread. Raises OSError if an address is in use."""
        self._fs = fs
        self._standby = standby
        self._now = now
        self._closing = ExitStack()
        try:
            self._listen(settings, connected, web_config)
        except BaseException:
            self._closing.close()
            raise

    def _listen(self, settings: Settings, connected: Callable[[], bool], web_config: WebConfigFile | None) -> None:
        control = ControlServer(settings.act.socket, self.answer, settings.control.access, CHANGING_REQUESTS)
        self._closing.callback(control.close)
        self.port = 0
        if not settings.web.enabled:
            return
        registry = CollectorRegistry()
        registry.register(StandbyCollector(self._fs, self._standby, connected, web_config))
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        server = web.listen(settings.web, StandbyApp(registry, self.answer, self._alive, self._sentence), web_config)
        self._closing.callback(server.close)
        self.port = server.port

    def _alive(self) -> bool:
        return abs(self._now() - self._standby().seen) < HUNG_SECONDS

    def _sentence(self) -> str:
        """Who leads, in a sentence."""
        by = self._standby()
        leads = f"{by.leader} leads (generation {by.generation})" if by.leader else "nobody leads"
        return f"this tierd stands by for {self._fs}; {leads}"

    def answer(self, request: Json) -> Json:
        """The answer to a request. Raises ValueError for all but the status."""
        if request.get("request") != "status":
            raise ValueError(f"{self._sentence()}: ask the leader")
        by = self._standby()
        faults = {"standby": by.problem} if by.problem else {}
        return to_json(StandbyAnswer(
            time=self._now(), fs=self._fs, name=by.name, leader=by.leader, generation=by.generation,
            position=by.position, behind_messages=by.behind_messages, copy_age_seconds=by.copy_age_seconds,
            faults=faults))

    def close(self) -> None:
        """Close both, so that the service of the leader can listen."""
        self._closing.close()
