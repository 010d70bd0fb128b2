"""Gives files the stripes that striping guides advise: shared files, streams on one target, small files on many.

The policies say how many. A record of the application lies in one stripe: 1 MiB is enough for small records; for a
file of many clients the NOTUR guide measured 32 MiB as best on one of two machines, and no difference on the other.

New files get a default layout, which moves no data: its first component keeps one stripe, so that small files beside
large ones have one object. A closed file is rewritten only if the job uses it again, and the time that it is expected
to save is several times the time of the copy. tierd expects as much I/O as it has seen so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lustre.layout.model import Component, Layout
from lustre.layout.size import size_text
from tierd.decide import plans
from tierd.decide.sizing import boundary
from tierd.model import Candidate, Capacity, DirectoryActivity, Finding, Table
from tierd.refusal import Reason, Refusal
from tierd.text import bytes_text
from tierd.validators import Bytes, Count, Factor, Switch

MIN_STRIPE_BYTES, MAX_STRIPE_BYTES = 1 << 20, 32 << 20
"""Stripe sizes of the guide."""
MIN_FILE_BYTES = 64 << 20
"""Smaller files gain nothing from more stripes. A choice."""
LARGEST_SMALL_BYTES = 16 << 20
"""Maximum end of the component with one stripe at the beginning of new files. A choice."""
RESERVE = 0.1
"""Share of the pool that stays free. A choice."""
SETTLE_SECONDS = 10.0
"""Files closed more recently are not moved: they may be opened again."""
MAX_SETTLE_SECONDS = 60.0
"""A file stays closed for about as long as it has been closed, so it must have been closed for the time of a copy; but
for this time at most, because its finding ends soon after the job has closed it."""


@dataclass(frozen=True)
class Restripe(Table):
    """Limits of benefit, size and space: the table ``[restripe]``."""

    benefit_factor: Factor = 2.0
    """Minimum time that a job is expected to save, as a multiple of the time of the copy. A choice, because the
    estimate is rough."""
    overstripe: Switch = True
    """Whether files may have several objects on one target. Clients before Lustre 2.13 cannot read such files."""
    max_file_bytes: Bytes = 32 << 30
    """Larger files are not rewritten. A copy takes minutes: a choice."""
    max_moves: Count = 100
    """Maximum number of files in one plan. A choice: the next plan may have more."""


def striped(pool: str, count: int, size_bytes: int, *, overstriped: bool = False) -> Component:
    """How a large file is striped: the component in which it ends."""
    return Component(0, None, pool, count, size_bytes, pattern="raid0,overstriped" if overstriped else "raid0")


def stripe_bytes(record_bytes: int) -> int:
    """Smallest power of two that holds a record, from 1 to 32 MiB.

    >>> [stripe_bytes(record) >> 20 for record in (0, 47008, 1 << 20, (1 << 20) + 1, 20 << 20, 1 << 30)]
    [1, 1, 1, 2, 32, 32]
    """
    return min(MAX_STRIPE_BYTES, max(MIN_STRIPE_BYTES, boundary(max(record_bytes, 1))))


def the_pool(finding: Finding, capacity: Capacity, pools: plans.FlashSettings) -> str | Refusal:
    """The smallest pool with all targets of the finding, or else the disk pool of the scope, if it has targets."""
    holding = sorted((len(members), pool) for pool, members in capacity.pools.items()
                     if finding.targets and set(finding.targets) <= set(members))
    place = holding[0][1] if holding else pools.hdd_pool
    return plans.missing_pool(capacity, place) or place


def restriped(finding: Finding, activities: Sequence[DirectoryActivity], capacity: Capacity, settings: Restripe,
              stripes_of: Callable[[int], Component], *, why: str, seconds: float, rate: float, objects: int,
              path: str = "") -> plans.Steps:
    """Default layouts for new files, and moves of closed files, which get stripes by their sizes.

    The job has used its files for ``seconds`` with this ``rate`` on ``objects``. ``path``: of the only file that moves.
    """
    closed = [(activity, file) for activity, file in plans.closed_files(
        activities, MIN_FILE_BYTES, settings.max_file_bytes) if path in {"", file.path}]
    usual = stripes_of(max((file.size_bytes or 0 for _, file in closed), default=0))
    for activity in activities:
        where = activity.directory
        present = capacity.default_layouts.get(where)
        wanted = with_stripes(present, usual, small_end(activity)) if activity.creates else None
        if wanted is not None and not plans.default_refusal(where, capacity):
            yield plans.new_default(finding, where, wanted, f"{why}; new files get {words(usual)}")
    yield from rewritten(
        finding, closed, lambda file: stripes_of(file.size_bytes or 0), usual.pool, capacity, why=why,
        saved_seconds=(1 - objects / usual.stripe_count) * seconds / max(1, len(closed)),
        benefit_factor=settings.benefit_factor, rate=rate, objects=objects,
        left_bytes=plans.room_bytes(capacity, usual.pool, RESERVE), most=settings.max_moves)


def rewritten(finding: Finding, files: Sequence[tuple[DirectoryActivity, Candidate]],
              stripes_of: Callable[[Candidate], Component], pool: str, capacity: Capacity, *, why: str,
              saved_seconds: float, benefit_factor: float, rate: float, objects: int, left_bytes: float, most: int,
              settle_seconds: float = SETTLE_SECONDS) -> plans.Steps:
    """Moves of files that the job uses again, that save several times the time of their copy, and that fit the pool.

    ``rate`` is the throughput of the job on the present ``objects``, at which a copy reads at most. It writes to more.
    """
    rate = min(plans.DISK_BYTES_PER_SECOND, rate) if rate > 0 else plans.DISK_BYTES_PER_SECOND
    for activity, file in sorted(files, key=lambda each: (each[1].size_bytes or 0, each[1].path)):
        size, stripes = file.size_bytes or 0, stripes_of(file)
        if file.created_at > 0 and not file.opens:
            continue  # the job only made it
        cost = size / rate * (1 + objects / stripes.stripe_count)
        if saved_seconds < benefit_factor * cost:
            yield Refusal(Reason.NOT_WORTH, f"as much I/O again saves {saved_seconds:.0f} s, and the copy takes "
                          f"{cost:.0f} s").about(file.path)
        elif size > left_bytes or not fits_targets(size, stripes, capacity):
            yield Refusal(Reason.NO_ROOM, f"{bytes_text(max(0.0, left_bytes))} of pool {pool!r} may be used, and the "
                          f"copy needs {bytes_text(size)} on {stripes.stripe_count} objects").about(file.path)
        elif most > 0 and file.closed_at <= finding.time - min(MAX_SETTLE_SECONDS, max(settle_seconds, size / rate)):
            left_bytes -= size
            most -= 1
            yield plans.move(finding, activity.directory, file, Layout((stripes,), composite=False),
                             f"{why}; {words(stripes)}")


def fits_targets(size_bytes: int, stripes: Component, capacity: Capacity) -> bool:
    """Whether as many targets as the copy uses have room for its part on each. Unknown space counts as free.

    Lustre places a stripe on any target of the pool that is not full, however little room it has.
    """
    members = capacity.pools[stripes.pool]
    used = min(stripes.stripe_count, len(members))
    fill = [capacity.fill[target] for target in members if target in capacity.fill]
    short = sum(room.avail_bytes - RESERVE * room.size_bytes < size_bytes / used for room in fill)
    return len(members) - short >= used


def words(stripes: Component) -> str:
    objects = "objects (overstriping)" if stripes.overstriped else "stripes"
    return f"{stripes.stripe_count} {objects} of {size_text(stripes.stripe_size)}"


def small_end(activity: DirectoryActivity) -> int:
    """End of the first component of new files: small files of the directory fit.

    >>> small_end(DirectoryActivity("j", "/d", sizes=(100, 3 << 20, 1 << 40))) >> 20
    4
    """
    small = [size for size in activity.sizes if 0 < size <= LARGEST_SMALL_BYTES]
    return max(4 << 20, boundary(max(small, default=1)))


def with_stripes(present: Layout | None, stripes: Component, end: int) -> Layout | None:
    """The default layout with these stripes in its last component. None if it has as many, or must not change.

    A default with several components keeps them all but the last. Only the form that tierd sets itself, or a plain one,
    is changed: a person set another composite layout on purpose.
    """
    if present is not None and len(present.components) > 1:
        first, tail = present.components[0], present.components[-1]
        if len(present.components) > 2 or present.mirror_count > 1 or _is_left_alone(tail, stripes):
            return None
        return replace(present, components=(first, replace(stripes, extent_start=tail.extent_start,
                                                           pool=tail.pool or stripes.pool)))
    if present is not None and (present.components[0].on_mdt or _is_left_alone(present.components[0], stripes)):
        return None
    return Layout((Component(0, end, stripes.pool, 1), replace(stripes, extent_start=end)))


def _is_left_alone(component: Component, stripes: Component) -> bool:
    return component.extension_size > 0 or not 0 <= component.stripe_count < stripes.stripe_count
