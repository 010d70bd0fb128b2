"""Files move within an uneven pool, in the whole loop on the simulated test bed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lustre.fid import Fid
from lustre.layout.model import Component, Layout
from simulator.jobs import Job
from simulator.servers.objects import Capacity
from tests.tierd.simulated import STREAM, World, world
from tierd.act.journal.writer import Journal
from tierd.acts import Outcome, Verdict
from tierd.cli.control import case_line
from tierd.config.load import parse
from tierd.daemon.loop import Daemon
from tierd.daemon.status import case_of
from tierd.refusal import Reason

MIB, DAY = 1 << 20, 86_400
ON = ("[act]\non = ['imbalance']\n[limits]\nbytes_per_second = 1e9\nfiles_per_second = 100\n"
      "per_pool = {files_per_second = 100, bytes_per_second = 1e9}\n"
      "per_target = {files_per_second = 100, bytes_per_second = 1e9}\n[rebalance]\nreserve = 0.05\n")
FULLEST = 3


def uneven(tmp_path: Path, text: str = ON, files: int = 60, dry_run: bool = False, count: int = 1,
           jobs: Sequence[Job] = ()) -> World:
    """A pool whose OST0003 has old files of 8 MiB, and the others hardly anything."""
    at = world(tmp_path, jobs=jobs, settings=parse(text.encode(), "t.toml"), dry_run=dry_run)
    cluster = at.cluster
    for ost in cluster.osts:
        ost.store.capacity = Capacity(1 << 30, ost.store.capacity.inodes)
    template = Layout((Component(pool="hdd", stripe_count=count, stripe_offset=FULLEST),), composite=False)
    cluster.make_directory("/old/deep", template)
    for number in range(files):
        inode = cluster.make_file(f"/old/deep/f{number:02d}", 8 * MIB)
        inode.mtime = inode.atime = cluster.epoch - 30 * DAY + number
    return at


def used(at: World) -> list[float]:
    space = at.filesystem.space()
    return [1 - space[target].avail_bytes / space[target].size_bytes for target in at.filesystem.pools()["hdd"]]


def content(at: World) -> dict[str, int]:
    return {inode.path: inode.content for inode in at.cluster.namespace.files()}


def test_a_pool_becomes_even_and_then_nothing_moves(tmp_path: Path) -> None:
    at = uneven(tmp_path)
    before, had = used(at), content(at)
    assert max(before) - min(before) > 0.3
    at.run(until=600)
    after = used(at)
    assert max(after) - min(after) < 0.15
    assert not any(finding.kind == "imbalance" for finding in at.daemon.findings)
    assert content(at) == had, "every file has its data"
    entries = list(at.journal.entries())
    assert {(entry.kind, entry.outcome) for entry in entries} == {("migrate", "done")}
    places = [entry.place for entry in entries]
    assert len(set(places)) == len(places), "each moves once"
    assert {entry.layout_after.components[0].pool for entry in entries if entry.layout_after} == {"hdd"}
    (case,) = [case for case in at.daemon.store if case.finding.kind == "imbalance"]
    assert case.verdict == Verdict.HELPED
    (said,) = [words for words in at.said if "verdict on the moves" in words]
    assert f"{len(entries)} files with" in said
    assert "'lustre-OST0003' was" in said or "lustre-OST0003 was" in said
    assert "no steady job lost more than 10%" in said
    shown = case_line(case_of(case.finding, case.number, (), lambda _: (0, 0), case))
    assert "fill of lustre-OST0003, found " in shown
    assert "it helped, and no steady job" in shown
    assert "undone" not in shown
    at.run(until=1200, cycle_seconds=10)
    assert len(list(at.journal.entries())) == len(entries), "there is no way back"
    assert at.undo(entries[0], "by tierctl").outcome == "undone"
    layout = at.filesystem.layout(entries[0].place)
    assert [one.ost_index for one in layout.components[0].objects] == [FULLEST], "the target it came from"


def test_a_rebalance_is_judged_after_its_last_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that took two minutes was not there yet: the fill had hardly changed, and nothing moved for six hours."""
    monkeypatch.setattr(Journal, "acts_in_force", lambda *_: pytest.fail("they may be a million, of a kilobyte each"))
    at = uneven(tmp_path, ON.replace("bytes_per_second = 1e9", "bytes_per_second = 2e7", 1))
    begin, verdicts = at.gate.on_begin, list[list[str]]()

    def takes_long(fid: Fid) -> None:
        begin(fid)
        if not at.gate.waiting:
            at.cluster.advance(120)
            at.daemon.judge()
            verdicts.append([words for words in at.said if "verdict on the moves" in words])

    at.gate.on_begin = takes_long
    at.run_until_said("verdict on the moves", before=900)
    assert verdicts[:1] == [[]]


@pytest.mark.parametrize("begun", ["", "reloaded", "restarted", "approved"])
def test_a_rebalance_that_slows_a_job_stops_and_is_tried_again_later(tmp_path: Path, begun: str) -> None:
    """Its limits allow every stream to lose everything, as if tierd knew nothing of streams.

    After a reload or a restart it went on at once; after ``tierctl apply`` it did not, and said that it would.
    """
    on = ON.replace("[limits]\nbytes_per_second = 1e9", "[limits]\nmax_stream_loss = 1.0\nbytes_per_second = 8e6")
    at = uneven(tmp_path, on + "[verify]\nsettle_seconds = 5\nharm_seconds = 10\ncooldown_seconds = 200\n", files=100,
                jobs=(replace(STREAM, file_bytes=64 * MIB),))
    stopped = 0.0
    while not stopped:
        at.run(until=at.cluster.now + 5)
        assert at.cluster.now < 400
        stopped = next((at.cluster.now for words in at.said if "jobs got slower while files moved" in words), 0.0)
    key = "imbalance", "", "fill of lustre-OST0003"
    assert at.gate.queue.waiting_for(key) == 0
    done = len(list(at.journal.entries(Outcome.DONE)))
    assert 0 < done < 65, "72 are needed"
    if begun == "approved":
        at.run(until=stopped + 5)
        assert at.daemon.remediations.decide(key, "root", approved=True) == "done again"
        at.run(until=stopped + 100)
        assert len(list(at.journal.entries(Outcome.DONE))) > done
        return
    if begun:
        memory, at.daemon = at.daemon.memory, Daemon(at.daemon.parts)
        if begun == "reloaded":
            at.daemon.take_over(memory)
    at.run(until=stopped + 100)
    (finding,) = [finding for finding in at.daemon.findings if finding.key == key]
    assert len(list(at.journal.entries(Outcome.DONE))) == done, "it backs off"
    assert [refusal.reason for refusal in at.daemon.remediations.refusals(finding.key)] == [Reason.COOLING_DOWN]
    words = at.daemon.remediations.refusals(finding.key)[0].sentence
    assert words == "the last moves: other jobs got slower" if begun else "the files stay" in words
    at.run(until=stopped + 300)
    assert len(list(at.journal.entries(Outcome.DONE))) > done


@pytest.mark.parametrize("text", [
    "", ON.replace("[act]", "[act]\nmode = 'new-files-only'"), ON.replace("[act]", "[act]\nmode = 'observe'"),
    ON + "directories = ['/elsewhere']\n", ON + "idle_days = 90\n", ON + "[detect.imbalance]\nenabled = false\n"])
def test_nothing_moves_without_permission(tmp_path: Path, text: str) -> None:
    at = uneven(tmp_path, text)
    at.run(until=200)
    assert list(at.journal.entries()) == []


def test_a_dry_run_moves_nothing_and_names_each_file_once(tmp_path: Path) -> None:
    at = uneven(tmp_path, dry_run=True)
    before = used(at)
    at.run(until=400)
    assert used(at) == pytest.approx(before, abs=0.01)
    places = [entry.place for entry in at.journal.entries()]
    assert places
    assert len(set(places)) == len(places)
    (case,) = [case for case in at.daemon.store if case.finding.kind == "imbalance"]
    at.daemon.undoing.act_by_hand(at.journal.entries()[0], "root")
    assert +case.moves == at.journal.moves_of(case.number), "one less would be moved, not one less was"
