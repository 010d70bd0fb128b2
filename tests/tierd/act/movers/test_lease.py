"""What the lease engine does step by step, what others do to the file meanwhile, and calls that return wrong values.

Whatever is done to the data, and to most attributes, is in the tests of both engines.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lustre.errors import of_errno
from lustre.fid import Fid
from lustre.filesystem import FileFlags, Hsm, HsmFlags
from lustre.layout.model import Component, Layout
from lustre.layout.setstripe import setstripe_arguments
from tests.tierd.act.movers.both_engines import PFL, Both
from tests.tierd.act.movers.fakelfs import MOUNT, FakeLfs
from tests.tierd.act.movers.minicalls import just_before
from tests.tierd.act.movers.minilustre import FLASH, PAGE
from tests.tierd.later import raising
from tierd.act.movers import lease
from tierd.act.movers.moves import MoveOutcome, MoveResult


class World(Both):
    """A file ``/a`` of three pages on the HDD pool, of a project that its directory does not give."""

    def __init__(self) -> None:
        super().__init__("lease", data=b"first page".ljust(PAGE, b"x") + bytes(PAGE) + b"last")
        self.lustre.directory_project = 0

    def disturbed(self, call: str, act: Callable[[World], object], *, each: bool = False,
                  layout: Layout = FLASH) -> MoveOutcome:
        """A move, and what somebody does before a call after the exchange."""
        self.calls.lose_reply = call in {"open_fid", "data_version"}  # only then is it looked at by its identity
        self.calls.before = just_before(call, lambda: act(self), None if each else 1, since="swap_and_close")
        return self.move(layout)

    @property
    def pools(self) -> list[str]:
        return [component.pool for component in self.node.store.layout.components]


@pytest.fixture
def world() -> World:
    return World()


def fails(number: int) -> Callable[[World], object]:
    return raising(of_errno(number, "call"))


def just_before_each(call: str, act: Callable[[World], object]) -> Callable[[World], object]:
    """Of a move: something that somebody does before each of its calls of a kind."""
    return lambda world: setattr(world.calls, "before", just_before(call, lambda: act(world), occurrence=None))


def test_a_layout_with_the_right_name_and_stray_objects_is_moved(world: World) -> None:
    world.lustre.pool_members["flash"] = ()
    stray = world.lustre.create("/stray", b"data", FLASH)
    world.lustre.pool_members["flash"] = ("lustre-OST0000", "lustre-OST0001")
    assert stray.store.layout.components[0].objects[0].ost_index == 5
    assert world.move(path="/stray").result is MoveResult.DONE
    assert stray.store.layout.components[0].objects[0].ost_index in {0, 1}


@pytest.mark.parametrize(("happens", "result", "says"), [
    # such an exchange would destroy the data half a minute later
    (lambda world: setattr(world.calls, "volatile_mdt", 1), MoveResult.FAILED, "not on one MDT"),
    (lambda world: setattr(world.calls, "corrupt_writes", True), MoveResult.FAILED, "differs from the file"),
    (just_before_each("create_volatile", lambda world: setattr(world.lustre, "room_bytes", PAGE)), MoveResult.FAILED,
     "no-space"),
    (just_before_each("create_volatile", lambda world: world.lustre.pool_members.update(flash=())), MoveResult.FAILED,
     "outside pool"),
    (lambda world: setattr(world.node, "flags", FileFlags.ENCRYPTED), MoveResult.REFUSED, "encrypted"),
    (lambda world: world.lustre.open_writer("/a"), MoveResult.GAVE_WAY, "busy"),
], ids=["copy on another MDT", "copy that differs", "pool that fills up", "copy outside of its pool", "encrypted file",
        "file open for writing"])
def test_what_is_never_exchanged(world: World, happens: Callable[[World], object], result: MoveResult,
                                 says: str) -> None:
    happens(world)
    outcome = world.move()
    assert outcome.result is result
    assert says in f"{outcome.reason}: {outcome.detail}"
    assert "swap_and_close" not in world.calls.made
    assert (world.lustre.contents("/a"), world.pools, len(world.lustre.live_stores())) == (world.data, ["hdd"], 1)


def test_an_empty_file_moves(world: World) -> None:
    world.lustre.truncate_name("/a", 0)
    assert (world.move().result, world.pools) == (MoveResult.DONE, ["flash"])


def test_only_what_was_surely_not_copied_counts_as_that(world: World) -> None:
    world.lustre.write("/a", bytes(10 * lease.CHUNK_BYTES), 0)
    world.calls.before = just_before("write", lambda: world.lustre.write("/a", b"THEIRS", 2), occurrence=3)
    outcome = world.move()
    assert outcome.result is MoveResult.GAVE_WAY
    assert outcome.not_copied == pytest.approx(0.6), "three chunks were copied, and perhaps one more"
    world.calls.before = just_before("sync", lambda: world.lustre.write("/a", b"THEIRS", 2))
    assert world.move().not_copied == 0.0
    world.calls.made.clear()
    world.lustre.open_writer("/a")
    assert (world.move().not_copied, "create_volatile" in world.calls.made) == (1.0, False), "it is not touched"


LATE: list[dict[str, Any]] = [
    {"pin": b"- pool: hdd\n"}, {"flags": FileFlags.APPEND_ONLY}, {"project": 8}, {"uid": 1002}]
RELEASED: dict[str, Any] = {"hsm": Hsm(HsmFlags.EXISTS | HsmFlags.RELEASED)}


@pytest.mark.parametrize(("step", "change", "results"), [
    *((step, change, {MoveResult.GAVE_WAY, MoveResult.FAILED}) for step in ("data_version", "write", "sync")
      for change in LATE),
    *(("lease", change, {MoveResult.REFUSED}) for change in (*LATE[:2], RELEASED)),
    *(("lease", change, {MoveResult.DONE}) for change in LATE[2:]),
    ("sync", RELEASED, {MoveResult.GAVE_WAY}),
    ("swap_and_close", {"uid": 1002}, {MoveResult.FAILED}),
])
def test_what_changes_before_or_during_the_copy_stops_the_exchange(
        world: World, step: str, change: dict[str, Any], results: set[MoveResult]) -> None:
    """A large file: the archive state is a request each time, so it is read again only if a copy takes long."""
    world.lustre.write("/a", bytes(lease.CHUNK_BYTES), 1)
    world.calls.before = just_before(step, lambda: vars(world.node).update(change))
    assert world.move().result in results
    assert world.pools == (["flash"] if MoveResult.DONE in results else ["hdd"])
    if MoveResult.DONE in results:  # given away just before the lease
        assert world.node.store.owner == (world.node.uid, 1001, world.node.project)


def test_renamed_while_copied_is_moved_all_the_same(world: World) -> None:
    world.calls.before = just_before("write", lambda: world.lustre.rename("/a", "/b"))
    assert world.move().result is MoveResult.DONE
    assert world.lustre.contents("/b") == world.data


def test_given_to_another_project_in_the_last_instant_is_reported(world: World) -> None:
    """The exchange compares owners, not projects: the objects then count for the wrong one."""
    world.calls.before = just_before("swap_and_close", lambda: setattr(world.node, "project", 8))
    outcome = world.move()
    assert outcome.result is MoveResult.DOUBTFUL
    assert "was 7 and is 8" in outcome.detail


def test_an_error_that_was_reported_as_success_is_found_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.calls, "swap_and_close", lambda *arguments: None)
    outcome = world.move()
    assert (outcome.result, outcome.reason) == (MoveResult.FAILED, "not-moved")


@pytest.mark.parametrize(("number", "call"), [(errno.EIO, "open_fid"), (errno.ENOENT, "data_version")])
def test_a_file_that_cannot_be_checked_after_its_move_is_doubtful(world: World, number: int, call: str) -> None:
    """ENOENT of a target, for a file that is still there, is what an exchange across MDTs would look like."""
    outcome = world.disturbed(call, fails(number), each=True)
    assert (outcome.result, outcome.reason) == (MoveResult.DOUBTFUL, "unknown")


def test_an_mdt_that_does_not_answer_is_not_taken_for_a_file_that_is_gone(world: World) -> None:
    """Linux turns every error of opening by file handle into ESTALE. Only the MDT shows that a file was deleted."""
    def unlink(_: World) -> None:
        world.lustre.unlink("/a")
        world.calls.before = just_before("exists", lambda: fails(errno.ESHUTDOWN)(world), occurrence=None)

    assert world.disturbed("open_fid", unlink).result is MoveResult.DOUBTFUL


def test_removed_extended_attributes_are_named_and_stop_nobody(world: World) -> None:
    """An exchange of layouts touches none, so somebody removed them."""
    outcome = world.disturbed("open_fid", lambda world: world.node.xattrs.clear())
    assert outcome.result is MoveResult.DONE
    assert "user.origin" in outcome.detail


def test_a_file_that_got_shorter_without_anybody_having_written_is_doubtful(world: World) -> None:
    outcome = world.disturbed("status", lambda world: world.node.store.data.pop())
    assert outcome.result is MoveResult.DOUBTFUL
    assert "was 8196 bytes and is 8195" in outcome.detail


def test_somebody_elses_move_after_ours_stands(world: World) -> None:
    outcome = world.disturbed("open_fid", lambda world: FakeLfs(world.lustre, (PFL,))(
        ("lfs", "migrate", "--non-block", *setstripe_arguments(PFL), MOUNT + "/a")))
    assert (outcome.result, outcome.reason) == (MoveResult.GAVE_WAY, "moved")
    assert world.lustre.contents("/a") == world.data


@pytest.mark.parametrize("after", [
    (Component(0, None, pool="flash", mirror_id=1), Component(0, None, pool="hdd", mirror_id=2)),
    PFL.components,
], ids=["a mirror", "an extension that spilled over"])
def test_a_layout_that_grew_after_the_exchange_is_the_one_of_the_copy(
        world: World, after: tuple[Component, Component]) -> None:
    """``lfs mirror extend``, and a writer of a file that extends itself, keep the objects that there are."""
    def grown(_: World) -> None:
        first = replace(after[0], objects=world.node.store.layout.components[0].objects)
        world.node.store.layout = Layout((first, after[1]), mirror_count=1 + (after[1].mirror_id > 0))

    assert world.disturbed("status", grown).result is MoveResult.DONE


def test_a_file_with_only_some_objects_of_the_copy_is_doubtful(world: World) -> None:
    """It has the wanted form, but no exchange leaves this: a part of the data may be elsewhere."""
    def mixed(_: World) -> None:
        (part,) = world.node.store.layout.components
        others = replace(part.objects[1], fid=Fid(1, 1))
        world.node.store.layout = Layout((replace(part, objects=(part.objects[0], others)),), composite=False)

    two = Layout((Component(pool="flash", stripe_count=2),), composite=False)
    outcome = world.disturbed("status", mixed, layout=two)
    assert (outcome.result, outcome.detail) == (MoveResult.DOUBTFUL, "only some of its objects are the copy's")
