"""What can be set: the configuration of tierd as frozen dataclasses, their limits in the annotations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AfterValidator, InstanceOf, Strict

from tierd.act import breaker, budget, claim
from tierd.act.movers import engines
from tierd.act.windows import checked
from tierd.config import plugins
from tierd.config.checked import (
    exporter_url,
    mdt_name,
    prometheus_url,
    reader_name,
    retention_days,
    socket_path,
    whole_path,
    whole_path_or_none,
)
from tierd.config.permission import Control
from tierd.config.scopes import Mode, Pools, Scope, deepest, each_path_once
from tierd.decide import benefit, cold_to_disk, hot_files_to_flash, small_files_to_flash
from tierd.detect import noisy_neighbour
from tierd.detect.plugin import Configured
from tierd.sense import prometheus, robinhood
from tierd.sense.access import Access
from tierd.verify import settings as verify

WholePath = Annotated[str, AfterValidator(whole_path)]
Url = Annotated[str, AfterValidator(exporter_url)]
Prometheus = Annotated[prometheus.Settings, AfterValidator(prometheus_url)]
MdtName = Annotated[str, AfterValidator(mdt_name)]


@dataclass(frozen=True)
class Place:
    """The file system."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    mount: WholePath = "/mnt/lustre"
    """Where it is mounted on this node; with all targets' rights: tierd sets layouts and moves other users' files."""


@dataclass(frozen=True)
class Sense:
    """Where tierd listens."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    exporters: tuple[Url, ...] = ()
    """URLs of lustre-exporter on every OSS and MDS. Without any, and without the two below and Prometheus: the
    parameter files of this node, if it is the server."""
    exporter_files: tuple[str, ...] = ()
    """Files that name exporters as Prometheus' ``file_sd_configs`` do, JSON or YAML: ``/etc/tierd/targets/*.json``."""
    exporter_dns: tuple[str, ...] = ()
    """Names of exporters: ``_lustre-exporter._tcp.example.org`` (SRV), ``oss.example.org:9169`` (A and AAAA)."""
    dns_refresh_seconds: Annotated[float, Gt(0)] = 30.0
    exporter_access: Access = field(default_factory=Access)
    prometheus: Prometheus = field(default_factory=prometheus.Settings)
    stale_seconds: Annotated[float, Gt(0)] = 90.0
    """Counters and records may be so old; what is older is not acted on."""
    skew_seconds: Annotated[float, Gt(0)] = 30.0
    """So far may the clock of a source be from ours; beyond it nothing it says is acted on."""
    watch: dict[str, str] = field(default_factory=dict)
    """Single-client mode: directories (from the root of the file system) watched with inotify in place of changelogs,
    and the jobs that work there (``mdt_small.*``; empty: those whose id ends with the owner's number)."""
    robinhood: robinhood.Settings = field(default_factory=robinhood.Settings)
    access_logs: str = ""
    """OST access logs of this node: ``/dev/lustre-access-log/*``. Empty: not read."""
    mdts: tuple[MdtName, ...] = ()
    """MDTs whose changelogs are read, as ``MDT0000``. Empty: all this client knows."""
    readers: dict[MdtName, Annotated[str, AfterValidator(reader_name)]] = field(default_factory=dict)
    """MDT to the reader registered there (``cl1``), for which what was dealt with is cleared. Without: nothing is."""
    clients: tuple[Url, ...] = ()
    """URLs of lustre-exporter on clients; a sample of each kind of node is enough. This node is looked at anyway."""
    clients_at_once: Annotated[int, Ge(1)] = 5
    """Of those, looked at each half minute."""
    cycle_seconds: Annotated[float, Gt(0)] = 5.0
    timeout_seconds: Annotated[float, Gt(0)] = 4.0


@dataclass(frozen=True)
class Act:
    """How far tierd may go."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    dry_run: Annotated[bool, Strict()] = True
    """Walk the whole way, change nothing."""
    mode: Mode = "full"
    """``observe`` tells findings; ``recommend`` tells what it would do as well; ``new-files-only`` sets default layouts
    and moves no file; ``full`` does both. Scopes may have modes of their own."""
    pause_file: Annotated[str, AfterValidator(whole_path_or_none)] = "/var/lib/tierd/pause"
    """While this file exists nothing is changed, and nothing taken back; its first line is told. "" for none."""
    windows: tuple[Annotated[str, AfterValidator(checked)], ...] = ()
    """Hours in which changes may be made, in local time: ``Mon-Fri 20:00-06:00``. Empty: at any time."""
    on: tuple[Literal["noisy-neighbour", "outgrown-component", "hot-small-files", "cold-on-flash"], ...] = (
        "noisy-neighbour", "outgrown-component", "cold-on-flash")
    """Kinds of findings that are acted on; the others are told only."""
    default_layouts_per_second: Annotated[float, Gt(0)] = 20.0
    """Default layouts of directories set, at the most; each takes half a dozen requests to an MDT."""
    default_layouts_at_once: Annotated[int, Ge(1), Le(64)] = 8
    """Requests to MDTs under way at the same time while default layouts are set and paths are looked up."""
    journal: WholePath = "/var/lib/tierd/journal.sqlite"
    socket: Annotated[str, AfterValidator(socket_path)] = "/run/tierd/tierd.sock"
    """Where tierctl talks to the daemon."""


@dataclass(frozen=True)
class JournalRetention:
    """How long the journal keeps what it records."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    keep_days: Annotated[float, AfterValidator(retention_days)] = 365.0
    """Acts and findings are removed so long after their end; their sums stay, and so do default layouts in force.
    0: nothing is removed. Else at least 30."""

    @property
    def keep_seconds(self) -> float:
        """0 keeps records for ever."""
        return self.keep_days * 86400.0


@dataclass(frozen=True)
class Web:
    """What tierd serves over HTTP: metrics, health, a page, and a hook for Alertmanager."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    address: str = "127.0.0.1"
    port: Annotated[int, Ge(0), Lt(65536)] = 9170
    """0 lets the system choose one, which is logged."""
    enabled: bool = True


@dataclass(frozen=True)
class Settings:
    """The whole configuration. Every part has defaults that fit a file system with pools ``flash`` and ``hdd``."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    filesystem: Place = field(default_factory=Place)
    sense: Sense = field(default_factory=Sense)
    act: Act = field(default_factory=Act)
    scopes: Annotated[tuple[Scope, ...], AfterValidator(each_path_once)] = ()
    journal: JournalRetention = field(default_factory=JournalRetention)
    claim: claim.Settings = field(default_factory=claim.Settings)
    control: Control = field(default_factory=Control)
    web: Web = field(default_factory=Web)
    movers: engines.Settings = field(default_factory=engines.Settings)
    noisy_neighbour: noisy_neighbour.Settings = field(default_factory=noisy_neighbour.Settings)
    small_files_to_flash: Pools = field(default_factory=small_files_to_flash.Settings)
    hot_files_to_flash: hot_files_to_flash.Settings = field(default_factory=hot_files_to_flash.Settings)
    cold_to_disk: cold_to_disk.Settings = field(default_factory=cold_to_disk.Settings)
    detect: InstanceOf[tuple[Configured, ...]] = field(default_factory=plugins.defaults)
    """Further detectors: in the file a table for each, ``[detect.hot_small_files]``."""
    benefit: benefit.Settings = field(default_factory=benefit.Settings)
    verify: verify.Settings = field(default_factory=verify.Settings)
    limits: budget.Limits = field(default_factory=budget.Limits)
    breaker: breaker.Settings = field(default_factory=breaker.Settings)
    own_jobs: tuple[str, ...] = ("lfs.0", "tierd.0")
    """Job ids of our own moves: what they do is not activity."""
    history_seconds: Annotated[float, Gt(0)] = 1800.0
    """How far back a stream's usual throughput is looked for."""

    def scope_of(self, path: str) -> Scope:
        """What holds for a path: the deepest scope with it, or the whole file system."""
        whole = Scope("/", self.act.mode, self.small_files_to_flash)
        return deepest(self.scopes, path, whole)

    @property
    def flash_pools(self) -> frozenset[str]:
        """All pools that are flash somewhere."""
        return frozenset({self.small_files_to_flash.flash_pool,
                          *(scope.small_files_to_flash.flash_pool for scope in self.scopes)})

    @property
    def pool_pairs(self) -> tuple[tuple[str, str], ...]:
        """Flash pools, each with the disks beside it: that of the whole file system first, then those of scopes."""
        every = (self.small_files_to_flash, *(scope.small_files_to_flash for scope in self.scopes))
        disks: dict[str, str] = {}
        for pools in every:
            disks.setdefault(pools.flash_pool, pools.hdd_pool)
        return tuple(disks.items())

    @property
    def modes(self) -> frozenset[str]:
        """All modes that hold somewhere."""
        return frozenset({self.act.mode, *(scope.mode for scope in self.scopes)})
