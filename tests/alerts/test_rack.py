"""With real servers: two of Prometheus for the rack tier, whose site gets no series of a client, and Alertmanager."""

import json
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from stack.services import free_ports
from tests.dashboards.files import ROOT
from tests.servers import Prometheus, awaited, fetched, output_of, program, running
from tests.tierd.sense.loopback_server import answers, liar
from tierd.clock import SystemClock
from tierd.config.settings import WebSettings
from tierd.daemon.web import App, listen

RACK = Path(__file__).parents[2] / "alerts" / "rack"
CLIENTS = 3
WAIT_SECONDS = 60.0


def client(to: socket.socket, request: str) -> None:
    """A client that reads 1000 bytes a second from each of two pools."""
    n = 1000 * int(SystemClock().now())
    lines = [f'lustre_llite_{what}_bytes_total{{fs="a",mount="/a"}} {n}' for what in ("read", "write")]
    lines += [f'lustre_osc_{what}_bytes_total{{fs="a",mount="/a",pool="{pool}"}} {n}'
              for what in ("read", "write") for pool in ("flash", "disk")]
    lines += ['lustre_osc_imports{fs="a",mount="/a",pool="flash",state="FULL"} 4',
              'lustre_version_info{version="2.17.0"} 1', 'lustre_client_job_info{jobid="4711"} 1']
    answers("\n".join([*lines, ""]))(to, request)


@pytest.fixture
def clients():
    with ExitStack() as stack:
        yield [stack.enter_context(liar(client)).url.removeprefix("http://") for _ in range(CLIENTS)]


def command(folder: Path, port: int, *flags: str) -> list[str]:
    return [program("prometheus"), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn", *flags]  # fmt: skip


def test_the_site_gets_sums_and_no_series_of_a_client(tmp_path, clients) -> None:
    site, rack = tmp_path / "site", tmp_path / "rack"
    site.mkdir()
    rack.mkdir()
    at_site, at_rack = free_ports(0, 0)
    (site / "prometheus.yml").write_text("global: {}\n")
    shipped = yaml.safe_load((RACK / "prometheus.yml").read_text())
    shipped["global"] |= {"scrape_interval": "1s", "evaluation_interval": "1s", "scrape_timeout": "1s"}
    shipped["scrape_configs"][0]["static_configs"] = [{"targets": clients}]
    shipped["remote_write"][0]["url"] = f"http://127.0.0.1:{at_site}/api/v1/write"
    (rack / "prometheus.yml").write_text(yaml.safe_dump(shipped))
    (rack / "rules.yml").write_text(re.sub(r"\[\dm\]", "[10s]", (RACK / "rules.yml").read_text()))
    with (
        running(command(site, at_site, "--web.enable-remote-write-receiver"), f"http://127.0.0.1:{at_site}/-/ready",
                tmp_path / "site.log"),
        running(command(rack, at_rack), f"http://127.0.0.1:{at_rack}/-/ready", tmp_path / "rack.log"),
    ):  # fmt: skip
        clock, wanted = SystemClock(), Prometheus(f"http://127.0.0.1:{at_site}")

        def rates_above_zero() -> list:
            rates = wanted.instant('rack_fs_pool:lustre_osc_read_bytes:rate5m{rack="r01"}', clock.now())
            return rates if all(float(one["value"][1]) > 0 for one in rates) else []

        rates = awaited(rates_above_zero, WAIT_SECONDS, (tmp_path / "rack.log").read_text)
        assert {one["metric"]["pool"] for one in rates} == {"flash", "disk"}
        assert all(100 < float(one["value"][1]) < 20000 * CLIENTS for one in rates)
        (of_job,) = wanted.instant("rack_fs_jobid:lustre_llite_write_bytes:rate2m", clock.now())
        assert (of_job["metric"]["jobid"], of_job["metric"]["rack"]) == ("4711", "r01")
        assert 100 < float(of_job["value"][1]) < 20000 * CLIENTS
        up = wanted.instant("rack_job:up:sum", clock.now())
        assert [one["value"][1] for one in up] == [str(CLIENTS)]
        imports = wanted.instant("rack_fs_pool_state:lustre_osc_imports:sum", clock.now())
        assert [one["value"][1] for one in imports] == [str(4 * CLIENTS)]
        names = fetched(f"http://127.0.0.1:{at_site}/api/v1/label/__name__/values")["data"]
        recorded = set(re.findall(r"record: (\S+)", (RACK / "rules.yml").read_text()))
        assert set(names) <= recorded
        assert not fetched(f"http://127.0.0.1:{at_site}/api/v1/label/instance/values")["data"]


EXAMPLE = ROOT / "alerts" / "alertmanager.yml"


@pytest.mark.parametrize(("labels", "receivers"), [
    (["alertname=LustreNoisyNeighbour", "severity=warning"], "tierd,operators"),
    (["alertname=LustreUnhealthy", "severity=critical"], "on-call"),
    (["alertname=LustreOstSlow", "severity=warning", "fs=a"], "tierd,operators"),
    (["alertname=LustreImportsNotFull", "severity=warning"], "operators"),
    (["alertname=LustreOstDegraded", "severity=warning"], "operators"),
])
def test_routes_lead_to_the_receivers(labels: list[str], receivers: str) -> None:
    said = output_of("amtool", "config", "routes", "test", f"--config.file={EXAMPLE}", *labels)
    assert said.strip() == receivers


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
        awaited(lambda: names <= self.states().keys() and "unprocessed" not in self.states().values(), 20, self.states)
        return self.states()


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
    (port,) = free_ports(0)
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
        {"alertname": "LustreExporterDown", "severity": "warning", "instance": "oss1", "job": "lustre"},
        {"alertname": "LustreExporterDown", "severity": "warning", "instance": "oss2", "job": "lustre-jobs"},
        {"alertname": "LustreRecoveryStuck", "severity": "critical", **target})
    manager.awaited({"LustreOstFull critical", "LustreExporterDown warning", "LustreRecoveryStuck critical"})
    manager.fire(
        {"alertname": "LustreOstFull", "severity": "warning", **target},
        {"alertname": "LustreExporterSlow", "severity": "warning", "instance": "oss1"},
        {"alertname": "LustreOstSlow", "severity": "warning", "pool": "hdd", **target},
        {"alertname": "LustreOstDegraded", "severity": "warning", "fs": "a", "target": "OST0002"},
        {"alertname": "LustreUnhealthy", "severity": "critical", "instance": "oss2"},
        {"alertname": "TierdDown", "severity": "warning", "instance": "mds1"})
    states = manager.awaited({"LustreOstFull warning", "LustreExporterSlow warning", "LustreOstSlow warning",
                              "LustreOstDegraded warning", "LustreUnhealthy critical", "TierdDown warning"})
    assert {name for name, state in states.items() if state == "suppressed"} == {
        "LustreOstFull warning", "LustreExporterSlow warning", "LustreOstSlow warning"}
