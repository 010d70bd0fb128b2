"""The configuration of tierd as frozen dataclasses, with their limits in the annotations.

Names of users and groups are looked up on this machine when the configuration is read.
"""

from __future__ import annotations

import grp
import os
import pwd
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import ip_address
from typing import Annotated, Literal

from annotated_types import Ge, Le, Lt
from pydantic import AfterValidator, BeforeValidator, InstanceOf, Strict

from tierd.config.act import (
    ActSettings,
    ClaimSettings,
    DrainSettings,
    GeneralLimits,
    MoverSettings,
    WholePath,
    WholePathOrNone,
    retention_days,
    text_like,
)
from tierd.config.scopes import Pools, ResolvedScopes, Scope, Scopes
from tierd.config.sense import SenseSettings
from tierd.decide import benefit, plans
from tierd.detect.view import SlowdownSettings
from tierd.integrations.registry import default_settings
from tierd.model import Table
from tierd.policies.protocol import ConfiguredPolicy, Tables
from tierd.policies.registry import default_policies, default_tables
from tierd.validators import Seconds
from tierd.verify import judgement as verify


def user_id(name: object) -> object:
    """Number of a user. Raises ValueError for one this machine does not know.

    >>> user_id("root")
    0
    """
    try:
        return pwd.getpwnam(name).pw_uid if isinstance(name, str) and not name.isdigit() else name
    except KeyError:
        raise ValueError(f"this machine has no user {name!r}") from None


def group_id(name: object) -> object:
    """Number of a group; None for no group. Raises ValueError for one this machine does not know.

    >>> group_id(""), group_id("root")
    (None, 0)
    """
    try:
        return name if not isinstance(name, str) or name.isdigit() else grp.getgrnam(name).gr_gid if name else None
    except KeyError:
        raise ValueError(f"this machine has no group {name!r}") from None


def listening_address(address: str) -> str:
    """An IP address or what has the form of a host name; "" for every address. Raises ValueError.

    >>> listening_address("::1"), listening_address("mgmt01")
    ('::1', 'mgmt01')
    """
    try:
        ip_address(address or "::")
    except ValueError:
        if not _HOST.fullmatch(address) or re.fullmatch(r"[\d.]+", address):
            raise ValueError("write an IP address or a host name; the port is [web] port") from None
    return address


_HOST = re.compile(r"(?!-)[A-Za-z0-9._-]{1,253}(?<!-)")
User = Annotated[int, BeforeValidator(user_id)]
Server = Annotated[str, text_like(r"(?:nats|tls)://[A-Za-z0-9.\-\[\]:]+", "give an address such as tls://broker1:4222")]
NodeName = Annotated[str, text_like(r"(?:[A-Za-z0-9][A-Za-z0-9_-]{0,62})?", "use letters, digits, - and _ only")]


@dataclass(frozen=True)
class ControlSettings(Table):
    """Who may use tierctl, besides root and the user that tierd runs as, who may request everything."""

    read_group: Annotated[int | None, BeforeValidator(group_id)] = None
    """Name or number of a group whose members may read: status, top, findings, history, explain, plan, advise…"""
    change_users: frozenset[User] = frozenset()
    """Names or numbers of users who may pause, drain, resume, undo, promote, demote and submit as well."""
    stage_users: frozenset[User] = frozenset()
    """Names or numbers of users whose scheduler stages files for its jobs: Slurm's ``SlurmUser``. tierd checks the
    rights of each job's user, and trusts the scheduler to name the right one."""

    def may(self, uid: int, groups: Collection[int], *, change: bool) -> bool:
        """Whether a user with these groups may read, or change something."""
        if uid in {0, os.geteuid()} | self.change_users:
            return True
        return not change and self.read_group is not None and self.read_group in groups

    @property
    def by_user(self) -> bool:
        """Whether users need not be in the group, so that all may connect."""
        return bool(self.change_users or self.stage_users)


@dataclass(frozen=True)
class FilesystemSettings(Table):
    """The file system that tierd works on."""

    mount: WholePath = "/mnt/lustre"
    """Where it is mounted on this node; with all targets' rights: tierd sets layouts and moves other users' files."""


@dataclass(frozen=True)
class JournalRetention(Table):
    """How long the journal keeps its records."""

    keep_days: Annotated[float, AfterValidator(retention_days)] = 365.0
    """Days after their end for which acts and findings are kept; at least 30. 0: for ever. Sums of removed acts and
    default layouts and mirrors in force stay."""

    @property
    def keep_seconds(self) -> float:
        """0 keeps records for ever."""
        return self.keep_days * 86400.0


@dataclass(frozen=True)
class WebSettings(Table):
    """What tierd serves over HTTP: metrics, health, a page, and a hook for Alertmanager."""

    address: Annotated[str, AfterValidator(listening_address)] = "127.0.0.1"
    port: Annotated[int, Ge(0), Lt(65536)] = 9170
    """0 lets the system choose one, which is logged."""
    enabled: Annotated[bool, Strict()] = True
    config_file: str = ""
    """TLS, client certificates and passwords, as for lustre-exporter; relative to the folder of this file."""
    change_users: tuple[str, ...] = ()
    """Users of ``basic_auth_users`` in that file whose page has buttons: pause, resume, undo, promote."""


@dataclass(frozen=True)
class ClusterSettings(Table):
    """Connection of leader, movers and readers to NATS. Without servers, tierd works alone, in one process."""

    servers: tuple[Server, ...] = ()
    """Addresses of the NATS servers: ``tls://broker1:4222``. Empty: no cluster."""
    name: NodeName = ""
    """Name of this process among movers and readers. "": name of the host."""
    nkey_seed_file: WholePathOrNone = ""
    """File with the NKey seed of the user of this role; readable for tierd's user alone."""
    ca_file: WholePathOrNone = ""
    """Certificates that sign the servers' certificates. "": those of the system, for ``tls://``."""
    cert_file: WholePathOrNone = ""
    """Certificate of this node, for servers that verify clients."""
    key_file: WholePathOrNone = ""
    """Key of ``cert_file``."""
    replicas: Literal[1, 3, 5] = 3
    """NATS servers that store each message. 1 suits a single server, for tests."""
    timeout_seconds: Annotated[Seconds, Le(60)] = 5.0
    """Time to wait for an answer of NATS. After it, the result of the request is unknown."""
    ack_wait_seconds: Annotated[Seconds, Ge(1)] = 20.0
    """Time without a sign of a mover after which NATS gives its message to another mover."""
    deadline_seconds: Annotated[Seconds, Ge(5)] = 60.0
    """Time after which no mover begins a file of a message, or exchanges its layout. The leader then checks it."""

    @property
    def enabled(self) -> bool:
        return bool(self.servers)


@dataclass(frozen=True)
class ReaderSettings(Table):
    """Readers of changelogs (``tierd reader``). ``[sense] mdts`` and ``readers`` name the MDTs and their users."""

    enabled: Annotated[bool, Strict()] = False
    """Whether the leader takes changelog records from readers instead of reading the changelogs itself."""
    window_seconds: Annotated[Seconds, Le(60)] = 5.0
    """Time between two tallies of an MDT."""
    lease_seconds: Annotated[float, Ge(5), Le(300)] = 10.0
    """A reader that has not renewed its lease of an MDT for this time loses it to another reader."""
    max_mdts: Annotated[int, Ge(0)] = 0
    """MDTs that one reader reads at most; 0 for no limit. With 40 MDTs and 6 readers: 8, so that one may fail."""


@dataclass(frozen=True)
class Settings(Table):
    """The whole configuration. Every part has defaults that fit a file system with pools ``flash`` and ``hdd``."""

    filesystem: FilesystemSettings = field(default_factory=FilesystemSettings)
    sense: SenseSettings = field(default_factory=SenseSettings)
    act: ActSettings = field(default_factory=ActSettings)
    scopes: Scopes = ()
    journal: JournalRetention = field(default_factory=JournalRetention)
    claim: ClaimSettings = field(default_factory=ClaimSettings)
    control: ControlSettings = field(default_factory=ControlSettings)
    web: WebSettings = field(default_factory=WebSettings)
    movers: MoverSettings = field(default_factory=MoverSettings)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    reader: ReaderSettings = field(default_factory=ReaderSettings)
    noisy_neighbour: SlowdownSettings = field(default_factory=SlowdownSettings)
    small_files_to_flash: Pools = field(default_factory=plans.FlashSettings)
    policies: InstanceOf[tuple[ConfiguredPolicy, ...]] = field(default_factory=default_policies)
    """Policies that find something by the view. Each has its own table, such as ``[detect.hot_small_files]``."""
    integrations: InstanceOf[Tables] = field(default_factory=lambda: Tables(default_settings()))
    """Settings of other programs that tierd asks, each under its own name in ``[sense]``."""
    tables: InstanceOf[Tables] = field(default_factory=default_tables)
    """Further tables of policies, such as ``[rebalance]``."""
    benefit: benefit.Settings = field(default_factory=benefit.Settings)
    verify: verify.Settings = field(default_factory=verify.Settings)
    drain: DrainSettings = field(default_factory=DrainSettings)
    limits: GeneralLimits = field(default_factory=GeneralLimits)
    own_jobs: tuple[str, ...] = ("lfs.0", "tierd.0")
    """Job ids of tierd's own moves, which do not count as activity."""
    history_seconds: Seconds = 1800.0
    """History from which the usual throughput of a stream is taken."""

    @cached_property
    def resolved_scopes(self) -> ResolvedScopes:
        """Mode, pools, limits and policy settings of each path."""
        return ResolvedScopes(Scope("/", self.act.mode, self.small_files_to_flash), self.scopes)
