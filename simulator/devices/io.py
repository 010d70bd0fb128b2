"""One I/O to a device."""

from __future__ import annotations

from collections.abc import Callable


class Io:
    """Bytes at a place of the device, and what to call when they are there."""

    __slots__ = ("done", "position_bytes", "queued_at", "size_bytes", "write")

    def __init__(self, write: bool, position_bytes: int, size_bytes: int, done: Callable[[], None]) -> None:
        self.write = write
        self.position_bytes = position_bytes
        self.size_bytes = size_bytes
        self.done = done
        self.queued_at = 0.0
