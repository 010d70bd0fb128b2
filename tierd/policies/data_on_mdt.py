"""The policy of this name; its parts are in detect and decide."""

from __future__ import annotations

from lustre.layout.model import Layout
from tierd.decide import data_on_mdt
from tierd.model import Capacity
from tierd.policies.protocol import Policy, Tables


def is_short(layout: Layout, room: Capacity, tables: Tables) -> str | None:
    """Whether the MDTs are short of space, if the layout puts data there."""
    if not layout.components[0].on_mdt:
        return None
    return "an MDT is short of space" if data_on_mdt.is_short(room, tables.of(data_on_mdt.Settings)) else ""


POLICY = Policy("data-on-mdt", tables={"data_on_mdt": data_on_mdt.Settings}, is_short=is_short,
                option="places small files on the MDT")
