"""Somebody removes, replaces, cuts, writes, moves… the file, before each call there is: his doing stands, undoubted.

Both engines are under the same assertions.
"""

import errno
from collections.abc import Callable

import pytest

from lustre.errors import of_errno
from lustre.layout.model import Layout
from lustre.layout.setstripe import setstripe_arguments
from tests.tierd.act.movers.both_engines import ENGINES, LAYOUTS, PFL, Both
from tests.tierd.act.movers.fakelfs import MOUNT, FakeLfs
from tests.tierd.act.movers.minicalls import just_before
from tests.tierd.act.movers.minilustre import DOM, FLASH, HDD, PAGE, SECOND
from tests.tierd.later import raising
from tierd.act.movers.moves import MoveResult

Act = Callable[[Both], object]


def replace(world: Both) -> None:
    world.lustre.create("/new", b"another file")
    world.lustre.rename("/new", "/a")


def change_owner(world: Both) -> None:
    world.node.uid = 1002
    world.node.store.owner = (1002, 1001, 7)


def touch_back(world: Both) -> None:
    world.node.mtime_ns = world.node.store.mtime_ns = 1_500_000_000 * SECOND
    world.node.ctime_ns = world.lustre.tick()


REMOVERS: dict[str, Act] = {"unlink": lambda world: world.lustre.unlink("/a"), "replace": replace}
WRITERS: dict[str, Act] = {
    "cut": lambda world: world.lustre.truncate_name("/a", 7),
    "empty": lambda world: world.lustre.truncate_name("/a", 0),
    "write": lambda world: world.lustre.write("/a", b"theirs", 3),
    "append": lambda world: world.lustre.write("/a", b"theirs", 2 * PAGE),
    "reach the next component": lambda world: world.lustre.write("/a", b"theirs", 20 * PAGE),
}
THOSE_WHO_SET_TIMES: dict[str, Act] = {
    "touch": lambda world: world.lustre.touch("/a"),
    "touch back": touch_back,
    "move elsewhere": lambda world: FakeLfs(world.lustre, LAYOUTS)(
        ("lfs", "migrate", "--non-block", *setstripe_arguments(PFL), MOUNT + "/a")),
}
ACTS: dict[str, Act] = {
    **REMOVERS,
    **WRITERS,
    **THOSE_WHO_SET_TIMES,
    "open for writing": lambda world: world.lustre.open_writer("/a"),
    "change the mode": lambda world: setattr(world.node, "mode", world.node.mode ^ 0o022),
    "change the owner": change_owner,
    "add an attribute": lambda world: world.node.xattrs.update({"user.note": b"new"}),
    "remove attributes": lambda world: world.node.xattrs.clear(),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("frozen", [False, True], ids=["seconds pass", "one second"])
@pytest.mark.parametrize(("present", "wanted"), [(HDD, FLASH), (PFL, FLASH), (HDD, PFL), (DOM, FLASH)],
                         ids=["plain", "from PFL", "to PFL", "off the MDT"])
def test_before_every_call(engine: str, act: str, frozen: bool, present: Layout, wanted: Layout) -> None:
    step = 1
    while _disturbed(engine, act, frozen, present, wanted, step):
        step += 1
    assert step > 9


def _disturbed(engine: str, act: str, frozen: bool, present: Layout, wanted: Layout, step: int) -> bool:
    """One move with one disturbance; False when it was over before that step."""
    world, reference = Both(engine, present), Both(engine, present)
    if frozen:
        world.lustre.tick_ns = reference.lustre.tick_ns = 0
    ACTS[act](reference)
    then = expected = _mtime(world)

    def acts() -> None:
        nonlocal expected
        ACTS[act](world)
        expected = _mtime(world) if act in WRITERS else then

    world.at(step, acts)
    outcome = world.move(wanted)
    if step > len(world.steps):
        return False
    where = f"{act} before call {step}, {world.steps[step - 1]}: {outcome.result}, {outcome.detail}"
    assert outcome.result is not MoveResult.DOUBTFUL, where
    assert world.lustre.names.keys() == reference.lustre.names.keys()
    for name in world.lustre.names:
        assert world.lustre.contents(name) == reference.lustre.contents(name), where
    if act not in {*REMOVERS, *THOSE_WHO_SET_TIMES}:  # see test_modification_times.py and decision 6
        assert expected <= _mtime(world) <= (int(world.clock.now()) if act in WRITERS else expected), where
    if act in REMOVERS and outcome.result is not MoveResult.DONE:
        assert outcome.reason in {"gone", "busy", "not-moved", "changed", "times", "already"}, where
    world.lustre.settle()
    named = {id(node.store) for node in world.lustre.names.values()}
    assert {id(store) for store in world.lustre.live_stores()} == named, where
    return True


def _mtime(world: Both) -> int:
    """What Lustre shows: the later of the times on MDT and objects, in seconds."""
    return max(world.node.mtime_ns, world.node.store.mtime_ns) // SECOND


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("act", REMOVERS)
def test_a_file_removed_after_the_exchange_is_gone(engine: str, act: str) -> None:
    """16 of 90 outcomes in 20 seconds beside unlinkers: ESTALE was taken for an unreadable file."""
    world = Both(engine)
    world.calls.lose_reply = engine == "lease"  # only then does this engine look at it by its identity
    world.calls.before = just_before("open_fid", lambda: REMOVERS[act](world))
    outcome = world.move()
    assert (outcome.result, outcome.reason) == (MoveResult.GAVE_WAY, "gone")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_replaced_during_the_check(engine: str) -> None:
    """A client that still knows the name answers ESTALE for it."""
    world = Both(engine)

    def stale(name: str, _: int) -> None:
        if name in {"open_for_reading", "open_for_swap"}:
            raise of_errno(errno.ESTALE, name, "/a")

    world.calls.before = stale
    outcome = world.move()
    assert (outcome.result, outcome.reason) == (MoveResult.GAVE_WAY, "gone")


@pytest.mark.parametrize(("engine", "step"), [("lease", "swap_and_close"), ("lfs", "open_for_swap")])
def test_pools_that_cannot_be_read_after_a_move_leave_no_move_without_outcome(engine: str, step: str) -> None:
    world = Both(engine)
    world.calls.lose_reply = engine == "lease"
    world.calls.before = world.lfs.before = just_before(step, lambda: setattr(world, "pools_fail", True))
    assert world.move().result is MoveResult.DONE


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("away_seconds", "result"), [(25.0, MoveResult.DONE), (60.0, MoveResult.DOUBTFUL)])
def test_a_file_is_examined_again_while_its_target_evicts_the_client(
        engine: str, away_seconds: float, result: MoveResult) -> None:
    """On a real Lustre, a restart of an OST in the middle of a move stopped all moves until somebody resumed."""
    world, back = Both(engine), [0.0]
    world.calls.lose_reply = engine == "lease"  # only then does this engine look at it by its identity

    def before(name: str, _: int) -> None:
        if name == "open_fid":
            back[0] = back[0] or world.clock.now() + away_seconds
        if name in {"open_fid", "exists"} and world.clock.now() < back[0]:
            raise of_errno(errno.ESHUTDOWN, name, "/a")

    world.calls.before = before
    assert world.move().result is result


@pytest.mark.parametrize("engine", ENGINES)
def test_a_path_too_long_for_the_name_of_a_copy_is_no_failure(engine: str) -> None:
    """Ten failures stop all moves, and anybody can make ten such files."""
    world = Both(engine)
    world.calls.before = world.lfs.before = just_before(
        "create_volatile", raising(of_errno(errno.ENAMETOOLONG, "create", "/a")), occurrence=None)
    assert (world.move().result, world.move().reason) == (MoveResult.REFUSED, "path")


def test_lfs_leaves_alone_what_was_modified_a_moment_ago() -> None:
    """The next write may be in the same second, and then no attribute would show it."""
    world = Both("lfs")
    world.lustre.write("/a", b"now", 0)
    assert (world.move().result, world.move().reason) == (MoveResult.GAVE_WAY, "busy")
    assert not world.lfs.commands
    world.lustre.clock_ns += 3 * SECOND
    assert world.move().result is MoveResult.DONE
