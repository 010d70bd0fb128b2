"""Queued work after tierd ends or is killed: it continues after another check, or is reported."""

import errno
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from lustre.errors import of_errno
from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.scenarios import events
from simulator.settings import recorded_test_bed
from tests.tierd.later import raising
from tests.tierd.simulated import HDD, NOISE, STREAM
from tests.tierd.site import HOSTILE, READ_AGAIN, Site, altered
from tierd.act.journal.entry import QueueStore, Stamp
from tierd.act.journal.writer import Journal
from tierd.act.orders import Order, OrderInbox
from tierd.acts import ActKind, Outcome, Verdict
from tierd.daemon.service import UNFINISHED_WAITS
from tierd.daemon.states import State
from tierd.model import Action


def waiting(site: Site, *paths: str) -> None:
    """Moves in the queue: the first cycle takes the order in, and moves nothing yet."""
    for path in paths:
        site.cluster.make_file(path, 700_000)
    site.shown("promote", "/proj/keep")
    site.run(until=site.cluster.now + 5)
    assert site.ask("status")["waiting_moves"] == len(paths)


def log_text(site: Site) -> str:
    return "\n".join(site.said)


def pool(site: Site, path: str) -> str:
    layout = site.filesystem.layout(path)
    return layout.components[0].pool if layout else ""


@pytest.mark.parametrize("end", [Site.restart, Site.kill])
def test_moves_that_wait_continue_after_a_restart(site: Site, end: Callable[[Site], None]) -> None:
    paths = ["/proj/keep/a", "/proj/keep/b", HOSTILE]
    waiting(site, *paths)
    end(site)
    assert "found 3 moves and 0 orders queued before the start: tierd checks each again" in log_text(site)
    site.run(until=site.cluster.now + 5)
    status = site.shown("status")
    assert "3 moves queued" in status
    assert "3 moves from before the restart to be checked again" in status
    site.run(until=site.cluster.now + 30)
    assert [words for words in site.said if "requeued" in words] == ["requeued after a restart: 3 moves of O1"]
    assert {pool(site, path) for path in paths} == {"flash"}
    assert "requeued after a restart" in site.shown("explain", "O1")
    site.restart()
    assert site.said == [f"listening on 127.0.0.1:{site.service.web.port}" if site.service.web else ""]


@pytest.mark.parametrize("end", [Site.restart, Site.kill])
def test_unprocessed_orders_continue_after_a_restart(site: Site, end: Callable[[Site], None]) -> None:
    site.shown("pause", "look")
    paths = ["/proj/keep/a", "/proj/old/b", HOSTILE]
    for path in paths:
        site.cluster.make_file(path, 1000)
    site.shown("promote", "/proj/keep")
    site.shown("submit", "--reason", "hot \udcff", "/proj/old/b")
    end(site)
    assert "found 0 moves and 2 orders queued before the start" in log_text(site)
    site.run(until=site.cluster.now + 10)
    assert "2 orders queued" in site.shown("status")
    site.shown("resume")
    site.run(until=site.cluster.now + 10)
    assert {pool(site, path) for path in paths} == {"flash"}
    assert r"(submit): hot \udcff" in site.shown("history", "--long")
    site.restart()
    assert site.ask("status")["waiting_orders"] == 0


def other_file(site: Site) -> None:
    site.cluster.namespace.remove(site.cluster.namespace.lookup("/proj/keep/a"), site.cluster.epoch)
    site.cluster.make_file("/proj/keep/a", 1000)


def no_file(site: Site) -> None:
    site.cluster.namespace.remove(site.cluster.namespace.lookup("/proj/keep/a"), site.cluster.epoch)


def of_another_file_system(site: Site) -> None:
    site.sql("UPDATE waiting_moves SET fs = 'other'")


def dry(site: Site) -> None:
    site.settings = altered(site.settings, act={"dry_run": True})


def other_pools(site: Site) -> None:
    site.settings = altered(site.settings, small_files_to_flash={"flash_pool": "nvme"})


def late(site: Site) -> None:
    events.clock_jump(site.cluster, 8 * 86400.0)


@pytest.mark.parametrize(("change", "logged", "history"), [
    (other_file, "not moved: /proj/keep/a: another file has this name now", "another file has this name now"),
    (no_file, "not moved: /proj/keep/a: it no longer exists", "no acts yet")])
def test_a_file_is_examined_when_its_turn_comes(
        site: Site, change: Callable[[Site], None], logged: str, history: str) -> None:
    waiting(site, "/proj/keep/a")
    site.service.close()
    change(site)
    site.start()
    site.run(until=site.cluster.now + 20)
    assert logged in log_text(site)
    assert history in site.shown("history")
    assert "no moves queued" in site.shown("status")


@pytest.mark.parametrize(("change", "why"), [
    (of_another_file_system, "queued for another file system: other"), (dry, "tierd is in a dry run now"),
    (other_pools, "pool 'flash' is no longer the configured one"), (late, "queued more than 7 days ago")])
def test_a_move_that_is_out_of_date_is_reported(site: Site, change: Callable[[Site], None], why: str) -> None:
    waiting(site, "/proj/keep/a")
    site.service.close()
    change(site)
    site.start()
    site.run(until=site.cluster.now + 20)
    assert f"not requeued after a restart: 1 move of O1: {why}" in log_text(site)
    status = site.shown("status")
    assert f"not requeued after the restart: 1: {why}" in status
    assert "no moves queued" in status
    assert site.shown("history") == "no acts yet\n"
    site.restart()
    assert site.ask("status")["waiting_moves"] == 0


def test_moves_of_a_dry_run_are_never_done_for_real(site: Site) -> None:
    site.restart(act={"dry_run": True})
    waiting(site, "/proj/keep/a")
    site.shown("submit", "/proj/keep/a")
    site.restart(act={"dry_run": False})
    site.run(until=site.cluster.now + 20)
    assert "not requeued after a restart: 1 move of O1: queued in a dry run" in log_text(site)
    assert "(submit) asked to promote /proj/keep/a: queued in a dry run" in log_text(site)
    assert pool(site, "/proj/keep/a") != "flash"


def test_an_order_is_for_what_had_the_name_then(site: Site) -> None:
    site.cluster.make_file("/proj/keep/a", 1000)
    site.shown("promote", "/proj/keep/a")
    site.service.close()
    other_file(site)
    site.start()
    site.run(until=site.cluster.now + 20)
    assert "left out: 1 (another file has this name now)" in log_text(site)
    assert pool(site, "/proj/keep/a") != "flash"


def test_moves_of_a_kept_case_continue_too(site: Site) -> None:
    site.settings = altered(site.settings, limits={"files_per_second": 0.5}, verify={"judge_seconds": 20.0})
    site.begin_again(FluidCluster(recorded_test_bed(), (STREAM, replace(READ_AGAIN, keep=3000))))
    site.run_until_said("KEPT: it helped", before=200)
    assert site.service.gate.waiting > 30
    moved = len(list(site.service.journal.entries(Outcome.DONE)))
    site.restart()
    (case,) = site.service.daemon.store
    assert (case.judged, case.verdict) == (True, "helped")
    site.run(until=site.cluster.now + 20)
    assert len(list(site.service.journal.entries(Outcome.DONE))) > moved + 2
    assert not any(words.startswith("KEPT") for words in site.said), "it is not judged again"


def test_moves_of_a_case_continue_with_it(reading: Site) -> None:
    assert reading.service.gate.waiting > 20
    once, twice = (move.action for move in reading.service.journal.queue.all()[:2])
    for interrupted in ((once, twice), (twice,)):  # by two kills
        for action in interrupted:
            reading.service.journal.queue.remove([action.path])
            reading.service.journal.intend(action, 1, reading.filesystem.layout(action.path), reading.cluster.epoch,
                                           dry_run=False, fid=reading.filesystem.status(action.path).fid)
        reading.restart()
    assert {once.path, twice.path} & set(reading.service.gate.queue.earlier) == {once.path}
    assert "not requeued after the restart: 1: tierd ended during the move" in reading.shown("status")
    reading.run(until=reading.cluster.now + 10)
    assert "moves of F1" in log_text(reading)
    assert reading.ask("status")["waits_for"] == "the limit of 1 files/s is reached"
    reading.run(until=reading.cluster.now + 10)
    moved = [e for e in reading.service.journal.entries(Outcome.DONE) if e.kind == "migrate"]
    assert len({e.place for e in moved}) == len(moved) > 5
    assert [case["moves"]["done"] for case in reading.ask("status")["cases"]] == [len(moved)]
    reading.restart()
    reading.run(until=reading.cluster.now + 5)
    moved = [e for e in reading.service.journal.entries(Outcome.DONE) if e.kind == "migrate"]
    assert [case["moves"]["done"] for case in reading.ask("status")["cases"]] == [len(moved)]


@pytest.mark.parametrize("changed", [{}, {"verdict": Verdict.DID_NOT_HELP}, {"departed": True}])
def test_moves_of_a_case_that_is_over_are_left_to_the_next_finding(reading: Site, changed: dict[str, object]) -> None:
    if not changed:
        reading.service.journal.end(1, Outcome.UNDONE, "before a kill, when its moves could not be dropped any more", 0)
    reading.restart()
    for case in reading.service.daemon.store:
        for name, value in changed.items():
            setattr(case, name, value)
    reading.service.daemon.remediations.requeue()
    assert ("the case is closed, or too old to be judged; tierd detects a finding that still holds again"
            in log_text(reading))
    assert reading.service.gate.waiting == 0


def test_moves_above_the_journals_limit_are_reported(site: Site) -> None:
    kept = QueueStore(site.service.journal.db, maximum=2)
    site.service.journal.queue = kept
    waiting(site, "/proj/keep/a", "/proj/keep/b", "/proj/keep/c")
    status = site.shown("status")
    assert "1 move not stored in the journal (limit reached) and lost at a restart" in status
    site.restart()
    assert "found 2 moves and 0 orders queued before the start" in log_text(site)


def test_queued_work_is_reported_once_at_the_end(site: Site) -> None:
    waiting(site, "/proj/keep/a")
    site.service.close()
    site.service.close()  # as when a reload has failed, and the old configuration too
    assert log_text(site).count("queued: 1 move and 0 orders; the journal keeps them for the next start") == 1


def test_a_journal_that_cannot_be_written_asks_to_try_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    inbox = OrderInbox(journal.db, lambda: Stamp("lustre", False, 1.0))
    with closing(sqlite3.connect(tmp_path / "j")) as db:
        db.execute("DROP TABLE waiting_orders")
    with pytest.raises(ValueError, match=r"the journal cannot be written .*; try again later"):
        inbox.put([Order("promote", "/a", "x")])
    assert len(inbox) == 0
    journal.close()


def test_a_finding_whose_numbers_the_journal_lacks_is_named_and_not_judged(reading: Site) -> None:
    assert len([*reading.service.daemon.store]) == 1
    reading.sql("UPDATE findings SET evidence = json_remove(evidence, '$.victim_usual_bytes_per_second')")
    reading.restart()
    assert not [*reading.service.daemon.store]
    assert "F1: the journal lacks numbers of this finding, so its acts are not judged" in log_text(reading)


def test_a_finding_that_is_over_when_tierd_is_back_ends(site: Site) -> None:
    """Its case was never closed: metrics showed it for good, and the same trouble later got no plan of its own."""
    later = replace(NOISE, start_seconds=250.0, directory="/proj/later")
    site.begin_again(FluidCluster(recorded_test_bed(), (STREAM, replace(NOISE, stop_seconds=50.0), later)))
    site.run_until_said("SET ", before=100)
    site.restart()
    site.run_until_said("KEPT", before=200)
    (case,) = site.ask("status")["cases"]
    assert (case["state"], case["active"]) == ("closed", False)
    assert site.sql("SELECT id FROM findings WHERE ended_at IS NULL") == []
    site.run_until_said("SET default layout of /proj/later", before=350)
    assert site.sql("SELECT place, finding FROM actions") == [(b"/proj/ingest", 1), (b"/proj/later", 2)]


def test_directories_whose_turn_had_not_come_get_their_default_layout(site: Site) -> None:
    """Their case counted as planned there, and they got none while its finding held."""
    site.begin_again(Cluster(recorded_test_bed(), (STREAM, replace(NOISE, directories_count=2))))
    site.run_until_said("SET default layout of 2 directories", before=100)
    site.filesystem.set_default_layout("/proj/ingest/d1", HDD)
    site.sql("DELETE FROM actions WHERE place = CAST('/proj/ingest/d1' AS BLOB)")
    site.kill()
    site.run_until_said("SET default layout of /proj/ingest/d1", before=200)


# Default layouts of before a restart go on filling the flash pool; an undo that fails is tried again


FILLING = replace(NOISE, keep=100_000, files_per_second=20.0)


@pytest.fixture
def filling(site: Site) -> Site:
    """A neighbour that keeps its files, on whose directory a default was set that is judged already."""
    site.begin_again(FluidCluster(recorded_test_bed(), (STREAM, FILLING)))
    site.run_until_said("SET default layout", before=120)
    return site


def test_a_default_from_before_a_restart_is_undone_when_flash_runs_short(filling: Site) -> None:
    """Its case was kept: a restart finds nothing more to judge."""
    filling.service.journal.judgements.add(1, "noisy-neighbour", "flash", 1 << 20, Verdict.HELPED, 1.0, 1.0)
    filling.kill()
    filling.run(until=filling.cluster.now + 240)
    assert any("UNDONE default layout of /proj/ingest: pool 'flash' is down to its reserve" in sentence
               for sentence in filling.said)
    assert filling.filesystem.layout("/proj/ingest") is None or "flash" not in str(
        filling.filesystem.layout("/proj/ingest"))
    space = filling.filesystem.space()
    assert all(space[target].avail_bytes > 0 for target in filling.filesystem.pools()["flash"])


def test_a_default_that_somebody_has_changed_is_not_tried_in_each_cycle_while_flash_is_short(filling: Site) -> None:
    other = Layout((Component(pool="hdd", stripe_count=3),), composite=False)
    filling.filesystem.set_default_layout("/proj/ingest", other)
    full = {target: replace(room, avail_bytes=0) for target, room in filling.filesystem.space().items()}
    filling.filesystem.space = lambda: full  # type: ignore[method-assign]
    filling.run(until=filling.cluster.now + 40)
    assert sum(sentence.startswith("REFUSED default layout of /proj/ingest") for sentence in filling.said) in {1, 2}


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("end", [Site.restart, Site.kill])
def test_an_undo_continues_after_a_restart(filling: Site, end: Callable[[Site], None], *, begun: bool) -> None:
    filling.service.journal.judgements.add(1, "noisy-neighbour", "flash", 1 << 20, Verdict.DID_NOT_HELP, 0.0,
                                            filling.cluster.epoch)
    if begun:
        filling.service.journal.begin_undo(1, filling.cluster.epoch)
    end(filling)
    filling.run(until=filling.cluster.now + 15)
    layout = filling.filesystem.layout("/proj/ingest")
    assert layout is None or "flash" not in str(layout)
    (case,) = [case for case in filling.service.daemon.store if case.number == 1]
    assert (case.state, case.verdict) in {(State.UNDONE, "did-not-help"), (State.CLOSED, "did-not-help")}
    assert sum("UNDONE default layout of /proj/ingest: it did not help" in words for words in filling.said) == 1
    filling.restart()
    assert [case.number for case in filling.service.daemon.store] == [], "nothing is left to undo"


@pytest.mark.parametrize("asked", [3, 1000])
def test_a_default_layout_whose_outcome_a_kill_lost_is_judged(filling: Site, asked: int) -> None:
    """As soon as no process of the tierd that was killed works on it, or after a time."""
    filling.sql("UPDATE actions SET outcome = 'under way'")
    ((fid,),) = filling.sql("SELECT fid FROM actions")
    answers = iter([True] * asked)
    filling.parts["works_on"] = lambda fids: fids == [fid] and next(answers, False)
    began = filling.cluster.now
    filling.kill()
    assert filling.cluster.now - began == pytest.approx(0.1 * min(asked, UNFINISHED_WAITS), abs=0.11)
    assert any("found unfinished: set-default-layout of /proj/ingest: done" in sentence for sentence in filling.said)
    (case,) = filling.service.daemon.store
    assert (case.state, [each.entry for each in case.defaults]) == (State.JUDGING, [1])


def test_a_move_that_a_kill_interrupted_is_closed_once_its_file_can_be_examined(
        filling: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    filling.service.journal.intend(Action(ActKind.MIGRATE, HDD, "", ("", "", ""), "/", "/gone", 1), 1, None,
                                   filling.cluster.epoch, dry_run=False)
    with monkeypatch.context() as away:
        away.setattr(filling.filesystem, "layout", raising(of_errno(5, "layout", "/gone")))
        filling.kill()
        filling.run(until=filling.cluster.now + 15)
    assert [each.place for each in filling.service.journal.entries(Outcome.UNDER_WAY)] == ["/gone"]
    filling.run(until=filling.cluster.now + 10)
    assert sum("found unfinished: migrate of /gone" in words for words in filling.said) == 2
    assert [each.place for each in filling.service.journal.entries(Outcome.GONE)] == ["/gone"]


@pytest.mark.parametrize("killed", [False, True])
def test_a_failed_undo_is_retried_and_reported_once(filling: Site, *, killed: bool) -> None:
    if killed:
        filling.service.journal.begin_undo(1, filling.cluster.epoch)
        filling.kill()
    change = filling.filesystem.set_default_layout
    tries: list[str] = []

    def refused(directory: str, layout: Layout | None, _: object = None) -> None:
        tries.append(directory)
        if len(tries) <= 3:
            raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), directory)
        change(directory, layout)

    filling.filesystem.set_default_layout = refused  # type: ignore[method-assign, assignment]
    filling.run_until_said("UNDONE default layout", before=300)
    assert len(tries) == 4
    assert len([sentence for sentence in filling.said if "FAILED default layout" in sentence]) == 1


def test_a_dry_run_undoes_nothing_and_holds_an_undo_back(filling: Site) -> None:
    """It holds no claim: another tierd may be at work."""
    filling.service.journal.judgements.add(1, "noisy-neighbour", "flash", 1 << 20, Verdict.DID_NOT_HELP, 0.0,
                                            filling.cluster.epoch - 3600)
    filling.restart(act={"dry_run": True})
    filling.run(until=filling.cluster.now + 15)
    assert "a dry run changes nothing" in filling.failed("undo", "1")
    assert "flash" in str(filling.filesystem.layout("/proj/ingest"))
    filling.restart(act={"dry_run": False})
    filling.run(until=filling.cluster.now + 15)
    assert "UNDONE default layout of /proj/ingest: it did not help" in filling.said
