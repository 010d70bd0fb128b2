"""Parts common to all jobs: fields for nodes and files, the run on one node, and the throughput log."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from random import Random

from lustre.layout.model import Component, Layout
from simulator.clients.client import Client
from simulator.engine import Completion, Steps
from simulator.ranges import AtLeastOne, Count, NotNegative
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
        self._bytes[job_id][int(now)] += size_bytes

    def per_second(self, job_id: str, since: float, until: float) -> list[float]:
        """MB/s (10^6 bytes) in each whole second from ``since`` up to ``until``."""
        seconds = self._bytes.get(job_id, {})
        return [seconds.get(second, 0) / 1e6 for second in range(int(since), int(until))]

    def mean(self, job_id: str, since: float, until: float) -> float:
        samples = self.per_second(job_id, since, until)
        return sum(samples) / len(samples) if samples else 0.0


HDD = Layout((Component(pool="hdd"),), composite=False)
HDD_STRIPED = Layout((Component(pool="hdd", stripe_count=4, stripe_size=1 << 20),), composite=False)


@dataclass(frozen=True, slots=True)
class BaseJob:
    """Where and when a job runs, and the default layout of its directories."""

    job_id: str = "job.1000"
    start_seconds: NotNegative = 0.0
    stop_seconds: float = float("inf")
    client: Count = 0
    """Index of the job's first node."""
    nodes: AtLeastOne = 1
    layout: Layout | None = None
    striped_directories: bool = False


@dataclass(frozen=True, slots=True)
class FileJob(BaseJob):
    """A job on one file, in a directory with a default layout."""

    path: str = "/proj/file"
    layout: Layout | None = HDD_STRIPED

    def directories(self) -> tuple[tuple[str, Layout | None], ...]:
        return ((self.path.rpartition("/")[0], self.layout),)


@dataclass(frozen=True, slots=True)
class DirectoryJob(BaseJob):
    """A job on many files of one directory."""

    directory: str = "/proj"

    def directories(self) -> tuple[tuple[str, Layout | None], ...]:
        return ((self.directory, self.layout),)

    def files(self) -> tuple[tuple[str, int], ...]:
        return ()


class Team:
    """State that the nodes of one job share: barriers, and counts of operations."""

    def __init__(self) -> None:
        self.done: dict[str, tuple[float, float, float]] = {}
        self.files: dict[int, list[Inode]] = {}
        """By process, the files it created."""
        self.operations_in: dict[int, int] = {}
        """By whole second, operations that moved no bytes."""
        self._here: dict[str, int] = {}
        self._all: dict[str, Completion] = {}

    def count(self, what: str, now: float, amount: float = 1) -> None:
        """Count an operation of a kind, or an amount of it, with its time."""
        number, since, _ = self.done.get(what, (0, now, now))
        self.done[what] = (number + amount, since, now)

    def begin(self, what: str, now: float) -> None:
        self.done.setdefault(what, (0, now, now))

    def per_second(self, what: str) -> float:
        """Operations of a kind per second, from the start of its phase to its last operation."""
        number, since, last = self.done.get(what, (0, 0.0, 0.0))
        return number / (last - since) if last > since else 0.0

    def reached(self, name: str) -> Completion:
        """Something that one member does and the others wait for. The member completes it."""
        return self._all.setdefault(name, Completion())

    def barrier(self, name: str, members: int) -> Completion:
        """Wait for all members; completes when the last arrives."""
        reached = self.reached(name)
        self._here[name] = self._here.get(name, 0) + 1
        if self._here[name] == members:
            reached.succeed()
        return reached


PAUSE_CHANCE, PAUSE_SECONDS = 0.02, 0.05
"""Probability and mean length of a pause of a thread between two calls."""


@dataclass(slots=True)
class Run:
    """The run of a job on one node."""

    client: Client
    actor: Actor
    rng: Random
    throughput: Throughput
    stop_seconds: float
    """Virtual time at which the run stops. A call in progress is finished."""
    rank: int = 0
    """Number of this node among the job's nodes."""
    team: Team = field(default_factory=Team)
    processes: int = 0
    operations: int = 0
    errors: dict[int, int] = field(default_factory=dict)
    """Number of failed calls, by errno."""

    @property
    def now(self) -> float:
        return self.client.engine.now

    @property
    def active(self) -> bool:
        return self.now < self.stop_seconds

    def count_operation(self, what: str) -> None:
        self.operations += 1
        self.team.count(what, self.now)
        self.team.operations_in[int(self.now)] = self.team.operations_in.get(int(self.now), 0) + 1

    def count_bytes(self, size_bytes: int) -> None:
        self.operations += 1
        self.throughput.add(self.actor.job_id, self.now, size_bytes)

    def count_error(self, error: OSError) -> None:
        """Count a failed call. The job continues with the next call."""
        self.errors[error.errno or 0] = self.errors.get(error.errno or 0, 0) + 1

    def think(self, seconds: float) -> float:
        """Draw the time of the application between two calls: usually short, longer with a pause of its thread."""
        if not seconds:
            return 0.0
        usual = self.rng.expovariate(1 / seconds)
        return usual + (self.rng.expovariate(1 / PAUSE_SECONDS) if self.rng.random() < PAUSE_CHANCE else 0.0)

    def lookup(self, path: str) -> Inode:
        return self.client.servers.namespace.lookup(path)

    def make_file(self, directory: str, name: str, size_bytes: int) -> Steps[Inode]:
        """Create a file of this size, and close it."""
        handle = yield from self.client.create(self.lookup(directory), name, self.actor)
        if size_bytes:
            yield from self.client.data.write(handle, 0, size_bytes, direct=False)
            self.count_bytes(size_bytes)
        yield from self.client.close(handle)
        return handle.inode


def user_of(job_id: str) -> int:
    """Uid in a job id of the form ``%e.%u``; 0 without one.

    >>> user_of("ior_stream.1002"), user_of("4242:0")
    (1002, 0)
    """
    last = job_id.rpartition(".")[2]
    return int(last) if last.isdigit() else 0
