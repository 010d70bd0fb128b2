"""One scrape: runs and times every collector within the deadline. A collector that fails does not affect the others.

Collectors run one after the other, because in parallel they would only compete for the interpreter. Reading some
parameters sends a request to a server, which may not answer. If a collector takes long, the next collectors start
meanwhile, and the scrape waits for the slow collector at the end. If a read has not returned when the turn of its
collector is over, its thread is left behind, and the collector runs again without the device of that read. The device
is read again after the read has returned. At most ``MAX_HANGING`` threads are left behind; beyond that, and for a
collector that is slow for another reason, the collector fails until it returns.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from exporter import clock as clocks
from exporter.clock import Clock, Wait
from exporter.collector import Collect, Collector, Context, Settings
from exporter.connections import OscTotals
from exporter.exposition import Family, MetricsPage, ScrapeResult
from exporter.hanging import PassState, Reading
from exporter.node import Node, NodeMemory, NodeSnapshot
from exporter.reading import ReadStats, reading_name
from lustre.parameters import Tree

T = TypeVar("T")


class BusyError(Exception):
    """The previous call has not returned yet."""


class LateError(Exception):
    """The call did not return in time."""


class WorkerThread(Generic[T]):
    """Runs one call at a time in a daemon thread, and waits for it with a time limit.

    It is not a ThreadPoolExecutor, because the interpreter joins the threads of executors at exit, and a parameter that
    hangs would keep the process from ending.
    """

    def __init__(self, name: str, wait: Wait = clocks.wait) -> None:
        self._name = name
        self._wait = wait
        self._future: Future[T] | None = None

    def start(self, call: Callable[[], T]) -> None:
        """Start a call. Raises BusyError if the previous call has not returned."""
        if self.is_busy():
            raise BusyError
        future: Future[T] = Future()
        self._future = future
        threading.Thread(target=_run, args=(call, future), name=self._name, daemon=True).start()

    def is_busy(self) -> bool:
        return self._future is not None and not self._future.done()

    def wait(self, seconds: float) -> bool:
        return self._future is None or self._wait(self._future, max(0.0, seconds))

    def result(self, seconds: float) -> T:
        """Return the result of the call or raise its exception. Raises LateError if the call takes longer."""
        future = self._future
        assert future is not None, "started"
        if not self._wait(future, max(0.0, seconds)):
            raise LateError
        self._future = None
        return future.result()

    def leave(self) -> None:
        """Forget the call in progress. Its thread ends when it returns."""
        self._future = None

    def run(self, call: Callable[[], T], seconds: float) -> T:
        self.start(call)
        return self.result(seconds)


def _run(call: Callable[[], T], future: Future[T]) -> None:
    try:
        future.set_result(call())
    except BaseException as error:  # noqa: BLE001 - raised again where the caller waits
        future.set_exception(error)


log = logging.getLogger("lustre-exporter")
PERMISSION = "CAP_DAC_READ_SEARCH"
LOG_AGAIN_SECONDS = 3600.0
"""Time between two log lines on implausible values of a parameter."""
MAX_NAMED_PARAMETERS = 3
"""Maximum number of parameters that a log line names."""
CHECK_SHARE = 1 / 4
"""Share of a turn between two checks of a read, after which it counts as hanging."""
SHORTEST_CHECK_SECONDS = 0.1
"""Shortest such time: a read on a busy node takes tens of milliseconds. With less, the next pass checks. A choice."""
TURN_SHARE = 1 / 8
"""Share of the remaining time for which a collector delays the next one. Some time remains even if many hang."""


@dataclass(slots=True)
class CollectorStatus:
    """The result of a collector's last pass, and statistics of its reads since the start."""

    reads: ReadStats = field(default_factory=ReadStats)
    passes: int = 0
    success: bool = True
    seconds: float = 0.0
    read_at: float | None = None
    """Begin of the last pass that succeeded, by the node's clock; seconds since 1970. None before the first."""
    samples: bool = False
    """Whether the collector found metrics."""
    chunks: int = 0
    """Texts that may be unchanged, since the start."""
    chunks_reused: int = 0
    """Number of these texts that were unchanged, so that their lines were used again."""
    reason: str = ""
    """Reason of a failure."""


class _CollectorRun:
    def __init__(self, collector: Collector, context: Context, clock: Clock, wait: Wait) -> None:
        self._wall = context.wall
        self._read_at = 0.0
        self.collector = collector
        self.outcome = CollectorStatus()
        self._collect: Collect = collector.start(context)
        self.worker: WorkerThread[tuple[MetricsPage, float]] = WorkerThread(f"collector-{collector.name}", wait)
        self._clock = clock
        self._began = 0.0
        self._busy = False
        self._state: PassState | None = None
        self._reading: Reading | None = None
        """The read that was in progress at the last check."""

    def start(self, snapshot: NodeSnapshot, turn_seconds: float) -> None:
        """Start a pass unless the last pass still runs. Returns when the pass is done or its turn is over."""
        self._began = self._clock()
        if self.worker.is_busy() and self._is_hanging():
            self._leave_behind()
        self._launch(snapshot)
        check_seconds = turn_seconds * CHECK_SHARE
        while not self._busy and not self.worker.wait(turn_seconds):
            # only a read that is the same at two checks hangs
            self._is_hanging()
            if self._reading is None or check_seconds < SHORTEST_CHECK_SECONDS or self.worker.wait(check_seconds):
                return
            if not self._is_hanging() or not self._leave_behind():
                return
            self._launch(snapshot)

    def _launch(self, snapshot: NodeSnapshot) -> None:
        state = PassState(snapshot.memory.parameters.hanging)

        def collect() -> tuple[MetricsPage, float]:
            page = MetricsPage()
            self._collect(Node(snapshot, self.outcome.reads, state), page)
            return page, self._clock()

        self._busy = self.worker.is_busy()
        if not self._busy:
            self._state = state
            self._read_at = self._wall()
            self.worker.start(collect)

    def _is_hanging(self) -> bool:
        """Whether the read in progress is that of the last call of this method."""
        before, self._reading = self._reading, None if self._state is None else self._state.reading
        return self._reading is not None and self._reading is before

    def _leave_behind(self) -> bool:
        """Leave the hanging read to its thread. Returns False if too many threads are left behind."""
        state, reading, self._reading = self._state, self._reading, None
        if state is None or reading is None or not state.abandon(reading):
            return False
        self.worker.leave()
        log.warning("reading %s does not return; %s is left out until it does",
                    reading_name(reading), reading[1] or "it")  # fmt: skip
        return True

    def finish(self, seconds: float, deadline_seconds: float) -> MetricsPage:
        """Return the metrics if the pass ends within this time. Records the result in ``outcome``."""
        page, reason, ended = MetricsPage(), "", None
        if self._busy or not self.worker.wait(seconds):
            self._is_hanging()  # so that the next pass sees whether it is the same read
            reason = "still reading a parameter since an earlier scrape" if self._busy else (
                f"not finished after {deadline_seconds:.3g} s; reading a parameter may hang")
        else:
            try:
                page, ended = self.worker.result(0.0)
            except Exception as error:  # noqa: BLE001 - the other collectors must still be shown
                reason = f"{type(error).__name__}: {error}"
        self._note(reason)
        if not reason:
            self.outcome.read_at = self._read_at
        self.outcome.passes += 1
        self.outcome.seconds = (self._clock() if ended is None else ended) - self._began
        self.outcome.samples = bool(page.chunks)
        self.outcome.chunks += page.made
        self.outcome.chunks_reused += page.reused
        return page

    def _note(self, reason: str) -> None:
        if reason and self.outcome.success:
            log.warning("collector %s: %s", self.collector.name, reason)
        elif not reason and not self.outcome.success:
            log.warning("collector %s works again", self.collector.name)
        self.outcome.success, self.outcome.reason = not reason, reason


class Scraper:
    """Runs the enabled collectors. The caller must not run the same collector in two passes at a time."""

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
        self.memory = NodeMemory(tree)
        self.tree = tree
        self._clock = clock
        self.deadline_seconds = settings.deadline_seconds
        """Time limit of a pass."""
        self._running = [_CollectorRun(c, context, clock, wait) for c in collectors if c.name in settings.enabled]
        self._implausible: dict[tuple[str, str], tuple[int, float]] = {}
        """Number of implausible values at the last log line, and its time, by collector and parameter."""
        self._refused = ""
        """The last log line on parameters that this process may not read."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple([running.collector.name for running in self._running])

    @property
    def outcomes(self) -> dict[str, CollectorStatus]:
        return {running.collector.name: running.outcome for running in self._running}

    def run(self, names: Collection[str] | None = None, limit_seconds: float | None = None) -> ScrapeResult:
        """Run one pass of all collectors, or of the named ones, within the deadline and this limit."""
        deadline = self.deadline_seconds if limit_seconds is None else min(self.deadline_seconds, limit_seconds)
        over = self._clock() + deadline
        snapshot = NodeSnapshot(self.memory)
        requested = [running for running in self._running if names is None or running.collector.name in names]
        for running in requested:
            running.start(snapshot, (over - self._clock()) * TURN_SHARE)
        found: list[tuple[Family, Sequence[bytes]]] = []
        for running in requested:
            chunks = running.finish(over - self._clock(), deadline).chunks
            found += [(family, chunks[family]) for family in running.collector.families if chunks.get(family)]
        self._log_unreadable()
        self._log_implausible()
        return ScrapeResult(tuple(found))

    def _log_implausible(self) -> None:
        """Log values that no target can reach, once for each parameter and hour."""
        for running in self._running:
            # copied: a thread that is late still counts
            for parameter, values in running.outcome.reads.implausible.copy().items():
                key = running.collector.name, parameter
                before, logged = self._implausible.get(key, (0, -LOG_AGAIN_SECONDS))
                if values > before and self._clock() - logged >= LOG_AGAIN_SECONDS:
                    left_out = values - before
                    log.warning("%s: %d values that no target can reach were left out of sums", parameter, left_out)
                    self._implausible[key] = values, self._clock()

    def _log_unreadable(self) -> None:
        """Log once which parameters this process may not read, because missing metrics look like missing parameters."""
        refused = sorted({parameter for running in self._running for parameter, error in
                          running.outcome.reads.errors.copy() if error in {"EACCES", "EPERM"}})
        words = [f"no permission to list {place}" for place in self.tree.closed().values()]
        if refused:
            more = f" and {len(refused) - MAX_NAMED_PARAMETERS} more" if len(refused) > MAX_NAMED_PARAMETERS else ""
            words.append(f"no permission to read {', '.join(refused[:MAX_NAMED_PARAMETERS])}{more}")
        if words and "; ".join(words) != self._refused:
            log.warning("%s: metrics are missing. Run as root or with %s", "; ".join(words), PERMISSION)
        self._refused = "; ".join(words)
