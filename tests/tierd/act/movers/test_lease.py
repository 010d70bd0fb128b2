"""What the lease engine does step by step, and each thing it must not do."""

from __future__ import annotations

import errno

import pytest

from lustre.errors import of_errno
from lustre.filesystem import FileFlags
from tests.tierd.act.movers.lease_world import World, pools_of_file
from tests.tierd.act.movers.minilustre import FLASH, PAGE
from tierd.act.movers import lease
from tierd.act.movers.moves import MoveResult


def test_moves_a_file_and_nothing_of_it_changes_but_its_place(world: World) -> None:
    before = (world.node.mode, world.node.uid, world.node.project, world.node.mtime_ns, world.node.atime_ns)
    world.node.xattrs["user.origin"] = b"beamline"
    outcome = world.move()
    assert (outcome.result, outcome.detail, outcome.copied_bytes) == (MoveResult.DONE, "", len(world.data))
    assert pools_of_file(world) == ["flash"]
    assert world.lustre.contents("/a") == world.data
    assert (world.node.mode, world.node.uid, world.node.project, world.node.mtime_ns, world.node.atime_ns) == before
    assert world.node.store.owner == (1001, 1001, 7)


def test_a_layout_with_the_right_name_and_stray_objects_is_moved(world: World) -> None:
    world.lustre.pool_members["flash"] = ()
    stray = world.lustre.create("/stray", b"data", FLASH)
    world.lustre.pool_members["flash"] = ("lustre-OST0000", "lustre-OST0001")
    assert stray.store.layout.components[0].objects[0].ost_index == 5
    assert world.move(path="/stray").result is MoveResult.DONE
    assert stray.store.layout.components[0].objects[0].ost_index in {0, 1}


def test_a_volatile_file_on_another_mdt_is_never_exchanged(world: World) -> None:
    world.calls.volatile_mdt = 1
    outcome = world.move()
    assert outcome.result is MoveResult.FAILED
    assert "not on one MDT" in outcome.detail
    assert "swap_and_close" not in world.calls.made
    world.lustre.settle()
    assert world.lustre.contents("/a") == world.data


def test_such_an_exchange_would_have_destroyed_the_data_half_a_minute_later(world: World) -> None:
    """The memory Lustre is as treacherous as the recorded one; else the test above would prove nothing."""
    source, volatile = world.calls.open_for_swap("/a", direct=False), 0
    world.calls.lease(source)
    volatile = world.calls.create_volatile("/a", 1, FLASH, source)
    world.calls.set_owner(volatile, 1001, 1001)
    world.calls.write(volatile, world.data, 0)
    world.calls.swap_and_close(source, volatile, 0, 0)
    world.calls.close(source)
    world.calls.close(volatile)
    assert world.lustre.contents("/a") == world.data
    world.lustre.settle()
    with pytest.raises(FileNotFoundError):
        world.lustre.contents("/a")


def test_holes_stay_holes(world: World) -> None:
    sparse = world.lustre.create("/sparse")
    world.lustre.truncate_name("/sparse", 100 * PAGE)
    world.lustre.write("/sparse", b"island", 50 * PAGE + 7)
    assert world.move(path="/sparse").result is MoveResult.DONE
    assert sparse.store.pages == {50}
    assert len(world.lustre.contents("/sparse")) == 100 * PAGE


def test_an_empty_file_moves(world: World) -> None:
    empty = world.lustre.create("/empty")
    assert world.move(path="/empty").result is MoveResult.DONE
    assert empty.store.layout.components[0].pool == "flash"


def test_encrypted_files_are_not_for_this_engine(world: World) -> None:
    world.node.flags = FileFlags.ENCRYPTED
    assert (world.move().result, world.move().reason) == (MoveResult.REFUSED, "encrypted")


def test_large_files_go_in_chunks_with_the_lease_checked_before_each(world: World) -> None:
    assert lease.CHUNK_BYTES % lease.PAGE_BYTES == 0
    source = world.calls.open_for_swap("/a", direct=False)
    world.calls.lease(source)
    volatile = world.calls.create_volatile("/a", 0, FLASH, source)
    chunks = list(lease.copy_data(world.calls, source, volatile, world.calls.status(source), chunk_bytes=PAGE))
    assert [(c.offset, c.length) for c in chunks] == [(0, PAGE), (PAGE, PAGE), (2 * PAGE, 4)]
    work = [call for call in world.calls.made if call in {"lease_held", "read", "write"}]
    assert work == ["lease_held", "read", "write"] * 3


def test_a_directory_that_can_give_new_files_nothing_does_not_keep_a_file_from_moving(world: World) -> None:
    """The directory's default layout may name a full pool while the requested pool has space."""
    def full() -> None:
        raise of_errno(errno.ENOSPC, "create volatile file")

    world.before_call("create_volatile", full)
    assert world.move().result is MoveResult.DONE
    assert pools_of_file(world) == ["flash"]
