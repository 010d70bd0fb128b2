"""Examination of a file before and after its move, for both engines.

A dry run consists of the examination before the move. After an exchange the file is read again: return codes and
messages decide nothing. The outcome is doubtful if the file differs in a way that no other user can have caused. If
somebody writes, truncates, removes, replaces or moves the file meanwhile, or sets its times, owner or mode, that change
stands, and the outcome reports it.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from lustre.errors import Gone, Stale, copied_before
from lustre.filesystem import Calls, Filesystem, Quota, Status
from lustre.layout.model import Layout, StripeObject, same_shape
from tierd.act.movers import checks
from tierd.act.movers.checks import FileFacts, enters_mdt, layout_objects, leaves_mdt, read_facts, read_open_facts
from tierd.act.movers.moves import (
    Halt,
    Move,
    MoveOutcome,
    MoveResult,
    halted_outcome,
    never_halt,
    outcome_of_error,
    refused_outcome,
)
from tierd.act.movers.space_and_quota import Destination, DestinationState
from tierd.clock import Clock
from tierd.refusal import Reason, Refusal

_SECOND_NS = 1_000_000_000
_LOOK_AGAIN_SECONDS = (0.0, 1.0, 4.0, 10.0, 15.0)
"""Waits between attempts to examine a file after its move: a target was restarted, or has evicted this client."""
_TRIES = 6
_TRY_AGAIN_SECONDS = 0.4


@dataclass(frozen=True, slots=True)
class VerifiedCopy:
    """The copy just before the exchange: its layout with objects, and its data version. The file must match it."""

    layout: Layout
    version: int


@dataclass(frozen=True, slots=True)
class Verification:
    """Decides how a move went by the file as it was before the exchange, the copy if the engine knows it, and now."""

    calls: Calls
    move: Move
    before: FileFacts
    copied: VerifiedCopy | None
    clock: Clock

    def outcome(self, pools: Mapping[str, tuple[str, ...]], failure: OSError | None) -> MoveOutcome:
        """The outcome of the move. Restores the times that Lustre changes when the exchange takes data from the MDT."""
        move, before, copied = self.move, self.before, self.copied
        try:
            seen = self._seen()
        except OSError as error:
            detail = f"tierd cannot examine the file after the exchange: {error}"
            return MoveOutcome(move, MoveResult.DOUBTFUL, "unknown", detail)
        if seen is None:
            return removed_outcome(move)
        now, version = seen
        if _as_it_was(before, now):
            if failure is not None:
                return outcome_of_error(move, failure)
            detail = "no error was reported, but the file was not moved"
            return MoveOutcome(move, MoveResult.FAILED, "not-moved", detail, now.layout)
        if self._moved_by_others(now):
            if copied is not None or failure is not None:
                detail = "somebody else changed the layout during the move"
                return MoveOutcome(move, MoveResult.GAVE_WAY, "moved", detail, now.layout)
            detail = "the file has neither the old nor the requested layout, as if somebody else had moved it"
            return MoveOutcome(move, MoveResult.FAILED, "other-layout", detail, now.layout)
        doubts = [*self._doubts_about_place(now, pools), *self._doubts_about_file(now, version)]
        result = MoveResult.DOUBTFUL if doubts else MoveResult.DONE
        reason = "verification" if doubts else ""
        # the exchange was made, and only its answer was lost
        if not doubts and failure is not None and copied is not None:
            doubts.append(f"Lustre reported {failure}, but the move was done")
        if lost := before.belongings.names - now.belongings.names:  # an exchange touches none: somebody removed them
            doubts.append(f"extended attributes were removed during the move: {', '.join(sorted(lost))}")
        return MoveOutcome(move, result, reason, "; ".join(doubts), now.layout)

    def _seen(self) -> tuple[FileFacts, int] | None:
        for seconds in (*_LOOK_AGAIN_SECONDS, None):
            try:
                now, version = self._examine_once()
            except OSError:
                # after an error of a target: only the MDT knows whether the file still exists
                with suppress(OSError):
                    if not self.calls.exists(self.before.fid):
                        return None
                if seconds is None:
                    raise
                self.clock.wait(seconds)
            else:
                return None if now.status.link_count < 1 else (now, version)  # removed, though this descriptor holds it
        raise AssertionError("the last attempt returns or raises")

    def _examine_once(self) -> tuple[FileFacts, int]:
        calls, before, wanted = self.calls, self.before, self.move.layout
        descriptor = calls.open_fid(before.fid)
        try:
            if enters_mdt(wanted, before.layout):  # else this client may show the time at which it wrote the mirror
                calls.data_version(descriptor)
            now = read_open_facts(calls, descriptor, before.hsm)  # the result does not depend on the archive
            if self.copied is None:
                return now, 0
            version = calls.data_version(descriptor)
            if leaves_mdt(wanted, before.layout) and layout_objects(now.layout) != layout_objects(before.layout):
                return times_restored(calls, descriptor, before, self.copied, now, version=version, clock=self.clock)
            return now, version
        finally:
            calls.close(descriptor)

    def _moved_by_others(self, now: FileFacts) -> bool:
        """Whether somebody else changed the layout: the file has no object of tierd's copy."""
        if now.layout is None:
            return False
        present, had, ours = _all_objects(now.layout), _all_objects(self.before.layout), self._objects_of_copy
        # all earlier objects and more are a mirror that somebody made
        if present & ours or (present & had and not had <= present):
            return False
        if self.copied is None:
            return not same_shape(now.layout, self.move.layout)  # all that shows without a known copy
        return bool(present and ours)

    @property
    def _objects_of_copy(self) -> set[StripeObject]:
        return _all_objects(self.copied.layout if self.copied is not None else None)

    def _doubts_about_place(self, now: FileFacts, pools: Mapping[str, tuple[str, ...]]) -> list[str]:
        """A layout with all objects of the copy may have got a mirror or been extended since."""
        ours = self._objects_of_copy
        whole = ours <= _all_objects(now.layout)
        if now.layout is None or not (same_shape(now.layout, self.move.layout) or (ours and whole)):
            return ["the layout is neither the old nor the requested one"]
        return objects_outside_pool(now.layout, pools) + ([] if whole else ["only some of its objects are the copy's"])

    def _doubts_about_file(self, now: FileFacts, version: int) -> Iterator[str]:
        before = self.before
        if now.fid != before.fid:
            yield f"the FID was {before.fid} and is {now.fid}"
        # no doubt about owner and mode: Lustre refuses a copy of another owner
        if now.project != before.project:
            yield (f"the project was {before.project} and is {now.project}: its objects may count for the old one "
                   "until the project is set again")
        size_bytes, mtime = now.status.size_bytes, _seconds(now.status.mtime_ns)
        size_bytes_then, mtime_then = before.status.size_bytes, _seconds(before.status.mtime_ns)
        # somebody wrote: its version shows that, or else its time. It has whole seconds, so such an engine gets no file
        # that was modified just now
        if version != self.copied.version if self.copied is not None else mtime != mtime_then:
            return
        if size_bytes != size_bytes_then:
            yield f"the size was {size_bytes_then} bytes and is {size_bytes}, though nobody wrote to the file"
        if mtime > mtime_then and leaves_mdt(self.move.layout, before.layout):
            yield "Lustre changed the modification time, and tierd cannot restore it: is the MDS clock ahead?"


def is_the_copy(before: FileFacts, copied: VerifiedCopy, status: Status, layout: Layout | None, project: int) -> bool:
    """Whether the file matches the copy in every point. Then no further examination is needed."""
    then = before.status
    return (
        layout is not None and layout_objects(layout) == layout_objects(copied.layout)
        and same_shape(layout, copied.layout)
        and (status.size_bytes, _seconds(status.mtime_ns)) == (then.size_bytes, _seconds(then.mtime_ns))
        and (status.uid, status.gid, status.mode, project) == (then.uid, then.gid, then.mode, before.project)
        and status.link_count > 0)


def removed_outcome(move: Move) -> MoveOutcome:
    return MoveOutcome(move, MoveResult.GAVE_WAY, Reason.GONE, "the file was removed or replaced")


def is_gone(calls: Calls, before: FileFacts, error: OSError) -> bool:
    """Whether an error means that the file was removed or replaced. In doubt: False.

    Lustre returns ENOENT if its MDT has no such object, and ESTALE if a client still knew the name
    (``ll_intent_file_open`` in lustre/llite/file.c), for a broken lease, and for every error of opening by FID.
    """
    if not isinstance(error, (Gone, Stale)):
        return False
    with suppress(OSError):
        return not calls.exists(before.fid)
    return False


def is_as_wanted(layout: Layout, wanted: Layout, pools: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether the file has the layout, and all objects are in the named pools: the pool name alone proves nothing."""
    return same_shape(layout, wanted) and not objects_outside_pool(layout, pools)


def objects_outside_pool(layout: Layout, pools: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Objects outside the pool of their component, as after a creation in an empty pool."""
    found = []
    for component in layout.components:
        if component.on_mdt or not component.pool:  # Lustre may name a pool for data on the MDT: it has no effect
            continue
        members = {int(target[-4:], 16) for target in pools.get(component.pool, ())}
        outside = [o.ost_index for o in component.objects if o.ost_index not in members]
        found += [f"an object on OST{index:04x}, outside pool {component.pool!r}" for index in outside]
    return found


def times_restored(calls: Calls, descriptor: int, before: FileFacts, copied: VerifiedCopy, now: FileFacts,
                   version: int, clock: Clock) -> tuple[FileFacts, int]:
    """Restore the times of a file unless somebody has written to it since. Returns the file afterwards."""
    mtime_then = _seconds(before.status.mtime_ns)
    for attempt in range(_TRIES):
        mtime = _seconds(now.status.mtime_ns)
        if version != copied.version or mtime < mtime_then or (attempt and mtime == mtime_then):
            return now, version  # a client may see the MDT's change late, so the first attempt always sets
        exchanged = now.status
        atime_ns = max(exchanged.atime_ns, before.status.atime_ns)
        calls.set_times(descriptor, atime_ns, before.status.mtime_ns)
        # setting times counts as no write (ofd_attr_set in lustre/ofd/ofd_objects.c counts sizes only): another one is
        version = calls.data_version(descriptor)
        now = replace(now, status=calls.status(descriptor))
        if version != copied.version:
            # the time of that write must stand; if it is lost, the present time, moments later, replaces it
            if _seconds(now.status.mtime_ns) <= mtime_then:
                late_ns = max(exchanged.mtime_ns, int(clock.now()) * _SECOND_NS)
                calls.set_times(descriptor, now.status.atime_ns, late_ns)
                now = replace(now, status=calls.status(descriptor))
            return now, version
        # up to 2.17 an MDT whose clock is ahead drops the times silently (mdd_fix_attr), until its clock has passed
        # them
        if _seconds(now.status.mtime_ns) > mtime_then:
            clock.wait(_TRY_AGAIN_SECONDS)
    return now, version


def _as_it_was(before: FileFacts, now: FileFacts) -> bool:
    """Whether the file has its earlier objects. A writer may have added some in components that had none."""
    if before.layout is None or now.layout is None:
        return before.layout is now.layout
    was, is_ = layout_objects(before.layout), layout_objects(now.layout)
    return same_shape(now.layout, before.layout) and len(was) == len(is_) and all(
        not one or other == one for one, other in zip(was, is_, strict=True))


def _all_objects(layout: Layout | None) -> set[StripeObject]:
    return {each for component in layout_objects(layout) for each in component}


def _seconds(time_ns: int) -> int:
    return time_ns // _SECOND_NS


EngineCheck = Callable[[Move, FileFacts], Refusal | None]
"""Further check of one engine. Raises ValueError for a layout that the engine cannot request."""


def facts_before(calls: Calls, move: Move, batch: DestinationState, also: EngineCheck, *,
                 take: bool = True) -> FileFacts | MoveOutcome:
    """Facts of a file that may be moved; otherwise the outcome, with nothing attempted. ``take`` False reserves no
    room: the file will be examined again.
    """
    try:
        facts = read_facts(calls, move.path)
        return refusal_before(move, facts, batch, also, take=take) or facts
    except Stale:  # there is no lease yet: the file is gone
        return removed_outcome(move)
    except OSError as error:
        return outcome_of_error(move, error)
    except ValueError as error:
        return MoveOutcome(move, MoveResult.REFUSED, "wanted-layout", str(error))


def refusal_before(move: Move, facts: FileFacts, batch: DestinationState, also: EngineCheck, *,
                   take: bool = True) -> MoveOutcome | None:
    """The outcome for a file that must not be moved. None if it may be moved; its room is then reserved. Raises
    OSError, and ValueError for a layout that the engine cannot request.
    """
    refusal = checks.refusal_for(move, facts)
    if refusal is None and facts.layout is not None and is_as_wanted(facts.layout, move.layout, batch.pools):
        return MoveOutcome(move, MoveResult.ALREADY, "already", "the file already has this layout")
    refusal = (refusal or checks.changed_layout_refusal(move, facts.layout) or also(move, facts)
               or batch.refusal(move, facts, take=take))
    return None if refusal is None else refused_outcome(move, refusal)


class FileEngine:
    """A mover for any number of threads, which shares the destination state between files of a batch. What engines
    share: a dry run is the examination before a move, and files are moved one after the other.
    """

    files_at_a_time = 1
    """Files per call: one, or as many as one process of the engine moves."""

    def __init__(self, destination: Destination) -> None:
        self._destination = destination

    def batch(self) -> DestinationState:
        """Pools, space, quotas and directories, read once for all files of a batch."""
        return DestinationState(self._destination)

    def facts_of(self, move: Move, batch: DestinationState) -> FileFacts | MoveOutcome:
        """Facts of a file that may be moved, or the outcome of a move not begun."""
        raise NotImplementedError

    def move_file(self, move: Move, batch: DestinationState) -> MoveOutcome:
        raise NotImplementedError

    def move(self, moves: Iterable[Move], halt: Halt = never_halt) -> Iterator[MoveOutcome]:
        return self.move_batch(moves, halt, self.batch())

    def move_batch(self, moves: Iterable[Move], halt: Halt, batch: DestinationState) -> Iterator[MoveOutcome]:
        """Move files with the state of a batch, which other calls may share."""
        for move in moves:
            yield halted_outcome(move, why) if (why := halt()) else self.move_file(move, batch)

    def examine(self, moves: Sequence[Move]) -> Iterator[MoveOutcome]:
        batch = self.batch()
        for move in moves:
            found = self.facts_of(move, batch)
            yield found if isinstance(found, MoveOutcome) else MoveOutcome(move, MoveResult.MOVABLE)


class MovingFilesystem(Filesystem, Protocol):
    """A file system in memory, which moves files itself. On a mounted one an engine moves them."""

    def migrate(self, path: str, layout: Layout) -> None:
        """Rewrite a file with another layout, without disturbing an application that uses it.

        Raises OSError EBUSY if a process has the file open for writing or opens it during the migration, and ENOSPC if
        the pool is full. The file stays complete in each case.
        """


class PortMover(FileEngine):
    """An engine over the file system port: for the simulator, and any other port that can migrate one file."""

    def __init__(self, filesystem: MovingFilesystem) -> None:
        super().__init__(Destination(filesystem.pools, filesystem.space, lambda *_: Quota(0, 0, 0)))
        self._filesystem = filesystem

    def facts_of(self, move: Move, batch: DestinationState) -> MoveOutcome:
        """Checks that the file exists and is the chosen one."""
        try:
            status = self._filesystem.status(move.path)
        except OSError as error:
            return _port_failure(move, error)
        if move.fid is not None and status.fid != move.fid:
            return MoveOutcome(move, MoveResult.REFUSED, "changed", "another file has this name now")
        return MoveOutcome(move, MoveResult.MOVABLE)

    def move_file(self, move: Move, batch: DestinationState) -> MoveOutcome:
        found = self.facts_of(move, batch)
        if found.result is not MoveResult.MOVABLE:
            return replace(found, not_copied=1.0)
        try:
            self._filesystem.migrate(move.path, move.layout)
        except OSError as error:
            failed, copied_bytes = _port_failure(move, error), copied_before(error)
            if copied_bytes is None:
                return failed
            size_bytes = max(move.size_bytes or 0, copied_bytes, 1)
            return replace(failed, copied_bytes=copied_bytes, not_copied=1 - copied_bytes / size_bytes)
        return MoveOutcome(move, MoveResult.DONE)


def _port_failure(move: Move, error: OSError) -> MoveOutcome:
    found = outcome_of_error(move, error)
    if error.errno in {errno.EBUSY, errno.ETXTBSY, errno.EAGAIN}:
        return replace(found, result=MoveResult.GAVE_WAY, reason="busy")
    return found
