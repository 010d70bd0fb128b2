"""What access logs say of files, put to the directories a finding names: as hints, and not when they are old."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.settings import recorded_test_bed
from tests.tierd.sense.test_access_logs import Node, following, reads
from tests.tierd.sense.test_discovery import SettableClock
from tests.tierd.simulated import COVERING
from tierd.model import Candidate, DirectoryActivity
from tierd.sense import space
from tierd.sense.hot_files import LOOK_SECONDS, HotFiles


class World:
    """A directory of files, some of them hot, and an access log."""

    def __init__(self, folder: Path) -> None:
        self.cluster = Cluster(recorded_test_bed())
        self.filesystem = SimulatedFilesystem(self.cluster)
        self.clock = SettableClock()
        node = Node(folder)
        log = node.add("lustre-OST0002")
        files = [self.cluster.make_file(f"/proj/a/{name}", 1000) for name in ("cold", "warm", "hot")]
        self.there = self.cluster.make_file("/proj/a/flash", 1000)
        self.filesystem.migrate(self.there.path, COVERING)
        self.elsewhere = self.cluster.make_file("/proj/b/hot", 1000)
        log.data = b"".join(reads(inode.fid, count, 1000) for inode, count in zip(
            [*files[1:], self.there, self.elsewhere], (10, 40, 90, 90), strict=True))
        self.logs = following(node, self.clock)
        self.logs.look()
        self.hot = HotFiles(self.logs, {"flash"}, self.clock)
        self.known = tuple(Candidate(inode.fid, inode.path, 100.0 - n) for n, inode in enumerate(files[:2]))

    def seen(self) -> list[tuple[str, float]]:
        activity = DirectoryActivity("j", "/proj/a", candidates=self.known)
        (done,) = self.hot.with_heat([activity], self.filesystem)
        return [(c.path.rpartition("/")[2], c.reads) for c in done.candidates]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_hot_files_of_the_directory_come_beside_those_known(world: World) -> None:
    assert world.seen() == [("cold", 0.0), ("warm", 10.0), ("hot", 40.0)]


def test_the_most_read_are_measured_first(world: World) -> None:
    (done,) = world.hot.with_heat([DirectoryActivity("j", "/proj/a", candidates=world.known)], world.filesystem)
    (measured,) = space.measured(world.filesystem, [done], limit=2)
    assert [c.path for c in measured.candidates] == ["/proj/a/hot", "/proj/a/warm"]


def test_logs_that_are_old_say_nothing(world: World) -> None:
    world.clock.at += 91
    assert world.seen() == [("cold", 0.0), ("warm", 0.0)]


def test_names_are_asked_for_now_and_then_and_anew(world: World) -> None:
    world.seen()
    namespace = world.cluster.namespace
    namespace.remove(namespace.lookup("/proj/a/hot"), world.cluster.epoch)
    world.cluster.make_file("/proj/a/hot", 1000)
    assert [name for name, _ in world.seen()] == ["cold", "warm", "hot"]
    (measured,) = space.measured(world.filesystem, world.hot.with_heat(
        [DirectoryActivity("j", "/proj/a")], world.filesystem))
    assert "/proj/a/hot" not in {c.path for c in measured.candidates}, "another file of that name is none"
    world.clock.at += LOOK_SECONDS + 1
    assert [name for name, _ in world.seen()] == ["cold", "warm"]
