"""``make stack``, started as an administrator would, and ended with Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest

from simulator.scenarios.scenario import library
from stack.__main__ import NOISY, AlertStory, introduction, with_late_neighbour
from stack.services import (
    NO_UI,
    Ports,
    demonstration,
    first_page,
    grafana_command,
    grafana_data,
    grafana_environment,
    write_demonstration_rules,
)
from tests.servers import ROOT, TOOLS, Prometheus, fetched, program, until_ctrl_c
from tests.tierd.sense.loopback_server import answers, answers_json, liar
from tierd.clock import SystemClock
from tierd.daemon.answers import Json
from tierd.daemon.client import ask
from tierd.daemon.control import ControlServer

PORTS = Ports(1, 2, 3, 4, 5)


def test_one_command_brings_all_and_ctrl_c_ends_all(tmp_path_factory: pytest.TempPathFactory) -> None:
    tmp_path = tmp_path_factory.mktemp("s")  # a socket will lie there, and its path may not be long
    program("prometheus")
    program("alertmanager")
    with until_ctrl_c("stack", "--seconds", "90", folder=tmp_path, PATH=f"{TOOLS}:{os.environ['PATH']}",
                      GRAFANA_HOME="") as said:
        addresses = dict(re.findall(r"^  (\w+) +(\S+)", said, re.MULTILINE))
        for name in ("exporter", "tierd", "Prometheus"):
            with urllib.request.urlopen(addresses[name], timeout=10) as page:
                is_page = "/api/" not in addresses[name]  # Prometheus without its package has no pages
                assert page.headers.get_content_type() == ("text/html" if is_page else "application/json")
                assert is_page or name == "Prometheus"
        assert fetched(addresses["Alertmanager"]) == [] or "/api/" not in addresses["Alertmanager"]
        assert ask(addresses["socket"], {"request": "status"})["paused"]
        urls = {name: found[0] for name, address in addresses.items()
                if (found := re.findall(r"^http://127\.0\.0\.1:\d+", address))}
        await_targets(Prometheus(urls["Prometheus"]))
        rules = fetched(f"{urls['Prometheus']}/api/v1/rules")["data"]["groups"]
        assert len(rules) >= 10
        assert {rule["health"] for group in rules for rule in group["rules"]} <= {"ok", "unknown"}
        managers = fetched(f"{urls['Prometheus']}/api/v1/alertmanagers")["data"]["activeAlertmanagers"]
        assert managers[0]["url"].startswith(urls["Alertmanager"])
        with urllib.request.urlopen(urls["tierd"], timeout=10) as page:
            assert "<dt>Findings</dt>" in page.read().decode()
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
    environment = grafana_environment(tmp_path, PORTS, tmp_path / "kept")
    assert environment["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"
    assert environment["GF_PATHS_DATA"] == str(tmp_path / "kept")
    source = (tmp_path / "provisioning/datasources/prometheus.yml").read_text()
    assert "http://127.0.0.1:3\n" in source
    assert "timeInterval: 5s" in source
    boards = (tmp_path / "provisioning/dashboards/lustre.yml").read_text()
    assert f"path: {ROOT}/dashboards/json\n" in boards
    assert grafana_command(str(tmp_path)) is None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "grafana").touch(0o755)
    assert grafana_command(str(tmp_path)) == [f"{tmp_path}/bin/grafana", "server", f"--homepath={tmp_path}"]


def test_the_database_of_grafana_is_kept_and_only_one_stack_uses_it(tmp_path: Path) -> None:
    kept, first, second = tmp_path / "kept", tmp_path / "1", tmp_path / "2"
    with grafana_data(kept, first) as data:
        (data / "grafana.db").touch()
        with grafana_data(kept, second) as other:
            assert (data, other) == (kept, second / "grafana")
    with grafana_data(kept, second) as data:
        assert (data / "grafana.db").exists()


def test_the_profile_has_the_same_rules_with_shorter_times(tmp_path: Path) -> None:
    rules = ROOT / "alerts" / "rules"
    profile = write_demonstration_rules(rules, tmp_path / "rules")
    for file in rules.glob("*.yml"):
        before, after = file.read_text(), (profile / file.name).read_text()
        times = [int(found) for found in re.findall(r"^ *(?:for|keep_firing_for): (\d+)s$", after, re.MULTILINE)]
        assert len(times) == len(re.findall(r"^ *(?:for|keep_firing_for): ", before, re.MULTILINE))
        assert len(after.splitlines()) == len(before.splitlines())
        assert re.findall(r"(?:alert|record): .*", after) == re.findall(r"(?:alert|record): .*", before)
    neighbours = (profile / "neighbours.yml").read_text()
    noisy = neighbours.partition(f"alert: {NOISY}\n")[2].partition("- alert: ")[0]
    ranges = re.findall(r"for: (\d+)s$|tierd_interference_slowdown\[(\d+)s\]", noisy, re.MULTILINE)
    assert ranges
    assert all(int(kept or ranged) <= 30 for kept, ranged in ranges)
    done = subprocess.run([program("promtool"), "check", "rules", *map(str, profile.glob("*.yml"))], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_rates_of_counters_keep_their_ranges() -> None:
    assert demonstration("rate(lustre_x_total[5m])") == "rate(lustre_x_total[5m])"
    assert demonstration('max_over_time(tierd_x{a="b"}[1h])') == 'max_over_time(tierd_x{a="b"}[120s])'


def alerts(*states: str) -> str:
    return json.dumps({"data": {"alerts": [
        {"labels": {"alertname": NOISY, "victim": "v"}, "annotations": {"description": "v is slow"}, "state": state}
        for state in states]}})


def test_tierd_acts_only_after_the_alert_has_fired(tmp_path_factory: pytest.TempPathFactory) -> None:
    control = str(tmp_path_factory.mktemp("s") / "tierd.sock")
    requests: list[object] = []
    logged: list[str] = []
    state: list[str] = [alerts("pending")]

    def answer(request: Json) -> Json:
        requests.append(request["request"])
        return {"held": ""}

    def prometheus_answers(to: socket.socket, request: str) -> None:
        answers_json(state[0])(to, request)

    server = ControlServer(control, answer)
    try:
        with liar(prometheus_answers) as prometheus:
            story = AlertStory(control, prometheus.url, logged.append)
            story.step(60.0)
            assert (requests, logged) == (["pause"], [])
            state[0] = alerts("firing")
            story.step(70.0)
            assert logged == [f"ALERT fires: {NOISY}: v is slow"]
            story.step(84.0)
            assert requests == ["pause"]
            story.step(85.0)
            state[0] = alerts()
            story.step(90.0)
    finally:
        server.close()
    assert requests == ["pause", "resume"]
    assert logged[1:] == ["RESUMED, as tierctl resume does", f"ALERT resolved: {NOISY}"]


def test_a_placeholder_page_does_not_count_as_the_application() -> None:
    page, missing = answers(f"<html>run {NO_UI}</html>", "text/html"), answers("", status="404 Not Found")
    with liar([missing, page, missing, page]) as server:
        assert first_page(server.url, ("/alerts", "/"), without=NO_UI) == ""
        assert first_page(server.url, ("/alerts", "/")) == f"{server.url}/"


def test_the_neighbour_starts_when_everything_is_up() -> None:
    scenario = with_late_neighbour(library("demo"))
    assert scenario.jobs[1].start_seconds >= 30
    text = "\n".join(introduction(scenario, [("exporter", "http://127.0.0.1:1/")], "/run/x.sock"))
    assert "--socket /run/x.sock" in text
    assert f"After {scenario.jobs[1].start_seconds:.0f} s" in text
