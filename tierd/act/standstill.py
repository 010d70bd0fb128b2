"""What keeps tierd from changing anything at a time: a file somebody touched, or the hour. Asked before every act."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

from tierd.act import windows


class Standstill:
    """The pause file and the maintenance windows."""

    def __init__(self, pause_file: str = "", maintenance: tuple[str, ...] = ()) -> None:
        self._pause_file = pause_file
        self._maintenance = maintenance

    def by_file(self) -> str:
        """Why nothing at all may be done, not even taken back, or "". A file that cannot be looked for counts as one.

        The first line of the file is the reason that is shown.
        """
        if not self._pause_file:
            return ""
        try:
            words = _first_line(Path(self._pause_file))
        except FileNotFoundError:
            return ""
        except OSError as error:
            words = error.strerror or str(error)
        return f"{self._pause_file} is there{f' ({words!r})' if words else ''}; remove it to go on"

    def __call__(self, now: float) -> str:
        """Why nothing new may be done now, or ""."""
        return self.by_file() or windows.closed(self._maintenance, now)


def _first_line(file: Path) -> str:
    """Of what is no regular file, nothing: opening a pipe would wait."""
    if not stat.S_ISREG(file.stat().st_mode):
        return ""
    with file.open("rb") as opened:
        return opened.read(200).decode("utf-8", "replace").partition("\n")[0].strip()


Halt = Callable[[], str]
"""Why nothing more may be done, or ""; engines ask before each file, or each process of many."""


def never() -> str:
    """Nothing stands in the way."""
    return ""
