"""One mover per file system: a claim in a folder on it, with a generation that only grows (a fencing token).

The claim is an entry named after its generation. Who wants it makes the next one, which the file system lets only one
of them do. Nobody's clock is believed: a claim is dead when its stamp has not changed for so long by the clock of the
one who watches. Whoever was taken over from finds a higher generation before its next act, and stops. No flock is
needed: Lustre mounts have it only with ``-o flock``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Annotated, ClassVar, Protocol

from annotated_types import Ge

_NAME = re.compile(r"(\d{1,18})(\.free)?")


@dataclass(frozen=True)
class Settings:
    """Where the claim lies, and when one counts as dead."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    folder: str = "/.tierd"
    """From the root of the file system; made for root only. All who move files of a file system name the same."""
    expiry_seconds: Annotated[float, Ge(10)] = 60.0
    """A claim that shows no sign of life for so long is taken over. Its holder stops by itself after half of it."""


class Folder(Protocol):
    """Entries that are made with their content in one step, by one of all who try. Every method may raise OSError."""

    def names(self) -> list[str]:
        """What is there; nothing where the folder has not been made."""

    def make(self, name: str, content: str) -> None:
        """Make an entry. Raises FileExistsError where somebody was first."""

    def content(self, name: str) -> str:
        """What it was made with."""

    def stamp(self, name: str) -> int:
        """A number that :meth:`touch` changes."""

    def touch(self, name: str) -> None:
        """A sign of life. Raises FileNotFoundError where it has been taken away."""

    def free(self, name: str) -> None:
        """Give it another name, with ``.free`` at its end."""

    def remove(self, name: str) -> None:
        """Take it away."""


class Claim:
    """The claim of one daemon. ``monotonic`` is its own clock, ``dead`` tells of a holder that it is surely gone."""

    def __init__(self, folder: Folder, holder: str, monotonic: Callable[[], float], settings: Settings,
                 dead: Callable[[str], bool] = lambda _: False) -> None:
        self._folder = folder
        self._holder = holder
        self._monotonic = monotonic
        self._expiry = settings.expiry_seconds
        self._dead = dead
        self._lock = RLock()
        self._mine = ""
        self._alive_at = 0.0
        self._watched: tuple[str, int, float] = ("", 0, 0.0)
        """Of somebody else's claim: its name, its stamp, and since when that has been the same."""

    @property
    def generation(self) -> int:
        """The fencing token; 0 while nothing is held."""
        return int(self._mine) if self._mine else 0

    def hold(self) -> str:
        """Take the claim, or go on holding it: "", or why it cannot be had."""
        with self._lock:
            try:
                if self._mine and not self._lost():
                    self._touch()
                    return ""
                return self._take()
            except OSError as error:
                return f"the claim of this file system cannot be had: {error}"

    def _take(self) -> str:
        name, free = self._highest()
        if name and not free:
            holder = self._folder.content(name)
            if self._unchanged_for(name) < self._expiry and not self._dead(holder):
                return (f"another tierd moves files of this file system: {described(holder)}; two never do. It "
                        f"is taken over from when it has been silent for {self._expiry:.0f} s")
        wanted = f"{int(name or 0) + 1:018d}"
        begun = self._monotonic()
        try:
            self._folder.make(wanted, self._holder)
        except FileExistsError:
            return "another tierd took over this file system a moment ago; two never move its files"
        self._mine, self._alive_at = wanted, begun
        for old in self._folder.names():
            known = _NAME.fullmatch(old)
            if known and int(known[1]) < int(wanted):
                self._folder.remove(old)
        return ""

    def renew(self) -> None:
        """A sign of life, from whatever thread. When it cannot be given, :meth:`refusal` will say so."""
        with self._lock:
            if self._mine:
                try:
                    self._touch()
                except OSError:
                    return

    def refusal(self) -> str:
        """Why nothing may be changed now, asked before each act; "" while the claim is ours."""
        with self._lock:
            if not self._mine:
                return "the claim of this file system is not held"
            silent = self._monotonic() - self._alive_at
            if silent > self._expiry / 2:
                return f"the claim of this file system could not be renewed for {silent:.0f} s"
            try:
                return "another tierd has taken this file system over" if self._lost() else ""
            except OSError as error:
                return f"the claim of this file system cannot be read: {error}"

    def release(self) -> None:
        """Give it back, so that the next one need not wait. What cannot be given back dies by itself."""
        with self._lock:
            try:
                if self._mine and not self._lost():
                    self._folder.free(self._mine)
            except OSError:
                return
            finally:
                self._mine = ""

    def _touch(self) -> None:
        now = self._monotonic()
        self._folder.touch(self._mine)
        self._alive_at = now

    def _lost(self) -> bool:
        name, free = self._highest()
        if name == self._mine and not free and self._folder.content(name) == self._holder:
            return False
        self._mine = ""
        return True

    def _highest(self) -> tuple[str, bool]:
        """The present claim, and whether it was given back; "" where there never was one."""
        known = [match for name in self._folder.names() if (match := _NAME.fullmatch(name))]
        if not known:
            return "", True
        last = max(known, key=lambda match: (int(match[1]), bool(match[2])))
        return last[1], bool(last[2])

    def _unchanged_for(self, name: str) -> float:
        stamp, now = self._folder.stamp(name), self._monotonic()
        if self._watched[:2] != (name, stamp):
            self._watched = name, stamp, now
        return now - self._watched[2]


def described(holder: str) -> str:
    """A holder for people.

    >>> described("host=mgmt02 pid=812 since=2026-11-21T04:50:00Z boot=5f namespace=1 nonce=9")
    'host mgmt02, pid 812, since 2026-11-21T04:50:00Z'
    """
    fields = dict(part.partition("=")[::2] for part in holder.split())
    words = [f"{name} {fields[name]}" for name in ("host", "pid", "since") if name in fields]
    return ascii(", ".join(words))[1:-1] or ascii(holder)
