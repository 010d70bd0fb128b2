"""What calls and moves cost: processor time on the node they are made on, and the queues of the targets."""

import errno
from collections.abc import Callable
from dataclasses import replace

import pytest

from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.costs import MEASURED, PRESETS, PRODUCTION, CallCosts
from simulator.filesystem import SimulatedFilesystem
from simulator.fluid.cluster import FluidCluster
from simulator.jobs import Job
from simulator.jobs.metadata import Mdtest
from simulator.jobs.small_files import SmallFileWriter
from simulator.scenarios import scenario
from simulator.scenarios.events import Event, schedule
from simulator.scheduler import VirtualScheduler
from simulator.settings import recorded_test_bed

FLASH = Layout((Component(pool="flash"),), composite=False)
CROWD = SmallFileWriter(threads=20, files_per_second=1.0)


def made(costs: CallCosts, *jobs: Job, model: type[Cluster] = Cluster) -> tuple[Cluster, SimulatedFilesystem]:
    cluster = model(replace(recorded_test_bed(), costs=costs), jobs)
    cluster.make_file("/proj/a/file", 1000)
    cluster.advance(5)
    return cluster, SimulatedFilesystem(cluster)


def took(cluster: Cluster, call: Callable[[], object], times: int = 20) -> float:
    """Mean virtual seconds of a call."""
    begun = cluster.now
    for _ in range(times):
        call()
    return (cluster.now - begun) / times


PROJ_A = made(PRESETS["free"])[1].status("/proj/a").fid
"""The FID of the directory, which is the same on every cluster."""
CALLS: dict[str, Callable[[SimulatedFilesystem], object]] = {
    "status": lambda f: f.status("/proj/a"),
    "path_of": lambda f: f.path_of(PROJ_A),
    "layout": lambda f: f.layout("/proj/a/file"),
    "xattr": lambda f: f.xattr("/proj/a", "user.tierd"),
    "set_xattr": lambda f: f.set_xattr("/proj/a", "user.tierd", b"off"),
    "set_default_layout": lambda f: f.set_default_layout("/proj/a", FLASH),
    "entries": lambda f: f.entries("/proj/a"),
    "subdirectories": lambda f: f.subdirectories("/proj"),
    "space": lambda f: f.space(),
    "changelog": lambda f: f.changelog("MDT0000", 10**9),
}
"""All that ask a target something."""


@pytest.mark.parametrize("name", CALLS)
def test_each_request_takes_time_and_more_on_a_node_full_of_others(name: str) -> None:
    cluster, filesystem = made(MEASURED)
    idle = took(cluster, lambda: CALLS[name](filesystem))
    assert idle > 0.004
    cluster, filesystem = made(MEASURED, CROWD)
    assert 8 < took(cluster, lambda: CALLS[name](filesystem)) / idle < 12, "20 and it on two processors"


@pytest.mark.parametrize("model", [Cluster, FluidCluster])
def test_a_request_waits_behind_those_of_jobs_at_the_same_target(model: type[Cluster]) -> None:
    """Nobody else is on the node of a production machine: what remains is the queue of the MDT."""
    cluster, filesystem = made(PRODUCTION, model=model)
    idle = took(cluster, lambda: CALLS["xattr"](filesystem))
    assert idle < 0.002
    storm = Mdtest(threads=64, files_each=1000)
    cluster, filesystem = made(PRODUCTION, storm, model=model)
    assert took(cluster, lambda: CALLS["xattr"](filesystem)) > 5 * idle


def test_a_missing_file_costs_the_time_of_the_request() -> None:
    cluster, filesystem = made(MEASURED)

    def ask() -> None:
        with pytest.raises(FileNotFoundError):
            filesystem.status("/proj/a/nothing")

    assert took(cluster, ask) > 0.004


def test_a_call_to_a_target_that_is_away_waits_until_it_is_back() -> None:
    cluster, filesystem = made(PRODUCTION)
    schedule([Event(10, "recovery", {"target": "MDT0000", "seconds": 30})], cluster)
    cluster.advance(6)
    filesystem.status("/proj/a/file")
    assert cluster.now == pytest.approx(40, abs=0.5)


@pytest.mark.parametrize("target", ["MDT0000", "OST0002"])
def test_one_that_never_comes_back_is_given_up_some_time(target: str) -> None:
    cluster, filesystem = made(replace(PRODUCTION, timeout_seconds=50.0))
    (stripe,) = (cluster.namespace.lookup("/proj/a/file").layout or FLASH).components[0].objects
    target = target if target.startswith("MDT") else cluster.osts[stripe.ost_index].name
    schedule([Event(6, "gone", {"target": target})], cluster)
    cluster.advance(2)
    with pytest.raises(OSError, match="timed out") as raised:
        filesystem.status("/proj/a/file")
    assert raised.value.errno == errno.ETIMEDOUT
    assert cluster.now == pytest.approx(57, abs=0.5)


def test_files_of_jobs_on_the_same_mount_are_in_its_cache() -> None:
    cluster, filesystem = made(MEASURED)
    assert took(cluster, lambda: filesystem.status("/proj/a/file")) < 0.001
    cluster, filesystem = made(replace(MEASURED, attributes_cached=False))
    assert took(cluster, lambda: filesystem.status("/proj/a/file")) > 0.004


def test_a_default_layout_costs_more_than_its_calls() -> None:
    cluster, filesystem = made(MEASURED)
    assert took(cluster, lambda: filesystem.set_default_layout("/proj/a", FLASH)) > 0.05


def test_calls_at_once_share_the_processors() -> None:
    """On two processors four take twice as long as one, not four times."""
    cluster, filesystem = made(replace(MEASURED, call_processor_seconds=0.1))
    with VirtualScheduler(cluster) as scheduler, scheduler.executor(4) as executor:
        begun = cluster.now
        for _ in range(40):
            executor.submit(filesystem.xattr, "/proj/a", "user.tierd")
        executor.shutdown()
        assert cluster.now - begun == pytest.approx(40 * 0.1 / 2, rel=0.15)


def test_a_scenario_has_a_preset_and_other_values() -> None:
    def costs(text: str) -> CallCosts:
        return scenario.parse(f'[[job]]\nkind = "small_files"\n{text}').cluster(1).costs

    assert costs("") == PRODUCTION
    assert costs('[costs]\npreset = "measured"') == MEASURED
    assert costs('[costs]\npreset = "measured"\nprocessors = 4') == replace(MEASURED, processors=4.0)
