"""The rack tier with two real Prometheus servers: the site gets the sums of a rack, and no series of a client."""

from __future__ import annotations

import re
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from tests.servers import Prometheus, fetched, free_port, program, running
from tests.tierd.sense.loopback_server import answers, liar
from tierd.clock import SystemClock

RACK = Path(__file__).parents[2] / "alerts" / "rack"
CLIENTS = 3
WAIT_SECONDS = 60.0


def client(to: socket.socket, request: str) -> None:
    """A client that reads 1000 bytes a second from each of two pools."""
    n = 1000 * int(SystemClock().now())
    lines = [f'lustre_llite_{what}_bytes_total{{fs="a",mount="/a"}} {n}' for what in ("read", "write")]
    lines += [f'lustre_osc_{what}_bytes_total{{fs="a",mount="/a",pool="{pool}"}} {n}'
              for what in ("read", "write") for pool in ("flash", "disk")]
    lines += ['lustre_osc_imports{fs="a",mount="/a",pool="flash",state="FULL"} 4',
              'lustre_version_info{version="2.17.0"} 1', 'lustre_client_job_info{jobid="4711"} 1']
    answers("\n".join([*lines, ""]))(to, request)


@pytest.fixture
def clients():
    with ExitStack() as stack:
        yield [stack.enter_context(liar(client)).url.removeprefix("http://") for _ in range(CLIENTS)]


def command(folder: Path, port: int, *flags: str) -> list[str]:
    return [program("prometheus"), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn", *flags]  # fmt: skip


def test_the_site_gets_sums_and_no_series_of_a_client(tmp_path, clients) -> None:
    site, rack = tmp_path / "site", tmp_path / "rack"
    site.mkdir()
    rack.mkdir()
    at_site, at_rack = free_port(), free_port()
    (site / "prometheus.yml").write_text("global: {}\n")
    shipped = yaml.safe_load((RACK / "prometheus.yml").read_text())
    shipped["global"] |= {"scrape_interval": "1s", "evaluation_interval": "1s", "scrape_timeout": "1s"}
    shipped["scrape_configs"][0]["static_configs"] = [{"targets": clients}]
    shipped["remote_write"][0]["url"] = f"http://127.0.0.1:{at_site}/api/v1/write"
    (rack / "prometheus.yml").write_text(yaml.safe_dump(shipped))
    (rack / "rules.yml").write_text(re.sub(r"\[\dm\]", "[10s]", (RACK / "rules.yml").read_text()))
    with (
        running(command(site, at_site, "--web.enable-remote-write-receiver"), f"http://127.0.0.1:{at_site}/-/ready",
                tmp_path / "site.log"),
        running(command(rack, at_rack), f"http://127.0.0.1:{at_rack}/-/ready", tmp_path / "rack.log"),
    ):  # fmt: skip
        clock, wanted = SystemClock(), Prometheus(f"http://127.0.0.1:{at_site}")
        until = clock.now() + WAIT_SECONDS
        rates: list = []
        while not (rates and all(float(one["value"][1]) > 0 for one in rates)):
            assert clock.now() < until, (tmp_path / "rack.log").read_text()
            clock.wait(0.2)
            rates = wanted.instant('rack_fs_pool:lustre_osc_read_bytes:rate5m{rack="r01"}', clock.now())
        assert {one["metric"]["pool"] for one in rates} == {"flash", "disk"}
        assert all(100 < float(one["value"][1]) < 20000 * CLIENTS for one in rates)
        (of_job,) = wanted.instant("rack_fs_jobid:lustre_llite_write_bytes:rate2m", clock.now())
        assert (of_job["metric"]["jobid"], of_job["metric"]["rack"]) == ("4711", "r01")
        assert 100 < float(of_job["value"][1]) < 20000 * CLIENTS
        up = wanted.instant("rack_job:up:sum", clock.now())
        assert [one["value"][1] for one in up] == [str(CLIENTS)]
        imports = wanted.instant("rack_fs_pool_state:lustre_osc_imports:sum", clock.now())
        assert [one["value"][1] for one in imports] == [str(4 * CLIENTS)]
        names = fetched(f"http://127.0.0.1:{at_site}/api/v1/label/__name__/values")["data"]
        recorded = set(re.findall(r"record: (\S+)", (RACK / "rules.yml").read_text()))
        assert set(names) <= recorded
        assert not fetched(f"http://127.0.0.1:{at_site}/api/v1/label/instance/values")["data"]
