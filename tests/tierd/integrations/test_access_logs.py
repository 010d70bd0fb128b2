"""Access logs rolled up by file: what is read most, what was lost, logs that come and go."""

import struct
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lustre.access_log import AccessLogDevice
from lustre.fid import Fid
from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.settings import recorded_test_bed
from tests.tierd.sense.clocks import SettableClock
from tests.tierd.simulated import COVERING
from tierd.integrations.access_logs import source as access_logs
from tierd.integrations.access_logs.source import HALF_LIFE_SECONDS, NAME_LOOKUP_SECONDS, HotFiles
from tierd.model import Candidate, DirectoryActivity
from tierd.sense import space

HOT, COLD = Fid(0x200000402, 1), Fid(0x200000402, 2)


@dataclass
class Log(AccessLogDevice):
    data: bytes = b""
    ended: bool = False
    lost: int = 0
    closed: bool = False

    def read(self, limit_bytes: int) -> tuple[bytes, bool]:
        data, self.data = self.data, b""
        return data, self.ended

    def dropped(self) -> int:
        return self.lost

    def close(self) -> None:
        self.closed = True


@dataclass
class Node:
    folder: Path
    logs: dict[str, Log] = field(default_factory=dict)
    opened: list[str] = field(default_factory=list)

    def add(self, name: str) -> Log:
        (self.folder / name).touch()
        return self.logs.setdefault(name, Log())

    def open(self, path: str) -> Log:
        log = self.logs[path.rpartition("/")[2]]
        log.ended = log.closed = False
        self.opened.append(path.rpartition("/")[2])
        return log


def reads(fid: Fid, count: int, at: int, writes: bool = False) -> bytes:
    return struct.pack("<16sQQQIIII8x", fid, 0, 65536, at, 65536, 1, 1 + writes, 0) * count


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def following(node: Node, clock: SettableClock) -> HotFiles:
    return HotFiles(f"{node.folder}/*", node.open, clock, 90.0, {"flash"})


def test_files_by_what_was_read_of_them_lately(node: Node) -> None:
    clock = SettableClock()
    log, other = node.add("lustre-OST0000"), node.add("lustre-OST0001")
    node.add("control")
    logs = following(node, clock)
    log.data = reads(HOT, 30, 1000) + reads(COLD, 2, 1000) + reads(COLD, 90, 1000, writes=True)
    other.data = reads(HOT, 10, 1000)
    logs.refresh()
    assert [*logs.hot().items()] == [(HOT, 40), (COLD, 2)]
    assert logs.age.state == "0 s old"
    clock.at += HALF_LIFE_SECONDS
    assert logs.hot() == {HOT: 20, COLD: 1}
    logs.close()
    assert log.closed


def test_lost_records_are_reported_once(node: Node) -> None:
    log = node.add("lustre-OST0000")
    logs = following(node, SettableClock())
    log.lost = 7
    logs.refresh()
    assert "7 entries were lost: its access_log_size is too small" in logs.age.problem
    logs.refresh()
    assert logs.age.problem == ""


def test_an_ost_that_was_unmounted_and_came_back(node: Node) -> None:
    log = node.add("lustre-OST0000")
    logs = following(node, SettableClock())
    logs.refresh()
    log.ended = True
    logs.refresh()
    assert log.closed
    logs.refresh()
    assert node.opened == ["lustre-OST0000"] * 2
    (node.folder / "lustre-OST0000").unlink()
    logs.refresh()
    assert log.closed
    assert "no such log: is this an OSS" in logs.age.problem


def test_an_access_log_of_nonsense_is_reported_and_dropped(node: Node) -> None:
    log = node.add("lustre-OST0000")
    logs = following(node, SettableClock())
    log.data = b"x" * 65
    logs.refresh()
    assert "not a multiple of the entry size" in logs.age.problem
    assert logs.age.stale


def test_the_table_is_bounded(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_logs, "MAX_FILES", 100)
    log = node.add("lustre-OST0000")
    logs = following(node, SettableClock())
    log.data = b"".join(reads(Fid(0x200000402, n), 1, 1000) for n in range(1, 301))
    logs.refresh()
    assert len(logs.hot()) == 100


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
        self.hot = following(node, self.clock)
        self.hot.refresh()
        self.known = tuple(Candidate(inode.fid, inode.path, 100.0 - n) for n, inode in enumerate(files[:2]))

    def seen(self) -> list[tuple[str, float]]:
        activity = DirectoryActivity("j", "/proj/a", candidates=self.known)
        (done,) = self.hot.enriched([activity], self.filesystem)
        return [(c.path.rpartition("/")[2], c.reads) for c in done.candidates]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_hot_files_are_added_to_the_known_files_of_the_directory(world: World) -> None:
    assert world.seen() == [("cold", 0.0), ("warm", 10.0), ("hot", 40.0)]


def test_hot_files_on_flash_take_the_places_of_no_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_logs, "MAX_NAMED_FILES", 2)
    assert [name for name, _ in world.seen()] == ["cold", "warm"]
    world.clock.at += NAME_LOOKUP_SECONDS + 1
    assert [name for name, _ in world.seen()] == ["cold", "warm", "hot"]


def test_the_most_read_are_measured_first(world: World) -> None:
    (done,) = world.hot.enriched([DirectoryActivity("j", "/proj/a", candidates=world.known)], world.filesystem)
    (measured,) = space.with_sizes(world.filesystem, [done], limit=2)
    assert [c.path for c in measured.candidates] == ["/proj/a/hot", "/proj/a/warm"]


def test_logs_that_are_old_say_nothing(world: World) -> None:
    world.clock.at += 91
    assert world.seen() == [("cold", 0.0), ("warm", 0.0)]


def test_names_are_resolved_again_after_a_while(world: World) -> None:
    world.seen()
    namespace = world.cluster.namespace
    namespace.remove(namespace.lookup("/proj/a/hot"), world.cluster.epoch)
    world.cluster.make_file("/proj/a/hot", 1000)
    assert [name for name, _ in world.seen()] == ["cold", "warm", "hot"]
    (measured,) = space.with_sizes(world.filesystem, world.hot.enriched(
        [DirectoryActivity("j", "/proj/a")], world.filesystem))
    assert "/proj/a/hot" not in {c.path for c in measured.candidates}, "a new file of that name is not the deleted file"
    world.clock.at += NAME_LOOKUP_SECONDS + 1
    assert [name for name, _ in world.seen()] == ["cold", "warm"]
