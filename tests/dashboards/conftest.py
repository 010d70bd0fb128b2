"""A Prometheus with five minutes of a simulated site, recording rules included."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import yaml

from lustre.layout.model import Component, Layout
from simulator.jobs.large_files import StreamingReader
from simulator.jobs.metadata import LsScan
from simulator.scenarios.events import Event, schedule
from tests.alerts import site as simulated
from tests.alerts.site import number
from tests.dashboards.files import metric_names, recorded_rules
from tests.servers import Prometheus, output_of, program, prometheus
from tests.tierd.integrations.powerflex_gateway import answering
from tests.tierd.simulated import NOISE, STREAM
from tierd.config.settings import Settings
from tierd.simulation.world import VirtualClock

STEP_SECONDS = 15
SECONDS = 330
JOBS = (
    STREAM,
    replace(NOISE, start_seconds=60.0, files_per_second=14.0, sizes=tuple(n << 18 for n in range(1, 5)),
            rereads_per_second=6.0),
    StreamingReader(job_id="ior_read.1003", path="/proj/read/input.dat", client=1, file_bytes=512 << 20,
                    think_seconds=2.0, layout=Layout((Component(pool="flash"),), composite=False)),
    LsScan(client=1, names=300, times=1000, think_seconds=3.0))
"""A bit of everything."""
DEGRADED = Event(300, "degraded", {"target": "OST0003", "rebuild_share": 0.2})


@dataclass(frozen=True, slots=True)
class Site:
    """The Prometheus, the names of all metrics in it, and the time that it knows."""

    prometheus: Prometheus
    names: frozenset[str]
    begin: float
    end: float

    def values(self, expr: str, instant: bool) -> list[Any]:
        if instant:
            return self.prometheus.instant(expr, self.end)
        return self.prometheus.over(expr, self.begin, self.end, STEP_SECONDS)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The cluster lives, and what is scraped is written down as Prometheus stores it, all in virtual time."""
    program("prometheus")
    folder = tmp_path_factory.mktemp("recorded")
    data, samples = folder / "data", folder / "samples.openmetrics"
    lived = simulated.Site(folder, JOBS, Settings(), powerflex=lambda cluster: answering(VirtualClock(cluster)))
    schedule([DEGRADED], lived.cluster)
    lines: list[str] = []
    while lived.cluster.now < SECONDS:
        lived.live(STEP_SECONDS)
        lines += (series.replace("{", '{cluster="east",', 1) + f" {number(value)} {lived.cluster.epoch:.3f}"
                  for series, value in lived.samples())
    lived.close()
    samples.write_text("\n".join((*lines, "# EOF\n")), encoding="utf-8")
    begin, end = lived.begin, lived.cluster.epoch
    output_of("promtool", "tsdb", "create-blocks-from", "openmetrics", "-q", samples, data, folder=folder)
    for level in levels(recorded_rules()):
        rules = folder / "level.yml"
        rules.write_text(yaml.safe_dump({"groups": [{"name": "level", "rules": level}]}), encoding="utf-8")
        with prometheus(folder, data) as server:
            output_of("promtool", "tsdb", "create-blocks-from", "rules", f"--start={begin:.0f}", f"--end={end:.0f}",
                      f"--eval-interval={STEP_SECONDS}s", f"--url={server.url}", f"--output-dir={data}", rules,
                      folder=folder)
    with prometheus(folder, data) as server:
        yield Site(server, frozenset(line.partition("{")[0] for line in lines), begin, end)


def levels(rules: dict[str, str]) -> Iterator[list[dict[str, str]]]:
    """Rules that need no other, then those that need these, and so on."""
    left = dict(rules)
    while left:
        ready = {name: expr for name, expr in left.items() if not metric_names(expr) & left.keys()}
        assert ready, f"rules in a circle: {sorted(left)}"
        yield [{"record": name, "expr": expr} for name, expr in ready.items()]
        left = {name: expr for name, expr in left.items() if name not in ready}
