"""Which calls each file costs. One more is a decision: see docs/decisions/013-what-a-mover-asks.md."""

from collections import Counter

from lustre.filesystem import Quota, Space
from lustre.layout.model import Layout
from tests.counted_calls import Counted
from tests.tierd.act.movers.fakelfs import MOUNT, FakeLfs
from tests.tierd.act.movers.minicalls import MiniCalls
from tests.tierd.act.movers.minilustre import DOM, FLASH, HDD, PAGE, MiniClock, MiniLustre
from tierd.act.movers.inspection import FileEngine
from tierd.act.movers.lease import CHUNK_BYTES, LeaseMover
from tierd.act.movers.lfs import LfsMover
from tierd.act.movers.moves import Move, MoveResult
from tierd.act.movers.space_and_quota import Destination

LOOK = ("status", "fid", "layout", "flags", "hsm", "belongings", "project")
LOOK_AGAIN = ("status", "fid", "layout", "flags", "belongings", "project")
LEASE = (
    "status_of", "layout_of",  # by name: nothing is opened for writing that should not be
    "open_for_swap", "lease", *LOOK,
    "data_version",
    "mdt_index", "create_volatile", "fid", "mdt_index", "mdt_index_of", "mdt_index_of",
    "set_owner", "project", "set_project",
    "lease_held", "read", "write", "sync",
    "drop_cache", "lease_held", "read",  # the copy, from its targets
    "data_version", *LOOK_AGAIN,
    "set_times", "layout", "size", "stored_version",
    "drop_cache", "drop_cache", "lease_held", "swap_and_close",
    "status", "layout", "project",  # what it is now
    "close", "close",
)  # fmt: skip
"""A file of one chunk."""
LFS = ("open_for_reading", *LOOK, "close", "open_fid", *LOOK_AGAIN, "close")
"""Calls besides the calls of ``lfs`` itself."""


class World:
    def __init__(self, kind: str, layout: Layout = HDD, files: int = 1, size: int = 2 * PAGE) -> None:
        self.lustre = MiniLustre()
        for number in range(files):
            self.lustre.create(f"/d/{number}", bytes([1]) * size, layout)
        self.lustre.clock_ns += 60_000_000_000
        self.counted = Counted(MiniCalls(self.lustre))
        self.queries: Counter[str] = Counter()
        destination = Destination(self._pools, self._space, self._quota)
        clock, calls = MiniClock(self.lustre), self.counted.calls
        self.engine: FileEngine = LeaseMover(calls, destination, clock) if kind == "lease" else LfsMover(
            calls, destination, MOUNT.__add__, FakeLfs(self.lustre, (FLASH, HDD)), clock=clock)
        self.files = files

    def _pools(self) -> dict[str, tuple[str, ...]]:
        self.queries["pools"] += 1
        return self.lustre.pool_members

    def _space(self) -> dict[str, Space]:
        self.queries["space"] += 1
        return self.lustre.space()

    def _quota(self, kind: int, owner: int, pool: str) -> Quota:
        self.queries["quota"] += 1
        return self.lustre.quota(kind, owner, pool)

    def move(self, layout: Layout = FLASH) -> list[str]:
        moves = [Move(f"/d/{number}", layout) for number in range(self.files)]
        assert {outcome.result for outcome in self.engine.move(moves)} == {MoveResult.DONE}
        return self.counted.made


def test_the_lease_engine() -> None:
    assert tuple(World("lease").move()) == LEASE


def test_a_file_of_its_directorys_project_is_not_given_to_it() -> None:
    world = World("lease")
    world.lustre.directory_project = 7
    assert Counter(world.move()) == Counter(LEASE) - Counter(("set_project",))


def test_a_large_file_costs_what_its_chunks_do_and_one_more_look_at_its_archive_state() -> None:
    extra = Counter(World("lease", size=3 * CHUNK_BYTES).move()) - Counter(LEASE)
    assert extra == Counter({"lease_held": 4, "read": 4, "write": 2, "hsm": 1})


def test_holes_of_a_file_are_looked_up() -> None:
    world = World("lease")
    world.lustre.truncate_name("/d/0", 100 * PAGE)
    extra = Counter(world.move()) - Counter(LEASE)
    assert extra == Counter({"next_data": 2, "truncate": 1})


def test_data_that_leaves_the_mdt_is_checked_by_identity_and_keeps_its_time() -> None:
    made = Counter(World("lease", DOM).move())
    extra = Counter(("open_fid", *LOOK_AGAIN, "data_version", "set_times", "data_version", "status", "close"))
    assert made == Counter(LEASE) - Counter(("layout", "status", "project")) + extra


def test_the_requests_of_tierd_beside_lfs_are_few() -> None:
    """The project of the directory is read once. Pools are read before ``lfs`` runs, and again afterwards."""
    world = World("lfs", files=3)
    world.lustre.directory_project = 7
    assert Counter(world.move()) == Counter(LFS * 3) + Counter(project_beside=1)


def test_shared_facts_are_read_once_for_all_files() -> None:
    for kind in ("lease", "lfs"):
        world = World(kind, files=4)
        for node in world.lustre.names.values():
            node.project = 0
            node.store.owner = (1001, 1001, 0)
        world.move()
        again = {"lease": 0, "lfs": 1}[kind]
        # quotas of user and group, of the file system and of the pool
        assert world.queries == {"pools": 1 + again, "space": 1, "quota": 4}, kind
