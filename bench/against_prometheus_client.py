"""``python -m bench.against_prometheus_client``: processor time per sample beside that of prometheus_client.

The same families, with the same samples, once by the exporter and once through prometheus_client's own objects and
``generate_latest``. The comparison favours prometheus_client: of its side only what it does itself is counted, making
the objects and writing them out; of the exporter's side also finding, comparing and parsing the files. Reading them is
counted on neither side, because it costs both the same.
"""

from __future__ import annotations

import argparse
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
"""How many times less the exporter must take, by what changed since the scrape before."""


class RebuiltFamilies(Collector):
    """Families made anew at each scrape, as every exporter that uses prometheus_client does."""

    def __init__(self, text: bytes) -> None:
        self._families = list(text_string_to_metric_families(text.decode()))

    def collect(self) -> Iterator[Metric]:
        """One family after the other."""
        for family in self._families:
            metric = Metric(family.name, family.documentation, family.type)
            for sample in family.samples:
                metric.add_sample(sample.name, sample.labels, sample.value)
            yield metric


@dataclass(frozen=True, slots=True)
class Ratios:
    """What was measured."""

    samples: int
    theirs_seconds: float
    ours_seconds: dict[str, float]
    """By what had changed, without the time of reading."""

    def ratio(self, what: str) -> float:
        """How many times less the exporter takes."""
        return self.theirs_seconds / self.ours_seconds[what]


def compare(tree: ClientTree | ServerTree, **settings: object) -> Ratios:
    """Both over the same tree."""
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

    changed = measure.best_of(lambda: ours(1))
    ours(FEW)
    few = measure.best_of(lambda: ours(FEW))
    reading = measure.reading_seconds(measure.OpenedFiles(tree.root).during(exporter.scrape))
    spent = {"all": changed - reading, "few": few - reading}
    return Ratios(exporter.samples(), measure.best_of(theirs, 3), spent)


def main() -> None:
    """A client, every target by itself, and a server's jobs."""
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
