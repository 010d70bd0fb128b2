"""Collects facts for policies: clients, free space, directories and their layouts, shared files, files on flash.

If a part fails, it is empty, policies that need it find nothing, and ``faults`` has the reason. The fill rate of a
target is the change of its free space in some minutes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from lustre.filesystem import Filesystem
from lustre.layout.model import Layout
from tierd.model import DirectoryActivity, DirectoryPlacement, Facts, SharedFile, SharedRuns, StoredFile, TargetFill
from tierd.sense import space
from tierd.sense.changelogs.counts import SharedRun
from tierd.sense.changelogs.table import ActivityTable
from tierd.sense.file_walks import Inventory, UnevenPools
from tierd.sense.metadata import MetadataMeter
from tierd.sense.nodes import ClientPoller, DiskPoller
from tierd.sense.space import PoolMedia


class FillRates:
    """Measures the rate at which targets fill."""

    def __init__(self, span_seconds: float = 900.0) -> None:
        self._span_seconds = span_seconds
        self._past: deque[tuple[float, Mapping[str, TargetFill]]] = deque()

    def measured(self, fill: Mapping[str, TargetFill], now: float) -> dict[str, TargetFill]:
        """The targets with their growth (bytes per second) since the oldest kept reading; 0 at the first."""
        while self._past and self._past[-1][0] >= now:  # the clock was set back
            self._past.pop()
        self._past.append((now, fill))
        while len(self._past) > 1 and self._past[0][0] < now - self._span_seconds:
            self._past.popleft()
        then, before = self._past[0]
        return {target: replace(room, growth_bytes_per_second=(before[target].avail_bytes - room.avail_bytes)
                                / (now - then) if target in before and now > then else 0.0)
                for target, room in fill.items()}


MAX_SHARED_RUNS = 20
"""Users and directories whose runs are remembered, those of the newest runs. Each takes two requests to an MDT each
half minute."""


class LearntRuns:
    """Runs on shared files that have ended since the start: the next run may have another job id."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], SharedRuns] = {}
        """By directory and user."""

    def learn(self, runs: Iterable[SharedRun], filesystem: Filesystem) -> tuple[SharedRuns, ...]:
        """All runs, the newest last, after these have ended; with the present layouts of their files."""
        known = self._known
        for run in runs:
            with suppress(OSError):  # removed
                key = run.path.rpartition("/")[0], filesystem.status(run.path).uid
                before = known.pop(key, None)  # put in again, it is the newest
                openers = min(run.openers, before.file.openers) if before else run.openers
                known[key] = SharedRuns(SharedFile(run.job, run.path, openers), 1 + (before.runs if before else 0),
                                        run.ended_at - run.began_at + (before.seconds if before else 0.0))
        self._known = dict(list(known.items())[-MAX_SHARED_RUNS:])
        return tuple(_as_it_is(filesystem, each) for each in self._known.values())


def _as_it_is(filesystem: Filesystem, runs: SharedRuns) -> SharedRuns:
    with suppress(OSError):
        return replace(runs, file=_with_layout(filesystem, runs.file))
    return replace(runs, runs=0)  # its layout is unknown


def _with_layout(filesystem: Filesystem, file: SharedFile) -> SharedFile:
    return replace(file, layout=filesystem.layout(file.path), size_bytes=filesystem.status(file.path).size_bytes)


MAX_LAYOUTS = 20
"""Number of directories, the busiest first, whose default layout is read. Each takes a request to an MDT."""
MAX_PLACEMENTS = 5
BUSY_PER_SECOND = 100.0
"""Operations per second in a directory from which its stripes over MDTs are read."""
WALK_ABOVE_USED = 0.6
"""Used share of a flash pool from which tierd looks for cold files there."""
WALK_ABOVE_DIFFERENCE = 0.1
"""Difference in used shares within a pool from which tierd looks for files on its fuller targets."""
JobNodes = Callable[[Collection[str]], Mapping[str, int]]
"""Number of nodes of each of some jobs, by job id; jobs for which it is unknown are absent. It does not wait."""


@dataclass
class FactsCollector:
    """Collects all facts."""

    filesystem: Filesystem
    table: ActivityTable
    inventory: Inventory
    flash_pools: Collection[str]
    metadata_targets: int = 0
    clients: ClientPoller | None = None
    media: PoolMedia = field(default_factory=lambda: PoolMedia(()))
    """Learns which targets are in which pool."""
    uneven: UnevenPools | None = None
    """Looks for files on the fuller targets of uneven pools; None if tierd does not move such files."""
    metadata: MetadataMeter = field(default_factory=MetadataMeter)
    disks: DiskPoller | None = None
    busy_per_second: float = BUSY_PER_SECOND
    """Operations in a directory from which its stripes over MDTs are read."""
    job_nodes: JobNodes = lambda _: {}
    closed: Callable[[], Mapping[str, str]] = dict
    """The targets that take no files of moves, with the reasons."""
    runs: LearntRuns = field(default_factory=LearntRuns)
    in_background: bool = False
    """Whether calls return facts that are some seconds old, for a collection takes dozens of requests."""

    def __post_init__(self) -> None:
        self._growth = FillRates()
        self._default_layouts: dict[str, Layout | None] = {}
        """Default layouts of busy directories as read last."""
        self.known = Facts()
        """The facts of the last collection; empty before it. Reading them never waits."""
        self.faults: dict[str, str] = {}
        """Error of each part that the last collection could not read."""

    def __call__(self, now: float) -> Facts:
        """The facts of the last collection. Without collection in the background, each call collects them.

        Devices are known from the first reading of counters, which may be later than the collection.
        """
        known = self.known if self.in_background else self.gather(now)
        return replace(known, flash=frozenset(p for p in known.pools if self.media.is_on_flash(p, partly=True)))

    def gather(self, now: float) -> Facts:
        """Collect all facts and store them."""
        self.faults = {}
        latest, latest_seconds = self.table.latest(now)
        directories, seconds = self.table.recent(now)
        layouts = self._layouts(directories)
        if changed := self._changed(layouts):
            self.table.begin_again(changed, now)
            directories, seconds = self.table.recent(now)  # without the activity under the old layout
        facts = Facts(directories=directories, directory_seconds=seconds, latest_directories=latest,
                      latest_seconds=latest_seconds, metadata_targets=self.metadata_targets)
        with self._or_unknown("room"):
            space = self.filesystem.space()
            fill = {target: TargetFill(s.size_bytes, s.avail_bytes) for target, s in space.items()}
            facts = replace(facts, pools=self.filesystem.pools(), fill=self._growth.measured(fill, now),
                            closed=self.closed())
            self.media.learn_pools(facts.pools)
        facts = replace(facts, metadata_loads=self.metadata.loads, metadata_services=self.metadata.services)
        with self._or_unknown("metadata room"):
            facts = replace(facts, metadata=self.filesystem.metadata_space())
        every = self.clients({t: facts.pool_of(t) for t in facts.fill}) if self.clients is not None else ()
        facts = replace(facts, clients=tuple(c for c in every if c.fsname == self.filesystem.fsname))
        if self.disks is not None:
            facts = replace(facts, disk_writes=self.disks(), max_rpc_bytes=self.disks.max_rpc_bytes,
                            server_drivers=dict(self.disks.drivers))
        for what, source in (("clients", self.clients), ("disk I/O", self.disks)):
            if source is not None and source.faults:
                self.faults[what] = f"{what}: {'; '.join(list(source.faults.values())[:3])}"
        if not self.known.fill:  # that is all the model needs, and the rest waits for each MDT that is down
            self.known = facts
        self._walk(facts)
        if self.uneven is not None:
            facts = replace(facts, resident=self._resident(self.uneven, facts, now))
        busy = self._busy(latest, latest_seconds)
        self.known = replace(facts, default_layouts=layouts, placements=self._placements(busy),
                             job_nodes=self._nodes_by_scheduler(directories, busy), shared_files=tuple(self._shared()),
                             shared_runs=self.runs.learn(self.table.shared_runs(), self.filesystem),
                             stored=self.inventory.files)
        return self.known

    @contextmanager
    def _or_unknown(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.faults[what] = f"{what}: {error}"

    def _walk(self, facts: Facts) -> None:
        if max((self._used(pool, facts) for pool in self.flash_pools), default=0.0) >= WALK_ABOVE_USED:
            self.inventory.step()
        else:
            self.inventory.forget()

    @staticmethod
    def _resident(uneven: UnevenPools, facts: Facts, now: float) -> tuple[StoredFile, ...]:
        """Files on targets that are fuller than their pool, while a pool is uneven."""
        fuller: set[int] = set()
        for pool, members in facts.pools.items():
            used = {t: facts.fill[t].used for t in members if t in facts.fill and facts.pool_of(t) == pool}
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
        return space.default_layouts(self.filesystem, places)

    def _changed(self, layouts: Mapping[str, Layout | None]) -> set[str]:
        """Directories whose default layout is another one than before, set by tierd or by anyone."""
        before, known = self._default_layouts, frozenset(self.table.places())
        changed = {place for place, layout in layouts.items() if place in before and before[place] != layout}
        self._default_layouts = {place: layout for place, layout in {**before, **layouts}.items() if place in known}
        return changed

    def _busy(self, directories: Sequence[DirectoryActivity], seconds: float) -> list[str]:
        """Directories in which very many operations happen, the busiest first."""
        done: Counter[str] = Counter()
        for each in directories:
            done[each.directory] += each.creates + each.opens + each.unlinks
        return [place for place, count in done.most_common(MAX_PLACEMENTS)
                if place.startswith("/") and seconds > 0 and count / seconds >= self.busy_per_second]

    def _nodes_by_scheduler(self, directories: Sequence[DirectoryActivity], busy: Collection[str]) -> Mapping[str, int]:
        """Nodes of jobs in busy directories, where the changelog names no clients."""
        unnamed = {each.job for each in directories if each.directory in busy and not each.clients}
        return self.job_nodes(unnamed) if unnamed else {}

    def _placements(self, busy: Sequence[str]) -> dict[str, DirectoryPlacement]:
        """MDTs of busy directories and of their parents. Each takes some requests to an MDT."""
        parents = [parent for place in busy if (parent := place.rpartition("/")[0])]
        found = {}
        for place in dict.fromkeys([*busy, *parents]):
            with suppress(OSError):  # removed or unreadable: its stripes are unknown
                found[place] = DirectoryPlacement(self.filesystem.directory_stripes(place),
                                                  self.filesystem.default_striping(place))
        return found

    def _shared(self) -> Iterator[SharedFile]:
        for file in self.table.shared_files[:MAX_LAYOUTS]:
            try:
                yield _with_layout(self.filesystem, file)
            except OSError:
                yield file  # without its layout and size
