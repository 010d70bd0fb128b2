"""Pools, their members, and the room on each target, from the parameters of this client.

These are the files ``lfs`` itself looks pools up in. Two mounts of one file system say the same; one that has just gone
is simply not there.
"""

from __future__ import annotations

from lustre.filesystem import Space
from lustre.text import df
from lustre.text import pools as pool_text
from lustre.tree import Tree, parse_device


def pools(tree: Tree, fsname: str) -> dict[str, tuple[str, ...]]:
    """Pool name to the full names of its targets, sorted; a pool without members is there, and empty."""
    found: dict[str, tuple[str, ...]] = {}
    for name in tree.devices("lov"):
        device = parse_device(name)
        if device.fsname != fsname or device.kind == "mdtlov":
            continue
        for pool in tree.children(f"lov/{name}/pools"):
            data = tree.read(f"lov/{name}/pools/{pool}")
            if data is not None:
                found[pool] = tuple(sorted(pool_text.parse(data).members))
    return found


def space(tree: Tree, fsname: str) -> dict[str, Space]:
    """Full target name to its room, for the OSTs this client can reach."""
    found: dict[str, Space] = {}
    for name in tree.devices("osc"):
        device = parse_device(name)
        if device.fsname != fsname or device.instance.startswith(("MDT", "OST")):
            continue
        room = df.parse(**{file: tree.read(f"osc/{name}/{file}") for file in df.FILES})
        if room.size_bytes is None or room.free_bytes is None or room.avail_bytes is None:
            continue
        if room.size_bytes > 0:  # an OST that cannot be reached says 0 of everything
            found[f"{fsname}-{device.target}"] = Space(room.size_bytes, room.free_bytes, _avail(room, room.avail_bytes))
    return found


def _avail(room: df.Df, avail_bytes: int) -> int:
    """What may still be written, or less where the target has fewer objects left than bytes.

    A target that has no objects left takes no file, however many bytes are free (``OS_STATFS_ENOINO`` in
    lustre/osp/osp_precreate.c). One formatted with an object for every 64 KiB is full of 4 KiB files when a sixteenth
    of its bytes is used. So it counts as full as the scarcer of the two says.
    """
    objects, left = room.files or 0, room.files_free
    if objects <= 0 or left is None or left < 0:
        return avail_bytes
    return min(avail_bytes, (room.size_bytes or 0) * left // objects)
