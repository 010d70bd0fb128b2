"""The command: what it prints, writes, refuses, and how it ends."""

import contextlib
import http.client
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from exporter.__main__ import main
from exporter.collectors import COLLECTORS
from exporter.logs import configure_logging
from lustre.priority import PROMPT_NICE
from tests.conftest import asked

COMMAND = [sys.executable, "-m", "exporter"]


def roots(root: Path) -> list[str]:
    return [f"--path.procfs={root / 'proc'}", f"--path.sysfs={root / 'sys'}"]


def test_output_is_written_whole_and_readable(capture, tmp_path) -> None:
    target = tmp_path / "lustre.prom"
    assert main(["--output", str(target), "--no-collector.jobs", *roots(capture("2.17.57/tree-idle"))]) == 0
    text = target.read_bytes()
    assert b"lustre_llite_operations_total" in text
    assert b'collector="jobs"' not in text
    assert b"\nprocess_" not in text, "node_exporter shows its own, without labels"
    assert target.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [target]


def test_output_replaces_files_only(capture, tmp_path, capsys) -> None:
    device, link, target = tmp_path / "null", tmp_path / "stdout", tmp_path / "lustre.prom"
    os.mkfifo(device)
    assert main(["--output", str(device), *roots(capture("2.17.57/tree-idle"))]) == 1
    assert device.is_fifo()
    assert capsys.readouterr().err == f"lustre-exporter: cannot write {device}: it exists, and is no regular file\n"
    target.touch()
    link.symlink_to(target)
    assert main(["--output", str(link), *roots(capture("2.17.57/tree-idle"))]) == 0
    assert link.is_symlink()
    assert b"lustre_llite_operations_total" in target.read_bytes()


@pytest.mark.parametrize(("arguments", "complaint"), [
    (["--path.procfs=/no/such/place"], "--path.procfs: /no/such/place is not a directory"),
    (["--web.listen-address=nowhere"], "'nowhere' is not a listen address"),
    (["--jobs.limit=-1"], "--jobs.limit: must not be negative"),
    (["--web.telemetry-path=metrics"], "--web.telemetry-path: 'metrics' must begin with /"),
    (["--collector.deadline=0"], "--collector.deadline"),
    (["--collector.nonsense"], "unrecognized arguments: --collector.nonsense"),
    (["--jobs.limit=x"], "lustre-exporter: argument --jobs.limit: invalid int value: 'x'"),
])
def test_mistakes_are_named_in_two_lines(arguments, complaint, capsys) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--once", *arguments])
    assert caught.value.code == 2
    mistake, remedy = capsys.readouterr().err.splitlines()
    assert complaint in mistake
    assert remedy == "Try 'lustre-exporter --help'."


@dataclass(frozen=True)
class Running:
    """The program in a process of its own."""

    process: subprocess.Popen[bytes]
    ports: list[int]

    def line(self) -> bytes:
        return self.process.stderr.readline()

    def get(self, path: str, port: int | None = None) -> bytes:
        return asked(port or self.ports[0], path)[2]

    def ends(self, number: int = signal.SIGTERM) -> bytes:
        """What it still prints when it is stopped."""
        self.process.send_signal(number)
        assert self.process.wait(20) == 0
        return self.process.stderr.read()


@contextlib.contextmanager
def running(*arguments: str, command: list[str] = COMMAND, addresses: int = 1) -> Iterator[Running]:
    with contextlib.ExitStack() as free:
        ports = [free.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(addresses)]
    listen = [f"--web.listen-address=127.0.0.1:{port}" for port in ports]
    with subprocess.Popen([*command, *listen, *arguments], stderr=subprocess.PIPE) as process:
        try:
            yield Running(process, ports)
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_stopped(capture, number) -> None:
    with running(*roots(capture("2.17.57/tree-idle")), addresses=2) as exporter:
        for port in exporter.ports:
            assert exporter.line() == f"lustre-exporter: listening on 127.0.0.1:{port}\n".encode()
            assert b"lustre_llite_operations_total" in exporter.get("/metrics", port)
        assert exporter.ends(number) == b""


def test_a_scrape_in_flight_is_answered_before_the_end(grow) -> None:
    root = grow({"sys/fs/lustre/health_check": "healthy\n"})
    parameter = root / "sys/fs/lustre/version"
    os.mkfifo(parameter)
    with running(*roots(root)) as exporter:
        exporter.line()
        connection = http.client.HTTPConnection("127.0.0.1", exporter.ports[0], timeout=20)
        connection.request("GET", "/metrics")
        with parameter.open("w") as kernel:  # opens when the scrape does
            exporter.process.send_signal(signal.SIGTERM)
            exporter.process.send_signal(signal.SIGTERM)  # who is impatient changes nothing
            kernel.write("2.17.0\n")
        assert b'lustre_version_info{version="2.17.0"} 1' in connection.getresponse().read()
        connection.close()
        assert exporter.process.wait(20) == 0


def test_sighup_reads_the_web_configuration_again_and_ends_nothing(capture, tmp_path) -> None:
    web = tmp_path / "web.yml"
    web.write_text("http_server_config: {}\n")
    with running(*roots(capture("2.17.57/tree-idle")), f"--web.config.file={web}") as exporter:
        assert b"listening" in exporter.line()
        exporter.process.send_signal(signal.SIGHUP)
        assert exporter.line() == b"lustre-exporter: SIGHUP: web configuration reloaded\n"
        web.write_text("nonsense: 1\n")
        exporter.process.send_signal(signal.SIGHUP)
        assert b"cannot load the web configuration" in exporter.line()
        assert exporter.get("/-/healthy") == b"Healthy.\n"
        exporter.ends()


def test_it_has_priority_over_applications_and_sighup_ends_nothing(grow) -> None:
    with running("--log.format=logfmt", *roots(grow({}))) as exporter:
        assert b'level=warn msg="Lustre is not loaded on this node' in exporter.line()
        assert b"listening" in exporter.line()
        if not os.geteuid():  # only root may raise a priority
            assert os.getpriority(os.PRIO_PROCESS, exporter.process.pid) <= PROMPT_NICE
        exporter.process.send_signal(signal.SIGHUP)
        assert b'level=info msg="SIGHUP: ' in exporter.line()
        exporter.ends()


def test_help_shows_examples_and_which_collectors_are_off_by_default(capsys) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    printed = capsys.readouterr().out
    assert "examples:\n  lustre-exporter " in printed
    reported = " ".join(printed.split())
    options = re.findall(r"--collector\.([a-z_]+) (.*?)(?= --collector\.)", reported)
    off = {name for name, words in options if words.endswith("; off by default")}
    assert off == {collector.name for collector in COLLECTORS if not collector.default}


@pytest.mark.parametrize(("form", "parsed"), [
    ("json", json.loads),
    ("logfmt", lambda line: dict(re.findall(r'(\w+)=((?:"(?:[^"\\]|\\.)*")|\S+)', line)))])
def test_logs_can_be_read_by_machines(form, parsed, capsys) -> None:
    configure_logging("warn", form)
    log = logging.getLogger("lustre-exporter")
    log.info("not this")
    log.warning('a "b"\n%s', "c")
    (line,) = capsys.readouterr().err.splitlines()
    found = parsed(line)
    assert found["level"] == "warn"
    assert json.loads(found["msg"])[:5] == 'a "b"' if form == "logfmt" else found["msg"] == 'a "b"\nc'
    assert found["ts"].endswith("Z")
    configure_logging("info", "text")


@pytest.mark.parametrize(("options", "first"), [
    ((), "<4>lustre-exporter: Lustre is not loaded"), (("--log.format=json",), '<4>{"ts": "'),
    (("--jobs.limit=-1",), "<3>lustre-exporter: --jobs.limit"),
    (("--output=/no/such/place",), "<3>lustre-exporter: cannot write /no/such/place")])
def test_warnings_and_errors_have_their_priority_where_journald_reads_them(options, first, grow, tmp_path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, (tmp_path / "log").open("w+") as stream:
        found, address = os.fstat(stream.fileno()), f"127.0.0.1:{taken.getsockname()[1]}"
        ran = subprocess.run([*COMMAND, f"--web.listen-address={address}", *roots(grow({})), *options], check=False,
                             stderr=stream, env={**os.environ, "JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"})
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[0].startswith(first)
    assert [line for line in lines[1:] if not line.startswith("<3>")] == []
    if not options:
        assert lines[1:] == [f"<3>lustre-exporter: cannot listen on {address}: Address already in use"]
        assert ran.returncode == 1


@pytest.mark.parametrize("there", [True, False])
def test_whether_lustre_is_loaded_is_shown(there, grow, capfdbinary) -> None:
    assert main(["--once", *roots(grow({"sys/fs/lustre/version": "2.17\n"} if there else {}))]) == 0
    assert f"lustre_exporter_lustre_loaded {there:d}.0\n".encode() in capfdbinary.readouterr().out


def test_a_full_disk_leaves_the_old_file_whole(capture, tmp_path) -> None:
    target = tmp_path / "lustre.prom"
    target.write_bytes(b"old\n")
    limited = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); "
    command = [sys.executable, "-B", "-c",
               f"{limited}runpy.run_module('exporter', run_name='__main__', alter_sys=True)"]
    ended = subprocess.run([*command, "--output", str(target), *roots(capture("2.17.57/tree-idle"))],
                           capture_output=True, check=False)
    assert ended.returncode == 1
    assert re.fullmatch(rb"lustre-exporter: cannot write .*: File too large\n", ended.stderr)
    assert target.read_bytes() == b"old\n"
    assert list(tmp_path.iterdir()) == [target]


def test_mistakes_of_the_web_configuration_come_with_the_others(tmp_path, capsys) -> None:
    web = tmp_path / "web.yml"
    web.write_text("tls_server_config:\n  cert_file: none\nusers: 1\n")
    with pytest.raises(SystemExit):
        main([f"--web.config.file={web}", "--jobs.limit=-1", "--web.listen-address=x", "--web.listen-address=:1"])
    printed = capsys.readouterr().err
    assert all(part in printed for part in ("--jobs.limit:",
                                           "'x' is not a listen address", f"{web}:3: users: unknown setting"))


def test_few_descriptors_and_a_crowd_that_says_nothing_keep_no_scrape_out(capture) -> None:
    few = "import resource, runpy; resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24)); "
    command = [sys.executable, "-c", f"{few}runpy.run_module('exporter', run_name='__main__', alter_sys=True)"]
    with (contextlib.ExitStack() as crowd, running(*roots(capture("2.17.57/tree-idle")), command=command) as exporter):
        assert b"listening" in exporter.line()
        for _ in range(60):
            crowd.enter_context(socket.create_connection(("127.0.0.1", exporter.ports[0]), timeout=20))
        assert b'lustre_exporter_collector_success{collector="osc"} 1.0' in exporter.get("/metrics")
        assert exporter.ends() == b""
