"""Unpacks an archive of parameter files. Files and links never leave the target folder.

``tarfile`` has filters for this from Python 3.11.4 on; Debian 12 has 3.11.2.
"""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath


def unpack(archive: Path, folder: Path, wanted: Callable[[str], bool] = lambda _: True) -> None:
    """Unpack the wanted files. Raises tarfile.TarError for a name outside the folder, or for a broken archive."""
    with tarfile.open(archive) as tar:
        for member in tar:
            if not wanted(member.name):
                continue
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts:
                raise tarfile.TarError(f"{member.name!r} leads out of the folder")
            place = folder / name
            if member.issym():
                _link(place, member.linkname, folder)
            elif member.isfile():
                place.parent.mkdir(parents=True, exist_ok=True)
                source = tar.extractfile(member)
                assert source is not None
                with place.open("wb") as to:
                    shutil.copyfileobj(source, to)


def _link(place: Path, to: str, folder: Path) -> None:
    target = (place.parent / to).resolve()
    if target.is_relative_to(folder.resolve()):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(to)
