"""A directory's own default layout: which it is, and how it is given another one.

``lustre.lov`` does not say whether a directory has one. Of a directory that has none, a client tells the default of the
root of the file system, if that has one, under the name ``trusted.lov`` too (``ll_getxattr_lov`` in
lustre/llite/xattr.c). Taken for the directory's own, it would be written into it when an act is undone, and stay there
when the root's is changed. Only the list of attributes comes from the MDT as it keeps them (``ll_listxattr``):
``trusted.lov`` is in it where the directory has a default of its own.

Nor does it say, from 2.17 on, on which OST the first stripe is wanted (``ll_sanitize_xattr``): whole is what the ioctl
tells that ``lfs getstripe -d`` uses.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from lustre.errors import typed
from lustre.layout import Layout, pools_of
from lustre.layout_bytes import to_bytes, without_rest
from lustre.layout_xattr import understood
from lustre.llapi import Library
from lustre.llapi_layout import NO_LAYOUT, open_with_layout

Attribute = Callable[[str, str], bytes | None]
"""An extended attribute at a path, by name; None where there is none."""
Names = Callable[[str], Sequence[str]]
"""Names of the extended attributes at a path, as listed: those that begin with ``trusted.`` for root alone."""
Whole = Callable[[str], bytes | None]
"""The default of a directory with nothing left out; None where there is none."""
SetAttribute = Callable[[int, str, bytes], None]
TOLD, KEPT = "lustre.lov", "trusted.lov"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GET_STRIPE = 0x4008669B
"""LL_IOC_LOV_GETSTRIPE. Lustre writes the whole layout behind the pointer, however long: it must have room."""
_ROOM_BYTES = 1 << 17
"""Twice the longest attribute Linux has."""


def own(place: str, mount_point: str, attribute: Attribute, names: Names, whole: Whole) -> Layout | None:
    """Layout of a file, or a directory's own default; None where there is none. Raises OSError."""
    told = attribute(place, TOLD)
    if told is None or not stat.S_ISDIR(os.lstat(place).st_mode):
        return None if told is None else understood(told)
    if _inherits(place, told, mount_point, attribute, names):
        return None
    kept = whole(place)
    return None if kept is None else understood(kept)


def told_whole(place: str) -> bytes | None:
    """What the ioctl tells. Raises OSError."""
    room = bytearray(_ROOM_BYTES)
    with typed("get default layout", place), _opened(place) as directory:
        try:
            fcntl.ioctl(directory, _GET_STRIPE, room, True)
        except OSError as error:
            if error.errno == errno.ENODATA:
                return None
            raise
    return without_rest(bytes(room))


def put(library: Library, place: str, layout: Layout | None, set_attribute: SetAttribute = os.setxattr) -> None:
    """Give a directory a default, or (None) take it away. Raises OSError, and ValueError for what cannot be one.

    The library checks what it is given; but where no pool is named, Lustre would keep the present one.
    """
    if layout is None or pools_of(layout):
        os.close(open_with_layout(library, place, _DIRECTORY, 0, NO_LAYOUT if layout is None else layout))
        return
    value = to_bytes(layout)
    with typed("set default layout", place), _opened(place) as directory:
        set_attribute(directory, TOLD, value)


def _inherits(place: str, told: bytes, mount_point: str, attribute: Attribute, names: Names) -> bool:
    listed = names(place)
    if any(name.startswith("trusted.") for name in listed):  # to root: every directory has trusted.lma
        return KEPT not in listed
    return attribute(mount_point, TOLD) == told and not os.path.samefile(place, mount_point)


@contextmanager
def _opened(place: str) -> Iterator[int]:
    descriptor = os.open(place, _DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
