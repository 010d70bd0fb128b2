"""``python -m bench.against_prometheus_client``: processor time per sample, compared with prometheus_client.

The exporter and prometheus_client (its own objects and ``generate_latest``) render the same families and samples. The
comparison favours prometheus_client: its time covers only making and rendering the objects, while the exporter's time
also covers locating, comparing and parsing the files. Reading the files is not counted, because it costs both the same.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from bench import measure
from bench.exporter import FEW, memory_folder
from bench.trees import ClientTree, ServerTree
from lustre.formats.compiled import AVAILABLE

MIN_RATIOS = {"few": 16.0, "all": 8.0} if AVAILABLE else {"few": 12.0, "all": 1.5}
"""Minimum ratio of prometheus_client's time to the exporter's, by the share of changed counters.

The lower ratio of client and server is 40 and 15 with the C modules on a calm machine, 20 and 2.2 without.
"""
ROUNDS = 7
"""Both sides are measured in turn, and the best round of each counts, so that a busy minute slows both."""


class RebuiltFamilies(Collector):
    """Makes the families at each scrape, like every exporter that uses prometheus_client."""

    def __init__(self, text: bytes) -> None:
        self._families = list(text_string_to_metric_families(text.decode()))

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        for family in self._families:
            metric = Metric(family.name, family.documentation, family.type)
            for sample in family.samples:
                metric.add_sample(sample.name, sample.labels, sample.value)
            yield metric


@dataclass(frozen=True, slots=True)
class Ratios:
    """The measured times."""

    samples: int
    theirs_seconds: float
    ours_seconds: dict[str, float]
    """Seconds of the exporter by the share of changed counters, without reading."""

    def ratio(self, what: str) -> float:
        """Ratio of prometheus_client's time to the exporter's."""
        return self.theirs_seconds / self.ours_seconds[what]


def compare(tree: ClientTree | ServerTree, **settings: object) -> Ratios:
    """Measure both over the same tree."""
    exporter = measure.Exporter(tree.root, **settings)
    registry = CollectorRegistry()
    registry.register(RebuiltFamilies(exporter.text()))

    def theirs() -> float:
        began = time.process_time()
        generate_latest(registry)
        return time.process_time() - began

    steps = iter(range(1, 1000))

    def ours(every: int) -> float:
        tree.move(next(steps), every=every)
        return exporter.scrape()

    their_seconds, our_seconds = float("inf"), {}
    for what, every in (("all", 1), ("few", FEW)):  # the first scrapes of each are slower, so the best one counts
        gc.collect()
        rounds = [(theirs(), ours(every)) for _ in range(ROUNDS)]
        their_seconds = min(their_seconds, *(their for their, _ in rounds))
        our_seconds[what] = min(our for _, our in rounds)
    reading = measure.reading_seconds(measure.OpenedFiles(tree.root).during(exporter.scrape))
    spent = {what: seconds - reading for what, seconds in our_seconds.items()}
    return Ratios(exporter.samples(), their_seconds, spent)


def main() -> None:
    """Compare both for a client with series per target, and for the jobs of a server."""
    parser = argparse.ArgumentParser(prog="python -m bench.against_prometheus_client")
    parser.add_argument("--targets", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=3000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        client = compare(ClientTree(Path(folder, "client"), chosen.targets), osc_per_target=True)
        server = compare(ServerTree(Path(folder, "server"), 1, chosen.jobs))
    for name, ratios in (("client, per target", client), ("server, jobs", server)):
        theirs = ratios.theirs_seconds / ratios.samples * 1e8
        print(f"{name}: {ratios.samples} samples; prometheus_client {theirs:.0f} ms per 100,000")
        for what, spent in ratios.ours_seconds.items():
            each = spent / ratios.samples * 1e8
            print(f"  {what} changed: {each:.0f} ms per 100,000, {ratios.ratio(what):.1f} x less")
    wrong = [what for what, least in MIN_RATIOS.items() for r in (client, server) if r.ratio(what) < least]
    assert not wrong, f"less than {MIN_RATIOS} times: {wrong}"


if __name__ == "__main__":
    main()
