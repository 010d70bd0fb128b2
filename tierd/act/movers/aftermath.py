"""After an exchange: what the file is now, read anew by its identity. Return codes and messages decide nothing here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lustre.calls import Calls
from lustre.errors import Gone
from lustre.layout import Layout, same_shape
from tierd.act.movers.facts import Facts, look_at, objects
from tierd.act.movers.outcome import Move, Outcome, Result, of_error

_SECOND_NS = 1_000_000_000
_MOMENT_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Copy:
    """What the file must have now, where an engine knows it: the copy's layout, object by object, and its version."""

    layout: Layout
    version: int


def judge(calls: Calls, move: Move, before: Facts, copied: Copy | None, pools: Mapping[str, tuple[str, ...]],
          failure: OSError | None) -> Outcome:
    """Say how it went, against what the file was when it was last looked at before the exchange."""
    try:
        now, version = _now(calls, before, copied)
    except Gone as error:
        return Outcome(move, Result.GAVE_WAY, "gone", "removed meanwhile", before.layout, None, error=error)
    except OSError as error:
        detail = f"it cannot be looked at after the exchange: {error}"
        return Outcome(move, Result.DOUBTFUL, "unknown", detail, before.layout, None, error=failure or error)
    if _as_it_was(before, now):
        if failure is not None:
            return of_error(move, failure, before.layout)
        detail = "no error was reported, yet it lies where it lay"
        return Outcome(move, Result.FAILED, "not-moved", detail, before.layout, now.layout)
    doubts = _placement(move, now, copied, pools) + _belongings(before, now) + _contents(before, now, copied, version)
    result = Result.DOUBTFUL if doubts else Result.DONE
    if not doubts and failure is not None and copied is not None:
        doubts.append(f"Lustre reported {failure}, yet it was done")
    reason = "" if result is Result.DONE else "verification"
    return Outcome(move, result, reason, "; ".join(doubts), before.layout, now.layout, error=failure)


def lies_as_wanted(layout: Layout, wanted: Layout, pools: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether the file has that layout, and its objects are where its pools say: a name alone proves nothing."""
    return same_shape(layout, wanted) and not strays(layout, pools)


def strays(layout: Layout, pools: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Objects outside of the pool their component names, as they are when the pool was empty at creation."""
    found = []
    for component in layout.components:
        members = {int(target[-4:], 16) for target in pools.get(component.pool, ())} if component.pool else None
        outside = [o.ost_index for o in component.objects if members is not None and o.ost_index not in members]
        found += [f"an object on OST{index:04x}, outside of pool {component.pool!r}" for index in outside]
    return found


def _now(calls: Calls, before: Facts, copied: Copy | None) -> tuple[Facts, int]:
    descriptor = calls.open_fid(before.fid)
    try:
        return look_at(calls, descriptor), 0 if copied is None else calls.data_version(descriptor)
    finally:
        calls.close(descriptor)


def _as_it_was(before: Facts, now: Facts) -> bool:
    """The very same objects; for a file without any, the same layout."""
    return objects(now.layout) == objects(before.layout) and (
        now.layout == before.layout
        or (now.layout is not None and before.layout is not None and same_shape(now.layout, before.layout))
    )


def _placement(move: Move, now: Facts, copied: Copy | None, pools: Mapping[str, tuple[str, ...]]) -> list[str]:
    if now.layout is None or not same_shape(now.layout, move.layout):
        return ["its layout is neither the old one nor the one asked for"]
    doubts = strays(now.layout, pools)
    if copied is not None and not _has_objects_of(now.layout, copied.layout):
        doubts.append("its objects are not those of the copy")
    return doubts


def _belongings(before: Facts, now: Facts) -> list[str]:
    """A change by somebody else in this very moment looks the same: then people look, too."""
    doubts = []
    if now.fid != before.fid:
        doubts.append(f"it is {now.fid} now and was {before.fid}")
    if (now.status.uid, now.status.gid, now.project) != (before.status.uid, before.status.gid, before.project):
        doubts.append("its owner or project differs")
    if now.status.mode != before.status.mode or now.xattrs != before.xattrs:
        doubts.append("its mode or extended attributes differ")
    return doubts


def _contents(before: Facts, now: Facts, copied: Copy | None, version: int) -> list[str]:
    """Size and modification time, unless somebody has written to it since, or may have.

    The same version says that nobody has. With another one, or none known, a later modification time says that somebody
    has; it counts whole seconds, so that of a file modified a moment ago says nothing.
    """
    size_bytes, mtime = now.status.size_bytes, now.status.mtime_ns // _SECOND_NS
    size_bytes_then, mtime_then = before.status.size_bytes, before.status.mtime_ns // _SECOND_NS
    untouched = copied is not None and version == copied.version
    if not untouched and (mtime > mtime_then or now.status.ctime_ns // _SECOND_NS <= mtime_then + _MOMENT_SECONDS):
        return []
    doubts = []
    if size_bytes != size_bytes_then:
        doubts.append(f"it has {size_bytes} bytes and had {size_bytes_then}")
    if mtime != mtime_then:
        doubts.append("its modification time differs")
    return doubts


def _has_objects_of(layout: Layout, copied: Layout) -> bool:
    """Every object of the copy; a component that had none yet may have been written to since."""
    return all(not was or is_ == was for was, is_ in zip(objects(copied), objects(layout), strict=True))
