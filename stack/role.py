"""A role of tierd as a process over the simulated Lustre. ``stack.cluster`` starts it.

The processes run the same loops, signals, journals, sockets and connections as on a site. Only what they would get from
a mount is replaced: the file system, the folder of the claim, and the engine that moves a file.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from httpserver.config import WebConfigFile
from lustre.layout.model import same_shape
from stack.demo import quick, user_name
from stack.shared import SharedFilesystem
from tierd.act.claim import Claim, ClaimFolder
from tierd.act.movers.inspection import PortMover
from tierd.act.movers.moves import Move, MoveOutcome, MoveResult
from tierd.act.movers.space_and_quota import DestinationState
from tierd.clock import SystemClock
from tierd.cluster.connection import Connection
from tierd.cluster.leader import Candidate
from tierd.cluster.messages import Names
from tierd.cluster.mover import Mover
from tierd.cluster.process import reader_of, serve_mover, serve_reader
from tierd.cluster.reader import Reader
from tierd.config.load import load
from tierd.config.settings import Settings
from tierd.daemon import process
from tierd.daemon.node import Node as DaemonNode
from tierd.daemon.service import Service
from tierd.logs import log_to_standard_error
from tierd.sense.exporters import scrape_fixed_list


class PortEngine(PortMover):
    """An engine of a mover, which finds out whether a file was moved before."""

    def facts_of(self, move: Move, batch: DestinationState) -> MoveOutcome:
        """A file that has the wanted layout was moved before."""
        found = super().facts_of(move, batch)
        present = self._filesystem.layout(move.path) if found.result is MoveResult.MOVABLE else None
        moved = present is not None and same_shape(present, move.layout)
        return MoveOutcome(move, MoveResult.ALREADY) if moved else found


class Node:
    """The node of a process: its shared file system, and the folder of the claim."""

    def __init__(self, settings: Settings, shared: Path, exporter: str) -> None:
        self.name = settings.cluster.name
        self.filesystem: Any = SharedFilesystem(shared)
        self.claims = ClaimFolder(shared.parent / "lustre.tierd")
        self._exporter = exporter

    def candidate(self, settings: Settings, clock: SystemClock) -> Candidate:
        """The leader or its standby. Every process is a node of its own, so that only the time ends a claim."""
        holder = f"host={self.name} pid={os.getpid()} nonce={secrets.token_hex(16)}"
        claim = Claim(self.claims, holder, clock.monotonic, settings.claim)
        return Candidate(settings, self.filesystem.fsname, claim, Connection(settings.cluster, "leader"), clock)

    def service(self, settings: Settings, clock: SystemClock, web_config: WebConfigFile | None,
                node: Candidate | None) -> Service:
        assert node is not None
        local = DaemonNode(
            filesystem=self.filesystem, mover=PortMover(self.filesystem), mdts=self.filesystem.mdts(), clock=clock,
            read=scrape_fixed_list([self._exporter], clock, 5.0), nudge=clock.nudge, claim=node.claim,
            clear_changelog=self.filesystem.clear_changelog, executor=ThreadPoolExecutor(8, "tierd-request"),
            user_name=user_name)
        service = Service(settings, local, web_config, node)
        service.start()
        return service

    def mover(self, settings: Settings, connection: Connection, clock: SystemClock) -> Mover:
        engine = PortEngine(self.filesystem)
        return Mover(self.name, self.name, connection, Names(self.filesystem.fsname), engine, claims=self.claims,
                     settings=settings, clock=clock)

    def reader(self, settings: Settings, connection: Connection, clock: SystemClock) -> Reader:
        return reader_of(settings, self.filesystem, self.filesystem.mdts(), connection, self.claims, clock=clock)


def main(arguments: Sequence[str]) -> int:
    """Run ``ROLE CONFIG SOCKET EXPORTER`` until a signal."""
    role, config, shared, exporter = arguments
    log_to_standard_error()
    read = load(Path(config))
    settings = replace(quick(read), limits=read.limits)
    node = Node(settings, Path(shared), exporter)
    if role == "mover":
        return serve_mover(settings, node.mover)
    if role == "reader":
        return serve_reader(settings, node.reader)
    return process.serve(Path(config), settings, None, node.candidate, node.service)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
