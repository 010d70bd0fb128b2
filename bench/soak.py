"""``python -m bench.soak``: ten thousand scrapes of the real exporter over HTTP, with its memory over time.

The tree is a client and a server at the same time. Its counters change, jobs start and end, a target vanishes and
returns. The exporter must forget the state of each of them.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from bench.exporter import memory_folder
from bench.trees import ClientTree, ServerTree

MOVE_EVERY = 20
"""Number of scrapes between two changes of the tree, because a change costs more than a scrape."""
WARM_UP = 0.2
"""Share of the scrapes after which memory should be constant."""
MAX_GROWTH = 1.05
MIN_SCRAPES = 1000
"""Minimum number of scrapes for a verdict."""


def free_port() -> int:
    """Return an unused port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def resident_mebibytes(pid: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def incidents(client: ClientTree, server: ServerTree, step: int) -> None:
    """Increase counters, end and start jobs; every tenth time, remove or restore a target."""
    server.move(step, every=4, first=step)
    client.move(step, every=3)
    if step % 20 == 10:
        client.vanish(0)
    elif step % 20 == 0:
        client.appear(0)


def watch(pid: int, address: str, scrapes: int, move: Callable[[int], None]) -> tuple[float, float]:
    """Scrape repeatedly. Returns the memory after the warm-up and at the end."""
    warm, began = 0.0, time.monotonic()
    for number in range(1, scrapes + 1):
        if number % MOVE_EVERY == 0:
            move(number // MOVE_EVERY)
        with urllib.request.urlopen(address) as answer:
            size = len(answer.read())
        if number == int(scrapes * WARM_UP):
            warm = resident_mebibytes(pid)
        if number % max(1, scrapes // 10) == 0:
            print(f"{number:>6} scrapes, {time.monotonic() - began:>5.0f} s, {size / 1e6:.2f} MB,"
                  f" {resident_mebibytes(pid):.1f} MiB", flush=True)  # fmt: skip
    return warm, resident_mebibytes(pid)


def soak(root: Path, scrapes: int, targets: int, jobs: int, flags: list[str]) -> tuple[float, float]:
    """Memory after warming up and at the end."""
    client, server = ClientTree(root, targets), ServerTree(root, 2, jobs)
    port = free_port()
    command = [sys.executable, "-m", "exporter", f"--path.procfs={root}/proc", f"--path.sysfs={root}/sys",
               f"--web.listen-address=127.0.0.1:{port}", *flags]  # fmt: skip
    as_the_unit = os.environ | {"MALLOC_ARENA_MAX": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=as_the_unit) as exporter:
        assert exporter.stderr is not None
        try:
            next(line for line in exporter.stderr if "listening on" in line)
            return watch(exporter.pid, f"http://127.0.0.1:{port}/metrics", scrapes,
                         lambda step: incidents(client, server, step))  # fmt: skip
        finally:
            exporter.terminate()


def main() -> None:
    """Run the soak test, and fail if memory keeps growing."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak")
    parser.add_argument("--scrapes", type=int, default=10000)
    parser.add_argument("--targets", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("flags", nargs="*", help="further arguments of the exporter, after --")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        warm, end = soak(Path(folder), chosen.scrapes, chosen.targets, chosen.jobs, chosen.flags)
    print(f"{chosen.scrapes} scrapes: {warm:.1f} MiB after {WARM_UP:.0%}, {end:.1f} MiB at the end")
    assert end <= warm * MAX_GROWTH or chosen.scrapes < MIN_SCRAPES, "memory grows"


if __name__ == "__main__":
    main()
