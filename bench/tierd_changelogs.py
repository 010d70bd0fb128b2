"""Changelogs of a large file system, as the bytes a metadata target's device gives; for :mod:`bench.tierd`.

Files are created, closed and unlinked, in a few directories of each job. So many live at a time that the table of
activity is full, and half of what is unlinked has fallen out of it.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Sequence
from random import Random

from lustre.changelog.decode import EXTRA, JOB_ID, NID, OWNER, TYPE_FLAG_BITS, VERSION, form
from lustre.changelog.record import RecordType
from lustre.fid import Fid
from lustre.nid import nid_bytes

LIVING_FILES = 300_000
DIRECTORY_SEQUENCE = 0x200000300
DIRECTORIES = 4
"""Of each job."""
_FORM = form(VERSION | JOB_ID | EXTRA, OWNER | NID)
_FLAGS = (VERSION | JOB_ID | EXTRA) << TYPE_FLAG_BITS
_NID, _ = nid_bytes("10.1.2.3@tcp")
_NONE = bytes(16)


class _Target:
    """One metadata target."""

    def __init__(self, number: int, living: int) -> None:
        self.sequence = 0x200000400 + (number << 20)
        self.living = living
        self.index = 0
        self.files = 0
        self.there: array[int] = array("Q")
        """Files that live: their number, job and directory in one number, so that the bench itself takes no memory."""

    def fid(self, file: int) -> bytes:
        number = file >> 24
        return Fid(self.sequence + number // 100_000, number % 100_000 + 1).pack()


class Changelogs:
    """All metadata targets. ``spent`` is the processor time it took to make records up."""

    def __init__(self, mdts: Sequence[str], jobs: Sequence[str], records: int, now: Callable[[], float]) -> None:
        """``records`` in each cycle; the first of the jobs do most of it."""
        self._targets = {mdt: _Target(number, LIVING_FILES // len(mdts)) for number, mdt in enumerate(mdts)}
        self._jobs = [job.encode() for job in jobs]
        self._records = records // len(mdts)
        self._now = now
        self._rng = Random(2)
        self._given: dict[str, float] = {}
        self.spent = 0.0

    def read(self, mdt: str, after: int) -> bytes:
        """Records since the last cycle, and then none until the next."""
        now = self._now()
        if self._given.get(mdt) == now:
            return b""
        self._given[mdt] = now
        begun = time.process_time()
        data = self._made(self._targets[mdt], now)
        self.spent += time.process_time() - begun
        return data

    def _made(self, target: _Target, now: float) -> bytes:
        rng, parts = self._rng, list[bytes]()
        last = target.index + self._records
        while target.index < last - 2:
            job = int(len(self._jobs) * rng.random() ** 2)
            target.files += 1
            file = target.files << 24 | job << 8 | int(rng.random() * DIRECTORIES)
            self._tell(parts, target, RecordType.CREATE, now, file)
            self._tell(parts, target, RecordType.CLOSE, now, file)
            target.there.append(file)
            if len(target.there) > target.living:
                at = int(rng.random() * len(target.there))
                file, target.there[at] = target.there[at], target.there[-1]
                target.there.pop()
                self._tell(parts, target, RecordType.UNLINK, now, file)
        return b"".join(parts)

    def _tell(self, parts: list[bytes], target: _Target, kind: RecordType, now: float, file: int) -> None:
        target.index += 1
        job, parent = file >> 8 & 0xFFFF, _NONE
        name = b"" if kind is RecordType.CLOSE else b"f%d" % (file >> 24)
        if name:
            parent = Fid(DIRECTORY_SEQUENCE, 1 + job * DIRECTORIES + (file & 0xFF)).pack()
        nanosecond = (target.index * 7919) % 1_000_000_000
        time = (int(now) - 1) << 30 | nanosecond
        parts.append(_FORM.pack(len(name), _FLAGS, kind, target.index, 0, time, target.fid(file), parent,
                                self._jobs[job], OWNER | NID, 1000, 1000, _NID))
        parts.append(name)
