"""After missing records, known directories are checked again in portions, and no stale entry stays."""

from collections.abc import Iterator

import pytest

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from lustre.filesystem import FileStatus
from tests.tierd.sense.clocks import SettableClock
from tierd.sense.changelogs.follow import (
    ChangelogError,
    ChangelogIngest,
    DirectoryRescan,
    Follower,
    MissingRecordsError,
)
from tierd.sense.changelogs.table import ActivityTable
from tierd.sense.changelogs.tallies import Tally

ROOT, ONE, TWO, THREE = Fid(1, 1), Fid(1, 2), Fid(1, 3), Fid(1, 4)


class Tree:
    """Directories of files, as far as a catch-up asks."""

    def __init__(self) -> None:
        self.directories: dict[str, dict[str, Fid]] = {"/one": {}, "/two": {}, "/three": {}}
        self.requested: list[str] = []
        self.looked_up: list[str] = []

    def path_of(self, fid: Fid, link: int = 0) -> str:
        return {ONE: "/one", TWO: "/two", THREE: "/three"}[fid]

    def mdt_index_of(self, fid: Fid) -> int:
        """Sequence 2 is of the first MDT, 3 of the second; the location of others is not known."""
        if fid.sequence not in {2, 3}:
            raise OSError(5, "not known")
        return fid.sequence - 2

    def entries(self, directory: str) -> Iterator[str]:
        self.requested.append(directory)
        if directory not in self.directories:
            raise FileNotFoundError(2, "gone", directory)
        return iter(list(self.directories[directory]))

    def status(self, path: str) -> FileStatus:
        directory, _, name = path.rpartition("/")
        self.looked_up.append(path)
        if name not in self.directories.get(directory, {}):
            raise FileNotFoundError(2, "gone", path)
        return FileStatus(self.directories[directory][name], 10, 5.0, 5.0, 0, 0, 1)


class World:
    def __init__(self) -> None:
        self.tree = Tree()
        self.table = ActivityTable(self.tree.path_of)
        self.time = 0.0
        self.ingest = ChangelogIngest(self.table, self.tree, lambda: self.time)  # type: ignore[arg-type]
        self.number = 0

    def made(self, parent: Fid, name: str, fid: Fid, job: bytes = b"j.1") -> Iterator[list[Record]]:
        """A file that was created and closed."""
        self.tree.directories[self.tree.path_of(parent)][name] = fid
        for kind in (RecordType.CREATE, RecordType.OPEN, RecordType.CLOSE):
            self.number += 1
            yield [Record(self.number, kind, float(self.number), target=fid, parent=parent, name=name.encode(),
                          job_id=job)]

    def files(self, job: str = "j.1") -> dict[str, list[str]]:
        return {a.directory: sorted(c.path for c in a.candidates) for a in self.table.of_job(job, 0.0)}


def gap() -> Iterator[list[Record]]:
    yield from ()
    raise MissingRecordsError("changelog of MDT0000: records 10 to 20 are missing", ["MDT0000"])


@pytest.fixture
def world() -> World:
    made = World()
    for name, fid in (("a", Fid(2, 1)), ("b", Fid(2, 2))):
        assert made.ingest.take_in(made.made(ONE, name, fid), 1.0) == ""
    assert made.ingest.take_in(made.made(TWO, "c", Fid(2, 3)), 1.0) == ""
    return made


def test_files_renamed_removed_or_made_during_the_gap_are_found(world: World) -> None:
    world.tree.directories["/one"] = {"renamed": Fid(2, 1), "new": Fid(2, 9)}
    assert world.ingest.take_in(gap(), 1.0) == ""
    assert world.files() == {"/one": ["/one/new", "/one/renamed"], "/two": ["/two/c"]}


@pytest.mark.parametrize("now", [None, {"a": Fid(3, 1)}], ids=["no directory", "another directory"])
def test_a_removed_directory_is_forgotten(world: World, now: dict[str, Fid] | None) -> None:
    world.tree.directories.pop("/one")
    if now is not None:
        world.tree.directories["/one"] = now
    world.ingest.take_in(gap(), 1.0)
    assert world.files() == {"/two": ["/two/c"]}


def test_a_rescan_takes_several_cycles_and_no_act_begins_in_unchecked_directories(world: World) -> None:
    world.time = 10.0
    assert world.ingest.take_in(gap(), until=1.0) == ""
    assert world.ingest.gap_begun == ("changelog of MDT0000: records 10 to 20 are missing. tierd lists 2 directories "
                                      "with files of MDT0000 again, and starts no acts there until then")
    assert world.tree.requested == ["/two"]  # where something happened last
    assert world.table.unchecked == {"/one"}
    assert world.ingest.take_in(iter(()), until=1.0) == ""
    assert world.tree.requested == ["/two", "/one"]
    assert world.table.unchecked == frozenset()
    assert world.ingest.gap_closed == ("changelog of MDT0000: records 10 to 20 are missing; 2 of 2 directories checked "
                                       "again; the table is complete again")


def test_an_mdt_that_cannot_be_read_is_reported_beside_a_gap_of_another(world: World) -> None:
    """No act may begin: what happens on that MDT is unknown."""
    def read(mdt: str, after: int) -> bytes:
        if mdt == "MDT0001":
            raise OSError(5, "the device cannot be read")
        return b""

    follower = Follower(read, ["MDT0000", "MDT0001"], SettableClock(), {"MDT0000": 9})
    follower.restart_from_zero("MDT0000")
    assert "MDT0001: [Errno 5] the device cannot be read" in world.ingest.take_in(follower.batches(), 1.0)
    assert "MDT0000: it has restarted" in world.ingest.gap_begun


def test_a_directory_whose_files_are_on_other_mdts_is_not_listed(world: World) -> None:
    assert world.ingest.take_in(world.made(THREE, "x", Fid(3, 1)), 1.0) == ""
    world.time = 10.0
    assert world.ingest.take_in(gap(), until=1.0) == ""
    assert (world.tree.requested, world.tree.looked_up) == ([], ["/three/x"])
    assert world.table.unchecked == {"/one", "/two"}, "the others may have been changed"
    world.ingest.take_in(iter(()), until=100.0)
    assert sorted(world.tree.requested) == ["/one", "/two"]
    assert world.files()["/three"] == ["/three/x"]


def test_a_directory_above_may_have_been_renamed(world: World) -> None:
    world.ingest.take_in(world.made(THREE, "x", Fid(3, 1)), 1.0)
    world.tree.directories["/three"] = {"x": Fid(3, 9)}
    world.ingest.take_in(gap(), until=100.0)
    assert "/three" not in world.files()


def test_a_directory_is_listed_if_the_mdt_of_a_file_is_not_known(world: World) -> None:
    world.ingest.take_in(world.made(THREE, "x", Fid(3, 1)), 1.0)
    world.ingest.take_in(world.made(THREE, "y", Fid(7, 1)), 1.0)
    world.ingest.take_in(gap(), until=100.0)
    assert "/three" in world.tree.requested


def test_a_second_gap_of_another_mdt_forgets_nothing_of_the_first(world: World) -> None:
    def other() -> Iterator[Tally]:
        yield from ()
        raise MissingRecordsError("changelog of MDT0001: records 3 to 3 are missing", ["MDT0001"])

    world.ingest.take_in(world.made(THREE, "x", Fid(3, 1)), 1.0)
    world.time = 10.0
    world.ingest.take_in(gap(), until=1.0)
    world.ingest.take_in(other(), until=100.0)
    assert sorted(world.tree.requested) == ["/one", "/three", "/two"]


def test_a_rescan_waits_while_the_changelog_cannot_be_read(world: World) -> None:
    def blind() -> Iterator[Tally]:
        yield from ()
        raise ChangelogError("changelog of MDT0000: Permission denied")

    world.time = 10.0
    world.ingest.take_in(gap(), until=1.0)
    assert world.ingest.take_in(blind(), until=1.0) == "changelog of MDT0000: Permission denied"
    assert world.ingest.take_in(iter(()), until=1.0) == ""


def test_only_the_latest_directories_are_scanned_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierd.sense.changelogs.follow.MAX_DIRECTORIES", 1)
    DirectoryRescan(world.table, world.tree, lambda: 0.0, ["MDT0000"]).scan(1.0)  # type: ignore[arg-type]
    assert world.files() == {"/two": ["/two/c"]}


def test_records_after_the_gap_are_known_too(world: World) -> None:
    def records() -> Iterator[list[Record]]:
        yield from world.made(TWO, "d", Fid(2, 4))
        raise MissingRecordsError("a gap before them", ["MDT0000"])

    assert world.ingest.take_in(records(), 1.0) == ""
    assert world.files()["/two"] == ["/two/c", "/two/d"]
