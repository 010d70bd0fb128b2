"""A storm on an MDT of ordinary speed, at the default thresholds of metadata-storm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from simulator.cluster import Cluster
from simulator.jobs.metadata import StepFiles
from simulator.servers.mdt import MdtSettings
from simulator.servers.objects import Capacity
from simulator.settings import recorded_test_bed, with_nodes
from tierd.acts import ActKind
from tierd.config.load import parse
from tierd.simulation import world as simulation

NODES = 8


def test_a_job_that_fills_a_directory_in_each_step_is_found_and_its_next_ones_are_striped(tmp_path: Path) -> None:
    """600 creates a second, half a minute in each directory, where an MDT of the recorded test bed does 840."""
    mdt = MdtSettings(capacity=Capacity(1 << 40, 1 << 26), work_factor=1.4)
    job = StepFiles(nodes=NODES, threads=4, files_each=560)
    cluster = Cluster(replace(with_nodes(recorded_test_bed(), NODES), mdts=(mdt, mdt)), (job,))
    at = simulation.wire(cluster, parse(b"[act]\non = ['metadata-storm']\n", "t.toml"), tmp_path)
    while cluster.now < 120 and not list(at.journal.entries()):
        at.run(until=cluster.now + 30, cycle_seconds=10)
    assert [(entry.kind, entry.place) for entry in at.journal.entries()] == [
        (ActKind.SET_DEFAULT_STRIPING, "/proj/steps")]
