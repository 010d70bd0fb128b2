"""What stacks run until a signal: Prometheus, Alertmanager and Grafana, with their configuration below one folder.

A site waits ten minutes before it wakes somebody. A demonstration of five minutes cannot: its alerting rules are
generated from ``alerts/rules``, and are the same alerts with shorter times.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tierd.clock import Clock, SystemClock

ROOT = Path(__file__).parent.parent
SCRAPE_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Ports:
    """TCP ports on 127.0.0.1."""

    exporter: int
    tierd: int
    prometheus: int
    alertmanager: int
    grafana: int


TIMES_FASTER = 30
"""In the demonstration; but no time is shorter than a scrape interval."""
TIMES = re.compile(r"(^\s*(?:for|keep_firing_for): |tierd_\w+(?:\{[^}]*\})?\[)(\d+)([smhd])(?=\]|$)", re.MULTILINE)
"""Times that are shorter: also the ranges of tierd's own metrics. Rates of counters keep theirs: they need several
samples."""
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def write_demonstration_rules(rules: Path, folder: Path) -> Path:
    """Write the demonstration profile of all files of ``rules`` into a folder. Returns the folder."""
    folder.mkdir()
    for file in sorted(rules.glob("*.yml")):
        (folder / file.name).write_text(demonstration(file.read_text(encoding="utf-8")), encoding="utf-8")
    return folder


def demonstration(rules: str) -> str:
    r"""A rule file with shorter times in ``for``, ``keep_firing_for`` and ranges of tierd's metrics.

    >>> print(demonstration("for: 10m\nkeep_firing_for: 1h\nexpr: max_over_time(tierd_x{a=1}[5m]) > rate(x[2m])"))
    for: 20s
    keep_firing_for: 120s
    expr: max_over_time(tierd_x{a=1}[10s]) > rate(x[2m])
    """
    return TIMES.sub(lambda found: f"{found[1]}{shorter_seconds(found[2], found[3])}s", rules)


def shorter_seconds(number: str, unit: str) -> int:
    """A time of the rules as seconds of the demonstration.

    >>> shorter_seconds("10", "m"), shorter_seconds("2", "m"), shorter_seconds("0", "m")
    (20, 5, 0)
    """
    seconds = int(number) * _SECONDS[unit]
    return max(SCRAPE_SECONDS, seconds // TIMES_FASTER) if seconds else 0


def prometheus_command(folder: Path, ports: Ports) -> list[str]:
    """Write the settings of Prometheus, with the demonstration profile of the rules. Returns its command."""
    file = folder / "prometheus.yml"
    rules = write_demonstration_rules(ROOT / "alerts" / "rules", folder / "rules")
    file.write_text(f"""\
global: {{scrape_interval: {SCRAPE_SECONDS}s, evaluation_interval: {SCRAPE_SECONDS}s}}
rule_files: ["{rules}/*.yml"]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["127.0.0.1:{ports.alertmanager}"]}}]}}]}}
scrape_configs:
  - {{job_name: lustre, static_configs: [{{targets: ["127.0.0.1:{ports.exporter}"]}}]}}
  - {{job_name: tierd, static_configs: [{{targets: ["127.0.0.1:{ports.tierd}"]}}]}}
""", encoding="utf-8")
    return ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder}/prometheus",
            f"--web.listen-address=127.0.0.1:{ports.prometheus}", "--log.level=warn"]


def alertmanager_command(folder: Path, ports: Ports) -> list[str]:
    """Write the settings of Alertmanager: the example of ``alerts/`` with shorter times. Returns its command."""
    example = (ROOT / "alerts" / "alertmanager.yml").read_text(encoding="utf-8")
    file = folder / "alertmanager.yml"
    shorter = re.sub(r"(group_wait|group_interval): \w+", rf"\1: {SCRAPE_SECONDS}s", example)
    file.write_text(shorter.replace("127.0.0.1:9170", f"127.0.0.1:{ports.tierd}"), encoding="utf-8")
    return ["alertmanager", f"--config.file={file}", f"--storage.path={folder}/alertmanager",
            "--cluster.listen-address=", f"--web.listen-address=127.0.0.1:{ports.alertmanager}", "--log.level=warn"]


GRAFANA_DATA = ROOT / ".tools" / "grafana"
"""Grafana makes its database here at the first start, which takes up to a minute; the next starts take seconds."""


def grafana_environment(folder: Path, ports: Ports, data: Path) -> dict[str, str]:
    """Write Grafana's provisioning. Returns its environment, which allows anonymous viewers."""
    given = ROOT / "dashboards" / "provisioning"
    provisioning = folder / "provisioning"
    for kind in ("dashboards", "datasources"):
        (provisioning / kind).mkdir(parents=True)
    boards = (given / "dashboards" / "lustre.yml").read_text(encoding="utf-8")
    source = (given / "datasources" / "prometheus.yml").read_text(encoding="utf-8")
    (provisioning / "dashboards" / "lustre.yml").write_text(
        boards.replace("/var/lib/grafana/dashboards/lustre", f"{ROOT}/dashboards/json"), encoding="utf-8")
    (provisioning / "datasources" / "prometheus.yml").write_text(
        source.replace("localhost:9090", f"127.0.0.1:{ports.prometheus}").replace("30s", f"{SCRAPE_SECONDS}s"),
        encoding="utf-8")
    return {
        "GF_PATHS_DATA": str(data), "GF_PATHS_LOGS": f"{folder}/grafana-log",
        "GF_PATHS_PLUGINS": f"{folder}/grafana-plugins", "GF_PATHS_PROVISIONING": str(provisioning),
        "GF_SERVER_HTTP_ADDR": "127.0.0.1", "GF_SERVER_HTTP_PORT": str(ports.grafana),
        "GF_AUTH_ANONYMOUS_ENABLED": "true", "GF_AUTH_ANONYMOUS_ORG_ROLE": "Viewer",
        "GF_ANALYTICS_REPORTING_ENABLED": "false", "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
        "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH": f"{ROOT}/dashboards/json/lustre-at-a-glance.json",
    }


def grafana_command(home: str) -> list[str] | None:
    """The command of Grafana below ``GRAFANA_HOME`` or on the PATH; None if it is not installed."""
    for name in ("grafana", "grafana-server"):
        if found := shutil.which(name, path=f"{home}/bin" if home else None):
            packaged = Path("/usr/share/grafana")
            installed = home or (packaged if packaged.exists() else Path(found).resolve().parent.parent)
            return [found, *(("server",) if name == "grafana" else ()), f"--homepath={installed}"]
    return None


START_TIMEOUT_SECONDS = 180.0
"""At its first start Grafana creates its database, which takes minutes on a slow disk."""


def pages(ports: Ports, *, grafana: bool) -> list[tuple[str, str]]:
    """Names of the programs and their addresses. Those of Debian without web pages have only their API there."""
    programs = {"exporter": ports.exporter, "tierd": ports.tierd, "Prometheus": ports.prometheus,
                "Alertmanager": ports.alertmanager, "Grafana": ports.grafana if grafana else 0}
    return [(name, f"http://127.0.0.1:{port}/" if port else "not found on the PATH or in GRAFANA_HOME")
            for name, port in programs.items()]


def started(command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a program with its output in a file. It ends with this process, even if that is killed."""
    tied = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
    with log.open("ab") as out:
        return subprocess.Popen(  # noqa: S603 -- programs of ours, Prometheus, Alertmanager, Grafana
            [*tied, *command], stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            env={**os.environ, **(environment or {})})


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a program, which may hang; kill it if that takes longer."""
    for number in (signal.SIGCONT, signal.SIGTERM):
        process.send_signal(number)
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def program(command: Sequence[str], ready: str, log: Path, clock: Clock,
            environment: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program until the block ends. The block starts when the program's URL answers. Raises OSError."""
    process = started(command, log, environment)
    try:
        await_answer(process, ready, log, clock)
        yield process
    finally:
        stop(process)


def await_answer(process: subprocess.Popen[bytes], url: str, log: Path, clock: Clock) -> None:
    """Wait until a URL answers. Raises OSError if the program ends, or after START_TIMEOUT_SECONDS."""
    until = clock.now() + START_TIMEOUT_SECONDS
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()  # noqa: S310 -- on loopback
            return
        except OSError as error:
            if process.poll() is not None or clock.wait(0.2) or clock.now() > until:
                raise OSError(f"{url} does not answer: {log.read_text(errors='replace')[-1000:]}") from error


def free_ports(*wanted: int) -> list[int]:
    """Each of these ports, or a free one where it is 0 or in use; no two are the same."""
    with ExitStack() as probes:
        found = []
        for port in wanted:
            probe = probes.enter_context(socket.socket())
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                probe.bind(("127.0.0.1", 0))
            found.append(int(probe.getsockname()[1]))
        return found


@dataclass(frozen=True, slots=True)
class Options:
    """Options of all stacks."""

    seconds: float = float("inf")
    """Length of the run."""
    any_ports: bool = False
    picture: Path | None = None
    """File for a picture of the terminal after the verdict, with which the run ends."""

    def port(self, usual: int) -> int:
        """The port to try first; 0 for any free one."""
        return 0 if self.any_ports else usual


def run_until_stopped(prog: str, description: str, run: Callable[[Path, SystemClock, Options], None], *,
                      picture: bool = False) -> int:
    """Run until Ctrl-C, SIGTERM, or the end of ``--seconds``. Returns 1 if a program does not start.

    ``run`` gets its folder, and the clock that a signal wakes. With ``picture``, there is an option for one.
    """
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after this many seconds")
    parser.add_argument("--any-ports", action="store_true",
                        help="use any free ports, so that several stacks can be started at the same time")
    if picture:
        parser.add_argument("--picture", type=Path, metavar="FILE",
                            help="end after the verdict, and write what the terminal shows to this SVG file")
    options = Options(**vars(parser.parse_args()))
    clock = SystemClock()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: clock.wake())
    try:
        with tempfile.TemporaryDirectory(prefix="tierd-") as folder:  # short: `tierctl` of the socket fits a line
            run(Path(folder), clock, options)
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    print("\nStopped. All temporary files are deleted.")
    return 0
