"""A client mount: its connections, its counters, and what applications call through ``names`` and ``data``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from lustre.changelog.record import RecordType
from simulator import shapes
from simulator.changelog import Actor
from simulator.data import DataPath
from simulator.engine import Engine
from simulator.mdc import Mdc
from simulator.mdt import Mdt
from simulator.names import Names
from simulator.namespace import Inode, Namespace
from simulator.osc import Osc, OscSettings
from simulator.ost import Ost
from simulator.pagecache import PageCache
from simulator.placement import Placement
from simulator.readahead import ReadAhead, ReadAheadSettings
from simulator.statahead import StataheadCounters, StataheadSettings
from simulator.tally import Stats, microseconds
from simulator.wire import Wire


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """One mount of one node."""

    mount_point: str = "/mnt/lustre"
    nid: str = "10.0.2.15@tcp"
    instance: str = "ff110001298dd800"
    cache_bytes: int = 2961 << 20
    write_back_seconds: float = 5.0
    """Dirty pages of a closed file go out after this time at the latest."""
    copy_seconds_per_mib: float = 0.002
    """What a processor needs to copy between the application and the page cache."""
    parallel_lookups: bool = True
    """False for Linux before 4.7: processes of one node look up names of one directory one after the other."""
    network_bytes_per_second: float | None = None
    """Of the client's adapter; None: never the limit."""
    osc: OscSettings = field(default_factory=OscSettings)
    read_ahead: ReadAheadSettings = field(default_factory=ReadAheadSettings)
    statahead: StataheadSettings = field(default_factory=StataheadSettings)


@dataclass(frozen=True, slots=True)
class Servers:
    """What every client talks to."""

    fsname: str
    namespace: Namespace
    placement: Placement
    mdts: Sequence[Mdt]
    osts: Sequence[Ost]
    epoch_ns: int
    """Nanoseconds of the epoch at virtual time zero."""
    chooses_fast_mirrors: bool = True
    """Whether the MDS looks at what OSTs are made of when it chooses the mirror that is written; since 2.15."""

    @property
    def osts_for_mirrors(self) -> Sequence[Ost]:
        """What that choice is made by; nothing before 2.15."""
        return self.osts if self.chooses_fast_mirrors else ()


class Client:
    """One mount."""

    def __init__(self, engine: Engine, index: int, settings: ClientSettings, servers: Servers, rng: Random) -> None:
        self.index = index
        self.engine = engine
        self.settings = settings
        self.servers = servers
        self.rng = rng
        self.mounted_at = engine.now
        self.stats = Stats(shapes.LLITE, engine.now)
        self.read_ahead = ReadAhead(engine, settings.read_ahead)
        self.cache = PageCache(settings.cache_bytes)
        self.statahead = StataheadCounters()
        suffix = settings.instance
        wire = Wire(engine, settings.network_bytes_per_second)
        self.oscs = tuple(Osc(engine, f"{ost.name}-osc-{suffix}", ost, settings.osc, wire) for ost in servers.osts)
        self.mdcs = tuple(Mdc(engine, f"{mdt.name}-mdc-{suffix}", mdt) for mdt in servers.mdts)
        self.names = Names(self)
        self.data = DataPath(self)

    @property
    def time(self) -> float:
        """Epoch seconds."""
        return self.servers.epoch_ns / 1e9 + self.engine.now

    def since(self, began: float) -> int:
        """Microseconds since a virtual time."""
        return microseconds(self.engine.now - began)

    def jitter(self, seconds: float) -> float:
        """A time that is not the same twice."""
        return seconds * self.rng.lognormvariate(0.0, 0.5)

    def record(
        self, kind: RecordType, inode: Inode, actor: Actor, flags: int = 0, *, parent: Inode | None = None,
        name: str = "", open_mode: int | None = None,
    ) -> None:  # fmt: skip
        """Have the file's MDT write a changelog record."""
        self.servers.mdts[inode.mdt_index].changelog.add(
            kind, self.time, inode.fid, actor, flags=flags, parent=parent.fid if parent else None, name=name,
            open_mode=open_mode,
        )  # fmt: skip
