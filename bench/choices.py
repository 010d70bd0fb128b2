"""What half and double of each choice in the model of interference do to its findings.

    python -m bench.choices --seeds 950000-950011

simulates each scenario with suspects once on each test bed, with tierd watching, and lets the model read the windows
again with one constant halved or doubled: warm, and cold from 5 s after the neighbour on. It prints the table of
docs/detection.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from tierd.config.settings import Settings
from tierd.decide.benefit import effect, refusal
from tierd.detect import costs, interference
from tierd.engine import CycleFindings, Engine
from tierd.model import Facts, Finding, Window
from tierd.policies.registry import has_victim
from tierd.simulation.beds import DRAWN, BedKind
from tierd.simulation.comparison import streams
from tierd.simulation.evaluate import COLD_SECONDS, FOUND_SECONDS, Trial, Verdict, compared, holds, summary
from tierd.simulation.random_scenarios import NOISE_ENDS

CHOICES = (
    "LEAST_EXPOSURE", "LEVEL_UNKNOWN", "WANDER", "ODD_PROBABILITY", "JUMPS_A_SECOND",
    "SURPRISE_PROBABILITY", "DOSE_ERROR", "DRIFT", "SMOOTHING", "MODEL_ERROR", "RIVALS_ERROR", "SHARING", "LEARNED",
    "LIMITED", "LIMITED_DISKS", "RANGE", "IO_BOUND", "SPREAD", "DEPENDENCE", "FIRST_WINDOWS", "MIXED",
    "SLOWEST", "MOST_VARIED",
)
"""The constants of :mod:`tierd.detect.costs` and :mod:`tierd.detect.interference`."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Recorded:
    """A scenario as tierd saw it, and its truth."""

    windows: Sequence[Window]
    facts: list[Facts]
    """What is known of the pools and their disks, by window."""
    begun: float
    """Epoch seconds of the start."""
    onset: float
    names: frozenset[str]
    verdict: Verdict
    rates: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    """MB/s of each stream in each second: beside the suspects, and without them."""

    def lost_bytes(self, stream: str, begin: float, end: float) -> float:
        """What a stream moved less between two times after the start."""
        beside, alone = self._moved(stream, round(begin), round(end))
        return (alone - beside) * 1e6

    def lost_share(self, stream: str, begin: float, end: float) -> float:
        beside, alone = self._moved(stream, int(begin), int(end))
        return 1 - beside / alone if alone else 0.0

    def _moved(self, stream: str, begin: int, end: int) -> tuple[float, float]:
        beside, alone = (sum(rates[begin:end]) for rates in self.rates[stream])
        return beside, alone


def in_each_scenario(about: str | None, seeds: str, find: Callable[..., T]) -> Iterator[T]:
    """What is found in the scenarios that the command line names, each on each test bed: ``find(bed, seed, cold)``."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default=seeds, help="scenarios of each test bed")
    parser.add_argument("--cold", action="store_true", help="tierd starts 5 s after the neighbour")
    chosen = parser.parse_args()
    with ProcessPoolExecutor() as pool:
        yield from pool.map(partial(find, cold=chosen.cold), *zip(*drawn(chosen.seeds), strict=True))


def drawn(seeds: str) -> list[tuple[BedKind, int]]:
    first, last = map(int, seeds.split("-"))
    return [(bed, seed) for seed in range(first, last + 1) for bed in DRAWN]


def recorded(bed: BedKind, seed: int) -> Recorded | None:
    """Simulate a scenario with tierd watching; None without suspects."""
    trial = Trial(seed, bed=bed)
    if not trial.case.suspects:
        return None
    windows: list[Window] = []
    facts: list[Facts] = []
    run_cycle = Engine.run_cycle

    def kept(engine: Engine, window: Window, *arguments: Any, **named: Any) -> Any:
        windows.append(window)
        found = run_cycle(engine, window, *arguments, **named)
        known = engine._facts
        facts.append(Facts(pools=known.pools, flash=known.flash, disk_writes=known.disk_writes))
        return found

    Engine.run_cycle = kept  # type: ignore[method-assign, assignment]
    try:
        watched = trial.without_acts(Settings())
    finally:
        Engine.run_cycle = run_cycle  # type: ignore[method-assign]
    alone = trial.without_suspects
    verdict = compared(seed, trial.case, watched, watched, alone, 0.0)
    return Recorded(windows, facts, trial.case.cluster(seed).epoch_seconds,
                    trial.case.noise_starts, trial.case.names, verdict,
                    {job.job_id: (watched.rates[job.job_id], alone.rates[job.job_id])
                     for job in streams(trial.case.jobs)})


def cycles(scenario: Recorded, engine: Engine, onset: float, cold: bool) -> Iterator[tuple[float, CycleFindings]]:
    """Let an engine read the windows again: from the onset on if it starts cold. Yields seconds, and what it finds."""
    begun = scenario.begun + onset if cold else 0.0
    for window, known in zip(scenario.windows, scenario.facts, strict=True):
        if window.end - scenario.begun <= NOISE_ENDS and window.start >= begun:
            # the last reading before the start stands for the first one, which has everything since the mount
            writes = {target: readings[max(sum(each.time < begun for each in readings) - 1, 0):]
                      for target, readings in known.disk_writes.items()}
            facts = partial(replace, known, disk_writes=writes)
            yield window.end - scenario.begun, engine.run_cycle(window, lambda *_: (), facts)


def replayed(scenario: Recorded, cold: bool) -> Verdict:
    """The verdict on a scenario with what the model says of it with its present constants."""
    engine, settings = Engine(Settings()), Settings().benefit
    onset = scenario.onset + (COLD_SECONDS if cold else 0.0)
    found: list[tuple[float, Finding]] = []
    acted: list[float] = []
    for at, cycle in cycles(scenario, engine, onset, cold):
        for finding in cycle.findings:
            stream = finding.evidence.of_stream
            if stream is None or finding.advice_only or not has_victim(finding):
                continue
            if at > onset and finding.aggressor in scenario.names:
                found.append((at - onset, finding))
            if refusal(finding, stream, effect(()), settings) is None:
                acted.append(at - onset)
    return replace(scenario.verdict, found_after=found[0][0] if found else None, acted_after=min(acted, default=None),
                   acted=any(at <= FOUND_SECONDS for at in acted),
                   interval_holds=holds(found, onset, scenario.onset, scenario.lost_share))


@contextmanager
def changed(name: str, factor: float) -> Iterator[None]:
    """A constant as a multiple of what it is."""
    modules = [module for module in (costs, interference) if hasattr(module, name)]
    before = [getattr(module, name) for module in modules]
    for module, value in zip(modules, before, strict=True):
        setattr(module, name, type(value)(value * factor))
    yield
    for module, value in zip(modules, before, strict=True):
        setattr(module, name, value)


def cells(scenarios: Sequence[Recorded], name: str, factor: float) -> str:
    """Found, acted on, innocents acted on, and intervals that hold: warm / cold."""
    counts = []
    for cold in (False, True):
        with changed(name, factor):
            of = summary([replayed(scenario, cold) for scenario in scenarios])
        found = "found_within_60s" if cold else "found_within_30s"
        counts.append([of[each] for each in (found, "acted_on_within_60s", "acted_wrongly", "intervals_that_hold")])
    return " | ".join(f"{warm} / {cold}" for warm, cold in zip(*counts, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="950000-950011", help="scenarios of each test bed")
    seeds = parser.parse_args().seeds
    with ProcessPoolExecutor() as pool:
        scenarios = [each for each in pool.map(recorded, *zip(*drawn(seeds), strict=True)) if each is not None]
        rows = [("as it is", 1.0), *((name, factor) for name in CHOICES for factor in (0.5, 2.0))]
        table = pool.map(partial(cells, scenarios), *zip(*rows, strict=True))
        sys.stdout.write("| constant | found | acted on | innocents acted on | intervals that hold |\n")
        sys.stdout.write("|---|---:|---:|---:|---:|\n")
        for (name, factor), row in zip(rows, table, strict=True):
            sys.stdout.write(f"| {f'{factor:g} × `{name}`' if name in CHOICES else name} | {row} |\n")


if __name__ == "__main__":
    main()
