"""Moves files from the fullest targets of a pool to the emptiest of the same pool, until the pool is even.

The used share of the whole pool does not change by moves within it. A target above it by more than a band gives files,
and never falls below it. A target below it takes files, and never rises above it. So every move brings two targets
nearer to the pool, no target does both, and the moves end. A file moves once in ``rest_days``. A target that is drained
or degraded, or creates no objects, takes none.

Large files come first, because they need the fewest moves, and among files of similar size those unused for longest.
Files whose objects are mostly on other targets come last: a move copies the whole file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Lt

from lustre.fid import Fid
from tierd.acts import ActKind
from tierd.decide.plans import Plan
from tierd.decide.relocation import Destinations, bytes_by_ost, hard_case, ost_index, osts_of, relocate
from tierd.model import Action, Capacity, FillEvidence, Finding, StoredFile
from tierd.refusal import Reason, Refusal
from tierd.text import percent

DAY_SECONDS = 86_400.0


@dataclass(frozen=True)
class Settings:
    """Which files move, and how far."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    directories: tuple[str, ...] = ("/",)
    """Directories (paths below the root of the file system) whose files may move."""
    scan_files_per_second: Annotated[float, Gt(0)] = 100.0
    """Maximum number of files examined per second while a pool is uneven. Each takes some requests to an MDT."""
    idle_days: Annotated[float, Ge(0)] = 1.0
    """Files used more recently do not move. Lustre writes access times late (``atime_diff``)."""
    min_bytes: Annotated[int, Ge(1)] = 1 << 20
    """Smaller files do not move: they hardly change the fill."""
    max_bytes: Annotated[int, Ge(1)] = 1 << 40
    """Larger files do not move."""
    band: Annotated[float, Gt(0), Lt(1)] = 0.03
    """A target gives files while its used share exceeds that of its pool by more than this."""
    reserve: Annotated[float, Ge(0), Lt(1)] = 0.1
    """Share of each target that stays free."""
    rest_days: Annotated[float, Gt(0)] = 30.0
    """Days in which a moved file does not move again."""
    retry_hours: Annotated[float, Gt(0)] = 12.0
    """Hours until a file is tried again after a move that did not succeed."""
    max_moves: Annotated[int, Ge(0)] = 200
    """Maximum number of files in one plan; the next plan may have more."""


LeftAlone = Callable[[Fid], bool]
"""Whether a file moved, or was tried, lately."""


def never_moved(_: Fid) -> bool:
    """Nothing is known about earlier moves."""
    return False


def decide(finding: Finding, evidence: FillEvidence, resident: Sequence[StoredFile], capacity: Capacity,
           settings: Settings, victim_slowed: bool, left_alone: LeftAlone = never_moved) -> Plan:
    """Moves from targets above the used share of their pool to targets below it.

    ``victim_slowed``: a job is slowed on the finding's targets, whose disks the moves would load too.
    """
    if victim_slowed:
        return Plan((), (Refusal(Reason.OTHERS_WOULD_LOSE, "a job is slowed on this target: files move when that has "
                                 "ended"),))
    every = {pool: (*members, *capacity.closed.get(pool, ())) for pool, members in capacity.pools.items()}
    pools = [pool for pool, members in every.items() if finding.targets[0] in members]
    pool = min(pools, key=lambda name: (len(every[name]), name), default="")
    unknown = [target for target in every.get(pool, ()) if target not in capacity.fill]
    if not pool or unknown:
        return Plan((), (Refusal(Reason.NO_POOL, f"the space of {unknown[0]} is unknown" if unknown else
                                 "the target is in no pool"),))
    may_take = capacity.pools[pool]
    members = [*may_take, *(target for target in capacity.closed.get(pool, ())
                            if capacity.fill[target].used > used_of(may_take, capacity))]
    level = used_of(members, capacity)
    donors = {ost_index(target) for target in members if capacity.fill[target].used > level + settings.band}
    takers = {ost_index(target): level for target in may_take if capacity.fill[target].used < level}
    closed = {ost_index(target) for target in capacity.closed.get(pool, ())}
    room = Destinations({pool: every[pool]}, capacity.fill, settings.reserve, closed, takers)
    actions = tuple(moves(finding, pool, level, donors, room, closed, resident, settings, left_alone))
    if actions or not donors:
        return Plan(actions, ())
    return Plan((), (Refusal(Reason.NOTHING_TO_DO, f"no file found so far can move within pool {pool!r} (idle for "
                             f"{settings.idle_days:g} days, not moved in {settings.rest_days:g} days, not larger than "
                             "what the target has too much)"),))


def used_of(members: Sequence[str], capacity: Capacity) -> float:
    """Used share of a pool."""
    size = sum(capacity.fill[target].size_bytes for target in members)
    return 1 - sum(capacity.fill[target].avail_bytes for target in members) / size if size else 1.0


def moves(finding: Finding, pool: str, level: float, donors: set[int], room: Destinations, closed: set[int],
          resident: Sequence[StoredFile], settings: Settings, left_alone: LeftAlone) -> Iterator[Action]:
    """Moves in order, until no target is above the pool by more than the band.

    A move makes a new object on each OST of the file that it does not leave, so such an OST must not be ``closed``.
    """
    idle_before = finding.time - settings.idle_days * DAY_SECONDS
    chosen: set[Fid] = set()
    for file in sorted(resident, key=lambda file: order(file, donors)):
        leave = {index for index in osts_of(file.layout) & donors if room.space[index].used > level + settings.band}
        if (not leave or file.layout is None or file.read_at >= idle_before or hard_case(file.layout)
                or not settings.min_bytes <= file.size_bytes <= settings.max_bytes
                or file.fid in chosen or left_alone(file.fid)):
            continue
        held = bytes_by_ost(file.layout, file.size_bytes)
        leave = {index for index in leave if room.space[index].used_with(-held[index]) >= level}
        stays = osts_of(file.layout) - leave
        found = relocate(file.layout, file.size_bytes, leave, room) if leave and closed.isdisjoint(stays) else None
        if found is None or isinstance(found, Refusal):
            continue
        fullest = max(leave, key=lambda index: held[index])
        yield Action(
            ActKind.MIGRATE, found.layout,
            f"OST{fullest:04x} is fuller than pool {pool!r}, which is {percent(level)} full",
            finding.key, file.path.rpartition("/")[0] or "/", file.path, file.size_bytes, file.fid)
        chosen.add(file.fid)
        if len(chosen) >= settings.max_moves:
            return


def order(file: StoredFile, donors: set[int]) -> tuple[float, int, float, str]:
    """Files that free most of the bytes that their move copies, then large ones, then those unused for longest."""
    held = bytes_by_ost(file.layout, file.size_bytes) if file.layout is not None else {}
    freed = sum(size for index, size in held.items() if index in donors) / max(file.size_bytes, 1)
    return -round(freed, 2), -file.size_bytes.bit_length(), file.read_at, file.path
