"""Plans, and what policies share: pools, limits, the reserve of the flash pool, and the layout with flash first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from lustre.layout.model import Component, Layout, mirrors
from tierd.acts import ActKind
from tierd.decide import sizing
from tierd.model import Action, Candidate, Capacity, DirectoryActivity, Finding, StoredFile, Table
from tierd.refusal import Reason, Refusal
from tierd.text import bytes_text, count_of, rate_text
from tierd.validators import Count, NotNegative, ShareOrNone

SEEK_USEC, FLASH_USEC = 8000.0, 500.0
"""Time of a small random operation: a seek and half a turn of a disk, and flash behind a network. Choices."""
DISK_BYTES_PER_SECOND = 100e6
"""Sequential throughput of a disk target while a file is copied. A choice: a fifth of what a group of ten disks has."""
REACTION_SECONDS = 30.0
"""Time for which the job's new files must fit. Later tierd undoes the default layout if space runs out. A choice."""
RETRY_SECONDS = 12 * 3600.0
"""Time until a file is tried again after a move that did not succeed. A choice."""
READ_SHARE = 0.1
"""Share of reads among the job's RPCs from which its existing files are worth moving. A choice."""


@dataclass(frozen=True)
class FlashSettings(Table):
    """Pools and limits."""

    flash_pool: str = "flash"
    hdd_pool: str = "hdd"
    sizing: sizing.Settings = field(default_factory=sizing.Settings)
    reserve: ShareOrNone = 0.1
    """Share of the flash pool that stays free. A choice."""
    settle_seconds: NotNegative = 10.0
    """Files closed more recently are not moved: they may be written again. A choice."""
    max_moves: Count = 1000
    """Maximum number of files in one plan. A choice: the next plan may have more."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions in order, and refusals of what was considered."""

    actions: tuple[Action, ...]
    refusals: tuple[Refusal, ...]
    recommended: tuple[Action, ...] = ()
    """Actions that the mode of their scope does not allow."""


Steps = Iterator[Action | Refusal]


def plan_of(steps: Iterable[Action | Refusal]) -> Plan:
    every = tuple(steps)
    return Plan(tuple(each for each in every if isinstance(each, Action)),
                tuple(each for each in every if isinstance(each, Refusal)))


def joined(plans: Iterable[Plan]) -> Plan:
    return plan_of(chain.from_iterable(chain[Action | Refusal](plan.actions, plan.refusals) for plan in plans))


def missing_pool(capacity: Capacity, *pools: str) -> Refusal | None:
    """Why nothing can go to these pools: one has no targets; None if all have some."""
    return next((Refusal(Reason.NO_POOL, f"pool {pool!r} does not exist or has no targets") for pool in pools
                 if not capacity.pools.get(pool)), None)


def reserved(capacity: Capacity, settings: FlashSettings) -> float:
    """Bytes of the flash pool that must stay free."""
    return settings.reserve * capacity.size_bytes[settings.flash_pool]


def room_bytes(capacity: Capacity, pool: str, reserve: float) -> float:
    """Free bytes of a pool above the share of it that must stay free; 0 or less if there are none, or unknown."""
    return capacity.avail_bytes.get(pool, 0) - reserve * capacity.size_bytes.get(pool, 0)


def flash_is_short(capacity: Capacity, settings: FlashSettings, growth: float, fills: str) -> Refusal | None:
    """Why the flash pool must not take files that grow by ``growth`` bytes per second; None if it may. ``fills``
    says who makes them: ``the job fills``.
    """
    pool = settings.flash_pool
    if room_bytes(capacity, pool, settings.reserve) >= growth * REACTION_SECONDS:
        return None
    return Refusal(Reason.NO_ROOM, f"pool {pool!r} has {bytes_text(capacity.avail_bytes.get(pool, 0))} free, and "
                   f"{fills} it at {rate_text(growth)}")


def default_refusal(where: str, capacity: Capacity) -> Refusal | None:
    """Why a directory can get no default layout; None if it can."""
    if not where.startswith("/"):
        return Refusal(Reason.NO_PATH, "its path is not known")
    if where == "/":
        return Refusal(Reason.ROOT_DIRECTORY, "the root of the file system keeps its default layout")
    return None if where in capacity.default_layouts else Refusal(
        Reason.NO_LAYOUT, "its default layout could not be read")


def new_default(finding: Finding, where: str, layout: Layout, why: str) -> Action:
    return Action(ActKind.SET_DEFAULT_LAYOUT, layout, why, finding.key, directory=where)


def move(finding: Finding, where: str, file: Candidate | StoredFile, layout: Layout, why: str) -> Action:
    """The move of a file. ``where`` is the directory that it was planned for, which may be further up."""
    # no default: lfs has no way back to it after a component with a count
    named = [c if c.stripe_count or c.on_mdt or c.flags else replace(c, stripe_count=1) for c in layout.components]
    return Action(ActKind.MIGRATE, replace(layout, components=tuple(named)), why, finding.key, where, path=file.path,
                  size_bytes=file.size_bytes or 0, fid=file.fid)


def fitting(steps: Iterable[Action | Refusal], room: dict[bool, float], most: int) -> Steps:
    """The steps without moves that do not fit, or are too many. ``room`` has the bytes that are left on the MDTs (True)
    and in the pool (False).
    """
    for step in steps:
        if isinstance(step, Action) and step.kind == ActKind.MIGRATE:
            place = step.layout.components[0].on_mdt
            if step.size_bytes > room[place] or most < 1:
                continue
            room[place] -= step.size_bytes
            most -= 1
        yield step


def flash_first(component_bytes: int, present: Layout | None, settings: FlashSettings) -> Layout:
    """First component on flash, the rest on disks with its present extents and stripes: no large file can fill flash.

    >>> layout = Layout((Component(0, 64 << 20), Component(64 << 20, None, stripe_count=-1)))
    >>> [(c.extent_end, c.pool, c.stripe_count) for c in flash_first(1 << 20, layout, FlashSettings()).components]
    [(1048576, 'flash', 1), (67108864, 'hdd', 1), (None, 'hdd', -1)]
    """
    rest = [c for c in (mirrors(present)[0] if present is not None else ())
            if not c.on_mdt and (c.extent_end is None or c.extent_end > component_bytes)] or [Component(stripe_count=0)]
    starts = [component_bytes, *(c.extent_start for c in rest[1:])]
    components = [Component(0, component_bytes, settings.flash_pool, stripe_count=1)]
    for c, start, end in zip(rest, starts, [*starts[1:], None], strict=True):
        part = Component(start, end, settings.hdd_pool, c.stripe_count, c.stripe_size,
                         pattern="raid0,overstriped" if c.overstriped else "raid0")
        grown = replace(part, flags=("extension",), extension_size=c.extension_size)
        # what extends itself has no length at first
        components += (replace(part, extent_end=start), grown) if c.extension_size else (part,)
    return Layout(tuple(components))


def covers(present: Layout | None, component_bytes: int, flash_pool: str) -> bool:
    """Whether a layout has the first ``component_bytes`` on flash or on the MDT, in one component or several."""
    return present is not None and all(c.on_mdt or c.pool == flash_pool for c in mirrors(present)[0]
                                       if c.extent_start < max(component_bytes, 1))


def open_files(activity: DirectoryActivity) -> list[str]:
    """Paths of files that the job has open and did not create."""
    closed = {candidate.fid for candidate in activity.candidates}
    return [file.path for file in activity.existing_files if file.path and file.fid not in closed]


def in_use(opened: Sequence[str]) -> Refusal:
    """Why these files do not move. Clients keep files open that they open often (``opencache_threshold_count``)."""
    return Refusal(Reason.IN_USE, f"{count_of(len(opened), 'file')} open, in programs or in the clients' open cache: "
                   "tierd moves a file when it is closed").about(opened[0])


def closed_files(activities: Iterable[DirectoryActivity], least_bytes: int,
                 most_bytes: int) -> list[tuple[DirectoryActivity, Candidate]]:
    """Files of these sizes that the job has closed."""
    return [(activity, file) for activity in activities for file in activity.candidates
            if least_bytes <= (file.size_bytes or 0) <= most_bytes]
