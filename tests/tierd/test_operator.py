"""tierctl on the other side of a daemon over the simulated cluster: what an administrator types, and reads."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from simulator import faults
from tests.tierd.site import Site, shown
from tests.tierd.site import site as site  # noqa: PLC0414 -- the fixture
from tierd.act.inbox import Inbox
from tierd.act.journal import Journal
from tierd.act.kept import Stamp
from tierd.act.orders import Order
from tierd.commands import asking, submit, waiting
from tierd.commands.top import quiet, screen
from tierd.config.scopes import Scope
from tierd.ctl import main, parser
from tierd.desk import patience
from tierd.desk.changing import CHANGING
from tierd.desk.page import page
from tierd.desk.plots import plot
from tierd.service.ask import ControlError, ask
from tierd.service.control import ControlServer
from tierd.service.peers import Access, Peer

HOSTILE = "/proj/keep/\udcff\n\x1b[2J 'x'"


def failed(capsys: pytest.CaptureFixture[str], *arguments: str, site: Site) -> str:
    assert main([*arguments, "--socket", site.socket]) == 1
    return capsys.readouterr().err


def test_a_finding_is_explained_from_its_numbers_to_the_verdict(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.run(until=55)
    assert shown(capsys, "findings", site=site).startswith("F1  noisy-neighbour: ior_stream.1002 streams at")
    early = shown(capsys, "explain", "F1", site=site)
    assert "it holds now" in early
    assert "Verdict: none yet." in early
    site.run(until=130)
    told = shown(capsys, "explain", "1", site=site)  # by the act
    assert told.startswith("F1, noisy-neighbour, found 20")
    for part in ("slowdown: 1.", "Where it comes from, by the changelogs: /proj/ingest.",
                 "SET default layout of /proj/ingest", "Acts: 1 set-default-layout done; 0 B moved.",
                 "whole file on hdd (1 stripe) -> first 1M on flash (1 stripe), rest on hdd (1 stripe)",
                 "UTC: it helped, and was kept. The victim had"):
        assert part in told
    assert "it helped" in shown(capsys, "status", site=site)


@pytest.mark.parametrize(("name", "says"), [
    ("F99", "the journal has no finding F99"), ("7", "the journal has no act 7"),
    ("x", "neither a finding (F3) nor an act"), ("F" + "9" * 30, "neither a finding"), ("", "neither")])
def test_what_cannot_be_explained_is_said(site: Site, capsys: pytest.CaptureFixture[str], name: str, says: str) -> None:
    assert says in failed(capsys, "explain", name, site=site)


def test_a_plan_is_shown_and_nothing_is_done(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing is found that tierd would act on" in shown(capsys, "plan", site=site)
    shown(capsys, "drain", "looking first", site=site)
    site.run(until=55)
    plan = shown(capsys, "plan", site=site)
    assert plan.startswith("DRAINING: looking first; the queue is empty (tierctl resume goes on); mode full\n")
    assert "  lfs setstripe -E 1M -c 1 -p flash -E -1 " in plan
    assert " -p hdd /proj/ingest\n" in plan
    assert shown(capsys, "history", site=site) == "nothing was done yet\n"
    site.filesystem.set_xattr("/proj", "user.tierd", b"off")
    site.run(until=70)
    assert "not done: /proj/ingest: user.tierd is off at /proj" in shown(capsys, "plan", site=site)


def test_a_drain_finishes_what_is_queued_and_begins_nothing(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(40):
        site.cluster.make_file(f"/proj/keep/{number}", 1 << 20)
    shown(capsys, "promote", "/proj/keep", site=site)
    site.run(until=5)
    shown(capsys, "drain", site=site)
    assert "DRAINING: by " in shown(capsys, "status", site=site)
    assert re.search(r"\d+ moves are left", shown(capsys, "status", site=site))
    site.run(until=60)
    history = ask(site.socket, {"request": "history", "last": 100})["entries"]
    assert {(e["kind"], e["outcome"]) for e in history} == {("migrate", "done")}
    assert len(history) == 40
    shown(capsys, "resume", site=site)
    assert "DRAINING" not in shown(capsys, "status", site=site)


class Napping(threading.Event):
    """While somebody waits, the daemon goes on."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self._site = site

    def wait(self, timeout: float | None = None) -> bool:
        self._site.run(until=self._site.cluster.now + 5)
        return False


def test_one_may_wait_for_the_queue(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(30):
        site.cluster.make_file(f"/proj/keep/{number}", 1 << 20)
    shown(capsys, "promote", "/proj/keep", site=site)
    chosen = parser().parse_args(["drain", "--socket", site.socket, "--wait"])
    site.run(until=5)
    assert waiting.wait(chosen, Napping(site)) == 0
    assert len(ask(site.socket, {"request": "history", "last": 100})["entries"]) == 30
    assert main(["drain", "--wait", "--socket", site.socket]) == 0
    shown(capsys, "resume", site=site)
    shown(capsys, "demote", "/proj/keep", site=site)
    shown(capsys, "pause", "enough", site=site)
    assert waiting.wait(chosen) == 1
    assert "held: enough; 1 wait" in capsys.readouterr().err


def test_a_directory_is_promoted_and_taken_back_to_the_disks(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    small = site.cluster.make_file("/proj/keep/a/small", 700_000)
    large = site.cluster.make_file("/proj/keep/large", 40 << 20)
    preview = shown(capsys, "promote", "/mnt/lustre/proj/keep/", "--preview", site=site)
    assert "would queue 2 files, 42.6 MB, of /proj/keep to flash" in preview
    assert "lfs migrate --non-block -E 1M -c 1 -p flash -E -1 " in preview
    site.run(until=10)
    assert shown(capsys, "history", site=site) == "nothing was done yet\n"
    assert "queued 2 files" in shown(capsys, "promote", "/proj/keep", site=site)
    site.run(until=20)
    for inode in (small, large):
        assert inode.layout is not None
        assert inode.layout.components[0].pool == "flash"
    assert "left out: 2: it is there already" in shown(capsys, "promote", "/proj/keep", site=site)
    shown(capsys, "demote", "/proj/keep", site=site)
    site.run(until=40)
    assert [c.pool for i in (small, large) for c in (i.layout.components if i.layout else ())] == ["hdd", "hdd"]
    told = shown(capsys, "explain", "1", site=site)
    assert "asked to promote /proj/keep" in told


def test_an_order_keeps_its_bounds_the_room_and_the_owners_wish(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(5):
        site.cluster.make_file(f"/proj/keep/{number}", 1000)
    said = shown(capsys, "promote", "/proj/keep", "--max-files", "3", "--preview", site=site)
    assert "would queue 3 files" in said
    assert "and all that follow: 3 files are the most" in said
    assert "2k" not in shown(capsys, "promote", "/proj/keep", "--max-bytes", "2K", "--preview", site=site)
    site.filesystem.set_xattr("/proj/keep", "user.tierd", b"off")
    shown(capsys, "promote", "/proj/keep", site=site)
    site.run(until=10)
    assert "its owner wants it left alone" in shown(capsys, "history", "--outcome", "refused", site=site)
    for target in site.filesystem.pools()["flash"]:
        faults.full(site.cluster, target, 5.0)
    assert "has no room for it above its reserve" in shown(capsys, "promote", "/proj/keep", site=site)
    assert "No such file or directory" in failed(capsys, "promote", "/proj/none", site=site)
    assert "without . and .." in failed(capsys, "promote", "/proj/../etc", site=site)


def test_a_dry_run_goes_through_an_order_and_moves_nothing(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.service.close()
    site.settings = replace(site.settings, act=replace(site.settings.act, dry_run=True, mode="observe"))
    site.start()
    inode = site.cluster.make_file("/proj/keep/f", 1000)
    before = inode.layout
    assert "a dry run" in shown(capsys, "promote", "/proj/keep/f", site=site)
    site.run(until=10)
    assert inode.layout == before
    assert "dry-run" in shown(capsys, "history", site=site)


def test_what_robinhood_hands_over_goes_as_the_mode_allows(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.service.close()
    site.settings = replace(site.settings, scopes=(Scope("/proj/looked-at", "recommend"),))
    site.start()
    moved, kept, odd = (site.cluster.make_file(path, 1000) for path in ("/proj/keep/f", "/proj/looked-at/f", HOSTILE))
    path = f"/mnt/lustre{moved.path}"
    assert shown(capsys, "submit", "--reason", "old rule", path, kept.path, odd.path, "/none", "/proj", site=site) == (
        "taken in: 5\n")
    site.run(until=10)
    history = shown(capsys, "history", "--long", site=site)
    assert "mode recommend holds there" in history
    assert "(submit) asked for it: old rule" in history
    pools = [inode.layout.components[0].pool if inode.layout else "" for inode in (moved, kept, odd)]
    assert pools == ["flash", "", "flash"]
    assert "\x1b" not in history
    told = "\n".join(site.said)
    assert "left out: 1 (No such file or directory)" in told
    assert "left out: 1 (it is a directory: files are handed over one by one)" in told


def test_handing_over_never_waits_for_a_cycle(site: Site) -> None:
    with site.service._lock:  # a cycle that moves a large file
        asked: list[object] = []
        others = [threading.Thread(target=lambda r=r: asked.append(ask(site.socket, r, 10.0))) for r in (  # type: ignore[misc]
            {"request": "submit", "paths": ["/proj/x"]}, {"request": "status"}, {"request": "pause"},
            {"request": "history"}, {"request": "top"}, {"request": "explain", "id": "F1"})]
        for other in others[:-1]:
            other.start()
        for other in others[:-1]:
            other.join(10)
        assert len(asked) == 5
    assert ask(site.socket, {"request": "status"})["paused"].startswith("by ")


def test_what_needs_the_daemon_does_not_wait_for_ever(site: Site, monkeypatch: pytest.MonkeyPatch,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", 0.05)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with site.service._lock:
            held.set()
            done.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    assert "ask again later" in failed(capsys, "undo", "1", site=site)
    done.set()
    holder.join()


def test_a_full_inbox_asks_to_come_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    Journal(tmp_path / "j").close()
    inbox = Inbox(tmp_path / "j", lambda: Stamp("lustre", False, 1.0), most=2)
    inbox.put([(Order("promote", "/a", "x"), None)])
    with pytest.raises(ValueError, match="1 orders wait, of 2 at the most; try again later"):
        inbox.put([(Order("promote", "/a", "x"), None)] * 2)
    assert len(inbox.take(9)) == 1

    def full(_: object) -> dict[str, object]:
        raise ValueError("try again later")

    server = ControlServer(str(tmp_path / "s"), full)
    assert main(["submit", "/a", "--socket", str(tmp_path / "s")]) == submit.LATER
    server.close()
    assert main(["submit", "/a", "--socket", str(tmp_path / "s")]) == 1
    assert main(["submit", "--socket", str(tmp_path / "s")]) == 1
    assert "no paths" in capsys.readouterr().err


def test_the_live_view_shows_who_slows_whom(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no look yet" in shown(capsys, "top", "--once", site=site)
    site.run(until=55)
    told = shown(capsys, "top", site=site)
    assert "F1 noisy-neighbour: ior_stream.1002" in told
    assert re.search(r"lustre-OST0002 .* 1\.\d\d x", told)
    assert re.search(r"mdt_small\.1001 .* noise *\n", told)
    assert re.search(r"ior_stream\.1002 .* slowed *\n", told)
    answer = json.loads(shown(capsys, "top", "--json", site=site))
    assert {row["role"] for row in answer["jobs"]} == {"noise", "slowed"}
    assert quiet(answer | {"targets": [], "jobs": []}) == "no job is at work, as far as can be seen"
    screen(answer | {"paused": "[bold]x\x1b[2J", "faults": {"a": "[/]"}})  # no markup, no escapes


def test_a_report_loads_nothing(site: Site, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    site.run(until=190)
    now = site.cluster.epoch
    answer = ask(site.socket, {"request": "report", "since": now - 200, "until": now})
    answer["findings"][0]["sentence"] += "<script>\x1b\udcff</script>"
    text = page(answer)
    text.encode("utf-8")
    assert "<script>" not in text
    assert "\x1b" not in text
    assert not re.search(r"(src|href)\s*=|url\(|@import|http", text)
    assert "1 noisy-neighbour; 1 acts, 0 files moved, 0.00 GB; of what was judged: 1 helped, kept." in text
    assert text.count("<svg") == 4
    assert "ior_stream.1002" in text
    assert set(answer["samples"]) >= {"findings", "waiting moves", "pool flash", "pool hdd", "victim ior_stream.1002"}
    got = [rate for _, rate in answer["samples"]["victim ior_stream.1002"]]
    (judged,) = answer["judgements"]
    assert got[0] == pytest.approx(judged["usual"], rel=0.1)
    assert min(got) == pytest.approx(judged["contended"], rel=0.1)
    assert max(number for _, number in answer["samples"]["findings"]) == 1
    path = tmp_path / "r.html"
    assert shown(capsys, "report", "-o", str(path), "--since", "6h", site=site).endswith("0 findings, 0 acts\n")
    assert "nothing was recorded" in path.read_text()
    assert "neither a span" in failed(capsys, "report", "--since", "yesterday", site=site)


def test_a_curve_is_broken_where_nothing_was_recorded() -> None:
    drawn = plot("t", "u", {"a": [(0.0, 1.0), (60.0, 2.0), (6000.0, 1.0)]}, 0.0, 6000.0)
    path = re.search(r' d="([^"]*)"', drawn)
    assert path is not None
    assert (path[1].count("M"), path[1].count("L")) == (2, 1)


def test_advice_is_told_with_its_command(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no advice yet" in shown(capsys, "advise", site=site)
    site.run(until=10)
    assert shown(capsys, "advise", site=site)


class TestPermission:
    """Who may look, and who may change something."""

    ACCESS = Access(read_group=2000, change_users=frozenset({1500}))

    @pytest.mark.parametrize(("peer", "look", "change"), [
        (Peer(0), True, True), (Peer(1500), True, True), (Peer(1600, frozenset({2000})), True, False),
        (Peer(1600, frozenset({3000})), False, False)])
    def test_of_a_peer(self, peer: Peer, look: bool, change: bool) -> None:
        assert self.ACCESS.may(peer, change=False) is look
        assert self.ACCESS.may(peer, change=True) is change

    def test_without_configuration_only_root_and_ourselves(self) -> None:
        assert Access().may(Peer(os.geteuid()), change=True)
        assert not Access().may(Peer(65533, frozenset({0})), change=False)

    def test_the_kernel_says_who_asks(self) -> None:
        one, other = socket.socketpair(socket.AF_UNIX)
        peer = Peer.of(one)
        assert peer.uid == os.geteuid()
        assert peer.groups >= {os.getegid(), *os.getgroups()}
        assert peer.name
        assert Peer(123456789).name == "uid 123456789"
        one.close()
        other.close()

    def test_every_changing_request_is_refused_to_a_reader(self, tmp_path: Path) -> None:
        server = ControlServer(str(tmp_path / "s"), lambda r: {"by": r["by"]}, self.ACCESS, CHANGING)
        reader = Peer(1600, frozenset({2000}))
        for request in CHANGING:
            line = json.dumps({"request": request}).encode()
            assert "not allowed for uid 1600" in server.answer(line, lambda _: {}, reader)["error"]
        line = json.dumps({"request": "status", "by": "root"}).encode()
        assert server.answer(line, lambda r: {"by": r["by"]}, reader) == {"by": "uid 1600"}
        server.close()

    def test_the_socket_is_for_the_group_alone(self, tmp_path: Path) -> None:
        server = ControlServer(str(tmp_path / "s"), lambda _: {}, Access(read_group=os.getegid()))
        status = (tmp_path / "s").stat()
        assert (status.st_mode & 0o777, status.st_gid) == (0o660, os.getegid())
        server.close()

    def test_a_second_daemon_does_not_take_the_socket(self, site: Site) -> None:
        with pytest.raises(ControlError, match="another tierd answers here"):
            ControlServer(site.socket, lambda _: {})
        assert ask(site.socket, {"request": "status"})


def test_of_several_daemons_one_has_to_be_named(tmp_path: Path) -> None:
    def chosen(*arguments: str) -> str:
        return asking.socket_of(parser().parse_args(["status", *arguments]), tmp_path)

    assert chosen() == str(tmp_path / "tierd.sock")
    for name in ("home", "scratch"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tierd.sock").touch()
        if name == "home":
            assert chosen() == str(tmp_path / "home/tierd.sock")
    assert chosen("--fs", "scratch") == str(tmp_path / "scratch/tierd.sock")
    with pytest.raises(ControlError, match=r"name one: --fs home \| scratch"):
        chosen()
    with pytest.raises(ControlError, match="the name of an instance"):
        chosen("--fs", "../etc")
    (tmp_path / "tierd.sock").touch()
    assert chosen() == str(tmp_path / "tierd.sock")


@pytest.mark.parametrize("line", [
    b'{"request":"promote"}', b'{"request":"promote","path":3}', b'{"request":"submit","paths":"x"}',
    b'{"request":"submit","paths":[1]}', b'{"request":"submit","paths":[],"direction":"up"}',
    b'{"request":"history","last":"x"}', b'{"request":"history","last":-5}', b'{"request":"top","most":null}',
    b'{"request":"promote","path":"/a\\u0000b"}', b'{"request":"report","since":"x"}', b'[' * 100_000])
def test_odd_requests_are_answered(site: Site, line: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as to:
        to.connect(site.socket)
        to.sendall(line + b"\n")
        to.shutdown(socket.SHUT_WR)
        answer = json.loads(to.makefile("rb").read())
    assert "error" in answer or answer == {"entries": [], "all_outcomes": {}}


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    operations = (Path(__file__).parents[2] / "docs/operations.md").read_text(encoding="utf-8")
    commands = next(action for action in parser()._actions if action.dest == "command").choices
    assert commands is not None
    for name in commands:
        with pytest.raises(SystemExit):
            main([name, "--help"])
        assert len(capsys.readouterr().out.splitlines()) > 5
        assert f"tierctl {name}" in operations, name
