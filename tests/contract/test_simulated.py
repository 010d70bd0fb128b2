"""The simulated file system keeps the contract of the port."""

import pytest

from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.settings import recorded_test_bed
from tests.contract.port import Ground, PortContract


class TestSimulated(PortContract):
    @pytest.fixture
    def ground(self) -> Ground:
        cluster = Cluster(recorded_test_bed())
        cluster.make_directory("/contract", Layout((Component(pool="hdd"),), composite=False))

        def make_directory(path: str) -> None:
            cluster.make_directory(path)

        def make_file(path: str, size_bytes: int) -> None:
            cluster.make_file(path, size_bytes)

        def set_mtime(path: str, mtime: float) -> None:
            cluster.namespace.lookup(path).mtime = mtime

        return Ground(SimulatedFilesystem(cluster), "/contract", make_directory, make_file, set_mtime,
                      changelog_mdt="MDT0000")
