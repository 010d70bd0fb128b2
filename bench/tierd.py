"""A cycle of tierd on a large file system: 400 targets, 5,000 jobs, 20,000 changelog records per second.

Runs a whole Daemon with generated counters and with changelogs in the bytes of a device, which another process makes.
The time includes decoding of records. The environment is that of the unit file. Asserts that a cycle takes at most a
second of processor time and the process at most 250 MiB, or as many times more as there are more jobs. Streams get what
other jobs leave of their targets. So tierd learns costs of service, and many streams are exposed to suspects.

    python -m bench.tierd [--targets N] [--jobs N] [--records N] [--cycles N]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.tierd_load import DIRECTORY_SEQUENCE, MDTS, MIB, SECONDS, Clock, Load
from lustre.fid import Fid
from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.settings import recorded_test_bed
from tierd.act.journal.writer import Journal
from tierd.act.movers.inspection import PortMover
from tierd.config.settings import Settings
from tierd.daemon.loop import Daemon
from tierd.daemon.node import DaemonParts, Node
from tierd.daemon.process import collect_garbage_rarely
from tierd.daemon.service import build_gate
from tierd.sense.changelogs.follow import Follower
from tierd.sense.freshness import CheckedReadings, CheckedRecords
from tierd.sense.sources import LiveSource
from tierd.sense.space import PoolMedia

MAX_CYCLE_SECONDS, MAX_MIB = 1.0, 250.0
UNIT = Path(__file__).parent.parent / "systemd" / "tierd.service"


class WithPaths(SimulatedFilesystem):
    """A small file system with the pools and the paths of the job directories of the large file system."""

    large_pools: dict[str, tuple[str, ...]]

    def path_of(self, fid: Fid, link: int = 0) -> str:
        return f"/jobs/{fid.object_id:05}" if fid.sequence == DIRECTORY_SEQUENCE else super().path_of(fid)

    def pools(self) -> dict[str, tuple[str, ...]]:
        """Pools of the large file system, so that tierd accounts for device time."""
        return self.large_pools


def daemon(folder: Path, load: Load, clock: Clock) -> Daemon:
    """Make a whole daemon over a small simulated file system, in which it looks up paths."""
    filesystem = WithPaths(Cluster(recorded_test_bed(), ()))
    filesystem.large_pools = load.pools
    settings = Settings()
    stale, skew = settings.sense.stale_seconds, settings.sense.skew_seconds
    follower = CheckedRecords("changelog", Follower(load.read, MDTS, clock), clock, stale, skew)
    source = LiveSource(CheckedReadings("counters", load.reading, clock, stale, skew), follower)
    journal = Journal(folder / "journal.sqlite")
    node = Node(filesystem=filesystem, mover=PortMover(filesystem), read=source.reading, mdts=(), clock=clock)
    media = PoolMedia(settings.resolved_scopes.pool_pairs)
    gate, undo = build_gate(settings, node, journal, media=media)
    return Daemon(DaemonParts(node=node, settings=settings, source=source, gate=gate, undo=undo, journal=journal,
                              media=media))


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MIB


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--records", type=int, default=20_000, help="changelog records per second")
    parser.add_argument("--cycles", type=int, default=400, help="cycles of 5 s; the history is full after 360")
    chosen = parser.parse_args()
    clock = Clock()
    load = Load(clock, chosen.targets, chosen.jobs, int(chosen.records * SECONDS))
    taken: list[float] = []
    resident: list[float] = []
    with tempfile.TemporaryDirectory(prefix="tierd-bench-") as folder:
        at = daemon(Path(folder), load, clock)
        collect_garbage_rarely()
        for number in range(chosen.cycles):
            load.go_on()
            begun = time.process_time()
            at.cycle(SECONDS / 2)
            taken.append(time.process_time() - begun)
            resident.append(resident_mib())
            if number % 20 == 19:
                print(f"{number + 1:4} cycles: {statistics.median(taken[-20:]):.3f} s, at most "
                      f"{max(taken[-20:]):.3f} s; {max(resident[-20:]):.0f} MiB; {len(at.windows)} windows; "
                      f"{len(at.findings)} findings", flush=True)
    late = taken[len(taken) // 2:]
    print(f"median {statistics.median(late):.3f} s, at most {max(late):.3f} s of processor time per cycle; "
          f"{max(resident):.0f} MiB, {len(load)} pairs of job and target")
    times = max(1.0, chosen.jobs / 5000)
    return int(statistics.median(late) > MAX_CYCLE_SECONDS * times or max(resident) > MAX_MIB * times)


def environment() -> dict[str, str]:
    lines = [line for line in UNIT.read_text().splitlines() if line.startswith("Environment=")]
    return dict(setting.split("=") for line in lines for setting in line.removeprefix("Environment=").split())


if __name__ == "__main__":
    if environment().items() <= os.environ.items():
        sys.exit(main())
    os.execve(sys.executable, [sys.executable, "-m", "bench.tierd", *sys.argv[1:]], os.environ | environment())
