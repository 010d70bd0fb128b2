"""A leader with its gate, and movers in threads of this process, over one Lustre in memory and a real nats-server."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from lustre.layout.model import Layout
from tests.tierd.act.gate_world import FAST, FINDING
from tests.tierd.act.miniport import MiniPort
from tests.tierd.act.movers.minicalls import MiniCalls
from tests.tierd.act.movers.minilustre import FLASH, MiniLustre
from tests.tierd.cluster.broker import Broker, connected, new_fsname, until
from tests.tierd.logged import logged
from tierd.act.claim import Claim, ClaimFolder
from tierd.act.dispatch import Dispatch
from tierd.act.gate import Gate
from tierd.act.journal.writer import Journal
from tierd.act.limits import Budget, CircuitBreaker
from tierd.act.movers.lease import LeaseMover
from tierd.act.movers.space_and_quota import Destination
from tierd.act.operating_state import MaintenanceGuard
from tierd.act.outcomes import CompletedAct
from tierd.acts import ActKind
from tierd.clock import SystemClock
from tierd.cluster.connection import Connection
from tierd.cluster.dispatch import NatsDispatch
from tierd.cluster.messages import Names
from tierd.cluster.mover import Fault, Mover
from tierd.config.act import ClaimSettings, Limits, MoverSettings
from tierd.config.settings import ClusterSettings, Settings
from tierd.model import Action


class Locked:
    """An object whose methods run one at a time, whatever thread calls them."""

    def __init__(self, whole: object, lock: threading.RLock) -> None:
        self.__dict__.update(whole=whole, lock=lock)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.whole, name)
        if not callable(found):
            return found

        def call(*arguments: Any) -> Any:
            with self.lock:
                return found(*arguments)

        return call


class SimpleClock(SystemClock):
    """The system's clock, which a test may move."""

    ahead = 0.0
    stood_still_seconds = 0.0

    def now(self) -> float:
        return super().now() + self.ahead

    def monotonic(self) -> float:
        return super().monotonic() + self.stood_still_seconds


class ClusterWorld:
    """Files on HDD targets in turn, a leader, and movers. ``make`` gives the dispatch of the gate."""

    def __init__(self, folder: Path, settings: ClusterSettings, limits: Limits = FAST, at_once: int = 2) -> None:
        self.folder = folder
        self.lock = threading.RLock()
        self.lustre = MiniLustre()
        self.port = Locked(MiniPort(self.lustre), self.lock)
        self.clock = SimpleClock()
        self.settings = Settings(movers=MoverSettings(at_once=at_once, per_target_at_once=1, engine="lease"),
                                 cluster=settings)
        self.names = Names(new_fsname())
        self.journal = Journal(folder / "journal.sqlite")
        self.pause = folder / "pause"
        self.claims: ClaimFolder = ClaimFolder(folder / ".tierd")
        self.claim = self.new_claim("host=leader1 nonce=1")
        assert self.claim.hold() is None
        self.finding = self.journal.add_finding(FINDING)
        self.closing: list[Callable[[], None]] = [self.journal.close]
        self.log = logged()
        self.limits = limits

    def new_claim(self, holder: str) -> Claim:
        return Claim(self.claims, holder, self.clock.monotonic, ClaimSettings())

    def gate_with(self, dispatch: Dispatch) -> Gate:
        self.dispatch = dispatch
        self.gate = Gate(self.port, self.engine(), Budget(self.limits, self.clock.now()),
                         CircuitBreaker(), self.journal, self.clock, False,
                         maintenance=MaintenanceGuard(str(self.pause)), dispatch=dispatch)
        return self.gate

    lose_project_at_exchange = False
    """Whether an exchange also changes the project of the file, which no mover expects."""

    def calls(self) -> Any:
        made = MiniCalls(self.lustre)
        swap = made.swap_and_close

        def swap_and_more(source: int, volatile: int, *versions: int) -> None:
            node = self.lustre.descriptors[source].node
            swap(source, volatile, *versions)
            if self.lose_project_at_exchange:
                node.project += 1

        made.swap_and_close = swap_and_more  # type: ignore[method-assign, assignment]
        return Locked(made, self.lock)

    def engine(self, calls: Any = None) -> LeaseMover:
        destination = Destination(self.port.pools, self.port.space, self.lustre.quota)
        return LeaseMover(calls or self.calls(), destination, self.clock)

    def connection(self, role: str, **more: object) -> Connection:
        made = Connection(replace(self.settings.cluster, **more), role)  # type: ignore[arg-type]
        connected(made)
        self.closing.append(made.close)
        return made

    def nats_dispatch(self, claim: Claim | None = None) -> NatsDispatch:
        return NatsDispatch(self.connection("leader"), self.names, claim or self.claim, self.port, self.settings,
                            self.clock, self.journal)

    def mover(self, name: str, fault: Fault = lambda _: None, calls: Any = None, *, start: bool = True) -> Mover:
        made = Mover(name, "host", self.connection("mover"), self.names, self.engine(calls), self.claims,
                     self.settings, self.clock, fault)
        if start:
            self.begin(made)
        else:
            made.describe()
        return made

    def begin(self, mover: Mover) -> None:
        """Its threads work until the end of the test."""
        threads = mover.start()
        self.closing += [lambda: [thread.join(5) for thread in threads], mover.stop]  # type: ignore[list-item]

    def files(self, count: int, size_bytes: int = 100) -> list[str]:
        with self.lock:
            for number in range(count):
                self.lustre.create(f"/d/{number}", bytes((number % 251,)) * size_bytes)
        return [f"/d/{number}" for number in range(count)]

    def submit(self, *paths: str, layout: Layout = FLASH, size_bytes: int = 100) -> None:
        self.gate.submit([Action(ActKind.MIGRATE, layout, "because", FINDING.key, "/d", path, size_bytes)
                          for path in paths], self.finding)

    def pump_until_empty(self, seconds: float = 120.0) -> Counter[str]:
        """Outcomes until nothing is queued or under way."""
        found: Counter[str] = Counter()
        deadline = self.clock.now() + seconds
        while self.gate.waiting or self.gate.under_way:
            assert self.clock.now() < deadline, (found, self.gate.waiting, self.gate.under_way, self.log[-5:],
                                                 self.dispatch.trouble())
            found.update(outcome.result for outcome in self.gate.pump(self.clock.now() + 0.5))
            found.update(outcome.result for outcome in self.gate.attend())
        return found

    def ended(self) -> list[CompletedAct]:
        """The next outcomes that a mover reports. NATS delivers a result some time after the mover has published it."""
        found: list[CompletedAct] = []

        def reported() -> bool:
            found.extend(self.gate.attend())
            return bool(found)

        until(reported, "a mover has reported an outcome")
        return found

    def pool(self, path: str) -> str:
        return self.lustre.names[path].store.layout.components[0].pool

    def outcomes(self) -> dict[str, str]:
        """Last outcome of each file in the journal."""
        return {entry.place: str(entry.outcome) for entry in self.journal.entries()}

    def outcomes_of(self, path: str) -> list[str]:
        """Outcomes of all acts of a file, in order."""
        return [str(entry.outcome) for entry in self.journal.entries() if entry.place == path]

    def close(self) -> None:
        for each in reversed(self.closing):
            each()


def in_process(folder: Path) -> ClusterWorld:
    """A world without NATS."""
    made = ClusterWorld(folder, ClusterSettings())
    made.gate_with(Dispatch(made.engine()))
    return made


def over_nats(folder: Path, broker: Broker, movers: int = 2, **more: Any) -> ClusterWorld:
    """A world with movers that get their moves through NATS."""
    settings = {"ack_wait_seconds": 2.0, "deadline_seconds": 30.0} | more.pop("cluster", {})
    made = ClusterWorld(folder, broker.settings(**settings), **more)
    dispatch = made.nats_dispatch()
    made.gate_with(dispatch)
    dispatch.trouble()  # declares the streams, which movers need
    for number in range(movers):
        made.mover(f"m{number}")
    return made
