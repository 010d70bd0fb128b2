"""Directories over MDTs in the model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lustre.layout.directory import DefaultStriping
from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.jobs.metadata import StepFiles
from simulator.servers.changelog import Actor
from simulator.servers.mdt import MdtSettings
from simulator.settings import recorded_test_bed


def made(cluster: Cluster, parent: str, name: str) -> None:
    client = cluster.clients[0]
    steps = client.mkdir(cluster.namespace.lookup(parent), name, Actor("mkdir.0", 0, client.settings.nid))
    cluster.wait_for(cluster.engine.spawn(steps))


def test_new_subdirectories_get_the_default_for_as_many_levels_as_it_says() -> None:
    cluster = Cluster(recorded_test_bed())
    cluster.make_directory("/top")
    filesystem = SimulatedFilesystem(cluster)
    assert filesystem.default_striping("/top") is None
    default = DefaultStriping(2, -1, "crush", 2)
    filesystem.set_default_striping("/top", default)
    made(cluster, "/top", "a")
    made(cluster, "/top/a", "b")
    made(cluster, "/top/a/b", "c")
    assert filesystem.directory_stripes("/top").stripe_count == 0
    assert filesystem.directory_stripes("/top/a").stripe_count == 2
    assert filesystem.default_striping("/top/a") is None, "it inherits, and has none of its own"
    assert filesystem.directory_stripes("/top/a/b").stripe_count == 2
    assert cluster.namespace.lookup("/top/a").effective_striping == replace(default, max_inherit=1)
    assert cluster.namespace.lookup("/top/a/b").effective_striping is None
    assert filesystem.directory_stripes("/top/a/b/c").stripe_count == 0
    filesystem.set_default_striping("/top", None)
    made(cluster, "/top", "later")
    assert filesystem.directory_stripes("/top/later").stripe_count == 0


def test_a_new_file_system_has_a_default_that_no_directory_has_of_its_own() -> None:
    cluster = Cluster(recorded_test_bed())
    made(cluster, "/", "top")
    filesystem = SimulatedFilesystem(cluster)
    assert filesystem.default_striping("/") == cluster.namespace.lookup("/top").effective_striping
    assert filesystem.default_striping("/top") is None
    assert filesystem.directory_stripes("/top").stripe_count == 0


def creates_per_second(nodes: int, striped: bool) -> float:
    """Of 32 processes on some nodes, in one directory at a time, on one of two equal MDTs or on both."""
    bed, mdt = recorded_test_bed(), MdtSettings(work_factor=33.0)
    job = StepFiles(nodes=nodes, threads=32 // nodes, files_each=15)
    cluster = Cluster(replace(bed, mdts=(mdt, mdt), clients=bed.clients[:1] * nodes), (job,))
    if striped:
        SimulatedFilesystem(cluster).set_default_striping(job.directory, DefaultStriping(2, -1, "crush", 1))
    cluster.advance(120)
    return cluster.runs[job.job_id].team.per_second("create")


@pytest.mark.parametrize(("nodes", "least", "most"), [(1, 0.95, 1.05), (4, 1.5, 1.9), (16, 1.75, 2.1)])
def test_a_second_mdt_serves_several_nodes_twice_as_fast_and_one_node_as_fast(
        nodes: int, least: float, most: float) -> None:
    """The kernel holds the lock of a directory while it makes a name in it, so one node has one such request."""
    assert least <= creates_per_second(nodes, striped=True) / creates_per_second(nodes, striped=False) <= most
