"""One scrape: runs every collector, times it, and keeps the deadline; no collector spoils the result of another.

Collectors run one after the other, since side by side they would only compete for the interpreter. A collector that
is not done soon is assumed to wait for a parameter, since reading some parameters asks a server, and a server may not
answer: the next collectors run meanwhile, and it is asked again at the end. So a parameter that hangs costs the
scrape its deadline once, and its collector fails until the read returns. Each collector has one thread at most.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from exporter import clock
from exporter import clock as clocks
from exporter.clock import Clock, Wait
from exporter.collector import Collect, Collector, Context, Settings
from exporter.connections import OscTotals
from exporter.exposition import Family, MetricsPage, ScrapeResult
from exporter.node import Node, NodeSnapshot, ParameterIndex, ReadStats
from lustre.parameters import Tree

T = TypeVar("T")


class BusyError(Exception):
    """The previous call has not come back yet."""


class LateError(Exception):
    """The call did not come back in time."""


class WorkerThread(Generic[T]):
    """Runs one call at a time and waits for it no longer than it is told."""

    def __init__(self, name: str, wait: Wait = clock.wait) -> None:
        self._name = name
        self._wait = wait
        self._running: _Call[T] | None = None

    def start(self, call: Callable[[], T]) -> None:
        """Begin; ``BusyError`` when an earlier call is still out."""
        if self._running is not None and not self._running.done.is_set():
            raise BusyError
        self._running = _Call(call)
        threading.Thread(target=self._running.run, name=self._name, daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Whether the call came back, within this time."""
        return self._running is None or self._wait(self._running.done, max(0.0, seconds))

    def result(self, seconds: float) -> T:
        """The call's result; its exception; or ``LateError`` when it takes longer."""
        running = self._running
        assert running is not None, "started"
        if not self._wait(running.done, max(0.0, seconds)):
            raise LateError
        self._running = None
        return running.outcome()

    def run(self, call: Callable[[], T], seconds: float) -> T:
        """Start it and wait for its result."""
        self.start(call)
        return self.result(seconds)


class _Call(Generic[T]):
    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._result: list[T] = []
        self._error: BaseException | None = None
        self.done = threading.Event()

    def run(self) -> None:
        try:
            self._result.append(self._call())
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised again where the caller waits
            self._error = error
        finally:
            self.done.set()

    def outcome(self) -> T:
        if self._error is not None:
            raise self._error
        return self._result[0]


log = logging.getLogger("lustre-exporter")
PERMISSION = "CAP_DAC_READ_SEARCH"
MAX_NAMED_PARAMETERS = 3
"""Parameters that are named in a sentence."""
TURN_SHARE = 1 / 8
"""Of the time that is left: how long a collector may keep the next one waiting. However many hang, some is left."""


@dataclass(slots=True)
class CollectorStatus:
    """How a collector fared in its latest pass, and what it has read in all."""

    tally: ReadStats = field(default_factory=ReadStats)
    passes: int = 0
    success: bool = True
    seconds: float = 0.0
    samples: bool = False
    """It found something to show."""
    reason: str = ""
    """Why it did not succeed."""


class _CollectorRun:
    """A collector at work."""

    def __init__(self, collector: Collector, context: Context, clock: Clock, wait: Wait) -> None:
        self.collector = collector
        self.outcome = CollectorStatus()
        self._collect: Collect = collector.start(context)
        self.lane: WorkerThread[tuple[MetricsPage, float]] = WorkerThread(f"collector-{collector.name}", wait)
        self._clock = clock
        self._began = 0.0
        self._busy = False

    def start(self, snapshot: NodeSnapshot, turn_seconds: float) -> None:
        """Begin, unless it is still out; come back when it is done or its turn is over."""

        def collect() -> tuple[MetricsPage, float]:
            page = MetricsPage()
            self._collect(Node(snapshot, self.outcome.tally), page)
            return page, self._clock()

        self._began = self._clock()
        self._busy = False
        try:
            self.lane.start(collect)
        except BusyError:
            self._busy = True
        else:
            self.lane.wait(turn_seconds)

    def finish(self, seconds: float, deadline_seconds: float) -> MetricsPage:
        """What it has found, if it is done within this time; how it fared is noted."""
        page, reason, ended = MetricsPage(), "", None
        try:
            if self._busy:
                raise BusyError
            page, ended = self.lane.result(seconds)
        except LateError:
            reason = f"not finished after {deadline_seconds:.3g} s; reading a parameter may hang"
        except BusyError:
            reason = "still reading a parameter since an earlier scrape"
        except Exception as error:  # noqa: BLE001 - the collectors that do work must still be shown
            reason = f"{type(error).__name__}: {error}"
        self._note(reason)
        self.outcome.passes += 1
        self.outcome.seconds = (self._clock() if ended is None else ended) - self._began
        self.outcome.samples = bool(page.chunks)
        return page

    def _note(self, reason: str) -> None:
        """Say once that it fails, and once that it recovered."""
        if reason and self.outcome.success:
            log.warning("collector %s: %s", self.collector.name, reason)
        elif not reason and not self.outcome.success:
            log.warning("collector %s works again", self.collector.name)
        self.outcome.success, self.outcome.reason = not reason, reason


class Scraper:
    """Runs the enabled collectors; no two passes at a time may run the same one."""

    def __init__(
        self,
        tree: Tree,
        collectors: Sequence[Collector],
        settings: Settings,
        clock: Clock,
        wall: Clock = clocks.wall,
        wait: Wait = clocks.wait,
    ) -> None:
        context = Context(settings, OscTotals(), wall)
        self._places = ParameterIndex(tree)
        self._clock = clock
        self._deadline_seconds = settings.deadline_seconds
        self._running = [_CollectorRun(c, context, clock, wait) for c in collectors if c.name in settings.enabled]
        self._refused = ""
        """What was said to be closed to this process."""

    @property
    def deadline_seconds(self) -> float:
        """How long a pass may take at the most."""
        return self._deadline_seconds

    @property
    def names(self) -> tuple[str, ...]:
        """Collectors that are enabled."""
        return tuple([running.collector.name for running in self._running])

    @property
    def outcomes(self) -> dict[str, CollectorStatus]:
        """By collector."""
        return {running.collector.name: running.outcome for running in self._running}

    @property
    def places(self) -> ParameterIndex:
        """Where the node's parameters are."""
        return self._places

    @property
    def tree(self) -> Tree:
        """The node's parameters."""
        return self._places.tree

    def run(self, names: Collection[str] | None = None, limit_seconds: float | None = None) -> ScrapeResult:
        """One pass of all collectors, or of those named, within the deadline and within this limit."""
        deadline = self._deadline_seconds if limit_seconds is None else min(self._deadline_seconds, limit_seconds)
        over = self._clock() + deadline
        snapshot = NodeSnapshot(self._places)
        asked = [running for running in self._running if names is None or running.collector.name in names]
        for running in asked:
            running.start(snapshot, (over - self._clock()) * TURN_SHARE)
        found: list[tuple[Family, Sequence[bytes]]] = []
        for running in asked:
            chunks = running.finish(over - self._clock(), deadline).chunks
            found += [(family, chunks[family]) for family in running.collector.families if chunks.get(family)]
        self._log_unreadable()
        return ScrapeResult(tuple(found))

    def _log_unreadable(self) -> None:
        """Log once what this process may not read, because missing metrics look like missing parameters."""
        refused = sorted({parameter for running in self._running for parameter, error in
                          running.outcome.tally.errors.copy() if error in {"EACCES", "EPERM"}})
        words = [f"no permission to list {place}" for place in self.tree.closed().values()]
        if refused:
            more = f" and {len(refused) - MAX_NAMED_PARAMETERS} more" if len(refused) > MAX_NAMED_PARAMETERS else ""
            words.append(f"no permission to read {', '.join(refused[:MAX_NAMED_PARAMETERS])}{more}")
        if words and "; ".join(words) != self._refused:
            log.warning("%s: metrics are missing. Run as root or with %s", "; ".join(words), PERMISSION)
        self._refused = "; ".join(words)
