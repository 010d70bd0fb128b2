"""``python -m stack``: simulator, exporter, tierd, Prometheus, Alertmanager and, where installed, Grafana.

All programs listen on 127.0.0.1 and keep their files in one temporary folder, which is removed at the end.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.realtime import RealTimeDriver, WallClock
from simulator.scenarios.scenario import library
from simulator.settings import recorded_test_bed
from stack import services
from stack.services import StartError, program
from tierd import demo
from tierd.act.movers.moves import PortMover
from tierd.clock import SystemClock
from tierd.config.settings import Settings
from tierd.daemon.service import Service
from tierd.demo import CYCLE_SECONDS, free_port
from tierd.sense.exporters import scrape_fixed_list


class NoClearFilesystem(SimulatedFilesystem):
    """A simulated file system that ignores requests to clear changelogs."""

    def clear_changelog(self, mdt: str, reader: str, index: int) -> None:
        """Do nothing: the simulated changelogs keep only their latest records."""


def tierd_settings(folder: Path, port: int) -> Settings:
    """Settings of the demonstration, with a journal, a control socket and a web server."""
    chosen = demo.settings()
    act = replace(chosen.act, dry_run=False, journal=f"{folder}/journal.sqlite", socket=f"{folder}/tierd.sock")
    return replace(chosen, act=act, web=replace(chosen.web, port=port),
                   sense=replace(chosen.sense, cycle_seconds=demo.CYCLE_SECONDS))


@contextmanager
def running_site(folder: Path, exporter_port: int, tierd_port: int, clock: SystemClock, say: Callable[[str], None],
            ) -> Iterator[Callable[[], None]]:
    """Run the cluster, the exporter and tierd; yields a function that runs one cycle of tierd."""
    scenario = library("demo")
    bed = recorded_test_bed(hdd_ios_per_second=demo.DISK_IOPS)
    cluster = Cluster(replace(bed, epoch_seconds=int(clock.now())), scenario.jobs)
    root = folder / "node"
    with (RealTimeDriver(cluster, root, WallClock()) as driver, demo.running_exporter(root, exporter_port) as url):
        demo.await_exporter(url, clock)
        filesystem = NoClearFilesystem(cluster, driver.wait_for)
        mdts = [mdt.short_name for mdt in cluster.mdts]
        service = Service(
            tierd_settings(folder, tierd_port),
            filesystem,
            PortMover(filesystem),
            scrape_fixed_list([url], clock, 5.0),
            mdts,
            clock,
            say,
            clock.nudge,
            executor=ThreadPoolExecutor(8, "tierd-request"),
        )
        service.start()

        def cycle() -> None:
            service.cycle()
            if driver.error is not None:
                raise driver.error

        try:
            yield cycle
        finally:
            driver.stop()  # do not wait for a cycle that waits for a move
            service.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until Ctrl-C, SIGTERM, or the end of ``--seconds``."""
    parser = argparse.ArgumentParser(prog="python -m stack", description=__doc__)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after this many seconds")
    seconds = parser.parse_args(arguments).seconds
    missing = [name for name in ("prometheus", "alertmanager") if not shutil.which(name)]
    if missing:
        print(f"{' and '.join(missing)}: not on the PATH; `make stack` installs them", file=sys.stderr)
        return 1
    clock = SystemClock()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: clock.wake())
    try:
        with tempfile.TemporaryDirectory(prefix="lustre-stack-") as folder:
            run(Path(folder), clock, seconds)
    except StartError as error:
        print(error, file=sys.stderr)
        return 1
    print("\nStopped. All temporary files are deleted.")
    return 0


def run(folder: Path, clock: SystemClock, seconds: float) -> None:
    """Start all programs, run cycles, and stop the programs in reverse order."""
    ports = services.Ports(*(free_port(wanted) for wanted in (9169, 9170, 9090, 9093, 3000)))
    begun = clock.now()

    def say(sentence: str) -> None:
        print(f"{clock.now() - begun:5.0f} s  {sentence}", flush=True)

    with ExitStack() as running:
        cycle = running.enter_context(running_site(folder, ports.exporter, ports.tierd, clock, say))
        prometheus = services.prometheus_command(folder, ports)
        alertmanager = services.alertmanager_command(folder, ports)
        for name, command, port in (("prometheus", prometheus, ports.prometheus),
                                    ("alertmanager", alertmanager, ports.alertmanager)):
            running.enter_context(program(command, f"http://127.0.0.1:{port}/-/ready", folder / f"{name}.log", clock))
        home = os.environ.get("GRAFANA_HOME", "")
        grafana = services.grafana_command(home)
        if grafana:
            running.enter_context(program(grafana, f"http://127.0.0.1:{ports.grafana}/api/health",
                                          folder / "grafana.log", clock, services.grafana_environment(folder, ports)))
        print_introduction(ports, bool(grafana))
        begun = clock.now()
        while not clock.wait(CYCLE_SECONDS) and clock.now() < begun + seconds:
            cycle()


def print_introduction(ports: services.Ports, grafana: bool) -> None:
    """Print the addresses."""
    without = "not installed (neither on the PATH nor in GRAFANA_HOME)"
    print(f"""
A simulated Lustre file system with a streaming job. After 25 s a noisy neighbour starts, and tierd acts on it.

  exporter      http://127.0.0.1:{ports.exporter}/
  tierd         http://127.0.0.1:{ports.tierd}/
  Prometheus    http://127.0.0.1:{ports.prometheus}/alerts
  Alertmanager  http://127.0.0.1:{ports.alertmanager}/
  Grafana       {f"http://127.0.0.1:{ports.grafana}/" if grafana else without}

Press Ctrl-C to stop.
""", flush=True)


if __name__ == "__main__":
    sys.exit(main())
