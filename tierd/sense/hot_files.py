"""Files that are read much of late, by the access logs: hints of what to move first, and of files no record told of.

A log names a file by its FID, and neither its job nor its directory. So the hottest are asked for their names now and
then, and only those in a directory that a finding names become candidates: whoever moves one looks at it again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace

from lustre.fid import Fid
from lustre.filesystem import Filesystem
from lustre.layout.model import pools_within
from tierd.clock import Clock
from tierd.model import Candidate, DirectoryActivity
from tierd.sense.access_logs import AccessLogs
from tierd.sense.paths import directory_of

MOST_FILES = 200
"""Asked for their names; each is a few requests to an MDT."""
LOOK_SECONDS = 60.0


class HotFiles:
    """What the logs say of files, put to activities. Logs that are too old say nothing."""

    def __init__(self, logs: AccessLogs, flash_pools: Collection[str], clock: Clock) -> None:
        """Files with bytes in ``flash_pools`` are where they should be."""
        self._logs = logs
        self._flash_pools = frozenset(flash_pools)
        self._clock = clock
        self._named: dict[str, list[Candidate]] = {}
        self._looked_at: float | None = None

    def with_heat(self, activities: list[DirectoryActivity], filesystem: Filesystem) -> list[DirectoryActivity]:
        """Activities, each file with what was read of it, and with hot files of these directories nobody knew."""
        now = self._clock.now()
        age = self._logs.age
        if not activities or age.age_seconds(now) > age.limit_seconds:
            return activities
        if self._looked_at is None or not 0 <= now - self._looked_at < LOOK_SECONDS:
            self._looked_at = now
            self._named = self._look(filesystem)
        heat = self._logs.by_file()
        return [self._warmed(activity, heat) for activity in activities]

    def _warmed(self, activity: DirectoryActivity, heat: Mapping[Fid, float]) -> DirectoryActivity:
        known = {c.fid for c in activity.candidates} | {file.fid for file in activity.existing_files}
        more = [c for c in self._named.get(activity.directory, ()) if c.fid not in known]
        return replace(activity, candidates=tuple(
            replace(c, opens=max(c.opens, int(reads)), reads=reads) if (reads := heat.get(c.fid, 0.0)) else c
            for c in (*activity.candidates, *more)))

    def _look(self, filesystem: Filesystem) -> dict[str, list[Candidate]]:
        """By directory, the hottest files that lie on the disks, as they are now."""
        found: defaultdict[str, list[Candidate]] = defaultdict(list)
        hottest = dict.fromkeys(heat.fid for heat in self._logs.hot(MOST_FILES))
        for fid in hottest:
            try:
                path = filesystem.path_of(fid)
                status = filesystem.status(path)
                layout = filesystem.layout(path)
            except OSError:
                continue  # gone, or without a name
            if status.is_directory or status.fid != fid or layout is None or status.link_count != 1:
                continue
            if self._flash_pools.isdisjoint(pools_within(layout, status.size_bytes)):
                found[directory_of(path)].append(Candidate(fid, path, max(status.mtime, 0.0)))
        return dict(found)
