"""``python -m bench.jitter``: the time that a scrape takes from an application on the same core.

A loop that never waits runs on one core and reads the clock. A gap between two readings is time that it lost. The bench
counts the gaps without an exporter, with one on the same core at the normal and at the idle scheduling policy, and with
one on another core. The exporter shows a client of 400 object targets once a second.

Gaps are times of the wall clock: on a machine with other work they are mostly that work. The processor time of the
exporter, which is printed too, bounds what it can take, and is comparable on any machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.exporter import memory_folder
from bench.soak import free_port
from bench.trees import ClientTree

MIN_GAP_SECONDS = 50e-6
"""A shorter gap is an interrupt or the loop itself."""
LOOP = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
until, least, now = time.perf_counter() + float(sys.argv[2]), float(sys.argv[3]), time.perf_counter()
lost, longest, clock = 0.0, 0.0, time.perf_counter
while now < until:
    before, now = now, clock()
    gap = now - before
    if gap > least:
        lost += gap
        longest = max(longest, gap)
print(lost, longest)
"""


@dataclass(frozen=True, slots=True)
class Lost:
    """What the loop lost."""

    share: float
    longest_seconds: float
    exporter_share: float = 0.0
    """Processor time of the exporter in the same time, without its start."""


def loop(core: int, seconds: float) -> Lost:
    """Run the loop in a process of its own."""
    command = [sys.executable, "-c", LOOP, str(core), str(seconds), str(MIN_GAP_SECONDS)]
    lost, longest = map(float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    return Lost(lost / seconds, longest)


def beside_exporter(root: Path, core: int, seconds: float, exporter_core: int, policy: int, flags: list[str]) -> Lost:
    """Run the loop while an exporter on a core is scraped once a second."""
    port = free_port()
    command = [sys.executable, "-m", "exporter", f"--path.procfs={root}/proc", f"--path.sysfs={root}/sys",
               f"--web.listen-address=127.0.0.1:{port}", *flags]  # fmt: skip

    def settle() -> None:
        os.sched_setaffinity(0, {exporter_core})
        os.sched_setscheduler(0, policy, os.sched_param(0))

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=settle) as exporter:  # noqa: PLW1509
        assert exporter.stderr is not None
        over = threading.Event()
        scraper = threading.Thread(target=_scrape, args=(f"http://127.0.0.1:{port}/metrics", over), daemon=True)
        try:
            next(line for line in exporter.stderr if "listening on" in line)
            scraper.start()
            before = _processor_seconds(exporter.pid)
            lost = loop(core, seconds)
            spent = _processor_seconds(exporter.pid) - before
            return Lost(lost.share, lost.longest_seconds, spent / seconds)
        finally:
            over.set()
            exporter.kill()


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _scrape(address: str, over: threading.Event) -> None:
    while not over.wait(1.0):
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                answer.read()
        except OSError:
            return


def main() -> None:
    """Print the time lost, in turn for each kind."""
    parser = argparse.ArgumentParser(prog="python -m bench.jitter", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--targets", type=int, default=400)
    chosen = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    core, other = cores[-1], cores[0]
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        root = ClientTree(Path(folder), chosen.targets).root
        slim = ["--profile=slim"]
        kinds: dict[str, Callable[[], Lost]] = {
            "no exporter": lambda: loop(core, chosen.seconds),
            "full, same core": lambda: beside_exporter(root, core, chosen.seconds, core, os.SCHED_OTHER, []),
            "slim, same core": lambda: beside_exporter(root, core, chosen.seconds, core, os.SCHED_OTHER, slim),
            "slim, same core, SCHED_IDLE": lambda: beside_exporter(
                root, core, chosen.seconds, core, os.SCHED_IDLE, slim
            ),
            "slim, another core": lambda: beside_exporter(root, core, chosen.seconds, other, os.SCHED_OTHER, slim),
        }
        for number in range(chosen.rounds):
            for kind, measure in kinds.items():
                lost = measure()
                print(f"round {number + 1}, {kind:<29}{lost.share * 1e3:>8.2f} ms lost a second, longest gap"
                      f" {lost.longest_seconds * 1e3:>7.2f} ms; exporter {lost.exporter_share * 1e3:>6.2f} ms a second",
                      flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
