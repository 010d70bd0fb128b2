"""Whether the journal that is being written is still the file of its name."""

from __future__ import annotations

from pathlib import Path

from tierd.act.journal_form import JournalError


class JournalFile:
    """Which file it was when it was opened.

    One that is removed, or replaced by a copy, can be written for as long as it is open: nobody could read it, and with
    our end all of it would be gone, and with it every way back.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened = self._present()

    def look(self) -> None:
        """Raises JournalError where it is another now, or none."""
        if self._present() != self._opened:
            raise JournalError(None, "the journal: another file has its name since it was opened", str(self._path))

    def _present(self) -> tuple[int, int]:
        try:
            found = self._path.stat()
        except OSError as error:
            raise JournalError(None, f"the journal: {error.strerror}, though it was there when it was opened",
                               str(self._path)) from error
        return found.st_dev, found.st_ino
