"""What new files in a directory get, where the directory has no default layout of its own."""

from __future__ import annotations

import errno
import gc

import pytest

from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.settings import recorded_test_bed
from tierd.sense import space

HDD = Layout((Component(pool="hdd"),), composite=False)
FLASH = Layout((Component(pool="flash"),), composite=False)


class RootOut(SimulatedFilesystem):
    """The root's default cannot be read at present."""

    def layout(self, path: str) -> Layout | None:
        if path == "/":
            raise OSError(errno.EIO, "Input/output error")
        return super().layout(path)


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(recorded_test_bed())
    made.make_directory("/own", FLASH)
    made.make_directory("/plain", HDD)
    made.set_default_layout("/plain", None)
    return made


def test_the_roots_default_holds_where_there_is_no_other(cluster: Cluster) -> None:
    filesystem = SimulatedFilesystem(cluster)
    assert space.default_layouts(filesystem, ["/own", "/plain", "/gone"]) == {"/own": FLASH, "/plain": None}
    cluster.set_default_layout("/", HDD)
    assert space.default_layouts(filesystem, ["/own", "/plain", "/gone"]) == {"/own": FLASH, "/plain": HDD}


def test_defaults_are_unknown_if_that_of_the_root_is_unknown(cluster: Cluster) -> None:
    assert space.default_layouts(RootOut(cluster), ["/own", "/plain"]) == {"/own": FLASH}


def test_an_unreadable_directory_leaves_no_cyclic_garbage(cluster: Cluster) -> None:
    gc.collect()
    gc.disable()
    try:
        space.default_layouts(SimulatedFilesystem(cluster), ["/gone"])
        assert gc.collect() == 0
    finally:
        gc.enable()
