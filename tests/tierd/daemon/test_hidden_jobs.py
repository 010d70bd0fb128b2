"""Jobs without names and metadata servers without exporters: neither is an error, and both hide findings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lustre.parameters import Roots, Tree
from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.settings import recorded_test_bed
from tests.conftest import Unpack
from tests.tierd.daemon.test_lying_sources import lied_to
from tests.tierd.logged import logged
from tests.tierd.simulated import STREAM
from tierd.act.movers.moves import PortMover
from tierd.config.settings import Settings
from tierd.daemon.node import Node
from tierd.daemon.service import Service
from tierd.sense.parameters import why_jobs_are_unnamed
from tierd.sense.readings import Reading
from tierd.simulation.world import VirtualClock, parameter_files


class Clearing(SimulatedFilesystem):
    def clear_changelog(self, mdt: str, reader: str, index: int) -> None:
        raise AssertionError("a dry run clears nothing")


def disabled(folder: Path) -> Tree:
    """A client on which ``jobid_var`` was never set: the file as the kernel prints it."""
    (folder / "sys/fs/lustre").mkdir(parents=True)
    (folder / "sys/fs/lustre/jobid_var").write_text("disable\n")
    return Tree(Roots.of(folder / "proc", folder / "sys"))


def test_a_client_that_names_jobs_is_no_reason(capture: Unpack, tmp_path: Path) -> None:
    root = capture("2.17.57/tree-idle")
    assert why_jobs_are_unnamed(Tree(Roots.of(root / "proc", root / "sys"))) == ""
    assert why_jobs_are_unnamed(Tree(Roots.of(tmp_path / "proc", tmp_path / "sys"))) == ""
    assert "lctl set_param -P jobid_var=procname_uid" in why_jobs_are_unnamed(disabled(tmp_path))


@pytest.mark.parametrize("named", [False, True])
def test_jobs_without_names_are_reported_where_nothing_is_counted(tmp_path: Path, named: bool) -> None:
    cluster = Cluster(recorded_test_bed(), (STREAM,))
    settings = Settings()
    act = replace(settings.act, journal=str(tmp_path / "journal.sqlite"), socket=str(tmp_path / "tierd.sock"))
    said = logged()
    filesystem = Clearing(cluster)
    tree = disabled(tmp_path / "client")
    servers = parameter_files(cluster, tmp_path / "node")

    def read() -> Reading:
        reading = servers()
        return reading if named else replace(reading, jobs={})

    node = Node(filesystem=filesystem, mover=PortMover(filesystem), read=read, mdts=["MDT0000"],
                clock=VirtualClock(cluster), unnamed=lambda: why_jobs_are_unnamed(tree))
    service = Service(replace(settings, act=act, web=replace(settings.web, enabled=False)), node)
    for _ in range(3):
        cluster.advance(5)
        service.cycle()
    service.close()
    assert sum("jobid_var is 'disable'" in words for words in said) == (not named), said


def test_a_view_without_metadata_servers_is_reported(tmp_path: Path) -> None:
    at, source = lied_to(tmp_path, STREAM)
    at.run(until=20)
    assert "metadata" not in at.daemon.faults

    def osts_alone(reading: Reading, _: int) -> Reading:
        osts = frozenset(target for target in reading.targets if "-OST" in target)
        return replace(reading, targets=osts, jobs={key: c for key, c in reading.jobs.items() if key[0] in osts})

    (tmp_path / "fresh").mkdir()
    fresh, source = lied_to(tmp_path / "fresh", STREAM)
    source.lie = osts_alone
    fresh.run(until=20)
    assert "no metadata target is seen" in fresh.daemon.faults["metadata"]
