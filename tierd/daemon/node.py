"""What the daemon works with: the node that it runs on, the file system mounted there, and its own parts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from lustre.creation import ObjectCreation
from lustre.filesystem import Filesystem
from tierd.act.claim import FilesystemClaim
from tierd.act.gate import Gate
from tierd.act.journal.writer import Journal
from tierd.act.movers.moves import Mover
from tierd.act.undo import Undo
from tierd.act.user_rights import User, Users
from tierd.clock import Clock
from tierd.config.settings import Settings
from tierd.daemon.users import name_of
from tierd.model import DirectoryActivity, SiteFacts, Window
from tierd.refusal import Refusal
from tierd.sense.changelogs.follow import ClearChangelog
from tierd.sense.facts import JobNodes
from tierd.sense.nodes import ClientPoller, DiskPoller
from tierd.sense.prometheus_history import LearnedHistory
from tierd.sense.sources import LiveSource, ReadCounters
from tierd.sense.space import PoolMedia


@dataclass(frozen=True, kw_only=True)
class Node:
    """The node of this process. What has a default is left out by tests and demonstrations."""

    filesystem: Filesystem
    mover: Mover
    read: ReadCounters
    mdts: Sequence[str]
    """MDTs whose changelogs are read."""
    clock: Clock
    works_on: Callable[[Collection[str]], bool] = lambda _: False
    """Whether a process that a killed tierd had started still moves one of these files, by FID."""
    nudge: Callable[[], None] = lambda: None
    """Begins a cycle at once."""
    clear_changelog: ClearChangelog | None = None
    claim: FilesystemClaim = field(default_factory=FilesystemClaim)
    clients: ClientPoller | None = None
    disks: DiskPoller | None = None
    own_nids: Callable[[], Collection[str]] = tuple
    site_facts: Callable[[], SiteFacts] = SiteFacts
    unnamed: Callable[[], str] = str
    """Why jobs have no names; "" if they have."""
    executor: Executor | None = None
    """Runs several file system requests at the same time. The service shuts it down."""
    user_name: Callable[[int], str] = name_of
    """The account name of a user id, or "" for an unknown id. It may hang."""
    creation: ObjectCreation = field(default_factory=ObjectCreation)
    """The limits of new objects on OSTs, where this node serves MDTs."""
    subdirectory: str = ""  # what is mounted of the file system; empty for all of it
    rights_of: Callable[[int, int], User | Refusal] = field(default_factory=Users)
    """The user of a job with all groups."""


AskHistory = Callable[[Window, float], LearnedHistory]
"""Returns the history of the jobs of a window before a time. Raises OSError."""
Enrich = Callable[[list[DirectoryActivity], Filesystem], list[DirectoryActivity]]
"""Adds what other sources know about the directories and files of activities."""


@dataclass(frozen=True, kw_only=True)
class DaemonParts:
    """What the daemon works with. Hints of integrations have defaults, for a site without any."""

    node: Node
    settings: Settings
    source: LiveSource
    gate: Gate
    undo: Undo
    journal: Journal
    media: PoolMedia
    history: AskHistory | None = None
    enriched: Enrich = lambda activities, _: activities
    job_nodes: JobNodes = lambda _: {}
