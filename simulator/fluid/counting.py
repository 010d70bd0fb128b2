"""What flows leave behind in the counters of the targets: RPCs in bulk, fractions kept for the next time."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.fluid.flows import Demand
from simulator.fluid.rates import Rates
from simulator.ost import Ost


class Counting:
    """Counters of all targets."""

    def __init__(self, osts: Sequence[Ost]) -> None:
        self._osts = osts
        self._kept: dict[tuple[str, int, int, int], float] = {}

    def carry(self, rates: Rates, since: float, until: float) -> None:
        """RPCs of all flows over a span at these rates."""
        for index, stage, number, demand in rates.demands():
            one, targets = rates.flows[index], rates.targets[index, stage, number]
            if one.single or not targets:
                continue
            each = rates.per_second[index] * (until - since) * demand.targets * demand.rpcs / len(targets)
            for target in targets:
                key = (one.job.job_id, stage, number, target)
                whole = self._kept.get(key, 0.0) + each
                self._kept[key] = whole % 1
                if whole >= 1:
                    self._count(self._osts[target], one.job.job_id, demand, int(whole), until)

    def _count(self, ost: Ost, job_id: str, demand: Demand, rpcs: int, now: float) -> None:
        name = "write" if demand.io.write else "read"
        usec = round(1e6 * (ost.settings.preparing_seconds
                            + ost.settings.preparing_seconds_per_mib * demand.io.size_bytes / (1 << 20)))  # fmt: skip
        counts = [(f"{name}_bytes", demand.io.size_bytes), (name, usec)]
        if demand.sync and demand.objects:
            counts.append(("sync", usec))
        for counter, value in counts:
            ost.stats[counter].bulk(rpcs, value)
            ost.jobs.bulk(job_id, counter, rpcs, value, now)
