"""The service kept at work: a bad configuration, a journal that fails, and what was held while it began."""

import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tierd.logged import logged
from tests.tierd.site import Site, altered
from tierd.act.journal.connection import BEGIN_ANEW, FULL, JournalError
from tierd.act.journal.writer import Journal
from tierd.config.act import Mode
from tierd.config.settings import Settings
from tierd.daemon import process
from tierd.daemon.client import ControlError
from tierd.daemon.process import ROOM_BYTES, Supervisor, set_process_name
from tierd.daemon.service import Service


def starting(site: Site) -> Callable[[Settings], Service]:
    """How a supervisor starts the service of a site."""

    def start(settings: Settings) -> Service:
        act = replace(site.settings.act, mode=settings.act.mode, journal=settings.act.journal)
        site.settings = altered(settings, act=act, web=site.settings.web)
        site.start()
        return site.service

    return start


@pytest.fixture
def kept(site: Site, tmp_path: Path) -> Supervisor:
    site.service.close()
    (tmp_path / "tierd.toml").touch()
    return Supervisor(tmp_path / "tierd.toml", site.settings, starting(site))


@pytest.fixture
def observing(site: Site, tmp_path: Path) -> Supervisor:
    """In mode observe. Settings that are not in the file of the test are the settings of the site."""
    site.service.close()
    (tmp_path / "tierd.toml").write_text("[act]\nmode = 'observe'\n")
    made = Supervisor(tmp_path / "tierd.toml", altered(site.settings, act={"mode": Mode.OBSERVE}), starting(site))
    made.settings = replace(made.settings, filesystem=Settings().filesystem, sense=Settings().sense)
    return made


def test_a_leader_whose_journal_fails_leaves_the_claim_to_its_standby(
        site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It did nothing, on a full disk, and renewed its claim, so that the standby did nothing either."""
    monkeypatch.setattr(process, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    said, renewed, after = logged(), list[str](), list[int]()
    pause = threading.Event()

    class Node:
        claim = SimpleNamespace(renew=lambda: renewed.append("renewed"))

        def stand_by(self, *_: object) -> bool:
            return True

        @property
        def lost(self) -> bool:
            for _ in range(2 if any("does nothing" in sentence for sentence in said) else 0):
                pause.wait(0.1)
                after.append(len(renewed))
            return bool(after)

        def close(self) -> None:
            pass

    def cycle() -> str:
        pause.wait(0.1)
        raise JournalError(None, "the journal: database or disk is full", "journal")

    service = SimpleNamespace(cycle=cycle, close=lambda: None, beat=lambda: True, renew=Node.claim.renew,
                              daemon=SimpleNamespace(memory=None))
    assert process.serve(tmp_path / "tierd.toml", altered(site.settings, sense={"cycle_seconds": 0.02}), None,
                         lambda *_: Node(), lambda *_: service) == process.LEADERSHIP_LOST  # type: ignore[arg-type]
    assert after[0] == after[1] > 0


def cycles(site: Site, supervisor: Supervisor, until: float) -> list[str]:
    states = []
    while site.cluster.now < until:
        site.cluster.advance(5)
        states.append(supervisor.cycle())
    return states


@pytest.mark.parametrize(("text", "words"), [
    ("[act]\nmod = 1\n", "the previous one stays in use"),
    ("[filesystem]\nmount = '/none'\n", "the previous one is in use again: /none: no such mount"),
    ("[sense.watch]\n'/none' = ''\n", "/none cannot be watched: No such file or directory"),
    ("[sense.access_logs]\ntargets = 3\n", "the previous one stays in use"),
    ("\xff", "the previous one stays in use")])
def test_a_configuration_that_does_not_work_leaves_the_old_one_in_force(
        site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, words: str) -> None:
    site.service.close()
    start, before = starting(site), site.settings

    def start_on_the_mount(settings: Settings) -> Service:
        if settings.filesystem.mount == "/none":
            raise FileNotFoundError(2, "no such mount", "/none")
        return start(replace(settings, act=before.act))

    path = tmp_path / "tierd.toml"
    supervisor = Supervisor(path, site.settings, start_on_the_mount)
    path.write_bytes(text.encode("latin-1"))
    for _ in range(3):  # as often as somebody touches it
        supervisor.reload()
    assert words in caplog.text
    assert supervisor.settings == before
    assert "first reading" in cycles(site, supervisor, 5)[0]
    assert site.ask("status")["paused"] == ""
    supervisor.close()


@pytest.mark.parametrize(("text", "known"), [
    ("mode = 'full'\ndry_run = false\n", True), ("[sense]\nskew_seconds = 20.0\n", False)])
def test_a_reload_forgets_what_was_seen_only_where_it_looks_elsewhere(
        site: Site, observing: Supervisor, tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str,
        known: bool) -> None:
    """To let tierd act after a dry run is a reload, and mostly done while a neighbour is there."""
    caplog.set_level("INFO")
    cycles(site, observing, 45)  # the stream alone for 30 s, then its neighbour
    (tmp_path / "tierd.toml").write_text(f"[act]\njournal = '{site.settings.act.journal}'\n{text}")
    observing.reload()
    cycles(site, observing, 100)
    assert ("baselines are kept" in caplog.text) == known
    assert any(words.startswith("SET default layout") for words in site.said)
    found = [words for words in site.said if words.startswith("FOUND")]
    assert (" started; " in found[-1]) == known, "else by device time"
    observing.close()


@pytest.mark.parametrize("same_journal", [True, False])
def test_a_finding_that_holds_keeps_its_number_at_a_reload(
        site: Site, observing: Supervisor, tmp_path: Path, same_journal: bool) -> None:
    cycles(site, observing, 80)
    assert [each["finding"] for each in site.ask("findings")["findings"]] == [1]
    journal = site.settings.act.journal if same_journal else str(tmp_path / "other.sqlite")
    (tmp_path / "tierd.toml").write_text(f"[act]\njournal = '{journal}'\nmode = 'full'\ndry_run = false\n")
    observing.reload()
    assert len(site.ask("findings")["findings"]) == same_journal, "before the next reading, too"
    cycles(site, observing, 90)
    assert [each["finding"] for each in site.ask("findings")["findings"]] == [1]
    assert sum(words.startswith("FOUND noisy-neighbour") for words in site.said) == 2 - same_journal
    assert any(words.startswith("SET default layout") for words in site.said)
    observing.close()
    assert Journal(Path(journal)).key_of_finding(2) is None, "counted once"


def test_a_full_journal_stops_everything_is_reported_once_and_recovers(
        site: Site, kept: Supervisor, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    cycles(site, kept, 25)
    site.service.journal.db.execute("PRAGMA query_only = ON")  # as on a disk that is full, or has become read-only
    with pytest.raises(sqlite3.OperationalError):
        site.service.gate.operating_state.trip("a file is not as expected")
    site.cluster.advance(5)
    journal = f"{site.settings.act.journal}: the journal: attempt to write a readonly database"
    assert kept.cycle() == f"tierd does nothing: {journal}"
    assert caplog.text.count(f"{journal}; until this is repaired, tierd does nothing and tierctl gets no answer") == 1
    assert "jobs on" in cycles(site, kept, 60)[-1], "it works again"
    assert site.service.gate.operating_state.paused == "a file is not as expected", "moves would go on"
    assert "tierd works again" in caplog.text
    kept.close()


def failing(folder: Path, left: list[None], free: Callable[[Path], int] = lambda _: ROOM_BYTES) -> Supervisor:
    """Of a service that starts, and whose journal then takes nothing, so many times."""
    def cycle() -> str:
        if left:
            left.pop()
            raise JournalError(None, FULL, "/j")
        return "looked"

    service: Any = SimpleNamespace(cycle=cycle, beat=lambda: True, close=lambda: None,
                                   daemon=SimpleNamespace(memory=None))
    (folder / "tierd.toml").touch()
    return Supervisor(folder / "tierd.toml", Settings(), lambda _: service, free=free)


def test_a_reload_is_a_reason_to_try_at_once(tmp_path: Path) -> None:
    left: list[None] = [None] * 3
    supervisor = failing(tmp_path, left)
    for _ in range(5):
        supervisor.cycle()
    assert not left
    assert supervisor.cycle() != "looked"
    supervisor.reload()
    assert supervisor.cycle() == "looked"


def test_a_full_disk_that_allows_a_start_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    left: list[None] = [None] * 5
    supervisor = failing(tmp_path, left)
    states = [(supervisor.cycle(), len(left)) for _ in range(28)]
    full = "tierd does nothing: /j: the journal: database or disk is full: free 16 MiB"
    assert {words for words, _ in states[:-1]} == {full}
    assert [left for _, left in states] == [4] + [3] * 2 + [2] * 4 + [1] * 8 + [0] * 13  # each try has words in the log
    assert states[-1][0] == "looked"
    assert [record.message.partition(";")[0] for record in caplog.records] == [
        "/j: the journal: database or disk is full: free 16 MiB", "tierd works again"]


def test_a_disk_with_room_for_a_few_cycles_is_still_full(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    room = ROOM_BYTES - 1  # closing the journal has freed its write-ahead log
    supervisor = failing(tmp_path, [None], lambda _: room)
    assert {supervisor.cycle().partition("full")[2] for _ in range(15)} == {": free 16 MiB"}
    room = ROOM_BYTES
    assert supervisor.cycle() == "looked"


@pytest.mark.parametrize(("damage_file", "words"), [
    (lambda whole: b"no database " * 1000, "file is not a database"),
    (lambda whole: whole[: len(whole) // 2], "database disk image is malformed"),
    (lambda whole: b"\0" * len(whole), "file is not a database")], ids=["words", "half", "zeros"])
def test_while_the_journal_is_no_journal_it_is_tried_again_and_nothing_is_done(
        site: Site, kept: Supervisor, caplog: pytest.LogCaptureFixture, damage_file: Callable[[bytes], bytes],
        words: str) -> None:
    caplog.set_level("INFO")
    cycles(site, kept, 25)
    kept.close()
    path = Path(site.settings.act.journal)
    whole = path.read_bytes()
    damaged = damage_file(whole)
    path.write_bytes(damaged)
    advised = f"tierd does nothing: {path}: the journal: {words}: restore a copy, or {BEGIN_ANEW}"
    assert {*cycles(site, kept, 50)} == {advised}
    assert caplog.text.count(words) == 1
    assert kept.beat()
    with pytest.raises(ControlError, match="socket not found"):
        site.ask("status")
    assert path.read_bytes() == damaged, "a journal that can be repaired by hand is not changed"
    path.write_bytes(whole)
    assert "first reading" in cycles(site, kept, 55)[0]
    assert "tierd works again" in caplog.text
    kept.close()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_journal_taken_away_while_it_is_written_is_noticed(site: Site, kept: Supervisor, *, replaced: bool) -> None:
    cycles(site, kept, 55)
    journal = Path(site.settings.act.journal)
    copy = journal.read_bytes()
    for file in journal.parent.glob("journal.sqlite*"):
        if not file.name.endswith(".lock"):
            file.unlink()
    if replaced:
        journal.write_bytes(copy)
    first, second = cycles(site, kept, 65)
    words = "another file has replaced it" if replaced else "No such file or directory, though it was there"
    assert words in first
    assert "job" in second  # it works again, on the file that is there now
    assert "all_outcomes" in site.ask("history")


def test_requests_are_answered_while_the_journal_fails(site: Site) -> None:
    site.run(until=10)
    site.service.journal.db.execute("PRAGMA query_only = ON")
    with pytest.raises(ControlError, match="pause: the journal: attempt to write a readonly database"):
        site.ask("pause")
    Path(site.settings.act.journal).unlink()
    with pytest.raises(ControlError, match="history: the journal: unable to open database file"):
        site.ask("history")
    for path, request in (("/history", "history"), ("/case/F1", "explain"), ("/job/none", "about")):
        status, words = site.fetched(path)
        assert (status, words.partition(";")[0]) == (503, f"{request}: the journal: unable to open database file")
    assert site.fetched("/-/healthy")[0] == 200
    assert site.service.gate.operating_state.paused, "the pause is in force all the same"
    site.service.journal.db.execute("PRAGMA query_only = OFF")


@pytest.mark.parametrize(("statement", "words"), [
    ("CREATE TABLE bookmarks (id)", "a database of another program"),
    ("PRAGMA application_id = 7", "a database of another program"),
    (f"PRAGMA application_id = {0x74696572}; CREATE TABLE actions (id); PRAGMA user_version = 1",
     r"another release of tierd wrote this journal \(format 1; .* or move it away.*other\.sqlite")])
def test_a_foreign_database_is_refused_and_left_as_it_is(tmp_path: Path, statement: str, words: str) -> None:
    path = tmp_path / "other.sqlite"
    db = sqlite3.connect(path)
    db.executescript(statement)
    db.close()
    before = path.read_bytes()
    with pytest.raises(OSError, match=words):
        Journal(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["other.sqlite"]


def test_a_new_journal_is_reported_and_a_half_made_one_is_completed(site: Site) -> None:
    assert sum("created a new journal" in sentence for sentence in site.said) == 1
    path = Path(site.settings.act.journal)
    site.service.close()
    path.unlink()
    db = sqlite3.connect(path)  # as a process leaves it that is killed while it makes its first journal
    db.execute(f"PRAGMA application_id = {0x74696572}")
    db.close()
    site.start()
    site.run(until=10)
    assert sum("created a new journal" in sentence for sentence in site.said) == 2


# What tierd is called by the kernel, which makes the job id of its own work


KNOWN = """
from pathlib import Path
from threading import Thread
from tierd.daemon.process import set_process_name
set_process_name('tierd', Path('/proc/self/comm'))
Thread(target=lambda: print(Path('/proc/thread-self/comm').read_text().strip() + '.0')).start()
"""


@pytest.mark.skipif(not Path("/proc/thread-self/comm").exists(), reason="no procfs")
def test_threads_of_a_process_however_started_have_a_job_id_of_tierd() -> None:
    reported = subprocess.run([sys.executable, "-c", KNOWN], capture_output=True, text=True, check=True).stdout.strip()
    assert reported in Settings().own_jobs


def test_without_procfs_it_still_starts(tmp_path: Path) -> None:
    set_process_name("tierd", tmp_path / "absent" / "comm")
    assert not (tmp_path / "absent").exists()
