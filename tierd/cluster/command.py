"""``tierd mover`` and ``tierd reader``, and the part of the daemon that leads them or stands by."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # these need the extras `tierd` and `cluster`
    from tierd.clock import SystemClock
    from tierd.cluster.leader import Candidate
    from tierd.config.settings import Settings


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    moving = commands.add_parser(
        "mover", help="move files that the leader sends through NATS",
        description="Run a mover: it carries out the moves that the leader of this file system sends through NATS. "
                    "Needs [cluster] in the configuration, and the extra cluster.")
    reading = commands.add_parser(
        "reader", help="read changelogs for the leader, through NATS",
        description="Run a changelog reader: it reads the MDTs whose leases it gets, counts records by job and "
                    "directory, and sends the counts to the leader of this file system through NATS. Needs [cluster] "
                    "and [reader] in the configuration, and the extra cluster.")
    for command, role in ((moving, "mover"), (reading, "reader")):
        command.add_argument("--config", type=Path, metavar="FILE", default=argparse.SUPPRESS,
                             help="configuration file of this file system")
        command.set_defaults(serve=partial(serve, role))


def serve(role: str, settings: Settings) -> int:
    from tierd.cluster.process import serve_mover, serve_reader  # noqa: PLC0415

    return serve_reader(settings) if role == "reader" else serve_mover(settings)


def candidate(settings: Settings, clock: SystemClock) -> Candidate | None:
    """What makes this process the leader of several nodes, or their standby; None without a cluster.

    A dry run changes nothing, so it works alone.
    """
    if not settings.cluster.enabled or settings.act.dry_run:
        return None
    from lustre import mounts  # noqa: PLC0415
    from tierd.cluster.connection import Connection  # noqa: PLC0415
    from tierd.cluster.leader import Candidate  # noqa: PLC0415
    from tierd.daemon.process import local_claim  # noqa: PLC0415

    mount = mounts.find(settings.filesystem.mount, Path("/proc/mounts").read_bytes())
    return Candidate(settings, mount.fsname, local_claim(settings, mount, clock),
                     Connection(settings.cluster, "leader"), clock)
