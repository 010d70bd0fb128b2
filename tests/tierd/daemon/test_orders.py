"""What an administrator, or robinhood, asks for by name: files moved, a queue drained, and how long one waits."""

import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lustre.layout.model import Component, Layout
from simulator.scenarios import events
from tests.tierd.later import raising
from tests.tierd.site import HOSTILE, Site
from tierd.act.journal.entry import Stamp
from tierd.act.journal.writer import Journal
from tierd.act.orders import Order, OrderInbox, TryAgainError, layout_in
from tierd.acts import Outcome
from tierd.cli import client, submit
from tierd.cli.tierctl import main, parser
from tierd.config.act import Mode
from tierd.config.scopes import Scope
from tierd.daemon.control import ControlServer
from tierd.decide.plans import FlashSettings
from tierd.refusal import Reason, Refusal

MIB = 1 << 20


def test_an_order_says_what_it_leaves_to_another(site: Site) -> None:
    """It said that the files were queued, and nothing became of it."""
    for number in range(300):
        site.cluster.make_file(f"/proj/keep/{number}", 1 << 20)
    site.shown("promote", "/proj/keep")
    site.run(until=5)
    waiting = site.service.gate.waiting
    assert waiting > 200
    for direction in ("promote", "demote"):
        said = site.failed(direction, "/proj/keep")
        assert f"left out: {waiting}: tierd moves the file for another finding or order already" in said


def test_two_orders_for_the_same_files_before_a_cycle_are_not_both_carried_out(site: Site) -> None:
    """The second one said that the files were queued, and nothing became of it."""
    site.cluster.make_file("/proj/keep/file", 1 << 20)
    for _ in range(2):
        site.shown("promote", "/proj/keep")
    site.run(until=5)
    assert "queued 1 file" in site.shown("explain", "O1")
    explained = site.shown("explain", "O2")
    assert "queued 0 files" in explained
    assert "left out: 1 (tierd moves the file for another finding or order already)" in explained


class Napping(threading.Event):
    """The daemon continues while a client waits."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self._site = site

    def wait(self, timeout: float | None = None) -> bool:
        self._site.run(until=self._site.cluster.now + 5)
        return False


def test_a_command_may_wait_for_the_queue(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(30):
        site.cluster.make_file(f"/proj/keep/{number}", 1 << 20)
    site.shown("promote", "/proj/keep")
    chosen = parser().parse_args(["drain", "--socket", site.socket, "--wait"])
    site.run(until=5)
    site.shown("drain")
    assert re.search(r"DRAINING: by .*\d+ moves left", site.shown("status"))
    assert client.wait_for_queue(chosen, Napping(site)) == 0
    assert capsys.readouterr().out.endswith("the queue is empty; tierctl history shows what became of it\n")
    history = site.ask("history", last=100)["entries"]
    assert [(each["kind"], each["outcome"]) for each in history] == [("migrate", "done")] * 30
    assert "the last 20 acts that match; --last N shows more" in site.shown("history")
    assert site.shown("drain", "--wait").endswith("tierctl history shows what became of it\n")
    site.shown("resume")
    site.shown("demote", "/proj/keep")
    site.shown("pause", "enough")
    assert client.wait_for_queue(chosen) == 1
    assert "held: paused: enough; 1 left in the queue" in capsys.readouterr().err
    assert {"root asked to drain: draining: by root", "root asked to resume: running",
            "root asked to pause: paused: enough"} < {*site.said}


def test_a_directory_is_promoted_and_demoted(site: Site) -> None:
    small = site.cluster.make_file("/proj/keep/a/small", 700_000)
    large = site.cluster.make_file("/proj/keep/large", 40 << 20)
    preview = site.shown("promote", "/mnt/lustre/proj/keep/", "--preview")
    assert "would queue 2 files (42.6 MB) of /proj/keep for migration to flash" in preview
    site.run(until=10)
    assert site.shown("history") == "no acts yet\n"
    assert "queued 2 files" in site.shown("promote", "/proj/keep")
    site.run(until=20)
    for inode in (small, large):
        assert inode.layout.components[0].pool == "flash"
    assert "left out: 2: the file is in pool 'flash' already" in site.shown("promote", "/proj/keep")
    site.shown("demote", "/proj/keep")
    site.run(until=40)
    assert [c.pool for i in (small, large) for c in (i.layout.components if i.layout else ())] == ["hdd", "hdd"]
    reported = site.shown("explain", "1")
    assert "asked to promote /proj/keep" in reported
    assert reported.startswith("Order O1, made 20")
    assert "no longer active" not in reported
    assert "Found" not in reported  # again, or before: another order is no trouble that came back


def test_data_on_the_mdt_is_not_on_the_disks_whatever_pool_stands_on_it(site: Site) -> None:
    """Lustre 2.17 puts the name of the directory's pool on a component of the MDT."""
    on_mdt = Component(0, 65536, pool="hdd", pattern="mdt", stripe_count=0)
    small = site.cluster.make_file("/proj/keep/small", 30_000)
    site.cluster.make_file("/proj/keep/there", 30_000)
    small.layout = site.cluster.placement.create(Layout((on_mdt, Component(65536, None, pool="hdd"))))
    site.shown("demote", "/proj/keep")
    site.run(until=20)
    assert [(c.on_mdt, c.pool) for c in small.layout.components] == [(False, "hdd")]


def test_a_self_extending_file_keeps_its_stripes() -> None:
    space = Component(1 << 30, None, "hdd", 0, flags=("extension",), extension_size=1 << 30)  # as an xattr gives it
    present = Layout((Component(0, 1 << 30, "hdd", 1, 4 << 20), space))
    assert layout_in("flash", 8, present, 2 << 30, FlashSettings()) == Layout(
        (Component(0, None, "flash", 1, 4 << 20),), composite=False)


@pytest.mark.parametrize(("first", "size", "stripes", "stripe_bytes"), [
    (Component(0, MIB, "flash", 1), 30_000, 1, 0), (Component(0, MIB, pattern="mdt", stripe_count=0), 30_000, 1, 0),
    (Component(0, MIB, "flash", 1), MIB, 1, 0), (Component(0, MIB, "flash", 1), MIB + 1, 2, 4 * MIB),
    (Component(0, MIB, "flash", 1), 2 << 30, 4, 0), (Component(0, MIB, "flash", 6), 30_000, 6, 0),
])
def test_a_file_keeps_the_stripes_that_it_has_not_those_that_it_would_get_if_it_grew(
        first: Component, size: int, stripes: int, stripe_bytes: int) -> None:
    wide = Layout((first, Component(MIB, 1 << 30, "flash", 2, 4 * MIB), Component(1 << 30, None, "hdd", -1)))
    assert layout_in("hdd", 8, wide, size, FlashSettings()) == Layout(
        (Component(0, None, "hdd", stripes, stripe_bytes),), composite=False)


def test_a_wait_for_the_queue_includes_moves_under_way(capsys: pytest.CaptureFixture[str],
                                                       site: Site, tmp_path: Path) -> None:
    idle = {**site.ask("status"), "waiting_moves": 0, "under_way_moves": 0}
    busy = idle | {"under_way_moves": 1}
    answers = [busy, idle, busy]
    server = ControlServer(str(tmp_path / "s"), lambda _: answers.pop(0))
    chosen = parser().parse_args(["promote", "/a", "--socket", str(tmp_path / "s"), "--wait"])
    nap = Immediate()
    assert client.wait_for_queue(chosen, nap) == 0
    nap.set()
    assert client.wait_for_queue(chosen, nap) == client.INTERRUPTED
    server.close()
    assert capsys.readouterr().out.startswith("the queue is empty; ")


class Immediate(threading.Event):
    """Nobody waits. Ctrl-C comes at once if it is set."""

    def wait(self, timeout: float | None = None) -> bool:
        if self.is_set():
            raise KeyboardInterrupt
        return False


def test_an_empty_path_is_a_slip_and_not_the_present_folder(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["promote", "", "--socket", site.socket])
    assert "the path is empty" in capsys.readouterr().err
    assert site.failed("submit", "") == "give a path: it is empty\n"


def test_an_order_of_no_bytes_is_a_slip(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["promote", "/proj", "--max-bytes", "0"])
    assert "'0' is not a size of at least 1 byte" in capsys.readouterr().err


def test_an_order_keeps_its_bounds_the_room_and_the_owners_wish(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        site.cluster.make_file(f"/proj/keep/{number}", 1000)
    said = site.shown("promote", "/proj/keep", "--max-files", "3", "--preview")
    assert "would queue 3 files" in said
    assert "this file and all further ones: the limit of 3 files or 1.1 TB is reached" in said
    said = site.shown("promote", "/proj/keep", "--max-bytes", "2500", "--preview")
    assert "would queue 2 files" in said
    assert "this file and all further ones: the limit of 1000 files or 2 kB is reached (tierctl promote " in said
    with monkeypatch.context() as nearly_full:
        nearly_full.setattr("tierd.act.orders.reserved", lambda room, _: room.avail_bytes["flash"] - 2500)
        assert "would queue 2 files" in site.shown("promote", "/proj/keep", "--preview")
    with monkeypatch.context() as slow:
        slow.setattr("tierd.daemon.changes.ORDER_LOOKUP_SECONDS", -1.0)
        assert "the time of one order is over; split it" in site.failed("promote", "/proj/keep")
    site.filesystem.set_xattr("/proj/keep", "user.tierd", b"off")
    site.shown("promote", "/proj/keep")
    site.run(until=10)
    assert "the owner opted out" in site.shown("history", "--outcome", "refused")
    for target in site.filesystem.pools()["flash"]:
        events.full(site.cluster, target, 5.0)
    # as for a script: it exited with 0, and the job began without its files
    assert "has no room for the file above its reserve" in site.failed("promote", "/proj/keep")
    assert site.failed("promote", "/etc/passwd") == (
        "/etc/passwd: there is no such file or directory on the file system at /mnt/lustre\n")
    assert "without . and .." in site.failed("promote", "/proj/../etc")


def test_files_in_place_use_nothing_of_the_bounds(site: Site) -> None:
    site.cluster.make_file("/proj/keep/0", 9000)
    site.shown("promote", "/proj/keep")
    site.run(until=10)
    site.cluster.make_file("/proj/keep/1", 1000)
    said = site.shown("promote", "/proj/keep", "--max-files", "1", "--max-bytes", "2500", "--preview")
    assert "would queue 1 file" in said
    assert "limit" not in said


def test_a_dry_run_goes_through_an_order_and_moves_nothing(site: Site) -> None:
    site.restart(act={"dry_run": True, "mode": "observe"})
    inode = site.cluster.make_file("/proj/keep/f", 1000)
    before = inode.layout
    assert "; dry run" in site.shown("promote", "/proj/keep/f")
    site.run(until=10)
    assert inode.layout == before
    assert "dry-run" in site.shown("history")


def test_files_from_robinhood_move_as_the_mode_allows(site: Site) -> None:
    site.restart(scopes=(Scope("/proj/looked-at", Mode.OBSERVE),))
    moved, kept, odd = (site.cluster.make_file(path, 1000) for path in ("/proj/keep/f", "/proj/looked-at/f", HOSTILE))
    path = f"/mnt/lustre{moved.path}"
    assert site.shown("submit", "--reason", "old rule", path, kept.path, odd.path, "/none", "/proj") == (
        "accepted: 5\n")
    site.run(until=10)
    history = site.shown("history", "--long")
    assert "mode observe applies there" in history
    assert "(submit): old rule" in history
    pools = [inode.layout.components[0].pool if inode.layout else "" for inode in (moved, kept, odd)]
    assert pools == ["flash", "", "flash"]
    assert "\x1b" not in history
    reported = "\n".join(site.said)
    assert "left out: 1 (No such file or directory)" in reported
    assert "left out: 1 (the path is a directory: submit files one by one)" in reported


def test_an_order_waits_while_the_file_system_is_away(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an unmount tierd dropped it, as of a file that does not exist."""
    file = site.cluster.make_file("/proj/keep/f", 1000)
    site.shown("submit", file.path)
    with monkeypatch.context() as away:
        away.setattr(site.filesystem, "status", raising(FileNotFoundError(2, "No such file or directory")))
        away.setattr(site.service.gate.guard, "blocked_by", lambda: Refusal(Reason.CLAIM_UNREADABLE, "no mount"))
        site.run(until=10)
    site.run(until=20)
    assert file.layout.components[0].pool == "flash"


@pytest.mark.parametrize("end", [lambda _: None, Site.kill])
def test_the_undo_of_an_order_drops_what_is_queued_of_it(site: Site, end: Callable[[Site], None]) -> None:
    site.restart(limits={"files_per_second": 1.0})
    paths = [f"/proj/{place}/{number}" for place in ("keep", "old") for number in range(40)]
    for path in paths:
        site.cluster.make_file(path, 1000)
    site.shown("submit", *paths[:40])
    site.shown("promote", "/proj/old")
    site.run(until=10)
    waiting = site.service.gate.queue.by_finding()
    end(site)
    dropped = sum(count for key, count in waiting.items() if key[0] == "submission")
    assert f"{dropped} queued moves dropped" in site.shown("undo", "O2")
    site.run(until=site.cluster.now + 120)
    moved = [entry.place.split("/")[2] for entry in site.service.journal.entries(Outcome.DONE)]
    assert (moved.count("keep"), moved.count("old"), dropped > 20) == (40 - dropped, 40, True)
    assert site.sql("SELECT * FROM waiting_moves") == []


def test_a_full_inbox_asks_to_try_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    inbox = OrderInbox(Journal(tmp_path / "j").db, lambda: Stamp("lustre", False, 1.0), most=2)
    inbox.put([Order("promote", "/a", "x")])
    with pytest.raises(ValueError, match="1 of at most 2 orders wait; try again later"):
        inbox.put([Order("promote", "/a", "x")] * 2)
    assert (len(inbox.take(9)), len(inbox)) == (1, 1), "its files are looked up now: tierctl promote --wait waits"

    for error, code in ((TryAgainError("100000 orders wait"), submit.EXIT_TRY_AGAIN),
                        (ValueError("no such thing, now or later"), 1)):
        server = ControlServer(str(tmp_path / "s"), raising(error))
        assert main(["submit", "/a", "--socket", str(tmp_path / "s")]) == code
        server.close()
    assert main(["submit", "/a", "--socket", str(tmp_path / "s")]) == submit.EXIT_TRY_AGAIN, "it restarts"
    assert main(["submit", "--socket", str(tmp_path / "s")]) == 1
    assert "no paths" in capsys.readouterr().err
