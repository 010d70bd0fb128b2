"""After an exchange: what the file is now, read anew. Return codes and messages decide nothing here.

A doubt is what this cannot explain and nobody else can have done. Somebody who writes, truncates, removes, replaces,
moves the file or sets its times, owner or mode meanwhile is none: his changes stand, and the outcome says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lustre.errors import Gone, Stale
from lustre.filesystem import Calls, Status
from lustre.layout.model import Layout, same_shape
from tierd.act.movers.checks import leaves_mdt
from tierd.act.movers.facts import Facts, look_at, objects
from tierd.act.movers.outcome import Move, Outcome, Result, of_error
from tierd.clock import Clock

_SECOND_NS = 1_000_000_000
_LOOKS = 2
_TRIES = 6
_TRY_AGAIN_SECONDS = 0.4


@dataclass(frozen=True, slots=True)
class Copy:
    """What the file must have now, where an engine knows it: the copy's layout, object by object, and its version."""

    layout: Layout
    version: int


def judge(calls: Calls, move: Move, before: Facts, copied: Copy | None, pools: Mapping[str, tuple[str, ...]],
          failure: OSError | None, clock: Clock) -> Outcome:
    """Say how it went, against what the file was when it was last looked at before the exchange.

    Where the exchange took data off the MDT, this also puts back the times that Lustre changed.
    """
    try:
        seen = _seen(calls, move, before, copied, clock)
    except OSError as error:
        detail = f"it cannot be looked at after the exchange: {error}"
        return Outcome(move, Result.DOUBTFUL, "unknown", detail, before.layout, None, error=failure or error)
    if seen is None:
        return removed(move, before.layout, failure)
    now, version = seen
    if _as_it_was(before, now):
        if failure is not None:
            return of_error(move, failure, before.layout)
        detail = "no error was reported, yet it lies where it lay"
        return Outcome(move, Result.FAILED, "not-moved", detail, before.layout, now.layout)
    if _moved_by_others(move, before, now, copied):
        return _given_way(move, before, now, copied, failure)
    doubts = (_placement(move, now, copied, pools) + _belongings(before, now)
              + _contents(move, before, now, copied, version))
    result = Result.DOUBTFUL if doubts else Result.DONE
    if not doubts and failure is not None and copied is not None:
        doubts.append(f"Lustre reported {failure}, yet it was done")
    reason = "" if result is Result.DONE else "verification"
    return Outcome(move, result, reason, "; ".join(doubts), before.layout, now.layout, error=failure)


def is_the_copy(before: Facts, copied: Copy, status: Status, layout: Layout | None, project: int) -> bool:
    """Whether the file is what the exchange should have made of it, in every point: then no more need be asked."""
    then = before.status
    return (
        layout is not None and objects(layout) == objects(copied.layout) and same_shape(layout, copied.layout)
        and (status.size_bytes, _seconds(status.mtime_ns)) == (then.size_bytes, _seconds(then.mtime_ns))
        and (status.uid, status.gid, status.mode, project) == (then.uid, then.gid, then.mode, before.project)
        and status.link_count > 0
    )


def removed(move: Move, before: Layout | None, error: OSError | None) -> Outcome:
    """The outcome of a move of a file that is gone: removed, or another one took its name."""
    return Outcome(move, Result.GAVE_WAY, "gone", "removed or replaced meanwhile", before, None,
                   error=error if isinstance(error, Gone) else Gone(2, "removed or replaced", move.path))


def is_gone(calls: Calls, before: Facts, error: OSError) -> bool:
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


def lies_as_wanted(layout: Layout, wanted: Layout, pools: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether the file has that layout, and its objects are where its pools say: a name alone proves nothing."""
    return same_shape(layout, wanted) and not strays(layout, pools)


def strays(layout: Layout, pools: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Objects outside of the pool their component names, as they are when the pool was empty at creation."""
    found = []
    for component in layout.components:
        if component.on_mdt or not component.pool:  # Lustre may put a pool's name on data on the MDT: it means nothing
            continue
        members = {int(target[-4:], 16) for target in pools.get(component.pool, ())}
        outside = [o.ost_index for o in component.objects if o.ost_index not in members]
        found += [f"an object on OST{index:04x}, outside of pool {component.pool!r}" for index in outside]
    return found


def _seen(calls: Calls, move: Move, before: Facts, copied: Copy | None, clock: Clock) -> tuple[Facts, int] | None:
    """The file now and its data version; None when it is gone. Raises OSError when neither can be found out.

    Whatever goes wrong while looking, the MDT is asked whether the file still is: only its word counts.
    """
    for look in range(_LOOKS):
        try:
            now, version = _look(calls, move, before, copied, clock)
        except OSError:
            if not calls.exists(before.fid):
                return None
            if look == _LOOKS - 1:
                raise
        else:
            return None if now.status.link_count < 1 else (now, version)
    raise AssertionError("a look ends with an answer or an error")


def _look(calls: Calls, move: Move, before: Facts, copied: Copy | None, clock: Clock) -> tuple[Facts, int]:
    descriptor = calls.open_fid(before.fid)
    try:
        now = look_at(calls, descriptor)
        if copied is None:
            return now, 0
        version = calls.data_version(descriptor)
        if leaves_mdt(move.layout, before.layout) and objects(now.layout) != objects(before.layout):
            return _times_put_back(calls, descriptor, before, copied, now, version, clock)
        return now, version
    finally:
        calls.close(descriptor)


def _times_put_back(calls: Calls, descriptor: int, before: Facts, copied: Copy, now: Facts, version: int,
                    clock: Clock) -> tuple[Facts, int]:
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


def _as_it_was(before: Facts, now: Facts) -> bool:
    """The very same objects, and more at most where none were yet: a writer has reached a further component."""
    if before.layout is None or now.layout is None:
        return before.layout is now.layout
    return same_shape(now.layout, before.layout) and _has_objects_of(now.layout, before.layout)


def _moved_by_others(move: Move, before: Facts, now: Facts, copied: Copy | None) -> bool:
    """Whether somebody else gave it the layout it has: none of its objects is of our copy.

    They are others than it had, or all it had and more (a mirror). An engine that does not know its copy can tell by
    the layout only: another one than was asked for.
    """
    if now.layout is None:
        return False
    present = {o for component in objects(now.layout) for o in component}
    ours = {o for component in objects(copied.layout) for o in component} if copied is not None else set()
    had = {o for component in objects(before.layout) for o in component}
    if present & ours or (present & had and not had <= present):
        return False
    if copied is None:
        return not same_shape(now.layout, move.layout)
    return bool(present and ours)


def _given_way(move: Move, before: Facts, now: Facts, copied: Copy | None, failure: OSError | None) -> Outcome:
    """Nothing of ours is in it any more. An engine that reported success without a copy we know may have made this."""
    detail = "somebody else gave it another layout meanwhile"
    if copied is None and failure is None:
        detail = "it has neither its old layout nor the one asked for, as if somebody else had moved it"
        return Outcome(move, Result.FAILED, "other-layout", detail, before.layout, now.layout)
    return Outcome(move, Result.GAVE_WAY, "moved", detail, before.layout, now.layout, error=failure)


def _placement(move: Move, now: Facts, copied: Copy | None, pools: Mapping[str, tuple[str, ...]]) -> list[str]:
    if now.layout is None or not same_shape(now.layout, move.layout):
        return ["its layout is neither the old one nor the one asked for"]
    doubts = strays(now.layout, pools)
    if copied is not None and not _has_objects_of(now.layout, copied.layout):
        doubts.append("some of its objects are those of the copy, and some are not")
    return doubts


def _belongings(before: Facts, now: Facts) -> list[str]:
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


def _contents(move: Move, before: Facts, now: Facts, copied: Copy | None, version: int) -> list[str]:
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
    was, is_ = objects(earlier), objects(layout)
    return len(was) == len(is_) and all(not one or other == one for one, other in zip(was, is_, strict=True))


def _seconds(time_ns: int) -> int:
    return time_ns // _SECOND_NS
