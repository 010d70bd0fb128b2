"""A rack of 200 simulated clients behind ``tierd gather``, scraped by a real Prometheus."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections import defaultdict
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from exporter import clock as exporter_clock
from exporter import exposition
from exporter.__main__ import build_parser, check_arguments
from exporter.collectors.slim import SLIM_COLLECTORS
from exporter.scrape import Scraper
from exporter.self_metrics import registry
from httpserver.server import Address
from httpserver.serving import BackgroundServer
from lustre.parameters import Tree
from simulator.clients.mount import ClientSettings
from simulator.cluster import Cluster
from simulator.jobs.large_files import StreamingReader, StreamingWriter
from simulator.settings import recorded_test_bed
from tests.servers import Prometheus, free_port, program, running
from tests.tierd.sense.loopback_server import answers, liar, silent
from tierd.clock import SystemClock
from tierd.gather.app import App
from tierd.gather.command import fetch_over_http
from tierd.gather.scrape import Gather
from tierd.gather.settings import Settings

NODES, SNAPSHOTS, WAIT_SECONDS = 200, 5, 60.0
JOBS = {"4711": range(8), "4712": range(8, 24)}
_MOUNT = re.compile(rb'mount="/mnt/n(\d+)"')


class Rack:
    """200 clients, their expositions at five times, and a server with one path for each."""

    def __init__(self, folder) -> None:
        clients = tuple(ClientSettings(f"/mnt/n{n}", f"10.0.0.{n}@tcp", f"ff11{n:012x}") for n in range(NODES))
        jobs = [
            StreamingWriter("4711", nodes=8, path="/proj/a/out", file_bytes=64 << 20),
            StreamingReader("4712", client=8, nodes=16, path="/proj/b/in", file_bytes=64 << 20),
        ]
        cluster = Cluster(replace(recorded_test_bed(), clients=clients), jobs)
        root = folder / "rack"
        (root / "proc").mkdir(parents=True)
        (root / "sys").mkdir()
        flags = [f"--path.procfs={root}/proc", f"--path.sysfs={root}/sys"]
        wanted = check_arguments(build_parser().parse_args([*flags, "--profile=slim", "--collector.deadline=120"]))
        scraper = Scraper(Tree(wanted.roots), SLIM_COLLECTORS, wanted.settings, exporter_clock.monotonic)
        own = registry(scraper, None, slim=True)
        self.snapshots: list[list[bytes]] = []
        for number in range(SNAPSHOTS):
            cluster.advance(2.0 * (number + 1))
            cluster.write_parameters(root, shared=False)
            self.snapshots.append(self.divided(b"".join(exposition.render(scraper.run(), own, openmetrics=False))))
        self.now = 0
        self.resets: set[int] = set()

    @staticmethod
    def divided(text: bytes) -> list[bytes]:
        """One exposition for each client: its own lines, and the lines without a mount."""
        nodes: list[list[bytes]] = [[] for _ in range(NODES)]
        for line in text.splitlines(keepends=True):
            match = _MOUNT.search(line)
            for node in nodes if match is None else [nodes[int(match[1])]]:
                node.append(_MOUNT.sub(b'mount="/mnt"', line))
        return [b"".join(lines) for lines in nodes]

    def answer(self, node: int) -> bytes:
        return self.snapshots[self.now][node]

    def growth(self, family: str, nodes=range(NODES), first=0, last=SNAPSHOTS - 1) -> dict[str, float]:
        """What these nodes counted between two snapshots, by pool."""
        found: dict[str, float] = defaultdict(float)
        pattern = re.compile(rf'^{family}{{(.*)}} (\S+)$'.encode(), re.MULTILINE)
        for node in nodes:
            for sign, number in ((-1, first), (1, last)):
                for labels, value in pattern.findall(self.snapshots[number][node]):
                    pool = re.search(rb'pool="(\w*)"', labels)
                    found[pool[1].decode() if pool else ""] += sign * float(value)
        return dict(found)


@pytest.fixture(scope="module")
def rack(tmp_path_factory):
    return Rack(tmp_path_factory.mktemp("rack"))


@pytest.fixture
def urls(rack):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = rack.answer(int(self.path.split("/")[1]))
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 256

    rack.now = 0
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def groups(address: str, nodes=range(NODES)) -> list[dict]:
    """A target file: a group for each node, with its kind and, for those that have one, its job."""
    jobs = {node: job for job, members in JOBS.items() for node in members}
    return [{"targets": [address], "labels": {"__metrics_path__": f"/{node}/metrics", "node_kind": "cpu" if node % 2
             else "gpu", **({"jobid": jobs[node]} if node in jobs else {})}} for node in nodes]


def gather_of(address, tmp_path, **more) -> Gather:
    (tmp_path / "rack.json").write_text(json.dumps(groups(address)))
    settings = Settings(target_files=(f"{tmp_path}/*.json",), min_interval_seconds=0.0, deadline_seconds=60.0, **more)
    return Gather(settings, fetch_over_http(settings), SystemClock().monotonic)


def values(gather: Gather, family: str, *labels: str) -> dict[tuple[str, ...], float]:
    """Sums of the exposition by these labels."""
    (lines,) = [chunk for head, chunk in gather.last.families if head.name == family]
    found: dict[tuple[str, ...], float] = defaultdict(float)
    for text, value in re.findall(r"{(.*)} (\S+)\n", lines.decode()):
        of = dict(re.findall(r'(\w+)="([^"]*)"', text))
        found[tuple(of.get(label, "") for label in labels)] += float(value)
    return dict(found)


def test_sums_by_job_pool_and_kind_are_what_the_nodes_counted(rack, urls, tmp_path) -> None:
    gather = gather_of(urls, tmp_path)
    for rack.now in range(SNAPSHOTS):
        done = gather.run(60.0)
        assert sum(node.up for node in done.nodes.values()) == NODES, done.nodes
    wrote = values(gather, "lustre_osc_write_bytes_total", "pool")
    assert wrote == {(pool,): value for pool, value in rack.growth("lustre_osc_write_bytes_total").items()}
    assert sum(wrote.values()) > 8 << 20
    by_job = values(gather, "lustre_osc_read_bytes_total", "jobid")
    assert by_job["4712",] == sum(rack.growth("lustre_osc_read_bytes_total", JOBS["4712"]).values()) > 0
    by_kind = values(gather, "lustre_llite_write_bytes_total", "node_kind")
    assert by_kind["cpu",] == sum(rack.growth("lustre_llite_write_bytes_total", range(1, NODES, 2)).values()) > 0
    assert sum(values(gather, "lustre_version_info", "version").values()) == NODES
    assert gather.last.series < 1000


def test_a_node_that_hangs_or_talks_nonsense_harms_nobody(rack, urls, tmp_path) -> None:
    with liar(silent) as hanging, liar(answers("lustre_osc_read_bytes_total 5\n<html>\n")) as talking:
        gather = gather_of(urls, tmp_path)
        bad = [each.url.removeprefix("http://").partition("/")[0] for each in (hanging, talking)]
        (tmp_path / "a_bad.json").write_text(json.dumps([{"targets": bad}]))
        first = gather.run(10.0)
        rack.now = SNAPSHOTS - 1
        second = gather.run(10.0)
    assert [sum(node.up for node in done.nodes.values()) for done in (first, second)] == [NODES, NODES]
    assert gather.counters.failures == {"unreachable": 2, "malformed": 2}
    assert "invalid data" in second.nodes[f"http://{bad[1]}/metrics"].problem
    wrote = sum(values(gather, "lustre_osc_write_bytes_total").values())
    assert wrote == sum(rack.growth("lustre_osc_write_bytes_total").values())


def test_a_real_prometheus_gets_the_sums_and_no_series_of_a_node(rack, urls, tmp_path) -> None:
    gather = gather_of(urls, tmp_path)
    clock = SystemClock()
    served = BackgroundServer(Address("127.0.0.1", 0), App(gather, 20.0, clock.monotonic), name="gather")
    port = free_port()
    config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": [
        {"job_name": "lustre-gather", "scrape_interval": "2s", "scrape_timeout": "2s",
         "static_configs": [{"targets": [f"127.0.0.1:{served.port}"]}]}]}
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    command = [program("prometheus"), f"--config.file={tmp_path}/prometheus.yml",
               f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    expected = {pool: value for pool, value in rack.growth("lustre_osc_write_bytes_total").items() if value}
    gather.run(20.0)  # all nodes are known before the first scrape
    with closing(served), running(command, f"http://127.0.0.1:{port}/-/ready", tmp_path / "log"):
        wanted = Prometheus(f"http://127.0.0.1:{port}")
        until = clock.now() + WAIT_SECONDS
        found: dict = {}
        seen = -1
        while found != expected:
            assert clock.now() < until, (found, expected, (tmp_path / "log").read_text())
            clock.wait(0.2)
            up = wanted.instant("lustre_gather_scrapes_total", clock.now())
            if up and float(up[0]["value"][1]) > seen + 1:
                seen, rack.now = float(up[0]["value"][1]), min(rack.now + 1, SNAPSHOTS - 1)
            rows = wanted.instant("sum by (pool) (lustre_osc_write_bytes_total) > 0", clock.now())
            found = {row["metric"]["pool"]: float(row["value"][1]) for row in rows}
        jobs = wanted.instant('sum by (jobid) (increase(lustre_osc_write_bytes_total[1m])) > 0', clock.now())
        assert {row["metric"].get("jobid") for row in jobs} >= {"4711"}
        assert len(wanted.instant('{__name__=~"lustre_.*"}', clock.now())) < 1200
        (nodes,) = wanted.instant("lustre_gather_nodes_up", clock.now())
        assert nodes["value"][1] == str(NODES)


def test_promtool_accepts_the_exposition(rack, urls, tmp_path) -> None:
    gather = gather_of(urls, tmp_path)
    app = App(gather, 60.0, SystemClock().monotonic)
    body = b"".join(app({"PATH_INFO": "/metrics", "REQUEST_METHOD": "GET"}, lambda *_: None))
    checked = subprocess.run([program("promtool"), "check", "metrics"], input=body, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, b""), checked.stderr.decode()
