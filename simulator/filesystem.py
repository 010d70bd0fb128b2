"""The file system port of tierd over the model: the cluster behaves like a mounted Lustre.

A call with a request to a target takes the virtual time of :mod:`simulator.costs`, and waits behind the requests of
jobs at the same target. ``migrate`` starts a migration, which loads the same targets as every job. Both then call
``Cluster.wait_for``, which advances the cluster's time, or suspends one of several activities
(:mod:`simulator.scheduler`), or blocks the calling thread while a driver in the background advances the time
(:mod:`simulator.realtime`). Every method takes the cluster's lock and releases it before a wait.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from lustre.creation import ObjectCreation
from lustre.errors import of_errno
from lustre.fid import Fid
from lustre.filesystem import FileStatus, MetadataSpace, Space
from lustre.layout.directory import DefaultStriping, DirectoryStripes
from lustre.layout.model import Layout
from simulator.cluster import Cluster
from simulator.costs import CALLER, CallCosts
from simulator.engine import Steps
from simulator.migration import Migration
from simulator.network import NETWORK_SECONDS
from simulator.servers.mdt import Mdt
from simulator.servers.namespace import Inode
from simulator.servers.ost import Ost

NAMES_PER_PAGE = 100
GLIMPSE_USEC, STATFS_USEC = 50, 10
"""Service time of an OST for a glimpse (size of an object) and for statfs."""
RETRY_SECONDS = 0.1
"""Interval at which a request to an absent target is sent again."""


class Calls:
    """Waits for the duration of system calls: processor time on the node of the program, and service at the targets.
    Raises OSError ETIMEDOUT for a target that is absent too long.
    """

    def __init__(self, cluster: Cluster, costs: CallCosts) -> None:
        self._cluster = cluster
        self._costs = costs

    def status(self, path: str) -> None:
        inode = self._found(path)
        if self._costs.attributes_cached and inode is not None and not inode.is_directory:
            self._take(self._computing(0.0, self._costs.cached_processor_seconds))
            return
        self.to_mdt(path, "getattr")
        inode = self._found(path)
        parts = inode.layout.components if inode is not None and inode.layout and not inode.is_directory else ()
        if osts := sorted({stripe.ost_index for part in parts for stripe in part.objects}):
            self._take(self._glimpses(osts))

    def set_default(self, directory: str) -> None:
        self.to_mdt(directory, "open", "setxattr", "close")
        if self._costs.default_processor_seconds:
            self._take(self._computing(0.0, self._costs.default_processor_seconds))

    def read_directory(self, path: str) -> None:
        inode = self._found(path)
        pages = 0 if inode is None else 1 + len(inode.children) // NAMES_PER_PAGE
        self.to_mdt(path, "open", *["readpage"] * pages, "close")

    def to_mdt(self, where: str | Fid, *requests: str) -> None:
        """Make system calls to the MDT of a path or FID, one after the other."""
        inode = self._found(where)
        index = 0 if inode is None else inode.mdt_index  # the first MDT answers that the file does not exist
        self._take(self._requests(index, requests))

    def _found(self, where: str | Fid) -> Inode | None:
        names = self._cluster.namespace
        with self._cluster.lock, suppress(OSError):
            return names.by_fid(where) if isinstance(where, Fid) else names.lookup(where)
        return None

    def statfs(self) -> None:
        self._take(self._statfs())

    def take_records(self, records: int, walked: int = 0) -> None:
        """Process a number of changelog records, after a walk over uncleared ones."""
        seconds = self._costs.call_processor_seconds + records * self._costs.record_processor_seconds
        self._take(self._computing(walked * self._costs.kept_record_seconds, seconds))

    def read_counters(self) -> None:
        self._take(self._computing(self._costs.look_seconds, self._costs.look_processor_seconds))

    def _take(self, steps: Steps[None]) -> None:
        if not self._costs.charged:
            return
        with self._cluster.lock:
            ended = self._cluster.engine.spawn(steps)
        self._cluster.wait_for(ended)
        if ended.error is not None:
            raise ended.error

    def _requests(self, mdt_index: int, requests: Iterable[str]) -> Steps[None]:
        mdc = self._cluster.clients[0].mdcs[mdt_index]
        for request in requests:
            yield from self._computing(0.0, self._costs.call_processor_seconds)
            yield from self._answering(mdc.mdt)
            yield from mdc.ask(request, CALLER)

    def _glimpses(self, indices: Iterable[int]) -> Steps[None]:
        for index in indices:
            yield from self._answering(self._cluster.osts[index])
        yield NETWORK_SECONDS
        for index in indices:
            self._cluster.osts[index].tally(CALLER, "getattr", GLIMPSE_USEC)
        yield NETWORK_SECONDS + GLIMPSE_USEC / 1e6

    def _statfs(self) -> Steps[None]:
        yield from self._computing(0.0, self._costs.call_processor_seconds)
        yield NETWORK_SECONDS
        for ost in self._cluster.osts:
            if not ost.health.away:
                ost.stats.tally("statfs", STATFS_USEC)
        yield NETWORK_SECONDS

    def _computing(self, seconds: float, processor_seconds: float) -> Steps[None]:
        if seconds:
            yield seconds
        yield from self._cluster.processors.work(self._costs, processor_seconds)

    def _answering(self, target: Mdt | Ost) -> Steps[None]:
        until = self._cluster.now + self._costs.timeout_seconds
        while target.health.away:
            if self._cluster.now >= until:
                raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), target.name)
            yield RETRY_SECONDS


class SimulatedFilesystem:
    """The file system port of a simulated cluster."""

    def __init__(self, cluster: Cluster, costs: CallCosts | None = None) -> None:
        """``costs`` replaces the costs of the cluster, for an observer that must not disturb it."""
        self._cluster = cluster
        self._mount = cluster.settings.clients[0]
        self.calls = Calls(cluster, costs or cluster.settings.costs)
        self._read_to: dict[str, int] = {}
        """Index of the last record that the last call for an MDT returned."""

    @property
    def fsname(self) -> str:
        return self._cluster.settings.fsname

    def pools(self) -> Mapping[str, tuple[str, ...]]:
        osts = self._cluster.osts
        return {name: tuple(osts[i].name for i in members) for name, members in self._cluster.settings.pools.items()}

    def space(self) -> Mapping[str, Space]:
        self.calls.statfs()
        with self._cluster.lock:
            return {ost.name: ost.store.space() for ost in self._cluster.osts}

    def metadata_space(self) -> Mapping[str, MetadataSpace]:
        self.calls.statfs()
        with self._cluster.lock:
            found = {}
            for mdt in self._cluster.mdts:
                size, inodes = mdt.settings.capacity.size_bytes, mdt.settings.capacity.inodes
                found[mdt.name] = MetadataSpace(size, size * mdt.inodes_free // inodes, inodes, mdt.inodes_free)
            return found

    def path_of(self, fid: Fid, link: int = 0) -> str:
        self.calls.to_mdt(fid, "getattr")
        with self._cluster.lock:
            return self._cluster.namespace.by_fid(fid).path

    def status(self, path: str) -> FileStatus:
        self.calls.status(path)
        with self._cluster.lock:
            inode = self._cluster.namespace.lookup(path)
            return FileStatus(
                inode.fid, inode.size_bytes, inode.mtime, inode.atime, inode.uid, gid=inode.uid,
                link_count=2 if inode.is_directory else 1, is_directory=inode.is_directory, mode=inode.mode,
            )  # fmt: skip

    def entries(self, directory: str) -> Iterator[str]:
        self.calls.read_directory(directory)
        with self._cluster.lock:
            return iter(list(self._directory(directory).children))  # a copy: the caller iterates without the lock

    def subdirectories(self, directory: str) -> list[str]:
        self.calls.read_directory(directory)
        with self._cluster.lock:
            return [name for name, child in self._directory(directory).children.items() if child.is_directory]

    def xattr(self, path: str, name: str) -> bytes:
        """Read an extended attribute; b"" if absent. Raises Unsupported on a mount with ``nouser_xattr``."""
        if name.startswith("user.") and not self._mount.user_xattr:  # the client asks no MDT
            raise of_errno(errno.EOPNOTSUPP, f"get {name}", path)
        self.calls.to_mdt(path, "getxattr")
        with self._cluster.lock:
            return self._cluster.namespace.lookup(path).xattrs.get(name, b"")

    def set_xattr(self, path: str, name: str, value: bytes) -> None:
        """Set an extended attribute as setfattr(1) does on another client; b"" deletes it."""
        self.calls.to_mdt(path, "setxattr")
        with self._cluster.lock:
            xattrs = self._cluster.namespace.lookup(path).xattrs
            xattrs.pop(name, None)
            if value:
                xattrs[name] = value

    def layout(self, path: str) -> Layout | None:
        self.calls.to_mdt(path, "open", "getxattr", "close")
        with self._cluster.lock:
            return self._cluster.namespace.lookup(path).layout

    def set_default_layout(self, directory: str, layout: Layout | None, fid: Fid | None = None) -> None:
        self.calls.set_default(directory)
        self._cluster.set_default_layout(directory, layout)

    def directory_stripes(self, directory: str) -> DirectoryStripes:
        self.calls.to_mdt(directory, "getxattr")
        with self._cluster.lock:
            inode = self._directory(directory)
            if not inode.shards:
                return DirectoryStripes(0, inode.mdt_index)
            return DirectoryStripes(len(inode.shards), inode.shards[0], "crush")

    def default_striping(self, directory: str) -> DefaultStriping | None:
        self.calls.to_mdt(directory, "getxattr")
        with self._cluster.lock:
            return self._directory(directory).default_striping

    def set_default_striping(self, directory: str, striping: DefaultStriping | None, fid: Fid | None = None) -> None:
        self.calls.to_mdt(directory, "setxattr")
        with self._cluster.lock:
            self._directory(directory).default_striping = striping

    def _directory(self, path: str) -> Inode:
        inode = self._cluster.namespace.lookup(path)
        if not inode.is_directory:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return inode

    def migrate(self, path: str, layout: Layout) -> None:
        """Rewrite a file with another layout, as ``lfs migrate -n`` does. Takes virtual time."""
        migration = self._cluster.start_lfs(Migration(path, layout))
        self._cluster.wait_for(migration.finished)
        error = migration.finished.error
        if isinstance(error, OSError):
            error.copied_bytes = migration.copied_bytes  # type: ignore[attr-defined]
        if error is not None:
            raise error

    def changelog(self, mdt: str, after_index: int) -> bytes:
        """Read the raw records of one MDT above an index, oldest first. As on a real client, a call after the last
        record of a call returns b"" without opening the device again.
        """
        with self._cluster.lock:
            log = self._mdt(mdt).changelog
            if self._read_to.pop(mdt, None) == after_index:
                return b""
            data, walked = log.read(after_index, self._cluster.epoch), log.walked(after_index)
            records = log.last_index - after_index if data else 0
            if data:
                self._read_to[mdt] = log.last_index
        self.calls.take_records(records, walked)
        return data

    def clear_changelog(self, mdt: str, reader: str, index: int) -> None:
        with self._cluster.lock:
            self._mdt(mdt).changelog.clear(index, self._cluster.now, reader)

    def _mdt(self, name: str) -> Mdt:
        found = next((mdt for mdt in self._cluster.mdts if mdt.short_name == name), None)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return found


class SimulatedObjectCreation(ObjectCreation):
    """``osp.*.max_create_count`` of all MDTs, on a node that serves them all."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def limits(self, target: str) -> Mapping[str, int]:
        with self._cluster.lock:
            present = next(ost.max_create_count for ost in self._cluster.osts if ost.name == target)
            return {mdt.short_name: present for mdt in self._cluster.mdts}

    def stopped(self) -> frozenset[str]:
        return frozenset(ost.name for ost in self._cluster.osts if 0 in self.limits(ost.name).values())
