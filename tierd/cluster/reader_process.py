"""``tierd reader --config FILE``: a changelog reader as a process on this node, with its signals.

It needs the same configuration as the leader, a mount of the file system for the paths of directories, and the settings
``[cluster]``. It changes nothing but the changelogs, which it clears for the users in ``sense.readers``.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from lustre import mounts
from lustre.filesystem import Filesystem
from lustre.parameters import Roots, Tree
from tierd.act.claim import ClaimFolder, MountedClaimFolder, read_key
from tierd.act.movers import engines
from tierd.clock import SystemClock
from tierd.cluster.connection import Connection
from tierd.cluster.process import end_at_signals, host_name, report_until
from tierd.cluster.reader import MdtReader, Reader, Window
from tierd.cluster.streams import Names
from tierd.config.settings import Settings
from tierd.daemon.process import collect_garbage_rarely, mdts_of, set_process_name
from tierd.daemon.systemd import BEAT_SECONDS, Notifier
from tierd.sense.changelogs.follow import TimedCalls
from tierd.sense.changelogs.table import ActivityTable
from tierd.sense.changelogs.tallies import TallyLimits
from tierd.sense.own_moves import OwnMoves

log = logging.getLogger("tierd.cluster")
STOP_SECONDS = 15.0


class ClearingFilesystem(Filesystem, Protocol):
    """A file system whose changelogs can be cleared."""

    def clear_changelog(self, mdt: str, reader: str, index: int) -> None:
        """Clear the records of a changelog user up to an index."""


def reader_of(settings: Settings, filesystem: ClearingFilesystem, mdts: tuple[str, ...], connection: Connection,
              claims: ClaimFolder, clock: SystemClock) -> Reader:
    """The reader for a file system. ``claims`` has the key that signs its tallies."""
    limits = TallyLimits()
    names = Names(filesystem.fsname)
    host = host_name()
    name = settings.cluster.name or host

    def make_table() -> ActivityTable:
        return ActivityTable(filesystem.path_of, is_echo=OwnMoves(settings.own_jobs), tallies=limits)

    def make_reader(mdt: str, publish: Callable[[Window], None]) -> MdtReader:
        calls = TimedCalls(clock)
        return MdtReader(mdt, name, read=calls.reading(filesystem.changelog),
                         clear=calls.clearing(filesystem.clear_changelog),
                         user=settings.sense.readers.get(mdt, ""), make_table=make_table, settings=settings.reader,
                         clock=clock, monotonic=clock.monotonic,
                         publish=publish, fsname=filesystem.fsname)

    return Reader(name, host, mdts=mdts, connection=connection, names=names, make_reader=make_reader,
                  settings=settings.reader, clock=clock, monotonic=clock.monotonic,
                  secret=lambda: read_key(claims))


def run(reader: Reader, notify: Callable[..., None], end: threading.Event,
        beat_seconds: float = BEAT_SECONDS) -> bool:
    """Run the reader until ``end`` is set, and report its state to systemd.

    Returns False if a thread ended by a defect: the process must end too, so that another reader gets its leases.
    """
    threads = reader.start()
    notify(READY="1", STATUS="waiting for a lease")

    def sentence() -> str:
        state = reader.state()
        return state.problem or f"reading {', '.join(sorted(state.mdts)) or 'nothing: others hold the leases'}"

    sound = report_until(end, sentence, notify, beat_seconds, lambda: all(thread.is_alive() for thread in threads))
    reader.stop()
    for thread in threads:
        thread.join(STOP_SECONDS)
    return sound


def local_reader(settings: Settings, connection: Connection, clock: SystemClock) -> Reader:
    """The reader for the mounted file system of the settings. Raises OSError if a part is missing."""
    tree = Tree(Roots.of("/proc", "/sys"))
    mount = mounts.find(settings.filesystem.mount, Path("/proc/mounts").read_bytes())
    mdts = tuple(settings.sense.mdts or mdts_of(tree, mount.fsname))
    claims = MountedClaimFolder(Path(mount.path) / settings.claim.folder.strip("/"))
    filesystem = engines.mounted_filesystem(mount, tree, settings.movers)
    return reader_of(settings, filesystem, mdts, connection, claims, clock=clock)


MakeReader = Callable[[Settings, Connection, SystemClock], Reader]


def serve(settings: Settings, make: MakeReader = local_reader) -> int:
    """Run until SIGTERM or SIGINT. Returns the exit status. ``make`` makes the reader, for tests and demonstrations."""
    if not settings.cluster.enabled:
        log.error("a reader needs [cluster] servers: the addresses of NATS")
        return 1
    if not settings.reader.enabled:
        log.error("set reader.enabled = true, for the leader too: it then takes changelog records from readers")
        return 1
    set_process_name("tierd", Path("/proc/self/comm"))
    faulthandler.enable()
    end = end_at_signals()
    clock = SystemClock()
    connection = Connection(settings.cluster, "reader")
    try:
        reader = make(settings, connection, clock)
        collect_garbage_rarely()
        sound = run(reader, Notifier(os.environ), end)
    finally:
        connection.close()
    log.info("stopped")
    return 0 if sound else 1
