"""The simulated cluster in real time, its exporter, and tierd's service at work on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from simulator.clock import WallClock
from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.realtime import RealTimeDriver
from simulator.scenario import library
from simulator.settings import recorded_test_bed
from tierd import demo
from tierd.act.port import PortMover
from tierd.clock import SystemClock
from tierd.config import Settings
from tierd.sense.live import scraping
from tierd.service.service import Service


class Clearing(SimulatedFilesystem):
    """The port, with changelogs whose readers are the simulator's own."""

    def clear_changelog(self, mdt: str, reader: str, index: int) -> None:
        """Nothing: the simulated changelogs keep their last records only."""


def settings(folder: Path, port: int) -> Settings:
    """As in the demonstration, with files of its own, and the web server."""
    chosen = demo.settings()
    act = replace(chosen.act, dry_run=False, journal=f"{folder}/journal.sqlite", socket=f"{folder}/tierd.sock")
    return replace(chosen, act=act, web=replace(chosen.web, port=port),
                   sense=replace(chosen.sense, cycle_seconds=demo.CYCLE_SECONDS))


@contextmanager
def at_work(folder: Path, exporter_port: int, tierd_port: int, clock: SystemClock, say: Callable[[str], None],
            ) -> Iterator[Callable[[], None]]:
    """Everything but Prometheus and what hangs on it. What is given is one cycle of tierd."""
    scenario = library("demo")
    bed = recorded_test_bed(hdd_ios_per_second=demo.DISK_IOPS)
    cluster = Cluster(replace(bed, epoch_seconds=int(clock.now())), scenario.jobs)
    root = folder / "node"
    with (RealTimeDriver(cluster, root, WallClock()) as driver, demo.exporting(root, exporter_port) as url):
        demo.await_exporter(url, clock)
        filesystem = Clearing(cluster, driver.wait_for)
        mdts = [mdt.short_name for mdt in cluster.mdts]
        service = Service(settings(folder, tierd_port), filesystem, PortMover(filesystem), scraping([url], clock, 5.0),
                          mdts, clock, say, clock.nudge, executor=ThreadPoolExecutor(8, "tierd-request"))
        service.start()

        def cycle() -> None:
            service.cycle()
            if driver.error is not None:
                raise driver.error

        try:
            yield cycle
        finally:
            driver.stop()  # a cycle that waits for a move must not be waited for
            service.close()
