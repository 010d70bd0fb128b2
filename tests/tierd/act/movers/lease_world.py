"""A file in the Lustre in memory, and the lease engine to move it."""

from __future__ import annotations

from collections.abc import Callable

from tests.tierd.act.movers.both_engines import Both
from tests.tierd.act.movers.minilustre import PAGE


class World(Both):
    """A file ``/a`` of three pages on the HDD pool, of a project that its directory does not give."""

    def __init__(self) -> None:
        super().__init__("lease", data=b"first page".ljust(PAGE, b"x") + bytes(PAGE) + b"last")
        self.lustre.directory_project = 0

    def before_call(self, call: str, act: Callable[[], object], occurrence: int | None = 1, since: str = "") -> None:
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
