"""What a new window comes to: what holds now, told where it began or ended, and what could not be seen for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import RLock

from tierd.config import Settings
from tierd.cycle.cases import Case
from tierd.cycle.learning import Learning
from tierd.cycle.telling import Key, Telling
from tierd.engine import Engine, Thought
from tierd.facts import Facts
from tierd.model import Finding, Window
from tierd.policies import JUDGED
from tierd.sense.changelogs import ActivityTable
from tierd.sense.facts import Gatherer
from tierd.sense.own_work import OwnWork


class Thinking:
    """Asks the engine, and holds what it found last."""

    def __init__(self, engine: Engine, table: ActivityTable, gatherer: Gatherer, learn: Learning, own_work: OwnWork,
                 telling: Telling, cases: Mapping[Key, Case], settings: Settings,
                 facts: Callable[[float], Facts] | None = None, lock: RLock | None = None) -> None:
        """``facts`` gives the latest facts where somebody else gathers them; ``lock`` guards the cases."""
        self._engine = engine
        self._table = table
        self._gatherer = gatherer
        self._facts = facts or gatherer.facts
        self._learn = learn
        self._own_work = own_work
        self._telling = telling
        self._cases = cases
        self._detectors = tuple(configured.detector.name for configured in settings.detect)
        self._lock = lock or RLock()
        self.windows: Sequence[Window] = engine.windows
        """The history as of the last look, oldest first."""
        self.findings: tuple[Finding, ...] = ()
        self.fresh: tuple[Finding, ...] = ()
        """The same, while nothing has hidden the world since."""

    def think(self, seen: Window, now: float) -> None:
        """What holds, told where it is new."""
        self._learn(seen)
        whose = self._own_work(seen)
        self._telling.fault("mover", whose.trouble)
        thought = self._engine.think(seen, self._table.of_job, lambda: self._facts(now), whose.own_jobs,
                                     self._table.counts_of_job)
        for what in ("room", "clients"):
            self._telling.fault(what, self._gatherer.faults.get(what, ""))
        for name in self._detectors:
            failed = self._engine.blind.get(name, "")
            self._telling.fault(f"detector {name}",
                                failed and f"detector {name} failed and finds nothing: {failed}")
        self.windows = self._engine.windows
        with self._lock:
            self._tell(thought)
        self.findings = self.fresh = thought.findings

    def _tell(self, thought: Thought) -> None:
        for finding in thought.begun:
            case = self._cases.get(finding.key)
            if case is not None and not case.closed:
                case.over = False
            self._telling.begun(finding)
        for finding in thought.ended:
            case = self._cases.get(finding.key)
            self._telling.ended(finding, acted_on=case is not None)
            if case is not None:
                case.over = True
                if finding.kind not in JUDGED:
                    case.tried.clear()  # when it comes back, what was tried may be tried again
