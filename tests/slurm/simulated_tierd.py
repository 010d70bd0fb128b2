"""tierd with its socket over a simulated cluster in real time: in this process, or as a process that a test kills."""

import json
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lustre.parameters import Roots, Tree
from simulator.cluster import Cluster
from simulator.realtime import RealTimeDriver, WallClock
from simulator.settings import recorded_test_bed
from tests.tierd.site import Clearing
from tierd.act.movers.inspection import PortMover
from tierd.act.user_rights import User
from tierd.clock import SystemClock
from tierd.config.act import GeneralLimits
from tierd.config.settings import Settings
from tierd.daemon.node import Node
from tierd.daemon.service import Service
from tierd.sense import parameters

CYCLE_SECONDS = 0.5
FAST = GeneralLimits(files_per_second=200.0)


@dataclass
class Site:
    """A simulated cluster, and tierd with its socket in a folder."""

    folder: Path
    socket: Path
    settings: Settings = field(init=False)
    cluster: Cluster = field(init=False)
    service: Service = field(init=False)

    def __post_init__(self) -> None:
        plain = Settings()
        self.settings = replace(
            plain, limits=FAST, web=replace(plain.web, enabled=False),
            sense=replace(plain.sense, cycle_seconds=CYCLE_SECONDS),
            act=replace(plain.act, dry_run=False, journal=str(self.folder / "journal.sqlite"), pause_file="",
                        socket=str(self.socket)))
        self.cluster = Cluster(replace(recorded_test_bed(), epoch_seconds=int(SystemClock().now())), ())

    def file(self, path: str, size_bytes: int = 100_000, *, uid: int, mode: int | None = None) -> Any:
        """Make a file of a user. New directories above it belong to the same user."""
        parts = path.split("/")[1:-1]
        for depth in range(1, len(parts) + 1):
            inode = self.cluster.make_directory("/" + "/".join(parts[:depth]))
            inode.uid = inode.uid or uid
        made = self.cluster.make_file(path, size_bytes, uid=uid)
        if mode is not None:
            made.mode = 0o100000 | mode
        return made

    def pool(self, path: str) -> str:
        """The pool of the first component of a file."""
        layout = self.cluster.namespace.lookup(path).layout
        return layout.components[0].pool

    @contextmanager
    def running(self) -> Iterator[Service]:
        """tierd, with its cycles in a thread."""
        root, clock, ended = self.folder / "node", SystemClock(), threading.Event()
        tree = Tree(Roots.of(root / "proc", root / "sys"))
        with RealTimeDriver(self.cluster, root, WallClock()) as driver:
            filesystem = Clearing(self.cluster)
            service = self.service = Service(self.settings, Node(
                filesystem=filesystem, mover=PortMover(filesystem), clock=clock,
                read=lambda: parameters.reading(tree, clock.now()),
                mdts=[mdt.short_name for mdt in self.cluster.mdts], clear_changelog=filesystem.clear_changelog,
                executor=ThreadPoolExecutor(4, "tierd-request"), rights_of=rights_of))
            service.start()
            errors: list[BaseException] = []
            thread = threading.Thread(target=cycles, args=(service, ended, errors), daemon=True)
            thread.start()
            try:
                yield service
            finally:
                ended.set()
                thread.join()
                driver.stop()
                service.close()
        assert errors == []


def rights_of(uid: int, gid: int) -> User:
    """The user of a job. The suite may run where the user database has no name for it."""
    return User(uid, frozenset({gid}), f"user{uid}")


def cycles(service: Service, ended: threading.Event, errors: list[BaseException]) -> None:
    try:
        while not ended.wait(CYCLE_SECONDS):
            service.cycle()
    except BaseException as error:  # noqa: BLE001 -- the test reads it
        errors.append(error)


def main() -> None:
    """``simulated_tierd.py JSON``: run until killed. The files are made in the same order each time: same FIDs."""
    wanted = json.loads(sys.argv[1])
    site = Site(Path(wanted["folder"]), Path(wanted["socket"]))
    site.settings = replace(site.settings, limits=GeneralLimits(files_per_second=wanted["files_per_second"]))
    for path in wanted["files"]:
        site.file(path, uid=wanted["uid"])
    with site.running():
        print("ready", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
