"""Our own moves echo in the changelog: they must not count as somebody's activity.

The job tag tells most of them. Where jobs are named by the node, or by an environment variable, it does not; then it is
the file that was just moved, on this node, by root. A new layout is ours only where we moved that file, whatever the
tag: ``lfs.0`` is anybody's ``lfs migrate`` who is root, and a second mover must not pass for us.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection

from lustre.changelog import Record, RecordType
from lustre.fid import Fid

REMEMBER_SECONDS = 600.0
MOST = 100_000
_ECHOES = {RecordType.OPEN, RecordType.CLOSE, RecordType.LAYOUT, RecordType.SETATTR, RecordType.MTIME,
           RecordType.ATIME, RecordType.CTIME}
"""What a move leaves behind on the file. Creating, renaming and removing files is never ours."""


Ours = Callable[[Fid, float], bool]
"""Whether we have begun to move a file, or to take that back, since a time; the journal knows, over a restart too."""


class Echo:
    """Recognises records of our own moves."""

    def __init__(self, jobs: Collection[str], nids: Callable[[], Collection[str]], now: Callable[[], float],
                 ours: Ours) -> None:
        """``nids`` are this node's addresses; where they are not to be seen, file and user have to do."""
        self._ours = ours
        self._jobs = frozenset(jobs)
        self._nids = nids
        self._now = now
        self._moved: OrderedDict[Fid, float] = OrderedDict()

    def moved(self, fid: Fid) -> None:
        """Remember a file that a move was tried of."""
        self._moved[fid] = self._now()
        self._moved.move_to_end(fid)
        oldest = next(iter(self._moved))
        if len(self._moved) > MOST or self._moved[oldest] < self._now() - REMEMBER_SECONDS:
            del self._moved[oldest]

    def __call__(self, record: Record, job: str) -> bool:
        """Whether a record is an echo."""
        if job in self._jobs:
            return record.type is not RecordType.LAYOUT or self._is_our_move(record)
        at = self._moved.get(record.target) if self._moved else None
        if at is None or record.type not in _ECHOES or record.uid not in {0, None}:
            return False
        return self._now() - at <= REMEMBER_SECONDS and self._from_here(record)

    def _is_our_move(self, record: Record) -> bool:
        known = record.target in self._moved or self._ours(record.target, self._now() - REMEMBER_SECONDS)
        return known and self._from_here(record)

    def _from_here(self, record: Record) -> bool:
        nids = self._nids()
        return not record.nid or not nids or record.nid in nids
