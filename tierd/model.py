"""The nouns of tierd: what a job did to a target, what that means, and what to do about it. All frozen.

Targets carry their full names (``lustre-OST0003``), so that several file systems never mix. Times are epoch seconds,
sizes bytes, rates per second of the window they stand in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from lustre.fid import Fid
from lustre.layout.model import Layout

NO_SIZES: Mapping[int, float] = MappingProxyType({})


class JobLoad(NamedTuple):
    """What one job did to one OST during a window: differences of its ``job_stats`` counters.

    A tuple, since a large file system has some ten thousand in each window: it takes a third of the time to make one.
    """

    target: str
    job: str
    read_bytes: float = 0.0
    write_bytes: float = 0.0
    reads: float = 0.0
    """Bulk RPCs, not system calls."""
    writes: float = 0.0
    other_operations: float = 0.0
    """sync, destroy, create, punch, setattr, …: small operations that make a disk seek."""
    busy_usec: float = 0.0
    """Time the server spent in the bulk RPCs."""
    sizes: Mapping[int, float] = NO_SIZES
    """Bulk RPCs by upper bound of their size in bytes (Lustre 2.16 and newer; empty before)."""

    @property
    def moved_bytes(self) -> float:
        """Read and written."""
        return self.read_bytes + self.write_bytes

    @property
    def bulk_operations(self) -> float:
        """Reads and writes."""
        return self.reads + self.writes

    @property
    def operations(self) -> float:
        """Everything the target had to serve for the job."""
        return self.reads + self.writes + self.other_operations


@dataclass(frozen=True, slots=True)
class NamespaceLoad:
    """What one job asked of the metadata targets during a window."""

    job: str
    opens: float = 0.0
    closes: float = 0.0
    creates: float = 0.0
    unlinks: float = 0.0
    other_operations: float = 0.0

    @property
    def operations(self) -> float:
        """All of them."""
        return self.opens + self.closes + self.creates + self.unlinks + self.other_operations


@dataclass(frozen=True, slots=True)
class Window:
    """The file system between two readings."""

    start: float
    end: float
    loads: Mapping[tuple[str, str], JobLoad]
    """By (target, job); only jobs that did something."""
    namespace: Mapping[str, NamespaceLoad]
    """By job."""
    conditions: Mapping[str, str] = field(default_factory=dict)
    """Target to why its speed says nothing now: ``degraded``, ``in recovery``, ``full``. Healthy targets are absent."""
    learnt: bool = False
    """Whether somebody else saw it, before our start."""

    @property
    def seconds(self) -> float:
        """Length."""
        return self.end - self.start

    @property
    def jobs(self) -> frozenset[str]:
        """Jobs that did something on an OST."""
        return frozenset(job for _, job in self.loads)


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file a job has opened without creating it, for jobs whose noise comes from few large files."""

    fid: Fid
    path: str
    """Empty when nothing could name it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An existing file that could move."""

    fid: Fid
    path: str
    closed_at: float
    """When it was last closed; epoch seconds."""
    created_at: float = 0.0
    """0 for a file that was there before anybody listened."""
    size_bytes: int | None = None
    """None where only a changelog has spoken of it."""
    opens: int = 0
    """How often it was opened again after it was made, since anybody listened: how much it is read."""
    reads: float = 0.0
    """Read requests of late, where an access log tells: a hint of what to move first."""


@dataclass(frozen=True, slots=True)
class DirectoryActivity:
    """What one job did in one directory since it began there, from changelogs."""

    job: str
    directory: str
    """Path below the root, its FID in brackets where nothing could name it, or "" where not even that was told."""
    creates: int = 0
    opens: int = 0
    """Opens of files that existed before."""
    closes: int = 0
    unlinks: int = 0
    outgrown: int = 0
    """Files for which a further component was instantiated: they did not fit the components before it."""
    existing_files: tuple[OpenFile, ...] = ()
    """Files it opened that it had not created."""
    candidates: tuple[Candidate, ...] = ()
    """Files nobody has open."""
    sizes: tuple[int, ...] = ()
    """Sizes of files in the directory, sampled by stat; empty where nothing can be asked."""
    lately: int = 0
    """Of creates and opens, those of the last minutes: where the job works now, and not where it did all its life."""
    last_time: float = 0.0
    """When something was heard of it last, epoch seconds."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What a person may change, where, and what to expect of it. tierd never does it by itself."""

    command: str
    """As it is typed: ``lctl set_param llite.lustre-*.max_read_ahead_mb=256``."""
    where: str
    """On which nodes, for which directories."""
    effect: str
    """What to expect, and what it costs."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something seen, with the numbers that made it."""

    kind: str
    """``noisy-neighbour``, ``shared-bandwidth``, …"""
    time: float
    aggressor: str
    """Job id; empty when a finding names none."""
    victim: str
    targets: tuple[str, ...]
    sentence: str
    evidence: Mapping[str, float]
    directories: tuple[str, ...] = ()
    advice_only: bool = False
    subject: str = ""
    """What it is about where that is no pair of jobs: a directory, a pool, a mount."""
    advice: tuple[Advice, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """The same trouble, however often it is seen."""
        return self.kind, self.aggressor, self.victim or self.subject


@dataclass(frozen=True, slots=True)
class Action:
    """One step of a plan. ``kind`` is ``set-default-layout``, ``migrate`` or ``advise``."""

    kind: str
    layout: Layout
    reason: str
    finding: tuple[str, str, str]
    directory: str = ""
    path: str = ""
    size_bytes: int = 0
    fid: Fid | None = None
    """The file that was chosen: another one of that name is not moved."""


@dataclass(frozen=True, slots=True)
class Room:
    """Where things may go: pools, and what is free there."""

    pools: Mapping[str, tuple[str, ...]]
    """Pool name to full target names."""
    size_bytes: Mapping[str, int]
    """By pool."""
    avail_bytes: Mapping[str, int]
    """By pool."""
    default_layouts: Mapping[str, Layout | None] = field(default_factory=dict)
    """Directory to its own default layout; None where it has none; absent where it could not be read."""
    metadata_free: float | None = None
    """Share of bytes or inodes free on the fullest MDT; None where nobody knows."""
