"""Marks in changelogs: a file that tierd makes, renames, opens, closes and removes on an MDT, to see its records.

The file has no object on any OST: it is made by ``mknod`` and opened with ``O_LOV_DELAY_CREATE``, as ``lfs setstripe``
does, so that a mark can be made while an OST hangs. Marks lie in the folder of the claim; for an MDT that does not hold
that folder a directory in it is made there (``lfs mkdir -i``).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from lustre.fid import Fid

O_LOV_DELAY_CREATE = os.O_NOCTTY | 0o20000
"""``O_NOCTTY | FASYNC``: open for writing without making objects (``lustre_user.h`` of Lustre 2.17)."""
_MDT = re.compile(r"MDT([0-9a-f]{4})")


class MountedMarks:
    """Makes marks on a mounted file system; a :data:`tierd.sense.recording.Mark`."""

    def __init__(self, folder: Path, mdt_of: Callable[[Path], int], make_directory: Callable[[Path, int], None],
                 fid_of: Callable[[Path], Fid], writer: str) -> None:
        """``mdt_of``: index of the MDT a directory is on. ``writer``: a name no other tierd has (its process)."""
        self._folder = folder
        self._mdt_of = mdt_of
        self._make_directory = make_directory
        self._fid_of = fid_of
        self._writer = writer
        self._places: dict[str, Path] = {}

    def __call__(self, mdt: str) -> Fid:
        """Make a mark on an MDT (``MDT0001``). Raises OSError, and ValueError for a name that is no MDT's."""
        if mdt not in self._places:
            self._places[mdt] = self._place(mdt)
        try:
            return self._made(self._places[mdt])
        except FileNotFoundError:  # somebody has taken the directory away
            del self._places[mdt]
            raise

    def _place(self, mdt: str) -> Path:
        number = _MDT.fullmatch(mdt)
        if number is None:
            raise ValueError(f"not the name of an MDT: {mdt!r}")
        index = int(number[1], 16)
        with suppress(FileExistsError):
            self._folder.mkdir(mode=0o700)
        if self._mdt_of(self._folder) == index:
            return self._folder
        own = self._folder / mdt
        if not own.is_dir():
            self._make_directory(own, index)
        if self._mdt_of(own) != index:
            raise OSError(f"{own} is not on {mdt}: remove it")
        return own

    def _made(self, place: Path) -> Fid:
        first, second = (place / f"mark-{self._writer}{end}" for end in ("", ".renamed"))
        for left in (first, second):  # by a mark that was broken off
            with suppress(FileNotFoundError):
                os.unlink(left)
        os.mknod(first, stat.S_IFREG | 0o600)
        fid = self._fid_of(first)
        os.rename(first, second)
        os.close(os.open(second, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | O_LOV_DELAY_CREATE))
        os.unlink(second)
        return fid
