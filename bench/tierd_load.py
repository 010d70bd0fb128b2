"""The synthetic load of a large file system, for :mod:`bench.tierd`: jobs, their counters and changelogs.

Counters have the form of the parsers' results. Changelogs are the bytes of the device of an MDT: files are created,
closed and unlinked in a few directories of each job. There are so many files that the table of activity is full and has
lost half of the unlinked files.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from random import Random

import numpy as np

from lustre.changelog.record import EXTRA, JOB_ID, NID, OWNER, TYPE_FLAG_BITS, VERSION, RecordType, form
from lustre.fid import Fid
from simulator.servers.changelog_bytes import nid_bytes
from tierd.loads import Bools, Columns, Floats, texts
from tierd.sense.counters import CounterTable
from tierd.sense.readings import Reading


class Job:
    """A job that streams, creates small files or does small I/O, on a few targets and at its own rate."""

    def __init__(self, number: int, rng: Random, targets: int) -> None:
        self.name = f"app{number % 300}.{number}"
        self.kind = rng.choices(("stream", "files", "io"), (5, 4, 1))[0]
        count = rng.choices((1, 2, 4, 8, 32), (30, 25, 25, 15, 5))[0]
        self.targets = rng.sample(range(targets), min(count, targets))
        self.rate = min(200.0, rng.paretovariate(0.9))  # a few jobs do most of the work
        self.active = rng.random()


SECONDS = 5.0
"""From cycle to cycle."""
MIB = 1 << 20
FIRST = 1_795_000_000.0
MDTS = tuple(f"MDT{n:04x}" for n in range(8))


class Clock:
    def __init__(self) -> None:
        self.time = FIRST

    def now(self) -> float:
        return self.time

    def wait(self, seconds: float) -> bool:
        self.time += seconds
        return False


BYTE_SECONDS, OPERATION_SECONDS = 1 / 200e6, 0.001
"""What a byte and an operation cost a target of old disks. They cost new disks a fifth, and flash a tenth."""
RESTS = 0.02
"""Part of the jobs that begin to work or to pause in a cycle."""
MOST_OF_OTHERS = 0.95
"""Part of a target's time that small files and small I/O take at the most."""
RPC_BYTES = {"stream": MIB, "files": 16 << 10, "io": 4096}
SAMPLES = ("read_bytes", "write_bytes", "read", "write", "getattr", "setattr", "punch", "sync", "destroy", "create",
           "statfs", "get_info", "set_info", "quotactl", "prealloc", "open", "close", "mknod", "unlink")
SUMS = ("read_bytes", "write_bytes", "read", "write")
SIZES = (4096, 16 << 10, MIB)
START = "1794990000"


class Counters:
    """Job statistics of a large file system.

    Streams get what small files and small I/O leave of their targets, and at most their own rate; their stripes go in
    step. So some targets are saturated, and their streams exposed to the others.
    """

    def __init__(self, targets: int, jobs: Sequence[Job]) -> None:
        self._rng = np.random.default_rng(1)
        self._targets = [f"big-OST{n:04x}" for n in range(targets)]
        self._job = np.repeat(np.arange(len(jobs)), [len(job.targets) for job in jobs])
        self._target = np.concatenate([job.targets for job in jobs])
        self._rate = np.array([job.rate for job in jobs])
        self._active = np.array([job.active for job in jobs])
        self._busy = self._drawn()
        self._bytes = np.array([RPC_BYTES[job.kind] for job in jobs])[self._job]
        self._streams = self._bytes == MIB
        tenth = max(1, targets // 10)
        self._cost = np.repeat((0.1, 1.0, 0.2), (tenth, tenth, targets - 2 * tenth))[self._target]
        self._operations = np.zeros(len(self._job))
        self._files = np.array([number for number, job in enumerate(jobs) if job.kind == "files"])
        self._metadata = np.zeros(len(self._files))
        places = [(self._targets[target], jobs[job].name) for job, target in zip(
            self._job.tolist(), self._target.tolist(), strict=True)]
        places += [(f"big-{MDTS[jobs[job].targets[0] % len(MDTS)]}", jobs[job].name) for job in self._files.tolist()]
        self.places = [target for target, _ in places], [job for _, job in places]
        """Target and job of each row."""

    def pools(self) -> dict[str, tuple[str, ...]]:
        """A tenth of the targets is flash, a tenth old disks: most of those are saturated."""
        tenth = max(1, len(self._targets) // 10)
        return {"flash": tuple(self._targets[:tenth]), "old": tuple(self._targets[tenth:2 * tenth]),
                "hdd": tuple(self._targets[2 * tenth:])}

    def _drawn(self) -> Bools:
        return self._rng.random(len(self._rate)) < 0.3 + 0.7 * self._active

    def work(self) -> None:
        """Count what is done in a cycle."""
        self._busy = np.where(self._rng.random(len(self._busy)) < RESTS, self._drawn(), self._busy)
        rate = np.where(self._busy, self._rate, 0.0)
        wanted = rate[self._job] * self._rng.uniform(0.9, 1.1, len(self._job))
        seconds = wanted * (self._bytes * BYTE_SECONDS + np.where(self._streams, 0, OPERATION_SECONDS)) * self._cost
        others = np.bincount(self._target, np.where(self._streams, 0, seconds), len(self._targets))
        streams = np.bincount(self._target, np.where(self._streams, seconds, 0), len(self._targets))
        less = np.minimum(1, MOST_OF_OTHERS / np.maximum(others, 1e-9))
        left = np.minimum(1, (1 - others * less) / np.maximum(streams, 1e-9))
        in_step = np.ones(len(rate))
        np.minimum.at(in_step, self._job, left[self._target])
        served = wanted * np.where(self._streams, in_step[self._job], less[self._target])
        self._operations += np.where(wanted > 0, np.maximum(1, np.round(served * SECONDS)), 0)
        self._metadata += np.round(rate[self._files] * SECONDS)

    def numbers(self) -> tuple[Floats, Floats, Floats]:
        """Samples, sums and sizes, by row."""
        done, moved, opened = self._operations, self._operations * self._bytes, self._metadata
        data, pairs = {
            "read_bytes": done // 4, "write_bytes": done, "read": done // 4, "write": done, "setattr": done // 10,
            "punch": done // 20, "sync": done // 20, "destroy": done // 20}, len(done)
        samples, totals, sizes = (np.zeros((len(self.places[0]), len(names))) for names in (SAMPLES, SUMS, SIZES))
        for name, column in data.items():
            samples[:pairs, SAMPLES.index(name)] = column
        for name in ("open", "close", "mknod", "getattr"):
            samples[pairs:, SAMPLES.index(name)] = opened
        samples[pairs:, SAMPLES.index("unlink")] = opened // 2
        totals[:pairs] = np.column_stack((moved / 4, moved, done * 300, done * 900))
        sizes[np.arange(pairs), np.searchsorted(SIZES, self._bytes)] = done
        return samples, totals, sizes


LIVING_FILES = 300_000
DIRECTORY_SEQUENCE = 0x200000300
DIRECTORIES = 4
"""Directories per job."""
_FORM = form(VERSION | JOB_ID | EXTRA, OWNER | NID)
_FLAGS = (VERSION | JOB_ID | EXTRA) << TYPE_FLAG_BITS
_NID, _ = nid_bytes("10.1.2.3@tcp")
_NONE = bytes(16)


class _MdtLog:
    def __init__(self, number: int, living: int) -> None:
        self.sequence = 0x200000400 + (number << 20)
        self.living = living
        self.index = 0
        self.files = 0
        self.existing: array[int] = array("Q")
        """Existing files, with number, job and directory packed in one integer to save memory."""

    def fid(self, file: int) -> bytes:
        number = file >> 24
        return Fid(self.sequence + number // 100_000, number % 100_000 + 1).pack()


class Changelogs:
    """Changelogs of all metadata targets."""

    def __init__(self, mdts: Sequence[str], jobs: Sequence[str], records: int) -> None:
        """``records`` is the number per cycle. The first jobs cause most of them."""
        self._targets = {mdt: _MdtLog(number, LIVING_FILES // len(mdts)) for number, mdt in enumerate(mdts)}
        self._jobs = [job.encode() for job in jobs]
        self._records = records // len(mdts)
        self._rng = Random(2)

    def made(self, now: float) -> dict[str, bytes]:
        """The records of a cycle, by MDT."""
        return {mdt: self._made(target, now) for mdt, target in self._targets.items()}

    def _made(self, target: _MdtLog, now: float) -> bytes:
        rng, parts = self._rng, list[bytes]()
        last = target.index + self._records
        while target.index < last - 2:
            job = int(len(self._jobs) * rng.random() ** 2)
            target.files += 1
            file = target.files << 24 | job << 8 | int(rng.random() * DIRECTORIES)
            self._append(parts, target, RecordType.CREATE, now, file)
            self._append(parts, target, RecordType.CLOSE, now, file)
            target.existing.append(file)
            if len(target.existing) > target.living:
                at = int(rng.random() * len(target.existing))
                file, target.existing[at] = target.existing[at], target.existing[-1]
                target.existing.pop()
                self._append(parts, target, RecordType.UNLINK, now, file)
        return b"".join(parts)

    def _append(self, parts: list[bytes], target: _MdtLog, kind: RecordType, now: float, file: int) -> None:
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


class Load:
    """The load of each cycle. Another process makes it, so that it takes neither time nor memory of this one."""

    def __init__(self, clock: Clock, targets: int, jobs: int, records: int) -> None:
        """``records`` is the number per cycle."""
        self._clock = clock
        self._pipe, theirs = Pipe()
        Process(target=make_load, args=(theirs, targets, jobs, records), daemon=True).start()
        self.pools: dict[str, tuple[str, ...]]
        self.pools, places = self._pipe.recv()
        self._target, self._job = map(texts, places)
        self._all = frozenset((*places[0], *(name for pool in self.pools.values() for name in pool),
                               *(f"big-{mdt}" for mdt in MDTS)))

    def __len__(self) -> int:
        return len(self._target)

    def go_on(self) -> None:
        """Begin the next cycle."""
        self._clock.wait(SECONDS)
        self._pipe.send(self._clock.time)
        self._numbers, self._records = self._pipe.recv()

    def reading(self) -> Reading:
        """The present counters, as the parsers give them."""
        samples, totals, sizes = self._numbers
        del self._numbers
        return Reading(self._clock.time, CounterTable(
            texts(self._target.tolist()), texts(self._job.tolist()), texts([START] * len(self)),
            Columns(SAMPLES, samples), Columns(SUMS, totals), Columns(SIZES, sizes)), self._all)

    def read(self, mdt: str, after: int) -> bytes:
        """The records since the last cycle; further calls in the same cycle return no records."""
        found: bytes = self._records.pop(mdt, b"")
        return found


def make_load(pipe: Connection, targets: int, count: int, records: int) -> None:
    """Send the load of a cycle for each time that is received."""
    rng = Random(0)
    jobs = [Job(number, rng, targets) for number in range(count)]
    counters = Counters(targets, jobs)
    changelogs = Changelogs(MDTS, [job.name for job in jobs if job.kind == "files"], records)
    pipe.send((counters.pools(), counters.places))
    while True:
        now = pipe.recv()
        counters.work()
        pipe.send((counters.numbers(), changelogs.made(now)))
