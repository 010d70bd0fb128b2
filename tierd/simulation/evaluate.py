"""``tierctl evaluate``: runs random scenarios without neighbours, without tierd and with tierd.

Each scenario is classified by measurement, against the same run without the suspects. A suspect is an aggressor when a
stream loses at least 15%, and innocent when every stream loses less than 5%. A loss between the two counts as neither.
A scenario is shifted, and no suspect an aggressor, when other streams have what a stream lost, but for less than 5%.
"""

from __future__ import annotations

import signal
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

from simulator.cluster import Cluster
from simulator.jobs import Job
from simulator.jobs.small_files import SmallFileWriter
from tierd import acts
from tierd.arrays import group_of
from tierd.config.act import Mode
from tierd.config.settings import Settings
from tierd.daemon.process import collect_garbage_rarely
from tierd.model import Finding
from tierd.policies.registry import has_victim, policy_of
from tierd.simulation.beds import BedKind
from tierd.simulation.comparison import streams
from tierd.simulation.random_scenarios import GROUPS, NOISE_ENDS, Goal, RandomScenario, random_scenario
from tierd.simulation.run import Beside, Outcome, run
from tierd.structs import json_text
from tierd.text import table

AGGRESSOR_LOSS, INNOCENT_LOSS, HARMFUL_LOSS = 0.15, 0.05, 0.02
FOUND_SOON_SECONDS = 30.0
"""Seconds from the onset within which a finding counts as early."""
FOUND_SECONDS = 60.0
"""Seconds within which a finding counts in a cold evaluation."""
TAIL_SECONDS = 30.0
"""Length of the interval before the end of the noise in which recovery is measured."""
EVEN_SHARE = 0.15
"""Difference of the used share of a target from the others up to which a pool is even: there the finding ends."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of one scenario. Fractions are of throughput."""

    seed: int
    kind: str
    truth: str
    """Class by measurement: ``aggressor``, ``shifted``, ``innocent`` or ``slight``."""
    loss: float
    """Largest loss of a stream without tierd."""
    found_after: float | None
    """Seconds from the onset, or from a later start of tierd, to the first finding that names a suspect."""
    acted: bool
    harm: float
    """Largest loss of a job with tierd against the run without it; negative when all gain."""
    recovery: float | None
    """Throughput of the streams with tierd at the end of the noise, as a fraction of that without neighbours."""
    served: bool = False
    """Whether tierd placed a job's own files for the benefit of that job (:func:`blames_nobody`)."""
    gain: float | None = None
    """Gain of that job in the second half of the run against the run without tierd; None in other workloads."""
    goal_met: bool | None = None
    """Whether what tierd did reached the goal of the workload, and no job lost more than 2%. None without a goal, where
    tierd did nothing, and where it is still on the way (:attr:`under_way`)."""
    bed: str = BedKind.RECORDED
    acted_after: float | None = None
    """Seconds from the onset, or from a later start of tierd, to the first act."""
    layout_helps: bool = False
    """Whether a default layout can help against the suspects: all make new files."""
    interval_holds: bool | None = None
    """Whether the 90% interval of a finding holds what its victim lost; None without a finding."""
    under_way: bool = False
    """Whether moves toward the goal are queued at the end, because they give way to a stream, and no job lost more."""


def blames_nobody(kind: str) -> bool:
    """Whether a finding serves a job or a pool, so that tierd acts on it only where the configuration allows it.

    Such acts do not count as acts against an innocent job.
    """
    policy = policy_of(kind)
    return policy.plan is not None and not policy.on_by_default


COLD_SECONDS = 5.0
"""Seconds after the onset at which tierd starts in a cold evaluation."""


def evaluate(seed: int, policy: Settings, cold: bool = False, workloads: Collection[str] = (),
             bed: BedKind = BedKind.RECORDED) -> Verdict:
    """Run one scenario up to three times and compare. ``cold``: all jobs are active before tierd starts.

    Runs that are known to be the same are made once: without suspects nothing needs to be left out, and where tierd
    did not act the jobs run as without it. tierd's own requests have random numbers of their own.
    """
    return Trial(seed, workloads, bed).verdict(policy, cold)


class Trial:
    """One random scenario, and its runs without tierd. Verdicts on several policies, or warm and cold, share them."""

    def __init__(self, seed: int, workloads: Collection[str] = (), bed: BedKind = BedKind.RECORDED) -> None:
        self.case = random_scenario(seed, workloads, bed)
        self._seed = seed
        self._watched: tuple[float, Outcome] | None = None

    def run_with(self, jobs: Sequence[Job], policy: Settings | None = None, tierd_starts: float = 0.0,
                 seconds_max: float = float("inf"), beside: Beside = lambda *_: None) -> Outcome:
        """Run these jobs of the scenario. With a policy, tierd runs too, from ``tierd_starts`` on."""
        bed = self.case.bed
        cluster = Cluster(self.case.cluster(self._seed), jobs)
        cluster.exporter_load = bed.load
        return run(cluster, jobs, min(self.case.seconds, seconds_max), self.case.changes, policy,
                   tierd_starts=tierd_starts, cycle_seconds=bed.cycle_seconds, beside=beside)

    def without_acts(self, policy: Settings, tierd_starts: float = 0.0) -> Outcome:
        """Run of all jobs in which tierd only observes: its findings show what the neighbours cost undisturbed."""
        if self._watched is None or self._watched[0] != tierd_starts:
            watching = replace(policy, act=replace(policy.act, mode=Mode.OBSERVE),
                               scopes=tuple(replace(scope, mode=Mode.OBSERVE) for scope in policy.scopes))
            self._watched = tierd_starts, self.run_with(self.case.jobs, watching, tierd_starts)
        return self._watched[1]

    @cached_property
    def without_suspects(self) -> Outcome:
        """Run without the suspects and without tierd, up to the end of their noise: nothing compares the time after."""
        return self.run_with([job for job in self.case.jobs if job.job_id not in self.case.suspects],
                             seconds_max=NOISE_ENDS)

    def verdict(self, policy: Settings, cold: bool = False) -> Verdict:
        """Run tierd with a policy, and compare. ``cold``: all jobs are active before tierd starts."""
        starts = self.case.noise_starts + COLD_SECONDS if cold else 0.0
        with_tierd = self.run_with(self.case.jobs, policy, starts)
        without = self.without_acts(policy, starts) if with_tierd.entries else with_tierd
        alone = self.without_suspects if self.case.suspects else without
        return compared(self._seed, self.case, with_tierd, without, alone, starts=starts)


def compared(seed: int, case: RandomScenario, with_tierd: Outcome, without: Outcome, alone: Outcome,
             starts: float) -> Verdict:
    """Verdict on a scenario from its runs with tierd, without it, and without it and the suspects."""
    flows = [(job.job_id,) for job in streams(case.jobs)]
    loss = max(1 - ratio(without, alone, job, case.noise_starts + 5, NOISE_ENDS) for job in flows)
    truth = "served" if case.served or case.goal else "slight"
    if case.suspects and loss >= AGGRESSOR_LOSS:
        truth = "aggressor" if is_taken(case, without, alone) else "shifted"
    elif truth != "served" and (not case.suspects or loss < INNOCENT_LOSS):
        truth = "innocent"
    names = case.names
    times = [time for time, finding in with_tierd.findings if has_victim(finding) and finding.aggressor in names]
    harm = max(1 - ratio(with_tierd, without, job, 0, case.seconds) for job in one_by_one(case.jobs))
    done = [kind for entry, kind in zip(with_tierd.entries, with_tierd.kinds, strict=True)
            if entry.outcome in {acts.Outcome.DONE, acts.Outcome.UNDONE}]
    gain = max((ratio(with_tierd, without, (job,), case.seconds / 2, case.seconds) - 1 for job in case.served),
               default=None)
    recovery = None
    if truth == "aggressor":
        recovery = min(ratio(with_tierd, alone, job, NOISE_ENDS - TAIL_SECONDS, NOISE_ENDS) for job in flows)
    served = any(blames_nobody(kind) for kind in done)
    met = goal_met(case.goal, with_tierd, gain) and harm <= HARMFUL_LOSS if served and case.goal else None
    under_way = met is False and harm <= HARMFUL_LOSS and with_tierd.waiting_moves > 0
    met = None if under_way else met
    onset = max(case.noise_starts, starts)
    acts_at = [at for at, kind in zip(with_tierd.acted_at, with_tierd.kinds, strict=True) if not blames_nobody(kind)]
    return Verdict(
        seed, case.kind, truth=truth, loss=loss, found_after=min(times) - onset if times else None,
        acted=any(not blames_nobody(kind) for kind in done), harm=harm, recovery=recovery,
        served=served, gain=gain, goal_met=met, bed=case.bed.kind,
        acted_after=min(acts_at) - onset if acts_at else None,
        layout_helps=all(isinstance(job, SmallFileWriter) for job in case.jobs if job.job_id in case.suspects),
        interval_holds=interval_holds(case, without, alone, onset) if truth == "aggressor" else None,
        under_way=under_way)


SETTLED_SECONDS, AROUND_SECONDS = 30.0, 15.0
"""Seconds after the onset at which an interval is compared, and of the loss before and after it. Choices."""


def interval_holds(case: RandomScenario, without: Outcome, alone: Outcome, onset: float) -> bool | None:
    """Whether the 90% interval of a finding holds what its victim loses, where tierd only observes; None without one.

    It is the last finding within half a minute after the onset, or the first later one. A finding says what a stream
    loses now: it is compared with the loss in the half minute around it, as the load of a neighbour may grow.
    """
    return holds([(time - onset, finding) for time, finding in without.slowdowns
                  if finding.aggressor in case.names and time > onset], onset, case.noise_starts,
                 lambda victim, since, until: 1 - ratio(without, alone, (victim,), since, until))


def holds(found: Sequence[tuple[float, Finding]], onset: float, noise_starts: float,
          lost: Callable[[str, float, float], float]) -> bool | None:
    """The same for findings with their seconds after the onset. ``lost`` is what a stream loses between two times."""
    for after, finding in [each for each in found if each[0] <= SETTLED_SECONDS][-1:] or found[:1]:
        if (stream := finding.evidence.of_stream) is not None:
            since, until = onset + after - AROUND_SECONDS, onset + after + AROUND_SECONDS
            truth = lost(finding.victim, max(since, noise_starts), min(until, NOISE_ENDS))
            return stream.loss_low <= truth <= stream.loss_high
    return None


def is_taken(case: RandomScenario, without: Outcome, alone: Outcome) -> bool:
    """Whether the suspects took what a stream lost by at least 15%; False if other streams have it.

    Suspects that take no device time can shift throughput from one stream to another. Without them, the other stream
    loses it. A stream's loss counts as taken as far as all streams together lost it, and less than 5% is innocent.
    """
    rates = [[each.progress(job.job_id, case.noise_starts + 5, NOISE_ENDS) for each in (alone, without)]
             for job in streams(case.jobs)]
    together = sum(before - disturbed for before, disturbed in rates)
    return any(before - disturbed >= AGGRESSOR_LOSS * before and together >= INNOCENT_LOSS * before
               for before, disturbed in rates if before)


def goal_met(goal: Goal, with_tierd: Outcome, gain: float | None) -> bool:
    """Whether the acts of tierd reached a goal."""
    if goal is Goal.METADATA_RATE:
        undone = all(entry.outcome == acts.Outcome.UNDONE for entry in with_tierd.entries)
        return undone or (gain is not None and gain > 0)
    return unevenness(with_tierd.targets_used, with_tierd.pools) <= EVEN_SHARE


def unevenness(targets_used: Mapping[str, float], pools: Mapping[str, Collection[str]]) -> float:
    """Largest difference between the used share of a target and the median of the others in its pool.

    >>> unevenness({"a": 0.5, "b": 0.2, "c": 0.3, "d": 0.9}, {"hdd": "abc", "flash": "d"})
    0.25
    """
    return max((abs(targets_used[target] - median(targets_used[other] for other in members if other != target))
                for members in pools.values() for target in members if len(members) > 1), default=0.0)


def ratio(of: Outcome, to: Outcome, jobs: Sequence[str], since: float, until: float) -> float:
    """Throughput of some jobs together in one run as a fraction of another run; 1 where the other run has none."""
    base = sum(to.progress(job, since, until) for job in jobs)
    return sum(of.progress(job, since, until) for job in jobs) / base if base else 1.0


def one_by_one(jobs: Sequence[Job]) -> Collection[Sequence[str]]:
    """Ids of each job whose throughput counts. Tasks of an array count together: one of fifty creates few files."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for job in jobs:
        directory = job.directory if isinstance(job, SmallFileWriter) else ""
        found[group_of(job.job_id, directory) or job.job_id].append(job.job_id)
    return found.values()


def evaluate_all(seeds: Sequence[int], policy: Settings, processes: int, cold: bool = False,
                 workloads: Collection[str] = (),
                 beds: Sequence[BedKind] = (BedKind.RECORDED,)) -> Generator[Verdict, None, None]:
    """Evaluate all seeds on each bed in several processes, and yield the verdicts in the order of the seeds.

    Closing the iterator cancels the seeds that have not begun, and waits a few seconds for those that have.
    """
    with ProcessPoolExecutor(min(processes, len(seeds) * len(beds)), initializer=_begin_worker) as pool:
        futures = [pool.submit(evaluate, seed, policy, cold, workloads, bed) for seed in seeds for bed in beds]
        try:
            for future in futures:
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _begin_worker() -> None:
    """Ctrl-C reaches all processes of a terminal. The parent cancels the work; the workers print no traceback.

    A simulation allocates millions of short-lived objects without cycles, so garbage is collected less often.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_garbage_rarely()


def summary(verdicts: Sequence[Verdict]) -> dict[str, float]:
    guilty = [v for v in verdicts if v.truth == "aggressor"]
    innocent = [v for v in verdicts if v.truth == "innocent"]
    times = [v.found_after for v in guilty if v.found_after is not None]
    recoveries = [v.recovery for v in guilty if v.recovery is not None and v.acted]
    gains = [v.gain for v in verdicts if v.gain is not None and v.served]
    return {
        "scenarios": len(verdicts),
        "with_aggressor": len(guilty),
        "found": len(times),
        "found_within_30s": sum(time <= FOUND_SOON_SECONDS for time in times),
        "found_within_60s": sum(time <= FOUND_SECONDS for time in times),
        "median_found_after_seconds": round(median(times), 1) if times else 0.0,
        "layout_helps": len(helped := [v for v in guilty if v.layout_helps]),
        "acted_on_within_60s": sum(v.acted_after is not None and v.acted_after <= FOUND_SECONDS for v in helped),
        "intervals": sum(v.interval_holds is not None for v in guilty),
        "intervals_that_hold": sum(v.interval_holds is True for v in guilty),
        "without_aggressor": len(innocent),
        "acted_wrongly": sum(v.acted for v in innocent),
        "shifted": sum(v.truth == "shifted" for v in verdicts),
        "harmed": sum(v.harm > HARMFUL_LOSS for v in verdicts),
        "worst_harm": round(max((v.harm for v in verdicts), default=0.0), 4),
        "median_recovery": round(median(recoveries), 4) if recoveries else 0.0,
        "served": sum(v.served for v in verdicts),
        "median_gain": round(median(gains), 4) if gains else 0.0,
        "with_goal": sum(v.goal_met is not None for v in verdicts),
        "goals_met": sum(v.goal_met is True for v in verdicts),
        "goals_under_way": sum(v.under_way for v in verdicts),
    }


def doubtful(verdicts: Sequence[Verdict]) -> dict[str, list[Verdict]]:
    """Verdicts with a problem, or with a truth of their own, by kind."""
    guilty = [v for v in verdicts if v.truth == "aggressor"]
    return {
        "not_found": [v for v in guilty if v.found_after is None],
        "found_late": [v for v in guilty if v.found_after is not None and v.found_after > FOUND_SOON_SECONDS],
        "acted_wrongly": [v for v in verdicts if v.truth == "innocent" and v.acted],
        "harmed": [v for v in verdicts if v.harm > HARMFUL_LOSS],
        "shifted": [v for v in verdicts if v.truth == "shifted"],
        "goal_missed": [v for v in verdicts if v.goal_met is False],
    }


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What was evaluated: verdicts of all seeds, or of the first ones if it was interrupted."""

    seeds: str
    """``1-50``."""
    cold: bool
    verdicts: Sequence[Verdict]

    @property
    def groups(self) -> Mapping[str, Sequence[Verdict]]:
        """Verdicts of usual and of hard workloads. A group without seeds is left out."""
        found = {name: [v for v in self.verdicts if v.kind in kinds] for name, kinds in GROUPS.items()}
        return {name: of for name, of in found.items() if of}

    @property
    def beds(self) -> Mapping[str, Sequence[Verdict]]:
        return {bed: [v for v in self.verdicts if v.bed == bed] for bed in sorted({v.bed for v in self.verdicts})}

    @property
    def workloads(self) -> Mapping[str, Sequence[Verdict]]:
        return {kind: [v for v in self.verdicts if v.kind == kind] for kind in sorted({v.kind for v in self.verdicts})}


def summary_json(evaluated: Evaluated) -> str:
    """The summary for programs: of all, of each group and of each workload, with the seeds of problems."""
    seeds = {what: [v.seed for v in of] for what, of in doubtful(evaluated.verdicts).items()}
    return json_text({
        "evaluated_seeds": evaluated.seeds, "cold": evaluated.cold, **summary(evaluated.verdicts), "seeds": seeds,
        "groups": {name: summary(of) for name, of in evaluated.groups.items()},
        "workloads": {kind: summary(of) for kind, of in evaluated.workloads.items()},
        "beds": {bed: summary(of) for bed, of in evaluated.beds.items()},
    }, indent=1)


COLUMNS = {"with_aggressor": "true", "found_within_30s": "30 s", "found_within_60s": "60 s",
           "layout_helps": "helpable", "acted_on_within_60s": "act 60 s", "intervals_that_hold": "in 90%",
           "without_aggressor": "innocent", "acted_wrongly": "acted", "harmed": "harmed"}
"""Figures of each workload in the text, with their headings."""


def summary_text(evaluated: Evaluated) -> str:
    """The summary for people, by kind of workload, with the seeds of problems."""
    verdicts = evaluated.verdicts
    start = f"tierd starts {COLD_SECONDS:.0f} s after the neighbour" if evaluated.cold else "tierd starts first"
    lines = [f"seeds {evaluated.seeds}; {start}", ""]
    lines += [f"{name.replace('_', ' '):27} {value:g}" for name, value in summary(verdicts).items()]
    counts = {f"{name}{' workloads' * (name in GROUPS)}": summary(of) for name, of in {
        **evaluated.workloads, **evaluated.groups, **evaluated.beds}.items()}
    lines += ["", *table(("workload", *COLUMNS.values()), [
        (name, *(f"{count[column]:g}" for column in COLUMNS)) for name, count in counts.items()], right=range(1, 10))]
    worth_a_look = {(v.bed, v.seed): v for of in doubtful(verdicts).values() for v in of}
    lines += ["", *(f"look at seed {v.seed} on {v.bed}: {v.kind}, {v.truth}, loss {v.loss:.0%}, "
                    f"{'not found' if v.found_after is None else f'found after {v.found_after:.0f} s'}, "
                    f"{'acted' if v.acted else 'did not act'}, harm {v.harm:.1%}"
                    for _, v in sorted(worth_a_look.items()))]
    return "\n".join(lines)
