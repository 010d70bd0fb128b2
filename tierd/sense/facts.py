"""All facts of one look: clients, room of targets, recent directories and their layouts, shared files, files on flash.

Each part may fail by itself; then it is empty, the detectors that need it find nothing, and ``faults`` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Protocol

from lustre.filesystem import Filesystem
from lustre.layout.model import Layout
from tierd.facts import ClientLoad, Facts, SharedFile, TargetFill
from tierd.model import DirectoryActivity
from tierd.sense import space
from tierd.sense.changelogs import ActivityTable
from tierd.sense.growth import Growth
from tierd.sense.inventory import Inventory
from tierd.sense.recent import RecentDirectories

MOST_LAYOUTS = 20
"""Directories whose default layout is asked for, the busiest; each is a request to an MDT."""
LEAST_OPENERS = 4
WALK_FROM = 0.6
"""Share of flash in use from which it is worth knowing which files lie there."""

class Clients(Protocol):
    """Whoever looks at clients."""

    @property
    def faults(self) -> Mapping[str, str]:
        """Nodes that could not be looked at when it was their turn, and why."""

    def __call__(self, pools: Mapping[str, str], /) -> Sequence[ClientLoad]:
        """What is known of all. ``pools`` says which pool a target (full name) is in."""


class NoClients:
    """Where none is looked at."""

    faults: Mapping[str, str] = MappingProxyType({})

    def __call__(self, _: Mapping[str, str]) -> Sequence[ClientLoad]:
        """Nothing."""
        return ()


class Gatherer:
    """What it takes to know the facts."""

    def __init__(self, filesystem: Filesystem, table: ActivityTable, inventory: Inventory, flash_pools: Collection[str],
                 metadata_targets: int = 0, clients: Clients | None = None) -> None:
        self._filesystem = filesystem
        self._table = table
        self._inventory = inventory
        self._flash_pools = flash_pools
        self._metadata_targets = metadata_targets
        self._clients: Clients = clients or NoClients()
        self._recent = RecentDirectories()
        self._growth = Growth()
        self.faults: dict[str, str] = {}
        """What could not be had at the last look."""

    def facts(self, now: float) -> Facts:
        """Look at everything."""
        self.faults = {}
        directories, seconds = self._recent.since_then(self._table.summaries(0.0), now)
        facts = Facts(directories=directories, directory_seconds=seconds, metadata_targets=self._metadata_targets)
        with self._or_unknown("room"):
            space = self._filesystem.space()
            fill = {target: TargetFill(s.size_bytes, s.avail_bytes) for target, s in space.items()}
            facts = replace(facts, pools=self._filesystem.pools(), fill=self._growth.measured(fill, now))
        with self._or_unknown("clients"):
            every = self._clients({t: facts.pool_of(t) for t in facts.fill})
            if self._clients.faults:
                self.faults["clients"] = f"clients: {'; '.join(list(self._clients.faults.values())[:3])}"
            facts = replace(facts, clients=tuple(c for c in every if c.fsname == self._filesystem.fsname))
        self._walk(facts)
        return replace(facts, default_layouts=self._layouts(directories), shared_files=tuple(self._shared()),
                       stored=self._inventory.files)

    @contextmanager
    def _or_unknown(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.faults[what] = f"{what}: {error}"

    def _walk(self, facts: Facts) -> None:
        if max((self._used(pool, facts) for pool in self._flash_pools), default=0.0) >= WALK_FROM:
            self._inventory.step()
        else:
            self._inventory.forget()

    @staticmethod
    def _used(pool: str, facts: Facts) -> float:
        members = [facts.fill[t] for t in facts.pools.get(pool, ()) if t in facts.fill]
        size = sum(f.size_bytes for f in members)
        return 1 - sum(f.avail_bytes for f in members) / size if size else 0.0

    def _layouts(self, directories: Sequence[DirectoryActivity]) -> dict[str, Layout | None]:
        busiest = sorted((d for d in directories if d.directory.startswith("/") and d.creates + d.outgrown),
                         key=lambda d: (-d.outgrown, -d.creates, d.directory))
        places = list(dict.fromkeys(d.directory for d in busiest))[:MOST_LAYOUTS]
        return space.default_layouts(self._filesystem, places)

    def _shared(self) -> Iterator[SharedFile]:
        for file in self._table.shared_files(LEAST_OPENERS)[:MOST_LAYOUTS]:
            try:
                yield replace(file, layout=self._filesystem.layout(file.path),
                              size_bytes=self._filesystem.status(file.path).size_bytes)
            except OSError:
                yield file  # told without its stripes


class LatestFacts:
    """The facts as they were gathered last; gathered when they are asked for, until somebody gathers them beforehand.

    Gathering asks the file system for dozens of things. Where it goes on in a thread of its own, whoever needs facts
    takes those of some seconds ago, and waits for nothing.
    """

    def __init__(self, gather: Callable[[float], Facts]) -> None:
        self._gather = gather
        self._latest: Facts | None = None

    def leave_to_others(self) -> None:
        """From now on somebody gathers them beforehand; until that has come about there are none."""
        self._latest = self._latest or Facts()

    def gather(self, now: float) -> None:
        """Look at everything, and keep it for who asks."""
        self._latest = self._gather(now)

    def __call__(self, now: float) -> Facts:
        """What was gathered last."""
        return self._gather(now) if self._latest is None else self._latest
