"""Whether the daemon lives: for the watchdog, and for whoever asks over HTTP."""

from __future__ import annotations

from collections.abc import Callable

from tierd.clock import Clock
from tierd.config import Settings

HUNG_AFTER_SECONDS = 300.0
"""A look that lasts so much longer than any source may take counts as hung."""
STALE_CYCLES = 5
"""Without a look for so many cycle times, and half a minute, the daemon no longer counts as living."""


class Liveness:
    """Told by looking, which never waits for the file system. That others wait for it is no reason to be ended."""

    def __init__(self, looking_since: Callable[[], float], last_cycle_at: Callable[[], float], settings: Settings,
                 clock: Clock) -> None:
        self._looking_since = looking_since
        """Beginning of the look under way; 0 between two."""
        self._last_cycle_at = last_cycle_at
        """When a look ended last; 0 before the first."""
        self._settings = settings
        self._clock = clock
        self._begun = clock.now()

    def hung(self) -> bool:
        """Whether a look has taken longer than any may."""
        begun = self._looking_since()
        return bool(begun) and self._clock.now() - begun > self._settings.movers.timeout_seconds + HUNG_AFTER_SECONDS

    def alive(self) -> bool:
        """Whether looks still come. One may take long."""
        if self._looking_since():
            return not self.hung()
        last = self._last_cycle_at() or self._begun
        return self._clock.now() - last < STALE_CYCLES * self._settings.sense.cycle_seconds + 30
