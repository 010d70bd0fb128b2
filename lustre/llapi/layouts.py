"""Sets the layouts of new files, and reads and sets the default layout of a directory.

liblustreapi's own functions build a layout, so the library checks it (alignment, order of extents, mirrors) before any
change. If a component has objects, their OSTs are not named in the new layout.

``lustre.lov`` does not show whether a directory has its own default layout. For a directory without one, a client
returns the default layout of the file system's root, if the root has one, also under the name ``trusted.lov``
(``ll_getxattr_lov`` in lustre/llite/xattr.c). If tierd mistook it for the directory's own layout, an undo would write
it into the directory, and later changes at the root would no longer reach the directory. Only the list of attributes
comes unchanged from the MDT (``ll_listxattr``): it has ``trusted.lov`` if the directory has its own default layout.

Since 2.17 the attribute omits the wanted OST of the first stripe (``ll_sanitize_xattr``). The ioctl that
``lfs getstripe -d`` uses returns the whole default layout.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lustre.errors import of_errno, typed, understood
from lustre.layout.model import Component, Layout, pools_of
from lustre.layout.xattr import DEFAULT_FLAGS, from_xattr, to_bytes, without_rest
from lustre.llapi.calls import Library
from lustre.llapi.directories import DIRECTORY, is_directory, opened

_EOF = (1 << 64) - 1
_DEFAULT = 0x1000000000000002
"""LLAPI_LAYOUT_DEFAULT; the next values mean one stripe on every target, two stripes, …"""
_PATTERNS = {("raid0",): None, ("mdt",): 2, ("raid0", "overstriped"): 4}
_MAKER_OF_MIRROR, _MAKER_OF_COMPONENT = "llapi_layout_add_first_comp", "llapi_layout_comp_add"

NO_LAYOUT = Layout((), composite=False)
"""Layout that deletes the default layout of a directory."""


def open_with_layout(library: Library, path: str, flags: int, mode: int, layout: Layout) -> int:
    """Open or create a file, as the flags require, with a layout. Raises ValueError for an invalid layout."""
    with _built(library, layout) as handle:
        ctypes.set_errno(0)
        descriptor = int(library.function("llapi_layout_file_open")(os.fsencode(path), flags, mode, handle))
        if descriptor < 0:
            raise of_errno(ctypes.get_errno() or errno.EINVAL, "set layout", path)
        return descriptor


@contextmanager
def _built(library: Library, layout: Layout) -> Iterator[int]:
    handle = library.function("llapi_layout_alloc")()
    if not handle:
        raise of_errno(ctypes.get_errno() or errno.ENOMEM, "llapi_layout_alloc")
    try:
        for number, component in enumerate(layout.components):
            if number:
                same_mirror = component.mirror_id == layout.components[number - 1].mirror_id
                _set(library, _MAKER_OF_COMPONENT if same_mirror else _MAKER_OF_MIRROR, handle)
            _fill(library, handle, component, layout.composite)
        if layout.mirror_count > 1:
            _set(library, "llapi_layout_mirror_count_set", handle, layout.mirror_count)
        yield handle
    finally:
        library.function("llapi_layout_free")(handle)


def _fill(library: Library, handle: int, component: Component, composite: bool) -> None:
    kinds = tuple(word for word in component.pattern.split(",") if word != "released")
    if kinds not in _PATTERNS or component.foreign is not None:
        raise ValueError(f"a new file cannot have the pattern {component.pattern!r}")
    if flags := sum(DEFAULT_FLAGS[flag] for flag in component.flags if flag in DEFAULT_FLAGS):
        _set(library, "llapi_layout_comp_flags_set", handle, flags)
    if composite:
        end = _EOF if component.extent_end is None else component.extent_end
        _set(library, "llapi_layout_comp_extent_set", handle, component.extent_start, end)
    if (pattern := _PATTERNS[kinds]) is not None:
        _set(library, "llapi_layout_pattern_set", handle, pattern)
    if component.extension_size:
        _set(library, "llapi_layout_extension_size_set", handle, component.extension_size)
    elif component.on_mdt:
        _set(library, "llapi_layout_stripe_size_set", handle, component.extent_end)
    elif component.stripe_size:
        _set(library, "llapi_layout_stripe_size_set", handle, component.stripe_size)
    if component.on_mdt:
        return
    if component.stripe_count:
        count = component.stripe_count
        _set(library, "llapi_layout_stripe_count_set", handle, count if count > 0 else _DEFAULT - count)
    if component.pool:
        _set(library, "llapi_layout_pool_name_set", handle, component.pool.encode("ascii"))
    for stripe, index in enumerate(component.ost_list):
        _set(library, "llapi_layout_ost_index_set", handle, stripe, index)
    if component.stripe_offset >= 0 and not component.objects and not component.ost_list:
        _set(library, "llapi_layout_ost_index_set", handle, 0, component.stripe_offset)


def _set(library: Library, name: str, handle: int, *values: Any) -> None:
    ctypes.set_errno(0)
    if library.function(name)(handle, *values) < 0:
        number = ctypes.get_errno() or errno.EINVAL
        raise ValueError(f"{name}{values}: {os.strerror(number)}")


Attribute = Callable[[str, str], bytes | None]
"""Reads an extended attribute of a path by name; None if the path has no such attribute."""
Names = Callable[[str], Sequence[str]]
"""Lists the names of the extended attributes of a path. Only root sees names that begin with ``trusted.``."""
Whole = Callable[[str], bytes | None]
"""Reads the complete default layout of a directory; None if the directory has no default layout."""
SetAttribute = Callable[[int, str, bytes], None]
BY_CLIENT, BY_MDT = "lustre.lov", "trusted.lov"
"""Names of the attribute that a client computes and of the attribute that the MDT stores."""
_GET_STRIPE = 0x4008669B
"""LL_IOC_LOV_GETSTRIPE. Lustre writes the whole layout to the pointer without a limit, so the buffer must be large."""
_ROOM_BYTES = 1 << 17
"""Twice the longest extended attribute of Linux."""


def own_layout(place: str, mount_point: str, attribute: Attribute, names: Names, whole: Whole) -> Layout | None:
    """Read the layout of a file, or a directory's own default layout; None if there is no layout. Raises OSError."""
    shown = attribute(place, BY_CLIENT)
    if shown is None or not is_directory(place):
        return None if shown is None else understood(from_xattr, shown)
    if _inherits(place, shown, mount_point, attribute, names):
        return None
    complete = whole(place)
    return None if complete is None else understood(from_xattr, complete)


def whole_default(place: str) -> bytes | None:
    """Read the complete default layout of a directory with the ioctl; None if it has no default. Raises OSError."""
    room = bytearray(_ROOM_BYTES)
    with typed("get default layout", place), opened(place) as directory:
        try:
            fcntl.ioctl(directory, _GET_STRIPE, room, True)
        except OSError as error:
            if error.errno == errno.ENODATA:
                return None
            raise
    return without_rest(bytes(room))


def set_default(library: Library, fd: int, layout: Layout | None, set_attribute: SetAttribute = os.setxattr) -> None:
    """Set the default layout of an open directory, or (None) remove it. Raises OSError, and ValueError.

    The library sets a layout that names a pool. This package encodes all others (:mod:`lustre.layout.xattr`), because
    with the library's encoding, Lustre would keep the pool of the present default layout.
    """
    with typed("set default layout"):
        if layout is None or pools_of(layout):
            os.close(open_with_layout(library, f"/proc/self/fd/{fd}/.", DIRECTORY, 0, layout or NO_LAYOUT))
        else:
            set_attribute(fd, BY_CLIENT, to_bytes(layout))


def _inherits(place: str, shown: bytes, mount_point: str, attribute: Attribute, names: Names) -> bool:
    listed = names(place)
    if any(name.startswith("trusted.") for name in listed):  # the process is root: every directory has trusted.lma
        return BY_MDT not in listed
    return attribute(mount_point, BY_CLIENT) == shown and not os.path.samefile(place, mount_point)
