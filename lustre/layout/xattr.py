"""A layout in the binary form of the extended attributes ``lustre.lov`` (client) and ``trusted.lov`` (MDT).

The value is little-endian and has one of these forms: v1, v3 (which names a pool), a composite of such blobs with
extents and flags, or a foreign value. A client hides the generation in the attribute of a plain file. The attribute
does not contain the MDT of data on MDT.

This module encodes each component of a default layout in the form with a pool name (v3); an empty name means no pool.
liblustreapi writes a component without a pool in the older form (v1), which has no pool name. If a directory whose
present default names a pool receives such a layout, Lustre keeps the pool of the first component that has one
(``lod_xattr_set_default_lov_on_dir`` in lustre/lod/lod_object.c, from 2.12 to 2.17).

>>> default = "d00bd30b01000000" + "00" * 16 + "0000000000 00ffff" + b"flash".ljust(16, bytes(1)).hex()
>>> layout = from_xattr(bytes.fromhex(default))
>>> layout.components[0].pool, layout.components[0].stripe_count, layout.composite
('flash', 0, False)
>>> everywhere = Layout((Component(stripe_count=4),), composite=False)
>>> len(to_bytes(everywhere)), from_xattr(to_bytes(everywhere)) == everywhere
(48, True)
"""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import accumulate

from lustre.fid import Fid
from lustre.layout.model import EOF, Component, Foreign, Layout, StripeObject

_V1, _V3, _SPECIFIC, _COMPOSITE, _FOREIGN, _SEL = 0xBD10BD0, 0xBD30BD0, 0xBD50BD0, 0xBD60BD0, 0xBD70BD0, 0xBD80BD0

_MAGIC = struct.Struct("<I")
_STRIPED = struct.Struct("<II16xIHH")
_POOL_BYTES = 16
_OBJECT = struct.Struct("<QQII")
_HEADER = struct.Struct("<IIIHHHB13x")
_ENTRY = struct.Struct("<IIQQIIIQBB2x")
_FOREIGN_HEADER = struct.Struct("<IIII")

_EOF = (1 << 64) - 1
_EVERY_TARGET = 0xFFE0
"""Lower bound of the negative stripe counts: 0xffff is one stripe on every target, 0xfffe two, …"""
_UNSET = 0xFFFF
_NO_OST = 0xFFFFFFFF
_EXTENSION_UNIT_BYTES = 1024
"""Unit of the size of an extension component, which is stored in the field of the stripe size, in KiB."""
_GROUP_0 = 0x100000000
"""FID sequences for objects of the oldest numbering (IDIF)."""

_PATTERNS = {
    0x1: "raid0", 0x2: "raid1", 0x4: "parity", 0x100: "mdt", 0x200: "overstriped", 0x400: "foreign", 0x800: "compress",
    0x40000000: "hole", 0x80000000: "released",
}  # fmt: skip
_FLAGS = {
    0x10: "init", 0x1: "stale", 0x6: "prefer", 0x2: "prefrd", 0x4: "prefwr", 0x8: "offline", 0x20: "nosync",
    0x40: "extension", 0x80: "parity", 0x100: "compress", 0x200: "partial", 0x400: "nocompr", 0x40000000: "link_id",
}  # fmt: skip
_STATES = {1: "ro", 2: "wp", 3: "sp", 8: "pccro"}


def from_xattr(data: bytes) -> Layout:
    """Decode a layout. Raises ValueError that names the problem and the byte offset."""
    magic = _unpack(_MAGIC, data, 0, "magic number")[0]
    if magic in (_COMPOSITE, _SEL):
        return _composite(data)
    component, generation = _blob(data, 0, len(data), Component(), has_objects=True)
    return Layout((component,), generation=generation, composite=False)


def _unpack(form: struct.Struct, data: bytes, at: int, what: str, end: int | None = None) -> tuple[int, ...]:
    end = len(data) if end is None else end
    if at + form.size > end:
        raise ValueError(f"layout: {what} at byte {at} needs {form.size} bytes, found {max(end - at, 0)}")
    return form.unpack_from(data, at)


def _composite(data: bytes) -> Layout:
    _, size, generation, flags, entries, mirrors, _ = _unpack(_HEADER, data, 0, "composite header")
    if size > len(data):
        raise ValueError(f"layout: the size at byte 4 of the composite is {size} bytes, found {len(data)}")
    components = tuple(_component(data, _HEADER.size + n * _ENTRY.size, size) for n in range(entries))
    if not components:
        raise ValueError("layout: composite without components at byte 14")
    state = _STATES.get(flags & 0xB, "")
    if mirrors and not any(component.component_id for component in components):
        components = _with_mirror_ids(components)
    return Layout(components, generation=generation, mirror_count=mirrors + 1, state=state)


def _with_mirror_ids(components: tuple[Component, ...]) -> tuple[Component, ...]:
    """Number the mirrors of a directory's default, whose components have no ids: a mirror begins at offset 0."""
    begun = accumulate(component.extent_start == 0 for component in components)
    return tuple(replace(one, mirror_id=number) for one, number in zip(components, begun, strict=True))


def _component(data: bytes, at: int, size: int) -> Component:
    entry = _unpack(_ENTRY, data, at, "component", size)
    number, flags, start, end, blob_at, blob_bytes, _, time_and_link, data_stripes, parity_stripes = entry
    if start > end:
        raise ValueError(f"layout: component at byte {at} begins at {start}, after its end {end}")
    if blob_at + blob_bytes > size:
        raise ValueError(f"layout: component at byte {at} points beyond the end, byte {size}")
    described = Component(
        extent_start=start,
        extent_end=EOF if end == _EOF else end,
        flags=_names(flags, _FLAGS, "{:#x}"),
        component_id=number,
        mirror_id=number >> 16 & 0x7FFF,
        timestamp=time_and_link & (1 << 48) - 1,
        mirror_link_id=time_and_link >> 48,
        data_stripes=data_stripes,
        parity_stripes=parity_stripes,
    )
    return _blob(data, blob_at, blob_at + blob_bytes, described, has_objects="init" in described.flags)[0]


def _blob(data: bytes, at: int, end: int, described: Component, *, has_objects: bool) -> tuple[Component, int]:
    """Read the striping of one component and add it to the component; also return the generation.

    A component that is not written yet has no objects, only the OSTs that ``lfs setstripe -o`` requested
    (``lod_gen_component_ea``).
    """
    magic = _unpack(_MAGIC, data, at, "magic number", end)[0]
    if magic == _FOREIGN:
        return _foreign(data, at, end, described), 0
    if magic not in (_V1, _V3, _SPECIFIC):
        raise ValueError(f"layout: unknown magic number {magic:#x} at byte {at}")
    _, pattern, stripe_size, raw_count, offset = _unpack(_STRIPED, data, at, "striping", end)
    objects_at = at + _STRIPED.size
    pool = ""
    if magic != _V1:
        pool = _pool(data, objects_at, end)
        objects_at += _POOL_BYTES
    count = raw_count - 0x10000 if raw_count >= _EVERY_TARGET else raw_count
    extension = "extension" in described.flags
    patterns = _names(pattern, _PATTERNS, "unknown_{:x}") or ("raid0",)
    on_mdt = "mdt" in patterns
    number = -1 if offset == _UNSET else offset
    objects = _objects(data, objects_at, end, count)
    requested: tuple[int, ...] = ()
    if not has_objects:
        requested = tuple(one.ost_index for one in objects if one.ost_index != _NO_OST)
        objects = ()
    component = replace(
        described,
        pool=pool,
        stripe_count=0 if extension else count,
        stripe_size=0 if extension else stripe_size,
        extension_size=stripe_size * _EXTENSION_UNIT_BYTES if extension else 0,
        stripe_offset=objects[0].ost_index if objects else -1 if on_mdt or requested else number,
        mdt_index=number if on_mdt else -1,
        pattern=",".join(patterns),
        objects=objects,
        ost_list=requested,
    )
    # The number is the generation if the component has objects, else the index of the wanted first OST.
    return component, max(number, 0) if objects else 0


def _pool(data: bytes, at: int, end: int) -> str:
    if at + _POOL_BYTES > end:
        raise ValueError(f"layout: pool name at byte {at} is cut short")
    name = data[at : at + _POOL_BYTES].partition(b"\0")[0]
    if not name.isascii():
        raise ValueError(f"layout: pool name {name!r} at byte {at} is not ASCII")
    return name.decode("ascii")


def _objects(data: bytes, at: int, end: int, count: int) -> tuple[StripeObject, ...]:
    """Decode the objects of a component. A default, a released file and an unwritten component have no objects."""
    if at >= end or count <= 0:
        return ()
    rows = (_unpack(_OBJECT, data, at + n * _OBJECT.size, "object", end) for n in range(count))
    return tuple(StripeObject(ost_index, _object_fid(low, high, ost_index)) for low, high, _, ost_index in rows)


def _object_fid(low: int, high: int, ost_index: int) -> Fid:
    """Decode the id of an object: a FID or, if the second half is zero, a number within its OST (group 0)."""
    if high:
        return Fid(low, high & 0xFFFFFFFF, high >> 32)
    return Fid(_GROUP_0 | (ost_index & 0xFFFF) << 16 | low >> 32 & 0xFFFF, low & 0xFFFFFFFF)


def _foreign(data: bytes, at: int, end: int, described: Component) -> Component:
    _, length, kind, flags = _unpack(_FOREIGN_HEADER, data, at, "foreign header", end)
    start = at + _FOREIGN_HEADER.size
    if start + length > end:
        raise ValueError(f"layout: foreign value at byte {start} needs {length} bytes, found {end - start}")
    value = Foreign(data[start : start + length], kind, flags)
    return replace(described, stripe_count=0, pattern="foreign", foreign=value)


def _names(bits: int, table: dict[int, str], rest: str) -> tuple[str, ...]:
    """Names of the set bits in the order of the table; unknown bits as one number."""
    found = []
    for mask, name in table.items():
        if bits & mask == mask:
            found.append(name)
            bits &= ~mask
    return (*found, rest.format(bits)) if bits else tuple(found)


_DEFAULT_PATTERNS = {("raid0",): 0x1, ("mdt",): 0x100, ("raid0", "overstriped"): 0x201}
DEFAULT_FLAGS = {"prefer": 0x6, "prefrd": 0x2, "prefwr": 0x4, "nosync": 0x20, "extension": 0x40}


def to_bytes(layout: Layout) -> bytes:
    """Encode a default layout. Raises ValueError for a layout that cannot be a default, or that names OSTs."""
    blobs = [_default_blob(component) for component in layout.components]
    if not layout.composite:
        (blob,) = blobs
        return blob
    at = _HEADER.size + len(blobs) * _ENTRY.size
    entries = []
    for component, blob in zip(layout.components, blobs, strict=True):
        end = _EOF if component.extent_end is None else component.extent_end
        flags = _default_flags(component)
        entries.append(_ENTRY.pack(0, flags, component.extent_start, end, at, len(blob), 0, 0, 0, 0))
        at += len(blob)
    header = _HEADER.pack(_COMPOSITE, at, 0, 0, len(blobs), layout.mirror_count - 1, 0)
    return b"".join((header, *entries, *blobs))


def of_new_file(layout: Layout) -> bytes | None:
    """Encode the layout of a new file on OSTs; None for one that only the library encodes.

    That is one with data on the MDT, named OSTs, mirrors or an extension.
    """
    if layout.mirror_count > 1 or any(component.on_mdt or component.flags for component in layout.components):
        return None
    try:
        return to_bytes(layout)
    except ValueError:
        return None


def without_rest(data: bytes) -> bytes:
    """Return the attribute at the start of a larger buffer."""
    magic, length = struct.unpack_from("<II", data)
    if magic in (_COMPOSITE, _SEL):
        return data[:length]
    named = _STRIPED.unpack_from(data)[3] if magic == _SPECIFIC else 0
    return data[: _STRIPED.size + (0 if magic == _V1 else _POOL_BYTES) + named * _OBJECT.size]


def _default_blob(component: Component) -> bytes:
    pattern = _DEFAULT_PATTERNS.get(tuple(component.pattern.split(",")))
    if pattern is None or component.foreign is not None:
        raise ValueError(f"a default layout cannot have the pattern {component.pattern!r}")
    if component.objects or component.ost_list or component.stripe_offset >= 0:
        raise ValueError("the layout names OSTs, which a default cannot")
    size = component.extension_size // _EXTENSION_UNIT_BYTES or component.stripe_size
    form = _V1 if component.on_mdt else _V3
    blob = _STRIPED.pack(form, pattern, size, component.stripe_count & 0xFFFF, 0xFFFF)
    return blob if component.on_mdt else blob + component.pool.encode("ascii").ljust(_POOL_BYTES, b"\0")


def _default_flags(component: Component) -> int:
    if unknown := set(component.flags) - set(DEFAULT_FLAGS):
        raise ValueError(f"a default layout cannot have the flags {', '.join(sorted(unknown))}")
    return sum(DEFAULT_FLAGS[flag] for flag in component.flags)
