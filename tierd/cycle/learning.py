"""After a start: what others remember of the jobs at work is taken as known, so that nobody has to wait for it."""

from __future__ import annotations

from collections.abc import Callable

from tierd.clock import Clock
from tierd.cycle.telling import Telling
from tierd.engine import Engine
from tierd.model import Window
from tierd.sense.prometheus_history import Learnt

AskHistory = Callable[[Window, float], Learnt]
"""What was before a time of the jobs of a window. Raises OSError."""
MOST_TRIES = 5
AGAIN_SECONDS = 60.0


class Learning:
    """Asks until there is an answer, a few times; then what streams get is learnt by looking alone."""

    def __init__(self, ask: AskHistory | None, engine: Engine, telling: Telling, clock: Clock) -> None:
        self._ask = ask
        self._engine = engine
        self._telling = telling
        self._clock = clock
        self._begun: float | None = None
        self._next_at = 0.0
        self._tries = 0

    def __call__(self, seen: Window) -> None:
        """Ask, where it is time to: before anything is thought about the window."""
        if self._ask is None or self._clock.now() < self._next_at:
            return
        self._begun = seen.start if self._begun is None else self._begun
        self._tries += 1
        self._next_at = self._clock.now() + AGAIN_SECONDS
        try:
            learnt = self._ask(seen, self._begun)
        except OSError as error:
            self._telling.say(f"what streams usually get is learnt by looking: {error}")
            if self._tries >= MOST_TRIES:
                self._ask = None
            return
        self._ask = None
        self._engine.learn(learnt.windows, learnt.jobs)
        self._telling.say(f"learnt from Prometheus' history: {len(learnt.windows)} windows of {len(learnt.jobs)} jobs")
