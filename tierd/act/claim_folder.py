"""The folder of the claim on a mounted file system, and who we are on this machine.

An entry is a symbolic link that leads nowhere: made with its content in one step on the MDT, with no object on any
OST, so that it can be had and renewed while an OST hangs; and ``ls -l`` shows who holds it.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path


class MountedFolder:
    """Implements :class:`tierd.act.claim.Folder`."""

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


def holder(now: float, proc: Path) -> str:
    """Who we are: words that name no other process. ``proc`` is /proc."""
    since = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    host = "".join(os.uname().nodename.split()) or "unknown"
    return (f"host={host} pid={os.getpid()} since={since} boot={_boot(proc)} namespace={_namespace(proc)} "
            f"nonce={secrets.token_hex(8)}")


def surely_gone(words: str, proc: Path) -> bool:
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
