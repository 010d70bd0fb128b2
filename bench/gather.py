"""Processor time of ``tierd gather`` for a node and a scrape, as a multiple of parsing the node's exposition alone.

``python -m bench.gather [NODES]``: NODES (default 100) nodes answer with the exposition of a recorded client, with all
counters changed. Two profiles: slim and full. Parsing alone splits each line and converts its value. The whole includes
adding up and writing the exposition of the rack, without and with HTTP.
"""

from __future__ import annotations

import re
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from exporter import clock as exporter_clock
from exporter import exposition
from exporter.__main__ import build_parser, check_arguments
from exporter.collectors import COLLECTORS
from exporter.collectors.slim import SLIM_COLLECTORS
from exporter.scrape import Scraper
from exporter.self_metrics import registry
from lustre.parameters import Tree
from tierd.gather.command import fetch_over_http
from tierd.gather.scrape import Gather
from tierd.gather.settings import Settings

CAPTURE = Path(__file__).parent.parent / "tests/captures/2.17.57/tree-load-1.tar.gz"
PASSES = 6
_COUNT = re.compile(rb"(_total|_bucket|_sum|_count)(\{[^\n]*\})? (\d+)(?=\n)")


def recorded(folder: Path, *, slim: bool) -> bytes:
    """Return the exposition of the recorded node."""
    if not (folder / "tree").exists():
        with tarfile.open(CAPTURE) as archive:
            archive.extractall(folder / "tree", filter="data")
    (proc,) = (path for path in (folder / "tree").rglob("proc") if path.is_dir() and path.parent.name != "sys")
    given = build_parser().parse_args([f"--path.procfs={proc}", f"--path.sysfs={proc.parent}/sys",
                                       f"--profile={'slim' if slim else 'full'}"])
    wanted = check_arguments(given)
    scraper = Scraper(Tree(wanted.roots), SLIM_COLLECTORS if slim else COLLECTORS, wanted.settings,
                      exporter_clock.monotonic)
    return b"".join(exposition.render(scraper.run(), registry(scraper, None, slim=slim), openmetrics=False))


def grown(body: bytes, more: int) -> bytes:
    """Return the exposition after some time: every whole counter is larger, buckets stay cumulative."""
    return _COUNT.sub(lambda match: b"%b%b %d" % (match[1], match[2] or b"", int(match[3]) * (more + 1)), body)


def parse_alone(body: bytes) -> float:
    """Split every line and convert its value. Returns the sum."""
    rows = [line.rpartition(b" ") for line in body.split(b"\n") if line and line[0] != 35]
    return sum([float(text) for _, _, text in rows])


def cpu(work: Callable[[], object]) -> float:
    """Return the processor seconds of one run."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def gathered(bodies: Sequence[bytes], nodes: int) -> float:
    """Return the processor seconds of a pass over all nodes, the best of the passes after the first."""
    settings = Settings(targets=tuple(f"n{n}:9169" for n in range(nodes)), min_interval_seconds=0.0,
                        deadline_seconds=600.0, node_kind="cpu", threads=8)
    now = [0]
    gather = Gather(settings, lambda _: bodies[now[0]], time.monotonic)
    found = []
    for now[0] in range(len(bodies)):
        found.append(cpu(lambda: gather.run(600.0)))
        assert gather.last is not None
        assert all(node.up for node in gather.last.nodes.values()), gather.last.nodes
    return min(found[1:])


def gathered_over_http(bodies: Sequence[bytes], nodes: int) -> float:
    """Return the same over HTTP on loopback, less the processor seconds of the threads that answer."""
    now, served = [0], [0.0]

    class Handler(BaseHTTPRequestHandler):
        def handle(self) -> None:
            begun = time.thread_time()
            super().handle()
            served[0] += time.thread_time() - begun

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(bodies[now[0]])))
            self.end_headers()
            self.wfile.write(bodies[now[0]])

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 256

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings = Settings(targets=tuple(f"n{n}:9169" for n in range(nodes)), min_interval_seconds=0.0,
                        deadline_seconds=600.0)
    fetch = fetch_over_http(settings)
    url = f"http://127.0.0.1:{server.server_address[1]}/metrics"
    gather = Gather(settings, lambda _: fetch(url), time.monotonic)
    found = []
    for now[0] in range(len(bodies)):
        served[0] = 0.0
        seconds = cpu(lambda: gather.run(600.0))
        found.append(seconds - served[0])
    server.shutdown()
    server.server_close()
    return min(found[1:])


def main(arguments: Sequence[str]) -> None:
    """Print the time of each step for a node, and its multiple of parsing alone."""
    nodes = int(arguments[0]) if arguments else 100
    with tempfile.TemporaryDirectory() as folder:
        for slim in (True, False):
            first = recorded(Path(folder), slim=slim)
            bodies = [grown(first, number) for number in range(PASSES)]
            lines = sum(not line.startswith(b"#") for line in first.splitlines())
            alone = min(cpu(lambda body=bodies[-1]: parse_alone(body)) for _ in range(20))  # type: ignore[misc]
            print(f"{'slim' if slim else 'full'} profile: {lines} series, {nodes} nodes")
            for name, seconds in (("parsed alone", alone), ("gathered", gathered(bodies, nodes) / nodes),
                                  ("gathered over HTTP", gathered_over_http(bodies, nodes) / nodes)):
                print(f"  {name:20} {1e3 * seconds:8.3f} ms a node {seconds / alone:6.1f} x parsing alone")


if __name__ == "__main__":
    main(sys.argv[1:])
