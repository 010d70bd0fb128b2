"""A metadata server is away, and calls into the file system wait. tierd reports it, and systemd does not end it."""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tierd.act.gate_world import FINDING
from tests.tierd.site import Site
from tierd.act.claim import Claim, ClaimFolder
from tierd.config.act import ClaimSettings
from tierd.daemon import service
from tierd.daemon.answers import NoAnswerError
from tierd.daemon.process import heartbeats
from tierd.daemon.requests import Previews
from tierd.daemon.systemd import Notifier, extended_start
from tierd.decide.plans import Plan
from tierd.model import Finding


class Door:
    """Calls wait in front of it while it is shut."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.waiting = threading.Event()

    def __call__(self) -> None:
        if not self.open.is_set():
            self.waiting.set()
            self.open.wait()


@contextmanager
def in_a_thread(call: Callable[[], object], door: Door) -> Iterator[threading.Thread]:
    """Until it waits at the door; the door is opened at the end."""
    door.open.clear()
    thread = threading.Thread(target=call)
    thread.start()
    assert door.waiting.wait(10)
    try:
        yield thread
    finally:
        door.open.set()
        thread.join(30)
        assert not thread.is_alive()


def test_a_step_that_waits_for_the_file_system_is_reported_once_and_continues(
        site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.run(until=50)
    door = Door()
    space = site.filesystem.space
    monkeypatch.setattr(site.filesystem, "space", lambda: (door(), space())[1])
    site.cluster.advance(5)
    with in_a_thread(site.service.cycle, door):
        assert site.service.beat()
        assert "so far" not in "".join(site.said)
        site.cluster.advance(90)
        assert site.service.beat()
        assert site.service.beat()
        (logged,) = [words for words in site.said if "so far" in words]
        assert " has taken 90 s so far: the file system, or a server of it, does not answer (lfs check" in logged
        assert logged in site.shown("status")
        assert "OST0002" in site.shown("top", "--once")
        assert site.fetched("/-/healthy")[0] == 200
        assert 'tierd_last_cycle_timestamp_seconds{fs="' in site.fetched("/metrics")[1]
    site.run(until=site.cluster.now + 10)
    assert "so far" not in site.shown("status")


READING = (["status"], ["findings"], ["explain", "F1"], ["history"], ["plan"], ["advise"], ["movers"], ["readers"],
           ["top", "--once"], ["drain-target"], ["report"])


def test_no_answer_waits_for_a_source_or_the_disk_of_the_journal_or_the_file_system(
        reading: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    before = reading.shown("status")
    assert "case F1: " in before
    reading.before_reading = Door()
    with in_a_thread(reading.service.cycle, reading.before_reading):
        reading.cluster.advance(40)
        assert all(reading.shown(*command) for command in READING)
        status = reading.shown("status")
        assert re.search(r"^last reading .*, 4\d s ago\nreading the counters has taken 4\d s so far$", status, re.M)
        assert reading.fetched("/")[0] == reading.fetched("/metrics")[0] == 200
    door = Door()

    def writing() -> None:
        with reading.service.journal.transaction(), reading.service.daemon.store.lock:
            door()

    with in_a_thread(writing, door):
        for name in ("space", "pools", "layout", "status", "entries", "path_of"):
            monkeypatch.setattr(reading.filesystem, name, lambda *_: door())
        assert all(reading.shown(*command) for command in READING if command != ["plan"])
        for path in ("/", "/targets", "/jobs", "/history", "/case/F1"):
            assert reading.fetched(path)[0] == 200


def test_a_plan_is_waited_for_a_while() -> None:
    door = Door()
    door.open.clear()
    with pytest.raises(NoAnswerError, match="no plan within 0 s: the file system answers slowly"):
        Previews(lambda: (door(), ())[1], 0.01)()
    door.open.set()
    errors = [OSError(5, "Input/output error"), KeyError(7)]

    def preview() -> list[tuple[Finding, int, Plan]]:
        if errors:
            raise errors.pop(0)
        return [(FINDING, 7, Plan((), ()))]

    previews = Previews(preview)
    for words in ("Input/output error", "KeyError"):
        with pytest.raises(NoAnswerError, match=f"no plan could be made: {words}"):
            previews()
    assert [planned.finding.finding for planned in previews()] == [7]


def test_an_act_that_takes_long_is_reported_with_its_place(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door()
    change = site.filesystem.set_default_layout
    monkeypatch.setattr(site.filesystem, "set_default_layout", lambda *arguments: (door(), change(*arguments))[1])
    with in_a_thread(lambda: site.run(until=55), door):
        site.cluster.advance(70)
        assert site.service.beat()
        (logged,) = [words for words in site.said if "so far" in words]
        assert logged == "setting default layouts has taken 70 s so far: set-default-layout of /proj/ingest"


class Hanging(ClaimFolder):
    """A folder whose entries cannot be touched while the door is shut."""

    door = Door()

    def touch(self, name: str) -> None:
        self.door()
        super().touch(name)


def test_the_watchdog_is_notified_while_the_claim_cannot_be_renewed(site: Site, tmp_path: Path) -> None:
    """The claim is on the file system. Renewing it in the thread that notifies the watchdog got the process killed."""
    folder = Hanging(tmp_path / "claim")
    claim = Claim(folder, "we", lambda: site.cluster.now, ClaimSettings())
    assert claim.hold() is None
    site.service.node = replace(site.service.node, claim=claim)
    folder.door.open.clear()
    with systemd_socket(tmp_path) as (systemd, notify), heartbeats(site.service, notify, 0.01):
        try:
            assert folder.door.waiting.wait(10)
            assert [systemd.recv(100) for _ in range(50)] == [b"WATCHDOG=1"] * 50
        finally:
            folder.door.open.set()


def test_the_claim_is_renewed_while_an_act_ends_before_a_stop(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may take minutes. After 45 s another tierd moved files beside it, and a reloaded tierd had no claim."""
    renewed = threading.Event()
    monkeypatch.setattr(service, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(site.service, "renew", renewed.set)
    ended: list[bool] = []
    monkeypatch.setattr(site.service.activities, "stop", lambda: ended.append(renewed.wait(5)))
    site.service.close()
    assert ended == [True]


@contextmanager
def systemd_socket(folder: Path) -> Iterator[tuple[socket.socket, Notifier]]:
    """The socket of systemd, and a notifier."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(folder / "notify"))
        systemd.settimeout(10)
        yield systemd, Notifier({"NOTIFY_SOCKET": str(folder / "notify")})


def test_a_start_without_systemd_notifies_nobody(tmp_path: Path) -> None:
    Notifier({})(READY="1")
    Notifier({"NOTIFY_SOCKET": str(tmp_path / "gone")})(READY="1")


def test_a_start_that_waits_asks_systemd_for_more_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with systemd_socket(tmp_path) as (systemd, notify), extended_start(notify, "/mnt/lustre", 0.001):
        words = {systemd.recv(1000) for _ in range(10)}
    assert words == {b"EXTEND_TIMEOUT_USEC=60000000\nSTATUS=starting: waiting for the file system at /mnt/lustre"}
    (line,) = caplog.messages
    assert line.startswith("the file system at /mnt/lustre does not answer: a server may be down (lfs check servers)")
