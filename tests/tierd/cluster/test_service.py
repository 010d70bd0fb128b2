"""The whole daemon as the leader: a noisy neighbour is found on the simulated cluster, and a mover moves its files."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.settings import recorded_test_bed
from stack.role import PortEngine
from tests.tierd.cluster.broker import Broker, connected
from tests.tierd.simulated import STREAM
from tests.tierd.site import READ_AGAIN, Clearing, Site, acting
from tierd.act.claim import Claim, ClaimFolder
from tierd.clock import SystemClock
from tierd.cluster.connection import Connection
from tierd.cluster.leader import Candidate
from tierd.cluster.mover import Mover
from tierd.config.act import ClaimSettings
from tierd.simulation.world import VirtualClock


class SimulatedClock(SystemClock):
    """The time of the simulation for both, so that deadlines hold."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster

    def now(self) -> float:
        return VirtualClock(self._cluster).now()


class Leader(Site):
    """The daemon as the leader, and one mover that takes its steps after each cycle."""

    nids_of_mover: tuple[str, ...] = ("10.0.2.15@tcp",)

    def __init__(self, folder: Path, broker: Broker) -> None:
        cluster = FluidCluster(recorded_test_bed(), (STREAM, READ_AGAIN))
        super().__init__(cluster, Clearing(cluster), acting(folder, web={"port": 0}, cluster=broker.settings()), folder)
        clock, claims = SimulatedClock(cluster), ClaimFolder(folder / ".tierd")
        claim = Claim(claims, "host=a nonce=1", clock.monotonic, ClaimSettings(expiry_seconds=3600.0))
        self.connection, self.of_mover = (Connection(self.settings.cluster, role) for role in ("leader", "mover"))
        connected(self.connection, self.of_mover)
        self.peers = self.node = Candidate(self.settings, self.filesystem.fsname, claim, self.connection, clock)
        assert self.node.step(), self.said
        self.parts = {"claim": self.node.claim, "own_nids": lambda: {"10.0.9.9@tcp"}}
        self.start()
        self.mover = Mover("m1", "node1", self.of_mover, self.node.names, PortEngine(self.filesystem),
                           claims, self.settings, clock, nids=lambda: self.nids_of_mover)

    def run(self, until: float) -> None:
        while self.cluster.now < until:
            self.mover.describe()
            super().run(self.cluster.now + 5)
            while self.mover.step():
                pass

    def close(self) -> None:
        self.service.close()
        self.node.close()
        self.of_mover.close()


@pytest.fixture
def leader(own_broker: Broker, tmp_path: Path) -> Iterator[Leader]:
    made = Leader(tmp_path, own_broker)
    yield made
    made.close()


def test_a_mover_relieves_the_stream_of_its_neighbour(leader: Leader) -> None:
    leader.run_until_said("MOVED", before=300)
    lines = leader.shown("movers").splitlines()
    assert lines[0].startswith("NATS: connected; 1 mover; ")
    assert "m1 on node1, 4 threads, lfs: working" in lines[1]
    answer = json.loads(leader.shown("movers", "--json"))
    assert answer["movers"][0]["results"]["done"] > 0
    _, text = leader.fetched("/metrics")
    assert 'tierd_nats_up{fs="lustre"} 1.0' in text
    assert 'tierd_movers{fs="lustre",state="working"} 1.0' in text
    assert 'tierd_mover_results_total{fs="lustre",result="done"}' in text
    assert "migrate" in leader.shown("history")


NID = "10.0.2.15@tcp"
"""Of the node that moves files in the simulation."""


@pytest.mark.parametrize(("nid", "mover"), [(NID, ""), ("10.0.2.16@tcp", "lfs.0")], ids=["of a mover", "of another"])
def test_records_of_moves_on_other_nodes_are_tierds_own(leader: Leader, nid: str, mover: str) -> None:
    """The leader's own node has another NID than the node that moves the files."""
    leader.nids_of_mover = (nid,)
    leader.run_until_said("MOVED", before=300)
    leader.run(leader.cluster.now + 15)  # more files, and their records
    assert leader.service.daemon.table.other_mover_in("/proj/ingest", 0.0) == mover


def test_moves_that_no_mover_has_begun_wait_over_a_restart(leader: Leader) -> None:
    """They were found unfinished: an order lost them at each reload."""
    paths = [f"/proj/keep/{number}" for number in range(30)]
    for path in paths:
        leader.cluster.make_file(path, 700_000)
    leader.ask("promote", path="/proj/keep")
    leader.mover.describe()
    Site.run(leader, until=10)
    assert leader.service.gate.under_way
    leader.restart()
    leader.run(until=60)
    assert all("flash" in str(leader.filesystem.layout(path)) for path in paths)


def test_without_nats_the_leader_plans_nothing_and_says_so(leader: Leader, own_broker: Broker) -> None:
    own_broker.kill()
    Site.run(leader, until=150)
    assert any("NATS" in sentence for sentence in leader.said)
    assert not any("QUEUED" in sentence or "MOVED" in sentence for sentence in leader.said)
    assert "NATS" in leader.shown("status")
    assert 'tierd_nats_up{fs="lustre"} 0.0' in leader.fetched("/metrics")[1]
    assert len(leader.service.gate.default_layouts) == 0
    own_broker.start()
    connected(leader.connection)


def test_a_tierd_alone_says_that_it_has_no_movers() -> None:
    from tierd.cli.control import mover_lines  # noqa: PLC0415
    from tierd.daemon.answers import MoversAnswer  # noqa: PLC0415

    assert mover_lines(MoversAnswer(time=1.0, cluster=False)) == [
        "tierd moves files in its own process: it has no [cluster] in its settings, or it is in a dry run."]
