"""Undo reaches the directories that were made below one while it had tierd's default, and no others. What any order of
acts and undo leads to is in test_undo_stateful.py.
"""

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lustre.errors import of_errno
from lustre.fid import Fid
from lustre.filesystem import FileStatus
from lustre.layout.model import Component, Layout
from tests.tierd.act.gate_world import World
from tests.tierd.act.movers.minicalls import Killed
from tests.tierd.act.movers.minilustre import FLASH, HDD
from tests.tierd.act.test_undo import done
from tierd.act.undo import SEARCH_SECONDS, Undo, close_unfinished
from tierd.acts import Outcome
from tierd.refusal import Reason, Refusal

OTHER = Layout((Component(pool="hdd", stripe_count=3),), composite=False)
LARGER = Layout((Component(0, 4 << 20, "flash"), Component(4 << 20, None, "hdd")))
ANY_COUNT = Layout((Component(0, 4 << 20, "flash"), Component(4 << 20, None, "hdd", 0)))


def make(world: World, *paths: str) -> None:
    for path in paths:
        world.port.make(path)


def act(world: World, directory: str, layout: Layout) -> None:
    assert world.default(layout, directory).result == "done"


def all_have(world: World, layout: Layout) -> bool:
    return set(map(repr, world.port.defaults.values())) == {repr(layout)}


def test_copied_layouts_are_undone_with_their_original(world: World) -> None:
    world.default()
    make(world, "/d/new", "/d/new/deeper", "/d/new/deeper/still")
    world.port.defaults |= {"/d/theirs": OTHER, "/d/none": None}
    make(world, "/d/theirs/below")
    assert world.undo(done(world), "because") == ("undone", "because; also restored 3 directories created below")
    assert world.port.defaults == {"/d": HDD, "/d/new": HDD, "/d/new/deeper": HDD, "/d/new/deeper/still": HDD,
                                   "/d/theirs": OTHER, "/d/theirs/below": OTHER, "/d/none": None}


def test_a_directory_that_takes_the_name_during_the_search_keeps_its_default(
        world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.default()
    make(world, "/d/new")
    world.port.defaults["/theirs"] = OTHER
    status = world.port.status

    def replaced(path: str) -> FileStatus:
        if path == "/d/new" and "/theirs" in world.port.defaults:
            world.port.rename("/d/new", "/d/away")
            world.port.rename("/theirs", "/d/new")
        return status(path)

    monkeypatch.setattr(world.port, "status", replaced)
    world.undo(done(world), "because")
    assert world.port.defaults["/d/new"] == OTHER


def test_older_directories_keep_their_default(world: World) -> None:
    world.port.defaults |= {"/d/old": FLASH, "/d/old/below": FLASH}
    world.port.times[world.port.status("/d/old").fid] = 900.0
    world.default()
    assert world.undo(done(world), "because")[1] == "because; left 1 older directory below with this default"
    assert world.port.defaults["/d/old"] == world.port.defaults["/d/old/below"] == FLASH


def test_unreadable_subdirectories_are_reported(world: World) -> None:
    world.default()
    make(world, "/d/a", "/d/b", "/d/b/c")
    world.port.closed = {"/d/b"}
    result, detail = world.undo(done(world), "because")
    assert (result, world.port.defaults["/d/b"], world.port.defaults["/d/b/c"]) == ("undone", HDD, FLASH)
    assert detail == ("because; also restored 2 directories created below; directories created below may "
                      "still have tierd's default (list: Input/output error): lfs getstripe -d -r")


@pytest.fixture
def slow(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A file system whose every listing takes longer than a step of the search."""
    listed = world.port.subdirectories

    def subdirectories(directory: str) -> list[str]:
        world.clock.at += SEARCH_SECONDS + 1
        return listed(directory)

    monkeypatch.setattr(world.port, "subdirectories", subdirectories)
    return world


GOES_ON = "tierd continues with the directories below"


@pytest.mark.parametrize("renamed", [False, True])
def test_a_search_goes_on_in_steps_to_its_end(slow: World, *, renamed: bool) -> None:
    slow.default()
    entry = done(slow)
    make(slow, "/d/a", "/d/a/b", "/d/c", "/d/new", "/d/new/deeper", "/d/new/deeper/still")
    act(slow, "/d/new", LARGER)
    make(slow, "/d/new/last")
    assert slow.undo(entry, "because") == ("undoing", f"because; {GOES_ON}")
    for step in range(20):
        if renamed and step == 2:
            slow.port.rename("/d", "/e")
        if (result := slow.undo(entry, "because")).outcome == Outcome.UNDONE:
            break
        assert result.detail.endswith(GOES_ON)
        assert slow.journal.undone_at("/d") == slow.clock.at
    assert renamed or result.detail == "because; also restored 5 directories created below"
    second = slow.journal.entries(Outcome.DONE)[-1]
    while slow.undo(second, "because").outcome != Outcome.UNDONE:
        pass
    assert all_have(slow, HDD)


def test_a_claim_that_is_lost_meanwhile_holds_it(world: World) -> None:
    world.default()
    make(world, "/d/a")
    said = iter((None, Refusal(Reason.CLAIM_LOST, "another tierd took over this file system")))
    undo = Undo(world.port, world.engine, world.journal, world.clock, lambda: next(said))
    assert undo(done(world), "").outcome == Outcome.UNDOING
    assert world.port.defaults == {"/d": HDD, "/d/a": FLASH}
    assert [entry.outcome for entry in world.journal.entries()] == ["undoing"]


def killed_undo(world: World, call: int) -> bool:
    """Whether an undo of the first act was killed before one of its calls."""
    calls = 0

    def counted(name: str) -> Callable[..., Any]:
        asked = getattr(world.port, name)

        def ask(*arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == call:
                raise Killed
            return asked(*arguments)
        return ask

    with pytest.MonkeyPatch.context() as patch:
        for name in ("status", "layout", "set_default_layout", "subdirectories"):
            patch.setattr(world.port, name, counted(name))
        try:
            world.undo(world.journal.entries()[0], "because")
        except Killed:
            return True
    return False


@pytest.mark.parametrize("on_top", [False, True], ids=["an act below", "an act on top"])
@pytest.mark.parametrize("renamed", [False, True], ids=["", "renamed"])
def test_an_undo_that_was_killed_at_any_call_goes_on(tmp_path: Path, *, on_top: bool, renamed: bool) -> None:
    """Acts and directories below have tierd's default until then, also below those that it had restored."""
    for call in count(1):
        (folder := tmp_path / str(call)).mkdir()
        world = World(folder)
        world.default()
        make(world, "/d/a", "/d/a/b", "/d/new", "/d/new/deeper")
        act(world, "/d" if on_top else "/d/new", LARGER)
        first, second = world.journal.entries()
        if not killed_undo(world, call):
            break
        if renamed:
            world.port.rename("/d", "/e")
            world.port.defaults["/d"] = FLASH  # another one, which somebody gave tierd's layout
        undo = Undo(world.port, world.engine, world.journal, world.clock)
        closed = [outcome for _, outcome, _ in close_unfinished(world.journal, world.port, 3.0)]
        assert closed in ([], ["undoing"])
        assert [undo(each, "because").outcome for each in (first, second)] == ["undone", "undone"]
        if renamed:
            assert world.port.defaults.pop("/d") == FLASH
        assert all_have(world, HDD), call
        world.journal.close()
    assert call > 20


ON_TOP = "act 2 has replaced it; undoing that act restores what was before both"


def test_the_undo_of_an_act_with_another_on_top_says_so(world: World) -> None:
    world.default()
    make(world, "/d/new")
    world.default(LARGER)
    result = world.undo(world.journal.entries()[0], "because")
    assert result == ("undone", f"because; {ON_TOP}; also restored 1 directory created below")


def test_a_directory_that_cannot_be_asked_for_restores_what_was_before_both(
        world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.default()
    make(world, "/d/new")
    act(world, "/d/new", LARGER)
    status = world.port.status

    def fails(path: str) -> FileStatus:
        if path == "/d/new":
            raise of_errno(5, "stat", path)
        return status(path)

    first, second = world.journal.entries()
    monkeypatch.setattr(world.port, "status", fails)
    assert world.undo(first, "because").outcome == "undone"
    monkeypatch.undo()
    assert world.undo(second, "because").outcome == "undone"
    assert world.port.defaults == {"/d": HDD, "/d/new": HDD}


def test_of_a_directory_that_was_removed_nothing_is_left_to_undo(world: World) -> None:
    world.default()
    entry = done(world)
    del world.port.defaults["/d"]
    assert world.undo(entry, "because") == ("undone", "the directory no longer exists")
    assert world.journal.judgements.default_layouts_in_force() == []


@pytest.mark.parametrize("ended", [False, True])
def test_a_default_is_undone_in_a_directory_that_was_migrated_to_another_mdt(
        world: World, monkeypatch: pytest.MonkeyPatch, *, ended: bool) -> None:
    """``lfs migrate -m`` gives it another FID and all that it has. Until it ends, the earlier FID is that of a stripe,
    and leads to the directory."""
    world.default()
    make(world, "/d/below")
    world.port.fids["/d"] = Fid(8, 1)
    if not ended:
        monkeypatch.setattr(world.port, "path_of", lambda _: "/d")
    assert world.undo(done(world), "because") == ("undone", "because; also restored 1 directory created below")
    assert all_have(world, HDD)


def test_a_directory_that_was_made_again_has_the_default_of_the_one_above(world: World) -> None:
    world.default(HDD)
    make(world, "/d/new")
    act(world, "/d/new", FLASH)
    act(world, "/d", FLASH)
    world.port.fids["/d/new"] = Fid(8, 1)
    first, _ = world.journal.entries(Outcome.DONE)
    assert world.undo(first, "because") == ("undone", "the directory no longer exists")
    assert all_have(world, FLASH)


@pytest.mark.parametrize(("acts", "others"), [((FLASH, LARGER, HDD), (OTHER, FLASH)), ((FLASH, FLASH), (OTHER,)),
                                              ((ANY_COUNT, ANY_COUNT), (LARGER,))])
def test_a_default_that_somebody_set_between_acts_is_not_lost(
        world: World, acts: Sequence[Layout], others: Sequence[Layout]) -> None:
    world.default(acts[0])
    for other, layout in zip(others, acts[1:], strict=True):
        world.port.defaults["/d"] = other
        world.default(layout)
    first, *_, last = world.journal.entries()
    assert world.undo(first, "because") == ("refused", "somebody has changed the default since")
    assert world.undo(last, "because")[0] == "undone"
    assert world.port.defaults["/d"] == others[-1]
