"""The gate over the Lustre in memory, with a real engine behind it."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lustre.layout.model import Layout
from tests.tierd.act.miniport import BEGIN, MiniPort
from tests.tierd.act.movers.minicalls import MiniCalls
from tests.tierd.act.movers.minilustre import FLASH, HDD, MiniLustre
from tests.tierd.later import PassingClock
from tests.tierd.worlds import noise
from tierd.act.gate import Gate
from tierd.act.journal.writer import Journal
from tierd.act.limits import BackgroundPace, Budget, CircuitBreaker
from tierd.act.movers.lease import LeaseMover
from tierd.act.movers.moves import Mover
from tierd.act.movers.space_and_quota import Destination
from tierd.act.operating_state import MaintenanceGuard
from tierd.act.outcomes import CompletedAct
from tierd.act.undo import Undo
from tierd.acts import ActKind
from tierd.config.act import Limits, Rate
from tierd.model import Action, Finding

FINDING = Finding("noisy-neighbour", 1.0, "m", "s", ("lustre-OST0002",), "…", noise(), ("/d",))
DATA = b"data" * 25
FAST = Limits(1e6, 1e12, per_pool=Rate(1e6, 1e12), per_target=Rate(1e6, 1e12))


def submitted(gate: Gate, actions: Sequence[Action], finding: int) -> list[CompletedAct]:
    """What becomes of default layouts that are submitted; moves wait."""
    gate.submit(actions, finding)
    return gate.default_layouts.set_next()


class World:
    """Files ``/0`` … on HDD targets in turn, and a directory ``/d``."""

    def __init__(self, folder: Path, limits: Limits = FAST, dry_run: bool = False,
                 pace: BackgroundPace | None = None, engine: Callable[[Mover], Mover] = lambda engine: engine) -> None:
        self.lustre = MiniLustre()
        self.port = MiniPort(self.lustre)
        self.port.defaults["/d"] = HDD
        self.clock = PassingClock(BEGIN)
        self.journal = Journal(folder / "journal.sqlite")
        self.pause = folder / "pause"
        port, self.calls = self.seen(self.port), self.seen(MiniCalls(self.lustre))
        self.engine = engine(LeaseMover(self.calls, Destination(port.pools, port.space, self.seen(self.lustre).quota)))
        still = MaintenanceGuard(str(self.pause))
        self.gate = Gate(port, self.engine, Budget(limits, BEGIN), CircuitBreaker(), self.journal, self.clock, dry_run,
                         maintenance=still, pace=pace)
        self.undo = Undo(port, self.engine, self.journal, self.clock, still.pause_file_refusal,
                         trip=self.gate.operating_state.trip)
        self.finding = self.journal.add_finding(FINDING)

    def seen(self, part: Any) -> Any:
        """A part of the file system as tierd sees it."""
        return part

    def files(self, count: int, size: int = 100) -> list[str]:
        for number in range(count):
            self.lustre.create(f"/{number}", bytes((number % 251,)) * size)
        return [f"/{number}" for number in range(count)]

    def submit(self, *paths: str, layout: Layout = FLASH, size: int = 100) -> None:
        self.gate.submit([Action(ActKind.MIGRATE, layout, "because", FINDING.key, "/", path, size) for path in paths],
                         self.finding)

    def default(self, layout: Layout = FLASH, directory: str = "/d") -> CompletedAct:
        action = Action(ActKind.SET_DEFAULT_LAYOUT, layout, "because", FINDING.key, directory)
        (outcome,) = submitted(self.gate, [action], self.finding)
        return outcome

    def pump(self) -> Counter[str]:
        return Counter(outcome.result for outcome in self.gate.pump(self.clock.at + 2.5))

    def pool(self, path: str) -> str:
        return self.lustre.names[path].store.layout.components[0].pool
