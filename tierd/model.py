"""The data types of tierd, all frozen: windows of job loads, facts about clients, targets and files, findings, actions.

Targets have their full names (``lustre-OST0003``), so that file systems never mix. Times are epoch seconds, sizes
bytes. Loads are sums over their window. Windows have the loads of jobs on targets. Facts come from other sources and
less often. Without its facts a policy finds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import ClassVar, NamedTuple

from lustre import filesystem
from lustre.fid import Fid
from lustre.layout.directory import DefaultStriping, DirectoryStripes
from lustre.layout.model import Layout
from tierd import loads, structs
from tierd.acts import ActKind
from tierd.text import Carrier

MAX_CLIENTS = 8
"""Clients of a job in a directory that are remembered. A decision needs to know whether there are several."""
JobLoad = loads.JobLoad
NamespaceLoad = loads.NamespaceLoad


@dataclass(frozen=True)
class Table:
    """A table of settings. A setting that it does not have is a mistake, and so is a number that is not finite."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "allow_inf_nan": False}


class Service(NamedTuple):
    """Operations of one kind on one MDT during a window, and their service time together."""

    operations: float
    usec: float


@dataclass(frozen=True, slots=True)
class StorageWork:
    """Work of the storage below a target that slows the target, and that no job causes."""

    kind: str
    """``rebuild``, ``rebalance``, or ``unknown`` while the storage does not answer."""
    pool: str
    """Pool of the storage system that holds the volume of the target; "" if unknown."""
    bytes_per_second: float
    pending_bytes: int
    system: str = "the storage"
    """Name of the product."""
    command: str = ""
    """Command that shows the progress, on the system's own servers."""


UNSEEN = "no new counters"
"""Condition of a target whose counters were not read again: its exporter is late, is down, or its clock was set."""


@dataclass(frozen=True)
class Window:
    """Loads on the file system between two readings."""

    start: float
    end: float
    loads: Mapping[tuple[str, str], JobLoad]
    """By target and job; only active jobs."""
    namespace: Mapping[str, NamespaceLoad]
    """By job."""
    conditions: Mapping[str, str] = field(default_factory=dict)
    """Condition of targets whose speed means nothing: ``degraded``, ``in recovery``, ``full``, or ``UNSEEN``."""
    metadata: Mapping[str, Mapping[str, Service]] = field(default_factory=dict)
    """Service of each operation on each MDT, by full target name and operation; only in short windows."""
    data_limits: Mapping[str, int] = field(default_factory=dict)
    """Maximum bytes of a new component with data on an MDT, by full target name, for MDTs that report it."""
    storage_work: Mapping[str, StorageWork] = field(default_factory=dict)
    """By target, for targets whose storage rebuilds or rebalances."""
    spans: Mapping[str, float] = field(default_factory=dict)
    """Seconds between the two readings of each target by the clock of its server, if readings have such times. Loads
    are of this time: a reading that was lost makes one long span, and one that was late a long and a short one."""

    @property
    def seconds(self) -> float:
        """Length of the window by this node's clock."""
        return self.end - self.start

    def seconds_of(self, target: str) -> float:
        """Seconds in which the loads of a target arose. Rates of one window are loads by this."""
        return self.spans.get(target, self.seconds)

    @property
    def metadata_seconds(self) -> float:
        """Seconds in which the metadata operations arose: the mean over the MDTs."""
        own = [seconds for target, seconds in self.spans.items() if "-MDT" in target]
        return sum(own) / len(own) if own else self.seconds

    @property
    def unseen(self) -> frozenset[str]:
        """Targets without new counters. What a job did there is unknown."""
        return frozenset([target for target, condition in self.conditions.items() if condition == UNSEEN])

    @property
    def jobs(self) -> frozenset[str]:
        """Jobs with a load on an OST."""
        return frozenset(loads.Loads.of(self.loads).job.tolist())

    @cached_property
    def moved(self) -> Mapping[str, float]:
        """Bytes per second by job: on each target by its own seconds."""
        return loads.Loads.of(self.loads).moved_by_job(self.seconds_of)

    @cached_property
    def operations(self) -> Mapping[str, float]:
        """Metadata operations per second by job."""
        done = loads.NamespaceLoads.of(self.namespace)
        return dict(zip(done.job.tolist(), (done.operations / self.metadata_seconds).tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class EarlierWork:
    """What a job did on all object targets before the first window."""

    at: float
    """When its counters began; epoch seconds. 0 if that is not known, as before Lustre 2.15."""
    seconds: float
    """Age of its counters."""
    worked_seconds: float
    """Time that it needs for its operations at the rate of the first window: it may have paused."""
    moved_bytes: float


@dataclass(frozen=True, slots=True)
class StreamedTarget:
    """A target whose streams would lose throughput to further work, and the time that work takes there, in seconds."""

    streams: tuple[str, ...]
    """Job ids."""
    byte_read_seconds: float
    byte_written_seconds: float
    operation_seconds: float

    def seconds(self, read_bytes: float, written_bytes: float, operations: float) -> float:
        return (self.byte_read_seconds * read_bytes + self.byte_written_seconds * written_bytes
                + self.operation_seconds * operations)


@dataclass(frozen=True, slots=True)
class StreamedTargets:
    """All such targets, by full name, and the targets of each pool."""

    by_target: Mapping[str, StreamedTarget] = field(default_factory=dict)
    pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PoolPair:
    """A flash pool and the disk pool that its files come from and go back to."""

    flash: str
    hdd: str


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file that a job has opened and did not create, for jobs with few large files."""

    fid: Fid
    path: str
    """Empty if unknown."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An existing file that may move."""

    fid: Fid
    path: str
    closed_at: float
    """Time of the last close; epoch seconds."""
    created_at: float = 0.0
    """0 for a file older than the changelog records."""
    size_bytes: int | None = None
    """None if only changelog records know the file."""
    opens: int = 0
    """Opens after its creation, in the changelog records: a measure of reads."""
    reads: float = 0.0
    """Recent read requests in an access log, if there is one: a hint of what to move first."""


@dataclass(frozen=True, slots=True)
class DirectoryActivity:
    """Activity of one job in one directory since it began there, from changelogs."""

    job: str
    directory: str
    """Path below the root of the file system; the FID in brackets if the path is unknown; "" if both are."""
    creates: int = 0
    opens: int = 0
    """Opens of existing files."""
    closes: int = 0
    unlinks: int = 0
    outgrown: int = 0
    """Files that outgrew a component, so that the next one was instantiated."""
    existing_files: tuple[OpenFile, ...] = ()
    """Files that it opened and did not create."""
    candidates: tuple[Candidate, ...] = ()
    """Closed files."""
    sizes: tuple[int, ...] = ()
    """Sizes of files in the directory, sampled by stat; empty if unavailable."""
    lately: int = 0
    """Creates and opens of the last minutes: they show where the job works now."""
    creates_before: int = 0
    """Creates that are older than ten minutes; 0 while that is not known."""
    last_time: float = 0.0
    """Time of the newest record, without closes by client threads; epoch seconds."""
    write_opens: int = 0
    """Opens of existing files for writing. 0 if the changelog has no open modes."""
    clients: tuple[str, ...] = ()
    """NIDs of the first clients that created, opened or removed files, since the beginning; at most ``MAX_CLIENTS``.
    Empty if the changelog has no NIDs (before Lustre 2.11)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The numbers of a finding. Names end with their units; shares are between 0 and 1.

    The evidence of a policy is defined in the file of the policy. What others ask of it is a property of this class.
    """

    @property
    def of_stream(self) -> SlowdownEvidence | None:
        """The same numbers, if they are about a stream that is slowed."""
        return None

    @property
    def shown_by_records(self) -> bool:
        """Whether only records show that the aggressor is at work, and not that files are open."""
        return False

    @property
    def in_operations(self) -> bool:
        """Whether the rate of the job is that of its metadata operations: its data shows in no object target."""
        return False

    def numbers(self) -> dict[str, float]:
        """The numbers by name, for JSON and the journal. A number that is None is left out."""
        named = ((each.name, getattr(self, each.name)) for each in fields(self))
        return {name: float(value) for name, value in named if value is not None}


@dataclass(frozen=True, slots=True)
class OtherEvidence(Evidence):
    """Numbers that no plan reads: of findings that are advice, of a policy in another package, or of an old journal."""

    values: Mapping[str, float]

    def numbers(self) -> dict[str, float]:
        """The numbers by name."""
        return {name: float(value) for name, value in self.values.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowdownEvidence(Evidence):
    """A stream that loses throughput to another job on its targets: the evidence of ``shared-bandwidth``.

    Losses are parts of the throughput that the stream would have without the other job. Low and high hold it with a
    probability of nine tenths.
    """

    victim_usual_bytes_per_second: float
    """Throughput without the aggressor."""
    victim_bytes_per_second: float
    """Throughput now."""
    slowdown: float
    """Usual throughput divided by throughput now; infinite if the victim stalls."""
    loss_low: float
    loss_high: float
    loss_probability: float
    """Probability that the loss is at least ``min_loss`` of ``[noisy_neighbour]``."""
    carrier: Carrier
    """What the loss rests on."""
    aggressor_came_at: float = 0.0
    """Epoch seconds; 0 if it was there before the stream was seen."""
    learnt_windows: int | None = None
    """Windows of Prometheus' history that the usual throughput comes from; None if tierd's own windows were enough."""

    @property
    def of_stream(self) -> SlowdownEvidence:
        return self

    @property
    def lacks_past(self) -> bool:
        """Whether the finding rests on device time alone: hardly any window showed more."""
        return self.carrier == Carrier.DEVICE_TIME


Advice = structs.Advice
FindingKey = tuple[str, str, str]
"""Kind, aggressor, and victim or else subject of a finding: the identity of a problem over time."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem that a policy found, with its numbers."""

    kind: str
    """``noisy-neighbour``, ``shared-bandwidth``, …"""
    time: float
    aggressor: str
    """Job id; empty if the finding has no aggressor."""
    victim: str
    targets: tuple[str, ...]
    sentence: str
    evidence: Evidence
    """A mapping of names to numbers is accepted too."""
    directories: tuple[str, ...] = ()
    advice_only: bool = False
    tasks: tuple[str, ...] = ()
    """Job ids of the aggressor if it is an array; ``aggressor`` is then the name of the array (:mod:`tierd.arrays`)."""
    subject: str = ""
    """Subject of a finding that is not about two jobs: a directory, a pool, a mount."""
    advice: tuple[Advice, ...] = ()
    held: bool = False
    """Whether a target of the victim is not seen, so that nothing new is known. No act begins on it."""

    def __post_init__(self) -> None:
        if isinstance(self.evidence, Mapping):
            object.__setattr__(self, "evidence", OtherEvidence(self.evidence))

    @property
    def aggressors(self) -> tuple[str, ...]:
        """Job ids of the aggressor: of its tasks if it is an array."""
        return self.tasks or (self.aggressor,)

    @property
    def key(self) -> FindingKey:
        """Identity of the problem over time."""
        return self.kind, self.aggressor, self.victim or self.subject


@dataclass(frozen=True, slots=True)
class Action:
    """One step of a plan."""

    kind: ActKind
    layout: Layout
    reason: str
    finding: FindingKey
    directory: str = ""
    path: str = ""
    size_bytes: int = 0
    fid: Fid | None = None
    """The chosen file. Another file with the same path is not moved."""
    striping: DefaultStriping | None = None
    """The default striping to set; only for ``SET_DEFAULT_STRIPING``, whose layout has no meaning."""
    undoes: int | None = None
    """Number of the act that this move undoes."""


MetadataSpace = filesystem.MetadataSpace
"""Room on one MDT. Data on the MDT takes from its bytes; every file takes an inode."""


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """Facts about the file system that tierd's own mount shows."""

    metadata_spaces: tuple[MetadataSpace, ...] = ()
    """Room on all MDTs; empty if that of an MDT is unknown."""
    release: tuple[int, int] = (0, 0)
    """Oldest Lustre release of this client and the MDTs; (0, 0) if one is unknown."""


@dataclass(frozen=True, slots=True)
class MetadataTargets:
    """Room and load of the metadata targets. A policy considers the worst of them: a file stays on its MDT."""

    spaces: tuple[MetadataSpace, ...]
    data_limit_bytes: int | None = None
    """Largest component that every MDT accepts (``lod.*.dom_stripesize``); None if unknown."""
    slowdown: float | None = None
    """Service time of an operation now as a multiple of that in quiet times, on the slowest MDT; None if unknown."""

    @property
    def free_share(self) -> float:
        """Lowest free share of bytes or inodes; 0 without an MDT."""
        return min((min(each.avail_bytes / each.size_bytes if each.size_bytes else 0.0,
                        each.inodes_free / each.inodes if each.inodes else 0.0) for each in self.spaces), default=0.0)

    def spare_bytes(self, min_free: float) -> float:
        """Bytes that any MDT can take until only this share of it is free; negative if less is free already."""
        return min((each.avail_bytes - min_free * each.size_bytes for each in self.spaces), default=0.0)

    def spare_inodes(self, min_free: float) -> float:
        """Files that any MDT can take until only this share of its inodes is free."""
        return min((each.inodes_free - min_free * each.inodes for each in self.spaces), default=0.0)


@dataclass(frozen=True, slots=True)
class Capacity:
    """Pools and their free space."""

    pools: Mapping[str, tuple[str, ...]]
    """Pool name to full target names."""
    size_bytes: Mapping[str, int]
    """By pool."""
    avail_bytes: Mapping[str, int]
    """By pool."""
    default_layouts: Mapping[str, Layout | None] = field(default_factory=dict)
    """Default layout of each directory; None if the directory has no own layout; absent if it could not be read."""
    metadata: MetadataTargets | None = None
    """None if the room of an MDT is unknown."""
    won_back: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """What acts against such findings won back, the newest first, by pool of the first component; "" for the MDT."""
    release: tuple[int, int] = (0, 0)
    """Oldest Lustre release of this client and the MDTs; (0, 0) if one is unknown."""
    fill: Mapping[str, TargetFill] = field(default_factory=dict)
    """Space on each OST that can be reached, by full target name."""
    closed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Targets that take no files of moves, by pool. ``pools`` lacks them."""


Activities = Callable[[str, float], Sequence[DirectoryActivity]]
"""Activities of a job since a time."""


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
    """RPCs sent, by RPCs in flight to their target at that time, including themselves."""
    pages: Mapping[int, float] = field(default_factory=dict)
    """RPCs sent, by upper bound of their pages."""
    max_in_flight: float = 0.0
    """``max_rpcs_in_flight`` or ``max_mod_rpcs_in_flight``; 0 if unknown."""
    max_pages: float = 0.0
    """``max_pages_per_rpc``; 0 if unknown."""

    @property
    def rpcs(self) -> float:
        return sum(self.in_flight.values()) or sum(self.pages.values())


@dataclass(frozen=True, slots=True)
class ClientLoad:
    """Load of one mount between two readings: differences of its ``llite``, ``osc`` and ``mdc`` counters."""

    client: str
    """The node: the host of its exporter, or ``this node``."""
    mount: str
    """Mount point; the device of the mount if only parameter files are readable."""
    fsname: str
    time: float
    """Time of the last reading; epoch seconds."""
    seconds: float
    read_ahead: Mapping[str, float] = field(default_factory=dict)
    """Pages by event of ``read_ahead_stats``: ``hits``, ``misses``, ``readpage_not_consecutive``, ``stride``, …"""
    read_ahead_bytes: float = 0.0
    """``max_read_ahead_mb`` of the mount; 0 if unknown."""
    read_ahead_file_bytes: float = 0.0
    """``max_read_ahead_per_file_mb``; 0 if unknown."""
    statahead: Mapping[str, float] = field(default_factory=dict)
    """``started``, ``wrong``, ``hits``, ``misses`` of ``statahead_stats``."""
    statahead_max: float = 0.0
    """``statahead_max``; 0 if unknown or if statahead is off."""
    rpcs: tuple[RpcLoad, ...] = ()
    statahead_batch: float | None = None
    """``statahead_batch_max``, 0 if batches are off; None before Lustre 2.16."""
    fabric_driver: Mapping[str, int] = field(default_factory=dict)
    """Parameters of the Omni-Path driver of the node; empty without such an adapter."""


@dataclass(frozen=True, slots=True)
class TargetFill:
    """Space on one object target."""

    size_bytes: int
    avail_bytes: int
    growth_bytes_per_second: float = 0.0
    """Growth in the last minutes, deletions included; negative if the target emptied."""

    @property
    def used(self) -> float:
        """Used share; 1 for a target without a size."""
        return 1 - self.avail_bytes / self.size_bytes if self.size_bytes else 1.0


@dataclass(frozen=True, slots=True)
class DiskWrites:
    """Disk I/O of one OST between two readings, or since its mount: from ``brw_stats`` and ``io_latency_stats``."""

    time: float
    """Time of the second reading; epoch seconds."""
    sizes: Mapping[int, float] = field(default_factory=dict)
    """Disk I/Os, by inclusive upper bound of their bytes."""
    msec: Mapping[int, float] = field(default_factory=dict)
    """Bulk requests, by upper bound of the milliseconds of their disk I/O."""
    usec_by_size: Mapping[int, Mapping[int, float]] = field(default_factory=dict)
    """Bulk requests, by lower bound of their bytes and by upper bound of the usec of their disk I/O; since 2.17."""
    request_msec: float = 0.0
    """Mean duration of the disk I/O of a bulk request that reads or writes, by upper bounds; 0 for few requests."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file found by a scan: its pools and its last use."""

    fid: Fid
    path: str
    size_bytes: int
    pools: tuple[str, ...]
    """Pools that hold bytes of it."""
    read_at: float
    """Last access or modification; epoch seconds."""
    layout: Layout | None = None


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A file that several clients have open."""

    job: str
    """Job that opened it last."""
    path: str
    openers: int
    """Clients that have it open."""
    layout: Layout | None = None
    size_bytes: int | None = None
    """None if unknown."""


@dataclass(frozen=True, slots=True)
class SharedRuns:
    """Runs of one user in one directory, in each of which clients shared a file and then all closed it."""

    file: SharedFile
    """The file of the last run, with the fewest openers that a run had."""
    runs: int
    seconds: float
    """Time for which the files were open, over all runs."""


@dataclass(frozen=True, slots=True)
class DirectoryPlacement:
    """The MDTs of a directory, and the default of its new subdirectories."""

    stripes: DirectoryStripes
    default: DefaultStriping | None
    """None if the directory has no default of its own."""


@dataclass(frozen=True, slots=True)
class MetadataLoad:
    """Operations of one MDT per second, by job statistics."""

    mdt: str
    """Full target name."""
    creates: float = 0.0
    unlinks: float = 0.0
    stats: float = 0.0
    """``getattr``, ``getxattr``, ``statfs``."""
    opens: float = 0.0
    others: float = 0.0
    jobs: tuple[tuple[str, float], ...] = ()
    """The jobs with most operations, and their operations per second."""
    usec_per_operation: float = 0.0
    """Mean time of an operation on the server; 0 if the release prints no times."""

    @property
    def operations(self) -> float:
        return self.creates + self.unlinks + self.stats + self.opens + self.others


@dataclass(frozen=True, slots=True)
class MetadataService:
    """The service for metadata requests (``mds.MDS.mdt``) of one MDS."""

    node: str
    """Origin of the counters: the exporter, or ``this node``."""
    threads: float
    threads_max: float
    requests_per_second: float
    wait_usec: float
    """Mean time that a request waited for a thread."""
    active: float
    """Mean number of requests in progress at the start of a request."""
    mdts: frozenset[str] = frozenset()
    """Its MDTs, by full name."""


@dataclass(frozen=True)
class Facts:
    """All facts as of one cycle. Unknown facts are empty."""

    clients: tuple[ClientLoad, ...] = ()
    pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Pool name to full target names."""
    flash: frozenset[str] = frozenset()
    """Pools whose targets are all on flash, as far as the servers report it."""
    fill: Mapping[str, TargetFill] = field(default_factory=dict)
    """By full target name."""
    closed: Mapping[str, str] = field(default_factory=dict)
    """Targets that take no files of moves, by full name, with the reason: ``is being drained``."""
    stored: tuple[StoredFile, ...] = ()
    """Files on flash, as far as scans have found them."""
    resident: tuple[StoredFile, ...] = ()
    """Files on the fuller targets of unevenly filled pools, as far as scans have found them."""
    directories: tuple[DirectoryActivity, ...] = ()
    """Activity in directories in the last ``directory_seconds``, without files. In a directory whose default layout has
    changed since, only that after the change: rates come from ``latest_directories``."""
    directory_seconds: float = 0.0
    latest_directories: tuple[DirectoryActivity, ...] = ()
    """The same in the last ``latest_seconds``, about half a minute."""
    latest_seconds: float = 0.0
    job_nodes: Mapping[str, int] = field(default_factory=dict)
    """Nodes by job, from the scheduler, for jobs in busy directories whose clients the changelog does not name."""
    metadata_targets: int = 0
    """Number of MDTs; 0 if unknown."""
    metadata: Mapping[str, MetadataSpace] = field(default_factory=dict)
    """Space on MDTs, by full target name."""
    metadata_loads: tuple[MetadataLoad, ...] = ()
    """Recent operations of each MDT."""
    metadata_services: tuple[MetadataService, ...] = ()
    """Recent load of the service for metadata requests of each MDS."""
    placements: Mapping[str, DirectoryPlacement] = field(default_factory=dict)
    """MDTs of the directories with the most operations, as far as read."""
    default_layouts: Mapping[str, Layout | None] = field(default_factory=dict)
    """Default layouts by directory, as far as read."""
    shared_files: tuple[SharedFile, ...] = ()
    """Files with the most opens first."""
    shared_runs: tuple[SharedRuns, ...] = ()
    """Runs on shared files that have ended."""
    disk_writes: Mapping[str, tuple[DiskWrites, ...]] = field(default_factory=dict)
    """By full target name, the last readings of its disk I/O, oldest first."""
    max_rpc_bytes: Mapping[str, int] = field(default_factory=dict)
    """By full target name, the largest RPC that it accepts (``brw_size``), as far as known."""
    server_drivers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Parameters of the Omni-Path driver, by name of the server; without servers that have no such adapter."""

    def pool_of(self, target: str) -> str:
        """Name of the smallest pool that a target is in; "" if it is in none."""
        return self._smallest_pools.get(target, "")

    @cached_property
    def _smallest_pools(self) -> Mapping[str, str]:
        pools = sorted(((len(members), pool) for pool, members in self.pools.items()), reverse=True)
        return {target: pool for _, pool in pools for target in self.pools[pool]}
