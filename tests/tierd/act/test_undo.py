"""Undo of acts, and recovery of those that a kill interrupted."""

import pytest

from lustre.errors import of_errno
from lustre.layout.model import Component, Layout
from tests.tierd.act.gate_world import DATA, World
from tests.tierd.act.movers.minilustre import HDD, MiniLustre
from tests.tierd.later import raising
from tierd.act.journal.entry import Entry
from tierd.act.undo import close_unfinished, undo_layout
from tierd.acts import Outcome


def moved(world: World, count: int) -> list[Entry]:
    """The acts by which as many files were moved."""
    world.submit(*world.files(count))
    world.pump()
    return list(world.journal.entries(Outcome.DONE))


def test_a_move_is_undone_only_for_the_file_that_was_moved(world: World) -> None:
    first, second = moved(world, 2)
    assert world.undo(first, "by tierctl") == ("undone", "by tierctl")
    assert (world.pool("/0"), world.lustre.contents("/0")) == ("hdd", bytes(100))
    world.lustre.rename("/0", "/1")
    assert world.undo(second, "by tierctl")[0] == "refused"
    assert [e.outcome for e in world.journal.entries()] == ["undone", "done"]


def test_a_file_that_was_renamed_is_moved_back(world: World) -> None:
    first, second = moved(world, 2)
    world.lustre.rename("/0", "/moved")
    world.lustre.rename("/1", "/0")
    assert [world.undo(entry, "by tierctl") for entry in (first, second)] == [("undone", "by tierctl")] * 2
    assert (world.pool("/moved"), world.pool("/0")) == ("hdd", "hdd")


def test_of_a_file_that_was_removed_it_says_so(world: World) -> None:
    (entry,) = moved(world, 1)
    world.lustre.unlink("/0")
    assert world.undo(entry, "by tierctl") == ("refused", "the file no longer exists")


def test_a_file_that_had_no_pool_goes_back_to_the_pool_its_objects_were_in(world: World) -> None:
    node = world.lustre.create("/plain", DATA, Layout((Component(),), composite=False))
    assert [o.ost_index for o in node.store.layout.components[0].objects] == [5]
    world.submit("/plain")
    assert world.pump() == {"done": 1}
    (entry,) = world.journal.entries(Outcome.DONE)
    assert world.undo(entry, "")[0] == "undone"
    assert world.pool("/plain") == "hdd"
    assert world.lustre.contents("/plain") == DATA


def test_without_such_a_pool_administrators_decide(world: World) -> None:
    world.lustre.create("/plain", DATA, Layout((Component(),), composite=False))
    world.submit("/plain")
    world.pump()
    world.lustre.pool_members["hdd"] = ("lustre-OST0002",)
    (entry,) = world.journal.entries(Outcome.DONE)
    result, detail = world.undo(entry, "")
    assert result == "refused"
    assert "was on OST0005, and no pool has all of these" in detail
    assert [e.outcome for e in world.journal.entries()] == ["done"]


def test_components_without_objects_go_where_the_one_before_went() -> None:
    lustre = MiniLustre()
    placed = lustre.create("/a", b"", Layout((Component(0, 1 << 20),))).store.layout.components[0]
    before = Layout((placed, Component(1 << 20, None, stripe_count=4)))
    assert [c.pool for c in undo_layout(before, lustre.pool_members).components] == ["hdd", "hdd"]
    with pytest.raises(ValueError, match="the earlier pool is unknown"):
        undo_layout(Layout((Component(),), composite=False), lustre.pool_members)


def test_a_pool_on_data_on_the_mdt_is_where_nothing_lay() -> None:
    """Lustre 2.17 puts the name of the directory's pool there: what came behind it did not lie in that pool."""
    on_mdt = Component(0, 65536, pool="hdd", pattern="mdt", stripe_count=0)
    with pytest.raises(ValueError, match="the earlier pool is unknown"):
        undo_layout(Layout((on_mdt, Component(65536))), {"hdd": ("fs-OST0001",)})


def test_an_undo_that_fails_leaves_the_act_done(world: World) -> None:
    (entry,) = moved(world, 1)
    world.lustre.open_writer("/0")
    assert world.undo(entry, "")[0] == "gave-way"
    (entry,) = world.journal.entries(Outcome.DONE)
    assert entry.detail.startswith("not undone: ")


def test_an_undo_with_a_doubtful_outcome_stops_all_moves(world: World) -> None:
    """As a move does: whatever went wrong would go on with the next file."""
    entry, _ = moved(world, 2)
    node = world.lustre.names["/0"]
    world.calls.before = lambda name, _: setattr(node, "project", 8) if name == "swap_and_close" else None
    assert world.undo(entry, "")[0] == "doubtful"
    assert "not as expected after the undo" in world.gate.operating_state.tripped


def test_unfinished_acts_are_closed_by_what_is_found(world: World) -> None:
    first, *_ = moved(world, 4)
    world.default()
    world.undo(first, "")
    world.lustre.unlink("/2")
    world.lustre.rename("/3", "/2")
    world.journal.db.execute("UPDATE actions SET outcome = 'under way'")
    found = {entry.place: outcome for entry, outcome, _ in close_unfinished(world.journal, world.port, 2.0)}
    assert found == {"/0": "interrupted", "/1": "done", "/2": "gone", "/3": "done", "/d": "done"}
    assert list(world.journal.entries(Outcome.UNDER_WAY)) == []


def test_a_third_layout_is_not_called_unchanged(world: World) -> None:
    """lfs of a killed tierd got fewer stripes than requested, or somebody else moved the file."""
    moved(world, 2)
    world.journal.db.execute("UPDATE actions SET outcome = 'under way'")
    world.lustre.names["/0"].store.layout = Layout((Component(pool="hdd", stripe_count=3),), composite=False)
    world.lustre.names["/1"].store.layout = HDD
    third, old = (detail for _, _, detail in close_unfinished(world.journal, world.port, 2.0))
    assert third.endswith("neither the earlier nor the wanted one: whole file on hdd (3 stripes)")
    assert old.endswith("nothing is changed")


def test_an_undo_that_was_under_way_is_closed_either_way(world: World) -> None:
    first, second = moved(world, 2)
    world.undo(first, "")
    for entry in (first, second):
        world.journal.begin_undo(entry.id, 2.0)
    assert [e.outcome for e in world.journal.entries()] == [Outcome.UNDOING, Outcome.UNDOING]
    assert [outcome for _, outcome, _ in close_unfinished(world.journal, world.port, 2.0)] == ["undone", "undoing"]


@pytest.mark.parametrize("undoing", [False, True])
def test_a_default_that_cannot_be_checked_is_in_force_and_a_move_waits_until_it_can_be(
        world: World, monkeypatch: pytest.MonkeyPatch, *, undoing: bool) -> None:
    (entry,) = moved(world, 1)
    world.default()
    if undoing:
        world.undo(entry, "before the kill")
    world.journal.db.execute("UPDATE actions SET outcome = ?", ("undoing" if undoing else "under way",))

    with monkeypatch.context() as away:
        away.setattr(world.port, "layout", raising(of_errno(5, "layout", "/0")))
        found = list(close_unfinished(world.journal, world.port, 2.0))
    assert [outcome for _, outcome, _ in found] == (["undoing"] * 2 if undoing else ["under way", "done"])
    assert all("cannot examine the result" in detail for _, _, detail in found)
    assert [outcome for _, outcome, _ in close_unfinished(world.journal, world.port, 2.0, {entry.id})] == [
        "undone" if undoing else "done"]
    assert [world.undo(each, "because")[0] for each, *_ in found] == ["refused" if undoing else "undone", "undone"]
    assert world.port.defaults["/d"] == HDD
