"""``tierd gather`` as a process, its settings, and a gather of servers as a source of tierd."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from httpserver.config import WebConfigFile
from httpserver.server import Address
from httpserver.serving import BackgroundServer
from tests.pki import TLS, USERS
from tests.rules import every
from tests.servers import free_port, running
from tests.tierd.sense.loopback_server import answers, liar
from tierd.clock import SystemClock
from tierd.config.load import ConfigurationError
from tierd.config.sense import ServerAccess
from tierd.gather.app import App
from tierd.gather.command import fetch_over_http
from tierd.gather.scrape import Gather
from tierd.gather.settings import Settings, load
from tierd.sense.exporters import fetch_exposition, scrape_fixed_list
from tierd.sense.http_client import SourceError

ROOT = Path(__file__).parents[3]
NODE = ('# TYPE lustre_llite_read_bytes_total counter\nlustre_llite_read_bytes_total{{fs="a",mount="/a"}} {}\n')


def test_the_process_serves_a_rack_and_ends_at_sigterm(tmp_path) -> None:
    with liar([answers(NODE.format(5)), answers(NODE.format(12)), answers(NODE.format(12))]) as node:
        target = node.url.removeprefix("http://").partition("/")[0]
        config, port = tmp_path / "rack.toml", free_port()
        config.write_text(f'targets = ["{target}"]\nmin_interval_seconds = 0\nnode_kind = "cpu"\n')
        command = [sys.executable, "-m", "tierd", "gather", "--config", str(config),
                   f"--web.listen-address=127.0.0.1:{port}"]
        with running(command, f"http://127.0.0.1:{port}/-/healthy", tmp_path / "log"):
            url = f"http://127.0.0.1:{port}/metrics"
            line = 'lustre_llite_read_bytes_total{node_kind="cpu",jobid="",fs="a",mount="/a"}'
            assert f"{line} 0\n" in fetch_exposition(url, 10.0)
            text = fetch_exposition(url, 10.0)
            assert f"{line} 7\n" in text
            assert "lustre_gather_nodes_up 1.0\n" in text
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
                assert b"1 of 1 nodes answer" in answer.read()
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while "listening" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    process.stderr.close()


@every("text, problem", [
    ("targets = ['n1']\nmax_jobs = -1\n", "rack.toml:2: max_jobs: must be greater than or equal to 0"),
    ("targets = ['a/b']\n", "rack.toml:1: targets.0: not host:port: 'a/b'"),
    ("[web]\nport = 1\n", "rack.toml:2: web.port: unknown setting; known here: config_file, listen"),
    ("targets = [\n", "not a TOML file"),
], lambda case: case[1])  # fmt: skip
def test_mistakes_in_the_settings_are_named_with_their_line(text, problem, tmp_path_factory) -> None:
    path = tmp_path_factory.mktemp("settings") / "rack.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load(path)
    assert problem in str(caught.value)


def test_a_gather_without_nodes_does_not_start(tmp_path) -> None:
    command = [sys.executable, "-m", "tierd", "gather", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "name a file with --targets" in done.stderr


def test_check_warns_about_files_of_nodes_that_are_missing_or_malformed(tmp_path) -> None:
    (tmp_path / "good.json").write_text('[{"targets": ["n1:9169"]}]')
    (tmp_path / "bad.json").write_text('[{"targets"')
    names = ["good.json", "bad.json", "missing.json", "rack*.yml"]
    command = [sys.executable, "-m", "tierd", "gather", "--check"]
    command += [word for name in names for word in ("--targets", str(tmp_path / name))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "options: OK\n")
    warnings = done.stderr.splitlines()
    assert [f"warning: {tmp_path}/missing.json: no such file", f"warning: {tmp_path}/rack*.yml: no such file"] == (
        warnings[:2])
    assert warnings[2].startswith(f"warning: {tmp_path}/bad.json")
    assert len(warnings) == 3


def test_tls_and_passwords_on_both_sides(tmp_path, pki, web_file) -> None:
    """A gather reads another one, which has TLS and passwords, as it would read an exporter that has."""
    web = WebConfigFile(web_file(TLS + USERS))
    (tmp_path / "password").write_text("secret")
    known = ServerAccess(user="prometheus", password_file=str(tmp_path / "password"), ca_file=str(pki.path("ca.crt")))
    clock = SystemClock().monotonic
    with liar([answers(NODE.format(5)), answers(NODE.format(12))]) as node:
        settings = Settings(targets=(node.url.removeprefix("http://").partition("/")[0],), min_interval_seconds=0.0)
        app = App(Gather(settings, fetch_over_http(settings), clock), 5.0, clock, web)
        with closing(BackgroundServer(Address("127.0.0.1", 0), app, name="gather", web_config=web)) as at:
            url = f"https://127.0.0.1:{at.port}/metrics"
            with pytest.raises(SourceError, match="401"):
                fetch_over_http(Settings(access=replace(known, user="", password_file="")))(url)
            fetch = fetch_over_http(Settings(access=known))
            assert b"lustre_llite_read_bytes_total" in fetch(url)
            assert b'mount="/a"} 7\n' in fetch(url)


SERVER = '''\
# TYPE lustre_job_read_bytes_total counter
lustre_job_read_bytes_total{{fs="l",target="OST000{n}",jobid="a"}} {read}
# TYPE lustre_job_operations_total counter
lustre_job_operations_total{{fs="l",target="OST000{n}",jobid="a",operation="read"}} {read}
# TYPE lustre_jobs gauge
lustre_jobs{{fs="l",target="OST000{n}"}} 1
# TYPE lustre_ost_recovering gauge
lustre_ost_recovering{{fs="l",target="OST000{n}"}} 0
# TYPE lustre_exporter_collector_success gauge
lustre_exporter_collector_success{{collector="jobs"}} 1
'''


def test_tierd_reads_a_gather_of_servers_and_refuses_it_while_one_is_silent(tmp_path) -> None:
    bodies = {f"http://oss{n}:9169/metrics": SERVER.format(n=n, read=1000 * n) for n in (1, 2)}

    def fetch(url: str) -> bytes:
        if url not in bodies:
            raise SourceError(f"{url}: no route")
        return bodies[url].encode()

    clock = SystemClock()
    gather = Gather(Settings(targets=("oss1:9169", "oss2:9169"), min_interval_seconds=0.0), fetch, clock.monotonic)
    app = App(gather, 5.0, clock.monotonic)
    with closing(BackgroundServer(Address("127.0.0.1", 0), app, name="gather")) as at:
        read = scrape_fixed_list([f"http://127.0.0.1:{at.port}/metrics"], clock, 10.0)
        before = read()
        bodies["http://oss1:9169/metrics"] = SERVER.format(n=1, read=1700)
        after = read()
        assert after.targets == {"l-OST0001", "l-OST0002"}
        assert after.conditions == {}
        grown = {key: entry.sums.get("read_bytes", 0.0) - before.jobs[key].sums.get("read_bytes", 0.0)
                 for key, entry in after.jobs.items()}
        assert grown == {("l-OST0001", "a"): 700, ("l-OST0002", "a"): 0}
        assert after.jobs["l-OST0001", "a"].samples["read"] == 700
        del bodies["http://oss2:9169/metrics"]
        assert read() is after  # nothing new
        assert "its collector jobs failed" in read.problem


def test_the_documentation_lists_the_metrics_of_the_gather() -> None:
    gather = Gather(Settings(targets=("n1:1",)), lambda _: NODE.format(5).encode(), SystemClock().monotonic)
    app = App(gather, 5.0, SystemClock().monotonic)
    body = b"".join(app({"PATH_INFO": "/metrics", "REQUEST_METHOD": "GET"}, lambda *_: None)).decode()
    shown = set(re.findall(r"^# TYPE (lustre_gather_\w+)", body, re.MULTILINE))
    listed = re.findall(r"^\| `(lustre_gather_\w+)` \|", (ROOT / "docs/gather.md").read_text(), re.MULTILINE)
    assert sorted(shown) == sorted(listed)


def test_requests_shortly_after_a_pass_get_its_result() -> None:
    asked, now = [], [100.0]

    def fetch(url: str) -> bytes:
        asked.append(url)
        return NODE.format(5).encode()

    gather = Gather(Settings(targets=("n1:1",), min_interval_seconds=2.0), fetch, lambda: now[0])
    first = gather.run(5.0)
    now[0] += 1.0
    assert gather.run(5.0) is first
    now[0] += 1.5
    assert gather.run(5.0) is not first
    assert len(asked) == 2


def test_a_node_that_is_listed_twice_counts_once(tmp_path) -> None:
    (tmp_path / "a.json").write_text('[{"targets": ["n1:1", "n1:1"], "labels": {"node_kind": "gpu"}}]')
    asked = []

    def fetch(url: str) -> bytes:
        asked.append(url)
        return NODE.format(5).encode()

    gather = Gather(Settings(target_files=(f"{tmp_path}/a.json",)), fetch, SystemClock().monotonic)
    gather.run(5.0)
    assert asked == ["http://n1:1/metrics"]
    assert os.path.exists(tmp_path / "a.json")
