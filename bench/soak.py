"""``python -m bench.soak``: ten thousand scrapes of the real exporter over HTTP, and what its memory does meanwhile.

The tree is a client's and a server's at once. Its counters move all the time, jobs come and go, a target vanishes and
comes back: whatever is remembered for each of them must be forgotten again.
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
"""Scrapes between two movements of the tree: making it costs more than scraping it."""
WARM_UP = 0.2
"""Share of the scrapes after which memory should have found its level."""
MAX_GROWTH = 1.05
MIN_SCRAPES = 1000
"""Fewer scrapes are for a look, not for a judgement."""


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def resident_mebibytes(pid: int) -> float:
    """Memory of a process now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def incidents(client: ClientTree, server: ServerTree, step: int) -> None:
    """Counters count, jobs end and new ones begin; every tenth time a target goes or comes back."""
    server.move(step, every=4, first=step)
    client.move(step, every=3)
    if step % 20 == 10:
        client.vanish(0)
    elif step % 20 == 0:
        client.appear(0)


def watch(pid: int, address: str, scrapes: int, move: Callable[[int], None]) -> tuple[float, float]:
    """Scrape again and again: memory after warming up and at the end."""
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
    """Soak, and complain when memory keeps growing."""
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
