"""The plan that ``tierctl plan`` shows. It is made in the background: it asks the file system, which may not answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from tierd.clock import Clock
from tierd.daemon.answers import PlanAnswer, PlannedAnswer, StatusAnswer
from tierd.daemon.status import action_answer, finding_answer
from tierd.decide.plans import Plan
from tierd.model import Finding

FRESH_SECONDS = 5.0
"""A younger plan is not made again: each costs a few requests to an MDT for each file."""


class Plans(Protocol):
    """The part of the daemon that plans are made of."""

    def preview(self) -> list[tuple[Finding, Plan]]:
        """The present plan for each finding. Raises OSError."""

    def number(self, finding: Finding) -> int:
        """Number of a finding in the journal; 0 if it has ended meanwhile and was not acted on."""

    def recorded(self, finding: Finding) -> Finding:
        """A finding with the figures and the beginning that all output has."""


class Previews:
    """Makes a plan when one is asked for, and answers with the last one. Waits for nothing; safe in any thread."""

    def __init__(self, plans: Plans, clock: Clock, background: Callable[[Callable[[], None]], object]) -> None:
        """``background`` runs a call, if possible in another thread."""
        self._plans = plans
        self._clock = clock
        self._background = background
        self._lock = threading.Lock()
        self._begun_at: float | None = None
        self._made_at: float | None = None
        self._made: Sequence[PlannedAnswer] = ()
        self._problem = ""

    def renew(self) -> None:
        """Begin to make a plan, unless the last one is fresh or another is being made."""
        with self._lock:
            now = self._clock.now()
            fresh = self._made_at is not None and not self._problem and 0 <= now - self._made_at < FRESH_SECONDS
            if self._begun_at is not None or fresh:
                return
            self._begun_at = now
        self._background(self._make)

    def answer(self, status: StatusAnswer) -> PlanAnswer:
        """The last plan, with its age."""
        now, begun_at, made_at = self._clock.now(), self._begun_at, self._made_at
        return PlanAnswer(tuple(self._made), status, age_seconds=None if made_at is None else max(0.0, now - made_at),
                          being_made_seconds=None if begun_at is None else max(0.0, now - begun_at),
                          problem=self._problem)

    def _make(self) -> None:
        try:
            self._made = tuple(
                PlannedAnswer(
                    finding=finding_answer(self._plans.recorded(finding), self._plans.number(finding) or None),
                    actions=tuple(map(action_answer, plan.actions)),
                    recommended=tuple(map(action_answer, plan.recommended)), refusals=tuple(map(str, plan.refusals)))
                for finding, plan in self._plans.preview())
            self._made_at, self._problem = self._clock.now(), ""
        except OSError as error:
            self._problem = f"no plan could be made: {error.strerror or error}"
        finally:
            self._begun_at = None
