"""A Prometheus with five minutes of a simulated site, recording rules included."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from simulator.scenarios.scenario import parse
from tests.alerts import site as simulated
from tests.alerts.site import number
from tests.dashboards.files import metric_names, recorded_rules
from tests.servers import Prometheus, program, prometheus
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
    site = simulated.Site(folder, settings=Settings(), model=lambda *_: SCENARIO.build(),
                powerflex=lambda cluster: answering(VirtualClock(cluster)))
    lines: list[str] = []
    while site.cluster.now < SECONDS:
        site.live(STEP_SECONDS)
        lines += (f"{series} {number(value)} {site.cluster.epoch:.3f}" for series, value in site.samples())
    site.close()
    file = folder / "samples.openmetrics"
    file.write_text("\n".join((*lines, "# EOF\n")), encoding="utf-8")
    return Recorded(file, frozenset(line.partition("{")[0] for line in lines), site.begin, site.cluster.epoch)


@dataclass(frozen=True, slots=True)
class Site:
    prometheus: Prometheus
    recorded: Recorded

    def values(self, expr: str, instant: bool) -> list[Any]:
        if instant:
            return self.prometheus.instant(expr, self.recorded.end)
        return self.prometheus.over(expr, self.recorded.begin, self.recorded.end, STEP_SECONDS)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    program("prometheus")
    folder = tmp_path_factory.mktemp("recorded")
    recorded = record(folder)
    data = folder / "data"
    promtool(folder, "create-blocks-from", "openmetrics", "-q", str(recorded.file), str(data))
    for level in levels(recorded_rules()):
        rules = folder / "level.yml"
        rules.write_text(yaml.safe_dump({"groups": [{"name": "level", "rules": level}]}), encoding="utf-8")
        with prometheus(folder, data) as server:
            promtool(folder, "create-blocks-from", "rules", f"--start={recorded.begin:.0f}",
                     f"--end={recorded.end:.0f}", f"--eval-interval={STEP_SECONDS}s", f"--url={server.url}",
                     f"--output-dir={data}", str(rules))
    with prometheus(folder, data) as server:
        yield Site(server, recorded)


def promtool(folder: Path, *arguments: str) -> None:
    done = subprocess.run([program("promtool"), "tsdb", *arguments], cwd=folder, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def levels(rules: dict[str, str]) -> Iterator[list[dict[str, str]]]:
    """Rules that need no other, then those that need these, and so on."""
    left = dict(rules)
    while left:
        ready = {name: expr for name, expr in left.items() if not metric_names(expr) & left.keys()}
        assert ready, f"rules in a circle: {sorted(left)}"
        yield [{"record": name, "expr": expr} for name, expr in ready.items()]
        left = {name: expr for name, expr in left.items() if name not in ready}
