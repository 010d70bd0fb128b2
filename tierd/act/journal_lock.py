"""One daemon for each journal: a lock beside it, on this machine's own file system, which the kernel ends with us."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path


class JournalLock:
    """Held from its making until it is closed. Raises OSError EBUSY where another process holds it."""

    def __init__(self, journal: Path) -> None:
        path = Path(f"{journal}.lock")
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise OSError(errno.EBUSY, "another tierd writes this journal; give this one an act.journal of its own, or "
                          "stop the other", str(journal)) from error

    def close(self) -> None:
        """Let another have it."""
        os.close(self._descriptor)
