"""Signs of life while a cycle takes long: of the claim to other movers, and of the process to systemd's watchdog.

A move may take as long as its file is large. So one thread renews the claim, and another tells the watchdog, for as
long as a cycle may last at the most; after that the process counts as hung, and systemd starts it anew. They are two,
for the claim lies on the file system: while an MDS is away, renewing it waits, and that is no reason to be ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

BEAT_SECONDS = 5.0


class Lives(Protocol):
    """What gives signs of life; :class:`tierd.service.service.Service`, and its keeper."""

    def renew(self) -> None:
        """A sign of life of the claim to other movers; waits for as long as the file system does not answer."""

    def beat(self) -> bool:
        """Whether we live: False when a cycle hangs. Never waits for the file system."""


class Pulse:
    """Beats in a thread of its own until it is stopped."""

    def __init__(self, beat: Callable[[], None], seconds: float) -> None:
        self._beat = beat
        self._seconds = seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tierd-pulse", daemon=True)

    def start(self) -> Pulse:
        """Begin."""
        self._thread.start()
        return self

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            self._beat()

    def stop(self) -> None:
        """End; a beat that hangs in the file system is not waited for."""
        self._stopped.set()
        self._thread.join(timeout=2.0)
