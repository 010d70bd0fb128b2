"""``tierctl evaluate``: runs random scenarios without neighbours, without tierd and with tierd.

Each scenario is classified by measurement: a suspect is an aggressor when a stream loses at least 15% against the same
run without the suspects, and innocent when every stream loses less than 5%. A loss between the two counts as neither.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from statistics import median

from simulator.cluster import Cluster
from simulator.jobs import Job
from simulator.settings import recorded_test_bed
from tierd import acts
from tierd.config.settings import Settings
from tierd.model import NoisyNeighbourEvidence
from tierd.simulation.comparison import streams
from tierd.simulation.random_scenarios import NOISE_ENDS, SECONDS, random_scenario
from tierd.simulation.run import Outcome, run

AGGRESSOR_LOSS, INNOCENT_LOSS, HARMFUL_LOSS = 0.15, 0.05, 0.02
FOUND_SOON_SECONDS = 30.0
"""Seconds from the onset within which a finding counts as early."""
FOUND_SECONDS = 60.0
"""Seconds within which a finding counts in a cold evaluation."""
TAIL_SECONDS = 30.0
"""Length of the interval before the end of the noise in which recovery is measured."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of one scenario. Fractions are of throughput."""

    seed: int
    kind: str
    truth: str
    """Class by measurement: ``aggressor``, ``innocent`` or ``slight``."""
    loss: float
    """Largest loss of a stream without tierd."""
    found_after: float | None
    """Seconds from the onset, or from a later start of tierd, to the first finding that names a suspect."""
    acted: bool
    harm: float
    """Largest loss of a job with tierd against the run without it; negative when all gain."""
    recovery: float | None
    """Throughput of the streams with tierd at the end of the noise, as a fraction of that without neighbours."""


COLD_SECONDS = 5.0
"""Seconds after the onset at which tierd starts in a cold evaluation."""


def evaluate(seed: int, policy: Settings, cold: bool = False) -> Verdict:
    """Run one scenario three times and compare. ``cold``: all jobs are at work before tierd starts."""
    case = random_scenario(seed)
    alone_jobs = [job for job in case.jobs if job.job_id not in case.suspects]

    starts = case.noise_starts + COLD_SECONDS if cold else 0.0

    def run_with(jobs: Sequence[Job], with_policy: Settings | None = None) -> Outcome:
        return run(Cluster(recorded_test_bed(seed), jobs), jobs, SECONDS, case.changes, with_policy,
                   tierd_starts=starts)

    alone, without, with_tierd = run_with(alone_jobs), run_with(case.jobs), run_with(case.jobs, policy)
    loss = max(1 - ratio(without, alone, job.job_id, case.noise_starts + 5, NOISE_ENDS) for job in streams(case.jobs))
    truth = "slight"
    if case.suspects and loss >= AGGRESSOR_LOSS:
        truth = "aggressor"
    elif not case.suspects or loss < INNOCENT_LOSS:
        truth = "innocent"
    times = [time for time, finding in with_tierd.findings
             if isinstance(finding.evidence, NoisyNeighbourEvidence) and finding.aggressor in case.suspects]
    harm = max(1 - ratio(with_tierd, without, job.job_id, 0, SECONDS) for job in case.jobs)
    recovery = None
    if truth == "aggressor":
        recovery = min(ratio(with_tierd, alone, job.job_id, NOISE_ENDS - TAIL_SECONDS, NOISE_ENDS)
                       for job in streams(case.jobs))
    return Verdict(seed, case.kind, truth, loss, min(times) - max(case.noise_starts, starts) if times else None,
                   any(entry.outcome in {acts.Outcome.DONE, acts.Outcome.UNDONE} for entry in with_tierd.entries),
                   harm, recovery)


def ratio(of: Outcome, to: Outcome, job: str, since: float, until: float) -> float:
    """Throughput of a job in one run as a fraction of another run; 1 where the other run has none."""
    base = to.mean(job, since, until)
    return of.mean(job, since, until) / base if base else 1.0


def evaluate_all(seeds: Sequence[int], policy: Settings, processes: int,
                 progress: Callable[[], None] = lambda: None, cold: bool = False) -> list[Verdict]:
    """Evaluate all seeds in several processes."""
    with ProcessPoolExecutor(processes) as pool:
        return list(_reported(pool.map(evaluate, seeds, [policy] * len(seeds), [cold] * len(seeds)), progress))


def _reported(verdicts: Iterator[Verdict], progress: Callable[[], None]) -> Iterator[Verdict]:
    for verdict in verdicts:
        progress()
        yield verdict


def summary(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Summary of the verdicts."""
    guilty = [v for v in verdicts if v.truth == "aggressor"]
    innocent = [v for v in verdicts if v.truth == "innocent"]
    recoveries = [v.recovery for v in guilty if v.recovery is not None and v.acted]
    return {
        "scenarios": len(verdicts),
        "with_aggressor": len(guilty),
        "found": sum(v.found_after is not None for v in guilty),
        "found_within_30s": sum(v.found_after is not None and v.found_after <= FOUND_SOON_SECONDS for v in guilty),
        "found_within_60s": sum(v.found_after is not None and v.found_after <= FOUND_SECONDS for v in guilty),
        "without_aggressor": len(innocent),
        "acted_wrongly": sum(v.acted for v in innocent),
        "harmed": sum(v.harm > HARMFUL_LOSS for v in verdicts),
        "worst_harm": round(max((v.harm for v in verdicts), default=0.0), 4),
        "median_recovery": round(median(recoveries), 4) if recoveries else 0.0,
    }


def doubtful(verdicts: Sequence[Verdict]) -> dict[str, list[Verdict]]:
    """Verdicts with a problem, by kind of problem."""
    guilty = [v for v in verdicts if v.truth == "aggressor"]
    return {
        "not_found": [v for v in guilty if v.found_after is None],
        "found_late": [v for v in guilty if v.found_after is not None and v.found_after > FOUND_SOON_SECONDS],
        "acted_wrongly": [v for v in verdicts if v.truth == "innocent" and v.acted],
        "harmed": [v for v in verdicts if v.harm > HARMFUL_LOSS],
    }


def summary_json(verdicts: Sequence[Verdict]) -> str:
    """The summary for programs, with the seeds of problems."""
    seeds = {what: [v.seed for v in of] for what, of in doubtful(verdicts).items()}
    return json.dumps(summary(verdicts) | {"seeds": seeds}, indent=1)


def summary_text(verdicts: Sequence[Verdict]) -> str:
    """The summary for people, by kind of workload, with the seeds of problems."""
    figures = summary(verdicts)
    lines = [f"{name.replace('_', ' '):20} {value:g}" for name, value in figures.items()]
    lines += ["", f"{'workload':38} {'true':>6} {'found':>6} {'innocent':>9} {'acted':>6} {'harmed':>7}"]
    for kind in sorted({v.kind for v in verdicts}):
        of = [v for v in verdicts if v.kind == kind]
        count = Counter(v.truth for v in of)
        found = sum(v.truth == "aggressor" and v.found_after is not None for v in of)
        wrongly = sum(v.truth == "innocent" and v.acted for v in of)
        lines.append(f"{kind:38} {count['aggressor']:6} {found:6} {count['innocent']:9} {wrongly:6} "
                     f"{sum(v.harm > HARMFUL_LOSS for v in of):7}")
    worth_a_look = {v.seed: v for of in doubtful(verdicts).values() for v in of}
    lines += ["", *(f"look at seed {v.seed}: {v.kind}, {v.truth}, loss {v.loss:.0%}, "
                    f"{'not found' if v.found_after is None else f'found after {v.found_after:.0f} s'}, "
                    f"{'acted' if v.acted else 'did not act'}, harm {v.harm:.1%}"
                    for _, v in sorted(worth_a_look.items()))]
    return "\n".join(lines)
