"""The mover's side of the Lustre in memory: :class:`lustre.filesystem.Calls`, with a hook before each call."""

import errno
import os
from collections.abc import Callable

from lustre.errors import of_errno
from lustre.fid import Fid
from lustre.filesystem import Belongings, FileFlags, Hsm, Status
from lustre.layout.model import Layout
from tests.tierd.act.movers.minilustre import BY_FID, PAGE, SECOND, MiniLustre, Node
from tierd.act.movers.checks import leaves_mdt

STRIPE_PAGES = 4


class Killed(BaseException):
    """SIGKILL: the process does nothing any more, not even close."""


def just_before(call: str, act: Callable[[], object], occurrence: int | None = 1,
                since: str = "") -> Callable[..., None]:
    """A hook that does something before the nth call of a kind (None: each), counted from the call ``since`` on.

    Without a kind, all calls count.
    """
    begun, seen = not since, 0

    def before(name: str, *_: int) -> None:
        nonlocal begun, seen
        seen += begun and call in {"", name}
        if begun and call in {"", name} and occurrence in {None, seen}:
            act()
        begun |= name == since

    return before


class MiniCalls:
    """The calls of one mover process."""

    def __init__(self, lustre: MiniLustre) -> None:
        self.lustre = lustre
        self.made: list[str] = []
        self.dead = False
        self.before: Callable[[str, int], None] = lambda name, number: None
        """Called before every call, with its number from 1. It may act as an application, or raise."""
        self.volatile_mdt: int | None = None
        """MDT of volatile files, whatever the caller requests."""
        self.short_transfers = False
        self.corrupt_writes = False
        self.lose_reply = False
        """The exchange is done, and an error reported."""

    def open_for_reading(self, path: str) -> int:
        self._call("open_for_reading")
        return self.lustre.open(self.lustre.at(path), writable=False)

    def open_for_swap(self, path: str, direct: bool) -> int:
        self._call("open_for_swap")
        node = self.lustre.at(path)
        if node.flags & (FileFlags.IMMUTABLE | FileFlags.APPEND_ONLY):
            raise of_errno(errno.EPERM, "open", path)
        self.lustre.break_lease(node)
        return self.lustre.open(node, writable=True)

    def open_fid(self, fid: Fid) -> int:
        self._call("open_fid")
        if fid not in self.lustre.nodes:
            raise of_errno(errno.ESTALE, "open by FID", str(fid))  # what Linux makes of every error of a file handle
        return self.lustre.open(self.lustre.nodes[fid], writable=False)

    def status_of(self, path: str) -> Status:
        self._call("status_of")
        return self._status(self.lustre.at(path))

    def layout_of(self, path: str) -> Layout | None:
        self._call("layout_of")
        return self.lustre.at(path).store.layout

    def exists(self, fid: Fid) -> bool:
        self._call("exists")
        return fid in self.lustre.nodes and self.lustre.nodes[fid].links > 0

    def create_volatile(self, beside: str, mdt_index: int, layout: Layout, source: int) -> int:
        self._call("create_volatile")
        node = self.lustre.new_node(mdt_index if self.volatile_mdt is None else self.volatile_mdt, layout)
        inherited = 0 if beside.startswith(BY_FID) else self.lustre.directory_project
        node.volatile, node.uid, node.gid, node.project = True, 0, 0, inherited
        node.shown_project = node.project
        return self.lustre.open(node, writable=True)

    def close(self, descriptor: int) -> None:
        try:
            self._call("close")
        finally:  # Linux gives the descriptor up whatever close reports
            if not self.dead:
                self.lustre.release(descriptor)

    def status(self, descriptor: int) -> Status:
        node = self._called("status", descriptor)
        self.lustre.descriptors[descriptor].layout = node.store.layout
        return self._status(node)

    def size(self, descriptor: int) -> int:
        return len(self._called("size", descriptor).store.data)

    def _status(self, node: Node) -> Status:
        node.shown_project = node.project
        mtime = max(node.mtime_ns, node.store.mtime_ns, node.shown_mtime_ns)
        return Status(node.mode, node.uid, node.gid, len(node.store.data), node.links or int(node.volatile),
                      node.atime_ns, mtime, node.ctime_ns, len(node.store.pages) * PAGE)

    def fid(self, descriptor: int) -> Fid:
        return self._called("fid", descriptor).fid

    def mdt_index(self, descriptor: int) -> int:
        return self._called("mdt_index", descriptor).mdt

    def mdt_index_of(self, fid: Fid) -> int:
        self._call("mdt_index_of")
        return self.lustre.nodes[fid].mdt

    def layout(self, descriptor: int) -> Layout | None:
        self._called("layout", descriptor)
        return self.lustre.descriptors[descriptor].layout

    def belongings(self, descriptor: int) -> Belongings:
        node = self._called("belongings", descriptor)
        return Belongings(frozenset(node.xattrs), node.pin)

    def flags(self, descriptor: int) -> FileFlags:
        return self._called("flags", descriptor).flags

    def hsm(self, descriptor: int) -> Hsm:
        return self._called("hsm", descriptor).hsm

    def project(self, descriptor: int) -> int:
        return self._called("project", descriptor).shown_project

    def project_beside(self, path: str) -> int:
        self._call("project_beside")
        return self.lustre.directory_project

    def set_project(self, descriptor: int, project: int) -> None:
        node = self._called("set_project", descriptor)
        node.project = project
        node.store.owner = (node.uid, node.gid, node.project)

    def set_owner(self, descriptor: int, uid: int, gid: int) -> None:
        node = self._called("set_owner", descriptor)
        node.uid, node.gid = uid, gid
        node.store.owner = (node.uid, node.gid, node.project)

    def set_times(self, descriptor: int, atime_ns: int, mtime_ns: int) -> None:
        node = self._called("set_times", descriptor)
        now = self.lustre.tick()
        if now < node.ctime_ns:  # Lustre before 2.18 drops what a client with a clock behind sends
            return
        node.atime_ns, node.mtime_ns, node.store.mtime_ns, node.ctime_ns = atime_ns, mtime_ns, mtime_ns, now

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        store = self._called("read", descriptor).store
        if self.short_transfers and length > 1:
            length -= length // 3
        return bytes(store.data[offset : offset + length])

    def write(self, descriptor: int, data: bytes, offset: int) -> int:
        node = self._called("write", descriptor)
        assert node.volatile, "a mover writes to nothing but its copy"
        if self.short_transfers and len(data) > 1:
            data = data[: len(data) - len(data) // 3]
        if self.lustre.used_bytes() + len(data) > self.lustre.room_bytes:
            raise of_errno(errno.ENOSPC, "write")
        stored = bytes(len(data)) if self.corrupt_writes else data
        self.lustre.put(node.store, stored, offset)
        node.store.mtime_ns = self.lustre.tick()
        self.lustre.descriptors[descriptor].layout = node.store.layout
        return len(data)

    def truncate(self, descriptor: int, size_bytes: int) -> None:
        node = self._called("truncate", descriptor)
        assert node.volatile, "a mover truncates nothing but its copy"
        self.lustre.cut(node.store, size_bytes)
        self.lustre.descriptors[descriptor].layout = node.store.layout

    def next_data(self, descriptor: int, offset: int) -> tuple[int, int] | None:
        store = self._called("next_data", descriptor).store
        pages = sorted(page for page in store.pages if (page + 1) * PAGE > offset and page * PAGE < len(store.data))
        if not pages:
            return None
        last = pages[0]
        while last + 1 in store.pages and (last + 1) % STRIPE_PAGES:  # a stripe may end what is one piece of data
            last += 1
        return max(offset, pages[0] * PAGE), min((last + 1) * PAGE, len(store.data))

    def sync(self, descriptor: int) -> None:
        self._call("sync")

    def drop_cache(self, descriptor: int) -> None:
        self._call("drop_cache")

    def lease(self, descriptor: int) -> None:
        node = self._called("lease", descriptor)
        others = sum(d.writable and d.node is node for n, d in self.lustre.descriptors.items() if n != descriptor)
        if node.writers or others or node.leased_by is not None:
            raise of_errno(errno.EBUSY, "lease")
        node.leased_by, node.lease_broken = descriptor, not (node.links or node.volatile)

    def lease_held(self, descriptor: int) -> bool:
        node = self._called("lease_held", descriptor)
        return node.leased_by == descriptor and not node.lease_broken

    def data_version(self, descriptor: int) -> int:
        node = self._called("data_version", descriptor)
        node.shown_mtime_ns = 0  # the server takes the lock from all clients, so that they write back
        return node.store.version

    def stored_version(self, descriptor: int) -> int:
        return self._called("stored_version", descriptor).store.version

    def swap_and_close(self, source: int, volatile: int, source_version: int, volatile_version: int) -> None:
        one, other = self._called("swap_and_close", source), self._of(volatile)
        if one.leased_by != source or one.lease_broken:
            raise of_errno(errno.ESTALE, "swap")
        if (one.uid, one.gid) != (other.uid, other.gid):
            raise of_errno(errno.EPERM, "swap")
        if _on_mdt(other.store.layout) and _on_mdt(other.store.layout) != _on_mdt(one.store.layout):
            raise of_errno(errno.EOPNOTSUPP, "swap")
        left = leaves_mdt(other.store.layout, one.store.layout)
        one.leased_by = None
        one.store, other.store = other.store, one.store
        now = one.ctime_ns = self.lustre.tick()
        if left:  # what the MDT's inode held is truncated, at its own time
            one.mtime_ns = one.ctime_ns = now + self.lustre.mds_ahead_seconds * SECOND
        if one.mdt != other.mdt:
            other.store = one.store  # that MDT never hears of the exchange: it will destroy what it knows
        if self.lose_reply:
            raise of_errno(errno.EIO, "swap")

    def step(self, name: str) -> None:
        """A step of ``lfs`` that no engine makes itself."""
        self._call(name)

    def _call(self, name: str) -> None:
        if self.dead:
            raise Killed
        self.made.append(name)
        try:
            self.before(name, len(self.made))
        except Killed:
            self.dead = True
            raise

    def _called(self, name: str, descriptor: int) -> Node:
        self._call(name)
        return self._of(descriptor)

    def _of(self, descriptor: int) -> Node:
        if descriptor not in self.lustre.descriptors:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self.lustre.descriptors[descriptor].node


def _on_mdt(layout: Layout) -> int:
    first = layout.components[0]
    return first.extent_end or 0 if first.on_mdt else 0
