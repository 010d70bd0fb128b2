"""How often the intervals of ``tierctl bill`` hold what streams lost in simulated scenarios.

    python -m bench.bill --seeds 980000-980011 [--cold]

simulates each scenario on each test bed with tierd watching, and without the suspects, and bills the first run. The
truth is what a stream moves less than in the second run while the case lasts. It prints each bill, and the row of
docs/evaluation.md.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from bench.choices import cycles, in_each_scenario, recorded
from tierd.config.settings import Settings
from tierd.detect.account import Case, Key, Lost, bill_windows
from tierd.engine import Engine
from tierd.simulation.beds import BedKind
from tierd.simulation.evaluate import COLD_SECONDS


@dataclass(frozen=True, slots=True)
class Billed:
    """What a stream is billed to have lost to all suspects, and what it lost."""

    where: str
    """Test bed, seed and stream."""
    truth: str
    lost: Lost
    lost_bytes: float

    @property
    def holds(self) -> bool:
        return self.lost.low_bytes <= self.lost_bytes <= self.lost.high_bytes

    def __str__(self) -> str:
        billed, low, high, lost = (f"{each / 1e9:.2f}" for each in (
            self.lost.bytes, self.lost.low_bytes, self.lost.high_bytes, self.lost_bytes))
        return f"{self.where}: {self.truth}, billed {billed} GB ({low} to {high}), lost {lost} GB"


def billed(bed: BedKind, seed: int, cold: bool) -> list[Billed]:
    """The bill of each stream in a scenario; empty without suspects."""
    scenario = recorded(bed, seed)
    if scenario is None:
        return []
    engine, cases = Engine(Settings()), dict[Key, Case]()
    onset = scenario.onset + (COLD_SECONDS if cold else 0.0)
    for _, cycle in cycles(scenario, engine, onset, cold):
        for finding in cycle.findings:
            if finding.victim in engine.tracks.known:
                bill_windows(cases, 1, finding, engine.tracks.known[finding.victim])
    found = []
    for victim in scenario.rates:
        mine = [(case, lost) for key, case in cases.items() if key[2] == victim and (lost := case.billed()).is_certain]
        if mine:
            begin, end = (each - scenario.begun for each in (min(case.begun_at for case, _ in mine),
                                                             max(case.ended_at for case, _ in mine)))
            lost = Lost(*(sum(getattr(each, name) for _, each in mine) for name in Lost.__slots__))
            lost_bytes = scenario.lost_bytes(victim, begin, end)
            found.append(Billed(f"{bed} {seed} {victim}", scenario.verdict.truth, lost, lost_bytes))
    return found


def main() -> None:
    scenarios = list(in_each_scenario(__doc__, "980000-980011", billed))
    every = [each for found in scenarios for each in found]
    sys.stdout.writelines(f"{each}\n" for each in every)
    held = sum(each.holds for each in every)
    near = sum(abs(each.lost.bytes - each.lost_bytes) <= 0.15 * each.lost_bytes for each in every)
    innocent = sum(each.truth == "innocent" for each in every)
    sys.stdout.write(f"{len(scenarios)} scenarios, {len(every)} streams billed: the interval of 90% holds {held}, the "
                     f"mean is within 15% in {near}; {innocent} lost less than 5%\n")


if __name__ == "__main__":
    main()
