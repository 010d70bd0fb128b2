"""``tierd mover --config FILE`` and ``tierd reader --config FILE``: processes on this node, with their signals.

Both need the same configuration as the leader and the settings ``[cluster]``; a reader also a mount of the file system
for the paths of directories. A reader changes nothing but the changelogs, which it clears for the users in
``sense.readers``.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lustre import mounts
from lustre.llapi.calls import Library
from lustre.mounted import MountedFilesystem, mdts_of, with_fileset
from lustre.mounts import Mount
from lustre.parameters import Roots, Tree
from tierd.act.claim import ClaimFolder, claim_folder, read_key
from tierd.act.movers import engines
from tierd.clock import SystemClock
from tierd.cluster.connection import Connection
from tierd.cluster.messages import Names
from tierd.cluster.mover import Mover
from tierd.cluster.reader import MdtReader, Reader
from tierd.config.settings import Settings
from tierd.daemon.process import collect_garbage_rarely, set_process_name
from tierd.daemon.systemd import BEAT_SECONDS, Notifier
from tierd.sense.changelogs.follow import TimedCalls
from tierd.sense.changelogs.table import ActivityTable
from tierd.sense.changelogs.tallies import TallyLimits
from tierd.sense.own_moves import OwnMoves
from tierd.sense.parameters import own_nids

log = logging.getLogger("tierd.cluster")
MOVER_STOP_SECONDS = 110.0
"""Time to complete the file in progress; systemd kills the process after 120 s."""
READER_STOP_SECONDS = 15.0


def host_name() -> str:
    return os.uname().nodename.partition(".")[0]


Worker = Mover | Reader
MakeWorker = Callable[[Settings, Connection, SystemClock], Worker]


def run_worker(worker: Worker, notify: Callable[..., None], end: threading.Event, stop_seconds: float,
               beat_seconds: float = BEAT_SECONDS) -> bool:
    """Run until ``end`` is set, and report the state to systemd, and each change of it to the log.

    Returns False, at once, if a thread ended by a defect.
    """
    worker.start()
    notify(READY="1", STATUS=worker.doing)
    last, sound = "", True
    while sound and not end.wait(beat_seconds):
        sound, sentence = worker.sound, worker.doing
        if sentence != last:
            log.info("%s", sentence)
            last = sentence
        notify(WATCHDOG="1", STATUS=sentence)
    notify(STOPPING="1")
    worker.stop()
    worker.join(stop_seconds)
    return sound


def reader_of(settings: Settings, filesystem: MountedFilesystem, mdts: tuple[str, ...], connection: Connection,
              claims: ClaimFolder, clock: SystemClock) -> Reader:
    """The reader for a file system. ``claims`` has the key that signs its tallies."""
    name = settings.cluster.name or host_name()

    def make_table() -> ActivityTable:
        return ActivityTable(filesystem.path_of, is_echo=OwnMoves(settings.own_jobs), tallies=TallyLimits())

    def reader_of_mdt(mdt: str) -> MdtReader:
        calls = TimedCalls(clock)
        return MdtReader(mdt, name, read=calls.reading(filesystem.changelog),
                         clear=calls.clearing(filesystem.clear_changelog),
                         user=settings.sense.readers.get(mdt, ""), make_table=make_table, settings=settings.reader,
                         clock=clock, monotonic=clock.monotonic, fsname=filesystem.fsname)

    return Reader(name, host_name(), {mdt: reader_of_mdt(mdt) for mdt in mdts}, connection, Names(filesystem.fsname),
                  settings=settings.reader, clock=clock, secret=partial(read_key, claims))


def _mounted(settings: Settings) -> tuple[Mount, Tree, ClaimFolder]:
    tree = Tree(Roots.of("/proc", "/sys"))
    mount = mounts.find(settings.filesystem.mount, Path("/proc/mounts").read_bytes())
    return mount, tree, claim_folder(mount, settings.claim)


def local_mover(settings: Settings, connection: Connection, clock: SystemClock) -> Mover:
    """The mover for the mounted file system of the settings. Raises OSError if a part is missing."""
    mount, tree, claims = _mounted(settings)
    library = Library.load(settings.movers.library)
    engine = engines.build_mover(with_fileset(library, mount), library, tree, settings.movers)
    return Mover(settings.cluster.name or host_name(), host_name(), connection, Names(mount.fsname), engine,
                 claims=claims, settings=settings, clock=clock, nids=partial(own_nids, tree))


def local_reader(settings: Settings, connection: Connection, clock: SystemClock) -> Reader:
    """The reader for the mounted file system of the settings. Raises OSError if a part is missing."""
    mount, tree, folder = _mounted(settings)
    mdts = tuple(settings.sense.mdts or mdts_of(tree, mount.fsname))
    filesystem = MountedFilesystem(mount, Library.load(settings.movers.library), tree)
    return reader_of(settings, filesystem, mdts, connection, folder, clock=clock)


def serve_mover(settings: Settings, make: MakeWorker = local_mover) -> int:
    """Run until SIGTERM or SIGINT. Returns the exit status. ``make`` makes the mover, for tests and demonstrations."""
    problem = "act.dry_run is true in this configuration: a mover would change files"
    return _serve(settings, "mover", make, MOVER_STOP_SECONDS, problem if settings.act.dry_run else "")


def serve_reader(settings: Settings, make: MakeWorker = local_reader) -> int:
    """Run until SIGTERM or SIGINT. Returns the exit status. ``make`` makes the reader, for tests and demonstrations."""
    problem = "set reader.enabled = true, for the leader too: it then takes changelog records from readers"
    return _serve(settings, "reader", make, READER_STOP_SECONDS, "" if settings.reader.enabled else problem)


def _serve(settings: Settings, role: str, make: MakeWorker, stop_seconds: float, problem: str) -> int:
    if not settings.cluster.enabled:
        problem = f"a {role} needs [cluster] servers: the addresses of NATS"
    if problem:
        log.error("%s", problem)
        return 1
    set_process_name("tierd", Path("/proc/self/comm"))  # its own job id is one of own_jobs, as the leader's is
    faulthandler.enable()
    end = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: end.set())
    connection = Connection(settings.cluster, role)
    try:
        worker = make(settings, connection, SystemClock())
        if role == "reader":
            collect_garbage_rarely()
        sound = run_worker(worker, Notifier(os.environ), end, stop_seconds)
    finally:
        connection.close()
    log.info("stopped")
    return 0 if sound else 1
