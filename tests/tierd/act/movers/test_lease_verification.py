"""Checks of the lease engine on a copy and after an exchange, with wrong return values of calls."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace

import pytest

from lustre.errors import of_errno
from lustre.layout.model import Component, Layout
from lustre.layout.setstripe import setstripe_arguments
from tests.tierd.act.movers.fakelfs import MOUNT, FakeLfs
from tests.tierd.act.movers.lease_world import World
from tests.tierd.act.movers.minilustre import PAGE
from tierd.act.movers.moves import MoveResult


def test_a_copy_that_differs_is_discarded(world: World) -> None:
    world.calls.corrupt_writes = True
    outcome = world.move()
    assert (outcome.result, outcome.reason) == (MoveResult.FAILED, "error")
    assert "differs from the file" in outcome.detail
    assert world.lustre.contents("/a") == world.data


def test_a_full_pool_leaves_the_file_where_it_is(world: World) -> None:
    def fills() -> None:
        world.lustre.room_bytes = PAGE

    world.before_call("create_volatile", fills)
    outcome = world.move()
    assert (outcome.result, outcome.reason) == (MoveResult.FAILED, "no-space")
    assert world.lustre.contents("/a") == world.data
    assert len(world.lustre.live_stores()) == 1


def test_an_error_that_was_reported_as_success_is_found_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.calls, "swap_and_close", lambda *arguments: None)
    outcome = world.move()
    assert (outcome.result, outcome.reason) == (MoveResult.FAILED, "not-moved")


@pytest.mark.parametrize(("number", "call"), [(errno.EIO, "open_fid"), (errno.ENOENT, "data_version")])
def test_a_file_that_cannot_be_checked_after_its_move_is_doubtful(world: World, number: int, call: str) -> None:
    """ENOENT of a target, for a file that is still there, is what an exchange across MDTs would look like."""
    def fails() -> None:
        raise of_errno(number, call)

    world.calls.lose_reply = True
    world.before_call(call, fails, occurrence=None, since="swap_and_close")
    outcome = world.move()
    assert (outcome.result, outcome.reason) == (MoveResult.DOUBTFUL, "unknown")


def test_an_mdt_that_does_not_answer_is_not_taken_for_a_file_that_is_gone(world: World) -> None:
    """Linux turns every error of opening by file handle into ESTALE. Only the MDT shows that a file was deleted."""
    def unreachable() -> None:
        raise of_errno(errno.ESHUTDOWN, "fid2path")

    world.calls.lose_reply = True
    world.before_call("open_fid", lambda: world.lustre.unlink("/a"))
    before = world.calls.before

    def and_silent(name: str, number: int) -> None:
        before(name, number)
        if name == "exists":
            unreachable()

    world.calls.before = and_silent
    assert world.move().result is MoveResult.DOUBTFUL


def test_one_look_that_goes_wrong_is_not_the_last(world: World) -> None:
    def fails() -> None:
        raise of_errno(errno.ESTALE, "open by FID")

    world.calls.lose_reply = True
    world.before_call("open_fid", fails)
    assert world.move().result is MoveResult.DONE


def test_removed_extended_attributes_are_named_and_stop_nobody(world: World) -> None:
    """An exchange of layouts touches none, so somebody removed them."""
    world.calls.lose_reply = True
    world.before_call("open_fid", world.node.xattrs.clear)
    outcome = world.move()
    assert outcome.result is MoveResult.DONE
    assert "user.origin" in outcome.detail


@pytest.mark.parametrize("step", ["layout", "status", "open_fid"])
def test_written_right_after_the_exchange_is_nothing_to_doubt(world: World, step: str) -> None:
    after_the_exchange(world, step, lambda: world.lustre.write("/a", b"new", 0))
    assert world.move().result is MoveResult.DONE
    assert world.lustre.contents("/a").startswith(b"new")


def test_a_file_that_got_shorter_without_anybody_having_written_is_doubtful(world: World) -> None:
    def shortened() -> None:
        world.node.store.data.pop()

    after_the_exchange(world, "status", shortened)
    outcome = world.move()
    assert outcome.result is MoveResult.DOUBTFUL
    assert "was 8196 bytes and is 8195" in outcome.detail


def test_a_copy_outside_of_its_pool_is_never_exchanged(world: World) -> None:
    world.before_call("create_volatile", lambda: world.lustre.pool_members.update(flash=()), occurrence=None)
    outcome = world.move()
    assert outcome.result is MoveResult.FAILED
    assert "outside pool" in outcome.detail
    assert "swap_and_close" not in world.calls.made


def test_somebody_elses_move_after_ours_stands(world: World) -> None:
    def moved_on() -> None:
        FakeLfs(world.lustre, (PFL64,))(("lfs", "migrate", "--non-block", *setstripe_arguments(PFL64), MOUNT + "/a"))

    after_the_exchange(world, "open_fid", moved_on)
    outcome = world.move()
    assert (outcome.result, outcome.reason) == (MoveResult.GAVE_WAY, "moved")
    assert world.lustre.contents("/a") == world.data


PFL64 = Layout((Component(0, 16 * PAGE, pool="flash"), Component(16 * PAGE, None, pool="hdd")))


@pytest.mark.parametrize("after", [
    (Component(0, None, pool="flash", mirror_id=1), Component(0, None, pool="hdd", mirror_id=2)),
    (Component(0, 16 * PAGE, pool="flash"), Component(16 * PAGE, None, pool="hdd")),
], ids=["a mirror", "an extension that spilled over"])
def test_a_layout_that_grew_after_the_exchange_is_the_one_of_the_copy(
        world: World, after: tuple[Component, Component]) -> None:
    """``lfs mirror extend``, and a writer of a file that extends itself, keep the objects that there are."""
    def grown() -> None:
        first = replace(after[0], objects=world.node.store.layout.components[0].objects)
        world.node.store.layout = Layout((first, after[1]), mirror_count=1 + (after[1].mirror_id > 0))

    after_the_exchange(world, "status", grown)
    assert world.move().result is MoveResult.DONE


def after_the_exchange(world: World, step: str, act: Callable[[], object]) -> None:
    if step == "open_fid":
        world.calls.lose_reply = True
    world.before_call(step, act, since="swap_and_close")
