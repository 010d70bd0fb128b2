"""The example for Alertmanager, in a real one: receivers, inhibitions, and the webhook that starts a cycle of tierd."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from tests.dashboards.files import ROOT
from tests.servers import fetched, free_port, program, running
from tierd.clock import SystemClock
from tierd.config.settings import WebSettings
from tierd.daemon.web import App, listen

EXAMPLE = ROOT / "alerts" / "alertmanager.yml"


def amtool(*arguments: str) -> str:
    done = subprocess.run([program("amtool"), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(("labels", "receivers"), [
    (["alertname=LustreNoisyNeighbour", "severity=warning"], "tierd,operators"),
    (["alertname=LustreUnhealthy", "severity=critical"], "on-call"),
    (["alertname=LustreOstSlow", "severity=warning", "fs=a"], "tierd,operators"),
    (["alertname=LustreImportsNotFull", "severity=warning"], "operators"),
    (["alertname=LustreOstDegraded", "severity=warning"], "operators"),
])
def test_routes_lead_to_the_receivers(labels: list[str], receivers: str) -> None:
    assert amtool("config", "routes", "test", f"--config.file={EXAMPLE}", *labels).strip() == receivers


@dataclass(frozen=True, slots=True)
class Manager:
    url: str
    requested: Queue[None]

    def fire(self, *alerts: dict[str, str]) -> None:
        fetched(f"{self.url}/api/v2/alerts", json.dumps([{"labels": labels} for labels in alerts]).encode())

    def states(self) -> dict[str, str]:
        """By alert and severity: active, or suppressed."""
        found: list[dict[str, Any]] = fetched(f"{self.url}/api/v2/alerts")
        return {f"{a['labels']['alertname']} {a['labels'].get('severity', '')}".strip(): a["status"]["state"]
                for a in found}

    def awaited(self, names: set[str]) -> dict[str, str]:
        """The states, once it has dealt with these."""
        clock = SystemClock()
        until = clock.now() + 20
        while True:
            states = self.states()
            if names <= states.keys() and "unprocessed" not in states.values():
                return states
            assert clock.now() < until, states
            clock.wait(0.1)


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    """The example as it stands, but for tierd's port and for waits that a test has no time for."""
    alertmanager = program("alertmanager")
    requested: Queue[None] = Queue()
    app = App(CollectorRegistry(), lambda _: {}, lambda: True, lambda: requested.put(None))
    web = listen(WebSettings(port=0), app, None)
    configuration = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    tierd = next(r for r in configuration["receivers"] if r["name"] == "tierd")
    assert tierd["webhook_configs"][0]["url"] == "http://127.0.0.1:9170/-/evaluate"
    tierd["webhook_configs"][0]["url"] = f"http://127.0.0.1:{web.port}/-/evaluate"
    for route in (configuration["route"], *configuration["route"]["routes"]):
        route["group_wait"] = "1s"
    file = tmp_path / "alertmanager.yml"
    file.write_text(yaml.safe_dump(configuration), encoding="utf-8")
    port = free_port()
    command = [alertmanager, f"--config.file={file}", f"--storage.path={tmp_path}/data", "--cluster.listen-address=",
               f"--web.listen-address=127.0.0.1:{port}"]
    with running(command, f"http://127.0.0.1:{port}/-/ready", tmp_path / "log"):
        yield Manager(f"http://127.0.0.1:{port}", requested)
    web.close()


def test_alertmanager_triggers_a_cycle_of_tierd(manager: Manager) -> None:
    manager.fire({"alertname": "LustreNoisyNeighbour", "severity": "warning", "victim": "s.1", "aggressor": "n.2"})
    manager.requested.get(timeout=20)


def test_consequences_of_another_alert_are_inhibited(manager: Manager) -> None:
    target = {"fs": "a", "target": "OST0001"}
    manager.fire(
        {"alertname": "LustreOstFull", "severity": "critical", **target},
        {"alertname": "LustreExporterDown", "severity": "warning", "instance": "oss1"},
        {"alertname": "LustreOstReadOnly", "severity": "critical", **target})
    manager.awaited({"LustreOstFull critical", "LustreExporterDown warning", "LustreOstReadOnly critical"})
    manager.fire(
        {"alertname": "LustreOstFull", "severity": "warning", **target},
        {"alertname": "LustreExporterSlow", "severity": "warning", "instance": "oss1"},
        {"alertname": "LustreOstSlow", "severity": "warning", "pool": "hdd", **target},
        {"alertname": "LustreOstDegraded", "severity": "warning", "fs": "a", "target": "OST0002"},
        {"alertname": "TierdDown", "severity": "warning", "instance": "mds1"})
    states = manager.awaited({"LustreOstFull warning", "LustreExporterSlow warning", "LustreOstSlow warning",
                              "LustreOstDegraded warning", "TierdDown warning"})
    assert {name for name, state in states.items() if state == "suppressed"} == {
        "LustreOstFull warning", "LustreExporterSlow warning", "LustreOstSlow warning"}
