"""A move preserves the times of a file exactly, except for times of a concurrent writer."""

from dataclasses import replace

import pytest

from lustre.filesystem import Status
from lustre.layout.model import Layout
from tests.tierd.act.movers.both_engines import Both
from tests.tierd.act.movers.minicalls import just_before
from tests.tierd.act.movers.minilustre import DOM, DOM_FLASH, FLASH, HDD, PAGE, SECOND, Node
from tierd.act.movers.moves import MoveResult

OLD = 1_500_000_000 * SECOND
READ = 1_600_000_000 * SECOND


def old(world: Both) -> Both:
    world.node.mtime_ns = world.node.store.mtime_ns = OLD
    world.node.atime_ns = READ
    return world


def times(world: Both) -> tuple[int, int]:
    return world.node.atime_ns // SECOND, max(world.node.mtime_ns, world.node.store.mtime_ns) // SECOND


@pytest.mark.parametrize(("engine", "present", "wanted"), [
    ("lfs", HDD, FLASH), ("lease", HDD, FLASH),
    ("lfs", DOM, DOM_FLASH), ("lease", DOM, DOM_FLASH), ("lease", DOM, FLASH),
])
def test_kept(engine: str, present: Layout, wanted: Layout) -> None:
    world = old(Both(engine, present))
    outcome = world.move(wanted)
    assert (outcome.result, outcome.detail) == (MoveResult.DONE, "")
    assert times(world) == (READ // SECOND, OLD // SECOND)
    assert world.lustre.contents("/a") == world.data


def test_a_reader_after_the_exchange_keeps_his_time() -> None:
    world = old(Both("lease", DOM))
    world.calls.before = lambda name, _: setattr(
        world.node, "atime_ns", READ + 5 * SECOND) if name == "open_fid" else None
    assert world.move().result is MoveResult.DONE
    assert times(world) == (READ // SECOND + 5, OLD // SECOND)


def test_an_mds_with_a_clock_that_is_ahead() -> None:
    """Up to 2.17 it drops times set by a client behind it, and reports success."""
    world = old(Both("lease", DOM))
    world.lustre.tick_ns, world.lustre.mds_ahead_seconds = 0, 1
    assert world.move().result is MoveResult.DONE
    assert times(world) == (READ // SECOND, OLD // SECOND)
    assert 1.0 <= world.clock.waited_seconds <= 3.0


def test_times_that_cannot_be_restored_are_a_doubt_with_its_cause() -> None:
    world = old(Both("lease", DOM))
    world.lustre.tick_ns, world.lustre.mds_ahead_seconds = 0, 3600
    outcome = world.move()
    assert outcome.result is MoveResult.DOUBTFUL
    assert "the MDS clock" in outcome.detail
    assert world.lustre.contents("/a") == world.data


def test_data_on_the_mdt_may_carry_the_name_of_a_pool() -> None:
    """Lustre 2.17 puts that of the directory there. It means nothing, and is no object that strayed."""
    world = Both("lease", DOM)
    assert [c.pool for c in world.node.store.layout.components] == ["hdd", "hdd"]
    assert world.move(DOM).result is MoveResult.ALREADY
    world.lustre.write("/a", b"x" * PAGE, 17 * PAGE)
    assert world.move(DOM_FLASH).result is MoveResult.DONE
    assert [c.pool for c in world.node.store.layout.components] == ["hdd", "flash"]
    assert world.move(DOM_FLASH).result is MoveResult.ALREADY


def test_set_also_where_this_client_does_not_see_yet_what_the_mdt_did() -> None:
    """The truncate on the MDT takes no lock from clients: one that has cached attributes may go on showing them."""
    world = old(Both("lease", DOM))
    stat = world.calls._status

    def cached(node: Node) -> Status:
        found = stat(node)
        return replace(found, mtime_ns=OLD) if node is world.node else found

    world.calls.before = just_before("swap_and_close", lambda: setattr(world.calls, "_status", cached))
    assert world.move().result is MoveResult.DONE
    assert times(world) == (READ // SECOND, OLD // SECOND)
