"""The layout to ask for when a file is to lie again where it lay: from the journal, and the pools as they are now.

A file may have had no pool: the file system's default put its objects anywhere. Movers put nothing where no pool is
named, since "anywhere" may be the very pool it should leave. So such a component gets the smallest pool that holds all
the targets its objects were on, as the journal recorded them; where no pool does, people have to decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lustre.layout.model import Component, Layout


def blank(layout: Layout) -> Layout:
    """The layout as a wish: without the objects and flags of the file that had it."""
    return replace(layout, generation=0, state="", components=tuple(
        replace(c, objects=(), flags=tuple(f for f in c.flags if f == "extension"), component_id=0, stripe_offset=-1)
        for c in layout.components))


def wish(before: Layout, pools: Mapping[str, tuple[str, ...]]) -> Layout:
    """The earlier layout with a pool for every component on OSTs. Raises ValueError that says why there is none.

    >>> from lustre.fid import Fid
    >>> from lustre.layout.model import StripeObject
    >>> had = Layout((Component(objects=(StripeObject(3, Fid(1, 1)),)),), composite=False)
    >>> pools = {"all": ("fs-OST0000", "fs-OST0003"), "hdd": ("fs-OST0003",), "flash": ("fs-OST0000",)}
    >>> wish(had, pools).components[0].pool
    'hdd'
    """
    found: list[str] = []
    for component in before.components:
        found.append("" if component.on_mdt else component.pool or _pool_of(component, pools))
    beside = next((pool for pool in found if pool), "")
    wanted = blank(before)
    components = []
    for component, pool in zip(wanted.components, found, strict=True):
        beside = pool or beside
        if component.on_mdt:
            components.append(component)
        elif not beside:
            raise ValueError("the layout it had names no pool and no objects: nothing says where it lay")
        else:  # a component without objects goes where the one before it went
            components.append(replace(component, pool=beside))
    return replace(wanted, components=tuple(components))


def _pool_of(component: Component, pools: Mapping[str, tuple[str, ...]]) -> str:
    """The smallest pool with all targets of the component's objects; "" for a component that has none."""
    indices = {stripe.ost_index for stripe in component.objects}
    if not indices:
        return ""
    holding = [(len(members), name) for name, members in pools.items()
               if indices <= {int(target[-4:], 16) for target in members}]
    if not holding:
        named = ", ".join(f"OST{index:04x}" for index in sorted(indices))
        raise ValueError(f"it had no pool and lay on {named}, and no pool holds all of these: make one "
                         "(lctl pool_new, pool_add), or move it by hand (lfs migrate --non-block -o)")
    return min(holding)[1]
