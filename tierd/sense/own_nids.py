"""Addresses of this node on Lustre's network, as changelog records name it."""

from __future__ import annotations

from lustre.read import read_whole
from lustre.text import lnet_nis
from lustre.tree import Tree


def own_nids(tree: Tree) -> frozenset[str]:
    """NIDs of this node; none where they are not to be seen (debugfs closed)."""
    place = tree.lnet_path("nis")
    try:
        data = read_whole(place) if place is not None else None
    except OSError:
        data = None
    return frozenset(each.nid.decode("ascii", "replace") for each in lnet_nis.parse(data or b"").interfaces)
