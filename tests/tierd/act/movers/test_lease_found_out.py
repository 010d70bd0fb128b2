"""What the lease engine finds out about a copy and after an exchange, whatever it was told."""

from __future__ import annotations

import errno

import pytest

from lustre.errors import NoSpace, of_errno
from tests.tierd.act.movers.lease_world import World
from tests.tierd.act.movers.lease_world import world as world  # noqa: PLC0414 -- the fixture
from tests.tierd.act.movers.minilustre import PAGE, SECOND
from tierd.act.movers.outcome import Result


def test_a_copy_that_reads_differently_is_thrown_away(world: World) -> None:
    world.calls.corrupt_writes = True
    outcome = world.move()
    assert (outcome.result, outcome.reason) == (Result.FAILED, "error")
    assert "reads differently" in outcome.detail
    assert world.lustre.contents("/a") == world.data


def test_a_full_pool_leaves_the_file_where_it_is(world: World) -> None:
    def fills() -> None:
        world.lustre.room_bytes = PAGE

    world.at("create_volatile", fills)
    outcome = world.move()
    assert (outcome.result, outcome.reason) == (Result.FAILED, "no-space")
    assert isinstance(outcome.error, NoSpace)
    assert world.lustre.contents("/a") == world.data
    assert len(world.lustre.live_stores()) == 1


def test_success_that_was_reported_as_an_error_is_found_out(world: World) -> None:
    world.calls.lose_reply = True
    outcome = world.move()
    assert outcome.result is Result.DONE
    assert "yet it was done" in outcome.detail


def test_an_error_that_was_reported_as_success_is_found_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.calls, "swap_and_close", lambda *arguments: None)
    outcome = world.move()
    assert (outcome.result, outcome.reason) == (Result.FAILED, "not-moved")


def test_a_file_that_cannot_be_looked_at_afterwards_is_doubtful(world: World) -> None:
    def fails() -> None:
        raise of_errno(errno.EIO, "open by FID")

    world.at("open_fid", fails)
    assert world.move().result is Result.DOUBTFUL


def test_lost_extended_attributes_are_doubtful(world: World) -> None:
    world.node.xattrs["user.origin"] = b"beamline"
    world.at("open_fid", world.node.xattrs.clear)
    assert world.move().result is Result.DOUBTFUL


def test_written_right_after_the_exchange_is_nothing_to_doubt(world: World) -> None:
    world.at("open_fid", lambda: world.lustre.write("/a", b"new", 0))
    assert world.move().result is Result.DONE
    assert world.lustre.contents("/a").startswith(b"new")


def test_a_file_that_got_shorter_without_anybody_having_written_is_doubtful(world: World) -> None:
    world.lustre.clock_ns += 60 * SECOND

    def shortened() -> None:
        world.node.store.data.pop()

    world.at("open_fid", shortened)
    outcome = world.move()
    assert outcome.result is Result.DOUBTFUL
    assert "8195 bytes and had 8196" in outcome.detail
