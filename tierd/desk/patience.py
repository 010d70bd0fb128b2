"""Who asks waits for the end of the cycle, but not for ever."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

PATIENCE_SECONDS = 20.0
"""So long a request waits for the cycle, and so long a directory is looked through."""


@contextmanager
def between_cycles(lock: RLock) -> Iterator[None]:
    """Hold the daemon between two cycles. Raises ValueError, for whoever asked, when that would take too long."""
    if not lock.acquire(timeout=PATIENCE_SECONDS):
        raise ValueError("tierd is in the middle of a cycle that takes long (a large file moves); ask again later")
    try:
        yield
    finally:
        lock.release()
