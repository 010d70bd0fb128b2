"""One pass over the node: every collector in turn, timed, within its deadline, none able to spoil another's work."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from exporter.clock import Clock
from exporter.collector import Collect, Collector, Context
from exporter.config import Settings
from exporter.families import Family, Page
from exporter.lane import BusyError, Lane, LateError
from exporter.node import Node, Places, Survey, Tally
from exporter.osc import OscTotals
from lustre.tree import Tree

log = logging.getLogger("lustre-exporter")


@dataclass(slots=True)
class Outcome:
    """How a collector fared in its latest pass, and what it has read in all."""

    tally: Tally = field(default_factory=Tally)
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

    def __init__(self, collector: Collector, context: Context) -> None:
        self.collector = collector
        self.collect: Collect = collector.start(context)
        self.lane: Lane[Page] = Lane(f"collector-{collector.name}")
        self.outcome = Outcome()


class Scraper:
    """Runs the enabled collectors; call ``run`` from one thread at a time."""

    def __init__(self, tree: Tree, collectors: Sequence[Collector], settings: Settings, clock: Clock) -> None:
        context = Context(settings, OscTotals())
        self._places = Places(tree)
        self._clock = clock
        self._deadline_seconds = settings.deadline_seconds
        self._running = [_Running(c, context) for c in collectors if c.name in settings.enabled]

    @property
    def names(self) -> tuple[str, ...]:
        """Collectors that are enabled."""
        return tuple([running.collector.name for running in self._running])

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """By collector."""
        return {running.collector.name: running.outcome for running in self._running}

    @property
    def tree(self) -> Tree:
        """The node's parameters."""
        return self._places.tree

    def run(self, names: Collection[str] | None = None) -> Result:
        """One pass of all collectors, or of those named."""
        survey = Survey(self._places)
        found: list[tuple[Family, Sequence[bytes]]] = []
        for running in self._running:
            if names is None or running.collector.name in names:
                page = self._one(running, survey)
                chunks = page.chunks
                found += [(family, chunks[family]) for family in running.collector.families if chunks.get(family)]
        return Result(tuple(found))

    def _one(self, running: _Running, survey: Survey) -> Page:
        outcome = running.outcome

        def collect() -> Page:
            page = Page()
            running.collect(Node(survey, outcome.tally), page)
            return page

        began = self._clock()
        page, reason = Page(), ""
        try:
            page = running.lane.run(collect, self._deadline_seconds)
        except LateError:
            reason = f"took longer than {self._deadline_seconds:g} s; a parameter may be hanging"
        except BusyError:
            reason = "still waits for a parameter since an earlier scrape"
        except Exception as error:  # noqa: BLE001 - the collectors that do work must still be shown
            reason = f"{type(error).__name__}: {error}"
        outcome.seconds = self._clock() - began
        self._note(running.collector.name, outcome, reason)
        outcome.samples = bool(page.chunks)
        return page

    def _note(self, name: str, outcome: Outcome, reason: str) -> None:
        """Say once that a collector fails, and once that it recovered."""
        if reason and outcome.success:
            log.warning("collector %s: %s", name, reason)
        elif not reason and not outcome.success:
            log.warning("collector %s works again", name)
        outcome.success, outcome.reason = not reason, reason
