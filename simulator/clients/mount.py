"""One mount of one node: its settings, its page cache, and its connections to servers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from lustre.changelog.record import RecordType
from lustre.fid import Fid
from simulator import counters
from simulator.clients.mdc import Mdc
from simulator.clients.osc import Osc, OscSettings
from simulator.clients.readahead import ReadAhead, ReadAheadSettings
from simulator.counters import Stats, microseconds
from simulator.engine import Engine
from simulator.network import NETWORK_SECONDS, NetworkAdapter
from simulator.servers.changelog import Actor
from simulator.servers.mdt import Mdt
from simulator.servers.namespace import Inode, Namespace
from simulator.servers.ost import Ost
from simulator.servers.placement import Placement


@dataclass(frozen=True, slots=True)
class StataheadSettings:
    """Tunables of ``llite.*``."""

    max_names: int = 128
    batch_max: int = 64
    """Names per request (2.16 and later); 0: one request per name."""


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """One mount of one node."""

    mount_point: str = "/mnt/lustre"
    nid: str = "10.0.2.15@tcp"
    instance: str = "ff110001298dd800"
    cache_bytes: int = 2961 << 20
    write_back_seconds: float = 5.0
    """Maximum time until the dirty pages of a closed file are written."""
    copy_seconds_per_mib: float = 0.002
    """Time to copy between the application and the page cache."""
    parallel_lookups: bool = True
    """False for Linux before 4.7: processes of one node look up names of one directory one after the other."""
    network_seconds: float = NETWORK_SECONDS
    """One-way latency of a request, from the client's program to the server's thread."""
    name_seconds: float = 0.0
    """Processor time of the client for one operation on a name."""
    user_xattr: bool = True
    """False for ``nouser_xattr``, the default of 2.17: no attribute ``user.*`` can be read or set."""
    network_bytes_per_second: float | None = None
    """Rate of the client's network adapter; None: unlimited."""
    osc: OscSettings = field(default_factory=OscSettings)
    read_ahead: ReadAheadSettings = field(default_factory=ReadAheadSettings)
    statahead: StataheadSettings = field(default_factory=StataheadSettings)


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers of the file system, which all clients share."""

    namespace: Namespace
    placement: Placement
    mdts: Sequence[Mdt]
    osts: Sequence[Ost]
    epoch_ns: int
    """Nanoseconds of the epoch at virtual time zero."""
    osts_for_mirrors: Sequence[Ost]
    """The OSTs that decide which mirror is written; none before 2.15. The MDS prefers non-rotational ones."""


class PageCache:
    """The page cache of one mount: cached bytes per file, least recently used first.

    >>> cache = PageCache(8192)
    >>> cache.keep(Fid(1, 1), 4096); cache.keep(Fid(1, 2), 8192)
    >>> cache.has(Fid(1, 1), 4096), cache.has(Fid(1, 2), 8192), cache.used_bytes
    (False, True, 8192)
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used_bytes = 0
        self._files: OrderedDict[Fid, int] = OrderedDict()

    def keep(self, fid: Fid, size_bytes: int) -> None:
        before = self._files.pop(fid, 0)
        self._files[fid] = max(before, size_bytes)
        self.used_bytes += self._files[fid] - before
        while self.used_bytes > self.max_bytes:
            _, dropped = self._files.popitem(last=False)
            self.used_bytes -= dropped

    def drop(self, fid: Fid) -> None:
        """Drop a file that was deleted or changed by another client."""
        self.used_bytes -= self._files.pop(fid, 0)

    def has(self, fid: Fid, size_bytes: int) -> bool:
        return self._files.get(fid, 0) >= size_bytes > 0


class Mount:
    """One mount: its counters, its caches, and a connection to every target."""

    def __init__(self, engine: Engine, index: int, settings: ClientSettings, servers: Servers, rng: Random) -> None:
        self.index = index
        self.engine = engine
        self.settings = settings
        self.servers = servers
        self.rng = rng
        self.stats = Stats(counters.LLITE_STATS, engine.now)
        self.read_ahead = ReadAhead(engine, settings.read_ahead)
        self.cache = PageCache(settings.cache_bytes)
        self.statahead = dict.fromkeys(counters.STATAHEAD_COUNTERS, 0)
        suffix = settings.instance
        adapter = NetworkAdapter(engine, settings.network_bytes_per_second)
        away = settings.network_seconds
        self.oscs = tuple(
            Osc(engine, f"{ost.name}-osc-{suffix}", ost, settings.osc, adapter,
                network_seconds=away) for ost in servers.osts
        )
        self.mdcs = tuple(Mdc(engine, f"{mdt.name}-mdc-{suffix}", mdt, away) for mdt in servers.mdts)

    @property
    def time(self) -> float:
        return self.servers.epoch_ns / 1e9 + self.engine.now

    def since(self, began: float) -> int:
        return microseconds(self.engine.now - began)

    def jitter(self, seconds: float) -> float:
        return seconds * self.rng.lognormvariate(0.0, 0.5)

    def record(self, kind: RecordType, inode: Inode, actor: Actor, flags: int = 0, *, parent: Inode | None = None,
               name: str = "", open_mode: int | None = None) -> None:
        self.servers.mdts[inode.mdt_index].changelog.add(
            kind, self.time, inode.fid, actor, flags=flags, parent=parent.fid if parent else None, name=name,
            open_mode=open_mode)
