"""``python -m bench.prometheus_memory``: memory of a Prometheus that scrapes the slim profile of 1,000 clients.

One process shows the clients, as one address with a path for each. The exposition is that of the exporter over a
simulated client with four pools and eight metadata targets. Counters of each client grow by random steps, so that they
compress as real ones do, and gauges change in between.

Prometheus keeps the samples of two to three hours in memory before it writes them to a block: 240 to 360 samples of a
series at an interval of 30 s. The bench scrapes more often and stops after as many samples of each series, so its
memory for samples is that of two hours. The query load and the compaction of blocks come on top.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from bench.exporter import memory_folder
from bench.soak import free_port
from exporter import clock, exposition
from exporter.collector import Settings
from exporter.collectors.slim import SLIM_COLLECTORS
from exporter.scrape import Scraper
from exporter.self_metrics import registry
from lustre.parameters import Roots, Tree
from simulator.cluster import Cluster
from simulator.jobs.large_files import StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.settings import recorded_test_bed

POOLS = ("capacity", "flash", "home", "scratch")
MDTS = 8
SIMULATED_SECONDS = 20.0
STEPS = 5
"""Number of lines of the table."""
SAMPLE = re.compile(r"(?P<name>\w+)(?P<labels>\{.*\})? (?P<value>\S+)$")


def slim_exposition() -> list[tuple[str, bool, float]]:
    """Series of a simulated client: name and labels, whether it is a counter, and its value."""
    cluster = Cluster(recorded_test_bed(), (StreamingWriter(), SmallFileWriter(start_seconds=1.0)))
    cluster.advance(SIMULATED_SECONDS)
    names = frozenset(collector.name for collector in SLIM_COLLECTORS)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        cluster.write_parameters(root)
        tree = Tree(Roots.of(root / "proc", root / "sys"))
        scraper = Scraper(tree, SLIM_COLLECTORS, Settings(names), clock.monotonic)
        own = registry(scraper, slim=True)
        text = b"".join(exposition.render(scraper.run(), own, openmetrics=False)).decode()
    found: dict[str, tuple[bool, float]] = {}
    for line in text.splitlines():
        sample = SAMPLE.match(line)
        if sample is None or 'pool="flash"' in line:
            continue
        labels = re.sub(r'mount="[^"]*"', 'mount="/lustre"', sample["labels"] or "")
        is_counter = sample["name"].endswith("_total")
        for series in several(sample["name"] + labels):
            found[series] = is_counter, float(sample["value"])
    return [(series, *about) for series, about in found.items()]


def several(series: str) -> Iterator[str]:
    """The series for each pool or metadata target, if it has one."""
    if "pool=" in series:
        yield from (series.replace('pool="hdd"', f'pool="{pool}"') for pool in POOLS)
    elif 'target="MDT0000"' in series:
        yield from (series.replace("MDT0000", f"MDT{number:04x}") for number in range(MDTS))
    else:
        yield series


class Clients:
    """The expositions of many clients."""

    def __init__(self, number: int) -> None:
        self._series = slim_exposition()
        self._values = [[value for _, _, value in self._series] for _ in range(number)]
        self._random = random.Random(1)
        self.requests = 0

    @property
    def series(self) -> int:
        """Number of series of one client."""
        return len(self._series)

    def exposition(self, client: int) -> bytes:
        """The next exposition of a client: counters and gauges have changed."""
        self.requests += 1
        values, draw = self._values[client], self._random.random
        lines: list[str] = []
        for place, (series, is_counter, first) in enumerate(self._series):
            if is_counter:
                values[place] += int(draw() * (1000.0 + first / SIMULATED_SECONDS))
            elif first > 1:
                values[place] = first + int(draw() * 8)
            lines.append(f"{series} {values[place]:.{6 if 'seconds' in series else 0}f}\n")
        return "".join(lines).encode()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                body = self.exposition(int(request.split(b" ", 2)[1].rpartition(b"/")[2]))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %d\r\n\r\n"
                             % len(body) + body)  # fmt: skip
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def serve(self, port: int) -> None:
        """Serve until the process ends."""
        async with await asyncio.start_server(self.answer, "127.0.0.1", port) as server:
            await server.serve_forever()


def configuration(clients: int, port: int, interval_seconds: float) -> str:
    """Return the configuration of Prometheus: each client is a path of one address."""
    every = f"{interval_seconds * 1000:.0f}ms"
    lines = [f"global: {{scrape_interval: {every}, scrape_timeout: {every}}}", "scrape_configs:", "- job_name: clients",
             "  static_configs:"]  # fmt: skip
    lines += [
        f"  - {{targets: ['127.0.0.1:{port}'], labels: {{__metrics_path__: /{number}, instance: 'client{number:05}'}}}}"
        for number in range(clients)
    ]
    return "\n".join([*lines, ""])


def memory_mebibytes(pid: int) -> tuple[float, float]:
    """Resident memory of a process, and the part of it that is no file."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    whole, anonymous = (int(status.split(name)[1].split()[0]) / 1024 for name in ("VmRSS:", "RssAnon:"))
    return whole, anonymous


def cpu_seconds(pid: int) -> float:
    """Processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def metric(port: int, name: str) -> float:
    """One of Prometheus' own metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
    raise ValueError(name)


def measure(program: str, clients: int, interval_seconds: float, samples: int) -> None:
    """Run Prometheus until each series has this number of samples, and print its memory meanwhile."""
    shown, port, own_port = Clients(clients), free_port(), free_port()
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_until_complete, args=(shown.serve(port),), daemon=True).start()
    print(f"{clients} clients, {shown.series} series each (Prometheus adds 5), every {interval_seconds:g} s")
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        Path(folder, "prometheus.yml").write_text(configuration(clients, port, interval_seconds), encoding="ascii")
        command = [program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                   f"--web.listen-address=127.0.0.1:{own_port}", "--log.level=error"]  # fmt: skip
        with subprocess.Popen(command) as prometheus:
            try:
                began = time.monotonic()
                print("samples of a series   series in the head   MiB   of it no files   KiB a series   CPU, cores")
                for step in range(1, STEPS + 1):
                    while shown.requests < step * samples * clients / STEPS:
                        time.sleep(0.2)
                        assert prometheus.poll() is None, "Prometheus ended"
                    series = metric(own_port, "prometheus_tsdb_head_series")
                    whole, anonymous = memory_mebibytes(prometheus.pid)
                    share = cpu_seconds(prometheus.pid) / (time.monotonic() - began)
                    print(f"{shown.requests / clients:>19.0f}{series:>21.0f}{whole:>6.0f}{anonymous:>17.0f}"
                          f"{whole * 1024 / series:>15.2f}{share:>13.2f}", flush=True)  # fmt: skip
            finally:
                prometheus.terminate()


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench.prometheus_memory", description=__doc__.partition("\n")[0])
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--interval", type=float, default=2.0, help="seconds between two scrapes of a client")
    parser.add_argument("--samples", type=int, default=300, help="samples of each series at the end")
    chosen = parser.parse_args()
    program = shutil.which("prometheus")
    if program is None:
        print("no program prometheus: make tools, and PATH=$PWD/.tools/bin:$PATH", file=sys.stderr)
        return 1
    measure(program, chosen.clients, chosen.interval, chosen.samples)
    return 0


if __name__ == "__main__":
    sys.exit(main())
