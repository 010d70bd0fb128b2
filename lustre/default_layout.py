"""Whether a directory has a default layout of its own, which ``lustre.lov`` does not say.

Of a directory that has none, a client tells the default of the root of the file system, if that has one (see
``ll_dir_getstripe_default`` in lustre/llite/dir.c). Taken for the directory's own, it would be written into it when an
act is undone, and stay there when the root's is changed. ``trusted.lov`` is what the MDT itself keeps of the directory.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from lustre.layout import Layout
from lustre.layout_xattr import from_xattr

Attribute = Callable[[str, str], bytes | None]
"""An extended attribute at a path, by name; None where there is none, or none that we may see."""
TOLD, KEPT = "lustre.lov", "trusted.lov"


def own(place: str, mount_point: str, attribute: Attribute) -> Layout | None:
    """Layout of a file, or a directory's own default; None where there is none. Raises OSError.

    Without root's rights ``trusted.lov`` is never to be seen: then what differs from the root's is the directory's own.
    """
    told = attribute(place, TOLD)
    if told is None:
        return None
    inherits = (stat.S_ISDIR(os.lstat(place).st_mode) and attribute(place, KEPT) is None
                and attribute(mount_point, TOLD) == told and not os.path.samefile(place, mount_point))
    return None if inherits else from_xattr(told)
