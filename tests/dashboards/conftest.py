"""A Prometheus with five minutes of a simulated site, recording rules included."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dashboards.files import metric_names, recorded_rules
from tests.dashboards.recorded import STEP_SECONDS, Recorded, record
from tests.servers import Prometheus, program, prometheus


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
