"""Finds the files that are read and written most, from the access logs of the OSTs that this node serves.

A changelog records that a file was opened, but not how much of it was read. Access logs are the only source for that.
They exist on servers only, if an administrator has set ``access_log_size``. A log identifies files by FID, so tierd
sometimes looks up the paths of the most read files. Only files in a directory of a finding become candidates, and
tierd checks each again before it moves.
"""

from __future__ import annotations

import glob
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from lustre.access_log import Access, AccessLogDevice, decode
from lustre.fid import Fid
from lustre.filesystem import Filesystem
from lustre.layout.model import pools_within
from tierd.clock import Clock
from tierd.integrations.protocol import Integration, Site, Source
from tierd.model import Candidate, DirectoryActivity
from tierd.sense.freshness import SourceAge
from tierd.sense.paths import directory_of

MAX_BYTES = 16 << 20
"""Maximum number of bytes of one log that one cycle reads: 260,000 entries."""
MAX_FILES = 100_000
HALF_LIFE_SECONDS = 300.0
"""Time in which the count of the recent reads of a file halves."""
MAX_NAMED_FILES = 200
"""Number of files whose paths are looked up. Each takes a few requests to an MDT."""
NAME_LOOKUP_SECONDS = 60.0


class HotFiles(Source):
    """Adds recent reads from the access logs of this node to activities. Logs that are too old are not used.

    The least recently read files are dropped first.
    """

    def __init__(self, pattern: str, open_log: Callable[[str], AccessLogDevice], clock: Clock, stale_seconds: float,
                 flash_pools: Collection[str]) -> None:
        """Files with bytes in ``flash_pools`` are on flash already and do not become candidates."""
        self._pattern = pattern
        self._open = open_log
        self._clock = clock
        self._stale_seconds = stale_seconds
        self._flash_pools = frozenset(flash_pools)
        self._logs: dict[str, AccessLogDevice] = {}
        self._dropped: dict[str, int] = {}
        self._table: OrderedDict[Fid, float] = OrderedDict()
        """Recent reads of each file, as of :attr:`_counted_at`."""
        self._counted_at = 0.0
        self._read_at: float | None = None
        self._problem = ""
        self._named: dict[str, list[Candidate]] = {}
        self._flash: set[Fid] = set()  # found there; looked up again once they have cooled down
        self._looked_at: float | None = None

    @property
    def age(self) -> SourceAge:
        return SourceAge("access-log", self._read_at, self._stale_seconds, self._clock.now(), self._problem)

    def refresh(self) -> None:
        """Read new entries. A problem is shown in status and not raised, because these logs only rank files."""
        problems = []
        self._decay()
        present = [path for path in sorted(glob.glob(self._pattern)) if not path.endswith("/control")]
        for path in present:
            try:
                if path not in self._logs:
                    self._logs[path] = self._open(path)
                problems += self._follow(path)
            except (OSError, ValueError) as error:
                problems.append(f"{path}: {error}")
                self._drop(path)
        for path in [path for path in self._logs if path not in present]:
            self._drop(path)
        if not present:
            problems.append(f"{self._pattern}: no such log: is this an OSS, and obdfilter.*.access_log_size above 0?")
        self._problem = "; ".join(problems[:3])
        if self._logs:
            self._read_at = self._clock.now()

    def hot(self) -> dict[Fid, float]:
        """Recent read RPCs of each file, over all OSTs of this node; the most read first."""
        self._decay()
        ranked = sorted(self._table.items(), key=lambda each: (-each[1], each[0]))
        return {fid: reads for fid, reads in ranked if reads >= 1}

    def _decay(self) -> None:
        now = self._clock.now()
        part = 0.5 ** (max(now - self._counted_at, 0.0) / HALF_LIFE_SECONDS)
        self._table = OrderedDict((fid, reads * part) for fid, reads in self._table.items())
        self._counted_at = now

    def close(self) -> None:
        for path in list(self._logs):
            self._drop(path)

    def _follow(self, path: str) -> list[str]:
        log = self._logs[path]
        data, ended = log.read(MAX_BYTES)
        self._take(decode(data))
        dropped, before = log.dropped(), self._dropped.get(path, 0)
        self._dropped[path] = dropped
        if ended:
            self._drop(path)
        return [f"{path}: {dropped - before} entries were lost: its access_log_size is too small"] \
            if dropped > before else []

    def _take(self, accesses: Iterable[Access]) -> None:
        for access in accesses:
            if access.writes:
                continue
            self._table[access.fid] = self._table.get(access.fid, 0.0) + 0.5 ** (
                max(self._counted_at - access.time, 0.0) / HALF_LIFE_SECONDS)
            self._table.move_to_end(access.fid)
            if len(self._table) > MAX_FILES:
                self._table.popitem(last=False)

    def _drop(self, path: str) -> None:
        self._dropped.pop(path, None)
        if log := self._logs.pop(path, None):
            log.close()

    def enriched(self, activities: list[DirectoryActivity], filesystem: Filesystem) -> list[DirectoryActivity]:
        """The activities with the recent reads of each file, and with hot files that no changelog record named."""
        now = self._clock.now()
        if not activities or self.age.age_seconds > self._stale_seconds:
            return activities
        heat = self.hot()
        if self._looked_at is None or not 0 <= now - self._looked_at < NAME_LOOKUP_SECONDS:
            self._looked_at = now
            self._flash &= heat.keys()
            hottest = [fid for fid in heat if fid not in self._flash]
            self._named = self._find_paths(hottest[:MAX_NAMED_FILES], filesystem)
        return [self._with_reads(activity, heat) for activity in activities]

    def _with_reads(self, activity: DirectoryActivity, heat: Mapping[Fid, float]) -> DirectoryActivity:
        known = {c.fid for c in activity.candidates} | {file.fid for file in activity.existing_files}
        more = [c for c in self._named.get(activity.directory, ()) if c.fid not in known]
        return replace(activity, candidates=tuple(
            replace(c, opens=max(c.opens, int(reads)), reads=reads) if (reads := heat.get(c.fid, 0.0)) else c
            for c in (*activity.candidates, *more)))

    def _find_paths(self, hottest: Iterable[Fid], filesystem: Filesystem) -> dict[str, list[Candidate]]:
        found: defaultdict[str, list[Candidate]] = defaultdict(list)
        for fid in hottest:
            try:
                path = filesystem.path_of(fid)
                status = filesystem.status(path)
                layout = filesystem.layout(path)
            except OSError:
                continue  # removed, or without a name
            if status.is_directory or status.fid != fid or layout is None or status.link_count != 1:
                continue
            if self._flash_pools.isdisjoint(pools_within(layout, status.size_bytes)):
                found[directory_of(path)].append(Candidate(fid, path, max(status.mtime, 0.0)))
            else:
                self._flash.add(fid)
        return dict(found)


def start(pattern: str, site: Site) -> HotFiles:
    return HotFiles(pattern, AccessLogDevice, site.clock, site.stale_seconds, site.flash_pools)


INTEGRATION = Integration(settings=str, configured=bool, start=start)
