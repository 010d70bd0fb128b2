"""Gives files the stripes that striping guides advise: shared files, streams on one target, small files on many.

The rules of the NOTUR guide and of DDN's slides on overstriping:

* Many processes, one file: as many stripes as processes, up to the targets of the pool; beyond that, several objects on
  each target (overstriping), each with locks of its own.
* Few large files: 2 to 8 stripes. The number grows with the root of the size, as in ``lfs migrate -A``.
* Many small files: one stripe.
* Stripe size: a record of the application lies in one stripe. 1 MiB is enough for small records; for a file of many
  clients the guide measured 32 MiB as best on one of two machines, and no difference on the other.

New files get a default layout, which moves no data: its first component keeps one stripe, so that small files beside
large ones have one object. A closed file is rewritten only if the job uses it again, and the time that it is expected
to save is several times the time of the copy. tierd expects as much I/O as it has seen so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isqrt
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Le, Lt

from lustre.layout.model import Component, Layout
from lustre.layout.size import size_text
from tierd.acts import ActKind
from tierd.advised import RPC_BYTES
from tierd.decide.plans import NO_CHANGELOG_SENTENCE, Plan
from tierd.decide.plans import FlashSettings as Pools
from tierd.decide.random_io_to_flash import is_used_again, open_files
from tierd.decide.relocation import ost_index
from tierd.decide.sizing import boundary
from tierd.model import (
    Action,
    Candidate,
    Capacity,
    ContentionEvidence,
    DirectoryActivity,
    Finding,
    StripingEvidence,
)
from tierd.refusal import Reason, Refusal
from tierd.text import bytes_text

MIN_STRIPE_BYTES, MAX_STRIPE_BYTES = 1 << 20, 32 << 20
"""Stripe sizes of the guide."""
MIN_STRIPES, MAX_STRIPES = 2, 8
"""Stripes of few large files, by the guide."""
GIB = 1 << 30


@dataclass(frozen=True)
class Settings:
    """Limits of benefit, size and space."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    benefit_factor: Annotated[float, Ge(1)] = 2.0
    """Minimum time that a job is expected to save, as a multiple of the time of the copy."""
    bytes_per_second: Annotated[float, Gt(0)] = 100e6
    """Sequential throughput of one target while a file is copied."""
    overstripe: bool = True
    """Whether files may have several objects on one target. Clients before Lustre 2.13 cannot read such files."""
    min_file_bytes: Annotated[int, Gt(0)] = 64 << 20
    """Smaller files gain nothing from more stripes."""
    max_file_bytes: Annotated[int, Gt(0)] = 32 << 30
    """Larger files are not rewritten."""
    largest_small_bytes: Annotated[int, Gt(0), Le(64 << 20)] = 16 << 20
    """Maximum end of the component with one stripe at the beginning of new files."""
    min_opens: Annotated[int, Ge(1)] = 3
    """Opens after its creation from which a small file with several stripes is rewritten."""
    reserve: Annotated[float, Gt(0), Lt(1)] = 0.1
    """Share of the pool that stays free."""
    max_moves: Annotated[int, Ge(0)] = 100
    """Maximum number of files in one plan."""


@dataclass(frozen=True, slots=True)
class Stripes:
    """How a large file is striped."""

    count: int
    size_bytes: int
    overstriped: bool = False

    def component(self, start: int, pool: str) -> Component:
        """The last component of a file, from ``start`` on."""
        return Component(start, None, pool, self.count, self.size_bytes,
                         pattern="raid0,overstriped" if self.overstriped else "raid0")


def stripe_bytes(record_bytes: int) -> int:
    """Smallest power of two that holds a record, from 1 to 32 MiB.

    >>> [stripe_bytes(record) >> 20 for record in (0, 47008, 1 << 20, (1 << 20) + 1, 20 << 20, 1 << 30)]
    [1, 1, 1, 2, 32, 32]
    """
    return min(MAX_STRIPE_BYTES, max(MIN_STRIPE_BYTES, boundary(max(record_bytes, 1))))


def shared_stripe_bytes(rpc_bytes: int) -> int:
    """Stripe size of a shared file by its RPCs. The largest RPCs hide how large records are: then 32 MiB, as the guide.

    >>> [shared_stripe_bytes(rpc << 20) >> 20 for rpc in (1, 4, 8, 16)]
    [1, 4, 8, 32]
    """
    return MAX_STRIPE_BYTES if rpc_bytes >= RPC_BYTES else stripe_bytes(rpc_bytes)


def shared_stripes(evidence: ContentionEvidence, targets: int, *, overstripe: bool) -> Stripes | None:
    """Stripes of a file with many openers; None if it has as many objects as it can use.

    The finding names the objects that the file can use: by its openers, its size, and the objects that a target takes.
    """
    wanted = min(evidence.openers, evidence.wanted_objects)
    if wanted > targets and not overstripe:
        wanted = targets
    if targets < 1 or wanted <= evidence.objects:
        return None
    return Stripes(wanted, shared_stripe_bytes(evidence.record_bytes), overstriped=wanted > targets)


def stream_stripes(size_bytes: int, record_bytes: int, targets: int) -> Stripes | None:
    """Stripes of one of few large files: 2 to 8, and no more than targets. None if there is one target only.

    >>> [stream_stripes(gib << 30, 0, 96).count for gib in (0, 1, 4, 16, 1000)]
    [2, 2, 3, 5, 8]
    """
    count = min(targets, MAX_STRIPES, max(MIN_STRIPES, isqrt(size_bytes // GIB) + 1))
    return Stripes(count, stripe_bytes(record_bytes)) if count >= MIN_STRIPES else None


def decide_shared(finding: Finding, evidence: ContentionEvidence, activities: Sequence[DirectoryActivity],
                  capacity: Capacity, pools: Pools, settings: Settings) -> Plan:
    """A default layout for the next shared file, and the move of this one once it is closed."""
    place = the_pool(finding, capacity, pools)
    if isinstance(place, Refusal):
        return Plan((), (place,))
    stripes = shared_stripes(evidence, len(capacity.pools[place]),
                             overstripe=settings.overstripe and capacity.overstriping)
    if stripes is None:
        return Plan((), (Refusal(Reason.NOTHING_TO_DO, "the file has as many objects as it can use").about(
            finding.subject),))
    mine = [activity for activity in activities if activity.directory in finding.directories]
    if not mine:
        return Plan((), (Refusal(Reason.NO_CHANGELOG, NO_CHANGELOG_SENTENCE).about(finding.aggressor),))
    why = f"{evidence.openers} processes of {finding.aggressor} share one file on {evidence.objects} objects"
    part = 1 - evidence.objects / stripes.count
    closed = [(a, c) for a in mine for c in a.candidates if c.path == finding.subject]
    plan = _rewritten(finding, closed, why, lambda _: stripes, place, capacity, settings, part * evidence.seconds,
                      evidence.bytes_per_second, evidence.objects)
    waits = [file for a in mine for file in open_files(a) if file == finding.subject]
    refusals = [Refusal(Reason.IN_USE, "the file is open: tierd rewrites it when it is closed").about(waits[0])
                ] if waits else []
    return Plan((*_defaults(finding, mine, stripes, place, capacity, settings, why), *plan.actions),
                (*plan.refusals, *refusals))


def decide_striping(finding: Finding, evidence: StripingEvidence, activities: Sequence[DirectoryActivity],
                    capacity: Capacity, pools: Pools, settings: Settings) -> Plan:
    """For small files one stripe, for a stream several."""
    mine = [activity for activity in activities if activity.directory in finding.directories]
    if not mine:
        return Plan((), (Refusal(Reason.NO_CHANGELOG, NO_CHANGELOG_SENTENCE).about(finding.aggressor),))
    if evidence.files_created is not None:
        return _small_files(finding, mine, capacity, pools, settings)
    place = the_pool(finding, capacity, pools)
    if isinstance(place, Refusal):
        return Plan((), (place,))
    targets = len(capacity.pools[place])
    record = evidence.record_bytes or 0
    sizes = [c.size_bytes or 0 for a in mine for c in a.candidates]
    usual = stream_stripes(max(sizes, default=0), record, targets)
    if usual is None:
        return Plan((), (Refusal(Reason.NO_POOL, f"pool {place!r} has one target only"),))
    why = f"{finding.aggressor} streams to one target of {targets}"
    closed = [(a, c) for a in mine for c in a.candidates]
    saved = (1 - 1 / usual.count) * (evidence.seconds or 0.0)
    plan = _rewritten(finding, closed, why, lambda c: stream_stripes(c.size_bytes or 0, record, targets), place,
                      capacity, settings, saved / max(1, len(closed)), evidence.bytes_per_second or 0.0, 1)
    return Plan((*_defaults(finding, mine, usual, place, capacity, settings, why), *plan.actions), plan.refusals)


def the_pool(finding: Finding, capacity: Capacity, pools: Pools) -> str | Refusal:
    """The smallest pool with all targets of the finding, or else the disk pool of the scope, if it has targets."""
    holding = sorted((len(members), pool) for pool, members in capacity.pools.items()
                     if finding.targets and set(finding.targets) <= set(members))
    place = holding[0][1] if holding else pools.hdd_pool
    if not capacity.pools.get(place):
        return Refusal(Reason.NO_POOL, f"pool {place!r} does not exist or has no targets")
    return place


def _rewritten(finding: Finding, files: Sequence[tuple[DirectoryActivity, Candidate]], why: str,
               stripes_of: Callable[[Candidate], Stripes | None], pool: str, capacity: Capacity, settings: Settings,
               saved_seconds: float, rate: float, objects: int) -> Plan:
    """Moves of closed files that are used again and pay, while the pool has space.

    ``rate`` is the throughput of the job on the present ``objects``, at which a copy reads at most. It writes to more.
    """
    rate = min(settings.bytes_per_second, rate) if rate > 0 else settings.bytes_per_second
    left = capacity.avail_bytes.get(pool, 0) - settings.reserve * capacity.size_bytes.get(pool, 0)
    actions: list[Action] = []
    refusals: list[Refusal] = []
    for activity, candidate in sorted(files, key=lambda each: (each[1].size_bytes or 0, each[1].path)):
        size = candidate.size_bytes
        if (size is None or not settings.min_file_bytes <= size <= settings.max_file_bytes
                or not is_used_again(candidate)):
            continue
        stripes = stripes_of(candidate)
        if stripes is None:
            continue
        cost = size / rate * (1 + objects / stripes.count)
        if saved_seconds < settings.benefit_factor * cost:
            refusals.append(Refusal(Reason.NOT_WORTH, f"as much I/O again saves {saved_seconds:.0f} s, and the copy "
                                    f"takes {cost:.0f} s").about(candidate.path))
        elif size > left or not fits_targets(size, stripes, pool, capacity, settings):
            refusals.append(Refusal(Reason.NO_ROOM, f"pool {pool!r} has {bytes_text(max(0.0, left))} above its "
                                    f"reserve, and the copy needs {bytes_text(size)} on {stripes.count} objects").about(
                                        candidate.path))
        elif (len(actions) < settings.max_moves
              and candidate.closed_at <= finding.time - min(MAX_SETTLE_SECONDS, max(SETTLE_SECONDS, size / rate))):
            left -= size
            layout = placed(Layout((stripes.component(0, pool),), composite=False), capacity)
            actions.append(Action(ActKind.MIGRATE, layout, f"{why}; {_words(stripes)}", finding.key,
                                  activity.directory, candidate.path, size, candidate.fid))
    return Plan(tuple(actions), tuple(refusals))


def placed(layout: Layout, capacity: Capacity) -> Layout:
    """The layout of a moved file, which names the OSTs with most room if its pool has targets that take no files.

    A pool alone lets Lustre choose any of its targets, also one that is drained but still creates objects.
    """
    def of(component: Component) -> Component:
        if component.on_mdt or not capacity.closed.get(component.pool):
            return component
        members = sorted(capacity.pools[component.pool], key=lambda target: (
            -capacity.fill[target].avail_bytes if target in capacity.fill else 0, target))
        count = component.stripe_count if component.stripe_count > 0 else len(members)
        chosen = [ost_index(members[number % len(members)]) for number in range(count)]
        return replace(component, stripe_count=count, ost_list=tuple(chosen))

    return replace(layout, components=tuple(map(of, layout.components)))


def fits_targets(size_bytes: int, stripes: Stripes, pool: str, capacity: Capacity, settings: Settings) -> bool:
    """Whether as many targets as the copy uses have room for its part on each. Unknown space counts as free.

    Lustre places a stripe on any target of the pool that is not full, however little room it has.
    """
    members = capacity.pools[pool]
    used = min(stripes.count, len(members))
    each = size_bytes / used
    fill = [capacity.fill[target] for target in members if target in capacity.fill]
    short = sum(room.avail_bytes - settings.reserve * room.size_bytes < each for room in fill)
    return len(members) - short >= used


SETTLE_SECONDS = 10.0
"""Files closed more recently are not moved: they may be opened again."""
MAX_SETTLE_SECONDS = 60.0
"""A file stays closed for about as long as it has been closed, so it must have been closed for the time of a copy; but
for this time at most, because its finding ends soon after the job has closed it."""


def _words(stripes: Stripes) -> str:
    objects = f"{stripes.count} objects (overstriping)" if stripes.overstriped else f"{stripes.count} stripes"
    return f"{objects} of {size_text(stripes.size_bytes)}"


def _defaults(finding: Finding, activities: Sequence[DirectoryActivity], stripes: Stripes, pool: str,
              capacity: Capacity, settings: Settings, why: str) -> Iterator[Action]:
    """Default layouts for directories in which the job makes large files."""
    for activity in activities:
        where = activity.directory
        if (not activity.creates or not where.startswith("/") or where == "/"
                or where not in capacity.default_layouts):
            continue
        wanted = with_stripes(capacity.default_layouts[where], stripes, pool, small_end(activity, settings))
        if wanted is not None:
            yield Action(ActKind.SET_DEFAULT_LAYOUT, wanted, f"{why}; new files get {_words(stripes)}", finding.key,
                         directory=where)


def small_end(activity: DirectoryActivity, settings: Settings) -> int:
    """End of the first component of new files: small files of the directory fit.

    >>> small_end(DirectoryActivity("j", "/d", sizes=(100, 3 << 20, 1 << 40)), Settings()) >> 20
    4
    """
    small = [size for size in activity.sizes if 0 < size <= settings.largest_small_bytes]
    return min(settings.largest_small_bytes, max(4 << 20, boundary(max(small)))) if small else 4 << 20


def with_stripes(present: Layout | None, stripes: Stripes, pool: str, end: int) -> Layout | None:
    """The default layout with these stripes in its last component. None if it has as many, or must not change.

    A default with several components keeps them all but the last. Only the form that tierd sets itself, or a plain one,
    is changed: a person set another composite layout on purpose.
    """
    if present is not None and len(present.components) > 1:
        first, tail = present.components[0], present.components[-1]
        if len(present.components) > 2 or present.mirror_count > 1 or _has_stripes(tail, stripes):
            return None
        return replace(present, components=(first, stripes.component(tail.extent_start, tail.pool or pool)))
    if present is not None and (present.components[0].on_mdt or _has_stripes(present.components[0], stripes)):
        return None
    return Layout((Component(0, end, pool, 1), stripes.component(end, pool)))


def _has_stripes(component: Component, stripes: Stripes) -> bool:
    return component.stripe_count < 0 or component.stripe_count >= stripes.count


def _small_files(finding: Finding, activities: Sequence[DirectoryActivity], capacity: Capacity, pools: Pools,
                 settings: Settings) -> Plan:
    """One stripe for small files: the beginning of new files, and existing files that are read again and again."""
    actions: list[Action] = []
    refusals: list[Refusal] = []
    for activity in activities:
        where = activity.directory
        wanted = with_one_stripe(capacity.default_layouts.get(where), small_end(activity, settings), pools.hdd_pool)
        if where not in capacity.default_layouts or not where.startswith("/") or where == "/":
            refusals.append(Refusal(Reason.NO_LAYOUT, "its default layout could not be read").about(where))
            continue
        if wanted is None:
            refusals.append(Refusal(Reason.OTHER_LAYOUT, "its default layout is composite, which a person set on "
                                    "purpose, or has one stripe already").about(where))
            continue
        actions.append(Action(ActKind.SET_DEFAULT_LAYOUT, wanted, f"{finding.aggressor} makes small files here; one "
                              "stripe takes one object each", finding.key, directory=where))
        first = wanted.components[0]
        if not capacity.pools.get(first.pool):
            continue
        again = [c for c in activity.candidates if c.opens >= settings.min_opens and c.size_bytes is not None
                 and 0 < c.size_bytes <= (first.extent_end or 0) and c.closed_at <= finding.time - SETTLE_SECONDS]
        left = capacity.avail_bytes.get(first.pool, 0) - settings.reserve * capacity.size_bytes.get(first.pool, 0)
        for candidate in sorted(again, key=lambda c: (-c.opens, c.path))[:settings.max_moves]:
            if (candidate.size_bytes or 0) <= left:
                left -= candidate.size_bytes or 0
                actions.append(Action(
                    ActKind.MIGRATE, placed(wanted, capacity),
                    f"{finding.aggressor} opens the small file again and again, and it has several objects",
                    finding.key, where, candidate.path, candidate.size_bytes or 0, candidate.fid))
    return Plan(tuple(actions), tuple(refusals))


def with_one_stripe(present: Layout | None, end: int, pool: str) -> Layout | None:
    """A plain default layout with one stripe at the beginning of each file. None if it must not change."""
    if present is None or len(present.components) != 1 or present.mirror_count > 1:
        return None
    only = present.components[0]
    if only.on_mdt or only.foreign is not None or only.stripe_count in {0, 1}:
        return None
    return Layout((Component(0, end, only.pool or pool, 1),
                   replace(only, extent_start=end, extent_end=None, pool=only.pool or pool, objects=(), flags=())))

