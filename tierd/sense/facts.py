"""Collects facts for detectors: clients, free space, directories and their layouts, shared files, files on flash.

If a part fails, it is empty, detectors that need it find nothing, and ``faults`` has the reason. The fill rate of a
target is the change of its free space in some minutes. Recent activity of a directory is the difference of its counts,
which only grow.
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Protocol

from lustre.filesystem import Filesystem
from lustre.layout.model import Layout
from tierd.model import (
    ClientLoad,
    DirectoryActivity,
    DirectoryPlacement,
    DiskWrites,
    Facts,
    MetadataFill,
    SharedFile,
    StoredFile,
    TargetFill,
)
from tierd.sense import space
from tierd.sense.changelogs.table import ActivityTable
from tierd.sense.inventory import Inventory
from tierd.sense.media import PoolMedia
from tierd.sense.metadata import MetadataMeter
from tierd.sense.object_scan import UnevenPools
from tierd.sense.shared_runs import LearntRuns, Store


class FillRates:
    """Measures the rate at which targets fill."""

    def __init__(self, span_seconds: float = 900.0) -> None:
        self._span_seconds = span_seconds
        self._past: deque[tuple[float, Mapping[str, TargetFill]]] = deque()

    def measured(self, fill: Mapping[str, TargetFill], now: float) -> dict[str, TargetFill]:
        """The targets with their growth (bytes per second) since the oldest kept reading; 0 at the first."""
        self._past.append((now, fill))
        while len(self._past) > 1 and self._past[0][0] < now - self._span_seconds:
            self._past.popleft()
        then, before = self._past[0]
        if now <= then:
            return dict(fill)
        return {target: replace(room, growth_bytes_per_second=(before[target].avail_bytes - room.avail_bytes)
                                / (now - then) if target in before else 0.0)
                for target, room in fill.items()}


Key = tuple[str, str]
Counts = tuple[int, int, int, int, int, int]
"""Creates, opens, closes, unlinks, outgrown, opens for writing."""
WIDTH = 6
MIN_PLACES = 1000
"""Indexes of removed counts are freed if there are more than twice as many indexes as counts, plus this number."""


class RecentDirectories:
    """Recent activity of directories: the difference between their counts and a snapshot of some minutes ago.

    A snapshot is one array of numbers, in which each job and directory has a fixed index. Ten snapshots of ten thousand
    take as much memory as a single snapshot made of mappings.
    """

    def __init__(self, span_seconds: float = 600.0, step_seconds: float = 60.0) -> None:
        self._span_seconds = span_seconds
        self._step_seconds = step_seconds
        self._places: dict[Key, int] = {}
        self._snapshots: deque[tuple[float, array[int]]] = deque()
        self._begun: dict[Key, tuple[float, Counts]] = {}
        """Counts that begin later than the oldest snapshot, with their time."""

    def begin_again(self, activities: Iterable[DirectoryActivity], now: float) -> None:
        """Count these activities from now on."""
        self._begun |= {(activity.job, activity.directory): (now, _counts(activity)) for activity in activities}

    def since_oldest_snapshot(self, activities: Sequence[DirectoryActivity], now: float,
                   ) -> tuple[tuple[DirectoryActivity, ...], float]:
        """Activity since the oldest snapshot, and the time since in seconds. The first call returns no activity."""
        if len(self._snapshots) > 1 and self._snapshots[-1][0] - self._snapshots[-2][0] < self._step_seconds:
            self._snapshots.pop()
        self._snapshots.append((now, self._snapshot(activities)))
        while len(self._snapshots) > 2 and self._snapshots[0][0] < now - self._span_seconds:
            self._snapshots.popleft()
        self._begun = {key: since for key, since in self._begun.items() if since[0] > self._snapshots[0][0]}
        return self._since(self._snapshots[0], activities, now)

    def since_last_call(self, activities: Sequence[DirectoryActivity], now: float,
                        ) -> tuple[tuple[DirectoryActivity, ...], float]:
        """Activity since the last call of the other method, and the time since in seconds."""
        return self._since(self._snapshots[-1], activities, now) if self._snapshots else ((), 0.0)

    def _since(self, snapshot: tuple[float, array[int]], activities: Sequence[DirectoryActivity], now: float,
               ) -> tuple[tuple[DirectoryActivity, ...], float]:
        begun, before = snapshot
        found = []
        for activity in activities:
            again = self._begun.get((activity.job, activity.directory))
            done = _difference(again[1] if again else self._counts(before, activity), _counts(activity))
            if any(done):
                creates, opens, closes, unlinks, outgrown, write_opens = done
                found.append(DirectoryActivity(activity.job, activity.directory, creates, opens, closes,
                                               unlinks=unlinks,
                                               outgrown=outgrown, write_opens=write_opens, clients=activity.clients))
        return tuple(found), now - begun

    def _snapshot(self, activities: Sequence[DirectoryActivity]) -> array[int]:
        places = self._places
        if len(places) > 2 * len(activities) + MIN_PLACES:
            self._forget_all_but(activities)
            places = self._places
        for activity in activities:
            places.setdefault((activity.job, activity.directory), len(places))
        taken = array("Q", bytes(8 * WIDTH * len(places)))
        for activity in activities:
            at = WIDTH * places[activity.job, activity.directory]
            taken[at:at + WIDTH] = array("Q", _counts(activity))
        return taken

    def _forget_all_but(self, activities: Sequence[DirectoryActivity]) -> None:
        """Assign new indexes to the present jobs and directories, and free all others."""
        there = [(activity.job, activity.directory) for activity in activities]
        kept = [key for key in dict.fromkeys(there) if key in self._places]
        self._snapshots = deque(
            (time, array("Q", [n for key in kept for n in _at(snapshot, self._places[key])]))
            for time, snapshot in self._snapshots)
        self._places = {key: place for place, key in enumerate(kept)}

    def _counts(self, snapshot: array[int], activity: DirectoryActivity) -> Sequence[int]:
        place = self._places.get((activity.job, activity.directory))
        return NONE if place is None else _at(snapshot, place)


NONE = array("Q", bytes(8 * WIDTH))


def _at(snapshot: array[int], place: int) -> array[int]:
    """Counts of a job in a directory by index; zeros if the snapshot is older than these counts."""
    return snapshot[WIDTH * place:WIDTH * place + WIDTH] or NONE


def _counts(activity: DirectoryActivity) -> Counts:
    return (activity.creates, activity.opens, activity.closes, activity.unlinks, activity.outgrown,
            activity.write_opens)


def _difference(before: Sequence[int], now: Sequence[int]) -> tuple[int, ...]:
    """Increases of the counts. Counts that were dropped from the table and added again began at zero."""
    if any(n < b for b, n in zip(before, now, strict=True)):
        return tuple(now)
    return tuple(n - b for b, n in zip(before, now, strict=True))


MAX_LAYOUTS = 20
"""Number of directories, the busiest first, whose default layout is read. Each takes a request to an MDT."""
MIN_OPENERS = 4
MAX_PLACEMENTS = 5
BUSY_PER_SECOND = 100.0
"""Operations per second in a directory from which its stripes over MDTs are read."""
WALK_ABOVE_USED = 0.6
"""Used share of a flash pool from which tierd looks for cold files there."""
WALK_ABOVE_DIFFERENCE = 0.1
"""Difference in used shares within a pool from which tierd looks for files on its fuller targets."""


class ClientSource(Protocol):
    """Reads counters of clients."""

    @property
    def faults(self) -> Mapping[str, str]:
        """Error of each node whose last reading failed."""

    def __call__(self, pools: Mapping[str, str], /) -> Sequence[ClientLoad]:
        """Loads of all clients. ``pools`` gives the pool of a target (full name)."""


class NoClients:
    """For sites without client counters."""

    faults: Mapping[str, str] = MappingProxyType({})

    def __call__(self, _: Mapping[str, str]) -> Sequence[ClientLoad]:
        """No loads."""
        return ()


class DiskSource(Protocol):
    """Reads disk I/O of object targets."""

    @property
    def faults(self) -> Mapping[str, str]:
        """Error of each node whose last reading failed."""

    @property
    def max_rpc_bytes(self) -> Mapping[str, int]:
        """The largest RPC that each target accepts, as far as known."""

    @property
    def drivers(self) -> Mapping[str, Mapping[str, int]]:
        """Parameters of the Omni-Path driver of servers that have such an adapter, by name of the server."""

    def __call__(self) -> Mapping[str, tuple[DiskWrites, ...]]:
        """The last readings of each target, by full name."""


JobNodes = Callable[[Collection[str]], Mapping[str, int]]
"""Number of nodes of each of some jobs, by job id; jobs for which it is unknown are absent. It does not wait."""


def no_job_nodes(_: Collection[str]) -> Mapping[str, int]:
    """No numbers of nodes. Used without a scheduler."""
    return {}


class FactsCollector:
    """Collects all facts."""

    def __init__(self, filesystem: Filesystem, table: ActivityTable, inventory: Inventory, flash_pools: Collection[str],
                 metadata_targets: int = 0, clients: ClientSource | None = None,
                 media: PoolMedia | None = None, uneven: UnevenPools | None = None,
                 metadata: MetadataMeter | None = None, disks: DiskSource | None = None,
                 busy_per_second: float = BUSY_PER_SECOND, job_nodes: JobNodes = no_job_nodes,
                 closed: Callable[[], Mapping[str, str]] = dict, stored_runs: str = "",
                 store_runs: Store = str) -> None:
        """``media`` learns which targets are in which pool. ``uneven`` looks for files on the fuller ones of uneven
        pools; None if tierd does not move such files. ``busy_per_second`` are the operations in a directory from
        which its stripes over MDTs are read. ``job_nodes`` gives the number of nodes of jobs, as far as a scheduler
        knows it. ``closed`` returns the targets that take no files of moves, with the reasons. ``stored_runs`` is what
        ``store_runs`` kept of runs on shared files before a restart.
        """
        self._closed = closed
        self._uneven = uneven
        self._busy_per_second = busy_per_second
        self._job_nodes = job_nodes
        self._metadata = metadata or MetadataMeter()
        self._disks = disks
        self._media = media or PoolMedia(())
        self._filesystem = filesystem
        self._table = table
        self._inventory = inventory
        self._flash_pools = flash_pools
        self._metadata_targets = metadata_targets
        self._clients: ClientSource = clients or NoClients()
        self._recent = RecentDirectories()
        self._growth = FillRates()
        self._runs = LearntRuns(filesystem, stored_runs, store_runs)
        self._default_layouts: dict[str, Layout | None] = {}
        """Default layouts of busy directories as read last."""
        self._layouts_since: dict[str, float] = {}
        """When the default layout of a busy directory was found changed."""
        self.faults: dict[str, str] = {}
        """Error of each part that the last collection could not read."""

    def facts(self, now: float) -> Facts:
        """Collect all facts now."""
        self.faults = {}
        activities = self._table.summaries(0.0)
        latest, latest_seconds = self._recent.since_last_call(activities, now)
        directories, seconds = self._recent.since_oldest_snapshot(activities, now)
        layouts = self._layouts(directories)
        if changed := self._changed(layouts, activities, now):
            self._recent.begin_again((each for each in activities if each.directory in changed), now)
            directories, seconds = self._recent.since_oldest_snapshot(activities, now)
        facts = Facts(directories=directories, directory_seconds=seconds, latest_directories=latest,
                      latest_seconds=latest_seconds, metadata_targets=self._metadata_targets)
        with self._or_unknown("room"):
            space = self._filesystem.space()
            fill = {target: TargetFill(s.size_bytes, s.avail_bytes) for target, s in space.items()}
            facts = replace(facts, pools=self._filesystem.pools(), fill=self._growth.measured(fill, now))
            self._media.learn_pools(facts.pools)
            facts = replace(facts, closed=self._closed())
        facts = replace(facts, metadata_loads=self._metadata.loads, metadata_services=self._metadata.services)
        with self._or_unknown("metadata room"):
            facts = replace(facts, metadata={mdt: MetadataFill(room.used, room.inodes_free)
                                             for mdt, room in self._filesystem.metadata_space().items()})
        with self._or_unknown("clients"):
            every = self._clients({t: facts.pool_of(t) for t in facts.fill})
            if self._clients.faults:
                self.faults["clients"] = f"clients: {'; '.join(list(self._clients.faults.values())[:3])}"
            facts = replace(facts, clients=tuple(c for c in every if c.fsname == self._filesystem.fsname))
        if self._disks is not None:
            facts = replace(facts, disk_writes=self._disks(), max_rpc_bytes=self._disks.max_rpc_bytes,
                            server_drivers=dict(self._disks.drivers))
            if self._disks.faults:
                self.faults["disks"] = f"disk I/O: {'; '.join(list(self._disks.faults.values())[:3])}"
        self._walk(facts)
        if self._uneven is not None:
            facts = replace(facts, resident=self._resident(self._uneven, facts, now))
        busy = self._busy(latest, latest_seconds)
        return replace(facts, default_layouts=layouts,
                       placements=self._placements(busy),
                       job_nodes=self._nodes_by_scheduler(directories, busy), shared_files=tuple(self._shared()),
                       shared_runs=self._runs.learn(self._table.shared_runs()),
                       stored=self._inventory.files)

    @contextmanager
    def _or_unknown(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.faults[what] = f"{what}: {error}"

    def _walk(self, facts: Facts) -> None:
        if max((self._used(pool, facts) for pool in self._flash_pools), default=0.0) >= WALK_ABOVE_USED:
            self._inventory.step()
        else:
            self._inventory.forget()

    @staticmethod
    def _resident(uneven: UnevenPools, facts: Facts, now: float) -> tuple[StoredFile, ...]:
        """Files on targets that are fuller than their pool, while a pool is uneven."""
        fuller: set[int] = set()
        for members in facts.pools.values():
            used = {target: facts.fill[target].used for target in members if target in facts.fill}
            open_used = [share for target, share in used.items() if target not in facts.closed]
            if len(used) > 1 and open_used and max(used.values()) - min(open_used) >= WALK_ABOVE_DIFFERENCE:
                mean = sum(open_used) / len(open_used)
                fuller |= {int(target[-4:], 16) for target, share in used.items() if share > mean}
        if not fuller:
            uneven.forget()
            return ()
        uneven.step(fuller, now)
        return uneven.files

    @staticmethod
    def _used(pool: str, facts: Facts) -> float:
        members = [facts.fill[t] for t in facts.pools.get(pool, ()) if t in facts.fill]
        size = sum(f.size_bytes for f in members)
        return 1 - sum(f.avail_bytes for f in members) / size if size else 0.0

    def _layouts(self, directories: Sequence[DirectoryActivity]) -> dict[str, Layout | None]:
        busiest = sorted((d for d in directories if d.directory.startswith("/") and d.creates + d.outgrown),
                         key=lambda d: (-d.outgrown, -d.creates, d.directory))
        places = list(dict.fromkeys(d.directory for d in busiest))[:MAX_LAYOUTS]
        return space.default_layouts(self._filesystem, places)

    def _changed(self, layouts: Mapping[str, Layout | None], activities: Sequence[DirectoryActivity],
                 now: float) -> set[str]:
        """Directories whose default layout is another one than before, set by tierd or by anyone."""
        before, known = self._default_layouts, {each.directory for each in activities}
        changed = {place for place, layout in layouts.items() if place in before and before[place] != layout}
        self._default_layouts = {place: layout for place, layout in {**before, **layouts}.items() if place in known}
        self._layouts_since = {place: since for place, since in {
            **self._layouts_since, **dict.fromkeys(changed, now)}.items() if place in known}
        self._table.begin_layouts(self._layouts_since)
        return changed

    def _busy(self, directories: Sequence[DirectoryActivity], seconds: float) -> list[str]:
        """Directories in which very many operations happen, the busiest first."""
        done: Counter[str] = Counter()
        for each in directories:
            done[each.directory] += each.creates + each.opens + each.unlinks
        return [place for place, count in done.most_common(MAX_PLACEMENTS)
                if place.startswith("/") and seconds > 0 and count / seconds >= self._busy_per_second]

    def _nodes_by_scheduler(self, directories: Sequence[DirectoryActivity], busy: Collection[str]) -> Mapping[str, int]:
        """Nodes of jobs in busy directories, where the changelog names no clients."""
        unnamed = {each.job for each in directories if each.directory in busy and not each.clients}
        return self._job_nodes(unnamed) if unnamed else {}

    def _placements(self, busy: Sequence[str]) -> dict[str, DirectoryPlacement]:
        """MDTs of busy directories and of their parents. Each takes some requests to an MDT."""
        parents = [parent for place in busy if (parent := place.rpartition("/")[0])]
        found = {}
        for place in dict.fromkeys([*busy, *parents]):
            try:
                found[place] = DirectoryPlacement(self._filesystem.directory_stripes(place),
                                                  self._filesystem.default_striping(place))
            except OSError:
                continue  # removed or unreadable: its stripes are unknown
        return found

    def _shared(self) -> Iterator[SharedFile]:
        for file in self._table.shared_files(MIN_OPENERS)[:MAX_LAYOUTS]:
            try:
                yield replace(file, layout=self._filesystem.layout(file.path),
                              size_bytes=self._filesystem.status(file.path).size_bytes)
            except OSError:
                yield file  # without its layout and size


class LatestFacts:
    """The facts of the last collection. Without collection in the background, each call collects them.

    A collection takes dozens of requests to the file system. With collection in the background, a call returns facts
    that are some seconds old, and does not wait.
    """

    def __init__(self, gather: Callable[[float], Facts]) -> None:
        self._gather = gather
        self._latest: Facts | None = None
        self.known = Facts()
        """The facts of the last collection; empty before it. Reading them never waits."""

    def gather_in_background(self) -> None:
        """Return collected facts from now on. They are empty until the first call of ``gather``."""
        self._latest = self._latest or Facts()

    def gather(self, now: float) -> None:
        """Collect all facts and store them."""
        self._latest = self.known = self._gather(now)

    def __call__(self, now: float) -> Facts:
        """The facts of the last collection."""
        if self._latest is not None:
            return self._latest
        self.known = self._gather(now)
        return self.known
