"""Changes in directories of this node, through inotify.

inotify reports what goes through this node's own kernel: neither what other clients of Lustre do, nor counters. So it
can report, on a file system with one client, that files were created and closed. When its queue overflows, events are
lost, and this is reported.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

MAX_EVENTS = 100_000
"""Events held until they are taken; further ones are reported as lost."""
_HEAD = struct.Struct("iIII")
_ACCESS, _MODIFY, _ATTRIBUTES, CLOSE_WRITE, CLOSE_READ, OPEN = (1 << bit for bit in range(6))
MOVED_FROM, MOVED_TO, CREATE, DELETE, DELETE_SELF, MOVE_SELF = (1 << bit for bit in range(6, 12))
_UNMOUNT, _OVERFLOW, _IGNORED, _ONLY_DIRECTORIES, IS_DIRECTORY = 0x2000, 0x4000, 0x8000, 0x01000000, 0x40000000
FILES = CREATE | OPEN | CLOSE_WRITE | CLOSE_READ | MOVED_FROM | MOVED_TO | DELETE


class Event(NamedTuple):
    """Something happened to a name in a directory."""

    folder: str
    name: str
    mask: int
    time: float


class InotifyError(OSError):
    """A directory that cannot be watched, and how to correct that."""


class Watcher:
    """Reads events in its own thread, so that the kernel's short queue does not overflow between two cycles."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor: int = self._libc.inotify_init1(os.O_CLOEXEC)
        if self._descriptor < 0:
            raise InotifyError(watch_error(ctypes.get_errno(), "inotify"))
        self._now = now
        self._folders: dict[int, str] = {}
        self._events: deque[Event] = deque()
        self._lost = ""
        self._lock = threading.Lock()
        self._stop = os.eventfd(0)
        self._thread = threading.Thread(target=self._run, name="tierd-inotify", daemon=True)
        self._thread.start()

    @property
    def folders(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._folders.values())

    def add(self, folder: str, mask: int) -> None:
        """Watch a directory. Raises InotifyError with what to do about it."""
        with self._lock:
            number = self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), mask | _ONLY_DIRECTORIES)
            if number < 0:
                raise InotifyError(watch_error(ctypes.get_errno(), folder))
            self._folders[number] = folder

    def take(self) -> tuple[list[Event], str]:
        """Events since the last call, and why some were lost ("" when none were)."""
        with self._lock:
            events, lost = list(self._events), self._lost
            self._events.clear()
            self._lost = ""
        return events, lost

    def close(self) -> None:
        os.eventfd_write(self._stop, 1)
        self._thread.join()
        os.close(self._descriptor)
        os.close(self._stop)

    def _run(self) -> None:
        poll = select.poll()
        for descriptor in (self._descriptor, self._stop):
            poll.register(descriptor, select.POLLIN)
        while True:
            ready = [descriptor for descriptor, _ in poll.poll()]
            if self._stop in ready:
                return
            try:
                data = os.read(self._descriptor, 1 << 18)
            except OSError:
                continue
            self._take(data)

    def _take(self, data: bytes) -> None:
        at, now = 0, self._now()
        with self._lock:
            while at + _HEAD.size <= len(data):
                number, mask, _, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size
                name = os.fsdecode(data[at:at + length].rstrip(b"\0"))
                at += length
                if mask & _OVERFLOW:
                    self._lost = "the kernel's queue overflowed (fs.inotify.max_queued_events)"
                elif mask & (_IGNORED | _UNMOUNT):
                    self._folders.pop(number, None)
                elif len(self._events) >= MAX_EVENTS:
                    self._lost = f"more than {MAX_EVENTS} events came before they were read"
                elif number in self._folders:
                    self._events.append(Event(self._folders[number], name, mask, now))


def watch_error(number: int, what: str) -> str:
    """Why something cannot be watched, and what to do."""
    correction = {errno.ENOSPC: "raise the sysctl fs.inotify.max_user_watches",
            errno.EMFILE: "raise the sysctl fs.inotify.max_user_instances"}.get(number, "")
    return f"{ascii(what)[1:-1]} cannot be watched: {os.strerror(number)}{f': {correction}' if correction else ''}"
