"""A file examined before its move and after it, the same for both engines.

The examination before the move is all there is of a dry run. After an exchange the file is read anew: return codes and
messages decide nothing. A doubt is what this cannot explain and nobody else can have done. If somebody writes,
truncates, removes, replaces or moves the file meanwhile, or sets its times, owner or mode, that change stands, and the
outcome reports it; it is no doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lustre.errors import Gone, Stale
from lustre.filesystem import Calls, Status
from lustre.layout.model import Layout, same_shape
from tierd.act.movers import checks
from tierd.act.movers.checks import FileFacts, layout_objects, leaves_mdt, read_facts, read_open_facts
from tierd.act.movers.moves import Move, MoveOutcome, MoveResult, outcome_of_error
from tierd.act.movers.space_and_quota import DestinationState
from tierd.clock import Clock
from tierd.refusal import Refusal

_SECOND_NS = 1_000_000_000
_LOOKS = 2
_TRIES = 6
_TRY_AGAIN_SECONDS = 0.4


@dataclass(frozen=True, slots=True)
class VerifiedCopy:
    """What the file must have now, where an engine knows it: the copy's layout, object by object, and its version."""

    layout: Layout
    version: int


def verify_move(
    calls: Calls,
    move: Move,
    before: FileFacts,
    copied: VerifiedCopy | None,
    pools: Mapping[str, tuple[str, ...]],
    failure: OSError | None,
    clock: Clock,
) -> MoveOutcome:
    """Say how it went, against what the file was when it was last looked at before the exchange.

    Where the exchange took data off the MDT, this also puts back the times that Lustre changed.
    """
    try:
        seen = _seen(calls, move, before, copied, clock)
    except OSError as error:
        detail = f"it cannot be looked at after the exchange: {error}"
        return MoveOutcome(move, MoveResult.DOUBTFUL, "unknown", detail, before.layout, None, error=failure or error)
    if seen is None:
        return removed_outcome(move, before.layout, failure)
    now, version = seen
    if _as_it_was(before, now):
        if failure is not None:
            return outcome_of_error(move, failure, before.layout)
        detail = "no error was reported, yet it lies where it lay"
        return MoveOutcome(move, MoveResult.FAILED, "not-moved", detail, before.layout, now.layout)
    if _moved_by_others(move, before, now, copied):
        return _given_way(move, before, now, copied, failure)
    doubts = (_placement(move, now, copied, pools) + _belongings(before, now)
              + _contents(move, before, now, copied, version))
    result = MoveResult.DOUBTFUL if doubts else MoveResult.DONE
    if not doubts and failure is not None and copied is not None:
        doubts.append(f"Lustre reported {failure}, yet it was done")
    reason = "" if result is MoveResult.DONE else "verification"
    return MoveOutcome(move, result, reason, "; ".join(doubts), before.layout, now.layout, error=failure)


def is_the_copy(before: FileFacts, copied: VerifiedCopy, status: Status, layout: Layout | None, project: int) -> bool:
    """Whether the file is what the exchange should have made of it, in every point: then no more need be asked."""
    then = before.status
    return (
        layout is not None
        and layout_objects(layout) == layout_objects(copied.layout)
        and same_shape(layout, copied.layout)
        and (status.size_bytes, _seconds(status.mtime_ns)) == (then.size_bytes, _seconds(then.mtime_ns))
        and (status.uid, status.gid, status.mode, project) == (then.uid, then.gid, then.mode, before.project)
        and status.link_count > 0
    )


def removed_outcome(move: Move, before: Layout | None, error: OSError | None) -> MoveOutcome:
    """The outcome of a move of a file that is gone: removed, or another one took its name."""
    return MoveOutcome(move, MoveResult.GAVE_WAY, "gone", "removed or replaced meanwhile", before, None,
                   error=error if isinstance(error, Gone) else Gone(2, "removed or replaced", move.path))


def is_gone(calls: Calls, before: FileFacts, error: OSError) -> bool:
    """Whether an error that may say so is one of a file that was removed or replaced. Not knowing counts as no.

    Lustre answers ENOENT where its MDT has no such object, and ESTALE where a client still knew the name
    (``ll_intent_file_open`` in lustre/llite/file.c), for a broken lease, and for every error of opening by FID.
    """
    if not isinstance(error, (Gone, Stale)):
        return False
    try:
        return not calls.exists(before.fid)
    except OSError:
        return False


def is_as_wanted(layout: Layout, wanted: Layout, pools: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether the file has that layout, and its objects are where its pools say: a name alone proves nothing."""
    return same_shape(layout, wanted) and not objects_outside_pool(layout, pools)


def objects_outside_pool(layout: Layout, pools: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Objects outside of the pool their component names, as they are when the pool was empty at creation."""
    found = []
    for component in layout.components:
        if component.on_mdt or not component.pool:  # Lustre may put a pool's name on data on the MDT: it means nothing
            continue
        members = {int(target[-4:], 16) for target in pools.get(component.pool, ())}
        outside = [o.ost_index for o in component.objects if o.ost_index not in members]
        found += [f"an object on OST{index:04x}, outside of pool {component.pool!r}" for index in outside]
    return found


def _seen(
    calls: Calls, move: Move, before: FileFacts, copied: VerifiedCopy | None, clock: Clock
) -> tuple[FileFacts, int] | None:
    """The file now and its data version; None when it is gone. Raises OSError when neither can be found out.

    Whatever goes wrong while looking, the MDT is asked whether the file still is: only its word counts.
    """
    for look in range(_LOOKS):
        try:
            now, version = _look_once(calls, move, before, copied, clock)
        except OSError:
            if not calls.exists(before.fid):
                return None
            if look == _LOOKS - 1:
                raise
        else:
            return None if now.status.link_count < 1 else (now, version)
    raise AssertionError("a look ends with an answer or an error")


def _look_once(
    calls: Calls, move: Move, before: FileFacts, copied: VerifiedCopy | None, clock: Clock
) -> tuple[FileFacts, int]:
    descriptor = calls.open_fid(before.fid)
    try:
        now = read_open_facts(calls, descriptor)
        if copied is None:
            return now, 0
        version = calls.data_version(descriptor)
        if leaves_mdt(move.layout, before.layout) and layout_objects(now.layout) != layout_objects(before.layout):
            return _times_put_back(calls, descriptor, before, copied, now, version, clock)
        return now, version
    finally:
        calls.close(descriptor)


def _times_put_back(
    calls: Calls, descriptor: int, before: FileFacts, copied: VerifiedCopy, now: FileFacts, version: int, clock: Clock
) -> tuple[FileFacts, int]:
    """Give the file the times it had, unless somebody has written to it since; what it is then.

    Setting times changes no data version (``ofd_attr_set`` in lustre/ofd/ofd_objects.c counts only sizes). So the same
    version before and after says that nobody wrote in between; with another one his time must stand, and where ours
    came later than his it is set to the present, moments after he wrote. Up to 2.17 an MDT whose clock is ahead of ours
    silently drops the times (``mdd_fix_attr``): they are set again until it has passed.
    """
    mtime_then = _seconds(before.status.mtime_ns)
    for attempt in range(_TRIES):
        mtime = _seconds(now.status.mtime_ns)
        if version != copied.version or mtime < mtime_then or (attempt and mtime == mtime_then):
            return now, version  # a client may not see yet what its MDT did: at first they are set in any case
        exchanged = now.status
        atime_ns = max(exchanged.atime_ns, before.status.atime_ns)
        calls.set_times(descriptor, atime_ns, before.status.mtime_ns)
        version = calls.data_version(descriptor)
        now = replace(now, status=calls.status(descriptor))
        if version != copied.version:
            if _seconds(now.status.mtime_ns) <= mtime_then:
                late_ns = max(exchanged.mtime_ns, int(clock.now()) * _SECOND_NS)
                calls.set_times(descriptor, now.status.atime_ns, late_ns)
                now = replace(now, status=calls.status(descriptor))
            return now, version
        if _seconds(now.status.mtime_ns) > mtime_then:
            clock.wait(_TRY_AGAIN_SECONDS)
    return now, version


def _as_it_was(before: FileFacts, now: FileFacts) -> bool:
    """The very same objects, and more at most where none were yet: a writer has reached a further component."""
    if before.layout is None or now.layout is None:
        return before.layout is now.layout
    return same_shape(now.layout, before.layout) and _has_objects_of(now.layout, before.layout)


def _moved_by_others(move: Move, before: FileFacts, now: FileFacts, copied: VerifiedCopy | None) -> bool:
    """Whether somebody else gave it the layout it has: none of its objects is of our copy.

    They are others than it had, or all it had and more (a mirror). An engine that does not know its copy can tell by
    the layout only: another one than was asked for.
    """
    if now.layout is None:
        return False
    present = {o for component in layout_objects(now.layout) for o in component}
    ours = {o for component in layout_objects(copied.layout) for o in component} if copied is not None else set()
    had = {o for component in layout_objects(before.layout) for o in component}
    if present & ours or (present & had and not had <= present):
        return False
    if copied is None:
        return not same_shape(now.layout, move.layout)
    return bool(present and ours)


def _given_way(
    move: Move, before: FileFacts, now: FileFacts, copied: VerifiedCopy | None, failure: OSError | None
) -> MoveOutcome:
    """Nothing of ours is in it any more. An engine that reported success without a copy we know may have made this."""
    detail = "somebody else gave it another layout meanwhile"
    if copied is None and failure is None:
        detail = "it has neither its old layout nor the one asked for, as if somebody else had moved it"
        return MoveOutcome(move, MoveResult.FAILED, "other-layout", detail, before.layout, now.layout)
    return MoveOutcome(move, MoveResult.GAVE_WAY, "moved", detail, before.layout, now.layout, error=failure)


def _placement(
    move: Move, now: FileFacts, copied: VerifiedCopy | None, pools: Mapping[str, tuple[str, ...]]
) -> list[str]:
    if now.layout is None or not same_shape(now.layout, move.layout):
        return ["its layout is neither the old one nor the one asked for"]
    doubts = objects_outside_pool(now.layout, pools)
    if copied is not None and not _has_objects_of(now.layout, copied.layout):
        doubts.append("some of its objects are those of the copy, and some are not")
    return doubts


def _belongings(before: FileFacts, now: FileFacts) -> list[str]:
    """What Lustre could have lost. Mode and owner it cannot: an exchange with a copy of another owner is refused."""
    doubts = []
    if now.fid != before.fid:
        doubts.append(f"it is {now.fid} now and was {before.fid}")
    if now.project != before.project:
        doubts.append(f"it belongs to project {now.project} and belonged to {before.project}: its objects may count "
                      "for the old one, until it is given to its project again")
    if lost := before.belongings.names - now.belongings.names:
        doubts.append(f"extended attributes are gone: {', '.join(sorted(lost))}")
    return doubts


def _contents(move: Move, before: FileFacts, now: FileFacts, copied: VerifiedCopy | None, version: int) -> list[str]:
    """Size and modification time, unless somebody has written to it since.

    Where the version is known, the same one says that nobody has. Where it is not, another modification time does: it
    counts whole seconds, so a file that was modified a moment before the look is not given to such an engine at all.
    """
    size_bytes, mtime = now.status.size_bytes, _seconds(now.status.mtime_ns)
    size_bytes_then, mtime_then = before.status.size_bytes, _seconds(before.status.mtime_ns)
    if version != copied.version if copied is not None else mtime != mtime_then:
        return []
    doubts = []
    if size_bytes != size_bytes_then:
        doubts.append(f"it has {size_bytes} bytes and had {size_bytes_then}, and nobody has written to it")
    if mtime > mtime_then and leaves_mdt(move.layout, before.layout):
        doubts.append("Lustre changed its modification time, and it cannot be put back: is the clock of the MDS ahead?")
    return doubts


def _has_objects_of(layout: Layout, earlier: Layout) -> bool:
    """Every object of the earlier layout; a component that had none yet may have been written to since."""
    was, is_ = layout_objects(earlier), layout_objects(layout)
    return len(was) == len(is_) and all(not one or other == one for one, other in zip(was, is_, strict=True))


def _seconds(time_ns: int) -> int:
    return time_ns // _SECOND_NS


EngineCheck = Callable[[Move, FileFacts], Refusal | None]
"""What one engine looks at in addition. May raise ValueError for a layout it cannot ask for."""


def facts_before(
    calls: Calls, move: Move, batch: DestinationState, also: EngineCheck, *, take: bool = True
) -> FileFacts | MoveOutcome:
    """The file as it is, if it is to be moved; else the outcome, with nothing tried.

    ``take`` False leaves the room it needs to others: it will be looked at once more.
    """
    try:
        facts = read_facts(calls, move.path)
        return refusal_before(move, facts, batch, also, take=take) or facts
    except Stale as error:  # nothing has been leased yet: the name, or what it stood for, is gone
        return removed_outcome(move, None, error)
    except OSError as error:
        return outcome_of_error(move, error)
    except ValueError as error:
        return MoveOutcome(move, MoveResult.REFUSED, "wanted-layout", str(error))


def refusal_before(
    move: Move, facts: FileFacts, batch: DestinationState, also: EngineCheck, *, take: bool = True
) -> MoveOutcome | None:
    """Why a file that was looked at is left alone; None where it is to be moved, and then its room counts as taken.

    Raises OSError, and ValueError for a layout the engine cannot ask for.
    """
    refusal = checks.refusal_for(move, facts)
    if refusal is None and facts.layout is not None and is_as_wanted(facts.layout, move.layout,
                                                                                  batch.pools):
        return MoveOutcome(move, MoveResult.ALREADY, "already", "it has this layout", facts.layout, facts.layout)
    refusal = refusal or also(move, facts) or batch.refusal(move, facts, take=take)
    if refusal is None:
        return None
    return MoveOutcome(move, MoveResult.REFUSED, refusal.reason, refusal.sentence, facts.layout, facts.layout)


def examine(calls: Calls, moves: Sequence[Move], batch: DestinationState, also: EngineCheck) -> Iterator[MoveOutcome]:
    """How each would begin."""
    for move in moves:
        found = facts_before(calls, move, batch, also)
        yield found if isinstance(found, MoveOutcome) else MoveOutcome(move, MoveResult.MOVABLE, before=found.layout)
