"""The choice between a mirror and a move, and between a split and a demotion."""

from dataclasses import replace
from pathlib import Path

import pytest

from lustre.fid import Fid
from lustre.layout.model import Component, Layout, StripeObject, explain, with_mirror
from simulator.cluster import Cluster
from tests.tierd.daemon.test_further_findings import READING
from tests.tierd.policies.test_flash_plans import COLD, HOT, READ_AGAIN, candidate, room
from tests.tierd.simulated import world
from tierd.act.journal.entry import Entry
from tierd.acts import ActKind, Outcome
from tierd.config.load import parse
from tierd.daemon.remediation import is_undone
from tierd.decide.plans import FlashSettings, Plan
from tierd.engine import situation_of
from tierd.mirrors.policy import kept
from tierd.model import DirectoryActivity, Facts, StoredFile
from tierd.policies import cold_on_flash, hot_small_files
from tierd.policies.hot_small_files import HotSmallFilesEvidence
from tierd.policies.protocol import Situation

DAY = 86_400.0
ON_DISKS = Layout((Component(pool="hdd", objects=(StripeObject(1, Fid(1, 1)),)),), composite=False)
FIRST_64K = Layout((Component(0, 65536, "flash"), Component(65536, None, "hdd")))


def hot(evidence: HotSmallFilesEvidence = READ_AGAIN, on: str = "'hot-small-files', 'mirror-on-flash'") -> Plan:
    settings = parse(f"[act]\non = [{on}]\n".encode(), "t.toml")
    activity = DirectoryActivity("py.3", "/d", creates=3, candidates=tuple(candidate(n) for n in range(20)),
                                 sizes=(65536,) * 20)
    situation = replace(situation_of(settings, room(layout=None)), activities=[activity])
    return hot_small_files.plan(HOT, evidence, situation)


def mirrored(number: int, days: float, *, prefer: bool = True) -> StoredFile:
    both = with_mirror(ON_DISKS, FIRST_64K)
    first, *rest = both.components
    flags = ("prefer",) if prefer else ()
    layout = replace(both, components=(first, replace(rest[0], flags=flags), *rest[1:]))
    return StoredFile(Fid(1, number), f"/d/f{number}", 1 << 20, ("hdd", "flash"), HOT.time - days * DAY, layout=layout)


def cold(*files: StoredFile, ours: bool = True, free: float = 0) -> Plan:
    assert isinstance(COLD.evidence, cold_on_flash.ColdOnFlashEvidence)
    return cold_on_flash.plan(COLD, COLD.evidence, Situation(
        room(hdd_free=free), FlashSettings(), facts=Facts(stored=files), unmirrored=kept,
        made_mirrors=lambda *_: ours))


def test_files_that_are_only_read_get_a_mirror_and_new_ones_the_plain_default() -> None:
    default, *moves = hot().actions
    assert (default.kind, explain(default.layout)) == (ActKind.SET_DEFAULT_LAYOUT,
                                                       "first 64K on flash (1 stripe), rest on hdd (default stripes)")
    assert {action.layout.mirror_count for action in moves} == {2}
    assert {action.layout.components[0].pool for action in moves} == {"flash"}
    assert explain(with_mirror(ON_DISKS, moves[0].layout)) == (
        "mirror 1: whole file on hdd (1 stripe); mirror 2: first 64K on flash (1 stripe), rest on hdd (1 stripe)")


@pytest.mark.parametrize("plan", [
    hot(on="'hot-small-files'"), hot(replace(READ_AGAIN, read_operations_share=0.8))], ids=["off", "written"])
def test_otherwise_files_move(plan: Plan) -> None:
    assert {action.layout.mirror_count for action in plan.actions} == {1}


def test_cold_mirrors_go_first_and_need_no_room_on_disks() -> None:
    plain = StoredFile(Fid(2, 1), "/d/plain", 64 << 10, ("flash",), HOT.time - 90 * DAY, layout=FIRST_64K)
    plan = cold(plain, mirrored(1, 30), mirrored(2, 40))
    assert [action.path for action in plan.actions] == ["/d/f2", "/d/f1"]
    assert {explain(action.layout) for action in plan.actions} == {explain(ON_DISKS)}
    assert [action.path for action in cold(plain, mirrored(1, 30), free=500e9).actions] == ["/d/f1", "/d/plain"]


def test_a_mirror_is_removed_if_it_did_not_help_and_a_moved_file_stays() -> None:
    both = with_mirror(ON_DISKS, FIRST_64K)
    entry = Entry(1, ActKind.MIGRATE, "/d/f", ON_DISKS, both, 65536, Outcome.DONE, "", "", 1.0)
    assert is_undone(HOT, entry)
    assert not is_undone(HOT, replace(entry, after=FIRST_64K))


@pytest.mark.parametrize("plan", [
    cold(mirrored(1, 30), ours=False), cold(mirrored(1, 30, prefer=False)), cold(mirrored(1, 1))],
    ids=["of others", "not preferred", "used lately"])
def test_these_mirrors_stay(plan: Plan) -> None:
    assert plan.actions == ()


TEXT = b"""
[act]
on = ['hot-small-files', 'cold-on-flash', 'mirror-on-flash']
[detect.cold_on_flash]
cold_days = 0.0003
[small_files_to_flash]
reserve = 0.0
"""


def test_mirrors_come_and_go(tmp_path: Path) -> None:
    job = replace(READING, files_per_second=1.0, rereads_per_second=20.0, stop_seconds=200.0)
    at = world(tmp_path, (job,), parse(TEXT, "t.toml"), model=Cluster)
    at.run(200)
    moved = [entry for entry in at.journal.entries(Outcome.DONE) if entry.kind == ActKind.MIGRATE]
    assert len(moved) > 10
    assert {entry.layout_after.mirror_count for entry in moved if entry.layout_after is not None} == {2}
    assert any("to a mirror: first 64K on flash" in words for words in at.said)
    both = [at.filesystem.layout(entry.place) for entry in moved]
    assert {part.pool for layout in both if layout is not None for part in layout.components} == {"hdd", "flash"}
    size = {ost: ost.store.space().avail_bytes for ost in at.cluster.osts[:2]}
    for step in range(1, 7):  # slowly, or the default layout would be undone
        for ost in at.cluster.osts[:2]:
            ost.store.withheld_bytes = size[ost] * 14 * step // 100
        at.run(200 + 10 * step)
    at.run(400)
    split = [entry for entry in at.journal.entries(Outcome.DONE) if entry.layout_before is not None
             and entry.layout_before.mirror_count == 2]
    assert len(split) > 5
    for entry in split:
        layout = at.filesystem.layout(entry.place)
        assert layout.components[0].objects == entry.layout_before.components[0].objects, "nothing was copied back"
        assert {part.pool for part in layout.components} == {"hdd"}
