"""``python -m bench.hostile_clients``: an exporter with clients that read slowly, send nothing, or are too many.

Each attack runs for some seconds while another client scrapes once a second, as Prometheus does. The bench prints the
scrapes that this client got, its longest wait, and the exporter's memory before, at most, and afterwards. It fails if a
scrape is refused, if memory exceeds ``MemoryMax`` of the unit file, or if it does not return.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.exporter import memory_folder
from bench.trees import ServerTree
from stack.services import free_ports, program
from tierd.clock import SystemClock

UNIT = Path(__file__).parent.parent / "systemd" / "lustre-exporter.service"
MAX_RETURN = 1.15
"""Memory after an attack, in times of that before it. The rest is fragmentation."""
SETTLE_SECONDS = 2.0


@dataclass
class Scrapes:
    """What a well-behaved client got."""

    answered: int = 0
    refused: list[str] = field(default_factory=list)
    longest_seconds: float = 0.0
    peak_mebibytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Exporter:
    pid: int
    port: int
    tree: ServerTree

    def connect(self, address: str = "127.0.0.1") -> socket.socket:
        """Connect from a loopback address, with a small receive buffer."""
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.bind((address, 0))
        client.connect(("127.0.0.1", self.port))
        return client

    def scrape(self) -> int:
        """Scrape as Prometheus does. Returns the size of the response. Raises OSError."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/metrics", headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return len(answer.read())


@contextlib.contextmanager
def running(targets: int, jobs: int) -> Iterator[Exporter]:
    """Start an exporter over a tree of an object server, with the environment of the unit file."""
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        root, port = Path(folder), free_ports(0)[0]
        tree = ServerTree(root, targets, jobs)
        command = [sys.executable, "-m", "exporter", f"--path.procfs={root}/proc", f"--path.sysfs={root}/sys",
                   f"--web.listen-address=127.0.0.1:{port}"]  # fmt: skip
        with program(command, f"http://127.0.0.1:{port}/", root / "log", SystemClock(),
                     {"MALLOC_ARENA_MAX": "1"}) as exporter:  # fmt: skip
            yield Exporter(exporter.pid, port, tree)


REQUEST = b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n"
Attack = Callable[[Exporter, contextlib.ExitStack, threading.Event], None]
"""Runs in a thread until the event. What it opens is closed with the stack."""


def slow_readers(exporter: Exporter, stack: contextlib.ExitStack, over: threading.Event) -> None:
    """140 clients request the metrics and do not read, ten at a time, while every job changes."""
    for number in range(140):
        with contextlib.suppress(OSError):
            client = stack.enter_context(exporter.connect(f"127.0.0.{1 + number % 2}"))
            client.sendall(REQUEST)
        if number % 10 == 9:
            exporter.tree.move(1000 + number)
            if over.wait(1):
                return


def idle_connections(exporter: Exporter, stack: contextlib.ExitStack, over: threading.Event) -> None:
    for _ in range(900):
        with contextlib.suppress(OSError):
            stack.enter_context(exporter.connect())


def dribbled_headers(exporter: Exporter, stack: contextlib.ExitStack, over: threading.Event) -> None:
    """200 clients that send one byte of their request at a time, and connect again when they are dropped."""
    clients: list[socket.socket] = []
    while not over.wait(0.2):
        while len(clients) < 200:
            clients.append(stack.enter_context(exporter.connect()))
        for client in [*clients]:
            try:
                client.send(b"G")
            except OSError:
                clients.remove(client)


def scrapes(exporter: Exporter, stack: contextlib.ExitStack, over: threading.Event) -> None:
    while not over.is_set():
        with contextlib.suppress(OSError):
            exporter.scrape()


ATTACKS: dict[str, tuple[Attack, int]] = {
    "slow readers": (slow_readers, 1), "900 idle connections": (idle_connections, 1),
    "dribbled headers": (dribbled_headers, 1), "64 scrapes at once": (scrapes, 64),
}  # fmt: skip
"""Attacks, and in how many threads they run."""
SECONDS = 15.0
"""Length of an attack."""


def during(name: str, exporter: Exporter) -> Scrapes:
    """Scrape once a second during an attack."""
    found, over = Scrapes(), threading.Event()
    attack, threads = ATTACKS[name]
    with contextlib.ExitStack() as stack:
        for _ in range(threads):
            thread = threading.Thread(target=attack, args=(exporter, stack, over), daemon=True)
            thread.start()
            stack.callback(thread.join, 60)
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            began = time.monotonic()
            try:
                exporter.scrape()
                found.answered += 1
            except urllib.error.HTTPError as error:
                found.refused.append(str(error.code))
                error.close()
            except OSError as error:
                found.refused.append(type(error).__name__)
            found.longest_seconds = max(found.longest_seconds, time.monotonic() - began)
            found.peak_mebibytes = max(found.peak_mebibytes, resident_mebibytes(exporter.pid))
            time.sleep(max(0.0, began + 1 - time.monotonic()))
        over.set()
    return found


def resident_mebibytes(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def memory_max_mebibytes() -> float:
    match = re.search(r"^MemoryMax=(\d+)([MG])$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)
    assert match is not None
    return int(match[1]) * {"M": 1, "G": 1024}[match[2]]


def main() -> int:
    """Run all attacks. Returns the exit status."""
    wrong = False
    with running(4, 2000) as exporter:
        for step in range(3):
            exporter.tree.move(step)
            exporter.scrape()
        for name in ATTACKS:
            before = resident_mebibytes(exporter.pid)
            found = during(name, exporter)
            time.sleep(SETTLE_SECONDS)
            exporter.scrape()
            after, peak = resident_mebibytes(exporter.pid), found.peak_mebibytes
            bad = bool(found.refused) or peak > memory_max_mebibytes() or after > MAX_RETURN * before
            wrong |= bad
            print(f"{name:<22}{found.answered:>4} scrapes, {len(found.refused)} refused {' '.join(set(found.refused))},"
                  f" longest {found.longest_seconds:.2f} s; {before:.0f} MiB before, {peak:.0f} at most, {after:.0f}"
                  f" after{'  WRONG' if bad else ''}", flush=True)  # fmt: skip
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
