"""A layout, built with liblustreapi's own functions, and given to a new file or to a directory.

The library checks it (alignment, order of extents, mirrors) before anything is changed. No OST is named that a
component only happens to have its objects on.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lustre.errors import of_errno
from lustre.layout import Component, Layout
from lustre.llapi import Library

_EOF = (1 << 64) - 1
_DEFAULT = 0x1000000000000002
"""LLAPI_LAYOUT_DEFAULT; the values behind it mean one stripe on every target, two, …"""
_PATTERNS = {("raid0",): None, ("mdt",): 2, ("raid0", "overstriped"): 4}
_FLAGS = {"prefer": 0x6, "prefrd": 0x2, "prefwr": 0x4, "nosync": 0x20, "extension": 0x40}
_MAKER_OF_MIRROR, _MAKER_OF_COMPONENT = "llapi_layout_add_first_comp", "llapi_layout_comp_add"

NO_LAYOUT = Layout((), composite=False)
"""Given to a directory, it takes the directory's own default away."""


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
    """Set the last component of a layout under construction."""
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
