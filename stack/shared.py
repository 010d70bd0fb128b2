"""One simulated Lustre for several processes: each asks for every call over a Unix socket.

The process that owns the cluster serves the calls, one thread for each connection. If the process behind a connection
ends while it migrates a file, its lease is broken and the copy is discarded, as Lustre does. The owner counts how often
each file was moved to flash. The socket is in a folder that only its user can enter, because calls are pickled.
"""

from __future__ import annotations

import errno
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

from lustre.fid import Fid
from lustre.layout.model import Layout, pools_of, same_shape
from simulator.clients.client import Client as MountedClient
from simulator.cluster import Cluster
from simulator.engine import Completion, Steps
from simulator.filesystem import SimulatedFilesystem
from simulator.migration import Migration
from simulator.realtime import RealTimeDriver
from simulator.servers.changelog import Actor
from simulator.servers.namespace import Inode

POLL_SECONDS = 0.01
"""Interval at which a migration, and the process that waits for it, are polled."""


class LeasedMigration(Migration):
    """Compares the layouts again under the lease, as the engine ``lease`` does: its process may have hung before."""

    def _copy_and_swap(self, client: MountedClient, actor: Actor, inode: Inode) -> Steps[None]:
        if inode.layout is not None and same_shape(inode.layout, self.layout):
            raise OSError(errno.EBUSY, "another process has moved it", inode.path)
        yield from super()._copy_and_swap(client, actor, inode)


class SharedCluster:
    """Serves a cluster that a driver runs, from construction to :meth:`close`."""

    def __init__(self, cluster: Cluster, driver: RealTimeDriver, address: Path) -> None:
        self.cluster = cluster
        self._driver = driver
        self._filesystem = SimulatedFilesystem(cluster)
        self.moved: Counter[Fid] = Counter()
        """How often each file was moved to flash. The cluster's lock guards it."""
        self._listener = Listener(str(address), "AF_UNIX", backlog=64)
        threading.Thread(target=self._accept, name="lustre-shared", daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def moves(self) -> dict[Fid, int]:
        """How often each file was moved to flash so far."""
        with self.cluster.lock:
            return dict(self.moved)

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), name="lustre-client", daemon=True).start()

    def _serve(self, connection: Connection[Any, Any]) -> None:
        with connection, suppress(EOFError, OSError):  # the other side has ended
            while True:
                method, arguments = connection.recv()
                try:
                    answer = self._answer(connection, method, arguments)
                except OSError as error:
                    answer = error
                connection.send(answer)

    def _answer(self, connection: Connection[Any, Any], method: str, arguments: tuple[Any, ...]) -> Any:
        if method == "migrate":
            return self._migrate(connection, *arguments)
        if method == "mdts":
            return tuple(mdt.short_name for mdt in self.cluster.mdts)
        found = getattr(self._filesystem, method)
        found = found(*arguments) if callable(found) else found
        return list(found) if isinstance(found, Iterator) else found

    def _migrate(self, connection: Connection[Any, Any], path: str, layout: Layout) -> None:
        """Migrate a file for a process. Breaks the lease if the process ends meanwhile."""
        fid = self._filesystem.status(path).fid
        migration = self.cluster.start_lfs(LeasedMigration(path, layout))

        def count(ended: Completion) -> None:  # the cluster's lock is held
            if ended.error is None and "flash" in pools_of(layout):
                self.moved[fid] += 1

        with self.cluster.lock:
            migration.finished.then(count)
        while not migration.finished.done:
            if connection.poll(POLL_SECONDS):  # it sends nothing while it waits, so it has ended
                with self.cluster.lock, suppress(OSError):
                    self.cluster.namespace.by_fid(fid).lease_broken = True
                raise EOFError
            if self._driver.error is not None:
                raise OSError(None, f"the simulated cluster has ended: {self._driver.error}")
        if migration.finished.error is not None:
            raise migration.finished.error


class SharedFilesystem:
    """The file system port of a process: it asks the owner of the cluster for every method.

    Each thread has a connection of its own, so that no call waits for another.
    """

    def __init__(self, address: Path) -> None:
        self._address = str(address)
        self._local = threading.local()
        self.fsname: str = self._ask("fsname")

    def _ask(self, method: str, *arguments: Any) -> Any:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = Client(self._address, "AF_UNIX")
        connection.send((method, arguments))
        answer = connection.recv()
        if isinstance(answer, OSError):
            raise answer
        return answer

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method.startswith("_"):
            raise AttributeError(method)
        return partial(self._ask, method)

    def clear_changelog(self, mdt: str, reader: str, index: int) -> None:
        """Do nothing: the simulated changelogs keep only their latest records."""
