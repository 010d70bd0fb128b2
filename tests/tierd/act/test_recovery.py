"""What was under way when tierd died is closed by what is found."""

from __future__ import annotations

from lustre.errors import of_errno
from tests.tierd.act.gate_world import World
from tests.tierd.act.gate_world import world as world
from tierd.act.recovery import close_unfinished
from tierd.acts import Outcome


def test_unfinished_acts_are_closed_by_what_is_found(world: World) -> None:
    names = world.files(4)
    world.submit(*names)
    world.pump()
    world.default()
    world.undo(next(world.journal.entries()), "")
    world.lustre.unlink("/2")
    world.lustre.rename("/3", "/2")
    world.journal._db.execute("UPDATE actions SET outcome = 'under way'")
    found = {entry.place: outcome for entry, outcome, _ in close_unfinished(world.journal, world.port, 2.0)}
    assert found == {"/0": "interrupted", "/1": "done", "/2": "gone", "/3": "gone", "/d": "done"}
    assert list(world.journal.entries(Outcome.UNDER_WAY)) == []


def test_an_undo_that_was_under_way_is_closed_either_way(world: World) -> None:
    world.submit(*world.files(2))
    world.pump()
    first, second = world.journal.entries()
    world.undo(first, "")
    for entry in (first, second):
        world.journal.begin_undo(entry.id, 2.0)
    assert [e.outcome for e in world.journal.entries()] == [Outcome.UNDOING, Outcome.UNDOING]
    assert [outcome for _, outcome, _ in close_unfinished(world.journal, world.port, 2.0)] == ["undone", "done"]


def test_an_act_that_cannot_be_checked_is_closed_as_interrupted(world: World) -> None:
    world.submit(*world.files(1))
    world.pump()
    world.journal._db.execute("UPDATE actions SET outcome = 'under way'")

    def fails(name: str, _: int) -> None:
        raise of_errno(5, name)

    world.port.calls.before = fails
    ((_, outcome, detail),) = close_unfinished(world.journal, world.port, 2.0)
    assert outcome == "interrupted"
    assert "cannot examine the result" in detail
