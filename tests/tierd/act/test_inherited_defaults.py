"""Undo reaches the directories that were made below one while it had tierd's default, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lustre.errors import of_errno
from lustre.filesystem import FileStatus
from lustre.layout.model import Component, Layout
from tests.tierd.act.gate_world import FINDING, World, submitted
from tests.tierd.act.miniport import MiniPort
from tests.tierd.act.movers.minilustre import FLASH, HDD
from tests.tierd.act.test_default_layouts import done, given
from tierd.act.undo import SEARCH_SECONDS, Undo, close_unfinished
from tierd.acts import ActKind, Outcome
from tierd.model import Action
from tierd.refusal import Reason, Refusal

OTHER = Layout((Component(pool="hdd", stripe_count=3),), composite=False)
LARGER = Layout((Component(0, 4 << 20, "flash"), Component(4 << 20, None, "hdd")))


class Dated(MiniPort):
    """Directories have times, and some cannot be listed."""

    times: dict[str, float]
    closed: frozenset[str] = frozenset()

    def status(self, path: str) -> FileStatus:
        return replace(super().status(path), mtime=self.times.get(path, 1000.0))

    def subdirectories(self, directory: str) -> list[str]:
        if directory in self.closed:
            raise of_errno(5, "list", directory)
        return super().subdirectories(directory)

    def make(self, path: str) -> None:
        """As mkdir does it."""
        self.defaults[path] = self.defaults[path.rpartition("/")[0]]


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    port = Dated(made.lustre)
    port.times = {}
    port.defaults, port.fids = made.port.defaults, made.port.fids
    made.port = port
    made.undo = Undo(port, made.engine, made.journal, made.clock)
    return made


def make(world: World, *paths: str) -> None:
    for path in paths:
        world.port.make(path)


def act(world: World, directory: str, layout: Layout) -> None:
    action = Action(ActKind.SET_DEFAULT_LAYOUT, layout, "because", FINDING.key, directory)
    assert [outcome.result for outcome in submitted(world.gate, [action], world.finding)] == ["done"]


def undo_all(world: World, order: Sequence[int]) -> None:
    entries = list(world.journal.entries())
    assert [world.undo(entries[number], "because").outcome for number in order] == ["undone"] * len(order)


def test_copied_layouts_are_undone_with_their_original(world: World) -> None:
    given(world, FLASH)
    make(world, "/d/new", "/d/new/deeper", "/d/new/deeper/still")
    world.port.defaults |= {"/d/theirs": OTHER, "/d/none": None}
    make(world, "/d/theirs/below")
    assert world.undo(done(world), "because") == ("undone", "because; also restored 3 directories created below")
    assert world.port.defaults == {"/d": HDD, "/d/new": HDD, "/d/new/deeper": HDD, "/d/new/deeper/still": HDD,
                                   "/d/theirs": OTHER, "/d/theirs/below": OTHER, "/d/none": None}


def test_a_directory_that_takes_the_name_during_the_search_keeps_its_default(
        world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    given(world, FLASH)
    make(world, "/d/new")
    world.port.defaults["/theirs"] = OTHER
    status = world.port.status

    def replaced(path: str) -> FileStatus:
        if path == "/d/new" and "/theirs" in world.port.defaults:
            world.port.rename("/d/new", "/d/away")
            world.port.rename("/theirs", "/d/new")
        return status(path)

    monkeypatch.setattr(world.port, "status", replaced)
    undo_all(world, [0])
    assert world.port.defaults["/d/new"] == OTHER


def test_older_directories_keep_their_default(world: World) -> None:
    world.port.defaults |= {"/d/old": FLASH, "/d/old/below": FLASH}
    world.port.times = {"/d/old": 900.0}  # type: ignore[attr-defined]
    given(world, FLASH)
    assert world.undo(done(world), "because")[1] == "because; left 1 older directory below with this default"
    assert world.port.defaults["/d/old"] == world.port.defaults["/d/old/below"] == FLASH


def test_one_act_of_several_can_be_undone(world: World) -> None:
    world.port.defaults["/d/own"] = None
    given(world, FLASH)
    (first,) = world.journal.entries(Outcome.DONE)
    act(world, "/d/own", FLASH)
    make(world, "/d/own/below")
    assert world.undo(first, "because") == ("undone", "because")
    assert world.port.defaults["/d/own"] == FLASH
    assert world.undo(done(world), "")[0] == "undone"
    assert world.port.defaults == {"/d": HDD, "/d/own": None, "/d/own/below": None}


def test_unreadable_subdirectories_are_reported(world: World) -> None:
    given(world, FLASH)
    make(world, "/d/a", "/d/b", "/d/b/c")
    world.port.closed = frozenset({"/d/b"})  # type: ignore[attr-defined]
    result, detail = world.undo(done(world), "because")
    assert (result, world.port.defaults["/d/b"], world.port.defaults["/d/b/c"]) == ("undone", HDD, FLASH)
    assert detail == ("because; also restored 2 directories created below; directories created below may "
                      "still have tierd's default (list: Input/output error): lfs getstripe -d -r")


@pytest.fixture
def slow(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A file system whose every listing takes longer than a step of the search."""
    listed = world.port.subdirectories

    def subdirectories(directory: str) -> list[str]:
        world.clock.time += SEARCH_SECONDS + 1
        return listed(directory)

    monkeypatch.setattr(world.port, "subdirectories", subdirectories)
    return world


GOES_ON = "tierd goes on with the directories below"


@pytest.mark.parametrize("kills", [False, True])
@pytest.mark.parametrize("renamed", [False, True])
def test_a_search_goes_on_in_steps_to_its_end(slow: World, *, kills: bool, renamed: bool) -> None:
    given(slow, FLASH)
    entry = done(slow)
    make(slow, "/d/a", "/d/a/b", "/d/c", "/d/new", "/d/new/deeper", "/d/new/deeper/still")
    act(slow, "/d/new", LARGER)
    make(slow, "/d/new/last")
    assert slow.undo(entry, "because") == ("undoing", f"because; {GOES_ON}")
    for step in range(20):
        if kills:
            slow.undo = Undo(slow.port, slow.engine, slow.journal, slow.clock)
            list(close_unfinished(slow.journal, slow.port, slow.clock.time))
        if renamed and step == 2:
            slow.port.rename("/d", "/e")
        if (result := slow.undo(entry, "because")).outcome == Outcome.UNDONE:
            break
        assert result.detail.endswith(GOES_ON)
        assert slow.journal.undone_at("/d") == slow.clock.time
        if kills:  # from the beginning each time
            slow.clock.time = 1000.0
            slow.port.subdirectories = type(slow.port).subdirectories.__get__(slow.port)  # type: ignore[method-assign]
    assert kills or renamed or result.detail == "because; also restored 5 directories created below"
    second = slow.journal.entries(Outcome.DONE)[-1]
    while slow.undo(second, "because").outcome != Outcome.UNDONE:
        pass
    assert set(map(repr, slow.port.defaults.values())) == {repr(HDD)}


def test_an_act_below_whose_search_goes_on_restores_what_was_before_both(slow: World) -> None:
    given(slow, FLASH)
    make(slow, "/d/new", "/d/new/a")
    act(slow, "/d/new", LARGER)
    make(slow, "/d/new/b", "/d/new/b/c")
    first, second = slow.journal.entries()
    assert slow.undo(second, "because").outcome == Outcome.UNDOING
    while slow.undo(first, "because").outcome != Outcome.UNDONE:
        pass
    while slow.undo(second, "because").outcome != Outcome.UNDONE:
        pass
    assert set(map(repr, slow.port.defaults.values())) == {repr(HDD)}


def test_a_claim_that_is_lost_meanwhile_holds_it(world: World) -> None:
    given(world, FLASH)
    make(world, "/d/a")
    said = iter((None, Refusal(Reason.CLAIM_LOST, "another tierd took over this file system")))
    undo = Undo(world.port, world.engine, world.journal, world.clock, lambda: next(said))
    assert undo(done(world), "").outcome == Outcome.UNDOING
    assert world.port.defaults == {"/d": HDD, "/d/a": FLASH}
    assert [entry.outcome for entry in world.journal.entries()] == ["undoing"]


def test_an_undo_that_was_ended_in_the_middle_is_not_over(world: World) -> None:
    """Acts and directories below have tierd's default until the undo goes on."""
    given(world, FLASH)
    make(world, "/d/a")
    make(world, "/d/new")
    act(world, "/d/new", LARGER)
    first, second = world.journal.entries()
    world.port.rename("/d", "/e")
    world.journal.begin_undo(first.id, 2.0)
    world.port.set_default_layout("/e", HDD)
    assert [outcome for _, outcome, _ in close_unfinished(world.journal, world.port, 3.0)] == ["undoing"]
    assert [world.undo(each, "because").outcome for each in (first, second)] == ["undone", "undone"]
    assert world.port.defaults == {"/e": HDD, "/e/a": HDD, "/e/new": HDD}


def test_an_undo_that_goes_on_looks_below_what_it_had_restored(world: World) -> None:
    given(world, FLASH)
    for place in ("/d/new", "/d/new/deeper"):
        make(world, place)
    for place in ("/d", "/d/new"):
        world.port.set_default_layout(place, HDD)
    assert world.undo(done(world), "because").outcome == "undone"
    assert world.port.defaults == {"/d": HDD, "/d/new": HDD, "/d/new/deeper": HDD}


ON_TOP = "act 2 has replaced it; undoing that act restores what was before both"


class Killed(BaseException):
    pass


def test_the_undo_of_an_act_with_another_on_top_goes_on_after_a_kill(
        world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    given(world, FLASH)
    make(world, "/d/new")
    given(world, LARGER)
    first, second = world.journal.entries()

    def kill(directory: str) -> list[str]:
        raise Killed

    with monkeypatch.context() as at:
        at.setattr(world.port, "subdirectories", kill)
        with pytest.raises(Killed):
            world.undo(first, "because")
    assert [outcome for _, outcome, _ in close_unfinished(world.journal, world.port, 3.0)] == ["undoing"]
    result, detail = world.undo(first, "because")
    assert (result, detail.partition("; ")[2]) == ("undone", f"{ON_TOP}; also restored 1 directory created below")
    assert world.undo(second, "because").outcome == "undone"
    assert world.port.defaults == {"/d": HDD, "/d/new": HDD}


def test_a_directory_that_was_renamed_is_found_again(world: World) -> None:
    given(world, FLASH)
    make(world, "/d/new")
    world.port.rename("/d", "/e")
    world.port.defaults["/d"] = FLASH  # another one, which somebody gave tierd's layout
    entry = done(world)
    world.journal.begin_undo(entry.id, 2.0)
    assert [outcome for _, outcome, _ in close_unfinished(world.journal, world.port, 3.0)] == ["undoing"]
    assert world.undo(entry, "because") == ("undone", "because; also restored 1 directory created below")
    assert world.port.defaults == {"/e": HDD, "/e/new": HDD, "/d": FLASH}


def test_acts_below_are_known_by_their_directories_not_by_paths(world: World) -> None:
    """``mv run run.1; mkdir run``: the renamed directory has the act, and the new one inherited its default."""
    world.port.defaults["/d/run"] = None
    given(world, FLASH)
    act(world, "/d/run", FLASH)
    first, second = world.journal.entries()
    world.port.rename("/d/run", "/d/run.1")
    make(world, "/d/run")
    assert world.undo(first, "because") == ("undone", "because; also restored 1 directory created below")
    assert world.port.defaults == {"/d": HDD, "/d/run.1": FLASH, "/d/run": HDD}
    assert world.undo(second, "because")[0] == "undone"
    assert world.port.defaults == {"/d": HDD, "/d/run.1": None, "/d/run": HDD}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_undo_does_not_restore_an_inherited_default(world: World, order: Sequence[int]) -> None:
    given(world, FLASH)
    make(world, "/d/new", "/d/new/earlier", "/d/new/earlier/still")
    act(world, "/d/new", LARGER)
    make(world, "/d/new/later")
    undo_all(world, order)
    assert world.port.defaults == dict.fromkeys(
        ("/d", "/d/new", "/d/new/earlier", "/d/new/earlier/still", "/d/new/later"), HDD)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_an_act_over_an_older_default_restores_it(world: World, order: Sequence[int]) -> None:
    world.port.defaults["/d/old"] = FLASH
    world.port.times = {"/d/old": 900.0}  # type: ignore[attr-defined]
    given(world, FLASH)
    act(world, "/d/old", LARGER)
    undo_all(world, order)
    assert world.port.defaults == {"/d": HDD, "/d/old": FLASH}


def test_an_act_over_the_default_of_an_earlier_act_restores_that(world: World) -> None:
    world.port.defaults["/d/own"] = None
    act(world, "/d/own", FLASH)
    given(world, FLASH)
    act(world, "/d/own", LARGER)
    undo_all(world, (1, 2))
    assert world.port.defaults == {"/d": HDD, "/d/own": FLASH}, "the first act is in force"


def test_of_several_acts_over_an_inherited_default_the_first_restores_what_was_there(world: World) -> None:
    given(world, FLASH)
    make(world, "/d/new")
    for layout in (LARGER, FLASH, OTHER):
        act(world, "/d/new", layout)
    undo_all(world, (0, 3))
    assert world.port.defaults == {"/d": HDD, "/d/new": FLASH}, "the act before it is in force"
    undo_all(world, (2, 1))  # the first is undone
    assert world.port.defaults == {"/d": HDD, "/d/new": HDD}


def test_another_directory_with_the_former_name_is_not_above(world: World) -> None:
    given(world, FLASH)
    world.port.rename("/d", "/e")
    world.port.defaults |= {"/d": HDD, "/d/own": FLASH}  # by its owner
    act(world, "/d/own", LARGER)
    undo_all(world, (0, 1))
    assert world.port.defaults == {"/e": HDD, "/d": HDD, "/d/own": FLASH}


def test_a_directory_that_was_renamed_twice_is_above(world: World) -> None:
    given(world, FLASH)
    world.port.rename("/d", "/e")
    make(world, "/e/new")
    act(world, "/e/new", LARGER)
    world.port.rename("/e", "/f")
    undo_all(world, (0, 1))
    assert world.port.defaults == {"/f": HDD, "/f/new": HDD}


@pytest.mark.parametrize("error", [True, False])
def test_a_directory_that_was_moved_away_or_cannot_be_asked_for_restores_what_was_before_both(
        world: World, monkeypatch: pytest.MonkeyPatch, *, error: bool) -> None:
    given(world, FLASH)
    make(world, "/d/new")
    act(world, "/d/new", LARGER)
    first, second = world.journal.entries()
    if error:
        status = world.port.status

        def fails(path: str) -> FileStatus:
            if path == "/d/new":
                raise of_errno(5, "stat", path)
            return status(path)

        monkeypatch.setattr(world.port, "status", fails)
    else:
        world.port.rename("/d/new", "/moved")
    assert world.undo(first, "because").outcome == "undone"
    monkeypatch.undo()
    assert world.undo(second, "because").outcome == "undone"
    assert world.port.defaults == {"/d": HDD, ("/d/new" if error else "/moved"): HDD}


def test_the_undo_of_an_earlier_act_leaves_defaults_that_a_later_one_with_the_same_default_gave(world: World) -> None:
    given(world, FLASH)
    make(world, "/d/first")
    given(world, LARGER)
    world.clock.time = 2000.0
    given(world, FLASH)
    make(world, "/d/third")
    world.port.times = {"/d/third": 2000.0}  # type: ignore[attr-defined]
    undo_all(world, (0,))
    assert world.port.defaults == {"/d": FLASH, "/d/first": HDD, "/d/third": FLASH}
    undo_all(world, (2, 1))
    assert world.port.defaults == {"/d": HDD, "/d/first": HDD, "/d/third": HDD}


def test_a_directory_whose_name_begins_with_that_of_another_is_not_below_it(world: World) -> None:
    world.port.defaults["/d2"] = FLASH  # by its owner, before tierd came
    given(world, FLASH)
    act(world, "/d2", LARGER)
    for entry in list(world.journal.entries()):
        assert world.undo(entry, "because") == ("undone", "because")
    assert world.port.defaults == {"/d": HDD, "/d2": FLASH}


def test_of_a_directory_that_was_removed_nothing_is_left_to_undo(world: World) -> None:
    given(world, FLASH)
    entry = done(world)
    del world.port.defaults["/d"]
    assert world.undo(entry, "because") == ("undone", "the directory no longer exists")
    assert world.journal.judgements.default_layouts_in_force() == []


@pytest.mark.parametrize("layouts", [(1, 2, 4), (1, 2, 1), (2, 1, 2), (1, 2, 1, 4), (1, 2, 1, 2), (4, 1, 2, 1)])
@pytest.mark.parametrize("first", [0, 1, 2, -1])
def test_in_any_order_acts_in_one_directory_are_undone_to_what_was_there(
        world: World, first: int, layouts: Sequence[int]) -> None:
    for number, size in enumerate(layouts):
        given(world, Layout((Component(0, size << 20, "flash"), Component(size << 20, None, "hdd"))))
        make(world, f"/d/{number}")
    entries = list(world.journal.entries())
    for entry in (entries[first], *(each for each in entries if each is not entries[first])):
        assert world.undo(entry, "because").outcome == "undone"
        left = [each.layout_after for each in world.journal.entries(Outcome.DONE)]
        assert world.port.defaults["/d"] == (left[-1] if left else HDD)
    assert set(map(repr, world.port.defaults.values())) == {repr(HDD)}


@pytest.mark.parametrize(("acts", "others"), [((FLASH, LARGER, HDD), (OTHER, FLASH)), ((FLASH, FLASH), (OTHER,))])
def test_a_default_that_somebody_set_between_acts_is_not_lost(
        world: World, acts: Sequence[Layout], others: Sequence[Layout]) -> None:
    given(world, acts[0])
    for other, layout in zip(others, acts[1:], strict=True):
        world.port.defaults["/d"] = other
        given(world, layout)
    first, *_, last = world.journal.entries()
    assert world.undo(first, "because") == ("refused", "somebody has changed the layout since")
    assert world.undo(last, "because")[0] == "undone"
    assert world.port.defaults["/d"] == others[-1]
