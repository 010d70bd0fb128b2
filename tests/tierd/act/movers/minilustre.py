"""A Lustre in memory, as far as a mover sees one: leases, volatile files, exchanges of layouts, data versions, pools.

It is as unforgiving as the real one: an exchange with a volatile file on another MDT succeeds and destroys the data
later, an empty pool takes files and puts them anywhere, root may exceed anybody's quota, an error may hide success. A
file that is gone is stale to who opens it by FID, one whose data leaves the MDT is modified now, and a pool's name may
stand on data that lies on the MDT. The mover's client shows old projects and modification times.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from lustre.errors import of_errno
from lustre.fid import Fid
from lustre.filesystem import FileFlags, Hsm, Quota, Space
from lustre.layout.model import Component, Layout, StripeObject, in_sync, mirrors

PAGE = 4096
BY_FID = "/.lustre/fid/"
SECOND = 1_000_000_000
POOLS: dict[str, tuple[str, ...]] = {
    "flash": ("lustre-OST0000", "lustre-OST0001"),
    "hdd": ("lustre-OST0002", "lustre-OST0003", "lustre-OST0004", "lustre-OST0005"),
    "empty": (),
}
FLASH = Layout((Component(pool="flash"),), composite=False)
HDD = Layout((Component(pool="hdd"),), composite=False)
DOM = Layout((Component(0, 16 * PAGE, pattern="mdt", stripe_count=0), Component(16 * PAGE, None, pool="hdd")))
DOM_FLASH = Layout((Component(0, 16 * PAGE, pattern="mdt", stripe_count=0), Component(16 * PAGE, None, pool="flash")))
PFL = Layout((Component(0, 8 * PAGE, pool="flash"), Component(8 * PAGE, None, pool="hdd")))


@dataclass(eq=False)
class Store:
    """The objects of one layout and what they hold."""

    layout: Layout
    owner: tuple[int, int, int] = (0, 0, 0)
    data: bytearray = field(default_factory=bytearray)
    pages: set[int] = field(default_factory=set)
    version: int = 0
    mtime_ns: int = 0
    destroyed: bool = False


@dataclass(eq=False)
class Node:
    """An inode."""

    fid: Fid
    mdt: int
    store: Store
    mode: int = stat.S_IFREG | 0o644
    uid: int = 1001
    gid: int = 1001
    project: int = 7
    links: int = 0
    volatile: bool = False
    mtime_ns: int = 0
    atime_ns: int = 0
    ctime_ns: int = 0
    xattrs: dict[str, bytes] = field(default_factory=dict)
    flags: FileFlags = FileFlags.NONE
    hsm: Hsm = field(default_factory=Hsm)
    pin: bytes = b""
    writers: int = 0
    leased_by: int | None = None
    lease_broken: bool = False
    shown_project: int = 7
    """What the mover's client shows: as of its last stat, also after it has set another project."""
    shown_mtime_ns: int = 0
    """Time at which the mover's client wrote data on the MDT. It shows this time until it loses its lock."""


class MiniClock:
    """The time of a Lustre in memory, as a :class:`tierd.clock.Clock`. Waiting passes the time."""

    def __init__(self, lustre: MiniLustre) -> None:
        self._lustre = lustre
        self.waited_seconds = 0.0

    def now(self) -> float:
        return self._lustre.clock_ns / SECOND

    def wait(self, seconds: float) -> bool:
        self.waited_seconds += seconds
        self._lustre.clock_ns += round(seconds * SECOND)
        return False


@dataclass
class Descriptor:
    node: Node
    writable: bool
    layout: Layout
    """What the client remembers of it; a stat asks for a newer one, the attribute ``lustre.lov`` does not."""


class MiniLustre:
    """The file system as applications and administrators see it; :mod:`minicalls` is the mover's side."""

    def __init__(self) -> None:
        self.names: dict[str, Node] = {}
        self.nodes: dict[Fid, Node] = {}
        self.stores: list[Store] = []
        self.descriptors: dict[int, Descriptor] = {}
        """Of the mover's process."""
        self.pool_members = dict(POOLS)
        self.room_bytes = 1 << 30
        self.directory_project = 0
        self.directory_default = HDD
        """What a new file gets for which no layout is named; its pool is put on components of the MDT, too."""
        self.mds_ahead_seconds = 0
        """By how much the clock of the MDS is ahead of the clients' clocks."""
        self.quotas: dict[tuple[int, int, str], Quota] = {}
        self.clock_ns = 1_795_000_000 * SECOND
        self.tick_ns = SECOND
        """What passes with each change. Lustre keeps whole seconds: with 0, all that happens has the same time."""
        self.next_number = 100
        self.mirror_mtimes_ns: dict[Fid, int] = {}
        """When the objects of a mirror were written last, where the other mirror hides it."""
        self.later: list[Callable[[], None]] = []

    def at(self, path: str) -> Node:
        """The file of a path, which may name a FID. Raises OSError."""
        fid = path.removeprefix(BY_FID)
        node = self.names.get(path) if fid == path else self.nodes.get(Fid.parse(fid))
        if node is None or not node.links:
            raise of_errno(errno.ENOENT, "open", path)
        return node

    # -- what applications do ---------------------------------------------------------------------------------------

    def create(self, path: str, data: bytes = b"", layout: Layout = HDD, mdt: int = 0) -> Node:
        node = self.new_node(mdt, layout)
        node.links = 1
        node.store.owner = (node.uid, node.gid, node.project)
        self.names[path] = node
        if data:
            self.write(path, data, 0)
        return node

    def write(self, path: str, data: bytes, offset: int) -> None:
        node = self.names[path]
        self.break_lease(node)
        self.put(node.store, data, offset)
        self.make_stale(node)
        node.ctime_ns = node.mtime_ns = node.store.mtime_ns = self.tick()

    def truncate_name(self, path: str, size: int) -> None:
        node = self.names[path]
        self.break_lease(node)
        self.cut(node.store, size)
        self.make_stale(node)
        node.ctime_ns = node.mtime_ns = node.store.mtime_ns = self.tick()

    def open_writer(self, path: str) -> Node:
        node = self.names[path]
        self.break_lease(node)
        node.writers += 1
        return node

    def close_writer(self, node: Node) -> None:
        node.writers -= 1

    def rename(self, old: str, new: str) -> None:
        if old == new or self.names.get(new) is self.names[old]:
            return
        if new in self.names:
            self.unlink(new)
        self.names[new] = self.names.pop(old)

    def link(self, old: str, new: str) -> None:
        self.names[new] = self.names[old]
        self.names[old].links += 1

    def unlink(self, path: str) -> None:
        node = self.names.pop(path)
        self.break_lease(node)
        node.links -= 1
        node.ctime_ns = self.tick()
        self.reap(node)

    def touch(self, path: str) -> None:
        node = self.names[path]
        node.mtime_ns = node.store.mtime_ns = node.ctime_ns = self.tick()

    def contents(self, path: str) -> bytes:
        store = self.names[path].store
        if store.destroyed:
            raise of_errno(errno.ENOENT, "the objects are gone", path)
        return bytes(store.data)

    def settle(self) -> None:
        """Half a minute later."""
        waiting, self.later = self.later, []
        for happening in waiting:
            happening()

    def process_died(self) -> None:
        """Linux closes everything the mover had open."""
        for number in list(self.descriptors):
            self.release(number)

    def live_stores(self) -> list[Store]:
        return [store for store in self.stores if not store.destroyed]

    # -- below ------------------------------------------------------------------------------------------------------

    def space(self) -> dict[str, Space]:
        avail = self.room_bytes - self.used_bytes()
        targets = [target for members in POOLS.values() for target in members]
        return {target: Space(self.room_bytes, avail, avail) for target in targets}

    def quota(self, kind: int, owner: int, pool: str) -> Quota:
        return self.quotas.get((kind, owner, pool), Quota(0, 0, 0))

    def tick(self) -> int:
        self.clock_ns += self.tick_ns
        return self.clock_ns

    def new_node(self, mdt: int, layout: Layout) -> Node:
        self.next_number += 1
        store = Store(self._named(layout))
        self.instantiate(store, 1)
        self.stores.append(store)
        node = Node(Fid(0x200000400 + mdt, self.next_number), mdt, store)
        node.atime_ns = node.ctime_ns = node.mtime_ns = store.mtime_ns = self.tick()
        self.nodes[node.fid] = node
        return node

    def _named(self, layout: Layout) -> Layout:
        """As Lustre 2.17 names pools: data on the MDT gets the name of the directory's."""
        pool = self.directory_default.components[-1].pool
        return replace(layout, components=tuple(replace(c, pool=pool) if c.on_mdt else c for c in layout.components))

    def instantiate(self, store: Store, end: int) -> None:
        """Give objects to every component that begins before a byte, as its first write does."""
        store.layout = replace(store.layout, components=tuple(
            replace(c, objects=tuple(self._objects(c)), ost_list=())
            if c.extent_start < end and not c.on_mdt and not c.objects else c for c in store.layout.components))

    def _objects(self, component: Component) -> Iterator[StripeObject]:
        if component.ost_list:
            for index in component.ost_list:
                self.next_number += 1
                yield StripeObject(index, Fid(0x300000000, self.next_number))
            return
        members = self.pool_members.get(component.pool, ()) or ("lustre-OST0005",)
        for number in range(min(max(component.stripe_count, 1), len(members))):
            self.next_number += 1
            yield StripeObject(int(members[number][-4:], 16), Fid(0x300000000, self.next_number))

    def open(self, node: Node, writable: bool) -> int:
        self.next_number += 1
        self.descriptors[self.next_number] = Descriptor(node, writable, node.store.layout)
        return self.next_number

    def release(self, descriptor: int) -> None:
        node = self.descriptors.pop(descriptor).node if descriptor in self.descriptors else None
        if node is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        if node.leased_by == descriptor:
            node.leased_by = None
        self.reap(node)

    def reap(self, node: Node) -> None:
        if node.links or any(d.node is node for d in self.descriptors.values()):
            return
        store = node.store
        if node.fid not in self.nodes:
            return
        del self.nodes[node.fid]
        if any(other.store is store for other in self.nodes.values()):
            self.later.append(lambda: setattr(store, "destroyed", True))
        else:
            store.destroyed = True

    def break_lease(self, node: Node) -> None:
        if node.leased_by is not None:
            node.lease_broken = True

    def put(self, store: Store, data: bytes, offset: int) -> None:
        if not data:
            return
        if len(store.data) < offset + len(data):
            store.data.extend(bytes(offset + len(data) - len(store.data)))
        self.instantiate(store, offset + len(data))
        store.data[offset : offset + len(data)] = data
        store.pages.update(range(offset // PAGE, (offset + len(data) - 1) // PAGE + 1))
        store.version += 1

    def cut(self, store: Store, size: int) -> None:
        self.instantiate(store, size)
        if size < len(store.data):
            del store.data[size:]
            store.pages = {page for page in store.pages if page * PAGE < size}
        else:
            store.data.extend(bytes(size - len(store.data)))
        store.version += 1

    @staticmethod
    def make_stale(node: Node) -> None:
        """A write goes to the preferred mirror if it is in sync; the other one becomes stale."""
        layout = node.store.layout
        groups = mirrors(layout)
        if len(groups) > 1 and in_sync(layout):
            primary = next((group for group in groups if "prefer" in group[0].flags), groups[0])[0].mirror_id
            node.store.layout = replace(layout, state="wp", components=tuple(
                c if c.mirror_id == primary else replace(c, flags=(*c.flags, "stale")) for c in layout.components))

    def used_bytes(self) -> int:
        return sum(len(store.pages) * PAGE for store in self.live_stores())
