"""The namespace: directories, files, their FIDs and their layouts."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from stat import S_IFDIR, S_IFREG
from zlib import crc32

from lustre.fid import Fid
from lustre.layout.directory import UNLIMITED_INHERIT, DefaultStriping
from lustre.layout.model import Layout
from simulator.engine import Completion

ROOT_FID = Fid(0x200000007, 1)
FIRST_SEQUENCE, SEQUENCES_OF_MDT = 0x200000402, 0x40000000
"""First sequence of FIDs of the first MDT, and the number of sequences of each MDT."""
ROOT_STRIPING = DefaultStriping(1, -1, "none", UNLIMITED_INHERIT, 3)
"""Default that Lustre gives the root of a new file system (``mdd_prepare`` in lustre/mdd/mdd_device.c)."""


@dataclass(eq=False, repr=False, slots=True)
class Inode:
    """A file or a directory.

    ``content`` represents the data of a file: it changes with every write, but not with a move. ``write_back`` starts
    to write the dirty pages that a closed file left on a client.
    """

    fid: Fid
    mdt_index: int
    parent: Inode | None
    name: str
    mtime: float
    uid: int = 0
    """Number of its owner, and of its group."""
    is_directory: bool = False
    children: dict[str, Inode] = field(default_factory=dict)
    layout: Layout | None = None
    shards: tuple[int, ...] = ()
    default_striping: DefaultStriping | None = None
    """Striping of new subdirectories; None without a default of its own."""
    size_bytes: int = 0
    content: int = 0
    atime: float = field(init=False)
    mode: int = field(init=False)
    writers: int = 0
    handles: list[tuple[int, int, bool]] = field(default_factory=list)
    """For each process that has it open: client, user, and whether for writing."""
    data_lock: int = -1
    """Index of the client with the write lock of the data on the MDT; -1 without a lock."""
    lease_broken: bool = False
    unlinked: bool = False
    migrating: bool = False
    write_back: Callable[[], Completion] | None = None
    xattrs: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.atime = self.mtime
        self.mode = S_IFDIR | 0o755 if self.is_directory else S_IFREG | 0o644

    def shard(self, name: str) -> int:
        """Index of the MDT of a name: the directory's, or for a striped directory one chosen by hash."""
        return self.shards[crc32(name.encode()) % len(self.shards)] if self.shards else self.mdt_index

    @property
    def effective_striping(self) -> DefaultStriping | None:
        """Striping of new subdirectories, as ``lfs getdirstripe -D`` prints it: its own, or that of an ancestor."""
        inode, levels = self, 0
        while inode.default_striping is None:
            if inode.parent is None:
                return None
            inode, levels = inode.parent, levels + 1
        default = inode.default_striping
        if default.max_inherit == UNLIMITED_INHERIT:
            return default
        return replace(default, max_inherit=default.max_inherit - levels) if default.max_inherit > levels else None

    @property
    def path(self) -> str:
        parts: list[str] = []
        inode: Inode | None = self
        while inode is not None and inode.parent is not None:
            parts.append(inode.name)
            inode = inode.parent
        return "/" + "/".join(reversed(parts))

    def wrote(self, end_bytes: int, now: float) -> None:
        """Record a write up to an end, at a time."""
        self.size_bytes = max(self.size_bytes, end_bytes)
        self.content = hash((self.content, end_bytes, round(now * 1e9)))
        self.mtime = now


class Namespace:
    """One tree over all MDTs. A FID's sequence says which MDT and which client made it."""

    def __init__(self, now: float, mdts: int) -> None:
        self.root = Inode(ROOT_FID, 0, None, "", now, is_directory=True, default_striping=ROOT_STRIPING)
        self.inodes = [0] * mdts
        """Files and directories on each MDT, without the root."""
        self._by_fid: dict[Fid, Inode] = {ROOT_FID: self.root}
        self._next_id: dict[int, int] = {}

    def new_fid(self, mdt_index: int, client_index: int) -> Fid:
        sequence = FIRST_SEQUENCE + mdt_index * SEQUENCES_OF_MDT + client_index
        number = self._next_id[sequence] = self._next_id.get(sequence, 0) + 1
        return Fid(sequence, number)

    def add(self, parent: Inode, name: str, mdt_index: int, now: float, *, uid: int, directory: bool = False,
            client_index: int = 0) -> Inode:
        """Add a file or directory. Raises OSError EEXIST if the name exists."""
        fid = self.new_fid(mdt_index, client_index)
        if name in parent.children:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        inode = self._by_fid[fid] = parent.children[name] = Inode(
            fid, mdt_index, parent, name, now, uid=uid, is_directory=directory)
        parent.mtime = now
        self.inodes[mdt_index] += 1
        return inode

    def default_shards(self, parent: Inode, inode: Inode) -> tuple[int, ...]:
        """MDTs of a new subdirectory by the default striping of its parent. Since 2.16 it does not store a copy."""
        default, mdts = parent.effective_striping, len(self.inodes)
        if default is None:
            return ()
        count = mdts if default.stripe_count < 0 else min(default.stripe_count, mdts)
        return tuple((inode.mdt_index + n) % mdts for n in range(count)) if count > 1 else ()

    def remove(self, inode: Inode, now: float) -> None:
        assert inode.parent is not None
        del inode.parent.children[inode.name]
        inode.parent.mtime = now
        inode.unlinked = True
        del self._by_fid[inode.fid]
        self.inodes[inode.mdt_index] -= 1

    def lookup(self, path: str) -> Inode:
        """Look up a path. Raises OSError ENOENT or ENOTDIR."""
        inode = self.root
        for name in path.split("/"):
            if not name:
                continue
            if not inode.is_directory:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            child = inode.children.get(name)
            if child is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            inode = child
        return inode

    def by_fid(self, fid: Fid) -> Inode:
        try:
            return self._by_fid[fid]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(fid)) from None

    def files(self) -> Iterator[Inode]:
        return (inode for inode in self._by_fid.values() if not inode.is_directory)
