"""Seconds until the cluster goes on after a mover or the leader was killed, with the default settings.

    python -m bench.failover [--mover] [--leader]

The mover: two movers and a leader as in ``bench.dispatch``; each mover works on a message of files that take a second
each. One is killed just after it has extended the lease of its message, which is the worst moment. The time ends with
the next result of that message, which the other mover reports.

The leader: the processes of ``make stack-cluster`` over the simulated Lustre. The leader is killed while files are
moved. The times end when the standby answers as the leader, and when the first file is moved again.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from bench.dispatch import FILES_A_DIRECTORY, FLASH, LIMITS, TARGETS, FakeEngine, FakeLustre, settings_of
from lustre.fid import Fid
from simulator.scenarios.scenario import library
from stack.cluster import Running, running, with_late_neighbour
from tests.tierd.act.gate_world import FINDING
from tests.tierd.cluster.broker import Broker, new_fsname
from tierd.act.claim import Claim, MountedClaimFolder
from tierd.act.gate import Gate
from tierd.act.journal.writer import Journal
from tierd.act.limits import Budget, CircuitBreaker
from tierd.acts import ActKind
from tierd.clock import SystemClock
from tierd.cluster.connection import Connection
from tierd.cluster.leader import Candidate
from tierd.config.act import BreakerSettings, ClaimSettings
from tierd.config.cluster import ClusterSettings
from tierd.model import Action

MOVE_SECONDS = 1.0
FILES = 14
"""Of each message."""
WANTED_MOVER_SECONDS = 30.0
WANTED_LEADER_SECONDS = 60.0
START_SECONDS = 300.0


def mover_failover() -> float:
    """Seconds from the death of a mover to the next result of its message."""
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Path(folder))
        try:
            return _mover_failover(folder, broker)
        finally:
            broker.kill()


def _mover_failover(folder: str, broker: Broker) -> float:
    fs, clock, lustre = new_fsname(), SystemClock(), FakeLustre()
    settings = settings_of(folder, broker.url)
    claim = Claim(MountedClaimFolder(Path(folder) / ".tierd"), "host=bench nonce=1", clock.monotonic, ClaimSettings())
    connection = Connection(settings.cluster, "leader")
    connection.wait_until_connected(10)
    node = Candidate(settings, fs, claim, connection, clock)
    assert node.step()
    journal = Journal(Path(settings.act.journal), copied=True)
    dispatch = node.attach(journal, lustre, settings)  # type: ignore[arg-type]
    dispatch.trouble()
    dispatch._file_seconds = 1.0 / (FILES + 1)  # one message for the files of each target
    command = [sys.executable, "-m", "bench.dispatch", "mover", folder, broker.url, fs, str(MOVE_SECONDS)]
    movers = [subprocess.Popen([*command, f"m{n}"], stdin=subprocess.PIPE) for n in range(2)]
    try:
        while len(dispatch.movers) < len(movers):
            clock.wait(0.1)
            dispatch.trouble()
        gate = Gate(lustre, FakeEngine(0.0), Budget(LIMITS, clock.now()),  # type: ignore[arg-type]
                    CircuitBreaker(BreakerSettings()), journal, clock, False, dispatch=dispatch)
        finding = journal.add_finding(FINDING)
        numbers = [target + TARGETS * number for number in range(FILES) for target in range(2)]
        assert max(numbers) < FILES_A_DIRECTORY
        paths = [lustre.path_of(Fid(9, number)) for number in numbers]
        gate.submit([Action(ActKind.MIGRATE, FLASH, "", FINDING.key, path.rpartition("/")[0], path, 4096)
                     for path in paths], finding)
        begun = clock.now()
        while clock.now() < begun + ClusterSettings().ack_wait_seconds / 3 + 0.5:  # after the first extension
            gate.pump(clock.now() + 0.2)
        movers[0].kill()
        killed_at, results = clock.now(), dispatch.counts.redelivered
        while dispatch.counts.redelivered == results:
            gate.pump(clock.now() + 0.2)
        return clock.now() - killed_at
    finally:
        for process in movers:
            process.kill()
            process.wait()
        journal.close()
        node.close()


def leader_failover(log: Callable[[str], None]) -> tuple[float, float]:
    """Seconds from the death of the leader until the standby leads, and until a file is moved again."""
    clock = SystemClock()
    with tempfile.TemporaryDirectory(prefix="failover-") as folder, running(
            Path(folder), with_late_neighbour(library("demo")), clock, log) as stack:
        _until(stack, clock, stack.nodes.ready)
        _until(stack, clock, lambda: len(stack.shared.moves()) > 10)
        with suppress(ProcessLookupError):
            os.kill(stack.nodes.role(stack.nodes.leader).pid, signal.SIGKILL)
        leader, killed_at = stack.nodes.leader, clock.now()
        _until(stack, clock, lambda: stack.nodes.leader not in {"", leader})
        leads, moved = clock.now() - killed_at, len(stack.shared.moves())
        _until(stack, clock, lambda: len(stack.shared.moves()) > moved)
        moves = clock.now() - killed_at
        _until(stack, clock, lambda: stack.audit().open_acts == 0)
        print(f"  {stack.audit().sentence}")
        return leads, moves


def _until(stack: Running, clock: SystemClock, holds: Callable[[], bool]) -> None:
    """Wait while the processes work. Raises TimeoutError after START_SECONDS."""
    end = clock.now() + START_SECONDS
    while not holds():
        if clock.now() > end:
            raise TimeoutError("the stack did not get so far")
        clock.wait(0.2)
        stack.nodes.step()


def main() -> int:
    """Print both. Returns 1 if one takes longer than wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mover", action="store_true", help="only the mover")
    parser.add_argument("--leader", action="store_true", help="only the leader")
    parser.add_argument("--verbose", action="store_true", help="print what the processes report")
    chosen = parser.parse_args()
    well = True
    if chosen.mover or not chosen.leader:
        seconds = mover_failover()
        well = well and seconds <= WANTED_MOVER_SECONDS
        print(f"a mover is killed: another one moves its files after {seconds:.1f} s, "
              f"wanted {WANTED_MOVER_SECONDS:g} s")
    if chosen.leader or not chosen.mover:
        leads, moves = leader_failover(print if chosen.verbose else lambda _: None)
        well = well and moves <= WANTED_LEADER_SECONDS
        print(f"the leader is killed: the standby leads after {leads:.1f} s, and files move after {moves:.1f} s, "
              f"wanted {WANTED_LEADER_SECONDS:g} s; load average {os.getloadavg()[0]:.1f}")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
