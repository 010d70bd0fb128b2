"""Nouns of what is known beside the windows: clients, the room of single targets, files that lie somewhere. All frozen.

Windows tell what jobs did to targets. What clients did with their read-ahead, how full each target is and which files
lie on flash comes from elsewhere, more rarely, and may be missing: a detector that needs it is then blind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lustre.fid import Fid
from lustre.layout.model import Layout
from tierd.model import DirectoryActivity

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
