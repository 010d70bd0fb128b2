"""A busy MDS in the whole loop, on the simulated test bed: many jobs, one job, and none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from simulator.cluster import Cluster
from simulator.jobs.metadata import StepFiles
from simulator.servers.mdt import MdtSettings
from simulator.settings import recorded_test_bed
from tests.tierd.logged import logged
from tests.tierd.simulated import World
from tierd.config.load import parse
from tierd.simulation import world as simulation

LOW = "[detect.metadata_bound]\nmin_operations_per_second = 5\n"


def lived(tmp_path: Path, jobs: int, threads: int, cores: int, work_factor: float) -> World:
    """Jobs that create files, each in directories of its own, on an MDT with so many processors.

    The busy ones are found after 84 s at the latest.
    """
    mdt = MdtSettings(cores=cores, work_factor=work_factor)
    every = tuple(StepFiles(f"steps.{n}", directory=f"/proj/steps{n}", threads=threads, files_each=2000, client=n % 2)
                  for n in range(jobs))
    said = logged()
    cluster = Cluster(replace(recorded_test_bed(), mdts=(mdt,)), every)
    at = simulation.wire(cluster, parse(LOW.encode(), "t.toml"), tmp_path)
    at = World(at.cluster, at.filesystem, at.source, at.gate, at.undo, at.journal, at.daemon, said)
    at.run(until=100, cycle_seconds=10)
    return at


def bound(at: World) -> list[str]:
    return [finding.sentence for finding in at.daemon.findings if finding.kind == "metadata-bound"]


def test_many_jobs_on_few_processors(tmp_path: Path) -> None:
    (sentence,) = bound(lived(tmp_path, jobs=6, threads=6, cores=1, work_factor=20.0))
    assert "threads are in use: processors, locks or threads limit it" in sentence
    assert "causes" not in sentence


def test_one_job_is_named(tmp_path: Path) -> None:
    (sentence,) = bound(lived(tmp_path, jobs=1, threads=12, cores=1, work_factor=20.0))
    assert sentence.endswith("; steps.0 causes 100% of the operations")


def test_an_mds_with_free_processors_is_well(tmp_path: Path) -> None:
    assert bound(lived(tmp_path, jobs=1, threads=1, cores=8, work_factor=1.0)) == []
