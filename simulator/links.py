"""A folder of symbolic links that lead nowhere: entries made with their content in one step, by one of all who try.

What a program on a client does with symlink(2), readlink(2), lstat(2), utimensat(2), rename(2) and unlink(2).
"""

from __future__ import annotations

from simulator.cluster import Cluster
from simulator.namespace import Inode

_CONTENT = "symlink"


class LinkFolder:
    """One directory of a simulated file system."""

    def __init__(self, cluster: Cluster, path: str) -> None:
        self._cluster = cluster
        self._path = path

    def names(self) -> list[str]:
        """What is there; nothing where the directory does not exist."""
        with self._cluster.lock:
            try:
                return list(self._cluster.namespace.lookup(self._path).children)
            except FileNotFoundError:
                return []

    def make(self, name: str, content: str) -> None:
        """Make a link. Raises FileExistsError where there is one of that name."""
        with self._cluster.lock:
            self._cluster.make_directory(self._path)
            namespace, folder = self._cluster.namespace, self._cluster.namespace.lookup(self._path)
            inode = namespace.add(folder, name, namespace.new_fid(folder.mdt_index, 0), folder.mdt_index,
                                  self._cluster.epoch, directory=False)
            inode.xattrs[_CONTENT] = content.encode()

    def content(self, name: str) -> str:
        """Where it leads."""
        with self._cluster.lock:
            return self._inode(name).xattrs[_CONTENT].decode()

    def stamp(self, name: str) -> int:
        """When it was last touched."""
        with self._cluster.lock:
            return int(self._inode(name).mtime)

    def touch(self, name: str) -> None:
        """Give it another time."""
        with self._cluster.lock:
            self._inode(name).mtime += 1

    def free(self, name: str) -> None:
        """Rename it to the same with ``.free``."""
        with self._cluster.lock:
            inode = self._inode(name)
            assert inode.parent is not None
            del inode.parent.children[inode.name]
            inode.name = f"{name}.free"
            inode.parent.children[inode.name] = inode

    def remove(self, name: str) -> None:
        """Take it away, if it is there."""
        with self._cluster.lock:
            if name in self.names():
                self._cluster.namespace.remove(self._inode(name), self._cluster.epoch)

    def _inode(self, name: str) -> Inode:
        return self._cluster.namespace.lookup(f"{self._path}/{name}")
