"""What all jobs share: fields that place a job on nodes and files, its run on one node, and its throughput log."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from math import log
from random import Random

from lustre.layout.model import Component, Layout
from simulator.clients.client import Client
from simulator.engine import Completion
from simulator.servers.changelog import Actor
from simulator.servers.namespace import Inode


class Throughput:
    """Bytes per job and second.

    >>> log = Throughput()
    >>> log.add("ior.1002", 0.5, 4_000_000); log.add("ior.1002", 2.1, 1_000_000)
    >>> log.per_second("ior.1002", 0, 3)
    [4.0, 0.0, 1.0]
    """

    def __init__(self) -> None:
        self._bytes: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))

    def add(self, job_id: str, now: float, size_bytes: int) -> None:
        """A call of the application returned."""
        self._bytes[job_id][int(now)] += size_bytes

    def jobs(self) -> tuple[str, ...]:
        """Everybody who moved a byte."""
        return tuple(self._bytes)

    def per_second(self, job_id: str, since: float, until: float) -> list[float]:
        """MB/s (10^6 bytes) in each whole second from ``since`` up to ``until``."""
        seconds = self._bytes.get(job_id, {})
        return [seconds.get(second, 0) / 1e6 for second in range(int(since), int(until))]

    def mean(self, job_id: str, since: float, until: float) -> float:
        """MB/s over an interval."""
        samples = self.per_second(job_id, since, until)
        return sum(samples) / len(samples) if samples else 0.0


@dataclass(frozen=True, slots=True)
class Distribution:
    """Lognormal around a median; with ``second_median_bytes`` a share of the files around that one instead.

    >>> sizes = [Distribution(65536, 1.0, 67108864, 0.1).draw(Random(n)) for n in range(200)]
    >>> sum(size > 8 << 20 for size in sizes) in range(10, 40), min(sizes) > 0
    (True, True)
    """

    median_bytes: int = 64 << 10
    sigma: float = 1.0
    """Of the logarithm: 1 means two thirds of the files within a factor of 2.7."""
    second_median_bytes: int = 0
    second_share: float = 0.0
    min_bytes: int = 1
    max_bytes: int = 1 << 30

    def draw(self, rng: Random) -> int:
        """One size."""
        second = self.second_share and rng.random() < self.second_share
        median = self.second_median_bytes if second else self.median_bytes
        return min(max(int(rng.lognormvariate(log(median), self.sigma)), self.min_bytes), self.max_bytes)


HDD = Layout((Component(pool="hdd"),), composite=False)
HDD_STRIPED = Layout((Component(pool="hdd", stripe_count=4, stripe_size=1 << 20),), composite=False)


@dataclass(frozen=True, slots=True)
class FileJob:
    """A job on one file, in a directory with a default layout."""

    job_id: str = "job.1000"
    path: str = "/proj/file"
    start_seconds: float = 0.0
    stop_seconds: float = float("inf")
    client: int = 0
    """The first of its nodes."""
    nodes: int = 1
    layout: Layout | None = HDD_STRIPED
    striped_directories: bool = False

    def directories(self) -> tuple[tuple[str, Layout | None], ...]:
        """Directories it needs, with their default layouts."""
        return ((self.path.rpartition("/")[0], self.layout),)


@dataclass(frozen=True, slots=True)
class DirectoryJob:
    """A job on many files of one directory."""

    job_id: str = "job.1000"
    directory: str = "/proj"
    start_seconds: float = 0.0
    stop_seconds: float = float("inf")
    client: int = 0
    """The first of its nodes."""
    nodes: int = 1
    layout: Layout | None = None
    striped_directories: bool = False

    def directories(self) -> tuple[tuple[str, Layout | None], ...]:
        """Directories it needs, with their default layouts."""
        return ((self.directory, self.layout),)

    def files(self) -> tuple[tuple[str, int], ...]:
        """Files that exist before it starts, with their sizes: none."""
        return ()


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

    def count_operation(self, what: str) -> None:
        """An operation without bytes is over."""
        self.operations += 1
        self.team.count(what, self.now)

    def count_bytes(self, size_bytes: int) -> None:
        """A call that moved bytes returned."""
        self.operations += 1
        self.throughput.add(self.actor.job_id, self.now, size_bytes)

    def count_error(self, error: OSError) -> None:
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
