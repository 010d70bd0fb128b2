"""The engine in this process: a lease, a copy without a name, and one atomic exchange of layouts.

Whoever opens the file for writing, truncates or removes it while it is copied breaks the lease and wins: the copy is
thrown away. The exchange itself is one transaction on the MDT, in which the lease is checked once more. Dying at any
instruction leaves the file with its old layout or its new one, and the other objects destroyed, because a volatile
file and a lease both end with their process.

The copy must lie on the MDT of its source. On another one Lustre accepts the exchange, and destroys the data some
seconds later.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace

from lustre.calls import Calls, FileFlags
from lustre.errors import Busy, LustreError
from lustre.layout import same_shape
from tierd.act.movers import aftermath, checks, copying, examining, room
from tierd.act.movers.facts import Facts, look_at
from tierd.act.movers.outcome import Move, Outcome, Result, halted, of_error
from tierd.act.standstill import Halt, never

DIRECT_BYTES = 16 << 20
"""Files from this size on are read past the page cache: smaller ones gain nothing from it."""


class LeaseMover:
    """Implements :class:`~tierd.act.movers.outcome.Mover`. Holds no state: any number of threads may use one."""

    def __init__(self, calls: Calls, destination: room.Destination) -> None:
        self._calls = calls
        self._destination = destination

    def move(self, moves: Sequence[Move], halt: Halt = never) -> Iterator[Outcome]:
        """Move these, one after the other."""
        batch = room.Batch(self._destination)
        for move in moves:
            if why := halt():
                yield halted(move, why)
                continue
            found = examining.facts_of(self._calls, move, batch, _not_encrypted)
            yield found if isinstance(found, Outcome) else self._exchange(move, found)

    def examine(self, moves: Sequence[Move]) -> Iterator[Outcome]:
        """Look, and move nothing."""
        return examining.outcomes(self._calls, moves, room.Batch(self._destination), _not_encrypted)

    def _exchange(self, move: Move, facts: Facts) -> Outcome:
        """Copy and exchange; whatever goes wrong, say what the file is afterwards by looking at it."""
        attempt = _Attempt(self._calls, move, facts)
        failure: OSError | None = None
        try:
            with ExitStack() as held:
                attempt.run(held)
        except OSError as error:
            failure = error
        if not attempt.exchange_begun:
            return of_error(move, failure, facts.layout) if failure else Outcome(move, Result.FAILED, "error")
        outcome = aftermath.judge(self._calls, move, attempt.facts, attempt.copied, self._destination.pools(), failure)
        return replace(outcome, copied_bytes=sum(chunk.length for chunk in attempt.chunks))


def _not_encrypted(_: Move, facts: Facts) -> checks.Refusal | None:
    if FileFlags.ENCRYPTED in facts.flags:
        return checks.Refusal("encrypted", "encrypted: this engine does not copy encrypted files")
    return None


class _Attempt:
    """One try at one file: what was reached when it ended."""

    def __init__(self, calls: Calls, move: Move, facts: Facts) -> None:
        self._calls = calls
        self._move = move
        self.facts = facts
        """The file as it was when last looked at: at first before, then under the lease."""
        self.chunks: list[copying.Chunk] = []
        self.copied: aftermath.Copy | None = None
        """The copy as it was just before the exchange: the file must have its objects afterwards."""
        self.exchange_begun = False

    def run(self, held: ExitStack) -> None:
        """All steps. Raises OSError; descriptors end with ``held``."""
        calls, facts = self._calls, self.facts
        source = calls.open_for_swap(self._move.path, facts.status.size_bytes >= DIRECT_BYTES)
        held.callback(self._close, source)
        calls.lease(source)
        self._must_be_the_same(source)
        volatile = self._volatile(source, held)
        version = calls.data_version(source)
        self.chunks = copying.copy(calls, source, volatile, facts.status.size_bytes)
        calls.sync(volatile)
        copying.compare(calls, source, volatile, self.chunks)
        if calls.data_version(source) != version:
            raise Busy(errno.EBUSY, "its data changed while it was copied")
        self._must_be_the_same(source)
        calls.set_times(volatile, facts.status.atime_ns, facts.status.mtime_ns)
        self.copied = copied = self._copy_of_everything(volatile)
        self._drop_caches(source, volatile)
        copying.must_hold(calls, source)
        self.exchange_begun = True
        calls.swap_and_close(source, volatile, version, copied.version)

    def _volatile(self, source: int, held: ExitStack) -> int:
        """The copy to be, on the source's MDT, belonging to whom the source belongs."""
        calls, facts = self._calls, self.facts
        mdt_index = calls.mdt_index(source)
        volatile = calls.create_volatile(self._move.path, mdt_index, self._move.layout, source)
        held.callback(self._close, volatile)
        copy_fid = calls.fid(volatile)
        indices = {mdt_index, calls.mdt_index(volatile), calls.mdt_index_of(facts.fid), calls.mdt_index_of(copy_fid)}
        if len(indices) != 1 or mdt_index < 0 or copy_fid == facts.fid:
            raise LustreError(errno.EXDEV, f"file {facts.fid} and its copy {copy_fid} are not on one MDT: {indices}")
        calls.set_owner(volatile, facts.status.uid, facts.status.gid)
        if calls.project(volatile) != facts.project:
            calls.set_project(volatile, facts.project)
        given = calls.status(volatile)
        if (given.uid, given.gid, calls.project(volatile)) != (facts.status.uid, facts.status.gid, facts.project):
            raise LustreError(errno.EPERM, "the copy could not be given to the file's owner and project")
        return volatile

    def _must_be_the_same(self, source: int) -> None:
        now = look_at(self._calls, source)
        changed = now.changed_since(self.facts)
        if changed:
            raise Busy(errno.EBUSY, changed)
        self.facts = now

    def _copy_of_everything(self, volatile: int) -> aftermath.Copy:
        layout = self._calls.layout(volatile)
        if layout is None or not same_shape(layout, self._move.layout):
            raise LustreError(errno.EIO, "Lustre gave the copy another layout than was asked for")
        size_bytes = self._calls.status(volatile).size_bytes
        if size_bytes != self.facts.status.size_bytes:
            raise LustreError(errno.EIO, f"the copy has {size_bytes} bytes, the file {self.facts.status.size_bytes}")
        return aftermath.Copy(layout, self._calls.data_version(volatile))

    def _drop_caches(self, *descriptors: int) -> None:
        for descriptor in descriptors:
            with suppress(OSError):  # a courtesy to the node, no more
                self._calls.drop_cache(descriptor)

    def _close(self, descriptor: int) -> None:
        with suppress(OSError):  # the exchange has closed the source already; what it is then, is looked at
            self._calls.close(descriptor)
