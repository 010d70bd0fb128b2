"""``tierd mover --config FILE``: a mover as a process on this node, with its signals.

It needs the same configuration as the leader for the file system, scopes and pools, and the settings ``[cluster]``.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path

from lustre import mounts
from lustre.llapi.calls import Library
from lustre.mounted import archives_follow_swaps
from lustre.mounted_calls import MountedCalls
from lustre.parameters import Roots, Tree
from tierd.act.claim import MountedClaimFolder
from tierd.act.movers import engines
from tierd.clock import SystemClock
from tierd.cluster.connection import Connection
from tierd.cluster.mover import Fences, Mover, PortLook
from tierd.cluster.process import end_at_signals, host_name, report_until
from tierd.cluster.streams import Names
from tierd.config.settings import Settings
from tierd.daemon.process import set_process_name
from tierd.daemon.systemd import BEAT_SECONDS, Notifier
from tierd.sense.parameters import own_nids

log = logging.getLogger("tierd.cluster")
STOP_SECONDS = 110.0
"""Time to complete the file in progress; systemd kills the process after 120 s."""


def local_mover(settings: Settings, connection: Connection, clock: SystemClock) -> Mover:
    """The mover for the mounted file system of the settings. Raises OSError if a part is missing."""
    tree = Tree(Roots.of("/proc", "/sys"))
    mount = mounts.find(settings.filesystem.mount, Path("/proc/mounts").read_bytes())
    library = Library.load(settings.movers.library)
    filesystem = engines.mounted_filesystem(mount, tree, settings.movers)
    folder = MountedClaimFolder(Path(mount.path) / settings.claim.folder.strip("/"))
    fences = Fences(folder, clock)
    engine = engines.build_mover(mount, library, tree, settings.movers, fences)
    calls = MountedCalls(library, mount.path, lambda: archives_follow_swaps(tree, mount.fsname))
    host = host_name()
    return Mover(settings.cluster.name or host, host, connection, Names(mount.fsname), engine,
                 look=PortLook(calls, filesystem), fences=fences, settings=settings, clock=clock,
                 nids=lambda: own_nids(tree))


def run(mover: Mover, connection: Connection, notify: Callable[..., None], end: threading.Event,
        beat_seconds: float = BEAT_SECONDS) -> bool:
    """Run the mover until ``end`` is set, and report its state to systemd. Completes the files in progress.

    Returns False if a thread beside the work ended by a defect: without it, others take this mover for dead.
    """
    mover.start()
    notify(READY="1", STATUS="waiting for moves")

    def sentence() -> str:
        stopped = mover.state().stopped
        return f"stopped: {stopped}" if stopped else connection.trouble or "at work"

    sound = report_until(end, sentence, notify, beat_seconds, lambda: mover.sound)
    mover.stop()
    mover.join(STOP_SECONDS)
    return sound


MakeMover = Callable[[Settings, Connection, SystemClock], Mover]


def serve(settings: Settings, make: MakeMover = local_mover) -> int:
    """Run until SIGTERM or SIGINT. Returns the exit status. ``make`` makes the mover, for tests and demonstrations."""
    if not settings.cluster.enabled:
        log.error("a mover needs [cluster] servers: the addresses of NATS")
        return 1
    if settings.act.dry_run:
        log.error("act.dry_run is true in this configuration: a mover would change files")
        return 1
    set_process_name("tierd", Path("/proc/self/comm"))  # its own job id is one of own_jobs, as the leader's
    faulthandler.enable()
    end = end_at_signals()
    clock = SystemClock()
    connection = Connection(settings.cluster, "mover")
    try:
        mover = make(settings, connection, clock)
        sound = run(mover, connection, Notifier(os.environ), end)
    finally:
        connection.close()
    log.info("stopped")
    return 0 if sound else 1
