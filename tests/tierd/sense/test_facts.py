"""What is gathered for policies: room and its growth, layouts, shared files, files on flash."""

import errno
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from lustre.changelog.record import Record, RecordType
from lustre.errors import NotLustre
from lustre.fid import Fid
from lustre.filesystem import FileStatus, MetadataSpace, Space
from lustre.layout.directory import DefaultStriping, DirectoryStripes
from lustre.layout.model import Component, Layout
from lustre.parameters import Roots, Tree
from tierd.model import ClientLoad, MetadataTargets, NamespaceLoad, SharedRuns, Window
from tierd.sense.changelogs.table import ActivityTable
from tierd.sense.facts import FactsCollector, LearntRuns
from tierd.sense.file_walks import Inventory
from tierd.sense.parameters import data_limits, metadata_spaces

GB = 10**9
ON_FLASH = Layout((Component(pool="flash"),), composite=False)
ON_DISK = Layout((Component(pool="hdd"),), composite=False)
DIRECTORY = Fid(0x200000401, 1, 0)


@dataclass
class Files:
    """The part of the port that these tests use, over a few names."""

    used: float = 0.3
    files: dict[str, tuple[FileStatus, Layout]] = field(default_factory=dict)
    broken: bool = False
    requested: int = 0
    fsname: str = "l"

    def pools(self) -> Mapping[str, tuple[str, ...]]:
        return {"flash": ("l-OST0000",), "hdd": ("l-OST0001",)}

    def space(self) -> Mapping[str, Space]:
        if self.broken:
            raise OSError(errno.ENODEV, "No such device")
        return {t: Space(100 * GB, round(100 * GB * (1 - self.used)), round(100 * GB * (1 - self.used)))
                for t in ("l-OST0000", "l-OST0001")}

    def entries(self, directory: str) -> Iterator[str]:
        found = [path.rpartition("/")[2] for path in self.files if path.rpartition("/")[0] == directory]
        if not found:
            raise FileNotFoundError(directory)
        yield from sorted(found)

    def status(self, path: str) -> FileStatus:
        self.requested += 1
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path][0]

    def layout(self, path: str) -> Layout | None:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path][1]

    def path_of(self, fid: Fid, link: int = 0) -> str:
        return "/d"

    def metadata_space(self) -> dict[str, MetadataSpace]:
        return {"l-MDT0000": MetadataSpace(1000, 800, 100, 50)}

    def directory_stripes(self, directory: str) -> DirectoryStripes:
        return DirectoryStripes(0, len(directory) % 2)

    def default_striping(self, directory: str) -> DefaultStriping | None:
        return None

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} is not to be asked for here")


def status(number: int, atime: float, size: int = GB, links: int = 1) -> FileStatus:
    return FileStatus(Fid(0x200000401, number, 0), size, 5.0, atime, 0, 0, links)


def inventory(files: Files) -> Inventory:
    return Inventory(files, {"flash", "nvme"}, lambda: frozenset({"/d", "/gone"}))


def gatherer(files: Files, table: ActivityTable | None = None, **more: Any) -> FactsCollector:
    return FactsCollector(files, table or ActivityTable(files.path_of), inventory(files), {"flash", "nvme"}, **more)


def test_the_fill_rate_of_a_target_is_the_change_of_its_free_space_also_after_the_clock_was_set_back() -> None:
    files = Files(used=0.3)
    gather = gatherer(files)
    for now in (1e9, 1000.0):
        assert gather.gather(now).fill["l-OST0000"].growth_bytes_per_second == 0
    files.used = 0.4
    fill = gather.gather(1100.0).fill["l-OST0000"]
    assert (fill.used, fill.growth_bytes_per_second) == (pytest.approx(0.4), pytest.approx(0.1e9))


def test_unreadable_facts_are_empty_and_reported() -> None:
    files = Files(broken=True)
    gather = gatherer(files, metadata_targets=2)
    facts = gather.gather(1000.0)
    assert (dict(facts.fill), dict(facts.pools), facts.metadata_targets) == ({}, {}, 2)
    assert gather.faults == {"room": "room: [Errno 19] No such device"}
    files.broken = False
    assert gather.gather(1030.0).fill
    assert gather.faults == {}


def test_clients_of_other_file_systems_are_left_out() -> None:
    load = ClientLoad("n1", "/m", "l", 1000.0, 30.0)

    class Two:
        requested: ClassVar[list[Mapping[str, str]]] = []
        faults: ClassVar[dict[str, str]] = {"n2": "http://n2: no answer"}

        def __call__(self, pools: Mapping[str, str]) -> list[ClientLoad]:
            self.requested.append(pools)
            return [load, replace(load, fsname="home")]

    gather = gatherer(Files(), clients=Two())
    assert gather.gather(1000.0).clients == (load,)
    assert gather.faults == {"clients": "clients: http://n2: no answer"}
    assert Two.requested == [{"l-OST0000": "flash", "l-OST0001": "hdd"}]


def test_flash_is_walked_only_while_it_is_short() -> None:
    files = Files(used=0.5, files={f"/d/f{n}": (status(n, atime=10.0 * n), ON_FLASH) for n in range(5)})
    gather = gatherer(files)
    assert gather.gather(1000.0).stored == ()
    assert files.requested == 0
    files.used = 0.7
    assert [(f.path, f.read_at) for f in gather.gather(1030.0).stored] == [
        ("/d/f0", 5.0), ("/d/f1", 10.0), ("/d/f2", 20.0), ("/d/f3", 30.0), ("/d/f4", 40.0)]
    files.used = 0.3
    assert gather.gather(1060.0).stored == ()


def test_flash_of_a_scope_that_is_short_is_walked_too() -> None:
    on_nvme = Layout((Component(pool="nvme"),), composite=False)
    files = Files(used=0.7, files={"/d/f1": (status(1, atime=10.0), on_nvme), "/d/f2": (status(2, atime=1.0), ON_DISK)})
    files.pools = lambda: {"nvme": ("l-OST0000",), "hdd": ("l-OST0001",)}  # type: ignore[method-assign]
    assert [file.path for file in gatherer(files).gather(1000.0).stored] == ["/d/f1"]


def test_pools_whose_targets_all_report_flash_are_known_from_the_reading_on() -> None:
    gather = gatherer(Files())
    gather.in_background = True
    gather.gather(1000.0)
    assert gather(1000.0).flash == frozenset()
    gather.media.learn_devices({target: name == "flash" for name, targets in gather.filesystem.pools().items()
                                for target in targets})
    assert gather(1005.0).flash == {"flash"}  # the next collection is 10 s later
    gather.media.learn_pools({"flash": ("l-OST0000", "l-OST0002"), "hdd": ("l-OST0001",)})
    assert gather(1010.0).flash == {"flash"}, "the exporter of the second target has not answered yet"


def test_pools_are_known_at_a_start_while_an_mdt_does_not_answer() -> None:
    class Waiting(LearntRuns):
        def learn(self, *_: object) -> tuple[SharedRuns, ...]:
            known.append({*gather.known.pools})
            return ()

    known: list[Collection[str]] = []
    gather = gatherer(Files(), runs=Waiting())
    gather.gather(1000.0)
    assert known == [{"flash", "hdd"}]


def test_the_walk_continues_and_begins_again() -> None:
    files = Files(files={f"/d/f{n}": (status(n, atime=100.0), ON_FLASH) for n in range(5)})
    walk = inventory(files)
    for most, seen in ((2, 2), (2, 4), (2, 5), (2, 5)):
        walk.step(most)
        assert len(walk.files) == seen
    files.files["/d/f0"] = files.files["/d/f0"][0], ON_DISK
    for _ in range(3):
        walk.step(2)
    assert {f.path for f in walk.files} == {f"/d/f{n}" for n in range(1, 5)}


def test_a_step_asks_for_few_directories_and_forgets_those_that_were_removed() -> None:
    class Unmounted(Files):
        def entries(self, directory: str) -> Iterator[str]:
            if directory != "/d":
                raise NotLustre(errno.ENOTTY, "not on a mounted Lustre file system", directory)
            return super().entries(directory)

    places = {"/d", *(f"/removed{number}" for number in range(1000))}
    for files, left in ((Files(), {"/d"}), (Unmounted(), set(places))):
        files.files["/d/f"] = status(1, 1.0), ON_FLASH
        known = set(places)
        walk = Inventory(files, {"flash"}, lambda known=known: known, removed=known.discard)  # type: ignore[misc]
        walk.step(100)
        assert len(known) >= len(places) - 100
        for _ in range(11):
            walk.step(100)
        assert known == left
        assert [file.path for file in walk.files] == ["/d/f"]


def test_files_with_several_names_or_without_bytes_are_not_listed() -> None:
    files = Files(files={"/d/linked": (status(1, 1.0, links=2), ON_FLASH), "/d/disk": (status(3, 1.0), ON_DISK),
                         "/d/empty": (status(2, 1.0, size=0), ON_FLASH)})
    walk = inventory(files)
    walk.step()
    assert walk.files == ()


def record(kind: RecordType, index: int, target: Fid, job: bytes = b"mpi.5") -> Record:
    return Record(index=index, type=kind, time=1000.0, target=target, parent=DIRECTORY, name=b"check", job_id=job)


def test_files_that_several_clients_have_open_come_with_their_layout() -> None:
    files = Files(files={"/d/check": (status(7, 1.0), ON_DISK), "/d": (status(1, 1.0), ON_FLASH)})
    table = ActivityTable(files.path_of)
    target = Fid(0x200000401, 7, 0)
    table.add([[record(RecordType.CREATE, 1, target), record(RecordType.OPEN, 2, target)]])
    gather = gatherer(files, table)
    counted(table, 1000.0, "mpi.5", opens=18, closes=2)
    (shared,) = gather.gather(1000.0).shared_files
    assert (shared.job, shared.path, shared.openers, shared.layout) == ("mpi.5", "/d/check", 16, ON_DISK)
    table.add([[record(RecordType.OPEN, 3, target)]])  # in another mode, so that each client counts twice
    counted(table, 1010.0, "mpi.5", opens=16)
    assert gather.gather(1010.0).shared_files == (shared,)
    table.add([[record(RecordType.CLOSE, n, target) for n in (4, 5)]])
    counted(table, 1020.0, "mpi.5", closes=32)
    assert gather.gather(1030.0).shared_files == ()


def counted(table: ActivityTable, end: float, job: str, opens: int = 0, closes: int = 0) -> None:
    """A window with these operations in the job statistics of the MDTs, which count each client's."""
    table.note_shared(Window(end - 5, end, {}, {job: NamespaceLoad(job, opens, closes)}))


def test_runs_on_shared_files_are_learnt_by_directory_and_user() -> None:
    files = Files(files={f"/d/{name}": (replace(status(7, 1.0), uid=uid), ON_DISK) for name, uid in (
        ("one", 5), ("two", 5), ("other", 6))})
    table = ActivityTable(files.path_of)
    gather = gatherer(files, table)

    def ran(number: int, name: bytes, openers: int, begin: float) -> None:
        def of(kind: RecordType, time: float) -> Record:
            return Record(number, kind, time, target=Fid(0x200000401, number, 0), parent=DIRECTORY, name=name,
                          job_id=b"mpi.%d" % number)
        table.add([[of(RecordType.CREATE, begin), of(RecordType.OPEN, begin)]])
        counted(table, begin, f"mpi.{number}", opens=openers)
        table.add([[of(RecordType.CLOSE, begin + 40)]])
        counted(table, begin + 40, f"mpi.{number}", closes=openers)

    ran(10, b"one", 16, 1000.0)
    ran(11, b"other", 8, 1010.0)
    ran(12, b"two", 12, 1100.0)
    ran(13, b"two", 3, 1200.0)
    other, mine = gather.gather(1300.0).shared_runs
    assert (other.file.path, other.runs, other.seconds) == ("/d/other", 1, 40.0)
    assert (mine.file.job, mine.file.path, mine.file.openers, mine.runs, mine.seconds) == (
        "mpi.12", "/d/two", 12, 2, 80.0)
    assert gather.gather(1330.0).shared_runs == (other, mine)


def test_default_layouts_of_busy_directories() -> None:
    files = Files(files={"/d": (status(1, 1.0), ON_FLASH)})
    table = ActivityTable(files.path_of)
    gather = gatherer(files, table)
    gather.gather(1000.0)
    table.add([[record(RecordType.CREATE, n, Fid(0x200000401, n, 0)) for n in range(10, 20)]])
    facts = gather.gather(1030.0)
    assert [(d.directory, d.creates) for d in facts.directories] == [("/d", 10)]
    assert facts.default_layouts == {"/d": ON_FLASH}
    assert facts.directory_seconds == 30.0


def test_files_outgrow_the_default_layout_of_their_own_time_only() -> None:
    files = Files(files={"/d": (status(1, 1.0), ON_FLASH)})
    table = ActivityTable(files.path_of)
    gather = gatherer(files, table)

    def grown(numbers: range, kind: RecordType, time: float) -> None:
        job = b"" if kind is RecordType.LAYOUT else b"mpi.5"
        table.add([[Record(n, kind, time, target=Fid(0x200000401, n, 0), parent=DIRECTORY, name=b"check", job_id=job)
                   for n in numbers]])

    gather.gather(1000.0)
    grown(range(100, 150), RecordType.CREATE, 1005.0)
    grown(range(100, 130), RecordType.LAYOUT, 1006.0)
    (before,) = gather.gather(1030.0).directories
    assert (before.creates, before.outgrown) == (50, 30)
    files.files["/d"] = status(1, 1.0), ON_DISK
    assert gather.gather(1060.0).directories == (), "the directory has another default layout"
    grown(range(130, 150), RecordType.LAYOUT, 1070.0)
    assert gather.gather(1090.0).directories == (), "these files were made before"
    grown(range(200, 240), RecordType.CREATE, 1095.0)
    grown(range(200, 202), RecordType.LAYOUT, 1096.0)
    (since,) = gather.gather(1120.0).directories
    assert (since.creates, since.outgrown, table.of_job("mpi.5", 0.0)[0].outgrown) == (40, 2, 2)


@pytest.mark.parametrize(("nid", "asked"), [("", [{"j.1"}]), ("10.0.0.1@tcp", [])])
def test_a_scheduler_is_asked_for_nodes_only_where_the_changelog_names_no_clients(
        nid: str, asked: list[set[str]]) -> None:
    files, requests = Files(), list[set[str]]()
    table = ActivityTable(files.path_of)

    def job_nodes(jobs: Collection[str]) -> Mapping[str, int]:
        requests.append(set(jobs))
        return dict.fromkeys(jobs, 16)

    gather = gatherer(files, table, job_nodes=job_nodes, busy_per_second=1.0)
    gather.gather(1000.0)
    table.add([[Record(n, RecordType.CREATE, 1001.0, target=Fid(0x200000403, n), parent=DIRECTORY, name=b"f",
                      job_id=b"j.1", nid=nid) for n in range(500)]])
    facts = gather.gather(1100.0)
    assert requests == asked
    assert facts.job_nodes == ({} if nid else {"j.1": 16})
    assert facts.directories[0].clients == ((nid,) if nid else ())


def test_room_of_the_mdts_is_that_of_the_fullest(capture: Callable[[str], Path]) -> None:
    root = capture("2.17.57/tree-idle")
    tree = Tree(Roots.of(root / "proc", root / "sys"))
    spaces = metadata_spaces(tree, "lustre")
    assert len(spaces) == 2
    assert 0.5 < MetadataTargets(spaces).free_share < 1
    assert metadata_spaces(tree, "other") == ()
    assert data_limits(tree) == {"lustre-MDT0000": 1 << 20, "lustre-MDT0001": 1 << 20}
