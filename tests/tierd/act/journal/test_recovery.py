"""A journal that an earlier tierd left when it was killed: everything that it had begun goes on."""

import sqlite3
from contextlib import closing
from pathlib import Path

from lustre.fid import Fid
from simulator.cluster import Cluster
from simulator.settings import recorded_test_bed
from tests.tierd.site import Clearing, Site, acting
from tierd.act.drain import Phase, drains_from_json
from tierd.act.journal.connection import APPLICATION_ID
from tierd.act.journal.reader import JournalReader
from tierd.act.journal.writer import Journal
from tierd.act.orders import Order, OrderInbox
from tierd.act.staging import StagingState, StagingStore
from tierd.acts import OrderKind, Outcome

RECORDED = Path(__file__).with_name("format-2.sql")
ODD = "/proj/\udcff\udcfe 'x'"
"""A name that is not UTF-8."""


def recorded(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(RECORDED.read_text())
        db.executescript(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 2; PRAGMA journal_mode=WAL")
    return path


def test_every_kind_of_row_is_read(tmp_path: Path) -> None:
    path = recorded(tmp_path / "journal.sqlite")
    journal = Journal(path)
    move, default = journal.unfinished()
    assert (move.place, move.outcome, move.fid, move.size_bytes) == (ODD, Outcome.UNDER_WAY, Fid(0x200000401, 5), 700)
    assert (default.place, default.outcome) == ("/proj", Outcome.UNDOING)
    assert [part.pool for each in (move.layout_before, move.layout_after) if each for part in each.components] == [
        "hdd", "flash", "hdd"]
    moves = journal.queue.all()
    assert [(each.path, each.action.finding, each.finding, each.pool, each.stamp.since) for each in moves] == [
        (ODD, ("request", "root", "/proj"), 2, "flash", 10.0),
        ("/proj/b", ("request", "root", "/proj"), 2, "flash", 10.0),
        ("/proj/drained", ("drain", "root", "lustre-OST0004"), 3, "flash", 12.0)]
    verdict = journal.judgements.of(1)
    assert (verdict.verdict, verdict.regained, verdict.after) == ("helped", (0.8, 0.5, 0.9), 95.0)
    finding = JournalReader(path).finding(1)
    assert finding is not None
    assert finding[1].directories == ("/proj", ODD)
    drain, counted = drains_from_json(journal.state()["drains"]).values()
    assert (drain.phase, drain.after, counted.phase) == (Phase.RUNNING, "/proj/a", Phase.PREVIEWED)
    assert drain.left["mirrored"].examples == [ODD]
    (staging,) = StagingStore(journal.db).open()
    assert (staging.path, staging.state, staging.finding, staging.left_out) == (
        ODD, StagingState.MOVING, 2, {"user alice may not read the file": 3})
    assert [each.dropped for each in StagingStore(journal.db).of_job("18", 9)] == [4]
    inbox = OrderInbox(journal.db, lambda: moves[0].stamp)
    assert inbox.reload(lambda _: None) == []
    assert inbox.take(9) == [
        Order("demote", ODD, "hood (submit)", OrderKind.SUBMISSION, "old rule", 1, fid=Fid(0x200000401, 9)),
        Order("promote", "/proj/c", "root")]
    journal.close()


def test_earlier_work_continues(tmp_path: Path) -> None:
    cluster = Cluster(recorded_test_bed())
    settings = acting(tmp_path)
    path = Path(settings.act.journal)
    path.parent.mkdir()
    recorded(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM state WHERE name = 'paused'")
        db.execute("UPDATE waiting_orders SET since = ?", (cluster.epoch,))
        db.execute("UPDATE waiting_moves SET since = ?", (cluster.epoch,))
    for name in ("/proj/c", ODD):
        cluster.make_file(name, 700)
    site = Site(cluster, Clearing(cluster), settings, tmp_path)
    site.start()
    try:
        site.run(until=100)
        phases = [drain["phase"] for drain in site.ask("drains")["drains"]]
        assert phases == ["empty", "previewed"]
        assert [each["state"] for each in site.ask("stage-state", job="17")["stagings"]] != ["moving"]
        status = site.ask("status")
        assert (status["waiting_moves"], status["waiting_orders"], status["moves_to_requeue"]) == (0, 0, 0)
        assert [(each["place"], each["outcome"]) for each in site.ask("history")["entries"][2:]] == [
            ("/proj/c", "done"), (ODD, "refused")]
        assert status["not_requeued"] == {"the drain looks for its files again": 1}
        assert site.sql("SELECT count(*) FROM actions WHERE outcome IN ('under way', 'undoing')") == [(0,)]
    finally:
        site.service.close()
