"""One pass over the node: every collector, timed, within the pass's deadline, none able to spoil another's work.

Collectors take turns, since side by side they would only fight for the interpreter. One that is not done soon is taken
for waiting, not working: the next ones have their turns meanwhile, and it is asked again at the end. So a pass with a
parameter that hangs takes its deadline once, and no longer.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from exporter import clock as clocks
from exporter.clock import Clock, Wait
from exporter.collector import Collect, Collector, Context
from exporter.config import Settings
from exporter.families import Family
from exporter.lane import BusyError, Lane, LateError
from exporter.node import Node, Survey
from exporter.osc import OscTotals
from exporter.page import Page
from exporter.places import Places
from exporter.tally import Tally
from lustre.parameters import Tree

log = logging.getLogger("lustre-exporter")
PERMISSION = "CAP_DAC_READ_SEARCH"
TOLD = 3
"""Parameters that are named in a sentence."""
TURN_SHARE = 1 / 8
"""Of the time that is left: how long a collector may keep the next one waiting. However many hang, some is left."""


@dataclass(slots=True)
class Outcome:
    """How a collector fared in its latest pass, and what it has read in all."""

    tally: Tally = field(default_factory=Tally)
    passes: int = 0
    success: bool = True
    seconds: float = 0.0
    samples: bool = False
    """It found something to show."""
    reason: str = ""
    """Why it did not succeed."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a pass found: families in a fixed order, each with its chunks."""

    families: tuple[tuple[Family, Sequence[bytes]], ...]


class _Running:
    """A collector at work."""

    def __init__(self, collector: Collector, context: Context, clock: Clock, wait: Wait) -> None:
        self.collector = collector
        self.outcome = Outcome()
        self._collect: Collect = collector.start(context)
        self.lane: Lane[tuple[Page, float]] = Lane(f"collector-{collector.name}", wait)
        self._clock = clock
        self._began = 0.0
        self._busy = False

    def start(self, survey: Survey, turn_seconds: float) -> None:
        """Begin, unless it is still out; come back when it is done or its turn is over."""

        def collect() -> tuple[Page, float]:
            page = Page()
            self._collect(Node(survey, self.outcome.tally), page)
            return page, self._clock()

        self._began = self._clock()
        self._busy = False
        try:
            self.lane.start(collect)
        except BusyError:
            self._busy = True
        else:
            self.lane.wait(turn_seconds)

    def finish(self, seconds: float, deadline_seconds: float) -> Page:
        """What it has found, if it is done within this time; how it fared is noted."""
        page, reason, ended = Page(), "", None
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
        self._places = Places(tree)
        self._clock = clock
        self._deadline_seconds = settings.deadline_seconds
        self._running = [_Running(c, context, clock, wait) for c in collectors if c.name in settings.enabled]
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
    def outcomes(self) -> dict[str, Outcome]:
        """By collector."""
        return {running.collector.name: running.outcome for running in self._running}

    @property
    def places(self) -> Places:
        """Where the node's parameters are."""
        return self._places

    @property
    def tree(self) -> Tree:
        """The node's parameters."""
        return self._places.tree

    def run(self, names: Collection[str] | None = None, limit_seconds: float | None = None) -> Result:
        """One pass of all collectors, or of those named, within the deadline and within this limit."""
        deadline = self._deadline_seconds if limit_seconds is None else min(self._deadline_seconds, limit_seconds)
        over = self._clock() + deadline
        survey = Survey(self._places)
        asked = [running for running in self._running if names is None or running.collector.name in names]
        for running in asked:
            running.start(survey, (over - self._clock()) * TURN_SHARE)
        found: list[tuple[Family, Sequence[bytes]]] = []
        for running in asked:
            chunks = running.finish(over - self._clock(), deadline).chunks
            found += [(family, chunks[family]) for family in running.collector.families if chunks.get(family)]
        self._tell_what_is_refused()
        return Result(tuple(found))

    def _tell_what_is_refused(self) -> None:
        """Log once what this process may not read, because missing metrics look like missing parameters."""
        refused = sorted({parameter for running in self._running for parameter, error in
                          running.outcome.tally.errors.copy() if error in {"EACCES", "EPERM"}})
        words = [f"no permission to list {place}" for place in self.tree.closed().values()]
        if refused:
            more = f" and {len(refused) - TOLD} more" if len(refused) > TOLD else ""
            words.append(f"no permission to read {', '.join(refused[:TOLD])}{more}")
        if words and "; ".join(words) != self._refused:
            log.warning("%s: metrics are missing. Run as root or with %s", "; ".join(words), PERMISSION)
        self._refused = "; ".join(words)
