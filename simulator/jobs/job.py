"""What every job shares: where it runs, as whom, until when, and the log of what it got."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from simulator.changelog import Actor
from simulator.client import Client
from simulator.engine import Completion
from simulator.namespace import Inode
from simulator.throughput import Throughput


class Team:
    """What the nodes of one job share: a barrier, and when how much of what was done."""

    def __init__(self) -> None:
        self.done: dict[str, tuple[int, float, float]] = {}
        self.files: dict[int, list[Inode]] = {}
        """By process, what it made."""
        self._here: dict[str, int] = {}
        self._all: dict[str, Completion] = {}

    def count(self, what: str, now: float) -> None:
        """One more operation of a kind; keeps how many, and when the last was."""
        number, since, _ = self.done.get(what, (0, now, now))
        self.done[what] = (number + 1, since, now)

    def begin(self, what: str, now: float) -> None:
        """A phase begins."""
        self.done.setdefault(what, (0, now, now))

    def per_second(self, what: str) -> float:
        """Rate of a kind of operation from the beginning of its phase to its last one."""
        number, since, last = self.done.get(what, (0, 0.0, 0.0))
        return number / (last - since) if last > since else 0.0

    def barrier(self, name: str, members: int) -> Completion:
        """Done when so many have come."""
        reached = self._all.setdefault(name, Completion())
        self._here[name] = self._here.get(name, 0) + 1
        if self._here[name] == members:
            reached.succeed()
        return reached


PAUSE_CHANCE, PAUSE_SECONDS = 0.02, 0.05
"""How often a scheduler takes a thread away between two calls, and for how long."""


@dataclass(slots=True)
class Run:
    """One job while it runs."""

    client: Client
    actor: Actor
    rng: Random
    throughput: Throughput
    stop_seconds: float
    """Virtual time at which it stops; a call under way then is still finished."""
    rank: int = 0
    """Which of the job's nodes this is."""
    team: Team = field(default_factory=Team)
    processes: int = 0
    operations: int = 0
    errors: dict[int, int] = field(default_factory=dict)
    """How often a call failed, by errno."""

    @property
    def now(self) -> float:
        """Virtual time."""
        return self.client.engine.now

    @property
    def active(self) -> bool:
        """Whether the job goes on."""
        return self.now < self.stop_seconds

    def did(self, what: str) -> None:
        """An operation without bytes is over."""
        self.operations += 1
        self.team.count(what, self.now)

    def got(self, size_bytes: int) -> None:
        """A call that moved bytes returned."""
        self.operations += 1
        self.throughput.add(self.actor.job_id, self.now, size_bytes)

    def failed(self, error: OSError) -> None:
        """A call failed; jobs go on with the next one."""
        self.errors[error.errno or 0] = self.errors.get(error.errno or 0, 0) + 1

    def think(self, seconds: float) -> float:
        """Time the application takes between two calls: short as a rule, long when its node is busy with others."""
        if not seconds:
            return 0.0
        usual = self.rng.expovariate(1 / seconds)
        return usual + (self.rng.expovariate(1 / PAUSE_SECONDS) if self.rng.random() < PAUSE_CHANCE else 0.0)

    def lookup(self, path: str) -> Inode:
        """A file or directory by path."""
        return self.client.servers.namespace.lookup(path)


def user_of(job_id: str) -> int:
    """The uid in a job id of the form ``%e.%u``; 0 when there is none.

    >>> user_of("ior_stream.1002"), user_of("4242:0")
    (1002, 0)
    """
    last = job_id.rpartition(".")[2]
    return int(last) if last.isdigit() else 0
