"""The walk that finds files by the OSTs of their objects."""

import errno
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.fid import Fid
from lustre.filesystem import FileStatus
from lustre.layout.model import Component, Layout, StripeObject
from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.settings import recorded_test_bed
from tierd.model import Facts, TargetFill
from tierd.sense.facts import FactsCollector
from tierd.sense.file_walks import UnevenPools, stored_file, walk

names = st.sampled_from(["a", "b", "a-b", "c", ".d", "ä"])
trees = st.lists(st.lists(names, max_size=4).map(tuple), min_size=1, max_size=12).map(
    lambda paths: {path[:n] for path in paths for n in range(len(path) + 1)})


@dataclass
class Tree:
    """Directories; each has the file ``f`` with one object on the OST of its depth."""

    directories: set[tuple[str, ...]]
    refused: set[str] = field(default_factory=set)
    examined: Counter[str] = field(default_factory=Counter)

    def _parts(self, path: str) -> tuple[str, ...]:
        if path in self.refused:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        parts = tuple(part for part in path.split("/") if part)
        if parts not in self.directories:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return parts

    def subdirectories(self, directory: str) -> Sequence[str]:
        here = self._parts(directory)
        return [path[-1] for path in self.directories if len(path) == len(here) + 1 and path[:-1] == here]

    def entries(self, directory: str) -> Iterator[str]:
        return iter([*self.subdirectories(directory), "f"])

    def layout(self, path: str) -> Layout | None:
        self.examined[path] += 1
        depth = path.count("/")
        return Layout((Component(pool="hdd", objects=(StripeObject(depth, Fid(1, 1)),)),), composite=False)

    def status(self, path: str) -> FileStatus:
        return FileStatus(Fid(2, sum(path.encode())), 1 << 20, 5.0, 7.0, 0, 0, 1)


def visited(tree: Tree, after: str = "", tops: Sequence[str] = ("/",)) -> list[tuple[str, str]]:
    return [(visit.directory, visit.name) for visit in walk(tree, tops, after)]  # type: ignore[arg-type]


@given(trees)
def test_every_file_is_visited_once_before_the_end_of_its_directory(directories: set[tuple[str, ...]]) -> None:
    seen = visited(Tree(directories))
    assert sorted(directory for directory, name in seen if name) == sorted(
        "/" + "/".join(parts) for parts in directories)
    assert [directory for directory, name in seen if name] == [directory for directory, name in seen if not name]


@given(trees, st.data())
def test_a_walk_continues_after_any_directory(directories: set[tuple[str, ...]], data: st.DataObject) -> None:
    tree = Tree(directories)
    whole = visited(tree)
    ends = [n for n, (_, name) in enumerate(whole) if not name]
    at = data.draw(st.sampled_from(ends))
    assert visited(tree, after=whole[at][0]) == whole[at + 1:]
    tree.directories.discard(tuple(part for part in whole[at][0].split("/") if part) or ("none",))
    rest = [visit for visit in whole[at + 1:] if not visit[0].startswith(whole[at][0].rstrip("/") + "/")]
    if whole[at][0] != "/":
        assert visited(tree, after=whole[at][0]) == rest, "also if that directory was removed since"


def test_directories_that_cannot_be_read_are_counted_and_removed_ones_are_not() -> None:
    tree = Tree({(), ("a",), ("b",)}, {"/b"})
    left: list[tuple[str, str]] = []
    found = walk(tree, ("/", "/gone"), leave=lambda place, why: left.append((place, why.sentence)))  # type: ignore[arg-type]
    assert {visit.directory for visit in found} == {"/", "/a"}
    assert left == [("/b", "Permission denied")]


def test_a_file_is_found_by_its_objects() -> None:
    tree = Tree({(), ("a",)})
    found = stored_file(tree, "/a/f", {2})  # type: ignore[arg-type]
    assert found is not None
    assert (found.path, found.size_bytes, found.pools, found.read_at) == ("/a/f", 1 << 20, ("hdd",), 7.0)
    assert stored_file(tree, "/a/f", {1, 3}) is None  # type: ignore[arg-type]


def test_the_rate_of_examined_files_is_limited_and_the_walk_begins_again() -> None:
    tree = Tree({(), *((f"d{n:02d}",) for n in range(30))})
    uneven = UnevenPools(tree, ("/",), files_per_second=2.0)  # type: ignore[arg-type]
    uneven.step({1, 2}, 100.0)
    first = tree.examined.total()
    uneven.step({1, 2}, 105.0)
    assert tree.examined.total() - first <= 10
    for n in range(20):
        uneven.step({1, 2}, 110.0 + 5 * n)
    assert len(uneven.files) == 31
    assert max(tree.examined.values()) > 1
    uneven.forget()
    assert uneven.files == ()


def test_links_and_directories_of_a_simulated_file_system_are_no_files() -> None:
    cluster = Cluster(recorded_test_bed())
    cluster.make_file("/proj/a", 1 << 20)
    (index,) = (one.ost_index for part in SimulatedFilesystem(cluster).layout("/proj/a").components
                for one in part.objects)
    filesystem = SimulatedFilesystem(cluster)
    found = [visit.path for visit in walk(filesystem, ("/",)) if visit.name
             and stored_file(filesystem, visit.path, {index})]
    assert found == ["/proj/a"]
    with pytest.raises(FileNotFoundError):
        stored_file(filesystem, "/proj/none", {index})


def test_no_file_is_examined_where_only_a_pool_of_flash_and_disks_is_uneven() -> None:
    fill = {f"l-OST{n:04x}": TargetFill(100, 90 if n < 2 else 20) for n in range(6)}
    pools = {"flash": tuple(fill)[:2], "hdd": tuple(fill)[2:], "all": tuple(fill)}
    stepped: list[object] = []
    uneven = cast(UnevenPools, SimpleNamespace(forget=lambda: None, files=(), step=lambda *step: stepped.append(step)))
    FactsCollector._resident(uneven, Facts(pools=pools, fill=fill), 0.0)
    assert stepped == []
    FactsCollector._resident(uneven, Facts(pools=pools, fill=fill | {"l-OST0005": TargetFill(100, 60)}), 0.0)
    assert stepped == [({2, 3, 4}, 0.0)]
