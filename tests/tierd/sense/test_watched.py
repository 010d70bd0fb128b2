"""The single-client mode over a real directory: what a changelog would have recorded. And inotify as the kernel has
it: names of any bytes, watches that end, a queue that runs over."""

import logging
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from lustre.filesystem import FileStatus
from tests.tierd.sense.changelogs.test_follow import records_of
from tierd.clock import SystemClock
from tierd.sense import watched
from tierd.sense.changelogs.follow import ChangelogError
from tierd.sense.changelogs.table import ActivityTable
from tierd.sense.watched import CLOSE_WRITE, CREATE, OPEN, Event, InotifyError, WatchedDirectories, Watcher, watch_error

Found = TypeVar("Found")


@dataclass
class Directory:
    """Stands in for the file system: FIDs are inode numbers."""

    root: Path

    def status(self, path: str) -> FileStatus:
        found = os.lstat(f"{self.root}{path}")
        return FileStatus(Fid(0x200000402, found.st_ino & 0xFFFFFFFF), found.st_size, found.st_mtime, found.st_atime,
                          found.st_uid, found.st_gid, found.st_nlink, is_directory=Path(f"{self.root}{path}").is_dir())

    def path_of(self, fid: Fid, link: int = 0) -> str:
        for folder, _, names in os.walk(self.root):
            for path in (folder, *(f"{folder}/{name}" for name in names)):
                if os.lstat(path).st_ino & 0xFFFFFFFF == fid.object_id:
                    return path.removeprefix(str(self.root)) or "/"
        raise FileNotFoundError(str(fid))


@dataclass
class Site:
    root: Path
    jobs: set[str] = field(default_factory=lambda: {"mdt_small.1001", "ior.1002"})
    patterns: dict[str, str] = field(default_factory=lambda: {"/proj": "mdt_small.*"})
    watcher: Watcher = field(default_factory=lambda: Watcher(SystemClock().now))

    def begin(self) -> WatchedDirectories:
        filesystem = Directory(self.root)
        return WatchedDirectories(self.watcher, filesystem, str(self.root), self.patterns,  # type: ignore[arg-type]
                                  lambda: self.jobs)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    (tmp_path / "proj" / "deep").mkdir(parents=True)
    made = Site(tmp_path)
    yield made
    made.watcher.close()


@pytest.fixture
def watcher() -> Iterator[Watcher]:
    made = Watcher(lambda: 7.0)
    yield made
    made.close()


def awaited(take: Callable[[], Iterable[Found]], count: int) -> list[Found]:
    """At least so many events or records: they come through a thread."""
    clock = SystemClock()
    until = clock.now() + 20
    found: list[Found] = []
    while len(found) < count:
        found += take()
        assert clock.now() < until, found
        clock.wait(0.01)
    return found


def taken(watcher: Watcher) -> list[Event]:
    events, lost = watcher.take()
    assert not lost
    return events


def tried(of: WatchedDirectories) -> list[bool]:
    with suppress(ChangelogError):
        list(records_of(of))
    return []


def kinds(records: list[Record]) -> list[tuple[str, bytes]]:
    return [(r.type.name, r.name) for r in records]


def test_files_created_and_closed_are_activity_of_their_job(site: Site) -> None:
    of = site.begin()
    for number in range(3):
        (site.root / f"proj/f{number}").write_bytes(b"x" * 4096)
    (site.root / "proj/deep/g").write_bytes(b"x")
    records = awaited(lambda: records_of(of), 12)
    assert kinds(records[:3]) == [("CREATE", b"f0"), ("OPEN", b"f0"), ("CLOSE", b"f0")]
    table = ActivityTable(Directory(site.root).path_of)
    table.add([records])
    first, deep = table.of_job("mdt_small.1001", 0.0)
    assert (first.directory, first.creates, first.closes) == ("/proj", 3, 3)
    assert {c.path for c in first.candidates} == {"/proj/f0", "/proj/f1", "/proj/f2"}
    assert (deep.directory, deep.creates) == ("/proj/deep", 1)


def test_new_directories_are_watched_and_their_present_files_reported(site: Site) -> None:
    of = site.begin()
    (site.root / "aside/inner").mkdir(parents=True)
    (site.root / "aside/inner/old").touch()
    (site.root / "aside").rename(site.root / "proj/new")
    assert kinds(awaited(lambda: records_of(of), 1)) == [("CREATE", b"old")]
    (site.root / "proj/new/inner/later").touch()
    assert ("CREATE", b"later") in kinds(awaited(lambda: records_of(of), 3))


def test_a_file_written_under_another_name_and_renamed_is_one_file(site: Site) -> None:
    of = site.begin()
    (site.root / "proj/.tmp").write_bytes(b"x")
    first = awaited(lambda: records_of(of), 3)
    (site.root / "proj/.tmp").rename(site.root / "proj/done")
    (renamed,) = awaited(lambda: records_of(of), 1)
    assert (renamed.type, renamed.source, renamed.name) == (RecordType.RENAME, first[0].target, b"done")
    (site.root / "proj/done").unlink()
    assert awaited(lambda: records_of(of), 1)[0].type is RecordType.UNLINK


@pytest.mark.parametrize(("pattern", "jobs", "job"), [
    ("mdt_small.*", {"mdt_small.1001", "mdt_small.1003"}, ""),
    ("", {f"python.{os.getuid()}", "ior.4294967"}, f"python.{os.getuid()}")])
def test_an_event_is_of_the_one_job_that_fits_by_pattern_or_user_id(
        site: Site, pattern: str, jobs: set[str], job: str) -> None:
    site.patterns, site.jobs = {"/proj": pattern}, jobs
    of = site.begin()
    (site.root / "proj/f").touch()
    assert {r.job_id for r in awaited(lambda: records_of(of), 3)} == {job.encode()}


def test_events_of_volatile_files_are_ignored(site: Site) -> None:
    of = site.begin()
    (site.root / "proj/.\x0c\x13\x14\x12:VOLATILE:0000:1").touch()
    (site.root / "proj/after").touch()
    assert {name for _, name in kinds(awaited(lambda: records_of(of), 3))} == {b"after"}


def test_events_that_were_lost_are_reported(site: Site) -> None:
    of = site.begin()
    answers = iter([(list[Event](), "the kernel's queue ran over"), ([], "")])
    site.watcher.take = lambda: next(answers)  # type: ignore[method-assign]
    with pytest.raises(ChangelogError, match="events were lost: the kernel's queue ran over"):
        list(records_of(of))
    assert list(records_of(of)) == []


def test_a_directory_that_was_removed_is_reported_as_long_as_it_is_missing(site: Site) -> None:
    of = site.begin()
    (site.root / "proj/deep").rmdir()
    (site.root / "proj").rmdir()
    awaited(lambda: [] if site.watcher.folders else [True], 1)
    for _ in range(2):
        with pytest.raises(ChangelogError, match="'/proj' is no longer watched"):
            list(records_of(of))


def test_directories_that_are_gone_or_renamed_count_no_longer(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "MAX_DIRECTORIES", 3)
    of = site.begin()
    for _ in range(4):
        (site.root / "proj/brief").mkdir()
        (site.root / "proj/brief").rmdir()
    (site.root / "proj/deep").rename(site.root / "aside")
    (site.root / "proj/new/inner").mkdir(parents=True)
    (site.root / "proj/new").rename(site.root / "proj/newer")
    (site.root / "proj/newer/inner/f").touch()
    assert {r.name for r in awaited(lambda: records_of(of), 1)} == {b"f"}
    awaited(lambda: [True] if len(site.watcher.folders) == len(site.watcher._manager.watches) == 3 else [], 1)
    (site.root / "proj/newer/more").mkdir()
    with pytest.raises(ChangelogError, match="more than 3 directories"):
        awaited(lambda: records_of(of), 1)
    (site.root / "proj/newer/inner").rename(site.root / "inner")
    (site.root / "proj/newer/more/g").touch()
    awaited(lambda: [True] if f"{site.root}/proj/newer/more" in site.watcher.folders else tried(of), 1)
    assert list(records_of(of)) == []
    (site.root / "proj").rename(site.root / "old")
    with pytest.raises(ChangelogError, match="'/proj' is no longer watched: it was removed, renamed"):
        awaited(lambda: records_of(of), 1)


def test_a_deep_tree_ends_no_daemon(site: Site) -> None:
    """Any user can make one, and move it into a watched directory. Python allows a thousand nested calls."""
    places = [f"{site.root}/new{'/a' * depth}" for depth in range(1000)]
    for place in places:
        os.mkdir(place)
    Path(f"{places[-1]}/file").touch()
    of = site.begin()
    os.rename(places[0], site.root / "proj/new")
    try:
        assert kinds(awaited(lambda: records_of(of), 1)) == [("CREATE", b"file")]
        site.begin()
        assert len(site.watcher.folders) == 1002
    finally:  # shutil.rmtree could not
        os.rename(site.root / "proj/new", places[0])
        os.unlink(f"{places[-1]}/file")
        for place in reversed(places):
            os.rmdir(place)


def test_a_missing_directory_prevents_the_start(site: Site) -> None:
    site.patterns = {"/none": ""}
    with pytest.raises(InotifyError, match=r"/none cannot be watched: No such file"):
        site.begin()


def test_events_of_files_with_any_name(tmp_path: Path, watcher: Watcher) -> None:
    watcher.add(str(tmp_path))
    for name in (b"plain", b"\xff\xfe", "grün".encode(), b"a\nb"):
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
            file.write(b"x")
    found = awaited(lambda: taken(watcher), 12)
    assert [(os.fsencode(e.name), e.mask) for e in found[:6]] == [
        (b"plain", CREATE), (b"plain", OPEN), (b"plain", CLOSE_WRITE),
        (b"\xff\xfe", CREATE), (b"\xff\xfe", OPEN), (b"\xff\xfe", CLOSE_WRITE)]
    assert {(e.folder, e.time) for e in found} == {(str(tmp_path), 7.0)}
    assert watcher.folders == {str(tmp_path)}


def test_an_overflowed_queue_is_reported_once(watcher: Watcher) -> None:
    watcher._take(struct.pack("iIII", -1, 0x4000, 0, 0))
    assert watcher.take() == ([], "the kernel's queue overflowed (fs.inotify.max_queued_events)")
    assert watcher.take() == ([], "")


def test_events_nobody_takes_do_not_fill_the_memory(tmp_path: Path, watcher: Watcher,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "MAX_EVENTS", 5)
    watcher.add(str(tmp_path))
    watcher._take(struct.pack("iIII", 1, CREATE, 0, 0) * 6)
    events, lost = watcher.take()
    assert len(events) == 5
    assert lost == "more than 5 events arrived before they were read"


def test_a_directory_that_cannot_be_watched_says_why(tmp_path: Path, watcher: Watcher) -> None:
    (tmp_path / "file").touch()
    for name, words in (("none", "No such file or directory"), ("file", "Not a directory")):
        with pytest.raises(InotifyError, match=words):
            watcher.add(str(tmp_path / name))
    with pytest.raises(InotifyError, match="its name is not text"):
        watcher.add(os.fsdecode(b"/\xff"))
    assert "raise the sysctl fs.inotify.max_user_watches" in watch_error("(ENOSPC)", "/x")


def test_children_do_not_inherit_it_and_logging_is_as_it_was(watcher: Watcher) -> None:
    assert not os.get_inheritable(watcher._descriptor)
    assert logging.getLogger("pyinotify").handlers == []
