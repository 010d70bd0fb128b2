"""Extended attributes of an open file, or at a path, the layout among them. A symbolic link is never followed."""

from __future__ import annotations

import errno
import os

from lustre.errors import typed
from lustre.layout import Layout
from lustre.layout_xattr import understood

LAYOUT = "lustre.lov"


def layout_at(place: int | str) -> Layout | None:
    """Layout of an open file, or at a path, without following a symbolic link; None where there is none."""
    value = attribute(place, LAYOUT)
    return None if value is None else understood(value)


def attribute(place: int | str, name: str) -> bytes | None:
    """One extended attribute of an open file, or at a path, without following a symbolic link; None for none."""
    try:
        return os.getxattr(place, name) if isinstance(place, int) else os.getxattr(place, name, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.ENODATA:
            return None
        with typed(f"get {name}"):
            raise


def attribute_names(place: str) -> list[str]:
    """Names of the extended attributes at a path that we may see, without following a symbolic link."""
    with typed("list attributes"):
        return os.listxattr(place, follow_symlinks=False)
