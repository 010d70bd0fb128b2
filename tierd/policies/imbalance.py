"""One target of a pool is much fuller or busier than the others. The slowest target limits every striped file.

Rebalance: files move from the fullest targets of a pool to the emptiest of the same pool, until the pool is even. The
used share of the whole pool does not change by moves within it. A target above it by more than a band gives files, and
never falls below it. A target below it takes files, and never rises above it. So every move brings two targets nearer
to the pool, no target does both, and the moves end. A file moves once in ``rest_days``. A target that is drained or
degraded, or creates no objects, takes none.

Large files come first, because they need the fewest moves, and among files of similar size those unused for longest.
Files whose objects are mostly on other targets come last: a move copies the whole file.

It is judged by the fill, and by steady jobs while files move. It is not undone: a move back costs as much as the move,
and the target would be full again. If a job loses, or the fill hardly changes, they stop for ``cooldown_seconds``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from lustre.fid import Fid
from tierd.acts import Verdict
from tierd.decide.plans import RETRY_SECONDS, Plan, move
from tierd.decide.relocation import Destinations, bytes_per_ost, hard_case, ost_index, osts_of, relocate
from tierd.detect.groups import grouped
from tierd.detect.profile import Classes
from tierd.detect.view import View, room_on
from tierd.model import Action, Advice, Evidence, Finding, JobLoad, StoredFile, Table
from tierd.policies.protocol import Common, MoveRun, Policy, Situation, Tables, Walk, edge
from tierd.refusal import Reason, Refusal
from tierd.text import bytes_text, count_of, first_names, percent, quoted, rate_text
from tierd.validators import Count, NotNegative, Positive, Ratio, Share, ShareOrNone
from tierd.verify.judgement import Judgement, harmed_by

DAY_SECONDS = 86_400.0
MIN_BYTES_PER_SECOND = 5e6
MIN_OPERATIONS_PER_SECOND = 50.0
"""Minimum load of the target, in bytes or in operations. Choices."""
MIN_BYTES = 1 << 20
"""Smaller files do not move: they hardly change the fill. A choice."""
MAX_BYTES = 1 << 40
"""Larger files do not move. A copy would take hours: a choice."""
BAND = 0.03
"""A target gives files while its used share exceeds that of its pool by more than this. A choice."""
REST_DAYS = 30.0
"""Days in which a moved file does not move again. A choice."""


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    enter_fill: Share = 0.2
    """The finding begins if a target's used share exceeds the median of the other targets by this difference. Lustre
    evens out new objects from 17% on (``qos_threshold_rr``)."""
    enter_load: Ratio = 3.0
    """The finding begins at this ratio of a target's bytes or operations to the mean of the other targets. A choice."""


@dataclass(frozen=True)
class Rebalance(Table):
    """Which files move, and how far: the table ``[rebalance]``."""

    directories: tuple[str, ...] = ("/",)
    """Directories (paths below the root of the file system) whose files may move."""
    scan_files_per_second: Positive = 100.0
    """Maximum number of files examined per second while a pool is uneven. Each takes some requests to an MDT. A
    choice."""
    idle_days: NotNegative = 1.0
    """Files used more recently do not move. Lustre writes access times late (``atime_diff``)."""
    reserve: ShareOrNone = 0.1
    """Share of each target that stays free. A choice."""
    max_moves: Count = 200
    """Maximum number of files in one plan; the next plan may have more. A choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FillEvidence(Evidence):
    """Used space of one target and of the other targets of its pool: ``imbalance`` by space."""

    used_share: float
    others_used_share: float
    """Median of the other targets."""
    pool_used_share: float
    """Used share of the whole pool, which moves within it do not change."""


def find(view: View, settings: Settings) -> Iterator[Finding]:
    loads = grouped(each for job in view.profiles().values() for each in job.by_target.items())
    for pool, members in sorted(view.facts.pools.items()):
        if len(members) > 1:
            yield from fill_findings(pool, members, view, settings)
            yield from load_findings(pool, members, loads, view, settings)


def fill_findings(pool: str, members: Sequence[str], view: View, settings: Settings) -> Iterator[Finding]:
    """Find a target that is fuller than the other targets of its pool, or emptier, such as one just added.

    A target that takes no files, such as a drained one, is never too empty, and the others are not compared with it. A
    target in several pools belongs to the smallest.
    """
    known = {t: view.facts.fill[t] for t in members if t in view.facts.fill}
    takers = {t: fill for t, fill in known.items() if t not in view.facts.closed}
    far = list[tuple[bool, bool, float, float, str]]()
    for target, fill in sorted(known.items()):
        rest = [other.used for name, other in takers.items() if name != target]
        if not rest or view.facts.pool_of(target) != pool:
            continue
        subject, others = f"fill of {target}", median(rest)
        too_full, difference = fill.used > others, abs(fill.used - others)
        if (difference >= edge(settings.enter_fill, view, POLICY.name, "", subject)
                and (too_full or target in takers)):
            held = (POLICY.name, "", subject) in view.active  # one that is reported already stays the reported one
            far.append((too_full, held, difference, others, target))
    if far:
        too_full, _, _, others, target = max(far, key=lambda each: each[:3])
        yield POLICY.finding(
            view, f"{quoted(target)} is {percent(known[target].used)} full; the median of the other targets of pool "
            f"{quoted(pool)} is {percent(others)}",
            FillEvidence(used_share=known[target].used, others_used_share=others,
                         pool_used_share=room_on(known, known).used),
            targets=(target,), advice_only=False, subject=f"fill of {target}",
            advice=_fill_advice(pool, target, too_full=too_full))


def _fill_advice(pool: str, target: str, *, too_full: bool) -> Iterator[Advice]:
    large = "-size +1G -c 1 -print0 | xargs -0 -n 1 lfs migrate --non-block"
    yield Advice(f"lfs find MOUNT --ost {quoted(target)} {large} -c 1 -p {quoted(pool)}" if too_full else
                 f"lfs find MOUNT --pool {quoted(pool)} {large} -p {quoted(pool)} -o {ost_index(target)}",
                 "on a client, when the file system is quiet, until the fill is even",
                 f"moves large files of one stripe to {'other targets of the pool' if too_full else 'this target'}; "
                 "tierd does this if act.on has imbalance")
    if too_full:
        yield Advice(f"lctl set_param osp.{quoted(target)}-osc-MDT*.max_create_count=0",
                     "on all MDS, until the fill is even",
                     "stops new objects there; existing files stay usable. To undo, set the previous value (20000)")


def load_findings(pool: str, members: Sequence[str], loads: Mapping[str, Sequence[JobLoad]], view: View,
                  settings: Settings) -> Iterator[Finding]:
    seconds = sum(window.seconds for window in view.recent())
    least = {"moved_bytes": MIN_BYTES_PER_SECOND, "operations": MIN_OPERATIONS_PER_SECOND}
    for of, enough in least.items():
        rates = {target: sum(float(getattr(load, of)) for load in loads.get(target, ())) / seconds
                 for target in members}
        busiest = max(members, key=lambda t: rates[t])
        rate, others = rates[busiest], (sum(rates.values()) - rates[busiest]) / (len(members) - 1)
        if (view.facts.pool_of(busiest) != pool
                or rate < max(enough, edge(settings.enter_load, view, POLICY.name, "", f"load of {busiest}") * others)):
            continue
        most, total = max(loads[busiest], key=lambda load: load.operations), sum(
            load.operations for load in loads[busiest])
        job, profile = most.job, view.profiles()[most.job]
        in_pool = sum(profile.by_target[member].moved_bytes for member in members if member in profile.by_target)
        spread = most.moved_bytes >= 0.5 * in_pool > 0 and not profile.is_small_files(Classes())
        shown, instead = ((rate_text(rate), rate_text(others)) if of == "moved_bytes" else
                          (f"{rate:.0f} operations/s", f"{others:.0f} operations/s"))
        yield POLICY.finding(
            view, f"{quoted(busiest)} serves {shown}; the other targets of pool {quoted(pool)} serve {instead} on "
            f"average; {quoted(job)} causes {percent(most.operations / max(total, 1))} of the operations on "
            f"{quoted(busiest)}", {f"{of}_per_second": rate, f"others_{of}_per_second": others},
            targets=(busiest,), subject=f"load of {busiest}",
            advice=(Advice(f"lfs setstripe -c {min(4, len(members))} -p {quoted(pool)} DIRECTORY",
                           f"directories of {quoted(job)} with few large files",
                           "spreads the bytes over more targets"),) if spread else ())
        return


def plan(finding: Finding, _: FillEvidence, situation: Situation) -> Plan:
    capacity, settings = situation.capacity, situation.tables.of(Rebalance)
    if situation.draining:
        return Plan((), (Refusal(Reason.OTHER_MOVER, f"{first_names(sorted(situation.draining))} is being drained: "
                                 "files move when that has ended"),))
    if situation.victim_slowed:  # the moves would load its disks too
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
                            if capacity.fill[target].used > room_on(may_take, capacity.fill).used)]
    level = room_on(members, capacity.fill).used
    donors = {ost_index(target) for target in members if capacity.fill[target].used > level + BAND}
    takers = {ost_index(target): level for target in may_take if capacity.fill[target].used < level}
    closed = {ost_index(target) for target in capacity.closed.get(pool, ())}
    room = Destinations({pool: every[pool]}, capacity.fill, settings.reserve, closed, takers)
    actions = tuple(moves(finding, pool, level, donors, room, closed, situation))
    if actions or not donors:
        return Plan(actions, ())
    return Plan((), (Refusal(Reason.NOTHING_TO_DO, f"no file found so far can move within pool {pool!r} (idle for "
                             f"{settings.idle_days:g} days, not moved in {REST_DAYS:g} days, not larger than the "
                             "excess of the target)"),))


def moves(finding: Finding, pool: str, level: float, donors: set[int], room: Destinations, closed: set[int],
          situation: Situation) -> Iterator[Action]:
    """Moves in order, until no target is above the pool by more than the band.

    A move makes a new object on each OST of the file that it does not leave, so such an OST must not be ``closed``.
    """
    settings, now = situation.tables.of(Rebalance), finding.time
    idle_before = now - settings.idle_days * DAY_SECONDS
    chosen: set[Fid] = set()
    for file in sorted(situation.facts.resident, key=lambda file: order(file, donors)):
        leave = {index for index in osts_of(file.layout) & donors if room.used(index) > level + BAND}
        if (not leave or file.layout is None or file.read_at >= idle_before or hard_case(file.layout)
                or not MIN_BYTES <= file.size_bytes <= MAX_BYTES or file.fid in chosen
                or situation.was_tried(file.fid, now - REST_DAYS * DAY_SECONDS, now - RETRY_SECONDS)):
            continue
        held = bytes_per_ost(file.layout, file.size_bytes)
        leave = {index for index in leave if room.used(index, -held[index]) >= level}
        stays = osts_of(file.layout) - leave
        found = relocate(file.layout, file.size_bytes, leave, room) if leave and closed.isdisjoint(stays) else None
        if found is None or isinstance(found, Refusal):
            continue
        fullest = max(leave, key=lambda index: held[index])
        yield move(finding, file.path.rpartition("/")[0] or "/", file, found,
                   f"OST{fullest:04x} is fuller than pool {pool!r}, which is {percent(level)} full")
        chosen.add(file.fid)
        if len(chosen) >= settings.max_moves:
            return


def order(file: StoredFile, donors: set[int]) -> tuple[float, int, float, str]:
    """Files that free most of the bytes that their move copies, then large ones, then those unused for longest."""
    held = bytes_per_ost(file.layout, file.size_bytes) if file.layout is not None else {}
    freed = sum(size for index, size in held.items() if index in donors) / max(file.size_bytes, 1)
    return -round(freed, 2), -file.size_bytes.bit_length(), file.read_at, file.path


def judge(finding: Finding, evidence: FillEvidence, run: MoveRun) -> Judgement | None:
    """It helped if the difference of the fill is smaller by ``min_gain`` of what it was, and no job lost throughput.

    While files move, steady jobs on the targets of the pool are compared with the time just before, and with jobs on
    other targets. Later than ``moving_seconds`` after that, a loss may have any cause.
    """
    facts, settings, target = run.facts, run.settings, finding.targets[0]
    pool = facts.pools.get(facts.pool_of(target), ())
    rest = [facts.fill[other].used for other in pool
            if other != target and other in facts.fill and other not in facts.closed]
    since, slowed = run.begun_at + settings.settle_seconds, dict[str, float]()
    if run.moving and since + settings.harm_seconds <= run.now <= run.begun_at + settings.moving_seconds:
        before = [w for w in run.windows if run.begun_at - settings.judge_seconds <= w.start and w.end <= run.begun_at]
        later = [w for w in run.windows if w.start >= max(since, run.now - settings.judge_seconds)
                 and w.conditions.keys().isdisjoint(pool)]
        _, slowed = harmed_by(before, later, finding, set(pool), set(), settings=settings, operations=False)
    if not rest or target not in facts.fill or (run.moving and not slowed):
        return None
    used, others = facts.fill[target].used, median(rest)
    apart = abs(evidence.used_share - evidence.others_used_share)
    share = 1 - abs(used - others) / apart if apart else 0.0
    again = f"the files stay, and tierd tries again in {settings.cooldown_seconds / 3600:g} h"
    if slowed:
        verdict = Verdict.HARMED_OTHERS
        losses = ", ".join(f"{quoted(job)} lost {percent(lost)}" for job, lost in sorted(slowed.items()))
        begin = f"stopped: jobs got slower while files moved: {losses}; {again}"
    elif share < settings.min_gain:
        verdict, begin = Verdict.DID_NOT_HELP, f"stopped: the fill hardly changed; {again}"
    else:
        verdict = Verdict.HELPED
        begin = f"it helped, and no steady job lost more than {percent(settings.max_harm)}"
    files, size_bytes = run.moved()
    words = (f"{begin}. {quoted(target)} was {percent(evidence.used_share)} full and the others "
             f"{percent(evidence.others_used_share)}, now {percent(used)} and {percent(others)}; "
             f"{count_of(files, 'file')} with {bytes_text(size_bytes)} moved in "
             f"{max(1, round((run.last_at - run.case_begun_at) / 60))} min")
    return Judgement(verdict, 0.0, 0.0, 0.0, harmed=slowed, words=words, won_back=max(0.0, share))


def walk(tables: Tables) -> Walk:
    settings = tables.of(Rebalance)
    return Walk(settings.directories, settings.scan_files_per_second, MIN_BYTES)


POLICY = Policy("imbalance", Settings, find, evidence=FillEvidence, plan=plan, by_scope=False,
                tables={"rebalance": Rebalance}, can_wait=True, judge_moves=judge, walk=walk)
