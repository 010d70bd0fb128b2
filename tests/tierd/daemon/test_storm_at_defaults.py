"""A storm on an MDT of ordinary speed, at the default thresholds of metadata-storm."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from simulator.cluster import Cluster
from simulator.jobs.metadata import StepFiles
from simulator.servers.mdt import MdtSettings
from simulator.servers.objects import Capacity
from simulator.settings import recorded_test_bed, with_nodes
from tierd.acts import ActKind
from tierd.config.load import parse
from tierd.simulation.run import run

NODES = 8
SECONDS = 240


@pytest.mark.skipif("TIERD_LONG" not in os.environ, reason="long: TIERD_LONG=1, about a minute of a processor")
def test_a_job_that_fills_a_directory_for_two_minutes_is_found_and_its_next_ones_are_striped() -> None:
    """600 creates a second in one directory, where an MDT of the recorded test bed does 840."""
    mdt = MdtSettings(capacity=Capacity(1 << 40, 1 << 26), work_factor=1.4)
    job = StepFiles(nodes=NODES, threads=4, files_each=2400)
    cluster = Cluster(replace(with_nodes(recorded_test_bed(), NODES), mdts=(mdt, mdt)), (job,))
    outcome = run(cluster, (job,), SECONDS, policy=parse(b"[act]\non = ['metadata-storm']\n", "t.toml"),
                  cycle_seconds=10)
    assert [(entry.kind, entry.place) for entry in outcome.entries] == [(ActKind.SET_DEFAULT_STRIPING, "/proj/steps")]
