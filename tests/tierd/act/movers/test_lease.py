"""What the lease engine does step by step, and each thing it must not do."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lustre.calls import FileFlags, Hsm, HsmFlags
from lustre.errors import Busy, NoSpace, of_errno
from lustre.layout import Component, Layout
from tests.tierd.act.movers.minicalls import MiniCalls
from tests.tierd.act.movers.minilustre import FLASH, HDD, PAGE, PFL, SECOND, MiniLustre
from tierd.act.movers import copying
from tierd.act.movers.lease import LeaseMover
from tierd.act.movers.outcome import Move, Outcome, Result, one_at_a_time
from tierd.act.movers.room import Destination


class World:
    """A file ``/a`` of three pages on the HDD pool, and an engine."""

    def __init__(self) -> None:
        self.lustre = MiniLustre()
        self.calls = MiniCalls(self.lustre)
        self.data = b"first page".ljust(PAGE, b"x") + bytes(PAGE) + b"last"
        self.node = self.lustre.create("/a", self.data)
        self.mover = LeaseMover(
            self.calls, Destination(lambda: self.lustre.pool_members, self.lustre.space, self.lustre.quota))

    def move(self, layout: Layout = FLASH, path: str = "/a") -> Outcome:
        (outcome,) = self.mover.move((Move(path, layout),))
        assert not self.lustre.descriptors
        return outcome

    def at(self, call: str, act: Callable[[], object], occurrence: int = 1) -> None:
        """Do something just before the mover's nth call of a kind."""
        seen = 0

        def before(name: str, number: int) -> None:
            nonlocal seen
            seen += name == call
            if name == call and seen == occurrence:
                act()

        self.calls.before = before


@pytest.fixture
def world() -> World:
    return World()


def pools_of_file(world: World) -> list[str]:
    return [component.pool for component in world.node.store.layout.components]


def test_moves_a_file_and_nothing_of_it_changes_but_its_place(world: World) -> None:
    before = (world.node.mode, world.node.uid, world.node.project, world.node.mtime_ns, world.node.atime_ns)
    world.node.xattrs["user.origin"] = b"beamline"
    outcome = world.move()
    assert (outcome.result, outcome.detail, outcome.copied_bytes) == (Result.DONE, "", len(world.data))
    assert pools_of_file(world) == ["flash"]
    assert world.lustre.contents("/a") == world.data
    assert (world.node.mode, world.node.uid, world.node.project, world.node.mtime_ns, world.node.atime_ns) == before
    assert world.node.store.owner == (1001, 1001, 7)


def test_steps_come_in_the_only_safe_order(world: World) -> None:
    world.move()
    order = [world.calls.made.index(step) for step in (
        "open_for_swap", "lease", "mdt_index", "create_volatile", "mdt_index_of", "set_owner", "set_project",
        "write", "sync", "set_times", "swap_and_close")]
    assert order == sorted(order)
    assert world.calls.made[world.calls.made.index("swap_and_close") - 1] == "lease_held"
    assert world.calls.made.index("write") > world.calls.made.index("lease_held")


def test_a_file_that_has_the_layout_is_left_alone(world: World) -> None:
    assert world.move(HDD).result is Result.ALREADY
    assert "open_for_swap" not in world.calls.made


def test_a_layout_with_the_right_name_and_stray_objects_is_moved(world: World) -> None:
    world.lustre.pool_members["flash"] = ()
    stray = world.lustre.create("/stray", b"data", FLASH)
    world.lustre.pool_members["flash"] = ("lustre-OST0000", "lustre-OST0001")
    assert stray.store.layout.components[0].objects[0].ost_index == 5
    assert world.move(path="/stray").result is Result.DONE
    assert stray.store.layout.components[0].objects[0].ost_index in {0, 1}


def test_a_volatile_file_on_another_mdt_is_never_exchanged(world: World) -> None:
    world.calls.volatile_mdt = 1
    outcome = world.move()
    assert outcome.result is Result.FAILED
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


def test_follows_the_mdt_of_the_file(world: World) -> None:
    other = world.lustre.create("/other", b"on the second", mdt=1)
    assert world.move(path="/other").result is Result.DONE
    world.lustre.settle()
    assert (other.mdt, world.lustre.contents("/other")) == (1, b"on the second")


@pytest.mark.parametrize("step", ["create_volatile", "read", "write", "sync", "set_times", "swap_and_close"])
def test_a_writer_wins_at_any_step(world: World, step: str) -> None:
    world.at(step, lambda: world.lustre.write("/a", b"THEIRS", 2))
    assert world.move().result is Result.GAVE_WAY
    assert pools_of_file(world) == ["hdd"]
    assert world.lustre.contents("/a")[:8] == b"fiTHEIRS"


@pytest.mark.parametrize("size", [0, 5, 100_000])
def test_a_truncate_wins_even_when_it_comes_last(world: World, size: int) -> None:
    world.at("swap_and_close", lambda: world.lustre.truncate_name("/a", size))
    assert world.move().result is Result.GAVE_WAY
    assert len(world.lustre.contents("/a")) == size


def test_a_file_open_for_writing_is_not_touched(world: World) -> None:
    world.lustre.open_writer("/a")
    outcome = world.move()
    assert (outcome.result, outcome.reason) == (Result.GAVE_WAY, "busy")
    assert "create_volatile" not in world.calls.made


@pytest.mark.parametrize("change", [
    {"pin": b"- pool: hdd\n"}, {"flags": FileFlags.APPEND_ONLY}, {"project": 8}, {"uid": 1002},
    {"hsm": Hsm(HsmFlags.EXISTS | HsmFlags.RELEASED)},
])
@pytest.mark.parametrize("step", ["lease", "write", "sync"])
def test_what_speaks_against_a_move_is_seen_as_late_as_can_be(world: World, step: str, change: dict[str, Any]) -> None:
    def act() -> None:
        for name, value in change.items():
            setattr(world.node, name, value)

    world.at(step, act)
    assert world.move().result in {Result.GAVE_WAY, Result.FAILED}
    assert pools_of_file(world) == ["hdd"]


def test_removed_while_copied(world: World) -> None:
    world.at("write", lambda: world.lustre.unlink("/a"))
    assert world.move().result is Result.GAVE_WAY
    world.lustre.settle()
    assert not world.lustre.live_stores()


def test_renamed_while_copied_is_moved_all_the_same(world: World) -> None:
    world.at("write", lambda: world.lustre.rename("/a", "/b"))
    assert world.move().result is Result.DONE
    assert world.lustre.contents("/b") == world.data


def test_all_names_of_a_file_follow_it(world: World) -> None:
    world.lustre.link("/a", "/second")
    assert world.move().result is Result.DONE
    assert world.lustre.contents("/second") == world.data


def test_attributes_set_while_copied_stay(world: World) -> None:
    world.at("write", lambda: world.node.xattrs.update({"user.late": b"1"}))
    assert world.move().result is Result.DONE
    assert world.node.xattrs == {"user.late": b"1"}


def test_holes_stay_holes(world: World) -> None:
    sparse = world.lustre.create("/sparse")
    world.lustre.truncate_name("/sparse", 100 * PAGE)
    world.lustre.write("/sparse", b"island", 50 * PAGE + 7)
    assert world.move(path="/sparse").result is Result.DONE
    assert sparse.store.pages == {50}
    assert len(world.lustre.contents("/sparse")) == 100 * PAGE


def test_data_that_is_told_in_pieces_is_copied_without_a_gap(world: World) -> None:
    data = bytes(range(1, 256)) * 160  # ten pages; the memory Lustre ends a piece of data at every fourth
    world.lustre.create("/long", data)
    assert world.move(path="/long").result is Result.DONE
    assert world.lustre.contents("/long") == data


def test_an_empty_file_moves(world: World) -> None:
    empty = world.lustre.create("/empty")
    assert world.move(path="/empty").result is Result.DONE
    assert empty.store.layout.components[0].pool == "flash"


def test_a_copy_that_reads_differently_is_thrown_away(world: World) -> None:
    world.calls.corrupt_writes = True
    outcome = world.move()
    assert (outcome.result, outcome.reason) == (Result.FAILED, "error")
    assert "reads differently" in outcome.detail
    assert world.lustre.contents("/a") == world.data


def test_short_reads_and_writes_are_continued(world: World) -> None:
    world.calls.short_transfers = True
    assert world.move().result is Result.DONE
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


def test_given_to_another_project_in_the_last_instant_is_told(world: World) -> None:
    """The exchange compares owners, not projects: the objects then count for the wrong one."""
    world.at("swap_and_close", lambda: setattr(world.node, "project", 8))
    outcome = world.move()
    assert outcome.result is Result.DOUBTFUL
    assert "project differs" in outcome.detail


def test_given_to_another_owner_in_the_last_instant_stops_the_exchange(world: World) -> None:
    world.at("swap_and_close", lambda: setattr(world.node, "uid", 1002))
    assert world.move().result is Result.FAILED
    assert pools_of_file(world) == ["hdd"]


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


def test_encrypted_files_are_not_for_this_engine(world: World) -> None:
    world.node.flags = FileFlags.ENCRYPTED
    assert (world.move().result, world.move().reason) == (Result.REFUSED, "encrypted")


def test_large_files_go_in_chunks_with_the_lease_checked_before_each(world: World) -> None:
    assert copying.CHUNK_BYTES % copying.PAGE_BYTES == 0
    source = world.calls.open_for_swap("/a", direct=False)
    world.calls.lease(source)
    volatile = world.calls.create_volatile("/a", 0, FLASH, source)
    chunks = copying.copy(world.calls, source, volatile, len(world.data), chunk_bytes=PAGE)
    assert [(c.offset, c.length) for c in chunks] == [(0, PAGE), (PAGE, PAGE), (2 * PAGE, 4)]
    work = [call for call in world.calls.made if call in {"lease_held", "read", "write"}]
    assert work == ["lease_held", "read", "write"] * 3


def test_a_component_of_its_own_for_the_beginning(world: World) -> None:
    assert world.move(PFL).result is Result.DONE
    assert pools_of_file(world) == ["flash", "hdd"]


def test_the_port_is_told_by_errors(world: World) -> None:
    migrate = one_at_a_time(world.mover)
    migrate("/a", FLASH)
    world.lustre.open_writer("/a")
    with pytest.raises(Busy):
        migrate("/a", HDD)
    with pytest.raises(FileNotFoundError):
        migrate("/nothing", HDD)
    nowhere = replace(FLASH, components=(Component(pool="empty"),))
    with pytest.raises(OSError, match="no targets"):
        migrate("/a", nowhere)
