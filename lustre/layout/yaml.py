"""A layout as ``lfs getstripe -y`` prints it and ``lfs setstripe --yaml`` reads it.

The YAML is simple and needs no YAML library: every line is a key and a value, and a component or an object begins with
its first key. Keys of a file begin with ``lmm_``; keys of a directory's default do not. The text contains neither the
state of the mirrors of a file nor the type of a foreign layout. A list of OSTs that a component requests has the form
of objects with the FID 0, as Lustre stores it until the component has objects.

>>> text = '''lmm_stripe_count:  1
... lmm_stripe_size:   4194304
... lmm_pattern:       raid0
... lmm_layout_gen:    0
... lmm_stripe_offset: 1
... lmm_pool:          flash
... lmm_objects:
...       - l_ost_idx: 1
...         l_fid:     0x2c0000401:0x2:0x0
... '''
>>> layout = from_yaml(text)
>>> layout.components[0].pool, str(layout.components[0].objects[0].fid), to_yaml(layout) == text
('flash', '[0x2c0000401:0x2:0x0]', True)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lustre.fid import Fid
from lustre.layout.model import EOF, Component, Foreign, Layout, StripeObject

NO_FID = Fid(0, 0)
"""FID of a stripe without an object."""
_LINE = re.compile(r"\s*(?:- )?([a-z_.]+):(?:[ \t]+(.*))?")
_NUMBER = re.compile(r"-?[0-9]+|0x[0-9a-fA-F]+")
_FOREIGN = re.compile(r"\s*lfm_value:\s+'(.*)'\s*", re.DOTALL)

_NUMBERS = {
    "lcme_id": "component_id",
    "lcme_mirror_id": "mirror_id",
    "lcme_mirror_link_id": "mirror_link_id",
    "lcme_timestamp": "timestamp",
    "lcme_dstripe_count": "data_stripes",
    "lcme_cstripe_count": "parity_stripes",
    "lcme_extent.e_start": "extent_start",
    "lcme_extent.e_end": "extent_end",
    "stripe_count": "stripe_count",
    "stripe_size": "stripe_size",
    "extension_size": "extension_size",
    "stripe_offset": "stripe_offset",
    "mdt_index": "mdt_index",
}
"""Keys with a number, without ``lmm_``, and the field for each."""
_HEADER = ("lcm_layout_gen", "lcm_mirror_count", "lcm_entry_count")
_IDLE = (
    *("components", "sub_layout", "objects", "composite_header", "lcm_magic", "lcm_size", "lcm_flags"),
    *("lcme_offset", "lcme_size", "magic", "seq", "object_id", "fid"),
)
"""Keys that a layout does not need; ``-v`` adds most of them."""


def from_yaml(text: str) -> Layout:
    """Parse a layout. Raises ValueError that names the problem and the line."""
    if (foreign := _FOREIGN.fullmatch(text)) is not None:
        value = foreign[1].encode(errors="surrogateescape")
        return Layout((Component(pattern="foreign", stripe_count=0, foreign=Foreign(value)),), composite=False)
    reader = _Reader()
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip() and not line.lstrip().startswith(("#", "---")):
            try:
                reader.line(line)
            except ValueError as error:
                raise ValueError(f"layout, line {number}: {error}") from error
    return reader.layout()


class _Reader:
    def __init__(self) -> None:
        self._header: dict[str, int] = {}
        self._components: list[dict[str, Any]] = []
        self._objects: list[list[StripeObject]] = []
        self._ost_index: int | None = None
        self._generation = 0

    def line(self, line: str) -> None:
        if (match := _LINE.fullmatch(line.rstrip())) is None:
            raise ValueError(f"not a key and a value: {line!r}")
        key, value = match[1], (match[2] or "").strip()
        if key in _HEADER:
            self._once(self._header, key, _number(value))
        elif key in ("l_ost_idx", "l_fid"):
            self._object(key, value)
        else:
            self._component(key.removeprefix("lmm_"), value)

    def _component(self, key: str, value: str) -> None:
        if key in _IDLE:
            return
        if key == "lcme_id" or not self._components:
            self._components.append({})
            self._objects.append([])
        fields = self._components[-1]
        if key in _NUMBERS:
            end = key == "lcme_extent.e_end" and value == "EOF"
            self._once(fields, _NUMBERS[key], EOF if end else _number(value))
        elif key == "layout_gen":
            self._generation = _number(value)
        elif key == "pattern":
            self._once(fields, key, value or Component().pattern)
        elif key == "pool":
            self._once(fields, key, value)
        elif key == "lcme_flags":
            self._once(fields, "flags", () if value == "0" else tuple(value.split(",")))
        else:
            raise ValueError(f"unknown key {key!r}")

    def _object(self, key: str, value: str) -> None:
        if not self._components:
            raise ValueError("an object before any component")
        if key == "l_ost_idx":
            self._ost_index = _number(value)
        elif self._ost_index is None:
            raise ValueError("an object without its OST")
        else:
            self._objects[-1].append(StripeObject(self._ost_index, Fid.parse(value)))
            self._ost_index = None

    @staticmethod
    def _once(fields: dict[str, Any], key: str, value: object) -> None:
        if key in fields:
            raise ValueError(f"{key} appears twice")
        fields[key] = value

    def layout(self) -> Layout:
        pairs = zip(self._components, self._objects, strict=True)
        components = tuple(Component(**fields, **_placed(objects)) for fields, objects in pairs)
        if not components:
            raise ValueError("layout: no components")
        expected = self._header.get("lcm_entry_count", len(components))
        if expected != len(components):
            raise ValueError(f"layout: {len(components)} components, but lcm_entry_count is {expected}")
        composite = any("component_id" in fields for fields in self._components)
        return Layout(
            components,
            generation=self._header.get("lcm_layout_gen", 0 if composite else self._generation),
            mirror_count=self._header.get("lcm_mirror_count", 1),
            composite=composite,
        )


def _placed(objects: list[StripeObject]) -> dict[str, Any]:
    if objects and all(one.fid == NO_FID for one in objects):
        return {"ost_list": tuple(one.ost_index for one in objects)}
    return {"objects": tuple(objects)}


def _number(text: str) -> int:
    if text == "N/A":
        return 0
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"not a number: {text!r}")
    return int(text, 16 if text.startswith("0x") else 10)


def to_yaml(layout: Layout) -> str:
    """Format a layout as ``lfs getstripe -y`` prints that of a file."""
    if not layout.composite:
        (component,) = layout.components
        if component.foreign is not None:
            return f"lfm_value:     '{component.foreign.value.decode(errors='surrogateescape')}'\n\n"
        return "\n".join((*_striping(component, layout.generation, "lmm_"), ""))
    return "\n".join((*_composite(layout), ""))


def _composite(layout: Layout) -> Iterator[str]:
    yield f"lcm_layout_gen:    {layout.generation}"
    yield f"lcm_mirror_count:  {layout.mirror_count}"
    yield f"lcm_entry_count:   {len(layout.components)}"
    yield "components:"
    for component in layout.components:
        if component.foreign is not None:
            raise ValueError("a foreign component among others has no text form")
        yield from _entry(component)
        yield from _striping(component, 0, "      lmm_")


def _entry(component: Component) -> Iterator[str]:
    number = component.component_id
    yield f"  - lcme_id:             {number or 'N/A'}"
    yield f"    lcme_mirror_id:      {component.mirror_id if number or component.mirror_id else 'N/A'}"
    yield f"    lcme_flags:          {','.join(component.flags) or 0}"
    if component.mirror_link_id:
        yield f"    lcme_mirror_link_id: {component.mirror_link_id:#x}"
    if component.timestamp or "nosync" in component.flags:
        yield f"    lcme_timestamp:      {component.timestamp}"
    if "parity" in component.flags:
        yield f"    lcme_dstripe_count:  {component.data_stripes}"
        yield f"    lcme_cstripe_count:  {component.parity_stripes}"
    yield f"    lcme_extent.e_start: {component.extent_start}"
    yield f"    lcme_extent.e_end:   {'EOF' if component.extent_end is None else component.extent_end}"
    yield "    sub_layout:"


def _striping(component: Component, generation: int, prefix: str) -> Iterator[str]:
    yield f"{prefix}stripe_count:  {component.stripe_count}"
    if "extension" in component.flags:
        yield f"{prefix}extension_size: {component.extension_size}"
    else:
        yield f"{prefix}stripe_size:   {component.stripe_size}"
    yield f"{prefix}pattern:       {component.pattern}"
    yield f"{prefix}layout_gen:    {generation}"
    if component.on_mdt:
        yield f"{prefix}mdt_index:     {component.mdt_index}"
    else:
        yield f"{prefix}stripe_offset: {component.stripe_offset}"
    if component.pool:
        yield f"{prefix}pool:          {component.pool}"
    if objects := component.objects or tuple(StripeObject(index, NO_FID) for index in component.ost_list):
        yield f"{prefix}objects:"
    for one in objects:
        yield f"      - l_ost_idx: {one.ost_index}"
        yield f"        l_fid:     {str(one.fid)[1:-1]}"
