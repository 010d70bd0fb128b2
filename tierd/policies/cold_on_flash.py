"""Files on flash that have not been used for a long time, while the flash pool is short of space.

An idle file in a pool with free space is no problem. tierd moves the longest unused files to disks until the pool has
free space. It does not demote a file just because the aggressor has stopped: its next run would need the move again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lustre.layout.model import Component, Layout
from tierd.decide.plans import RETRY_SECONDS, Plan, missing_pool, move, room_bytes
from tierd.decide.relocation import bytes_per_component
from tierd.detect.view import View, room_on
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
                           "directories of [cold_to_disk]"),)
            if view.has_free_space(view.facts.pools.get(disks, ())) else ())


def plan(finding: Finding, evidence: ColdOnFlashEvidence, situation: Situation) -> Plan:
    """Moves of cold files, the coldest first, until as many bytes are free: each to the disk pool of its scope.

    First of all tierd's mirrors on flash go: the files are on disks already. A file in a scope with another flash pool
    stays: a person put it there.
    """
    capacity, settings, flash = situation.capacity, situation.tables.of(ColdToDisk), finding.subject
    cold = [(file, situation.without_mirror(file, flash), pools.hdd_pool) for file in situation.facts.stored
            if file.read_at < evidence.cold_before and flash in file.pools
            and (pools := situation.pools_of(file.path)).flash_pool == flash]
    left = {disks: max(0.0, room_bytes(capacity, disks, settings.disk_reserve)) for *_, disks in cold}
    tried_since = max(evidence.cold_before, finding.time - RETRY_SECONDS)
    wanted, actions, refusals = evidence.bytes_to_free, list[Action](), dict[str, Refusal]()
    for file, kept, disks in sorted(cold, key=lambda each: (each[1] is None, each[0].read_at, each[0].path)):
        if wanted <= 0 or len(actions) >= settings.max_moves:
            break
        if missing := missing_pool(capacity, disks):
            refusals[disks] = missing
            continue
        layout = kept or disk_layout(file.layout, file.size_bytes, disks, len(capacity.pools[disks]))
        freed = bytes_on(flash, file)
        if (layout is None or freed < max(MIN_BYTES, 0 if kept else file.size_bytes / 2)  # it copies more than it frees
                or situation.was_tried(file.fid, evidence.cold_before, tried_since)):
            continue
        needed = 0 if kept else file.size_bytes
        if needed > left[disks]:
            refusals[disks] = Refusal(Reason.NO_ROOM, f"pool {disks!r} has {bytes_text(left[disks])} above its "
                                      f"reserve, too little for the cold files on {flash!r}")
            continue
        wanted -= freed
        left[disks] -= needed
        days = (finding.time - file.read_at) / DAY_SECONDS
        actions.append(move(finding, file.path.rpartition("/")[0] or "/", file, layout, f"pool {flash!r} is short of "
                            f"space, and the file was not used for {days:.0f} days"))
    return Plan(tuple(actions), tuple(each for each in refusals.values()
                                      if not actions or each.reason is Reason.NO_POOL))


def bytes_on(pool: str, file: StoredFile) -> int:
    """Bytes of a file on a pool: of a large file, often only those of its first component."""
    return sum(held for part, held in bytes_per_component(file.layout, file.size_bytes) if part.pool == pool)


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
