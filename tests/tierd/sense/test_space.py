"""Pools of other devices than the configuration says are reported; directories without a default have the root's."""

import errno
import gc
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from lustre.layout.model import Component, Layout
from lustre.parameters import Roots, Tree
from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.settings import recorded_test_bed
from tests.tierd.simulated import COVERING, HDD, Faulty, world
from tierd.acts import ActKind
from tierd.config.settings import Settings
from tierd.daemon.metrics import MetricsContext, registry
from tierd.model import Action, PoolPair
from tierd.refusal import Reason
from tierd.sense import parameters, space
from tierd.sense.prometheus import Series, newest_reading
from tierd.sense.readings import Reading
from tierd.sense.sources import LiveSource
from tierd.sense.space import PoolMedia

POOLS = {"flash": ["l-OST0000", "l-OST0001"], "hdd": ["l-OST0002"], "nvme": ["l-OST0003", "l-OST0004"], "empty": []}


def media(is_flash: Mapping[str, bool], flash: str = "flash") -> PoolMedia:
    found = PoolMedia([PoolPair(flash, "hdd")])
    found.learn_pools(POOLS)
    found.learn_devices(is_flash)
    return found


NVME = {"l-OST0003": True, "l-OST0004": True}
MIXED = {"l-OST0000": True, "l-OST0001": False}


@pytest.mark.parametrize(("flash", "is_flash", "problem"), [
    *(("flash", known, "") for known in ({}, {"l-OST0000": True}, {"l-OST0002": False}, {"l-OST0003": True})),
    ("flash", MIXED, "pool 'flash' is configured as flash, but the servers report rotating disks: l-OST0001"),
    ("flash", {"l-OST0002": True}, "pool 'hdd' is configured as disks, but all its targets are flash"),
    ("ssd", NVME, ""),
])
def test_only_pools_whose_devices_are_known_are_wrong(flash: str, is_flash: Mapping[str, bool], problem: str) -> None:
    assert media(is_flash, flash).problem == problem


def test_a_device_stays_known_while_its_server_does_not_answer() -> None:
    known = media({"l-OST0000": True, "l-OST0001": True, "l-OST0002": False})
    known.learn_devices({"l-OST0000": True})
    assert known.is_on_flash("flash")
    assert known.rotating("hdd") == ["l-OST0002"]
    known.learn_devices({"l-OST0000": False})
    assert known.rotating("flash") == ["l-OST0000"]


@pytest.mark.parametrize(("is_flash", "so_far"), [
    ({}, False), ({"l-OST0003": True}, True), ({"l-OST0003": True, "l-OST0004": False}, False)])
def test_a_pool_of_which_one_server_does_not_answer_is_what_the_others_report(
        is_flash: Mapping[str, bool], so_far: bool) -> None:
    assert media(is_flash).is_on_flash("nvme", partly=True) == so_far
    assert not media(is_flash).is_on_flash("nvme")
    assert not media(is_flash).is_on_flash("empty", partly=True)


def test_prometheus_reports_devices() -> None:
    about = [Series("lustre_jobs", {"fs": "l", "target": "OST0000"}, ((10.0, 0.0),)),
             Series("lustre_osd_nonrotational", {"fs": "l", "target": "OST0000"}, ((9.0, 1.0), (10.0, 0.0)))]
    assert newest_reading(about, []).is_flash == {"l-OST0000": False}


def test_parameter_files_report_devices(tmp_path: Path) -> None:
    for kind, target, text in (("osd-ldiskfs", "l-OST0000", "0\n"), ("osd-zfs", "l-MDT0000", "1\n"),
                               ("osd-zfs", "l-MDT0001", "maybe\n")):
        place = tmp_path / f"sys/fs/lustre/{kind}/{target}/nonrotational"
        place.parent.mkdir(parents=True)
        place.write_text(text)
    tree = Tree(Roots.of(tmp_path / "proc", tmp_path / "sys"))
    assert parameters.reading(tree, 1.0).is_flash == {"l-OST0000": False, "l-MDT0000": True}


class WithDevices(Faulty):
    """A source that also reports devices."""

    is_flash: Mapping[str, bool]

    def reading(self) -> Reading:
        return replace(super().reading(), is_flash=self.is_flash)


def test_tierd_reports_a_flash_pool_that_rotates_and_acts_into_it_no_more(tmp_path: Path) -> None:
    sources: list[WithDevices] = []

    def hook(near: LiveSource, _: object) -> LiveSource:
        sources.append(WithDevices(near))
        return sources[0]

    at = world(tmp_path, settings=Settings(), hook=hook)
    target = at.filesystem.pools()["flash"][0]
    to_flash = Action(ActKind.SET_DEFAULT_LAYOUT, COVERING, "r", ("noisy-neighbour", "m", "s"), "/proj")
    to_disk = replace(to_flash, layout=HDD)

    def step(is_flash: Mapping[str, bool]) -> float:
        sources[0].is_flash = is_flash
        for _ in range(2):
            at.run(until=at.cluster.now + 5.0)
        metrics = registry(at.daemon, MetricsContext(fs="lustre"))
        (family,) = [metric for metric in metrics.collect() if metric.name == "tierd_pool_wrong_disks"]
        return {sample.labels["pool"]: sample.value for sample in family.samples}["flash"]

    assert step({}) == 0.0
    assert at.gate.guard.refusal(to_flash) is None
    assert "media" not in at.daemon.faults
    assert step({target: False}) == 1.0
    refusal = at.gate.guard.refusal(to_flash)
    assert refusal is not None
    assert refusal.reason is Reason.POOL_ROTATES
    assert at.gate.guard.refusal(to_disk) is None
    assert f"rotating disks: {target}" in at.daemon.faults["media"]
    assert len([line for line in at.said if "rotating disks" in line]) == 1
    assert step({target: True}) == 0.0
    assert at.gate.guard.refusal(to_flash) is None


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


def test_no_call_is_left_at_work_when_another_one_fails() -> None:
    """A default layout was set after its act had been closed as interrupted."""
    ended: list[bool] = []
    calls = (lambda: next(iter(())), lambda: ended.append(threading.Event().wait(0.1)))
    with pytest.raises(StopIteration):
        space.call_each(lambda call: call(), calls, ThreadPoolExecutor(2))
    assert ended


def test_an_unreadable_directory_leaves_no_cyclic_garbage(cluster: Cluster) -> None:
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)  # threads of other tests may leave garbage, but no such error
    try:
        space.default_layouts(SimulatedFilesystem(cluster), ["/gone"])
        gc.collect()
        assert not [each for each in gc.garbage if isinstance(each, FileNotFoundError)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
