"""Our own moves echo in the changelog: they must not count as somebody's activity.

The job tag tells most of them. Where jobs are named by the node, or by an environment variable, it does not; then it is
the file that was just moved, on this node, by root. A new layout is ours only where we moved that file, whatever the
tag: ``lfs.0`` is anybody's ``lfs migrate`` who is root, and a second mover must not pass for us.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid

REMEMBER_SECONDS = 600.0
MOST = 100_000
_ECHOES = {RecordType.OPEN, RecordType.CLOSE, RecordType.LAYOUT, RecordType.SETATTR, RecordType.MTIME,
           RecordType.ATIME, RecordType.CTIME}
"""What a move leaves behind on the file. Creating, renaming and removing files is never ours."""


Ours = Callable[[Fid, float], bool]
"""Whether we have begun to move a file, or to take that back, since a time; the journal knows, over a restart too."""


class Echoes(Protocol):
    """Tells records of our own moves from those of others."""

    @property
    def tags(self) -> frozenset[str]:
        """Jobs of which records may be ours."""

    @property
    def files(self) -> Mapping[Fid, float]:
        """Files of which records may be ours, whatever the job. Of all other records it need not be asked."""

    def __call__(self, record: Record, job: str) -> bool:
        """Whether a record is an echo."""


class NoEchoes:
    """Where nothing is moved."""

    tags: frozenset[str] = frozenset()
    files: Mapping[Fid, float] = {}

    def __call__(self, record: Record, job: str) -> bool:
        """Never."""
        return False


class Echo:
    """Recognises records of our own moves."""

    def __init__(self, jobs: Collection[str], nids: Callable[[], Collection[str]], now: Callable[[], float],
                 ours: Ours) -> None:
        """``nids`` are this node's addresses; where they are not to be seen, file and user have to do."""
        self._ours = ours
        self.tags = frozenset(jobs)
        """Jobs of which records may be ours."""
        self._nids = nids
        self._now = now
        self.files: OrderedDict[Fid, float] = OrderedDict()
        """Files of which a move was tried lately, and when: their records may be ours, whatever the job."""

    def moved(self, fid: Fid) -> None:
        """Remember a file that a move was tried of."""
        self.files[fid] = self._now()
        self.files.move_to_end(fid)
        oldest = next(iter(self.files))
        if len(self.files) > MOST or self.files[oldest] < self._now() - REMEMBER_SECONDS:
            del self.files[oldest]

    def __call__(self, record: Record, job: str) -> bool:
        """Whether a record is an echo."""
        if job in self.tags:
            return record.type is not RecordType.LAYOUT or self._is_our_move(record)
        at = self.files.get(record.target) if self.files else None
        if at is None or record.type not in _ECHOES or record.uid not in {0, None}:
            return False
        return self._now() - at <= REMEMBER_SECONDS and self._from_here(record)

    def _is_our_move(self, record: Record) -> bool:
        known = record.target in self.files or self._ours(record.target, self._now() - REMEMBER_SECONDS)
        return known and self._from_here(record)

    def _from_here(self, record: Record) -> bool:
        nids = self._nids()
        return not record.nid or not nids or record.nid in nids
