"""Five minutes of a simulated cluster with tierd at work on it, scraped every 15 s, as Prometheus stores them.

All in virtual time, by the site that troubles of alerts have too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from simulator.scenarios.scenario import parse
from tests.alerts.site import Site, number
from tests.tierd.integrations.powerflex_gateway import answering
from tierd.config.settings import Settings
from tierd.simulation.world import VirtualClock

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

@dataclass(frozen=True, slots=True)
class Recorded:
    """Samples in OpenMetrics form, the names of all metrics among them, and the time of the last."""

    file: Path
    names: frozenset[str]
    begin: float
    end: float


def record(folder: Path) -> Recorded:
    """Let the cluster live, and write down what was scraped."""
    site = Site(folder, settings=Settings(), model=lambda *_: SCENARIO.build(),
                powerflex=lambda cluster: answering(VirtualClock(cluster)))
    lines: list[str] = []
    while site.cluster.now < SECONDS:
        site.live(STEP_SECONDS)
        lines += (f"{series} {number(value)} {site.cluster.epoch:.3f}" for series, value in site.samples())
    site.close()
    file = folder / "samples.openmetrics"
    file.write_text("\n".join((*lines, "# EOF\n")), encoding="utf-8")
    return Recorded(file, frozenset(line.partition("{")[0] for line in lines), site.begin, site.cluster.epoch)
