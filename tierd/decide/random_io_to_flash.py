"""Moves large files with small random I/O to flash as a whole, once they are closed.

A first component on flash does not help: the I/O goes to all of the file. The job keeps its file open while it works,
so the move serves its next run, or the next time it opens the file. tierd expects as much such I/O then as it has seen
so far, and moves a file if that saves several times the disk time that the copy costs. A file that the job made and did
not open again is left where it is: its next run makes a new one, and the default layout of the directory serves that.

Large files fill flash quickly: one plan uses at most half of the free space above the reserve.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Le

from lustre.layout.model import Component, Layout
from tierd.acts import ActKind
from tierd.decide.plans import NO_CHANGELOG_SENTENCE, Plan, covers, flash_first, reserved
from tierd.decide.plans import FlashSettings as Pools
from tierd.decide.sizing import boundary
from tierd.model import Action, Candidate, Capacity, DirectoryActivity, Finding, SmallRandomIoEvidence
from tierd.refusal import Reason, Refusal
from tierd.text import bytes_text, count_of


@dataclass(frozen=True)
class Settings:
    """Limits of benefit, size and space."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    benefit_factor: Annotated[float, Ge(1)] = 3.0
    """Minimum disk time saved, as a multiple of the disk time that the copy costs."""
    disk_operation_usec: Annotated[float, Gt(0)] = 8000.0
    """Time of a small random operation on a disk: a seek."""
    flash_operation_usec: Annotated[float, Ge(0)] = 500.0
    """Time of a small random operation on flash."""
    disk_bytes_per_second: Annotated[float, Gt(0)] = 100e6
    """Sequential throughput of a disk target while a file is copied."""
    min_file_bytes: Annotated[int, Gt(0)] = 16 << 20
    """Smaller files are small files: see ``hot-small-files``."""
    max_file_bytes: Annotated[int, Gt(0)] = 32 << 30
    """Larger files are not moved."""
    share_of_free: Annotated[float, Gt(0), Le(1)] = 0.5
    """Share of the free space above the reserve that one plan may use."""
    stripes: Annotated[int, Ge(1)] = 4
    """Maximum number of stripes on flash."""
    max_moves: Annotated[int, Ge(0)] = 50
    """Maximum number of files in one plan."""


MAX_SETTLE_SECONDS = 60.0
"""A file must have been closed for the time of its copy, but for this time at most: its finding ends soon after."""
SETTLE_COSTS = 4.0
"""That time as a multiple of the cost, because the disks are busy, and the file stays closed for about as long as it
has been closed."""


def decide(finding: Finding, evidence: SmallRandomIoEvidence, activities: Sequence[DirectoryActivity],
           capacity: Capacity, pools: Pools, settings: Settings) -> Plan:
    """Moves of closed files that are worth it, those with the best gain first, and default layouts for new files."""
    members = capacity.pools.get(pools.flash_pool, ())
    if not members or not capacity.pools.get(pools.hdd_pool):
        return Plan((), (Refusal(Reason.NO_POOL, f"pool {pools.flash_pool!r} or {pools.hdd_pool!r} does not exist or "
                                 "has no targets"),))
    if not activities:
        return Plan((), (Refusal(Reason.NO_CHANGELOG, NO_CHANGELOG_SENTENCE).about(finding.aggressor),))
    mine = [activity for activity in activities if activity.directory in finding.directories]
    left = settings.share_of_free * (capacity.avail_bytes.get(pools.flash_pool, 0) - reserved(capacity, pools))
    files = [(a, c) for a in mine for c in a.candidates if is_large(c, settings)]
    opened = [file for a in mine for file in open_files(a)]
    saved = saved_seconds(evidence, settings) / max(1, len(files) + len(opened))
    actions: list[Action] = []
    refusals: list[Refusal] = []
    if opened:
        refusals.append(Refusal(Reason.IN_USE, f"{count_of(len(opened), 'file')} open: tierd moves a file when it is "
                                "closed").about(opened[0]))
    for action in [*defaults(finding, mine, capacity, pools, settings),
                   *moves(finding, files, saved, len(members), pools, settings)]:
        needed = wanted_bytes(action, files)
        if needed > left:
            refusals.append(Refusal(Reason.NO_ROOM, f"it needs {bytes_text(needed)}, and {bytes_text(max(0.0, left))} "
                                    f"of pool {pools.flash_pool!r} may be used").about(action.path or action.directory))
        elif sum(each.kind == ActKind.MIGRATE for each in actions) < settings.max_moves:
            left -= needed
            actions.append(action)
    if files and not actions and not refusals:
        refusals.append(Refusal(Reason.NOT_WORTH, "no file saves enough disk time for its copy, or the job only made "
                                "the files").about(mine[0].directory))
    return Plan(tuple(actions), tuple(refusals))


def is_large(candidate: Candidate, settings: Settings) -> bool:
    """Whether the size of a closed file is known and within the limits."""
    size = candidate.size_bytes
    return size is not None and settings.min_file_bytes <= size <= settings.max_file_bytes


def open_files(activity: DirectoryActivity) -> list[str]:
    """Paths of files that the job has open and did not create."""
    closed = {candidate.fid for candidate in activity.candidates}
    return [file.path for file in activity.existing_files if file.path and file.fid not in closed]


def saved_seconds(evidence: SmallRandomIoEvidence, settings: Settings) -> float:
    """Disk time that flash saves if the job does as much small I/O again as it has done so far."""
    each = max(0.0, settings.disk_operation_usec - settings.flash_operation_usec) / 1e6
    return evidence.rpcs_per_second * evidence.small_rpc_share * evidence.seconds * each


def moves(finding: Finding, files: Sequence[tuple[DirectoryActivity, Candidate]], saved: float, targets: int,
          pools: Pools, settings: Settings) -> Iterator[Action]:
    """Moves of closed files that the job uses again, the smallest first: each saves the same time."""
    layout = Layout((Component(0, None, pools.flash_pool, max(1, min(settings.stripes, targets))),), composite=False)
    for activity, candidate in sorted(files, key=lambda each: (each[1].size_bytes or 0, each[1].path)):
        cost = 2 * (candidate.size_bytes or 0) / settings.disk_bytes_per_second
        settle = max(pools.settle_seconds, min(MAX_SETTLE_SECONDS, SETTLE_COSTS * cost))
        if (not is_used_again(candidate) or candidate.closed_at > finding.time - settle
                or saved < settings.benefit_factor * cost):
            continue
        yield Action(ActKind.MIGRATE, layout, f"{finding.aggressor} does small random I/O in the file; as much again "
                     f"on flash saves {saved / cost:.0f} times the disk time of the copy", finding.key,
                     activity.directory, candidate.path, candidate.size_bytes or 0, candidate.fid)


def is_used_again(candidate: Candidate) -> bool:
    """Whether the job opened a file that was there before, or one of its own again."""
    return candidate.created_at == 0 or candidate.opens > 0


def defaults(finding: Finding, activities: Sequence[DirectoryActivity], capacity: Capacity, pools: Pools,
             settings: Settings) -> Iterator[Action]:
    """Default layouts for directories in which the job makes such files: each run of it makes new ones."""
    for activity in activities:
        made = [c for c in activity.candidates if c.created_at > 0 and is_large(c, settings)]
        where = activity.directory
        present = capacity.default_layouts.get(where)
        if not made or not where.startswith("/") or where == "/" or where not in capacity.default_layouts:
            continue
        end = boundary(max(c.size_bytes or 0 for c in made))
        if covers(present, end, pools.flash_pool):
            continue
        layout = flash_first(end, present, pools)
        stripes = max(1, min(settings.stripes, len(capacity.pools[pools.flash_pool])))
        first = Component(0, end, pools.flash_pool, stripes)
        yield Action(ActKind.SET_DEFAULT_LAYOUT, Layout((first, *layout.components[1:])),
                     f"{finding.aggressor} makes files with small random I/O here, of up to "
                     f"{bytes_text(max(c.size_bytes or 0 for c in made))}", finding.key, directory=where)


def wanted_bytes(action: Action, files: Sequence[tuple[DirectoryActivity, Candidate]]) -> float:
    """Space that an act needs on flash: of the file, or of as many new files as the job has made in the directory."""
    if action.kind == ActKind.MIGRATE:
        return action.size_bytes
    return sum(c.size_bytes or 0 for a, c in files if a.directory == action.directory and c.created_at > 0)
