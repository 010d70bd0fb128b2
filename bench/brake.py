"""What ``[act] brake`` does in simulated scenarios: for victims, in total, and to jobs that should not be braked.

    python -m bench.brake --seeds 990000-990003 [--cold]

runs each scenario on each test bed with tierd and TBF, with and without the brake, and without the suspects. It prints
each scenario and a summary.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

from bench.choices import in_each_scenario
from lustre.parameters import Roots, Tree
from simulator.cluster import Cluster
from simulator.parameters import write_parameters
from simulator.scheduler import VirtualScheduler
from tierd.brake.agent import POLL_SECONDS, Agent
from tierd.brake.running import Brake
from tierd.config.settings import Settings
from tierd.daemon.answers import to_json
from tierd.simulation.beds import BedKind
from tierd.simulation.comparison import streams
from tierd.simulation.evaluate import COLD_SECONDS, Trial, compared, one_by_one, ratio
from tierd.simulation.random_scenarios import NOISE_ENDS
from tierd.simulation.run import Outcome
from tierd.simulation.world import IN_MEMORY, World

SOON_SECONDS, LATER_SECONDS = 10, 20
"""Seconds after the evidence is strong between which a victim is measured: at 15 s."""
HARMFUL_LOSS = 0.05


class BrakedWorld:
    """Brake and agent on the simulated OSS, with tierd."""

    def __init__(self) -> None:
        self.begun: list[tuple[float, str]] = []
        """When a job was braked, and which."""

    def __call__(self, world: World, scheduler: VirtualScheduler) -> None:
        cluster, folder = world.cluster, tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None)
        root, brake = Path(folder.name), Brake(world.daemon)
        cluster.set_service_parameter("nrs_policies", "tbf jobid")
        agent = Agent("oss", Tree(Roots.of(root / "proc", root / "sys")), partial(set_parameter, cluster),
                      lambda state: brake.answer(to_json(state)), lambda: cluster.now)

        def step() -> None:
            write_parameters(cluster, root, clients=False)
            agent.step()
            known = {job for _, job in self.begun}
            self.begun += [(cluster.now, job) for job in world.daemon.store.braked if job not in known]

        self.folder = folder  # removed with this object
        scheduler.every("brake", POLL_SECONDS, step)


def set_parameter(cluster: Cluster, parameter: str, value: str) -> str:
    """As ``lctl set_param`` on the simulated OSS."""
    try:
        cluster.set_service_parameter(parameter.rpartition(".")[2], value)
    except OSError as error:
        return error.strerror or str(error)
    return ""


@dataclass(frozen=True, slots=True)
class Result:
    """One scenario. Shares are None where nothing was braked."""

    where: str
    truth: str
    braked: tuple[str, ...]
    fair: bool
    """Whether these are streams, which have a fair share beside another one."""
    after: float | None
    """Seconds from the finding to the brake, which wants stronger evidence."""
    victim: float | None
    """Least throughput of a victim 15 s after that, as a part of that without the suspects."""
    unbraked: float | None
    """The same without the brake."""
    total: float | None
    """Bytes of all jobs from the brake on, as a part of those without it."""
    harm: float
    """Largest loss of a job that was not braked, against the run without the brake."""

    def __str__(self) -> str:
        after = "" if self.after is None else f" after {self.after:.0f} s"
        shares = ", ".join(f"{name} {'-' if share is None else format(share, '.0%')}" for name, share in (
            ("victim", self.victim), ("unbraked", self.unbraked), ("total", self.total), ("harm", self.harm)))
        return f"{self.where}: {self.truth}, braked {' '.join(self.braked) or 'nothing'}{after}, {shares}"


def result(bed: BedKind, seed: int, cold: bool) -> Result:
    trial, beside = Trial(seed, bed=bed), BrakedWorld()
    settings = replace(Settings(), act=replace(Settings().act, dry_run=False, brake=True))
    starts = trial.case.noise_starts + COLD_SECONDS if cold else 0.0
    braked = trial.run_with(trial.case.jobs, settings, starts, beside=beside)
    without = trial.run_with(trial.case.jobs, replace(settings, act=replace(settings.act, brake=False)), starts)
    watched = trial.without_acts(settings, starts)
    verdict = compared(seed, trial.case, without, watched, trial.without_suspects, starts=starts)
    begun = [(time, job) for time, job in beside.begun if time < NOISE_ENDS - LATER_SECONDS]
    after = victim = unbraked = total = None
    if begun:
        at, job = begun[0]
        after = at - min(time for time, finding in braked.findings if finding.aggressor == job)
        names = [job.job_id for job in streams(trial.case.jobs)
                 if job.job_id not in {*trial.case.suspects, *(job for _, job in beside.begun)}]
        victim, unbraked = (least(each, trial.without_suspects, names, at) for each in (braked, without))
        total = ratio(braked, without, [job.job_id for job in trial.case.jobs], at, NOISE_ENDS)
    names_braked = {job for _, job in beside.begun}
    spared = [jobs for jobs in one_by_one(trial.case.jobs) if not names_braked or
              (trial.case.names | names_braked).isdisjoint(jobs)]
    harm = max((1 - ratio(braked, without, jobs, 0, trial.case.seconds) for jobs in spared), default=0.0)
    return Result(f"{bed} {seed}", verdict.truth, tuple(sorted(names_braked)),
                  names_braked <= {job.job_id for job in streams(trial.case.jobs)}, after, victim=victim,
                  unbraked=unbraked, total=total, harm=harm)


def least(outcome: Outcome, alone: Outcome, names: Sequence[str], at: float) -> float:
    return min(ratio(outcome, alone, (name,), at + SOON_SECONDS, at + LATER_SECONDS) for name in names)


def main() -> None:
    every = []
    for each in in_each_scenario(__doc__, "990000-990003", result):
        every.append(each)
        print(each, flush=True)
    done = [each for each in every if each.victim is not None and each.truth == "aggressor"]
    innocent = [each for each in every if each.truth == "innocent"]
    wrongly = sum(bool(each.braked) and not each.fair for each in innocent)
    sys.stdout.write(
        f"{len(every)} scenarios, {len(done)} aggressors braked; victims at 15 s: "
        f"{sum((each.victim or 0) >= 0.9 for each in done)} of them have 90%, "
        f"{sum((each.unbraked or 0) >= 0.9 for each in done)} without the brake; total: median "
        f"{median([each.total or 0 for each in done] or [0.0]):.1%}, {sum((each.total or 0) >= 0.95 for each in done)} "
        f"have 95%; {sum(each.harm > HARMFUL_LOSS for each in every)} harmed; "
        f"{wrongly} of {len(innocent)} innocents braked, beside "
        f"{sum(bool(each.braked) and each.fair for each in every)} fair shares of streams\n")


if __name__ == "__main__":
    main()
