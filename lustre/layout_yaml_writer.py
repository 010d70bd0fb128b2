"""The text of a layout, line for line that of ``lfs getstripe -y``.

>>> print(to_yaml(Layout((Component(pool="flash"),), composite=False), directory=True), end="")
stripe_count:  1
stripe_size:   0
pattern:       raid0
stripe_offset: -1
pool:          flash
"""

from __future__ import annotations

from collections.abc import Iterator

from lustre.layout_component import Component, Layout


def to_yaml(layout: Layout, *, directory: bool = False) -> str:
    """The text of a layout, line for line that of ``lfs getstripe -y``; for a directory, that of its default."""
    if not layout.composite:
        (component,) = layout.components
        if component.foreign is not None:
            return f"lfm_value:     '{component.foreign.value.decode(errors='surrogateescape')}'\n\n"
        return "".join(f"{line}\n" for line in _striping(component, layout.generation, directory, ""))
    return "".join(f"{line}\n" for line in _composite(layout, directory))


def _composite(layout: Layout, directory: bool) -> Iterator[str]:
    yield f"lcm_layout_gen:    {layout.generation}"
    yield f"lcm_mirror_count:  {layout.mirror_count}"
    yield f"lcm_entry_count:   {len(layout.components)}"
    yield "components:"
    for component in layout.components:
        if component.foreign is not None:
            raise ValueError("a foreign component among others has no text form")
        yield from _entry(component)
        yield from _striping(component, 0, directory, "      ")


def _entry(component: Component) -> Iterator[str]:
    number = component.component_id
    yield f"  - lcme_id:             {number or 'N/A'}"
    yield f"    lcme_mirror_id:      {component.mirror_id if number else 'N/A'}"
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


def _striping(component: Component, generation: int, directory: bool, indent: str) -> Iterator[str]:
    prefix = indent if directory else f"{indent}lmm_"
    yield f"{prefix}stripe_count:  {component.stripe_count}"
    if "extension" in component.flags:
        yield f"{prefix}extension_size: {component.extension_size}"
    else:
        yield f"{prefix}stripe_size:   {component.stripe_size}"
    yield f"{prefix}pattern:       {component.pattern}"
    if not directory:
        yield f"{prefix}layout_gen:    {generation}"
    if component.on_mdt:
        yield f"{prefix}mdt_index:     {component.mdt_index}"
    else:
        yield f"{prefix}stripe_offset: {component.stripe_offset}"
    if component.pool:
        yield f"{prefix}pool:          {component.pool}"
    if component.objects:
        yield f"{prefix}objects:"
    for one in component.objects:
        yield f"      - l_ost_idx: {one.ost_index}"
        yield f"        l_fid:     {str(one.fid)[1:-1]}"
