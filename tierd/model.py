"""The nouns of tierd, all frozen: windows of job loads, facts about clients, targets and files, findings, and actions.

Targets have their full names (``lustre-OST0003``), so that several file systems never mix. Times are epoch seconds,
sizes bytes; loads are sums over their window. Windows say what jobs did to targets. Facts come from elsewhere, more
rarely, and may be missing: then the detectors that need them find nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
class PoolPair:
    """A flash pool and the disk pool that its files come from and go back to."""

    flash: str
    hdd: str


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
class Capacity:
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


Activities = Callable[[str, float], Sequence[DirectoryActivity]]
"""Where a job has been active since a time."""


@dataclass(frozen=True, slots=True)
class RpcLoad:
    """RPCs of one mount to the object targets of one pool, or to the metadata targets, in one direction."""

    kind: str
    """``osc`` for object targets, ``mdc`` for metadata targets."""
    pool: str
    """Pool of the targets, or the metadata target; empty for targets in no pool."""
    direction: str
    """``read``, ``write``, or ``modify`` for metadata RPCs that change something."""
    in_flight: Mapping[int, float] = field(default_factory=dict)
    """RPCs sent, by how many were then under way to their target, themselves among them."""
    pages: Mapping[int, float] = field(default_factory=dict)
    """RPCs sent, by upper bound of their pages."""
    most_in_flight: float = 0.0
    """``max_rpcs_in_flight`` (or ``max_mod_rpcs_in_flight``); 0 where it is not known."""
    most_pages: float = 0.0
    """``max_pages_per_rpc``; 0 where it is not known."""

    @property
    def rpcs(self) -> float:
        """How many were sent."""
        return sum(self.in_flight.values()) or sum(self.pages.values())


@dataclass(frozen=True, slots=True)
class ClientLoad:
    """What one mount did between two looks at it: differences of its ``llite``, ``osc`` and ``mdc`` counters."""

    client: str
    """The node: the host of its exporter, or ``this node``."""
    mount: str
    """Mount point, or the device of the mount where only parameter files are known."""
    fsname: str
    time: float
    """When it was looked at last; epoch seconds."""
    seconds: float
    read_ahead: Mapping[str, float] = field(default_factory=dict)
    """Pages by event of ``read_ahead_stats``: ``hits``, ``misses``, ``readpage_not_consecutive``, ``stride``, …"""
    read_ahead_bytes: float = 0.0
    """``max_read_ahead_mb`` of the mount; 0 where it is not known."""
    read_ahead_file_bytes: float = 0.0
    """``max_read_ahead_per_file_mb``; 0 where it is not known."""
    statahead: Mapping[str, float] = field(default_factory=dict)
    """``started``, ``wrong``, ``hits``, ``misses`` of ``statahead_stats``."""
    statahead_most: float = 0.0
    """``statahead_max``; 0 where it is not known or statahead is off."""
    rpcs: tuple[RpcLoad, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetFill:
    """Room on one object target."""

    size_bytes: int
    avail_bytes: int
    growth_bytes_per_second: float = 0.0
    """By which it filled in the last minutes, deletions counted; negative where it emptied."""

    @property
    def used(self) -> float:
        """Share in use; 1 for a target without a size."""
        return 1 - self.avail_bytes / self.size_bytes if self.size_bytes else 1.0


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file somebody looked at: where its bytes lie, and when it was last used."""

    fid: Fid
    path: str
    size_bytes: int
    pools: tuple[str, ...]
    """Pools that hold bytes of it."""
    read_at: float
    """Last access, epoch seconds (mtime where that is later: writing is using)."""
    layout: Layout | None = None


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A file that several have open now."""

    job: str
    """That opened it last."""
    path: str
    openers: int
    layout: Layout | None = None
    size_bytes: int | None = None
    """None where nobody could tell."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All of it, as of one cycle. What nobody could look at is empty."""

    clients: tuple[ClientLoad, ...] = ()
    pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Pool name to full target names."""
    fill: Mapping[str, TargetFill] = field(default_factory=dict)
    """By full target name."""
    stored: tuple[StoredFile, ...] = ()
    """Files seen on flash, as far as anybody walked."""
    directories: tuple[DirectoryActivity, ...] = ()
    """What jobs did in directories in the last ``directory_seconds``, counts only, no files."""
    directory_seconds: float = 0.0
    metadata_targets: int = 0
    """How many MDTs the file system has; 0 where it is not known."""
    default_layouts: Mapping[str, Layout | None] = field(default_factory=dict)
    """Of directories that were looked at."""
    shared_files: tuple[SharedFile, ...] = ()
    """Those with the most openers first."""

    def pool_of(self, target: str) -> str:
        """Name of the pool a target is in; "" for none. Of several, the smallest: it says most."""
        of = sorted((len(members), pool) for pool, members in self.pools.items() if target in members)
        return of[0][1] if of else ""
