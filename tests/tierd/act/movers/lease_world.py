"""A file in the Lustre in memory, and the lease engine to move it."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping

from lustre.layout.model import Layout
from tests.tierd.act.movers.minicalls import MiniCalls
from tests.tierd.act.movers.minilustre import FLASH, PAGE, MiniClock, MiniLustre
from tierd.act.movers.lease import LeaseMover
from tierd.act.movers.moves import Move, MoveOutcome
from tierd.act.movers.space_and_quota import Destination


class World:
    """A file ``/a`` of three pages on the HDD pool, and an engine."""

    def __init__(self) -> None:
        self.lustre = MiniLustre()
        self.calls = MiniCalls(self.lustre)
        self.data = b"first page".ljust(PAGE, b"x") + bytes(PAGE) + b"last"
        self.pools_fail = False
        self.node = self.lustre.create("/a", self.data)
        self.mover = LeaseMover(
            self.calls, Destination(self.pools, self.lustre.space, self.lustre.quota),
            MiniClock(self.lustre))

    def pools(self) -> Mapping[str, tuple[str, ...]]:
        if self.pools_fail:
            raise OSError(errno.EIO, "no answer")
        return self.lustre.pool_members

    def move(self, layout: Layout = FLASH, path: str = "/a") -> MoveOutcome:
        (outcome,) = self.mover.move((Move(path, layout),))
        assert not self.lustre.descriptors
        return outcome

    def at(self, call: str, act: Callable[[], object], occurrence: int | None = 1, since: str = "") -> None:
        """Do something just before the mover's nth call of a kind (None: each), counted from its call ``since`` on."""
        seen = 0

        def before(name: str, number: int) -> None:
            nonlocal seen
            if since and since not in self.calls.made[: number - 1]:
                return
            seen += name == call
            if name == call and occurrence in {None, seen}:
                act()

        self.calls.before = before


def pools_of_file(world: World) -> list[str]:
    return [component.pool for component in world.node.store.layout.components]
