"""A default layout in the binary form in which a directory's attribute ``lustre.lov`` takes it, and Lustre tells it.

liblustreapi writes a component without a pool in the older form (v1), which has no place for one. Given that for a
directory whose present default names a pool, Lustre keeps the pool: the one of the first component that has any
(``lod_xattr_set_default_lov_on_dir`` in lustre/lod/lod_object.c, from 2.12 to 2.17). What is written here always has a
place for the pool (v3), and nothing in it means none.

>>> from lustre.layout_xattr import from_xattr
>>> everywhere = Layout((Component(stripe_count=4),), composite=False)
>>> len(to_bytes(everywhere)), from_xattr(to_bytes(everywhere)) == everywhere
(48, True)
"""

from __future__ import annotations

import struct

from lustre.layout_component import Component, Layout

_V1, _V3, _SPECIFIC, _COMPOSITE, _SEL = 0xBD10BD0, 0xBD30BD0, 0xBD50BD0, 0xBD60BD0, 0xBD80BD0
_STRIPED = struct.Struct("<II16xIHH")
_POOL_BYTES, _OBJECT_BYTES = 16, 24
_HEADER = struct.Struct("<IIIHHHB13x")
_ENTRY = struct.Struct("<IIQQIIIQBB2x")
_EOF = (1 << 64) - 1
_PATTERNS = {("raid0",): 0x1, ("mdt",): 0x100, ("raid0", "overstriped"): 0x201}
_FLAGS = {"prefer": 0x6, "prefrd": 0x2, "prefwr": 0x4, "nosync": 0x20, "extension": 0x40}
_EXTENSION_UNIT_BYTES = 1024


def to_bytes(layout: Layout) -> bytes:
    """The attribute. Raises ValueError for what no default can be, or for one that names OSTs."""
    blobs = [_blob(component) for component in layout.components]
    if not layout.composite:
        (blob,) = blobs
        return blob
    at = _HEADER.size + len(blobs) * _ENTRY.size
    entries = []
    for component, blob in zip(layout.components, blobs, strict=True):
        end = _EOF if component.extent_end is None else component.extent_end
        entries.append(_ENTRY.pack(0, _flags(component), component.extent_start, end, at, len(blob), 0, 0, 0, 0))
        at += len(blob)
    header = _HEADER.pack(_COMPOSITE, at, 0, 0, len(blobs), layout.mirror_count - 1, 0)
    return b"".join((header, *entries, *blobs))


def without_rest(data: bytes) -> bytes:
    """The attribute at the beginning of a larger room, without what follows it there."""
    magic, length = struct.unpack_from("<II", data)
    if magic in (_COMPOSITE, _SEL):
        return data[:length]
    named = _STRIPED.unpack_from(data)[3] if magic == _SPECIFIC else 0
    return data[: _STRIPED.size + (0 if magic == _V1 else _POOL_BYTES) + named * _OBJECT_BYTES]


def _blob(component: Component) -> bytes:
    pattern = _PATTERNS.get(tuple(component.pattern.split(",")))
    if pattern is None or component.foreign is not None:
        raise ValueError(f"no default can have the pattern {component.pattern!r}")
    if component.objects or component.stripe_offset >= 0:
        raise ValueError("it names OSTs")
    size = component.extension_size // _EXTENSION_UNIT_BYTES or component.stripe_size
    form = _V1 if component.on_mdt else _V3
    blob = _STRIPED.pack(form, pattern, size, component.stripe_count & 0xFFFF, 0xFFFF)
    return blob if component.on_mdt else blob + component.pool.encode("ascii").ljust(_POOL_BYTES, b"\0")


def _flags(component: Component) -> int:
    unknown = set(component.flags) - set(_FLAGS)
    if unknown:
        raise ValueError(f"no default can have the flags {', '.join(sorted(unknown))}")
    return sum(_FLAGS[flag] for flag in component.flags)
