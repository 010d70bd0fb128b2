"""``make demo``: a simulated cluster, the exporter over the files it writes, and tierd over HTTP, until Ctrl-C.

All servers listen on loopback. All files are in one temporary folder, which is deleted at the end.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.realtime import RealTimeDriver, WallClock
from simulator.scenarios.scenario import Scenario, library
from simulator.settings import recorded_test_bed
from tierd.act.gate import Gate
from tierd.act.journal.writer import Journal
from tierd.act.limits import Budget, CircuitBreaker
from tierd.act.movers.moves import PortMover
from tierd.act.undo import Undo
from tierd.clock import SystemClock
from tierd.config.settings import Settings
from tierd.daemon.loop import Daemon
from tierd.sense import exporters
from tierd.sense.changelogs.follow import Follower
from tierd.sense.exporters import scrape_fixed_list
from tierd.sense.http_client import SourceError
from tierd.sense.sources import LiveSource

CYCLE_SECONDS = 2.0
REPORT_SECONDS = 6.0
DISK_IOPS = 60
"""I/Os per second of each disk. With 40, as on the recorded test bed, the stream alone nearly saturates the disks."""


def settings() -> Settings:
    """Settings for a demonstration of two minutes: cycles of two seconds, and a verdict after half a minute."""
    defaults = Settings()
    return replace(
        defaults,
        noisy_neighbour=replace(defaults.noisy_neighbour, recent_seconds=12.0),
        small_files_to_flash=replace(defaults.small_files_to_flash, settle_seconds=4.0),
        limits=replace(defaults.limits, files_per_second=4.0, bytes_per_second=4e6),
        verify=replace(defaults.verify, settle_seconds=4.0, judge_seconds=16.0),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until Ctrl-C, SIGTERM or the end of ``--seconds``."""
    parser = argparse.ArgumentParser(prog="python -m tierd.demo", description=__doc__)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after this time")
    parser.add_argument("--port", type=int, default=9169, help="port of the exporter, or a free one if it is in use")
    chosen = parser.parse_args(arguments)
    clock = SystemClock()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: clock.wake())
    with tempfile.TemporaryDirectory(prefix="tierd-demo-") as folder:
        run(Path(folder), library("demo"), clock, chosen.port, chosen.seconds)
    print("\nStopped. All files are deleted.")
    return 0


def run(folder: Path, scenario: Scenario, clock: SystemClock, port: int, seconds: float) -> None:
    """Connect the parts and run cycles."""
    begun = clock.now()
    bed = recorded_test_bed(hdd_ios_per_second=DISK_IOPS)
    cluster = Cluster(replace(bed, epoch_seconds=int(begun)), scenario.jobs)
    root = folder / "node"
    with RealTimeDriver(cluster, root, WallClock()) as driver, running_exporter(root, port) as url:
        await_exporter(url, clock)
        print_introduction(url, scenario)
        filesystem = SimulatedFilesystem(cluster, driver.wait_for)
        journal = Journal(folder / "journal.sqlite")
        options = settings()
        mover = PortMover(filesystem)
        gate = Gate(
            filesystem, mover, Budget(options.limits, begun), CircuitBreaker(options.breaker), journal, clock, False
        )
        undo = Undo(filesystem, mover, journal, clock)
        mdts = [mdt.short_name for mdt in cluster.mdts]
        source = LiveSource(scrape_fixed_list([url], clock, 5.0), Follower(filesystem.changelog, mdts))
        daemon = Daemon(source, filesystem, gate, undo, journal, clock, options,
                        lambda sentence: print(f"{clock.now() - begun:5.0f} s  {sentence}", flush=True))
        reported = begun
        while not clock.wait(CYCLE_SECONDS) and clock.now() < begun + seconds and driver.error is None:
            daemon.cycle(CYCLE_SECONDS / 2)
            if clock.now() >= reported + REPORT_SECONDS:
                reported = clock.now()
                print(f"{reported - begun:5.0f} s  {status_line(cluster, filesystem)}", flush=True)
        journal.close()
        if driver.error is not None:
            raise driver.error


def status_line(cluster: Cluster, filesystem: SimulatedFilesystem) -> str:
    """Format the rates of the last seconds and the use of flash in one line."""
    now = cluster.now
    parts = []
    for job in cluster.runs:
        rates = cluster.throughput(job, now - REPORT_SECONDS, now)
        parts.append(f"{job} {sum(rates) / len(rates) if rates else 0:.1f} MB/s")
    space = filesystem.space()
    flash = [space[target] for target in filesystem.pools()["flash"]]
    used = 1 - sum(s.avail_bytes for s in flash) / sum(s.size_bytes for s in flash)
    return f"  {' · '.join(parts)} · flash pool {used:.0%} used"


def print_introduction(url: str, scenario: Scenario) -> None:
    """Print what the demonstration shows and the addresses."""
    stream, noise = scenario.jobs
    print(f"""
A simulated Lustre file system: 2 flash and 4 HDD targets, pools "flash" and "hdd", in this process.
  Job {stream.job_id} streams to the HDD targets. After {noise.start_seconds:.0f} s job {noise.job_id} writes and
  reads small files on the same targets. tierd reads the exporter's metrics and acts on them.

Open in a browser, or with curl:
  {url.removesuffix('metrics')}          overview of this node
  {url}   all metrics

Press Ctrl-C to stop. The demonstration takes about 90 seconds.
""", flush=True)


@contextmanager
def running_exporter(root: Path, port: int) -> Iterator[str]:
    """Run the exporter as a process over the parameter files below ``root``; yields its URL."""
    port = free_port(port)
    command = [sys.executable, "-m", "exporter", f"--path.procfs={root}/proc", f"--path.sysfs={root}/sys",
               f"--web.listen-address=127.0.0.1:{port}"]
    if shutil.which("setpriv"):
        command = ["setpriv", "--pdeathsig", "TERM", *command]  # also when this process is killed
    process = subprocess.Popen(command, start_new_session=True)  # noqa: S603 -- our own program; Ctrl-C is for us only
    try:
        yield f"http://127.0.0.1:{port}/metrics"
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port(wanted: int) -> int:
    """Return the wanted port, or a free one when it is in use."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            bound: int = probe.getsockname()[1]
            return bound
    raise OSError("no free port on 127.0.0.1")


def await_exporter(url: str, clock: SystemClock, timeout_seconds: float = 20.0) -> None:
    """Wait until the exporter answers. Raises SourceError when it does not."""
    until = clock.now() + timeout_seconds
    while True:
        try:
            exporters.fetch_exposition(url, 5.0)
            return
        except SourceError:
            if clock.now() > until or clock.wait(0.1):
                raise


if __name__ == "__main__":
    sys.exit(main())
