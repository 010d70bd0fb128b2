"""``make stack``, started as an administrator would, and ended with Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from stack.services import Ports, grafana_command, grafana_environment
from tests.servers import TOOLS, Prometheus, fetched, program
from tierd.clock import SystemClock

ROOT = Path(__file__).parent.parent
PORTS = Ports(1, 2, 3, 4, 5)


def test_one_command_brings_all_and_ctrl_c_ends_all(tmp_path_factory: pytest.TempPathFactory) -> None:
    tmp_path = tmp_path_factory.mktemp("s")  # a socket will lie there, and its path may not be long
    program("prometheus")
    program("alertmanager")
    environment = {**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}", "GRAFANA_HOME": "",
                   "TMPDIR": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-m", "stack", "--seconds", "90"], cwd=ROOT, env=environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    assert process.stdout is not None
    said = ""
    try:
        while "Press Ctrl-C to stop" not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        urls = dict(re.findall(r"^  (\w+) +(http://127\.0\.0\.1:\d+)", said, re.MULTILINE))
        await_targets(Prometheus(urls["Prometheus"]))
        rules = fetched(f"{urls['Prometheus']}/api/v1/rules")["data"]["groups"]
        assert len(rules) >= 10
        assert {rule["health"] for group in rules for rule in group["rules"]} <= {"ok", "unknown"}
        managers = fetched(f"{urls['Prometheus']}/api/v1/alertmanagers")["data"]["activeAlertmanagers"]
        assert managers[0]["url"].startswith(urls["Alertmanager"])
        with urllib.request.urlopen(urls["tierd"], timeout=10) as page:
            assert "Findings now" in page.read().decode()
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert "Stopped. All temporary files are deleted." in rest
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []
    for url in urls.values():
        with pytest.raises(OSError, match="refused"):
            urllib.request.urlopen(url, timeout=5)


def await_targets(prometheus: Prometheus) -> None:
    clock = SystemClock()
    until = clock.now() + 40
    while len(prometheus.instant("up == 1", clock.now())) < 2:
        assert clock.now() < until
        clock.wait(0.2)


def test_grafana_is_provisioned_where_there_is_one(tmp_path: Path) -> None:
    environment = grafana_environment(tmp_path, PORTS)
    assert environment["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"
    source = (tmp_path / "provisioning/datasources/prometheus.yml").read_text()
    assert "http://127.0.0.1:3\n" in source
    assert "timeInterval: 5s" in source
    boards = (tmp_path / "provisioning/dashboards/lustre.yml").read_text()
    assert f"path: {ROOT}/dashboards/json\n" in boards
    assert grafana_command(str(tmp_path)) is None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "grafana").touch()
    assert grafana_command(str(tmp_path)) == [f"{tmp_path}/bin/grafana", "server", f"--homepath={tmp_path}"]
