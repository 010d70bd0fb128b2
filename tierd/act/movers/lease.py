"""The engine in this process: a lease, a copy without a name, and one atomic exchange of layouts.

Whoever opens the file for writing, truncates or removes it while it is copied breaks the lease and wins: the engine
discards the copy. The exchange is one transaction on the MDT, which checks the lease once more. After a kill at
any instruction the file has its old layout or its new one, and the other objects are destroyed, because a volatile file
and a lease end with their process.

Holes are not copied. The engine reads the copy back from its targets, bypassing the page cache, before the exchange.

The copy must lie on the MDT of its source. On another MDT Lustre accepts the exchange, and destroys the data some
seconds later.

Each call has a reason, and many are a request to a server: docs/decisions/013-what-a-mover-asks.md.
"""

from __future__ import annotations

import errno
import mmap
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from zlib import crc32

from lustre.errors import Busy, LustreError, NotPermitted, Stale
from lustre.filesystem import Calls, FileFlags, Status
from lustre.layout.model import same_shape
from tierd.act.movers import checks, inspection
from tierd.act.movers.checks import FileFacts, read_open_facts
from tierd.act.movers.moves import Move, MoveOutcome, MoveResult, halted_outcome, outcome_of_error
from tierd.act.movers.space_and_quota import Destination, DestinationState
from tierd.clock import Clock, SystemClock
from tierd.refusal import Reason, Refusal

PAGE_BYTES = mmap.PAGESIZE
"""Page size: 64 KiB on some ARM nodes. Direct reads need whole pages."""
CHUNK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Chunk:
    """A range that was copied, and its checksum."""

    offset: int
    length: int
    checksum: int


def copy_data(calls: Calls, source: int, copy_to: int, status: Status,
              chunk_bytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """Copy the data, then set the size of the copy. Yields each chunk once it is copied. Raises Busy if the lease is
    broken or the file gets shorter.
    """
    reached = 0
    for offset, length in _pieces(calls, source, status, chunk_bytes):
        require_lease(calls, source)  # a copy without its lease stops reading
        data = _read_whole(calls, source, offset, length)
        _write_whole(calls, copy_to, data, offset)
        yield Chunk(offset, length, crc32(data))
        reached = offset + length
    if reached < status.size_bytes:  # the file ends in a hole
        calls.truncate(copy_to, status.size_bytes)


def verify_copy(calls: Calls, source: int, copied_to: int, chunks: list[Chunk]) -> None:
    """Read the copy back, bypassing the page cache. Raises LustreError if a byte differs."""
    calls.drop_cache(copied_to)  # else the copy would be read from the pages just written
    for chunk in chunks:
        require_lease(calls, source)
        data = _read_whole(calls, copied_to, chunk.offset, chunk.length)
        if crc32(data) != chunk.checksum:
            raise LustreError(errno.EIO, f"the copy differs from the file at byte {chunk.offset}; tierd discards it")


def require_lease(calls: Calls, source: int) -> None:
    """Raise Busy if the lease is broken."""
    if not calls.lease_held(source):
        raise Busy(errno.EBUSY, "somebody opened the file for writing, truncated or removed it")


def _pieces(calls: Calls, source: int, status: Status, chunk_bytes: int) -> Iterator[tuple[int, int]]:
    """Offsets and lengths of ranges with data, in whole pages, in order. Holes are skipped."""
    at, size_bytes = 0, status.size_bytes
    if status.held_bytes >= size_bytes:  # no hole that is worth a request
        yield from ((start, min(chunk_bytes, size_bytes - start)) for start in range(0, size_bytes, chunk_bytes))
        return
    while at < size_bytes:
        found = calls.next_data(source, at)
        if found is None or found[0] >= size_bytes:
            return
        start = found[0] - found[0] % PAGE_BYTES
        # never empty, whatever the kernel says
        end = min(-(-max(found[1], found[0] + 1) // PAGE_BYTES) * PAGE_BYTES, size_bytes)
        for offset in range(start, end, chunk_bytes):
            yield offset, min(chunk_bytes, end - offset)
        at = end


def _read_whole(calls: Calls, descriptor: int, offset: int, length: int) -> bytes:
    parts = []
    while length:
        if not (part := calls.read(descriptor, length, offset)):
            raise Busy(errno.EBUSY, f"the file ends at byte {offset} now")
        parts.append(part)
        offset += len(part)
        length -= len(part)
    return b"".join(parts)


def _write_whole(calls: Calls, descriptor: int, data: bytes, offset: int) -> None:
    while data:
        written = calls.write(descriptor, data, offset)
        if written <= 0:
            raise LustreError(errno.EIO, f"a write at byte {offset} wrote nothing")
        data = data[written:]
        offset += written


DIRECT_BYTES = 16 << 20
"""Minimum size of files that are read with direct I/O. Smaller files gain nothing from it."""


class LeaseMover(inspection.FileEngine):
    """Holds no state."""

    def __init__(self, calls: Calls, destination: Destination, clock: Clock | None = None) -> None:
        super().__init__(destination)
        self._calls = calls
        self._clock = clock or SystemClock()

    def facts_of(self, move: Move, batch: DestinationState, *, take: bool = True) -> FileFacts | MoveOutcome:
        return inspection.facts_before(self._calls, move, batch, _engine_check, take=take)

    def move_file(self, move: Move, batch: DestinationState) -> MoveOutcome:
        """Move one file. Examines it by name first, and opens it for writing only if that disturbs no application."""
        try:
            status = self._calls.status_of(move.path)
            layout = self._calls.layout_of(move.path)
            sure = (checks.is_ordinary(move, status, layout) and batch.no_room(move, status.size_bytes) is None
                    and not (layout is not None and inspection.is_as_wanted(layout, move.layout, batch.pools)))
        except Stale:
            return replace(inspection.removed_outcome(move), not_copied=1.0)  # there is no lease yet: it is gone
        except OSError as error:
            return replace(outcome_of_error(move, error), not_copied=1.0)
        # the room is taken under the lease
        if not sure and isinstance(found := self.facts_of(move, batch, take=False), MoveOutcome):
            return replace(found, not_copied=1.0)
        return self._exchange(move, status, batch)

    def _exchange(self, move: Move, status: Status, batch: DestinationState) -> MoveOutcome:
        attempt = _Attempt(self._calls, move, batch)
        failure: OSError | None = None
        try:
            with ExitStack() as held:
                if (refused := attempt.run(held, status)) is not None:
                    return replace(refused, not_copied=attempt.not_copied(status.size_bytes))
        except OSError as error:
            failure = error
        except ValueError as error:
            return MoveOutcome(move, MoveResult.REFUSED, "wanted-layout", str(error))
        if failure is not None and not attempt.exchange_begun:
            return replace(self._not_begun(move, attempt, failure, batch),
                           not_copied=attempt.not_copied(status.size_bytes))
        copied_bytes = sum(chunk.length for chunk in attempt.chunks)
        if failure is None and attempt.is_the_copy:
            return MoveOutcome(move, MoveResult.DONE, copied_bytes=copied_bytes)
        assert attempt.facts is not None
        then = inspection.Verification(self._calls, move, attempt.facts, attempt.copied, self._clock)
        return replace(then.outcome(batch.pools_afterwards(), failure), copied_bytes=copied_bytes)

    def _not_begun(self, move: Move, attempt: _Attempt, failure: OSError, batch: DestinationState) -> MoveOutcome:
        if (inspection.is_gone(self._calls, attempt.facts, failure) if attempt.facts is not None
                else isinstance(failure, Stale) and not attempt.opened):
            return inspection.removed_outcome(move)
        # immutable or append-only: the facts show which
        if (isinstance(failure, NotPermitted) and not attempt.opened
                and isinstance(found := self.facts_of(move, batch, take=False), MoveOutcome)):
            return found
        return outcome_of_error(move, failure)


def _engine_check(move: Move, facts: FileFacts) -> Refusal | None:
    if checks.enters_mdt(move.layout, facts.layout):
        return Refusal(Reason.TO_MDT, "data from targets gets to an MDT by mirroring, which this engine does not do; "
                       "the engine `lfs` moves such files")
    if FileFlags.ENCRYPTED in facts.flags:
        return Refusal(Reason.ENCRYPTED, "the file is encrypted: this engine does not copy encrypted files")
    return None


class _Attempt:
    """One attempt to move one file, and the state that it reached."""

    def __init__(self, calls: Calls, move: Move, batch: DestinationState) -> None:
        self._calls = calls
        self._move = move
        self._batch = batch
        self.opened = False
        self.facts: FileFacts | None = None
        """The file as last examined under the lease."""
        self.copying = False
        """Whether it has begun to copy."""
        self.chunks: list[Chunk] = []
        self.copied: inspection.VerifiedCopy | None = None
        """The copy just before the exchange. The file must have its objects afterwards."""
        self.exchange_begun = False
        self.is_the_copy = False
        """Whether the file was examined after the exchange, and matches the copy in every point."""

    def run(self, held: ExitStack, status: Status) -> MoveOutcome | None:
        """Run all steps. Returns the outcome if the file must not be moved. Raises OSError. ``held`` closes files."""
        calls = self._calls
        source = calls.open_for_swap(self._move.path, status.size_bytes >= DIRECT_BYTES)
        held.callback(self._close, source)
        self.opened = True
        # from here on, whoever opens it for writing, truncates or removes it breaks the lease
        calls.lease(source)
        facts = self.facts = read_open_facts(calls, source)
        if (refusal := inspection.refusal_before(self._move, facts, self._batch, _engine_check)) is not None:
            return refusal
        version = calls.data_version(source)  # if a lease ever fails to break
        volatile = self._volatile(source, facts, held)
        self.copying = True
        for chunk in copy_data(calls, source, volatile, facts.status):
            self.chunks.append(chunk)
        calls.sync(volatile)  # a target may fail after the exchange
        verify_copy(calls, source, volatile, self.chunks)
        if calls.data_version(source) != version:  # as above
            raise Busy(errno.EBUSY, "its data changed while it was copied")
        facts = self._must_be_the_same(source, facts)
        # objects bring their times along, so the copy gets those of the file
        calls.set_times(volatile, facts.status.atime_ns, facts.status.mtime_ns)
        self.copied = copied = self._copy_of_everything(volatile, facts)
        for descriptor in source, volatile:
            with suppress(OSError):  # only saves memory of the node
                calls.drop_cache(descriptor)
        # as late as possible: this process may have hung, while another one took over
        if why := self._move.fence():
            return halted_outcome(self._move, why)
        require_lease(calls, source)  # the MDT checks it once more
        self.exchange_begun = True  # whatever error follows, only the file shows what happened
        calls.swap_and_close(source, volatile, version, copied.version)
        if not checks.leaves_mdt(self._move.layout, facts.layout):  # else this client has cached old times
            with suppress(OSError):  # the file is then examined by FID
                self._examine_open(source, facts, copied)
        return None

    def not_copied(self, size_bytes: int) -> float:
        """Share of the file that was certainly not copied: neither in whole chunks nor in the one after them."""
        if not self.copying:
            return 1.0
        copied_bytes = sum(chunk.length for chunk in self.chunks) + CHUNK_BYTES
        return max(0.0, 1 - copied_bytes / max(size_bytes, 1))

    def _volatile(self, source: int, facts: FileFacts, held: ExitStack) -> int:
        calls = self._calls
        mdt_index = calls.mdt_index(source)
        volatile = calls.create_volatile(self._move.path, mdt_index, self._move.layout, source)
        held.callback(self._close, volatile)
        copy_fid = calls.fid(volatile)
        # compared four ways: an exchange across MDTs destroys the data, some seconds later
        indices = {mdt_index, calls.mdt_index(volatile), calls.mdt_index_of(facts.fid), calls.mdt_index_of(copy_fid)}
        if len(indices) != 1 or mdt_index < 0 or copy_fid == facts.fid:
            raise LustreError(errno.EXDEV, f"file {facts.fid} and its copy {copy_fid} are not on one MDT: {indices}")
        calls.set_owner(volatile, facts.status.uid, facts.status.gid)  # the MDT exchanges with no other owner's
        if calls.project(volatile) != facts.project:
            calls.set_project(volatile, facts.project)
        return volatile

    def _must_be_the_same(self, source: int, before: FileFacts) -> FileFacts:
        # no request, as long as this client holds the locks; the archive state always takes one
        now = read_open_facts(self._calls, source, None if len(self.chunks) > 1 else before.hsm)
        # none of this breaks a lease: owner, project, times, flags, pin
        if now.kept != before.kept:
            raise Busy(errno.EBUSY, "its time, owner, project, layout, flags, archive state or pin changed")
        self.facts = now
        return now

    def _copy_of_everything(self, volatile: int, facts: FileFacts) -> inspection.VerifiedCopy:
        layout = self._calls.layout(volatile)
        if layout is None or not same_shape(layout, self._move.layout):
            raise LustreError(errno.EIO, "Lustre gave the copy another layout than requested")
        # Lustre takes any target where a pool has none
        if astray := inspection.objects_outside_pool(layout, self._batch.pools):
            raise LustreError(errno.EIO, f"Lustre placed the copy outside its pool: {'; '.join(astray)}")
        size_bytes = self._calls.size(volatile)
        if size_bytes != facts.status.size_bytes:
            raise LustreError(errno.EIO, f"the copy has {size_bytes} bytes, the file {facts.status.size_bytes}")
        # without a flush: the copy is on the disk, and this client would lose its lock
        return inspection.VerifiedCopy(layout, self._calls.stored_version(volatile))

    def _examine_open(self, source: int, facts: FileFacts, copied: inspection.VerifiedCopy) -> None:
        # the stat first: it makes a client fetch a layout whose lock it has lost, where the attribute alone returns the
        # cached one (lov_object_layout_get in lustre/lov/lov_object.c)
        status = self._calls.status(source)
        layout = self._calls.layout(source)
        self.is_the_copy = inspection.is_the_copy(facts, copied, status, layout, self._calls.project(source))

    def _close(self, descriptor: int) -> None:
        with suppress(OSError):  # the exchange may have closed the source already
            self._calls.close(descriptor)
