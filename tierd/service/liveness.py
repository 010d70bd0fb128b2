"""Whether cycles still come: for the watchdog, and for whoever asks over HTTP."""

from __future__ import annotations

from collections.abc import Callable

from tierd.clock import Clock
from tierd.config import Settings
from tierd.desk.board import Board

HUNG_AFTER_SECONDS = 300.0
"""A cycle that lasts so much longer than one move may counts as hung."""
STALE_CYCLES = 5
"""Without a cycle for so many cycle times, and half a minute, the daemon no longer counts as living."""


class Liveness:
    """Told from the board, which is read without waiting for a cycle."""

    def __init__(self, board: Board, last_cycle_at: Callable[[], float], settings: Settings, clock: Clock) -> None:
        self._board = board
        self._last_cycle_at = last_cycle_at
        """When a cycle ended last; 0 before the first."""
        self._settings = settings
        self._clock = clock
        self._begun = clock.now()

    def hung(self) -> bool:
        """Whether a cycle has taken longer than any may."""
        begun = self._board.cycle_begun_at
        return bool(begun) and self._clock.now() - begun > self._settings.movers.timeout_seconds + HUNG_AFTER_SECONDS

    def alive(self) -> bool:
        """Whether cycles still come. One that moves a large file may take long."""
        if self._board.cycle_begun_at:
            return not self.hung()
        last = self._last_cycle_at() or self._begun
        return self._clock.now() - last < STALE_CYCLES * self._settings.sense.cycle_seconds + 30
