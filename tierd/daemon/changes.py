"""Waiting for the next status: what the page's server-sent events are made of."""

from __future__ import annotations

import threading


class Changes:
    """Counts announcements, and lets a few threads wait for the next one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._number = 0
        self._closed = False

    @property
    def number(self) -> int:
        """Number of announcements so far."""
        return self._number

    @property
    def closed(self) -> bool:
        """Whether no announcement follows."""
        return self._closed

    def announce(self) -> None:
        """Wake all that wait."""
        with self._changed:
            self._number += 1
            self._changed.notify_all()

    def close(self) -> None:
        """Wake all that wait; nobody waits any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def rest(self, seconds: float) -> None:
        """Wait for so long, or until no announcement follows."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed, seconds)

    def wait(self, after: int, seconds: float) -> int:
        """Wait until there are more than ``after`` announcements, or for so long. Returns their number."""
        with self._changed:
            self._changed.wait_for(lambda: self._number > after or self._closed, seconds)
            return self._number
