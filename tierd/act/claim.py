"""One mover per file system: a claim in a folder on it, with a generation that only grows (a fencing token).

The claim is an entry named after its generation. Who wants the claim makes the next entry, which the file system lets
only one process do. No clock of another node counts: a claim is dead when its stamp has not changed for the expiry time
by the clock of the node that watches. A daemon that was taken over finds a higher generation before its next act, and
stops. No flock is needed: Lustre mounts have it only with ``-o flock``.

On a mounted file system an entry is a symbolic link that leads nowhere. The MDT makes it with its content in one step,
without an object on any OST, so a claim can be taken and renewed while an OST hangs, and ``ls -l`` shows the holder.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Protocol

from tierd.config.act import ClaimSettings
from tierd.refusal import Reason, Refusal


class FilesystemClaim(Protocol):
    """What the daemon needs of a claim."""

    def hold(self) -> Refusal | None:
        """Take the claim, or renew it; or refuse."""

    def renew(self) -> None:
        """A sign of life, from whatever thread."""

    def refusal(self) -> Refusal | None:
        """Refuses acts unless this daemon holds the claim. Called before each act."""

    def release(self) -> None:
        """Give it back."""

    @property
    def generation(self) -> int:
        """The fencing token; 0 while nothing is held."""


class NoClaim:
    """For a file system that nobody else can reach."""

    generation = 0

    def hold(self) -> Refusal | None:
        """See the protocol."""
        return None

    def renew(self) -> None:
        """Nothing to renew."""

    def refusal(self) -> Refusal | None:
        """See the protocol."""
        return None

    def release(self) -> None:
        """Nothing to give back."""


_ENTRY_NAME = re.compile(r"(\d{1,18})(\.free)?")


class ClaimFolder(Protocol):
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

    def __init__(self, folder: ClaimFolder, holder: str, monotonic: Callable[[], float], settings: ClaimSettings,
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

    def hold(self) -> Refusal | None:
        """Take the claim, or renew it; or refuse."""
        with self._lock:
            try:
                if self._mine and not self._lost():
                    self._touch()
                    return None
                return self._take()
            except OSError as error:
                return Refusal(Reason.CLAIM_UNREADABLE, f"the claim of this file system cannot be had: {error}")

    def _take(self) -> Refusal | None:
        name, free = self._highest()
        if name and not free:
            holder = self._folder.content(name)
            if self._unchanged_for(name) < self._expiry and not self._dead(holder):
                return Refusal(Reason.CLAIM_HELD, f"another tierd moves files of this file system: "
                               f"{describe_holder(holder)}. This tierd takes over once the other has been silent for "
                               f"{self._expiry:.0f} s")
        wanted = f"{int(name or 0) + 1:018d}"
        begun = self._monotonic()
        try:
            self._folder.make(wanted, self._holder)
        except FileExistsError:
            return Refusal(Reason.CLAIM_HELD, "another tierd took over this file system a moment ago")
        self._mine, self._alive_at = wanted, begun
        for old in self._folder.names():
            known = _ENTRY_NAME.fullmatch(old)
            if known and int(known[1]) < int(wanted):
                self._folder.remove(old)
        return None

    def renew(self) -> None:
        """A sign of life, from whatever thread. When it cannot be given, :meth:`refusal` will say so."""
        with self._lock:
            if self._mine:
                try:
                    self._touch()
                except OSError:
                    return

    def refusal(self) -> Refusal | None:
        """Refuses acts unless this daemon holds the claim. Called before each act."""
        with self._lock:
            if not self._mine:
                return Refusal(Reason.CLAIM_LOST, "the claim of this file system is not held")
            silent = self._monotonic() - self._alive_at
            if silent > self._expiry / 2:
                return Refusal(Reason.CLAIM_LOST,
                               f"the claim of this file system could not be renewed for {silent:.0f} s")
            try:
                if self._lost():
                    return Refusal(Reason.CLAIM_LOST, "another tierd has taken this file system over")
            except OSError as error:
                return Refusal(Reason.CLAIM_UNREADABLE, f"the claim of this file system cannot be read: {error}")
            return None

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
        known = [match for name in self._folder.names() if (match := _ENTRY_NAME.fullmatch(name))]
        if not known:
            return "", True
        last = max(known, key=lambda match: (int(match[1]), bool(match[2])))
        return last[1], bool(last[2])

    def _unchanged_for(self, name: str) -> float:
        stamp, now = self._folder.stamp(name), self._monotonic()
        if self._watched[:2] != (name, stamp):
            self._watched = name, stamp, now
        return now - self._watched[2]


def describe_holder(holder: str) -> str:
    """A holder for people.

    >>> describe_holder("host=mgmt02 pid=812 since=2026-11-21T04:50:00Z boot=5f namespace=1 nonce=9")
    'host mgmt02, pid 812, since 2026-11-21T04:50:00Z'
    """
    fields = dict(part.partition("=")[::2] for part in holder.split())
    words = [f"{name} {fields[name]}" for name in ("host", "pid", "since") if name in fields]
    return ascii(", ".join(words))[1:-1] or ascii(holder)


class MountedClaimFolder:
    """Implements :class:`tierd.act.claim.ClaimFolder`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self._path

    def names(self) -> list[str]:
        """See the protocol."""
        try:
            return os.listdir(self._path)
        except FileNotFoundError:
            return []

    def make(self, name: str, content: str) -> None:
        """See the protocol."""
        with suppress(FileExistsError):
            self._path.mkdir(mode=0o700)
        os.symlink(content, self._path / name)

    def content(self, name: str) -> str:
        """See the protocol."""
        return os.readlink(self._path / name)

    def stamp(self, name: str) -> int:
        """See the protocol."""
        return os.lstat(self._path / name).st_mtime_ns

    def touch(self, name: str) -> None:
        """See the protocol. Lustre keeps whole seconds: the next one is another number for certain."""
        place = self._path / name
        seconds = os.lstat(place).st_mtime_ns // 1_000_000_000 + 1
        os.utime(place, (seconds, seconds), follow_symlinks=False)

    def free(self, name: str) -> None:
        """See the protocol."""
        os.rename(self._path / name, self._path / f"{name}.free")

    def remove(self, name: str) -> None:
        """See the protocol."""
        with suppress(FileNotFoundError):
            os.unlink(self._path / name)


def describe_this_process(now: float, proc: Path) -> str:
    """Who we are: words that name no other process. ``proc`` is /proc."""
    since = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    host = "".join(os.uname().nodename.split()) or "unknown"
    return (f"host={host} pid={os.getpid()} since={since} boot={_boot(proc)} namespace={_namespace(proc)} "
            f"nonce={secrets.token_hex(8)}")


def holder_has_exited(words: str, proc: Path) -> bool:
    """Whether that holder was a process of this machine, since its start, that has ended. In doubt it lives."""
    fields = dict(part.partition("=")[::2] for part in words.split())
    boot, namespace = _boot(proc), _namespace(proc)
    if not boot or not namespace or (fields.get("boot"), fields.get("namespace")) != (boot, namespace):
        return False
    try:
        os.kill(int(fields["pid"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, KeyError, ValueError):
        return False
    return False


def _boot(proc: Path) -> str:
    try:
        return (proc / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _namespace(proc: Path) -> str:
    """Process numbers of another container mean nothing here."""
    try:
        return os.readlink(proc / "self/ns/pid").replace(" ", "")
    except OSError:
        return ""
