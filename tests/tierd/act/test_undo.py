"""Undo of default layouts and of moves, and what is found of an act after an error or a kill."""

from dataclasses import replace
from typing import Any

import pytest

from lustre.errors import of_errno
from lustre.fid import Fid
from lustre.layout.model import EOF, Component, Foreign, Layout, StripeObject
from tests.tierd.act.gate_world import DATA, FINDING, World
from tests.tierd.act.movers.minilustre import FLASH, HDD, MiniLustre
from tests.tierd.later import raising
from tierd.act.journal.entry import Entry
from tierd.act.undo import close_unfinished, undo_layout
from tierd.acts import ActKind, Outcome
from tierd.model import Action

ON_MDT = Layout((Component(0, 65536, stripe_count=0, stripe_size=65536, pattern="mdt"), Component(65536, EOF, "hdd")))
TWICE = Layout((Component(0, EOF, "flash", mirror_id=1), Component(0, EOF, "hdd", mirror_id=2)), mirror_count=2)


def done(world: World) -> Entry:
    (entry,) = world.journal.entries(Outcome.DONE)
    return entry


def one(**fields: Any) -> Layout:
    return Layout((replace(Component(pool="hdd"), **fields),), composite=False)


@pytest.mark.parametrize(("present", "problem"), [
    (TWICE, "gives new files 2 mirrors"),
    (one(stripe_offset=3), "names OSTs"),
    (one(objects=(StripeObject(3, Fid(0, 0)),)), "names OSTs"),
    (one(pattern="raid0,compress"), "has compress, which tierd cannot restore"),
    (one(flags=("parity",)), "has parity, which tierd cannot restore"),
    (one(pattern="foreign", foreign=Foreign(b"x")), "has foreign, which tierd cannot restore"),
])
def test_a_default_that_cannot_be_restored_is_left(world: World, present: Layout, problem: str) -> None:
    world.port.defaults["/d"] = present
    outcome = world.default()
    assert outcome.result == "refused"
    assert problem in outcome.detail
    assert world.port.defaults["/d"] == present


def test_mirrors_by_the_default_of_the_root_are_kept_too(world: World) -> None:
    world.port.defaults |= {"/": TWICE, "/d": None}
    assert "2 mirrors" in world.default().detail
    world.port.defaults["/d"] = HDD
    assert world.default().result == "done"


def test_the_default_of_the_root_stays(world: World) -> None:
    world.port.defaults |= {"/": one(stripe_offset=0), "/d": None}
    assert world.default().result == "done"
    world.undo(done(world), "")
    assert world.port.defaults == {"/": one(stripe_offset=0), "/d": None}


@pytest.mark.parametrize("most", [0, 32768])
def test_a_layout_that_the_mdt_cuts_is_undone_at_once(world: World, most: int) -> None:
    world.port.most_data_on_mdt = most
    outcome = world.default(ON_MDT)
    assert outcome.result == "failed"
    assert "dom_stripesize" in outcome.detail
    assert world.port.defaults["/d"] == HDD
    world.port.most_data_on_mdt = 65536
    assert world.default(ON_MDT).result == "done"


def test_a_default_that_somebody_else_sets_in_this_moment_stays(world: World) -> None:
    theirs = one(stripe_count=7)
    change = world.port.set_default_layout

    def both(directory: str, layout: Layout | None, _: object) -> None:
        change(directory, layout)
        world.port.defaults[directory] = theirs

    world.port.set_default_layout = both  # type: ignore[method-assign, assignment]
    outcome = world.default(ON_MDT)
    assert (outcome.result, "leaves in place: whole file on hdd (7 stripes)" in outcome.detail) == ("failed", True)
    assert world.port.defaults["/d"] == theirs


@pytest.mark.parametrize(("name", "was_set"), [
    ("layout", False), ("set_default_layout", False), ("set_default_layout", True)])
def test_a_directory_that_takes_the_name_of_another_keeps_its_default(
        world: World, monkeypatch: pytest.MonkeyPatch, name: str, was_set: bool) -> None:
    """Who may rename both can exchange them at any time."""
    world.port.defaults["/other"] = theirs = one(stripe_count=7)
    world.port.status("/other")
    call = getattr(world.port, name)

    def exchanged(*arguments: Any) -> Any:
        monkeypatch.undo()
        if was_set:
            call(*arguments)
        world.port.rename("/d", "/mine")
        world.port.rename("/other", "/d")
        return was_set or call(*arguments)

    monkeypatch.setattr(world.port, name, exchanged)
    assert (world.default().result == "done") is was_set
    assert world.port.defaults == {"/d": theirs, "/mine": FLASH if was_set else HDD}
    if was_set:
        assert world.undo(done(world), "")[0] == "undone"
        assert world.port.defaults == {"/d": theirs, "/mine": HDD}


@pytest.mark.parametrize("happens", [True, False])
def test_an_error_says_nothing_of_what_was_done(world: World, happens: bool) -> None:
    change = world.port.set_default_layout

    def ignored_call(directory: str, layout: Layout | None, _: object) -> None:
        if happens:
            change(directory, layout)
        raise of_errno(5, "set layout", directory)

    world.port.set_default_layout = ignored_call  # type: ignore[method-assign, assignment]
    assert world.default().result == ("done" if happens else "failed")
    world.port.set_default_layout = change  # type: ignore[method-assign]
    world.default()
    world.port.set_default_layout = ignored_call  # type: ignore[method-assign, assignment]
    assert world.undo(done(world), "")[0] == "failed"
    entry = done(world)
    assert "not undone: set layout: Input/output error" in entry.detail
    world.port.set_default_layout = change  # type: ignore[method-assign]
    assert world.undo(entry, "because")[0] == "undone"
    assert world.port.defaults["/d"] == HDD


@pytest.mark.parametrize(("number", "result"), [(5, "done"), (2, "failed"), (116, "failed")])
def test_what_an_error_may_have_done_is_in_force_if_nobody_can_look(
        world: World, monkeypatch: pytest.MonkeyPatch, number: int, result: str) -> None:
    change = world.port.set_default_layout

    def away(directory: str, layout: Layout | None, _: object) -> None:
        change(directory, layout)
        monkeypatch.setattr(world.port, "layout", raising(of_errno(number, "layout", directory)))
        raise of_errno(110, "set layout", directory)

    monkeypatch.setattr(world.port, "set_default_layout", away)
    assert world.default().result == result
    monkeypatch.undo()
    (entry,) = world.journal.entries()
    assert world.undo(entry, "because")[0] == ("undone" if result == "done" else "refused")
    assert world.port.defaults["/d"] == (HDD if result == "done" else FLASH)


def test_nothing_changes_before_followers_have_the_intent(world: World) -> None:
    unreachable = raising(OSError("no broker"))
    publish, world.journal.publish = world.journal.publish, unreachable
    outcome = world.default()
    assert (outcome.result, world.port.defaults["/d"]) == ("refused", HDD)
    assert "the intent cannot be copied to followers: no broker" in outcome.detail
    world.journal.publish = publish
    world.default()
    world.journal.publish = unreachable
    assert world.undo(done(world), "because")[0] == "failed"
    assert world.port.defaults["/d"] == FLASH
    world.journal.publish = publish
    assert world.undo(done(world), "because")[0] == "undone"


def test_an_undo_whose_default_lustre_changes_has_failed(world: World) -> None:
    """A Lustre that keeps the pool of tierd's layout, although the restored layout names no pool."""
    world.port.defaults["/d"] = before = Layout((Component(stripe_count=4),), composite=False)
    world.default()
    change = world.port.set_default_layout

    def keeping(directory: str, layout: Layout | None, _: object) -> None:
        assert layout == before
        change(directory, replace(layout, components=(replace(layout.components[0], pool="flash"),)))

    world.port.set_default_layout = keeping  # type: ignore[method-assign, assignment]
    assert world.undo(done(world), "") == ("failed", "Lustre changed the default while restoring it")
    assert done(world).detail == "not undone: Lustre changed the default while restoring it"
    assert list(close_unfinished(world.journal, world.port, 2.0)) == []


@pytest.mark.parametrize("undoing", [False, True])
def test_a_default_that_is_neither_of_the_two_is_reported_after_a_kill(world: World, undoing: bool) -> None:
    """As Lustre leaves it where the MDT cut it, and tierd was killed before it could revert it."""
    world.port.most_data_on_mdt = 32768
    action = Action(ActKind.SET_DEFAULT_LAYOUT, ON_MDT, "", FINDING.key, "/d")
    entry = world.journal.intend(action, world.finding, HDD, 1.0, dry_run=False, fid=world.port.status("/d").fid)
    world.port.set_default_layout("/d", ON_MDT)
    if undoing:
        world.journal.begin_undo(entry, 2.0)
    ((_, outcome, detail),) = close_unfinished(world.journal, world.port, 2.0)
    present = detail.partition("wanted one: ")[2]
    assert (outcome, present) == ("interrupted", "first 32K on the MDT, rest on hdd (1 stripe)")


# Undo of acts, and recovery of those that a kill interrupted


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
    assert world.undo(second, "by tierctl") == ("refused", "the file no longer exists")
    assert [e.outcome for e in world.journal.entries()] == ["undone", "done"]


def test_a_file_that_was_renamed_is_moved_back(world: World) -> None:
    first, second = moved(world, 2)
    world.lustre.rename("/0", "/moved")
    world.lustre.rename("/1", "/0")
    assert [world.undo(entry, "by tierctl") for entry in (first, second)] == [("undone", "by tierctl")] * 2
    assert (world.pool("/moved"), world.pool("/0")) == ("hdd", "hdd")


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
    assert [move.path for move in world.journal.queue.all()] == ["/0"]


def test_a_third_layout_is_not_called_unchanged(world: World) -> None:
    """lfs of a killed tierd got fewer stripes than requested, or somebody else moved the file."""
    moved(world, 2)
    world.journal.db.execute("UPDATE actions SET outcome = 'under way'")
    world.lustre.names["/0"].store.layout = Layout((Component(pool="hdd", stripe_count=3),), composite=False)
    world.lustre.names["/1"].store.layout = HDD
    third, old = (detail for _, _, detail in close_unfinished(world.journal, world.port, 2.0, again=False))
    assert not world.journal.queue.all(), "an engine of the tierd that was killed may still have them"
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
    assert [world.undo(each, "because")[0] for each, *_ in found] == ["under way" if undoing else "undone", "undone"]
    assert world.port.defaults["/d"] == HDD
