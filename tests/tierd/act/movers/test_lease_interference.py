"""What others do to a file while the lease engine moves it: theirs stands."""

from __future__ import annotations

from typing import Any

import pytest

from lustre.filesystem import FileFlags, Hsm, HsmFlags
from tests.tierd.act.movers.lease_world import World, pools_of_file
from tierd.act.movers import lease
from tierd.act.movers.moves import MoveResult


def test_a_file_open_for_writing_is_not_touched(world: World) -> None:
    world.lustre.open_writer("/a")
    outcome = world.move()
    assert (outcome.result, outcome.reason, outcome.not_copied) == (MoveResult.GAVE_WAY, "busy", 1.0)
    assert "create_volatile" not in world.calls.made


def test_only_what_was_surely_not_copied_counts_as_that(world: World) -> None:
    size = 10 * lease.CHUNK_BYTES
    world.lustre.write("/a", bytes(size), 0)
    world.before_call("write", lambda: world.lustre.write("/a", b"THEIRS", 2), occurrence=3)
    outcome = world.move()
    assert outcome.result is MoveResult.GAVE_WAY
    assert outcome.not_copied == pytest.approx(0.6), "three chunks were copied, and perhaps one more"
    world.before_call("sync", lambda: world.lustre.write("/a", b"THEIRS", 2))
    assert world.move().not_copied == 0.0


LATE: list[dict[str, Any]] = [
    {"pin": b"- pool: hdd\n"}, {"flags": FileFlags.APPEND_ONLY}, {"project": 8}, {"uid": 1002}]
RELEASED: dict[str, Any] = {"hsm": Hsm(HsmFlags.EXISTS | HsmFlags.RELEASED)}


@pytest.mark.parametrize("change", LATE)
@pytest.mark.parametrize("step", ["data_version", "write", "sync"])
def test_a_change_during_the_copy_stops_the_exchange(world: World, step: str, change: dict[str, Any]) -> None:
    world.before_call(step, lambda: changed(world, change))
    assert world.move().result in {MoveResult.GAVE_WAY, MoveResult.FAILED}
    assert pools_of_file(world) == ["hdd"]


def test_the_archive_state_is_read_again_if_a_copy_takes_long(world: World) -> None:
    """It is a request each time, and an archive that begins while a small file is copied loses nothing by the move."""
    world.lustre.write("/a", bytes(lease.CHUNK_BYTES), 1)
    world.before_call("sync", lambda: changed(world, RELEASED))
    assert world.move().result is MoveResult.GAVE_WAY
    assert pools_of_file(world) == ["hdd"]


@pytest.mark.parametrize("change", [*LATE[:2], RELEASED])
def test_a_change_just_before_the_lease_refuses_the_file(world: World, change: dict[str, Any]) -> None:
    world.before_call("lease", lambda: changed(world, change))
    assert world.move().result is MoveResult.REFUSED
    assert pools_of_file(world) == ["hdd"]


@pytest.mark.parametrize("change", LATE[2:])
def test_a_file_given_away_just_before_the_lease_is_refused(world: World, change: dict[str, Any]) -> None:
    world.before_call("lease", lambda: changed(world, change))
    assert world.move().result is MoveResult.DONE
    assert world.node.store.owner == (world.node.uid, 1001, world.node.project)


def changed(world: World, change: dict[str, Any]) -> None:
    for name, value in change.items():
        setattr(world.node, name, value)


def test_renamed_while_copied_is_moved_all_the_same(world: World) -> None:
    world.before_call("write", lambda: world.lustre.rename("/a", "/b"))
    assert world.move().result is MoveResult.DONE
    assert world.lustre.contents("/b") == world.data


def test_given_to_another_project_in_the_last_instant_is_reported(world: World) -> None:
    """The exchange compares owners, not projects: the objects then count for the wrong one."""
    world.before_call("swap_and_close", lambda: setattr(world.node, "project", 8))
    outcome = world.move()
    assert outcome.result is MoveResult.DOUBTFUL
    assert "was 7 and is 8" in outcome.detail


def test_given_to_another_owner_in_the_last_instant_stops_the_exchange(world: World) -> None:
    world.before_call("swap_and_close", lambda: setattr(world.node, "uid", 1002))
    assert world.move().result is MoveResult.FAILED
    assert pools_of_file(world) == ["hdd"]
