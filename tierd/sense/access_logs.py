"""Which files are read and written most, from the access logs of the OSTs this node serves, rolled up by file.

A changelog tells that a file was opened, never how much of it was read: this is the only source that does. It is there
on servers alone, and only where an administrator gave the logs a size.
"""

from __future__ import annotations

import glob
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from lustre.access_log import Access, decode
from lustre.fid import Fid
from tierd.clock import Clock
from tierd.sense.ages import SourceAge

MOST_BYTES = 16 << 20
"""Read of one log in one cycle: 260,000 entries."""
MOST_FILES = 100_000
HALF_LIFE_SECONDS = 300.0


class Log(Protocol):
    """One access log, open."""

    def read(self, limit_bytes: int) -> tuple[bytes, bool]:
        """What came, and whether it has ended. Raises OSError."""

    def dropped(self) -> int:
        """Entries lost since it was opened."""

    def close(self) -> None:
        """Give it back."""


@dataclass(slots=True)
class Heat:
    """What was done to one file on one OST; rates fade by half in five minutes."""

    fid: Fid
    target: str
    reads: float = 0.0
    writes: float = 0.0
    read_bytes: float = 0.0
    write_bytes: float = 0.0
    at: float = 0.0

    def take(self, access: Access) -> None:
        """One more RPC."""
        self.fade(access.time)
        if access.writes:
            self.writes += 1
            self.write_bytes += access.size_bytes
        else:
            self.reads += 1
            self.read_bytes += access.size_bytes

    def fade(self, now: float) -> None:
        """Let the past count less."""
        if now > self.at:
            part = 0.5 ** ((now - self.at) / HALF_LIFE_SECONDS) if self.at else 0.0
            self.reads, self.writes = self.reads * part, self.writes * part
            self.read_bytes, self.write_bytes = self.read_bytes * part, self.write_bytes * part
            self.at = now


class AccessLogs:
    """All logs of this node, and the table of files; the least recently used fall out first."""

    def __init__(self, pattern: str, open_log: Callable[[str], Log], clock: Clock, stale_seconds: float) -> None:
        self._pattern = pattern
        self._open = open_log
        self._clock = clock
        self._stale_seconds = stale_seconds
        self._logs: dict[str, Log] = {}
        self._dropped: dict[str, int] = {}
        self._table: OrderedDict[tuple[Fid, str], Heat] = OrderedDict()
        self._read_at: float | None = None
        self._trouble = ""

    @property
    def age(self) -> SourceAge:
        """The source, as it stands."""
        return SourceAge("access-log", self._read_at, self._stale_seconds, self._trouble)

    def look(self) -> None:
        """Take in what has come. Trouble is kept for status: nothing but a ranking rests on these logs."""
        troubles = []
        present = [path for path in sorted(glob.glob(self._pattern)) if not path.endswith("/control")]
        for path in present:
            try:
                if path not in self._logs:
                    self._logs[path] = self._open(path)
                troubles += self._follow(path)
            except (OSError, ValueError) as error:
                troubles.append(f"{path}: {error}")
                self._drop(path)
        for path in [path for path in self._logs if path not in present]:
            self._drop(path)
        if not present:
            troubles.append(f"{self._pattern}: no such log: is this an OSS, and obdfilter.*.access_log_size above 0?")
        self._trouble = "; ".join(troubles[:3])
        if self._logs:
            self._read_at = self._clock.now()

    def hot(self, most: int = 1000) -> list[Heat]:
        """Files by what was read of them lately, the most first."""
        now = self._clock.now()
        for heat in self._table.values():
            heat.fade(now)
        ranked = sorted(self._table.values(), key=lambda heat: (-heat.reads, -heat.read_bytes, heat.fid))
        return [heat for heat in ranked[:most] if heat.reads >= 1]

    def by_file(self) -> dict[Fid, float]:
        """Read RPCs of each file lately, over all OSTs of this node."""
        found: defaultdict[Fid, float] = defaultdict(float)
        for heat in self.hot(MOST_FILES):
            found[heat.fid] += heat.reads
        return dict(found)

    def close(self) -> None:
        """Give all logs back."""
        for path in list(self._logs):
            self._drop(path)

    def _follow(self, path: str) -> list[str]:
        log = self._logs[path]
        data, ended = log.read(MOST_BYTES)
        self._take(path.rpartition("/")[2], decode(data))
        dropped, before = log.dropped(), self._dropped.get(path, 0)
        self._dropped[path] = dropped
        if ended:
            self._drop(path)
        return [f"{path}: {dropped - before} entries were lost: its access_log_size is too small"] \
            if dropped > before else []

    def _take(self, target: str, accesses: Iterable[Access]) -> None:
        for access in accesses:
            key = access.fid, target
            heat = self._table.get(key)
            if heat is None:
                heat = self._table[key] = Heat(access.fid, target)
                if len(self._table) > MOST_FILES:
                    self._table.popitem(last=False)
            heat.take(access)
            self._table.move_to_end(key)

    def _drop(self, path: str) -> None:
        log = self._logs.pop(path, None)
        self._dropped.pop(path, None)
        if log is not None:
            log.close()
