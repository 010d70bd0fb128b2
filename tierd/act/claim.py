"""One mover per file system: a claim in a folder on it, with a generation that only grows (a fencing token).

The claim is an entry named after its generation. A daemon takes the claim by creating the next entry; the file system
lets only one process create it. Clocks of other nodes do not matter: a claim has expired when its timestamp has not
changed for the expiry time by the clock of the node that watches it. A daemon that lost its claim finds a higher
generation before its next act, and stops. The claim needs no flock: Lustre mounts have it only with ``-o flock``.

On a mounted file system an entry is a dangling symbolic link. The MDT creates it with its content in one step, without
an object on any OST. So a daemon can take and renew a claim while an OST hangs, and ``ls -l`` shows the holder.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock

from lustre import mounts
from lustre.errors import NotLustre
from tierd.config.act import ClaimSettings
from tierd.refusal import Reason, Refusal


class FilesystemClaim:
    """A claim, as the daemon uses it. This one is for a file system that only this process can reach."""

    def hold(self) -> Refusal | None:
        """Take the claim, or renew it. Refuses if another tierd holds it or the claim is unreadable."""
        return None

    def renew(self) -> None:
        """Renew the claim. Any thread may call it. If renewal fails for long, :meth:`refusal` refuses acts."""

    def refusal(self) -> Refusal | None:
        """Refuses acts unless this daemon holds the claim. Called before each act."""
        return None

    def release(self) -> None:
        """Release the claim, so that the next daemon need not wait. A claim that cannot be released expires."""

    @property
    def generation(self) -> int:
        """The fencing token; 0 without a claim."""
        return 0

    @property
    def holder(self) -> str:
        """Content of the claim, with a random number in it, which only root can read: the secret of signatures."""
        return ""


_ENTRY_NAME = re.compile(r"(\d{1,18})(\.free)?")


class ClaimFolder:
    """Entries that one process creates, with their content, in one step. Every method may raise OSError."""

    def __init__(self, path: Path, mount: mounts.Mount | None = None) -> None:
        """After an unmount there is another folder: with ``mount``, :meth:`names` raises NotLustre then."""
        self.path, self._mount = path, mount

    def names(self) -> list[str]:
        """Names of all entries; empty if the folder does not exist."""
        of, listed = self._mount, Path("/proc/self/mounts")
        if of is not None and replace(mounts.find(of.path, listed.read_bytes()), read_only=of.read_only) != of:
            raise NotLustre(errno.ENODEV, f"something else is mounted, and not {of.fsname}{of.subdirectory}", of.path)
        with suppress(FileNotFoundError):
            return os.listdir(self.path)
        return []

    def prepare(self) -> None:
        """Make the folder. Raises PermissionError if it is there, and a user may have made it, or may read it."""
        with suppress(FileExistsError):
            self.path.mkdir(mode=0o700)  # a claim has a secret of root
        found = os.lstat(self.path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise PermissionError(errno.EPERM, "not a folder for root only (mode 0700)", str(self.path))

    def make(self, name: str, content: str) -> None:
        """Create an entry. Raises FileExistsError if another process created it first."""
        os.symlink(content, self.path / name)

    def content(self, name: str) -> str:
        return os.readlink(self.path / name)

    def stamp(self, name: str) -> int:
        """Timestamp of the entry; :meth:`touch` changes it."""
        return os.lstat(self.path / name).st_mtime_ns

    def touch(self, name: str) -> None:
        """Change the timestamp, by a whole second, as Lustre stores it. Raises FileNotFoundError without an entry."""
        place = self.path / name
        # not the present time: clocks of nodes differ, and others wait for a change
        seconds = os.lstat(place).st_mtime_ns // 1_000_000_000 + 1
        os.utime(place, (seconds, seconds), follow_symlinks=False)

    def free(self, name: str) -> None:
        os.rename(self.path / name, self.path / f"{name}.free")

    def remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)


def claim_folder(mount: mounts.Mount, settings: ClaimSettings) -> ClaimFolder:
    """The folder of the claim on a mounted file system."""
    return ClaimFolder(Path(mount.path) / settings.folder.strip("/"), mount)


class Claim(FilesystemClaim):
    """The claim of one daemon. ``monotonic`` is its own clock."""

    def __init__(self, folder: ClaimFolder, holder: str, monotonic: Callable[[], float],
                 settings: ClaimSettings) -> None:
        self.folder = folder
        self._holder = holder
        self._monotonic = monotonic
        self._expiry = settings.expiry_seconds
        self._lock = RLock()
        self.leads = False
        """Whether the holder leads other nodes. Then a reload keeps the claim, and once lost it is not taken again."""
        self._mine = ""
        self._alive_at = 0.0
        self._watched: tuple[str, int, float] = ("", 0, 0.0)
        """Claim of another daemon: name, timestamp, and monotonic time since which the timestamp has not changed."""

    @property
    def generation(self) -> int:
        return int(self._mine) if self._mine else 0

    @property
    def holder(self) -> str:
        return self._holder

    def make_key(self) -> str:
        """The key of this file system. A missing key is created. Only for the holder of the claim. Raises OSError."""
        with suppress(FileExistsError):
            self.folder.make(KEY, secrets.token_hex(32))
        return self.folder.content(KEY)

    def hold(self) -> Refusal | None:
        with self._lock:
            if self.leads:
                self.renew()
                return self.refusal()
            try:
                if self._mine and not self._lost():
                    self._touch()
                    return None
                return self._take()
            except OSError as error:
                return Refusal(Reason.CLAIM_UNREADABLE, f"tierd cannot take the claim of this file system: {error}")

    def _take(self) -> Refusal | None:
        last = _newest(self.folder)  # first: it raises NotLustre after an unmount
        self.folder.prepare()
        name = last[1] if last is not None else "0"
        holder = self.folder.content(name) if last is not None and not last[2] else None
        own = holder == self._holder  # it was created, though the file system answered with an error
        if not (holder is None or own or self._unchanged_for(name) >= self._expiry):
            return Refusal(Reason.CLAIM_HELD, f"another tierd moves files of this file system: "
                           f"{describe_holder(holder)}. This tierd takes over when the other has not renewed its "
                           f"claim for {self._expiry:.0f} s")
        wanted = name if own else f"{int(name) + 1:018d}"
        # before a call that may hang: the claim ages from its creation at the latest
        begun = self._monotonic()
        try:
            self.folder.touch(wanted) if own else self.folder.make(wanted, self._holder)
        except FileExistsError:
            return Refusal(Reason.CLAIM_HELD, "another tierd took over this file system a moment ago")
        self._mine, self._alive_at = wanted, begun
        # after the new one is there: a kill between leaves both, and the generation never goes back
        for old in self.folder.names():
            known = _ENTRY_NAME.fullmatch(old)
            if known and int(known[1]) < int(wanted):
                self.folder.remove(old)
        return None

    def renew(self) -> None:
        with self._lock:
            if self._mine:
                with suppress(OSError):
                    self._touch()
            if self.leads:
                self.lost()

    def refusal(self) -> Refusal | None:
        with self._lock:
            if not self._mine:
                return Refusal(Reason.CLAIM_LOST, "another tierd leads now; this one ends, and starts again as a "
                               "standby" if self.leads else "this tierd does not hold the claim of this file system")
            silent = self._monotonic() - self._alive_at
            if silent > self._expiry / 2:  # others wait twice as long before they take over
                return Refusal(Reason.CLAIM_LOST,
                               f"tierd could not renew the claim of this file system for {silent:.0f} s")
            try:
                if self._lost():
                    return Refusal(Reason.CLAIM_LOST, "another tierd took over this file system")
            except OSError as error:
                return Refusal(Reason.CLAIM_UNREADABLE, f"tierd cannot read the claim of this file system: {error}")
            return None

    def lost(self) -> bool:
        """Whether this daemon certainly holds no claim. In doubt: False."""
        with self._lock, suppress(OSError):
            return not self._mine or self._lost()
        return False

    def release(self) -> None:
        if not self.leads:
            self.give_up()

    def give_up(self) -> None:
        """Release the claim, also that of a leader."""
        with self._lock:
            with suppress(OSError):
                if self._mine and not self._lost():
                    self.folder.free(self._mine)  # not removed: the next generation must be higher
            self._mine = ""

    def _touch(self) -> None:
        now = self._monotonic()  # before a call that may hang: others see the change no earlier
        self.folder.touch(self._mine)
        self._alive_at = now

    def _lost(self) -> bool:
        last = _newest(self.folder)
        # the content too: in a folder that somebody emptied, generations begin again
        if last is not None and last[0] == self._mine and self.folder.content(self._mine) == self._holder:
            return False
        self._mine = ""
        return True

    def _unchanged_for(self, name: str) -> float:
        stamp, now = self.folder.stamp(name), self._monotonic()
        if self._watched[:2] != (name, stamp):
            self._watched = name, stamp, now
        return now - self._watched[2]


@dataclass(frozen=True, slots=True)
class SeenClaim:
    """The newest claim, as another process sees it. ``generation`` is 0 if nobody holds a claim."""

    generation: int
    holder: str = ""


KEY = "key"
"""Entry next to the claims: a random text that only root of a node with the file system can read, for signatures."""


def read_key(folder: ClaimFolder) -> str:
    """The key of a file system; "" before the first leader has made it. Raises OSError."""
    return folder.content(KEY) if KEY in folder.names() else ""


def read_claim(folder: ClaimFolder) -> SeenClaim:
    """The newest claim: one reading of the folder, and one of its entry. Raises OSError."""
    last = _newest(folder)
    return SeenClaim(0) if last is None or last[2] else SeenClaim(int(last[1]), folder.content(last[0]))


def _newest(folder: ClaimFolder) -> re.Match[str] | None:
    known = [match for name in folder.names() if (match := _ENTRY_NAME.fullmatch(name))]
    return max(known, key=lambda match: (int(match[1]), bool(match[2])), default=None)


def describe_holder(holder: str) -> str:
    """The holder in words, for messages.

    >>> describe_holder("host=mgmt02 pid=812 since=2026-11-21T04:50:00Z nonce=9")
    'host mgmt02, pid 812, since 2026-11-21T04:50:00Z'
    """
    fields = dict(part.partition("=")[::2] for part in holder.split())
    words = [f"{name} {fields[name]}" for name in ("host", "pid", "since") if name in fields]
    return ascii(", ".join(words))[1:-1] or ascii(holder)


def describe_this_process(now: float) -> str:
    """Host, pid, start time and a nonce: they identify this process."""
    since = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    host = "".join(os.uname().nodename.split()) or "unknown"
    return f"host={host} pid={os.getpid()} since={since} nonce={secrets.token_hex(16)}"
