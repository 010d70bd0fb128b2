"""Five minutes of a simulated cluster with tierd at work on it, scraped every 15 s, as Prometheus stores them.

All in virtual time: the exporter runs over the files the cluster writes, tierd's own metrics are taken from its
registry, and what Prometheus adds to a scrape (`job`, `instance`, `up` and so on) is added here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import generate_latest

from exporter import clock, exposition
from exporter.__main__ import build_parser, check_arguments
from exporter.collectors import COLLECTORS
from exporter.scrape import Scraper
from exporter.self_metrics import registry as exporter_registry
from lustre.parameters import Tree
from simulator.scenarios.scenario import parse
from tests.alerts.site import SAMPLE, write_unsimulated
from tests.tierd.integrations.powerflex_gateway import answering
from tierd.config.settings import Settings
from tierd.daemon.metrics import MetricsContext
from tierd.daemon.metrics import registry as tierd_registry
from tierd.daemon.status import StatusPublisher
from tierd.simulation.world import VirtualClock, wire

STEP_SECONDS = 15
SECONDS = 330

SCENARIO = parse("""
title = "A bit of everything"
seconds = 330
cluster = "recorded_test_bed"

[[job]]
kind = "streaming_write"
job_id = "ior_stream.1002"
path = "/proj/flow/stream.dat"

[[job]]
kind = "small_files"
job_id = "mdt_small.1001"
directory = "/proj/ingest"
start_seconds = 60
files_per_second = 14.0
sizes = [262144, 524288, 786432, 1048576]
threads = 8
keep = 400
rereads_per_second = 6.0

[[job]]
kind = "streaming_read"
job_id = "ior_read.1003"
path = "/proj/read/input.dat"
client = 1
file_bytes = "512M"
think_seconds = 2.0
layout = [{pool = "flash"}]

[[job]]
kind = "ls"
job_id = "ls.1011"
client = 1
names = 300
times = 1000
think_seconds = 3.0

[[event]]
at = 300
kind = "degraded"
target = "OST0003"
rebuild_share = 0.2
""")

_TAKEN = re.compile(r'(?:^|,)(?:job|instance)="')
"""Labels that Prometheus adds, and would rename where an exporter has them."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Samples in OpenMetrics form, the names of all metrics among them, and the time of the last."""

    file: Path
    names: frozenset[str]
    begin: float
    end: float


def record(folder: Path) -> Recorded:
    """Let the cluster live, and write down what was scraped."""
    root = folder / "node"
    (root / "proc").mkdir(parents=True)
    (root / "sys").mkdir()
    write_unsimulated(root)
    cluster = SCENARIO.build()
    at = wire(cluster, Settings(), folder)
    wanted = check_arguments(build_parser().parse_args([f"--path.procfs={root}/proc", f"--path.sysfs={root}/sys"]))
    scraper = Scraper(Tree(wanted.roots), COLLECTORS, wanted.settings, clock.monotonic)
    of_exporter = exporter_registry(scraper, None)
    below = answering(VirtualClock(cluster))
    status = StatusPublisher()
    of_tierd = tierd_registry(at.daemon, MetricsContext(
        at.filesystem.fsname, cases=lambda: status.view.cases, integrations=(below,)))
    lines: list[str] = []
    begin = cluster.epoch
    while cluster.now < SECONDS:
        at.run(until=cluster.now + STEP_SECONDS)
        status.publish(at.daemon)
        cluster.write_parameters(root)
        below.refresh()
        text = b"".join(exposition.render(scraper.run(), of_exporter, openmetrics=False)).decode()
        lines += labelled(text, "lustre", "oss01:9169", cluster.epoch)
        lines += labelled(generate_latest(of_tierd).decode(), "tierd", "mds01:9170", cluster.epoch)
    file = folder / "samples.openmetrics"
    file.write_text("\n".join((*lines, "# EOF\n")), encoding="utf-8")
    at.journal.close()
    return Recorded(file, frozenset(line.partition("{")[0] for line in lines), begin, cluster.epoch)


def labelled(text: str, job: str, instance: str, time: float) -> Iterator[str]:
    """Samples as Prometheus stores them: with its own labels, which no metric of ours has."""
    count = 0
    for count, (name, labels, value) in enumerate(SAMPLE.findall(text), start=1):  # noqa: B007 - used below
        assert not _TAKEN.search(labels), f"{name}: Prometheus renames a label of {{{labels}}}"
        yield f'{name}{{{labels}{"," if labels else ""}job="{job}",instance="{instance}"}} {value} {time:.3f}'
    for name, value in (("up", 1.0), ("scrape_duration_seconds", 0.1), ("scrape_samples_scraped", float(count))):
        yield f'{name}{{job="{job}",instance="{instance}"}} {value} {time:.3f}'
