"""Reads of parameters that have not returned, and the threads left behind in them."""

from __future__ import annotations

import sys
import threading

Reading = tuple[str, str, str]
"""A read in progress: kind, device (empty for a parameter without one), and name. Each read has its own object."""
HANGING = "hanging"
"""Name of the error of a read that has not returned."""
MAX_HANGING = 32
"""Limit on threads that wait for a read to return: a choice."""
NONE: frozenset[str] = frozenset()


class AbandonedError(Exception):
    """The pass of this thread was abandoned while it read a parameter. Another thread collects in its place."""


class HangingReads:
    """Reads that have not returned, each of which keeps a thread. Their devices are not read until they return."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reads: dict[tuple[str, str], Reading] = {}

    def add(self, reading: Reading) -> bool:
        """Add a read. Returns False if there are too many."""
        with self._lock:
            if len(self._reads) >= MAX_HANGING:
                return False
            self._reads[reading[:2]] = reading
            return True

    def remove(self, reading: Reading) -> None:
        with self._lock:
            self._reads.pop(reading[:2], None)

    def devices(self, kind: str) -> frozenset[str]:
        return frozenset([device for of_kind, device in [*self._reads] if of_kind == kind]) if self._reads else NONE

    def all(self) -> list[Reading]:
        with self._lock:
            return [*self._reads.values()]


class Batch:
    """A read of parameters of many devices in progress."""

    __slots__ = ("_seen", "devices", "kind", "names", "progress")

    def __init__(self, kind: str, names: tuple[str, ...], devices: list[str]) -> None:
        self.kind = kind
        self.names = names
        self.devices = devices
        self.progress = bytearray(b"\xff" * 8)
        """Position of the file that is being read (device times names, plus name); -1 before and after. The C module
        writes it."""
        self._seen: tuple[int, Reading] | None = None

    def reading(self) -> Reading | None:
        """Return the read in progress: the same object as long as it is the same read."""
        position = int.from_bytes(self.progress, sys.byteorder, signed=True)
        if position < 0:
            return None
        if self._seen is None or self._seen[0] != position:
            device, name = divmod(position, len(self.names))
            self._seen = position, (self.kind, self.devices[device], self.names[name])
        return self._seen[1]


class PassState:
    """The read in progress of one pass of a collector. The pass can be abandoned if this read does not return."""

    __slots__ = ("_left", "abandoned", "batch", "hanging", "one")

    def __init__(self, hanging: HangingReads) -> None:
        self.hanging = hanging
        self.one: Reading | None = None
        self.batch: Batch | None = None
        self.abandoned = False
        self._left: Reading | None = None
        """The read in which the pass was abandoned."""

    @property
    def reading(self) -> Reading | None:
        """The read in progress: the same object as long as it is the same read."""
        batch = self.batch
        return self.one if batch is None else batch.reading()

    def abandon(self, reading: Reading) -> bool:
        """Leave the thread of this pass behind in this read. Returns False if too many threads are left behind."""
        if not self.hanging.add(reading):
            return False
        self._left = reading
        self.abandoned = True  # before the check below, so that its thread cannot miss it
        if self.reading is not reading:  # it returned meanwhile
            self.hanging.remove(reading)
        return True

    def returned(self) -> None:
        """Record that the read returned. Raises AbandonedError if the pass was abandoned."""
        self.one = self.batch = None
        if self.abandoned:
            if self._left is not None:
                self.hanging.remove(self._left)
            raise AbandonedError
