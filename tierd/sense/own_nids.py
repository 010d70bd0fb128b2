"""Addresses of this node on Lustre's network, as changelog records name it."""

from __future__ import annotations

from lustre.formats import lnet
from lustre.parameters import Tree, read_whole


def own_nids(tree: Tree) -> frozenset[str]:
    """NIDs of this node; none where they are not to be seen (debugfs closed)."""
    place = tree.lnet_path("nis")
    try:
        data = read_whole(place) if place is not None else None
    except OSError:
        data = None
    return frozenset(each.nid.decode("ascii", "replace") for each in lnet.parse_nis(data or b"").interfaces)
