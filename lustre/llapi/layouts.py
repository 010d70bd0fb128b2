"""Layouts given to new files and directories, and the default layout of a directory.

A layout is built with liblustreapi's own functions. The library checks it (alignment, order of extents, mirrors) before
anything is changed. An OST is not named where a component merely has its objects there.

``lustre.lov`` does not say whether a directory has a default layout of its own. For a directory without one, a client
returns the default of the root of the file system, if that has one, under the name ``trusted.lov`` too
(``ll_getxattr_lov`` in lustre/llite/xattr.c). If tierd took it for the directory's own, an undo would write it into the
directory, where it would stay when the root's is changed. Only the list of attributes comes from the MDT unchanged
(``ll_listxattr``): it has ``trusted.lov`` if the directory has a default of its own.

Since 2.17 the attribute does not say on which OST the first stripe is wanted (``ll_sanitize_xattr``). The ioctl that
``lfs getstripe -d`` uses returns the whole default.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lustre.errors import of_errno, typed
from lustre.layout.model import Component, Layout, pools_of
from lustre.layout.xattr import to_bytes, understood, without_rest
from lustre.llapi.calls import Library

_EOF = (1 << 64) - 1
_DEFAULT = 0x1000000000000002
"""LLAPI_LAYOUT_DEFAULT; the values behind it mean one stripe on every target, two, …"""
_PATTERNS = {("raid0",): None, ("mdt",): 2, ("raid0", "overstriped"): 4}
_FLAGS = {"prefer": 0x6, "prefrd": 0x2, "prefwr": 0x4, "nosync": 0x20, "extension": 0x40}
_MAKER_OF_MIRROR, _MAKER_OF_COMPONENT = "llapi_layout_add_first_comp", "llapi_layout_comp_add"

NO_LAYOUT = Layout((), composite=False)
"""Layout that deletes the default layout of a directory."""


def open_with_layout(library: Library, path: str, flags: int, mode: int, layout: Layout) -> int:
    """Open, creating it where the flags say so, and give it the layout. Raises ValueError for one that cannot be."""
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
                maker = _MAKER_OF_MIRROR if _begins_mirror(layout, number) else _MAKER_OF_COMPONENT
                _set(library, maker, handle)
            _fill(library, handle, component, layout.composite)
        if layout.mirror_count > 1:
            _set(library, "llapi_layout_mirror_count_set", handle, layout.mirror_count)
        yield handle
    finally:
        library.function("llapi_layout_free")(handle)


def _begins_mirror(layout: Layout, number: int) -> bool:
    return layout.components[number].mirror_id != layout.components[number - 1].mirror_id


def _fill(library: Library, handle: int, component: Component, composite: bool) -> None:
    """Set the last component of the layout under construction."""
    kinds = tuple(word for word in component.pattern.split(",") if word != "released")
    if kinds not in _PATTERNS or component.foreign is not None:
        raise ValueError(f"no file can be given the pattern {component.pattern!r}")
    flags = sum(_FLAGS[flag] for flag in component.flags if flag in _FLAGS)
    if flags:
        _set(library, "llapi_layout_comp_flags_set", handle, flags)
    if composite:
        end = _EOF if component.extent_end is None else component.extent_end
        _set(library, "llapi_layout_comp_extent_set", handle, component.extent_start, end)
    pattern = _PATTERNS[kinds]
    if pattern is not None:
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
    if component.stripe_offset >= 0 and not component.objects:
        _set(library, "llapi_layout_ost_index_set", handle, 0, component.stripe_offset)


def _set(library: Library, name: str, handle: int, *values: Any) -> None:
    ctypes.set_errno(0)
    if library.function(name)(handle, *values) < 0:
        number = ctypes.get_errno() or errno.EINVAL
        raise ValueError(f"{name}{values}: {os.strerror(number)}")


Attribute = Callable[[str, str], bytes | None]
"""An extended attribute at a path, by name; None where there is none."""
Names = Callable[[str], Sequence[str]]
"""Names of the extended attributes at a path, as listed: those that begin with ``trusted.`` for root alone."""
Whole = Callable[[str], bytes | None]
"""Reads the complete default layout of a directory; None where there is none."""
SetAttribute = Callable[[int, str, bytes], None]
BY_CLIENT, BY_MDT = "lustre.lov", "trusted.lov"
"""The attribute as a client computes it, and as the MDT keeps it."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GET_STRIPE = 0x4008669B
"""LL_IOC_LOV_GETSTRIPE. Lustre writes the whole layout behind the pointer, however long: it must have room."""
_ROOM_BYTES = 1 << 17
"""Twice the longest extended attribute of Linux."""


def own_layout(place: str, mount_point: str, attribute: Attribute, names: Names, whole: Whole) -> Layout | None:
    """Layout of a file, or a directory's own default; None where there is none. Raises OSError."""
    shown = attribute(place, BY_CLIENT)
    if shown is None or not stat.S_ISDIR(os.lstat(place).st_mode):
        return None if shown is None else understood(shown)
    if _inherits(place, shown, mount_point, attribute, names):
        return None
    complete = whole(place)
    return None if complete is None else understood(complete)


def whole_default(place: str) -> bytes | None:
    """Default layout of a directory as the ioctl returns it, complete; None where there is none. Raises OSError."""
    room = bytearray(_ROOM_BYTES)
    with typed("get default layout", place), _opened(place) as directory:
        try:
            fcntl.ioctl(directory, _GET_STRIPE, room, True)
        except OSError as error:
            if error.errno == errno.ENODATA:
                return None
            raise
    return without_rest(bytes(room))


def set_default(library: Library, place: str, layout: Layout | None, set_attribute: SetAttribute = os.setxattr) -> None:
    """Give a directory a default, or (None) take it away. Raises OSError, and ValueError for what cannot be one.

    The library checks what it is given; but where no pool is named, Lustre would keep the present one.
    """
    if layout is None or pools_of(layout):
        os.close(open_with_layout(library, place, _DIRECTORY, 0, NO_LAYOUT if layout is None else layout))
        return
    value = to_bytes(layout)
    with typed("set default layout", place), _opened(place) as directory:
        set_attribute(directory, BY_CLIENT, value)


def _inherits(place: str, shown: bytes, mount_point: str, attribute: Attribute, names: Names) -> bool:
    listed = names(place)
    if any(name.startswith("trusted.") for name in listed):  # for root, because every directory has trusted.lma
        return BY_MDT not in listed
    return attribute(mount_point, BY_CLIENT) == shown and not os.path.samefile(place, mount_point)


@contextmanager
def _opened(place: str) -> Iterator[int]:
    descriptor = os.open(place, _DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
