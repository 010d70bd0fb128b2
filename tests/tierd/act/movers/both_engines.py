"""Both engines over the Lustre in memory, with one hook before every call that one of them or its ``lfs`` makes."""

import errno
from collections.abc import Callable, Mapping, Sequence

from lustre.layout.model import Component, Layout
from tests.tierd.act.movers.fakelfs import MOUNT, FakeLfs
from tests.tierd.act.movers.minicalls import MiniCalls
from tests.tierd.act.movers.minilustre import DOM, DOM_FLASH, FLASH, HDD, PAGE, MiniClock, MiniLustre, Node
from tierd.act.movers.inspection import FileEngine
from tierd.act.movers.lease import LeaseMover
from tierd.act.movers.lfs import LfsMover
from tierd.act.movers.moves import Move, MoveOutcome
from tierd.act.movers.space_and_quota import Destination
from tierd.model import MetadataSpace

PFL = Layout((Component(0, 16 * PAGE, pool="flash"), Component(16 * PAGE, None, pool="hdd")))
LAYOUTS = (FLASH, HDD, PFL, DOM, DOM_FLASH)


class Both:
    """A file ``/a`` that was not used for a minute, and an engine."""

    def __init__(self, kind: str, layout: Layout = HDD, data: bytes = b"first page".ljust(2 * PAGE, b"x"),
                 metadata: Callable[[], Sequence[MetadataSpace]] = tuple) -> None:
        self.lustre = MiniLustre()
        self.lustre.directory_project = 7
        self.data = data
        self.node: Node = self.lustre.create("/a", data, layout)
        self.node.xattrs["user.origin"] = b"beamline"
        self.lustre.clock_ns += 60_000_000_000
        self.calls, self.lfs = MiniCalls(self.lustre), FakeLfs(self.lustre, LAYOUTS)
        self.pools_fail = False
        self.destination = Destination(self.pool_members, self.lustre.space, self.lustre.quota, metadata=metadata)
        self.clock = MiniClock(self.lustre)
        self.engine: FileEngine = ENGINES[kind](self, self.destination)
        self.steps: list[str] = []

    def pool_members(self) -> Mapping[str, tuple[str, ...]]:
        if self.pools_fail:
            raise OSError(errno.EIO, "no answer")
        return self.lustre.pool_members

    def at(self, step: int, act: Callable[[], object]) -> None:
        """Do something just before the nth call there is, of tierd or of its lfs."""
        def before(name: str, _: int) -> None:
            self.steps.append(name)
            if len(self.steps) == step:
                act()

        self.calls.before = self.lfs.before = before

    def move(self, layout: Layout = FLASH, path: str = "/a") -> MoveOutcome:
        (outcome,) = self.engine.move((Move(path, layout),))
        assert not self.lustre.descriptors, "it left files open"
        return outcome


ENGINES: dict[str, Callable[[Both, Destination], FileEngine]] = {
    "lease": lambda world, to: LeaseMover(world.calls, to, world.clock),
    "lfs": lambda world, to: LfsMover(world.calls, to, MOUNT.__add__, world.lfs, clock=world.clock),
}
