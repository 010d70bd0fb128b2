"""Puts small files of a noisy neighbour on flash: new files by a default layout, existing files by moves.

New files come first, since that moves no data. Existing files move only if the job reads them: rewriting unread files
loads the disks that the move should relieve.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lustre.layout.model import Component, Layout
from tierd.acts import ActKind
from tierd.decide import data_on_mdt, sizing
from tierd.decide.plans import NO_CHANGELOG_SENTENCE, FlashSettings, Plan, covers, flash_first, reserved
from tierd.model import Action, Candidate, Capacity, DirectoryActivity, Finding, NoisyNeighbourEvidence
from tierd.refusal import Reason, Refusal
from tierd.text import bytes_text, count_of, rate_text

NOT_ON_MDT = data_on_mdt.Rules()


def decide(
    finding: Finding, evidence: NoisyNeighbourEvidence, activities: Sequence[DirectoryActivity], capacity: Capacity,
    settings: FlashSettings, rules: data_on_mdt.Rules = NOT_ON_MDT,
) -> Plan:
    """Plan for one finding and its directories. Whatever is unknown leads to a refusal.

    ``rules`` decide whether small files go to the MDT instead of flash.
    """
    if finding.advice_only:
        return Plan((), ())
    actions: list[Action] = []
    refusals: list[Refusal] = []
    for activity in activities:
        if activity.directory not in finding.directories:
            continue
        if evidence.whole_small_files:
            plan = small_files(finding, evidence, activity, capacity, settings, rules)
        else:
            plan = large_files(finding, activity, capacity, settings)
        actions += plan.actions
        refusals += plan.refusals
    if not activities:
        refusals.append(Refusal(Reason.NO_CHANGELOG, NO_CHANGELOG_SENTENCE).about(finding.aggressor))
    return Plan(tuple(actions), tuple(refusals))


def small_files(finding: Finding, evidence: NoisyNeighbourEvidence, activity: DirectoryActivity, capacity: Capacity,
                settings: FlashSettings, rules: data_on_mdt.Rules = NOT_ON_MDT) -> Plan:
    """A default layout for the directory, and moves of its existing files."""
    where = activity.directory
    size = sizing.component(activity.sizes, evidence.aggressor_bytes_per_file, evidence.aggressor_largest_rpc_bytes,
                            settings.sizing)
    refusal = refuse(where, size, capacity, settings)
    if refusal:
        return Plan((), (refusal.about(where),))
    on_flash = flash_first(size.component_bytes, capacity.default_layouts.get(where), settings)
    growth = growth_bytes_per_second(evidence, activity)
    files = evidence.aggressor_files_per_second * kept_share(activity)
    known = [each for each in activity.sizes if each > 0]  # bytes per file count what is read again, too
    stored = files * sum(known) / len(known) if len(known) >= settings.sizing.min_samples else growth
    use = data_on_mdt.Use(evidence.aggressor_read_share, stored, files)
    refusal = refuse_flash(growth, capacity, settings)
    choice = data_on_mdt.choose(on_flash, use, capacity, settings.flash_pool, rules, flash_has_room=refusal is None)
    if not choice.on_mdt and refusal:
        return Plan((), tuple(why.about(where) for why in (refusal, choice.refused) if why))
    layout = choice.layout
    actions = []
    if not covers(capacity.default_layouts.get(where), size.component_bytes, settings.flash_pool):
        outgrown = (f"; {count_of(activity.outgrown, 'file')} outgrew the present first component"
                    if activity.outgrown else "")
        actions.append(Action(
            ActKind.SET_DEFAULT_LAYOUT, layout,
            f"new files of {finding.aggressor} load the disks of {finding.victim}; {size.reason}{outgrown}"
            + (f"; {choice.reason}" if choice.reason else ""),
            finding.key, directory=where,
        ))
    room = (data_on_mdt.room_bytes(capacity, rules.settings) if choice.on_mdt
            else capacity.avail_bytes[settings.flash_pool] - reserved(capacity, settings))
    moves = tuple(existing_files(finding, evidence, activity, layout, room, settings))
    return Plan((*actions, *moves), ())


def refuse(where: str, size: sizing.Size, capacity: Capacity, settings: FlashSettings) -> Refusal | None:
    """Why the directory gets no first component for small files; None if it may get one."""
    if not where.startswith("/"):
        return Refusal(Reason.NO_PATH, "its path is not known")
    if where == "/":
        return Refusal(Reason.ROOT_DIRECTORY, "the root of the file system keeps its default layout")
    for pool in (settings.flash_pool, settings.hdd_pool):
        if not capacity.pools.get(pool):
            return Refusal(Reason.NO_POOL, f"pool {pool!r} does not exist or has no targets")
    if where not in capacity.default_layouts:
        return Refusal(Reason.NO_LAYOUT, "its default layout could not be read")
    if not size.component_bytes:
        return Refusal(size.refused or Reason.SIZES_UNKNOWN, size.reason)
    return None


def refuse_flash(growth: float, capacity: Capacity, settings: FlashSettings) -> Refusal | None:
    """Why the flash pool must not take files that grow by so many bytes per second; None if it may."""
    if capacity.avail_bytes[settings.flash_pool] - growth * settings.reaction_seconds < reserved(capacity, settings):
        free = capacity.avail_bytes[settings.flash_pool]
        return Refusal(Reason.NO_ROOM, f"pool {settings.flash_pool!r} has {bytes_text(free)} free, "
                       f"and the job fills it at {rate_text(growth)}")
    return None


def growth_bytes_per_second(evidence: NoisyNeighbourEvidence, activity: DirectoryActivity) -> float:
    """Growth of the directory in bytes per second: created files less those that the job unlinks."""
    return evidence.aggressor_bytes_per_file * evidence.aggressor_files_per_second * kept_share(activity)


def kept_share(activity: DirectoryActivity) -> float:
    """Share of the created files that the job does not unlink."""
    return 1 - min(activity.unlinks, activity.creates) / activity.creates if activity.creates else 1.0


def existing_files(finding: Finding, evidence: NoisyNeighbourEvidence, activity: DirectoryActivity, layout: Layout,
                   left: float, settings: FlashSettings) -> Iterator[Action]:
    """Moves of closed files into ``left`` bytes: the most read first, then the newest, which are read soonest."""
    if evidence.aggressor_read_share < settings.read_share:
        return
    limit = layout.components[0].extent_end or 0
    settled = [c for c in activity.candidates if c.closed_at <= finding.time - settings.settle_seconds]
    count = 0
    for candidate in sorted(settled, key=lambda c: (-c.reads, -c.closed_at, c.path)):
        size = candidate.size_bytes if candidate.size_bytes is not None else limit
        if size > min(left, limit) or count >= settings.max_moves:
            continue
        left -= size
        count += 1
        yield Action(ActKind.MIGRATE, layout, f"{finding.aggressor} reads its files, and the file is on the disks of "
                     f"{finding.victim}", finding.key, activity.directory, candidate.path, size, candidate.fid)


def large_files(finding: Finding, activity: DirectoryActivity, capacity: Capacity, settings: FlashSettings) -> Plan:
    """Small I/O in large files: a first component does not help, so the whole file must be on flash."""
    actions: list[Action] = []
    refusals: list[Refusal] = []
    known: Mapping[str, Candidate] = {c.path: c for c in activity.candidates}
    left = capacity.avail_bytes.get(settings.flash_pool, 0) - settings.reserve * capacity.size_bytes.get(
        settings.flash_pool, 0
    )
    members = capacity.pools.get(settings.flash_pool, ())
    for file in activity.existing_files:
        if not file.path or not members:
            continue
        layout = Layout((Component(0, None, settings.flash_pool, min(4, len(members))),), composite=False)
        candidate = known.get(file.path)
        size = candidate.size_bytes if candidate else None
        why = f"{finding.aggressor} does small I/O in the whole file, on the disks of {finding.victim}"
        if left <= 0 or (size or 0) > left:
            refusals.append(Refusal(
                Reason.NO_ROOM, f"{why}; only the whole file on flash would help, but pool {settings.flash_pool!r} has "
                "no space for it").about(file.path))
        elif size is not None:
            left -= size
            actions.append(Action(ActKind.MIGRATE, layout, why, finding.key, activity.directory, file.path, size,
                                  file.fid))
        else:
            still = "the file is open" if candidate is None else "its size is not known"
            actions.append(Action(ActKind.ADVISE, layout, f"{why}; only the whole file on flash would help, but "
                                  f"{still}: migrate it when it is closed", finding.key, activity.directory, file.path))
    return Plan(tuple(actions), tuple(refusals))
