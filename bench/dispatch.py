"""Files per second with 1 to 8 movers over NATS, and processor time of the leader for each file.

    python -m bench.dispatch [--milliseconds 222] [--seconds 12] [--files 4000]

Leader and movers are processes; nats-server is that of the wheel, on loopback. The file system is a fake whose move
takes as long as the lease engine took on the real one with one worker (4.5 files/s in an emulated machine). Everything
else is real: the gate with its journal on disk, its copy on NATS, the messages, and what a mover checks before a move.
The second part moves files that take no time, and shows the processor time of the leader.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lustre.fid import Fid
from lustre.filesystem import FileStatus, Space
from lustre.layout.model import Component, Layout, StripeObject
from tests.tierd.act.gate_world import FINDING
from tests.tierd.cluster.broker import Broker, new_fsname
from tierd.act.claim import Claim, ClaimFolder
from tierd.act.gate import Gate
from tierd.act.journal.writer import Journal
from tierd.act.limits import Budget, CircuitBreaker
from tierd.act.movers.moves import Halt, Move, MoveOutcome, MoveResult, never_halt
from tierd.acts import ActKind
from tierd.clock import SystemClock
from tierd.cluster.connection import Connection
from tierd.cluster.leader import Candidate
from tierd.cluster.messages import Names
from tierd.cluster.mover import Fences, FoundFile, Mover
from tierd.config.act import ActSettings, ClaimSettings, Limits, MoverSettings, Rate
from tierd.config.cluster import ClusterSettings
from tierd.config.settings import Settings
from tierd.model import Action

TARGETS = 16
FILES_A_DIRECTORY = 512
FLASH = Layout((Component(pool="flash"),), composite=False)
PLENTY = Rate(1e6, 1e15)
LIMITS = Limits(1e6, 1e15, per_pool=PLENTY, per_target=PLENTY)
MOVERS = (1, 2, 4, 8)
MEASURED_SHARE = 0.85
"""Share of the files that is measured: at the end, some movers have nothing to do."""


def number_of(path: str) -> int:
    return int(path.rpartition("/")[2])


def layout_of(number: int) -> Layout:
    target = number % TARGETS
    return Layout((Component(pool="hdd", objects=(StripeObject(64 + target, Fid(5, number)),)),), composite=False)


class FakeLustre:
    """A file system in which every file is on HDD, whoever looks."""

    fsname = "bench"

    def __init__(self) -> None:
        self.members = {"flash": tuple(f"bench-OST{n:04x}" for n in range(64)),
                        "hdd": tuple(f"bench-OST{64 + n:04x}" for n in range(TARGETS))}

    def pools(self) -> Mapping[str, tuple[str, ...]]:
        return self.members

    def space(self) -> Mapping[str, Space]:
        return {}

    def status(self, path: str) -> FileStatus:
        return FileStatus(Fid(9, number_of(path)), 4096, 0.0, 0.0, 0, 0, 1)

    def layout(self, path: str) -> Layout:
        return layout_of(number_of(path))

    def path_of(self, fid: Fid) -> str:
        return f"/d{fid.object_id // FILES_A_DIRECTORY}/{fid.object_id}"

    def xattr(self, path: str, name: str) -> bytes:
        return b""


class FakeLook:
    def file(self, fid: Fid) -> FoundFile:
        return FoundFile(4096, layout_of(fid.object_id))

    def has_path(self, fid: Fid, path: str) -> bool:
        return number_of(path) == fid.object_id


class FakeEngine:
    """A move is a pause."""

    files_at_a_time = 1

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def batch(self) -> Any:
        return self

    def move(self, moves: Iterable[Move], halt: Halt = never_halt, batch: Any = None) -> Iterator[MoveOutcome]:
        for move in moves:
            if self._seconds:
                time.sleep(self._seconds)
            yield MoveOutcome(move, MoveResult.DONE, copied_bytes=4096)

    def examine(self, moves: Iterable[Move]) -> Iterator[MoveOutcome]:
        return iter(())


def settings_of(folder: str, url: str) -> Settings:
    return Settings(act=ActSettings(journal=f"{folder}/journal.sqlite"),
                    movers=MoverSettings(at_once=1, per_target_at_once=1, engine="lease"),
                    cluster=ClusterSettings((url,), replicas=1))


def run_mover(folder: str, url: str, fs: str, name: str, seconds: float) -> None:
    """The process of a mover. Ends when its parent closes its standard input."""
    settings, clock = settings_of(folder, url), SystemClock()
    fences = Fences(ClaimFolder(Path(folder) / ".tierd"), clock)
    connection = Connection(settings.cluster, "mover")
    mover = Mover(name, name, connection, Names(fs), FakeEngine(seconds), FakeLook(), fences, settings, clock)
    mover.start()
    sys.stdin.read()


@dataclass(frozen=True)
class Measured:
    files_per_second: float
    leader_cpu_seconds: float
    """Of the leader, for each file."""


def measured(broker: Broker, movers: int, files: int, move_seconds: float) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        fs, clock, lustre = new_fsname(), SystemClock(), FakeLustre()
        settings = settings_of(folder, broker.url)
        claim = Claim(ClaimFolder(Path(folder) / ".tierd"), "host=bench nonce=1", clock.monotonic,
                      ClaimSettings(expiry_seconds=3600.0))
        connection = Connection(settings.cluster, "leader")
        connection.wait_until_connected(10)
        node = Candidate(settings, fs, claim, connection, clock)
        assert node.step()
        journal = Journal(Path(settings.act.journal), copied=True)
        dispatch = node.attach(journal, lustre, settings)  # type: ignore[arg-type]
        dispatch.trouble()
        command = [sys.executable, "-m", "bench.dispatch", "mover", folder, broker.url, fs, str(move_seconds)]
        processes = [subprocess.Popen([*command, f"m{n}"], stdin=subprocess.PIPE) for n in range(movers)]
        try:
            while len(dispatch.movers) < movers:
                clock.wait(0.1)
                dispatch.trouble()
            gate = Gate(lustre, FakeEngine(0.0), Budget(LIMITS, clock.now()),  # type: ignore[arg-type]
                        CircuitBreaker(), journal, clock, False, dispatch=dispatch)
            finding = journal.add_finding(FINDING)
            paths = [lustre.path_of(Fid(9, number)) for number in range(files)]
            gate.submit([Action(ActKind.MIGRATE, FLASH, "", FINDING.key, path.rpartition("/")[0], path, 4096)
                         for path in paths], finding)
            begun, cpu, done = time.perf_counter(), time.process_time(), 0
            while done < files * MEASURED_SHARE:
                done += len(gate.pump(clock.now() + 1.0))
            return Measured(done / (time.perf_counter() - begun), (time.process_time() - cpu) / done)
        finally:
            for process in processes:
                process.kill()
                process.wait()
            journal.close()
            node.close()


def main() -> None:
    if sys.argv[1:2] == ["mover"]:
        folder, url, fs, seconds, name = sys.argv[2:]
        run_mover(folder, url, fs, name, float(seconds))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--milliseconds", type=float, default=222.0, help="time of one move")
    parser.add_argument("--seconds", type=float, default=12.0, help="time of each run")
    parser.add_argument("--files", type=int, default=4000, help="files for the processor time of the leader")
    chosen = parser.parse_args()
    seconds = chosen.milliseconds / 1000
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Path(folder))
        try:
            for movers in MOVERS:
                found = measured(broker, movers, int(movers * chosen.seconds / seconds), seconds)
                print(f"{movers} movers: {found.files_per_second:6.1f} files/s, "
                      f"{found.files_per_second * seconds / movers:4.0%} of movers that wait for nothing", flush=True)
            found = measured(broker, 4, chosen.files, 0.0)
            print(f"moves that take no time, 4 movers: {found.files_per_second:.0f} files/s, "
                  f"{found.leader_cpu_seconds * 1000:.2f} ms of the leader's processor time each; "
                  f"load average {os.getloadavg()[0]:.1f}")
        finally:
            broker.kill()


if __name__ == "__main__":
    main()
