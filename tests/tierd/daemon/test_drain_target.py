"""An OST is emptied for its replacement: found, moved, paused, killed, resumed, ended, and what stays is named."""

import io
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.servers.namespace import Inode
from simulator.servers.objects import Capacity
from simulator.settings import recorded_test_bed
from tests.tierd.simulated import STREAM
from tests.tierd.site import Clearing, Site, acting, altered
from tierd.act.drain import Drain
from tierd.act.queue import QueuedMove
from tierd.acts import ActKind, OrderKind
from tierd.cli.tierctl import main
from tierd.config.act import DrainSettings, Mode, Rate
from tierd.model import Action
from tierd.policies.imbalance import Rebalance
from tierd.policies.protocol import Tables
from tierd.refusal import Reason, Refusal

MIB, OST, NAME = 1 << 20, 4, "lustre-OST0004"
FAST = Rate(1000.0, 1e12)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr("tierd.act.drain.QUEUE_FILES", 10)
    cluster = Cluster(recorded_test_bed())
    settings = acting(
        tmp_path, limits={"files_per_second": 50.0, "bytes_per_second": 1e9, "per_pool": FAST, "per_target": FAST},
        drain=DrainSettings(scan_files_per_second=200.0, retry_seconds=5.0))
    settings = altered(settings, act={"mode": Mode.OBSERVE})  # modes do not apply to an order
    made = Site(cluster, Clearing(cluster), settings, tmp_path)
    made.start()
    yield made
    made.service.close()


def plain(*osts: int, count: int = 1, pool: str = "hdd") -> Layout:
    return Layout((Component(pool=pool, stripe_count=len(osts) or count, ost_list=osts),), composite=False)


def make(site: Site, path: str, layout: Layout, size: int = MIB) -> Inode:
    directory = site.cluster.make_directory(path.rpartition("/")[0])
    directory.layout, before = layout, directory.layout
    inode = site.cluster.make_file(path, size)
    directory.layout = before
    return inode


def make_files(site: Site, count: int = 30) -> None:
    """Files on the target, in several directories, and others elsewhere."""
    for number in range(count):
        make(site, f"/proj/{'abc'[number % 3]}/f{number:02d}", plain(OST))
    for number in range(5):
        make(site, f"/proj/b/elsewhere{number}", plain(3))
    make(site, "/proj/wide", plain(OST, 2, 3), 3 * MIB)
    pfl = Layout((Component(0, MIB, "flash", ost_list=(0,)), Component(MIB, 4 * MIB, "hdd", ost_list=(OST,)),
                  Component(4 * MIB, None, "hdd", 4)))
    make(site, "/proj/pfl", pfl, 2 * MIB)
    make(site, "/proj/short", pfl, MIB)  # its second component has no object


def make_mirrored(site: Site, path: str) -> None:
    inode = make(site, path, plain(OST))
    assert inode.layout is not None
    inode.layout = replace(inode.layout, mirror_count=2)


def drain(site: Site, to_phase: str = "") -> None:
    """Begin a drain of the target after the first cycle, and go on to a phase."""
    site.run(until=5)
    site.ask("drain-target", target=NAME)
    if to_phase:
        run_to(site, to_phase)


def drained(site: Site, count: int = 30) -> None:
    """Begin a drain of the target with these files."""
    make_files(site, count)
    drain(site)


def test_no_target_is_called_empty_where_only_a_subdirectory_is_mounted(site: Site) -> None:
    """The walk of what is mounted finds nothing, and the target would be replaced."""
    drained(site)
    site.parts["subdirectory"] = "/proj"
    site.restart()
    site.run(until=60)
    assert row(site)["phase"] == "running"
    assert "only /proj is mounted" in site.failed("drain-target", "OST0003", "--yes")


def on_target(site: Site) -> list[str]:
    return sorted(inode.path for inode in site.cluster.namespace.files()
                  if inode.layout and any(o.ost_index == OST for c in inode.layout.components for o in c.objects))


def contents(site: Site) -> dict[str, int]:
    return {inode.path: inode.content for inode in site.cluster.namespace.files()}


def row(site: Site) -> dict[str, object]:
    (drain,) = site.ask("drains")["drains"]
    assert isinstance(drain, dict)
    return drain


def test_whoever_looks_at_a_drain_holds_up_no_act(site: Site) -> None:
    """The order of an OST has millions of acts, and pages ask about it every five seconds."""
    drained(site, count=3)
    statements: list[str] = []
    site.service.journal.db.raw.set_trace_callback(statements.append)
    row(site)
    site.service.journal.db.raw.set_trace_callback(None)
    assert statements == []


def run_to(site: Site, phase: str) -> None:
    site.run_until(lambda: row(site)["phase"] == phase)


def test_every_file_leaves_the_target_within_its_pool_and_is_whole(site: Site) -> None:
    make_files(site)
    had = contents(site)
    assert len(on_target(site)) == 32
    site.run(until=5)
    text = site.shown("drain-target", "OST0004", "--yes")
    assert text.startswith(f"drain of {NAME} (order D1), begun by ")
    assert f"on each MDS: lctl set_param osp.{NAME}-osc-MDT*.max_create_count=0" in text
    run_to(site, "empty")
    assert on_target(site) == []
    assert contents(site) == had
    for inode in site.cluster.namespace.files():
        for part in inode.layout.components if inode.layout else ():
            pool = site.filesystem.pools()[part.pool]
            assert {f"lustre-OST{one.ost_index:04x}" for one in part.objects} <= set(pool), inode.path
    wide = site.filesystem.layout("/proj/wide")
    assert sorted(one.ost_index for one in wide.components[0].objects) == [2, 3, 5]
    assert not any(entry["place"].startswith("/proj/b/elsewhere") for entry in site.ask("history", last=100)["entries"])
    text = site.shown("drain-target")
    assert "empty: no file with an object there was found" in text
    assert "32 files moved, 0 queued" in text
    assert any(f"drain of {NAME} is complete" in line for line in site.said)


def test_a_drain_ends_though_other_moves_go_on(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A submission of a million files kept each pass from its end, and the target was never known to be empty."""
    make_files(site, 3)
    entries = site.filesystem.entries
    monkeypatch.setattr(site.filesystem, "entries", lambda directory: [*entries(directory), "removed meanwhile"])
    site.run(until=5)
    other = Action(ActKind.MIGRATE, plain(3), "", (OrderKind.SUBMISSION, "robinhood", "/other"), path="/other/large")
    site.service.gate._open[10**6] = QueuedMove(other, 99)
    drain(site)
    (begun,) = site.service.daemon.drains.all
    site.service.gate._open[10**6 + 1] = QueuedMove(replace(other, finding=begun.key), 99)
    site.run(until=site.cluster.now + 60)
    assert (row(site)["phase"], row(site)["passes"]) == ("running", 1), "its own have to end first"
    del site.service.gate._open[10**6 + 1]
    run_to(site, "empty")


class Terminal(io.StringIO):
    """Somebody who types."""

    def isatty(self) -> bool:
        return True


def test_a_drain_shows_its_plan_and_asks(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    make_files(site, 3)
    site.run(until=5)
    for said in ("\n", "no\n", ""):
        monkeypatch.setattr(sys, "stdin", Terminal(said))
        status, text, _ = site.tierctl("drain-target", "OST0004")
        assert status == 1
        assert text.startswith(f"drain of {NAME}: move all files with an object there (")
        assert "  files of pool hdd: to lustre-OST0002, lustre-OST0003, lustre-OST0005\n" in text
        assert f"stop them first, on each MDS: lctl set_param osp.{NAME}-osc-MDT*.max_create_count=0" in text
        assert text.endswith("Begin? [y/N] nothing was changed\n")
        assert site.shown("drain-target") == "no drains\n"
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert f"drain of {NAME} (order D1), begun by " in site.shown("drain-target", "OST0004")
    text = site.shown("explain", "D1")
    assert text.startswith("Order D1, made 20")
    assert f"Target: {NAME}.\n" in text
    assert "ggressor" not in text
    assert "a drain of" in site.failed("drain-target", "OST4", "--yes")
    assert "is running already" in site.failed("drain-target", NAME, "--dry-run")


def test_a_drain_is_an_order_and_no_finding(site: Site) -> None:
    site.restart(web={"port": 0, "enabled": True}, limits={"files_per_second": 1.0})
    make_files(site, 3)
    make_mirrored(site, "/proj/<b>")
    site.run(until=5)
    begun = site.shown("drain-target", "OST0004", "--yes")
    site.run(until=site.cluster.now + 10)
    page = site.fetched("/order/D1")[1]
    running = [begun, page, site.fetched("/order/D1")[1], site.fetched("/")[1], site.fetched("/history")[1],
               site.fetched("/metrics")[1],
               *(site.shown(*words) for words in (
                   ("status",), ("findings",), ("explain", "D1"), ("explain", "1"), ("history", "--long"),
                   ("report", "--since", "1h"), ("drain-target", "--json"))),
               *site.said]
    assert not [text for text in running if re.search(r"\bF1\b|finding\": 1", text)]
    assert f"drain of {NAME}: moving files (tierctl drain-target)\n" in running[6]
    assert f"Drain of {NAME}: moving files; <code" in running[3]
    for words in ("D1 drain", "By</dt><dd>root", NAME, "/proj/a/f00"):
        assert words in page, words
    assert "/proj/a/f00" in site.shown("history", "--case", "D1")
    run_to(site, "incomplete")
    site.shown("drain-target", "OST0004", "--end")
    site.run(until=site.cluster.now + 5)
    assert "drain of" not in site.shown("status")
    for unknown in ("/case/F1", "/order/F1", "/order/O1", "/order/D9"):
        assert site.fetched(unknown)[0] == 404, unknown
    assert "the journal has no finding F1, but order D1" in site.failed("explain", "F1")
    for name, words in (("D1", "D1 is a drain: tierctl drain-target TARGET --end"), ("F1", "no finding F1, but order")):
        assert words in site.failed("undo", name)
    assert "apply takes the number of a finding (F3)" in site.failed("apply", "D1")


@pytest.mark.parametrize("further", [[], ["--json"]])
def test_a_drain_does_not_begin_where_nobody_can_be_asked(
        further: list[str], site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("y\n") if further else io.StringIO("y\n"))
    site.run(until=5)
    status, printed, errors = site.tierctl("drain-target", "OST0004", *further)
    assert (status, printed) == (2, "")
    assert "--yes begins" in errors
    assert site.shown("drain-target") == "no drains\n"


@pytest.mark.parametrize("of_the_daemon", [False, True])
def test_a_dry_run_counts_moves_nothing_and_takes_no_number_of_a_finding(site: Site, of_the_daemon: bool) -> None:
    site.restart(act={"dry_run": of_the_daemon})
    make_files(site)
    make_mirrored(site, "/proj/mirrored")
    make(site, "/proj/mine/a", plain(OST))
    site.filesystem.set_xattr("/proj/mine", "user.tierd", b"off")
    site.run(until=5)
    text = site.shown("drain-target", NAME, "--yes" if of_the_daemon else "--dry-run")
    assert f"drain of {NAME}, begun by " in text
    assert "dry run: counting files" in text
    assert "a dry run of" in site.failed("drain-target", NAME, "--dry-run")
    run_to(site, "previewed")
    assert len(on_target(site)) == 34
    assert "the journal has no order D1" in site.failed("explain", "D1")
    text = site.shown("drain-target")
    assert "34 files found (35.7 MB there)" in text, "those that stay too"
    assert "left: 1: the file has mirrors" in text
    assert "/proj/mirrored" in text
    assert site.ask("history", last=10)["entries"] == []
    assert any("34 files with 35.7 MB there; 32 would move, 2 would stay" in line for line in site.said)
    site.shown("drain-target", NAME, "--dry-run")
    site.run(until=site.cluster.now + 5)
    assert "new objects" not in site.shown("drain-target", NAME, "--end"), "nobody stopped them for it"


@pytest.mark.parametrize(("act", "phase", "words"), [
    ("pause", "paused", ""),
    ("end", "ended", f"to allow them again, on each MDS: lctl set_param osp.{NAME}-osc-MDT*.max_create_count=20000")])
def test_a_paused_or_ended_drain_moves_nothing_even_after_a_kill_and_a_resumed_one_finds_the_files_again(
        site: Site, act: str, phase: str, words: str) -> None:
    site.restart(limits={"files_per_second": 1.0})
    drained(site)
    site.run(until=site.cluster.now + 10)
    assert int(str(row(site)["queued_moves"])) <= 10, "few at a time"
    text = site.shown("drain-target", "OST0004", f"--{act}")
    assert f": {phase}" in text
    assert words in text
    site.run(until=site.cluster.now + 5)
    left = on_target(site)
    site.run(until=site.cluster.now + 60)
    assert on_target(site) == left != []
    assert row(site)["queued_moves"] == 0
    site.kill()
    site.run(until=site.cluster.now + 30)
    assert on_target(site) == left
    if act == "end":
        assert "is ended" in site.failed("drain-target", "OST0004", "--pause")
    else:
        site.shown("drain-target", "OST0004", "--resume")
        site.run(until=site.cluster.now + 5)
        for again in ("--pause", "--resume"):
            site.shown("drain-target", "OST0004", again)
        run_to(site, "empty")
        assert (on_target(site), row(site)["passes"]) == ([], 2)


def test_files_that_stay_are_named_with_their_reason(site: Site) -> None:
    make_files(site, 3)
    busy = make(site, "/proj/busy", plain(OST))
    busy.writers = 1
    make_mirrored(site, "/proj/mirrored")
    make(site, "/proj/mine/a", plain(OST))
    site.filesystem.set_xattr("/proj/mine", "user.tierd", b"off")
    drain(site, "incomplete")
    assert on_target(site) == ["/proj/busy", "/proj/mine/a", "/proj/mirrored"]
    text = site.shown("drain-target", "OST0004", "--show")
    assert "incomplete: files are left" in text
    assert "left: 1: the file has mirrors" in text
    assert re.search(r"left: 1: .*user.tierd.*: /proj/mine/a", text)
    assert re.search(r"left: 1: .*: /proj/busy", text)
    assert "pass 3" in text, "it was tried several times"
    busy.writers = 0
    site.shown("drain-target", "OST0004", "--resume")
    site.run(until=site.cluster.now + 60)
    run_to(site, "incomplete")
    assert on_target(site) == ["/proj/mine/a", "/proj/mirrored"]
    for path in on_target(site):
        site.cluster.namespace.remove(site.cluster.namespace.lookup(path), site.cluster.epoch)
    site.shown("drain-target", "OST0004", "--resume")
    run_to(site, "empty")


@pytest.mark.parametrize("change", ["pause", "pause file", "drain", "window"])
def test_nothing_moves_while_acts_are_held(site: Site, change: str) -> None:
    if change == "window":
        site.restart(act={"windows": ("Mon 00:00-00:01",)})
    make_files(site, 6)
    site.run(until=5)
    if change == "pause file":
        (site.folder / "pause").write_text("quiet\n")
    elif change != "window":
        site.ask(change, reason="quiet")
    drain(site)
    site.run(until=site.cluster.now + 60)
    assert len(on_target(site)) == 8
    assert row(site)["queued_moves"] == 0
    state = site.ask("status")
    assert row(site)["waits_for"] == (state["held"] or f"tierd is draining: {state['draining']}")


def test_a_drain_says_that_it_waits_for_another_mover(site: Site) -> None:
    make_files(site, 6)
    large = [site.cluster.make_file(f"/elsewhere/{number}", 64 * MIB).path for number in range(3)]
    site.run(until=20)
    for path in large:
        site.filesystem.migrate(path, plain(count=1))
    site.run(until=site.cluster.now + 30)
    drain(site)
    site.run(until=site.cluster.now + 30)
    assert "another mover" in str(row(site)["waits_for"])
    assert row(site)["examined"] == 0


def test_other_targets_that_are_drained_take_no_files(site: Site) -> None:
    make_files(site, 6)
    site.run(until=5)
    for target in ("OST0005", "OST0002", "OST0004"):
        site.ask("drain-target", target=target)
    site.run_until(lambda: all(each["phase"] != "running" for each in site.ask("drains")["drains"]))
    for inode in site.cluster.namespace.files():
        for part in inode.layout.components if inode.layout else ():
            assert {one.ost_index for one in part.objects} <= {0, 1, 3}, inode.path
    wide = site.filesystem.layout("/proj/wide")
    assert [one.ost_index for one in wide.components[0].objects] == [3], "two stripes less"


@pytest.mark.parametrize(("arguments", "words"), [
    (("MDT0000", "--yes"), "'MDT0000' is not the name of an OST"),  # it was OST0000
    (("OST0077", "--yes"), "no OST lustre-OST0077 can be reached"),
    (("OST0004", "--pause"), "there is no drain of lustre-OST0004"),
    (("OST0004", "--show"), "there is no drain of lustre-OST0004"),
    (("OST0000", "--yes"), "the only target"),
    (("OST0005", "--yes"), "in no pool"),
])
def test_an_impossible_drain_is_refused(site: Site, arguments: tuple[str, ...], words: str) -> None:
    site.cluster.settings = replace(site.cluster.settings, pools={"flash": (0,), "hdd": (2, 3, 4)})
    site.run(until=5)
    assert words in site.failed("drain-target", *arguments)
    assert site.shown("drain-target") == "no drains\n"


@pytest.mark.parametrize("option", ["--pause", "--resume", "--end", "--dry-run", "--yes"])
def test_without_a_target_nothing_seems_to_be_done(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["drain-target", option])
    assert ended.value.code == 2
    assert "name the target" in capsys.readouterr().err


def test_nothing_moves_onto_a_target_that_was_drained(site: Site) -> None:
    site.service.close()
    for ost in site.cluster.osts:
        ost.store.capacity = Capacity(200 * MIB, ost.store.capacity.inodes)
    for number in range(40):
        for index in (2, 3, 5):
            inode = make(site, f"/old/f{index}-{number}", plain(index), 2 * MIB)
            inode.mtime = inode.atime = site.cluster.epoch - 30 * 86400
    site.settings = altered(site.settings, act={"on": ("imbalance",), "mode": Mode.FULL},
                            tables=Tables({"rebalance": Rebalance(reserve=0.05)}))
    site.start()
    drain(site, "empty")
    site.run(until=site.cluster.now + 120)
    assert on_target(site) == []
    assert "imbalance" not in site.shown("findings")


def test_a_drain_during_a_stream_reports_that_it_waits_and_continues(site: Site) -> None:
    site.cluster.add(STREAM)
    make_files(site, 12)
    site.run(until=15)
    drain(site)
    site.run(until=40)
    text = site.shown("drain-target")
    assert f"waits: streams run on its targets ({STREAM.job_id}), and may lose at most 5% to such moves" in text
    assert "no move has ended" not in site.shown("status")
    before = len(on_target(site))
    assert 0 < before < 14
    site.run(until=90)
    assert len(on_target(site)) < before


@pytest.mark.parametrize(("first", "meanwhile", "then"), [
    ("begin", ["pause"], ["resume"]), ("begin", ["pause", "resume"], []), ("begin", ["end", "begin"], []),
    ("preview", ["begin"], []), ("preview", [], ["begin"])])
def test_files_that_a_walk_found_when_its_drain_was_changed_are_found_again(
        site: Site, monkeypatch: pytest.MonkeyPatch, first: str, meanwhile: list[str], then: list[str]) -> None:
    """The next walk began after the directories of this one, though their files were dropped: it found none."""
    site.restart(drain={"scan_files_per_second": 1.0})
    make(site, "/proj/a/found", plain(OST))
    for name in "bcdefgh":
        site.cluster.make_directory(f"/proj/{name}")
    site.run(until=5)

    def order(*acts: str) -> None:
        for act in acts:
            site.ask("drain-target", target=NAME, act=act.replace("preview", "begin"), preview=act == "preview")

    entries, left = site.filesystem.entries, [meanwhile]

    def changed_meanwhile(directory: str) -> Iterator[str]:
        if directory == "/proj/b" and left:
            order(*left.pop())
        return entries(directory)

    order(first)
    monkeypatch.setattr(site.filesystem, "entries", changed_meanwhile)
    site.run_until(lambda: not left)
    order(*then)
    run_to(site, "empty")
    assert on_target(site) == []


def test_a_drain_waits_while_tierd_is_in_a_dry_run(site: Site) -> None:
    """It queued all files again in each pass, and ended as incomplete, with no file left."""
    site.restart(limits={"files_per_second": 1.0})
    drained(site)
    site.run(until=site.cluster.now + 10)
    site.restart(act={"dry_run": True}, limits={"files_per_second": 50.0})
    left = on_target(site)
    site.run(until=site.cluster.now + 200)
    assert "  waits: tierd is in a dry run\n" in site.shown("drain-target")
    assert on_target(site) == left != []


def test_files_that_stay_may_be_found_while_a_pause_stores_the_drain() -> None:
    drain = Drain(NAME, "root", 5.0, 3)
    drain.leave(Refusal(Reason.MIRRORED, "the file has mirrors"), "/a")
    for _ in drain.left.values():  # as another thread does
        drain.leave(Refusal(Reason.ENCRYPTED, "the file is encrypted"), "/b")
    assert [each.count for each in drain.left.values()] == [1, 1]


def test_a_file_with_several_names_moves_once(site: Site) -> None:
    file = make(site, "/proj/a/file", plain(OST))
    site.cluster.make_directory("/proj/b")
    for place in ("/proj/a", "/proj/b"):
        site.cluster.namespace.lookup(place).children["link"] = file
    drain(site, "empty")
    entries = site.ask("history", last=10)["entries"]
    assert [(entry["place"], entry["outcome"]) for entry in entries] == [("/proj/a/file", "done")]


def test_a_drain_that_finds_files_in_each_pass_names_no_number_of_files_left(site: Site) -> None:
    drained(site, 1)
    number = 0
    while row(site)["phase"] == "running":
        make(site, f"/proj/late{number}", plain(OST))
        number += 1
        site.run(until=site.cluster.now + 5)
    assert row(site)["phase"] == "incomplete"
    assert f"drain of {NAME} is incomplete: each of 6 passes found files there (tierctl drain-target)" in site.said
