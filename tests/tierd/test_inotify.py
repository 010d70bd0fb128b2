"""inotify as the kernel has it: names of any bytes, watches that end, a queue that runs over."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tierd import inotify
from tierd.clock import SystemClock
from tierd.inotify import CLOSE_WRITE, CREATE, FILES, OPEN, Event, InotifyError, Watcher, watch_error


@pytest.fixture
def watcher() -> Iterator[Watcher]:
    made = Watcher(lambda: 7.0)
    yield made
    made.close()


def awaited(watcher: Watcher, count: int) -> list[Event]:
    """At least so many events: they come through a thread."""
    clock = SystemClock()
    until = clock.now() + 20
    found: list[Event] = []
    while len(found) < count:
        events, lost = watcher.take()
        assert not lost
        found += events
        assert clock.now() < until, found
        clock.wait(0.01)
    return found


def test_events_of_files_with_any_name(tmp_path: Path, watcher: Watcher) -> None:
    watcher.add(str(tmp_path), FILES)
    for name in (b"plain", b"\xff\xfe", "grün".encode(), b"a\nb"):
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
            file.write(b"x")
    found = awaited(watcher, 12)
    assert [(os.fsencode(e.name), e.mask) for e in found[:6]] == [
        (b"plain", CREATE), (b"plain", OPEN), (b"plain", CLOSE_WRITE),
        (b"\xff\xfe", CREATE), (b"\xff\xfe", OPEN), (b"\xff\xfe", CLOSE_WRITE)]
    assert {(e.folder, e.time) for e in found} == {(str(tmp_path), 7.0)}
    assert watcher.folders == {str(tmp_path)}


def test_a_directory_that_goes_is_no_longer_watched(tmp_path: Path, watcher: Watcher) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    watcher.add(str(folder), FILES)
    folder.rmdir()
    clock = SystemClock()
    until = clock.now() + 20
    while watcher.folders:
        assert clock.now() < until
        clock.wait(0.01)


def test_a_queue_that_ran_over_is_reported_once(watcher: Watcher) -> None:
    watcher._take(struct.pack("iIII", -1, 0x4000, 0, 0))
    assert watcher.take() == ([], "the kernel's queue overflowed (fs.inotify.max_queued_events)")
    assert watcher.take() == ([], "")


def test_events_nobody_takes_do_not_fill_the_memory(tmp_path: Path, watcher: Watcher,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inotify, "MAX_EVENTS", 5)
    watcher.add(str(tmp_path), FILES)
    watcher._take(struct.pack("iIII", 1, CREATE, 0, 0) * 6)
    events, lost = watcher.take()
    assert len(events) == 5
    assert lost == "more than 5 events came before they were read"


def test_a_directory_that_cannot_be_watched_says_why(tmp_path: Path, watcher: Watcher) -> None:
    (tmp_path / "file").touch()
    for name, words in (("none", "No such file or directory"), ("file", "Not a directory")):
        with pytest.raises(InotifyError, match=words):
            watcher.add(str(tmp_path / name), FILES)
    assert "raise the sysctl fs.inotify.max_user_watches" in watch_error(errno.ENOSPC, "/x")


def test_children_do_not_inherit_it(watcher: Watcher) -> None:
    assert not os.get_inheritable(watcher._descriptor)
