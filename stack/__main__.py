"""``python -m stack``: simulator, exporter, tierd, Prometheus, Alertmanager and, where there is one, Grafana.

Everything listens on 127.0.0.1 and keeps its files in one temporary folder, which is gone afterwards.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from stack import settings
from stack.processes import StartError, program
from stack.site import at_work
from tierd.clock import SystemClock
from tierd.demo import CYCLE_SECONDS, free_port


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until Ctrl-C, SIGTERM, or the end of ``--seconds``."""
    parser = argparse.ArgumentParser(prog="python -m stack", description=__doc__)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end by itself after so long")
    seconds = parser.parse_args(arguments).seconds
    missing = [name for name in ("prometheus", "alertmanager") if not shutil.which(name)]
    if missing:
        print(f"{' and '.join(missing)}: not on the PATH; `make stack` brings them", file=sys.stderr)
        return 1
    clock = SystemClock()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: clock.wake())
    try:
        with tempfile.TemporaryDirectory(prefix="lustre-stack-") as folder:
            run(Path(folder), clock, seconds)
    except StartError as error:
        print(error, file=sys.stderr)
        return 1
    print("\nStopped. Nothing is left behind.")
    return 0


def run(folder: Path, clock: SystemClock, seconds: float) -> None:
    """Start one after the other, cycle, and end them the other way round."""
    ports = settings.Ports(*(free_port(wanted) for wanted in (9169, 9170, 9090, 9093, 3000)))
    begun = clock.now()

    def say(sentence: str) -> None:
        print(f"{clock.now() - begun:5.0f} s  {sentence}", flush=True)

    with ExitStack() as running:
        cycle = running.enter_context(at_work(folder, ports.exporter, ports.tierd, clock, say))
        prometheus = settings.prometheus(folder, ports)
        alertmanager = settings.alertmanager(folder, ports)
        for name, command, port in (("prometheus", prometheus, ports.prometheus),
                                    ("alertmanager", alertmanager, ports.alertmanager)):
            running.enter_context(program(command, f"http://127.0.0.1:{port}/-/ready", folder / f"{name}.log", clock))
        home = os.environ.get("GRAFANA_HOME", "")
        grafana = settings.grafana_command(home)
        if grafana:
            running.enter_context(program(grafana, f"http://127.0.0.1:{ports.grafana}/api/health",
                                          folder / "grafana.log", clock, settings.grafana(folder, ports)))
        introduce(ports, bool(grafana))
        begun = clock.now()
        while not clock.wait(CYCLE_SECONDS) and clock.now() < begun + seconds:
            cycle()


def introduce(ports: settings.Ports, grafana: bool) -> None:
    """Where to look."""
    without = "none: not on the PATH, and GRAFANA_HOME names none"
    print(f"""
A simulated Lustre file system with a stream and, after 25 s, a noisy neighbour; tierd acts on it.

  exporter      http://127.0.0.1:{ports.exporter}/
  tierd         http://127.0.0.1:{ports.tierd}/
  Prometheus    http://127.0.0.1:{ports.prometheus}/alerts
  Alertmanager  http://127.0.0.1:{ports.alertmanager}/
  Grafana       {f"http://127.0.0.1:{ports.grafana}/" if grafana else without}

Ctrl-C ends all of it.
""", flush=True)


if __name__ == "__main__":
    sys.exit(main())
