"""The nouns of tierd, all frozen: windows of job loads, facts about clients, targets and files, findings, and actions.

Targets have their full names (``lustre-OST0003``), so that several file systems never mix. Times are epoch seconds,
sizes bytes; loads are sums over their window. Windows say what jobs did to targets. Facts come from elsewhere, more
rarely, and may be missing: then the detectors that need them find nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from types import MappingProxyType
from typing import NamedTuple

from lustre.fid import Fid
from lustre.layout.model import Layout
from tierd.acts import ActKind

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The numbers of a finding. Names end with their units; shares are between 0 and 1.

    Evidence that a policy or a judgement reads is defined in this module. Evidence of a detector that only advises is
    defined in the detector's module.
    """

    def numbers(self) -> dict[str, float]:
        """The numbers by name, for JSON and the journal. A number that is None is left out."""
        named = ((each.name, getattr(self, each.name)) for each in fields(self))
        return {name: float(value) for name, value in named if value is not None}


@dataclass(frozen=True, slots=True)
class OtherEvidence(Evidence):
    """Numbers of a kind of finding that tierd does not know: of a detector in another package, or of an old journal."""

    values: Mapping[str, float]

    def numbers(self) -> dict[str, float]:
        """The numbers by name."""
        return dict(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowdownEvidence(Evidence):
    """A stream that slowed down after another job came to its targets: the evidence of ``shared-bandwidth``."""

    victim_usual_bytes_per_second: float
    """Throughput without the aggressor."""
    victim_bytes_per_second: float
    """Throughput now."""
    slowdown: float
    """Usual throughput divided by throughput now; infinite if the victim stands still."""
    quiet_windows: int
    """Windows without the aggressor."""
    contended_windows: int
    """Windows since the aggressor came."""
    learnt_windows: int | None = None
    """Quiet windows that come from Prometheus' history; None if tierd's own windows were enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyNeighbourEvidence(SlowdownEvidence):
    """A stream that slowed down after a job of small files or small I/O came to its targets."""

    aggressor_operations_per_second: float
    """On the shared targets."""
    aggressor_operations_share: float
    """Part of the two jobs' operations on the shared targets."""
    aggressor_bytes_per_second: float
    """On all targets."""
    aggressor_mean_rpc_bytes: float
    aggressor_largest_rpc_bytes: int
    """0 if the kernel prints no sizes of RPCs."""
    aggressor_read_share: float
    """Reads among the aggressor's bulk RPCs."""
    aggressor_files_per_second: float
    """0 for I/O within large files."""
    aggressor_bytes_per_file: float
    """0 for I/O within large files."""
    bystanders_gain_bytes_per_second: float = 0.0
    """Throughput that other streams gained since the victim slowed down, and lose when it recovers."""
    bystanders_gain_share: float = 0.0
    """The largest such gain, as a share of that stream's throughput."""
    device_time_share: float | None = None
    """The aggressor's part of the service time of the shared targets; None while the costs of service are not known."""
    device_time_share_error: float | None = None
    """Standard error of it."""
    gain_low: float | None = None
    """Throughput without the aggressors of this victim as a multiple of throughput now, one standard error lower than
    expected; None for a finding from the victim's past."""
    gain_high: float | None = None
    """One standard error higher."""
    dose_probability: float | None = None
    """Probability that the victim's throughput falls by chance as the aggressor's operations rise; None if not
    tested."""
    cross_section_ratio: float | None = None
    """What streams get on targets of the same pool without aggressors, as a multiple of what they get on the shared
    ones; None if there are too few such targets."""

    @property
    def lacks_past(self) -> bool:
        """Whether the finding rests on signatures alone: the aggressor was there before tierd."""
        return self.gain_low is not None

    @property
    def whole_small_files(self) -> bool:
        """Whether the aggressor works on whole small files, not within large ones."""
        return self.aggressor_bytes_per_file > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgrownComponentEvidence(Evidence):
    """Files that outgrew the first component of their directory's default layout."""

    files_outgrown: int
    files_created: int
    """Files created in the directory in ``seconds``."""
    share: float
    """Outgrown files among the created ones."""
    component_bytes: int
    """End of the first component; 0 if it is not known."""
    seconds: float
    """Time over which the files were counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HotSmallFilesEvidence(Evidence):
    """Small files on disks that a job reads again and again."""

    opens_per_second: float
    disk_reads_per_second: float
    """Read RPCs that reach disk targets."""
    read_bytes_per_open: float
    disk_read_share: float
    """Bytes from disk targets among all bytes that the job reads."""
    read_operations_share: float
    """Reads among the job's bulk RPCs on disk targets."""
    usec_per_rpc: float
    """Mean service time of these RPCs; 0 if the servers print no times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdOnFlashEvidence(Evidence):
    """Files on a flash pool that is short of space, unused for long."""

    used_share: float
    cold_files: int
    cold_bytes: int
    oldest_days: float
    """Time since the last access of the coldest file."""
    target_used_share: float
    """Demotion stops at this share."""
    cold_before: float
    """Files last used before this time are cold; epoch seconds."""
    bytes_to_free: float
    """Bytes to move until ``target_used_share`` is reached."""


EVIDENCE_BY_KIND: Mapping[str, type[Evidence]] = MappingProxyType({
    "noisy-neighbour": NoisyNeighbourEvidence,
    "shared-bandwidth": SlowdownEvidence,
    "outgrown-component": OutgrownComponentEvidence,
    "hot-small-files": HotSmallFilesEvidence,
    "cold-on-flash": ColdOnFlashEvidence,
})
"""Kinds whose evidence is read again after it was stored in the journal."""


def evidence_of(kind: str, numbers: Mapping[str, float]) -> Evidence:
    """The typed evidence of stored numbers. :class:`OtherEvidence` if the kind is unknown or a number is missing.

    Numbers that the kind's evidence does not have are dropped. Journals of earlier versions may have more, or fewer.

    >>> evidence_of("tape-drive", {"mounts": 2.0})
    OtherEvidence(values={'mounts': 2.0})
    >>> numbers = {"victim_usual_bytes_per_second": 66e6, "victim_bytes_per_second": 44e6, "slowdown": 1.5,
    ...            "quiet_windows": 8.0, "contended_windows": 6.0}
    >>> evidence_of("shared-bandwidth", {**numbers, "dropped": 1.0}).numbers() == numbers
    True
    """
    of = EVIDENCE_BY_KIND.get(kind)
    if of is None:
        return OtherEvidence(numbers)
    known = {each.name: each for each in fields(of)}
    if any(each.default is MISSING and each.name not in numbers for each in known.values()):
        return OtherEvidence(numbers)
    try:
        return of(**{name: int(value) if str(known[name].type).startswith("int") else float(value)
                     for name, value in numbers.items() if name in known})
    except (TypeError, ValueError, OverflowError):  # the journal holds something else than numbers
        return OtherEvidence(numbers)


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
    evidence: Evidence
    """A mapping of names to numbers is accepted too, and becomes :func:`evidence_of` the kind."""
    directories: tuple[str, ...] = ()
    advice_only: bool = False
    subject: str = ""
    """What it is about where that is no pair of jobs: a directory, a pool, a mount."""
    advice: tuple[Advice, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.evidence, Mapping):
            object.__setattr__(self, "evidence", evidence_of(self.kind, self.evidence))

    @property
    def key(self) -> tuple[str, str, str]:
        """The same trouble, however often it is seen."""
        return self.kind, self.aggressor, self.victim or self.subject


@dataclass(frozen=True, slots=True)
class Action:
    """One step of a plan."""

    kind: ActKind
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
    max_in_flight: float = 0.0
    """``max_rpcs_in_flight`` (or ``max_mod_rpcs_in_flight``); 0 where it is not known."""
    max_pages: float = 0.0
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
    statahead_max: float = 0.0
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
