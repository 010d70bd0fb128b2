"""A standby of the leader: it follows the leader's journal, and answers on the socket and the port of its settings.

Both use the addresses of the leader, and are closed before this process leads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from httpserver.config import WebConfigFile
from httpserver.metrics import WebConfigMetrics
from tierd.act.dispatch import RemoteStandby
from tierd.config.settings import Settings
from tierd.daemon import metrics, web
from tierd.daemon.answers import Ask, Json, StandbyAnswer, to_json
from tierd.daemon.changes import CHANGING_REQUESTS
from tierd.daemon.control import ControlServer
from tierd.daemon.metrics import gauge
from tierd.text import printable

HUNG_SECONDS = 120.0
"""A standby whose last attempt to lead is older is not healthy: the file system or NATS does not answer."""


def standby_families(now: RemoteStandby, web_config: WebConfigFile | None, *, connected: bool) -> Iterator[Metric]:
    """Metrics of a standby."""
    yield metrics.build_info()
    yield gauge("tierd_standing_by", metrics.STANDING_BY, 1.0)
    yield gauge("tierd_nats_up", metrics.NATS_UP, connected)
    yield gauge("tierd_leader_generation", "Generation of the claim of the tierd that leads. 0 means that nobody"
                " leads.", now.generation)
    yield gauge("tierd_standby_problem", "Whether this standby could not lead now (1), or could (0).",
                bool(now.problem))
    behind, age = now.behind_messages, now.copy_age_seconds
    yield gauge("tierd_journal_copy_behind_messages", "Messages of the journal's stream that the copy lacks. NaN if"
                " unknown.", float("nan") if behind is None else behind)
    yield gauge("tierd_journal_copy_age_seconds", "Time since the copy of the journal was complete, at the last"
                " attempt to lead. +Inf if it never was.", float("inf") if age is None else age)
    if web_config is not None:
        yield from WebConfigMetrics(web_config, "tierd_").collect()


class StandbyApp(web.App):
    """The port of a standby: the status as text instead of the pages."""

    def __init__(self, registry: CollectorRegistry, ask: Ask, alive: Callable[[], bool],
                 page: Callable[[], str]) -> None:
        super().__init__(registry, ask, alive, lambda: None)
        self._text = page

    def _page(self, path: str, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if path != "/":
            return web.respond(start, "404 Not Found", "/, /metrics, /-/healthy, /-/ready\n")
        return web.respond(start, "200 OK", printable(self._text()) + "\n")


class StandbyServer:
    """The socket and the port of a standby, from construction to :meth:`close`."""

    def __init__(self, settings: Settings, fs: str, standby: Callable[[], RemoteStandby], connected: Callable[[], bool],
                 now: Callable[[], float], web_config: WebConfigFile | None = None) -> None:
        """``standby`` returns the present state, for any thread. Raises OSError if an address is in use."""
        self._fs, self._standby, self._now = fs, standby, now
        self.port = 0
        with ExitStack() as opened:
            control = ControlServer(settings.act.socket, self.answer, settings.control, CHANGING_REQUESTS)
            opened.callback(control.close)
            if settings.web.enabled:
                registry = metrics.registry_of(
                    lambda: standby_families(standby(), web_config, connected=connected()), fs)
                app = StandbyApp(registry, self.answer, self._alive, self._sentence)
                server = web.listen(settings.web, app, web_config)
                opened.callback(server.close)
                self.port = server.port
            self._closing = opened.pop_all()

    def _alive(self) -> bool:
        return abs(self._now() - self._standby().seen) < HUNG_SECONDS

    def _sentence(self) -> str:
        by = self._standby()
        leads = f"{by.leader} leads (generation {by.generation})" if by.leader else "no leader"
        return f"this tierd stands by for {self._fs}; {leads}"

    def answer(self, request: Json) -> Json:
        """The answer to a request. Raises ValueError for all but the status."""
        if request.get("request") != "status":
            raise ValueError(f"{self._sentence()}: ask the leader")
        by = self._standby()
        return to_json(StandbyAnswer.of(by, time=self._now(), fs=self._fs,
                                        faults={"standby": by.problem} if by.problem else {}))

    def close(self) -> None:
        """Close both, so that the service of the leader can listen."""
        self._closing.close()
