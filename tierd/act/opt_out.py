"""Opt-out of users: ``user.tierd`` on a file or on a directory above it, and files pinned to a pool.

``setfattr -n user.tierd -v off DIR`` opts a directory out, with everything below it; ``on`` opts a part of it in
again: the nearest attribute decides. ``lustre.pin`` is Lustre's own attribute (2.18): the file stays in the pool that
it names.
"""

from __future__ import annotations

from collections.abc import Iterator

from lustre.filesystem import Filesystem
from tierd.clock import Clock
from tierd.refusal import Reason, Refusal
from tierd.text import quoted

OPT_OUT = "user.tierd"
PIN = "lustre.pin"


class OptOut:
    """Reads the attributes. Caches the attributes of directories for some seconds: each read is a request to an MDT."""

    def __init__(self, filesystem: Filesystem, clock: Clock, remember_seconds: float = 10.0) -> None:
        self._filesystem = filesystem
        self._clock = clock
        self._remember_seconds = remember_seconds
        self._known: dict[str, tuple[float, bytes]] = {}

    def of_file(self, path: str) -> Refusal | None:
        """Refuses a file whose owner opted out, that is pinned, or whose attributes cannot be read."""
        try:
            pin = self._filesystem.xattr(path, PIN)
            own = self._filesystem.xattr(path, OPT_OUT)
        except FileNotFoundError:
            return None  # the mover reports it
        except OSError as error:
            return Refusal(Reason.OPT_OUT_UNREADABLE,
                           f"tierd cannot read the opt-out of the file: {error.strerror or error}")
        if pin:
            return Refusal(Reason.PINNED, f"the file is pinned: {' '.join(pin.decode('utf-8', 'replace').split())}")
        return self._meaning(own, path) if own else self.of_directory(path.rpartition("/")[0] or "/")

    def of_directory(self, path: str) -> Refusal | None:
        """Refuses a directory whose owner opted out, or whose attributes cannot be read."""
        for directory in with_parents(path):
            try:
                value = self._of(directory)
            except FileNotFoundError:
                continue
            except OSError as error:
                why = error.strerror or error
                return Refusal(Reason.OPT_OUT_UNREADABLE,
                               f"tierd cannot read the opt-out of {quoted(directory)}: {why}")
            if value:
                return self._meaning(value, directory)
        return None

    def _meaning(self, value: bytes, place: str) -> Refusal | None:
        word = value.rstrip(b"\0\n").decode("utf-8", "replace").strip().lower()
        if word == "on":
            return None
        if word == "off":
            return Refusal(Reason.OPTED_OUT, f"{OPT_OUT} is off at {quoted(place)}: the owner opted out")
        return Refusal(Reason.OPTED_OUT,
                       f"{OPT_OUT} is {word!r} at {quoted(place)}, neither on nor off, so tierd changes nothing there")

    def _of(self, directory: str) -> bytes:
        now = self._clock.now()
        known = self._known.get(directory)
        if known is not None and 0 <= now - known[0] < self._remember_seconds:
            return known[1]
        if len(self._known) > 10_000:
            self._known.clear()
        value = self._filesystem.xattr(directory, OPT_OUT)
        self._known[directory] = now, value
        return value


def with_parents(path: str) -> Iterator[str]:
    """A directory and those above it.

    >>> list(with_parents("/proj/a"))
    ['/proj/a', '/proj', '/']
    """
    while path not in {"", "/"}:
        yield path
        path = path.rpartition("/")[0]
    yield "/"
