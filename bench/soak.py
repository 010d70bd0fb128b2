"""``python -m bench.soak``: ten thousand scrapes of the real exporter over HTTP, and what its memory does meanwhile.

The tree is a client's and a server's at once. Its counters move all the time, jobs come and go, a target vanishes and
comes back: whatever is remembered for each of them must be forgotten again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from bench.exporter import where
from bench.trees import FS, MOUNT, Client, Server

MOVE_EVERY = 20
"""Scrapes between two movements of the tree: making it costs more than scraping it."""
WARM_UP = 0.2
"""Share of the scrapes after which memory should have found its level."""
MOST_GROWTH = 1.05


def resident_mebibytes(pid: int) -> float:
    """Memory of a process now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def cpu_seconds(pid: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def incidents(root: Path, client: Client, server: Server, step: int) -> None:
    """Counters count, a hundredth of the jobs is new each time, and every tenth time a target goes or comes."""
    client.move(step, every=3)
    server.move(step, every=4, born=step)
    gone = root / f"sys/kernel/debug/lustre/osc/{client.targets[0]}-osc-{MOUNT}"
    away = gone.with_name(f"{FS}-away")
    if step % 20 == 10:
        gone.rename(away.parent.parent / away.name)
        client.made.discard(gone)
    elif step % 20 == 0 and (away.parent.parent / away.name).exists() and not gone.exists():
        (away.parent.parent / away.name).rename(gone)


def soak(root: Path, scrapes: int, targets: int, jobs: int, flags: list[str]) -> tuple[float, float]:
    """Memory after warming up and at the end."""
    client, server = Client(root, targets), Server(root, 2, jobs)
    command = [sys.executable, "-m", "exporter", f"--path.procfs={root}/proc", f"--path.sysfs={root}/sys",
               "--web.listen-address=127.0.0.1:0", *flags]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as exporter:
        assert exporter.stderr is not None
        try:
            port = next(line for line in exporter.stderr if "listening on" in line).rpartition(":")[2].strip()
            return watch(exporter.pid, f"http://127.0.0.1:{port}/metrics", scrapes,
                         lambda step: incidents(root, client, server, step))  # fmt: skip
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
    with tempfile.TemporaryDirectory(dir=where()) as folder:
        warm, end = soak(Path(folder), chosen.scrapes, chosen.targets, chosen.jobs, chosen.flags)
    print(f"{chosen.scrapes} scrapes: {warm:.1f} MiB after {WARM_UP:.0%}, {end:.1f} MiB at the end")
    assert end <= warm * MOST_GROWTH, "memory grows"


if __name__ == "__main__":
    main()
