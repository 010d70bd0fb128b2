"""How much room the MDTs have, as a client sees it: the share of bytes or inodes free on the fullest of them."""

from __future__ import annotations

from lustre.formats import df
from lustre.parameters import Tree, parse_device


def share_free(tree: Tree, fsname: str) -> float | None:
    """The share, or None where any MDT of the file system does not tell."""
    shares = []
    for name in tree.devices("mdc"):
        if parse_device(name).fsname == fsname:
            room = df.parse(**{part: tree.read(f"mdc/{name}/{part}") for part in df.FILES})
            if not room.size_bytes or not room.files or room.avail_bytes is None or room.files_free is None:
                return None
            shares += [room.avail_bytes / room.size_bytes, room.files_free / room.files]
    return min(shares, default=None)
