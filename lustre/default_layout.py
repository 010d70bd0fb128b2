"""Whether a directory has a default layout of its own, which ``lustre.lov`` does not say.

Of a directory that has none, a client tells the default of the root of the file system, if that has one, under the
name ``trusted.lov`` too (``ll_getxattr_lov`` in lustre/llite/xattr.c). Taken for the directory's own, it would be
written into it when an act is undone, and stay there when the root's is changed. Only the list of attributes comes from
the MDT as it keeps them (``ll_listxattr``): ``trusted.lov`` is in it where the directory has a default of its own.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence

from lustre.layout import Layout
from lustre.layout_xattr import understood

Attribute = Callable[[str, str], bytes | None]
"""An extended attribute at a path, by name; None where there is none."""
Names = Callable[[str], Sequence[str]]
"""Names of the extended attributes at a path, as listed: those that begin with ``trusted.`` for root alone."""
TOLD, KEPT = "lustre.lov", "trusted.lov"


def own(place: str, mount_point: str, attribute: Attribute, names: Names) -> Layout | None:
    """Layout of a file, or a directory's own default; None where there is none. Raises OSError."""
    told = attribute(place, TOLD)
    if told is None:
        return None
    inherits = stat.S_ISDIR(os.lstat(place).st_mode) and _inherits(place, told, mount_point, attribute, names)
    return None if inherits else understood(told)


def _inherits(place: str, told: bytes, mount_point: str, attribute: Attribute, names: Names) -> bool:
    listed = names(place)
    if any(name.startswith("trusted.") for name in listed):  # to root: every directory has trusted.lma
        return KEPT not in listed
    return attribute(mount_point, TOLD) == told and not os.path.samefile(place, mount_point)
