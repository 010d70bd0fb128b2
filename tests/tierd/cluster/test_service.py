"""The whole daemon as the leader: a noisy neighbour is found on the simulated cluster, and a mover moves its files."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lustre.fid import Fid
from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.settings import recorded_test_bed
from tests.tierd.cluster.broker import Broker, connected
from tests.tierd.logged import logged
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.site import Clearing
from tierd.act.claim import Claim, ClaimFolder
from tierd.act.movers.moves import Halt, Move, MoveOutcome, PortMover, never_halt
from tierd.cli.tierctl import main
from tierd.clock import SystemClock
from tierd.cluster.connection import Connection
from tierd.cluster.leader import Candidate
from tierd.cluster.mover import Fences, FoundFile, Mover
from tierd.config.act import ClaimSettings
from tierd.config.settings import Settings
from tierd.daemon.node import Node
from tierd.daemon.service import Service
from tierd.simulation.world import VirtualClock, parameter_files

READ_AGAIN = replace(NOISE, rereads_per_second=8.0, files_per_second=10.0, keep=300)


class SimulatedClock(SystemClock):
    """The time of the simulation for both, so that deadlines hold."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster

    def now(self) -> float:
        return VirtualClock(self._cluster).now()


class OnSimulator:
    """What a mover needs of the simulated file system."""

    files_at_a_time = 1

    def __init__(self, filesystem: Clearing) -> None:
        self._filesystem = filesystem
        self._mover = PortMover(filesystem)

    def batch(self) -> Any:
        return None

    def move(self, moves: Iterable[Move], halt: Halt = never_halt, batch: Any = None) -> Iterator[MoveOutcome]:
        return self._mover.move(tuple(moves), halt)

    def examine(self, moves: Iterable[Move]) -> Iterator[MoveOutcome]:
        return self._mover.examine(tuple(moves))

    def file(self, fid: Fid) -> FoundFile:
        path = self._filesystem.path_of(fid)
        return FoundFile(self._filesystem.status(path).size_bytes, self._filesystem.layout(path))


class Leader:
    """The daemon on the simulated cluster, and one mover that takes a step when a test asks for it."""

    nids_of_mover: tuple[str, ...] = ("10.0.2.15@tcp",)

    def __init__(self, folder: Path, broker: Broker) -> None:
        self.cluster = FluidCluster(recorded_test_bed(), (STREAM, READ_AGAIN))
        self.filesystem, self.folder, self.said = Clearing(self.cluster), folder, logged()
        settings = Settings()
        self.settings = replace(
            settings, act=replace(settings.act, dry_run=False, journal=str(folder / "journal.sqlite"),
                                  socket=str(folder / "tierd.sock"), pause_file=str(folder / "pause")),
            web=replace(settings.web, port=0), cluster=broker.settings())
        self.clock = SimulatedClock(self.cluster)
        self.claims = ClaimFolder(folder / ".tierd")
        claim = Claim(self.claims, "host=a nonce=1", self.clock.monotonic, ClaimSettings(expiry_seconds=3600.0))
        self.connection = Connection(self.settings.cluster, "leader")
        connected(self.connection)
        self.node = Candidate(self.settings, self.filesystem.fsname, claim, self.connection, self.clock)
        assert self.node.step(), self.said
        self.service = Service(self.settings, Node(
            filesystem=self.filesystem, mover=PortMover(self.filesystem),
            read=parameter_files(self.cluster, folder / "node"), mdts=["MDT0000", "MDT0001"],
            clock=VirtualClock(self.cluster), clear_changelog=self.filesystem.clear_changelog, claim=self.node.claim,
            own_nids=lambda: {"10.0.9.9@tcp"}), cluster=self.node)
        self.of_mover = Connection(self.settings.cluster, "mover")
        connected(self.of_mover)
        files = OnSimulator(self.filesystem)
        self.mover = Mover("m1", "node1", self.of_mover, self.node.names, files, files.file, self.filesystem,
                           Fences(self.claims, self.clock), self.settings, self.clock,
                           nids=lambda: self.nids_of_mover)

    def run_until_said(self, words: str, *, moving: bool = True) -> None:
        for _ in range(60):
            self.mover.describe()
            self.cluster.advance(5)
            self.service.cycle()
            while moving and self.mover.step():
                pass
            if any(words in sentence for sentence in self.said):
                return
        raise AssertionError((words, self.said[-30:]))

    def metrics(self) -> str:
        assert self.service.web is not None
        with urllib.request.urlopen(f"http://127.0.0.1:{self.service.web.port}/metrics", timeout=10) as answer:
            return str(answer.read().decode())

    def close(self) -> None:
        self.service.close()
        self.node.close()
        self.of_mover.close()


@pytest.fixture
def leader(own_broker: Broker, tmp_path: Path) -> Iterator[Leader]:
    made = Leader(tmp_path, own_broker)
    yield made
    made.close()


def shown(capsys: pytest.CaptureFixture[str], leader: Leader, *arguments: str) -> str:
    assert main([*arguments, "--socket", leader.settings.act.socket]) == 0
    return capsys.readouterr().out


def test_the_neighbour_is_cured_by_a_mover(leader: Leader, capsys: pytest.CaptureFixture[str]) -> None:
    leader.run_until_said("QUEUED")
    leader.run_until_said("MOVED")
    lines = shown(capsys, leader, "movers").splitlines()
    assert lines[0].startswith("NATS: connected; 1 mover; ")
    assert "m1 on node1, 4 threads, lfs: working" in lines[1]
    answer = json.loads(shown(capsys, leader, "movers", "--json"))
    assert answer["movers"][0]["results"]["done"] > 0
    text = leader.metrics()
    assert 'tierd_nats_up{fs="lustre"} 1.0' in text
    assert 'tierd_movers{fs="lustre",state="working"} 1.0' in text
    assert 'tierd_mover_results_total{fs="lustre",result="done"}' in text
    assert "migrate" in shown(capsys, leader, "history")


NID = "10.0.2.15@tcp"
"""Of the node that moves files in the simulation."""


@pytest.mark.parametrize(("nid", "mover"), [(NID, ""), ("10.0.2.16@tcp", "lfs.0")], ids=["of a mover", "of another"])
def test_records_of_moves_on_other_nodes_are_tierds_own(leader: Leader, nid: str, mover: str) -> None:
    """The leader's own node has another NID than the node that moves the files."""
    leader.nids_of_mover = (nid,)
    leader.run_until_said("MOVED")
    for _ in range(3):  # more files, and their records
        leader.run_until_said("MOVED")
    assert leader.service.daemon.table.other_mover_in("/proj/ingest", 0.0) == mover


def test_without_nats_the_leader_plans_nothing_and_says_so(
    leader: Leader, own_broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    own_broker.kill()
    for _ in range(30):
        leader.cluster.advance(5)
        leader.service.cycle()
    assert any("NATS" in sentence for sentence in leader.said)
    assert not any("QUEUED" in sentence or "MOVED" in sentence for sentence in leader.said)
    assert "NATS" in shown(capsys, leader, "status")
    assert 'tierd_nats_up{fs="lustre"} 0.0' in leader.metrics()
    assert len(leader.service.gate.default_layouts) == 0
    own_broker.start()
    connected(leader.connection)


def test_a_tierd_alone_says_that_it_has_no_movers() -> None:
    from tierd.cli.movers import mover_lines  # noqa: PLC0415
    from tierd.daemon.answers import MoversAnswer  # noqa: PLC0415

    assert mover_lines(MoversAnswer(time=1.0, cluster=False)) == [
        "tierd moves files in its own process: it has no [cluster] in its settings, or it is in a dry run."]
