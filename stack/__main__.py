"""``python -m stack``: simulator, exporter, tierd, Prometheus, Alertmanager and, where installed, Grafana.

Everything listens on 127.0.0.1 and keeps its files in one temporary folder, which is removed afterwards. Only Grafana's
database stays, in ``.tools/grafana``, because Grafana needs a minute to make it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from simulator.scenarios.scenario import Scenario, library
from stack import demo, services
from stack.demo import CYCLE_SECONDS, running_site, with_neighbour
from stack.services import Options, Ports, free_ports, program, run_until_stopped
from tierd.clock import SystemClock
from tierd.daemon.client import ask
from tierd.logs import heard
from tierd.text import printable

DESCRIPTION = (
    "Run a simulated cluster, the exporter, tierd, Prometheus, Alertmanager and, if it is installed, Grafana. All "
    "servers listen on 127.0.0.1. All files are in a temporary folder, which is deleted at the end, except Grafana's "
    "database in .tools/grafana.")
QUIET_SECONDS = 45.0
"""The neighbour starts this long after everything is up, so that all graphs show the stream alone first."""


def run(folder: Path, clock: SystemClock, options: Options) -> None:
    """Start all programs, then the simulated site; run cycles, and stop everything in reverse order."""
    missing = [name for name in ("prometheus", "alertmanager") if not shutil.which(name)]
    if missing:
        raise OSError(f"{' and '.join(missing)}: not on the PATH; `make stack` installs them")
    ports = Ports(*free_ports(*map(options.port, (9169, 9170, 9090, 9093, 3000))))
    begun = clock.now()
    introduced = False

    def log(sentence: str) -> None:
        if introduced:
            print(f"{clock.now() - begun:5.0f} s  {sentence.strip()}", flush=True)

    with ExitStack() as running:
        grafana = start_programs(running, folder, ports, clock)
        scenario = with_neighbour(library("demo"), start_seconds=QUIET_SECONDS)
        running.enter_context(heard(log))
        site = running.enter_context(running_site(folder, scenario, ports.exporter, ports.tierd, clock))
        pages = services.pages(ports, grafana=grafana)
        print("\n".join(introduction(scenario, pages, site.socket)), flush=True)
        introduced, begun = True, clock.now()
        story = AlertStory(site.socket, f"http://127.0.0.1:{ports.prometheus}", log)
        while not clock.wait(CYCLE_SECONDS) and clock.now() < begun + options.seconds:
            site.cycle()
            story.step(clock.now() - begun)
        introduced = False  # what tierd logs while the site stops is of no interest


class AlertStory:
    """Logs the alerts of Prometheus, and keeps tierd paused until one has fired: it is faster than any alert."""

    def __init__(self, socket: str, prometheus: str, log: Callable[[str], None]) -> None:
        self._socket = socket
        self._url = f"{prometheus}/api/v1/alerts"
        self._log = log
        self._firing: dict[tuple[tuple[str, str], ...], str] = {}
        """Descriptions of the alerts that fire, by their labels."""
        self._resume_at = QUIET_SECONDS + ALERT_PATIENCE_SECONDS
        self._fired = self._resumed = False
        ask(socket, {"request": "pause", "reason": PAUSE_REASON})

    def step(self, seconds: float) -> None:
        """Log what fires and what is resolved; resume tierd a while after the alert. ``seconds`` is the time now."""
        self._poll()
        if not self._fired and any(dict(labels)["alertname"] == NOISY for labels in self._firing):
            self._fired = True
            self._resume_at = seconds + READING_SECONDS
        if seconds >= self._resume_at and not self._resumed:
            self._resumed = True
            self._log("RESUMED, as tierctl resume does")
            ask(self._socket, {"request": "resume"})

    def _poll(self) -> None:
        """Ask Prometheus once. If it does not answer, nothing is logged and the next call asks again."""
        try:
            with urllib.request.urlopen(self._url, timeout=5) as answer:  # noqa: S310 -- on loopback
                alerts = json.load(answer)["data"]["alerts"]
        except (OSError, ValueError, KeyError):
            return
        firing = {tuple(sorted(alert["labels"].items())): str(alert["annotations"].get("description", ""))
                  for alert in alerts if alert["state"] == "firing"}
        for labels in firing.keys() - self._firing.keys():
            self._log(f"ALERT fires: {dict(labels)['alertname']}: {printable(firing[labels])}")
        for labels in self._firing.keys() - firing.keys():
            self._log(f"ALERT resolved: {dict(labels)['alertname']}")
        self._firing = firing


NOISY = "LustreNoisyNeighbour"
PAUSE_REASON = "until the alert has fired"
READING_SECONDS = 15.0
"""Time in which the alert fires before tierd is resumed."""
ALERT_PATIENCE_SECONDS = 120.0
"""tierd is resumed this long after the neighbour's start even if no alert fires."""


def start_programs(running: ExitStack, folder: Path, ports: Ports, clock: SystemClock) -> bool:
    """Start Prometheus, Alertmanager and Grafana, each with a line. Returns whether there is a Grafana."""
    commands: list[tuple[str, list[str], str, dict[str, str]]] = []
    grafana = services.grafana_command(os.environ.get("GRAFANA_HOME", ""))
    if grafana:
        services.GRAFANA_DATA.mkdir(parents=True, exist_ok=True)
        environment = services.grafana_environment(folder, ports, services.GRAFANA_DATA)
        commands.append(("Grafana", grafana, f"{ports.grafana}/api/health", environment))
    commands += [  # after Grafana, which takes longest: an alert would fire while there is no exporter
        ("Alertmanager", services.alertmanager_command(folder, ports), f"{ports.alertmanager}/-/ready", {}),
        ("Prometheus", services.prometheus_command(folder, ports), f"{ports.prometheus}/-/ready", {}),
    ]
    for name, command, ready, environment in commands:
        since = clock.now()
        print(f"Starting {name} ...", end=" ", flush=True)
        log = folder / f"{name.lower()}.log"
        running.enter_context(program(command, f"http://127.0.0.1:{ready}", log, clock, environment))
        print(f"{clock.now() - since:.0f} s", flush=True)
    return grafana is not None


def introduction(scenario: Scenario, pages: Sequence[tuple[str, str]], socket: str) -> list[str]:
    stream, noise = scenario.jobs
    rows = [*pages, ("socket", socket), ("tierctl", f"{demo.tierctl_command()} top --socket {socket}")]
    return [
        "",
        f"A simulated Lustre file system: job {stream.job_id} writes a stream. After {noise.start_seconds:.0f} s job",
        f"{noise.job_id} writes small files on the same targets. tierd is paused until the alert {NOISY} fires;",
        "then it is resumed and acts, and the alert is resolved, all within five minutes. The rules are those of",
        "alerts/rules with shorter times.",
        "",
        *(f"  {name:<13} {address}" for name, address in rows),
        "",
        "Press Ctrl-C to stop.",
        "",
    ]


if __name__ == "__main__":
    sys.exit(run_until_stopped("python -m stack", DESCRIPTION, run))
