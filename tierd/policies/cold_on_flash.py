"""Files on flash that have not been used for a long time, while the flash pool is short of space.

An idle file in a pool with free space is no problem. tierd moves the longest unused files to disks until the pool has
free space. It does not demote a file just because the aggressor has stopped: its next run would need the move again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lustre.layout.model import Component, Layout
from tierd.decide.plans import RETRY_SECONDS, FlashSettings, Plan, joined, missing_pool, move, room_bytes
from tierd.decide.relocation import bytes_per_component
from tierd.detect.groups import grouped
from tierd.detect.view import View, has_free_space, room_on
from tierd.model import Action, Advice, Evidence, Finding, StoredFile, Table
from tierd.policies.protocol import Common, Policy, Situation, Tables
from tierd.refusal import Reason, Refusal
from tierd.text import bytes_text, percent, quoted
from tierd.validators import Count, Positive, Share

DAY_SECONDS = 86_400.0
MIN_BYTES = 4096
"""Smaller files are not moved: they free almost nothing."""


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    enter: Share = 0.8
    """The finding begins at this used share of the flash pool. A fifth is left for bursts: a choice."""
    leave: Share = 0.7
    """The finding ends, and demotion stops, at this used share. A tenth less, so that it does not begin again at
    once."""
    cold_days: Positive = 7.0
    """Days without access. Set at least one day, because access times are updated late (``atime_diff``). A week is a
    choice."""


@dataclass(frozen=True)
class ColdToDisk(Table):
    """Limits of demotion: the table ``[cold_to_disk]``."""

    directories: tuple[str, ...] = ()
    """Further directories (paths below the root of the file system) whose own files may be demoted. tierd knows files
    that it moved to flash itself from its journal."""
    disk_reserve: Share = 0.1
    """Share of the disk pool that stays free: full disks are slow."""
    max_moves: Count = 500
    """Maximum number of files in one plan. A choice: the next plan may have more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdOnFlashEvidence(Evidence):
    """Files on a flash pool that is short of space, unused for long."""

    used_share: float
    cold_files: int
    cold_bytes: int
    oldest_days: float
    """Time since the last access of the coldest file."""
    target_used_share: float
    """Demotion stops at this share."""
    cold_before: float
    """Files last used before this time are cold; epoch seconds."""
    bytes_to_free: float
    """Bytes to move until ``target_used_share`` is reached."""


def find(view: View, settings: Settings) -> Iterator[Finding]:
    limit = view.now - settings.cold_days * DAY_SECONDS
    for pool, disks in ((pools.flash, pools.hdd) for pools in view.pool_pairs):
        members = view.facts.pools.get(pool, ())
        room = room_on(members, view.facts.fill)
        stored = [file for file in view.facts.stored if pool in file.pools]
        cold = [file for file in stored if file.read_at < limit]
        full = room.used >= (settings.leave if (POLICY.name, "", pool) in view.active else settings.enter)
        if not (cold and full and room.size_bytes and view.facts.fill.keys() >= {*members}):  # or some is unknown
            continue
        held = sum(bytes_on(pool, file) for file in cold)
        oldest = min(file.read_at for file in cold)
        yield POLICY.finding(
            view, f"pool {quoted(pool)} is {percent(room.used)} full; {len(cold)} of {len(stored)} files examined "
            f"there ({bytes_text(held)}) have not been used for at least {settings.cold_days:g} days",
            ColdOnFlashEvidence(
                used_share=room.used, cold_files=len(cold), cold_bytes=held,
                oldest_days=(view.now - oldest) / DAY_SECONDS, target_used_share=settings.leave, cold_before=limit,
                bytes_to_free=max(0.0, (room.used - settings.leave) * room.size_bytes)),
            targets=sorted(members), subject=pool, advice_only=False,
            directories=tuple(sorted({file.path.rpartition("/")[0] or "/" for file in cold}))[:20],
            advice=(Advice(f"lfs migrate --non-block -p {quoted(disks)} FILE", "first the files idle for the longest",
                           "frees flash for files in use; tierd does this for files it moved there, and in the "
                           "directories of [cold_to_disk]"),) if has_free_space(
                               view, view.facts.pools.get(disks, ())) else ())


def plan(finding: Finding, evidence: ColdOnFlashEvidence, situation: Situation) -> Plan:
    """Plan for files on the finding's pool: each goes to the disk pool of its scope.

    A file in a scope with another flash pool stays: a person put it there.
    """
    by_pools = grouped((situation.pools_of(file.path), file) for file in situation.facts.stored
                       if finding.subject in file.pools)
    plans: list[Plan] = []
    left = evidence.bytes_to_free
    for pools, files in by_pools.items():
        if pools.flash_pool != finding.subject:
            continue
        planned = demotions(finding, left, evidence.cold_before, files, situation, pools)
        left -= sum(action.size_bytes for action in planned.actions)
        plans.append(planned)
    return joined(plans)


def bytes_on(pool: str, file: StoredFile) -> int:
    """Bytes of a file on a pool: of a large file, often only those of its first component."""
    return sum(held for part, held in bytes_per_component(file.layout, file.size_bytes) if part.pool == pool)


def demotions(finding: Finding, wanted: float, cold_before: float, stored: Sequence[StoredFile], situation: Situation,
              pools: FlashSettings) -> Plan:
    """Moves of cold files, the coldest first, until this many bytes are free.

    First of all tierd's mirrors on flash go: the files are on disks already.
    """
    capacity, settings = situation.capacity, situation.tables.of(ColdToDisk)
    if missing := missing_pool(capacity, pools.hdd_pool):
        return Plan((), (missing,))
    left = room_bytes(capacity, pools.hdd_pool, settings.disk_reserve)
    actions: list[Action] = []
    too_large: Refusal | None = None
    cold = [(file, situation.without_mirror(file, pools.flash_pool)) for file in stored if file.read_at < cold_before]
    for file, kept in sorted(cold, key=lambda each: (each[1] is None, each[0].read_at, each[0].path)):
        if wanted <= 0 or len(actions) >= settings.max_moves:
            break
        layout = kept or disk_layout(file.layout, file.size_bytes, pools.hdd_pool, len(capacity.pools[pools.hdd_pool]))
        freed = bytes_on(pools.flash_pool, file)
        if (layout is None or freed < max(MIN_BYTES, 0 if kept else file.size_bytes / 2)  # it copies more than it frees
                or situation.was_tried(file.fid, cold_before, max(cold_before, finding.time - RETRY_SECONDS))):
            continue
        if kept is None and file.size_bytes > left:
            too_large = Refusal(Reason.NO_ROOM, f"pool {pools.hdd_pool!r} has {bytes_text(max(0.0, left))} above its "
                                f"reserve, too little for the cold files on {pools.flash_pool!r}")
            continue
        wanted -= freed
        left -= 0 if kept is not None else file.size_bytes
        days = (finding.time - file.read_at) / DAY_SECONDS
        actions.append(move(finding, file.path.rpartition("/")[0] or "/", file, layout, f"pool {pools.flash_pool!r} "
                            f"is short of space, and the file was not used for {days:.0f} days"))
    return Plan(tuple(actions), () if actions or too_large is None else (too_large,))


def disk_layout(present: Layout | None, size_bytes: int, pool: str, targets: int) -> Layout | None:
    """The layout of a file on disks, with the stripes of the component in which it ends, at most one on each target.

    None if it must not be flattened.
    """
    if present is None or present.mirror_count > 1 or any(c.on_mdt or c.released or c.foreign is not None
                                                          for c in present.components):
        return None
    last = [c for c in present.components if c.extent_start < max(size_bytes, 1)][-1]
    count = -1 if last.stripe_count == -1 else min(max(last.stripe_count, 1), targets)
    return Layout((Component(0, None, pool, count, last.stripe_size),), composite=False)


def directories(tables: Tables) -> Sequence[str]:  # named, so that settings can go to other processes
    return tables.of(ColdToDisk).directories


POLICY = Policy("cold-on-flash", Settings, find, evidence=ColdOnFlashEvidence, plan=plan,
                by_scope=False, tables={"cold_to_disk": ColdToDisk}, on_by_default=True, can_wait=True,
                directories=directories)
