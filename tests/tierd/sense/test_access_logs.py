"""Access logs rolled up by file: what is read most, what was lost, logs that come and go."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lustre.access_log import Access, encode
from lustre.fid import Fid
from tests.tierd.sense.test_discovery import SettableClock
from tierd.sense import access_logs
from tierd.sense.access_logs import HALF_LIFE_SECONDS, AccessLogs

HOT, COLD = Fid(0x200000402, 1), Fid(0x200000402, 2)


@dataclass
class Log:
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
    return encode(Access(fid, 0, 65536, at, 65536, 1, writes)) * count


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def following(node: Node, clock: SettableClock) -> AccessLogs:
    return AccessLogs(f"{node.folder}/*", node.open, clock, 90.0)


def test_files_by_what_was_read_of_them_lately(node: Node) -> None:
    clock = SettableClock()
    log, other = node.add("lustre-OST0000"), node.add("lustre-OST0001")
    node.add("control")
    logs = following(node, clock)
    log.data = reads(HOT, 30, 1000) + reads(COLD, 2, 1000) + reads(COLD, 90, 1000, writes=True)
    other.data = reads(HOT, 10, 1000)
    logs.look()
    assert [(h.fid, h.target, h.reads) for h in logs.hot()] == [
        (HOT, "lustre-OST0000", 30), (HOT, "lustre-OST0001", 10), (COLD, "lustre-OST0000", 2)]
    assert logs.by_file() == {HOT: 40, COLD: 2}
    assert logs.age.state(clock.at) == "0 s old"
    clock.at += HALF_LIFE_SECONDS
    assert logs.by_file() == {HOT: 20, COLD: 1}
    logs.close()
    assert log.closed


def test_what_was_lost_is_told_once(node: Node) -> None:
    log = node.add("lustre-OST0000")
    logs = following(node, SettableClock())
    log.lost = 7
    logs.look()
    assert "7 entries were lost: its access_log_size is too small" in logs.age.trouble
    logs.look()
    assert logs.age.trouble == ""


def test_an_ost_that_was_unmounted_and_came_back(node: Node) -> None:
    log = node.add("lustre-OST0000")
    logs = following(node, SettableClock())
    logs.look()
    log.ended = True
    logs.look()
    assert log.closed
    logs.look()
    assert node.opened == ["lustre-OST0000"] * 2
    (node.folder / "lustre-OST0000").unlink()
    logs.look()
    assert log.closed
    assert "no such log: is this an OSS" in logs.age.trouble


def test_a_log_of_nonsense_is_told_and_let_go(node: Node) -> None:
    log = node.add("lustre-OST0000")
    logs = following(node, SettableClock())
    log.data = b"x" * 65
    logs.look()
    assert "no whole entries" in logs.age.trouble
    assert logs.age.stale(1000.0)


def test_the_table_is_bounded(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_logs, "MOST_FILES", 100)
    log = node.add("lustre-OST0000")
    logs = following(node, SettableClock())
    log.data = b"".join(reads(Fid(0x200000402, n), 1, 1000) for n in range(1, 301))
    logs.look()
    assert len(logs.hot(1000)) == 100
