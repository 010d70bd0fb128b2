"""Directories and files as if they had always been there: what a cluster holds before anybody works on it."""

from __future__ import annotations

from collections.abc import Sequence

from lustre.layout.model import Layout
from simulator.mdt import Mdt
from simulator.namespace import Inode, Namespace
from simulator.ost import Ost
from simulator.placement import Placement, extents


class Population:
    """Makes what was there before."""

    def __init__(self, namespace: Namespace, placement: Placement, mdts: Sequence[Mdt], osts: Sequence[Ost]) -> None:
        self._namespace = namespace
        self._placement = placement
        self._mdts = mdts
        self._osts = osts

    def directory(
        self, path: str, layout: Layout | None, now: float, *, uid: int = 0, mdt_index: int = 0,
        shards: tuple[int, ...] = (),
    ) -> Inode:  # fmt: skip
        """A directory with those above it; one that exists stays as it is. ``now`` in seconds of the epoch."""
        inode = self._namespace.root
        for name in filter(None, path.split("/")):
            child = inode.children.get(name)
            if child is None:
                fid = self._namespace.new_fid(mdt_index, 0)
                child = self._namespace.add(inode, name, fid, mdt_index, now, directory=True)
                child.uid = child.gid = uid
                child.layout = layout if child.path == path else None
                child.shards = shards if child.path == path else ()
                self._mdts[mdt_index].inodes_used += 1
            inode = child
        return inode

    def file(self, path: str, size_bytes: int, now: float, *, uid: int = 0) -> Inode:
        """A file full of data. Raises OSError ENOSPC when there is no room."""
        parent, _, name = path.rpartition("/")
        directory = self.directory(parent, None, now)
        if name in directory.children:
            return directory.children[name]
        layout = self._placement.create(directory.layout or self._namespace.root.layout)
        try:
            layout = self._placement.reach(layout, size_bytes)
            for piece in extents(layout, 0, size_bytes):
                store = self._osts[piece.ost_index].store
                store.grow(store.objects[piece.fid], piece.offset, piece.offset + piece.size_bytes)
        except OSError:
            self._placement.release(layout)
            raise
        fid = self._namespace.new_fid(directory.mdt_index, 0)
        inode = self._namespace.add(directory, name, fid, directory.mdt_index, now, directory=False)
        inode.layout, inode.uid, inode.gid = layout, uid, uid
        inode.wrote(size_bytes, now)
        self._mdts[directory.mdt_index].inodes_used += 1
        return inode
