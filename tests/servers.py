"""Servers of other people that tests start: Prometheus and Alertmanager, on loopback, gone afterwards."""

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import pytest

import stack.services
from tierd.clock import SystemClock

ROOT = Path(__file__).parent.parent
TOOLS = ROOT / ".tools" / "bin"
Found = TypeVar("Found")


def program(name: str) -> str:
    """Where a program is: on the PATH, or where ``make tools`` puts it; the test is skipped without it."""
    found = shutil.which(name) or shutil.which(name, path=str(TOOLS))
    if found is None:
        pytest.skip(f"{name} is neither on the PATH nor in .tools/bin (make tools)")
    return found


def output_of(name: str, *arguments: object, folder: Path | None = None) -> str:
    """What a program of other people prints, which must succeed."""
    command = [program(name), *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def awaited(holds: Callable[[], Found | None], seconds: float, state: Callable[[], object] = lambda: None) -> Found:
    """What holds at last; asked for again until it is true. The state says more of what does not come about."""
    clock = SystemClock()
    until = clock.now() + seconds
    while not (found := holds()):
        assert clock.now() < until, state()
        clock.wait(0.1)
    return found


def output_until(stream: IO[str], words: str) -> str:
    """The output of a program up to the line with these words."""
    output = ""
    while words not in output:
        line = stream.readline()
        assert line, output
        output += line
    return output


@contextmanager
def until_ctrl_c(*command: str, folder: Path, **environment: str) -> Iterator[str]:
    """What a module of the stack prints until it is up. Ctrl-C must end it, and leave no file in the folder."""
    with subprocess.Popen([sys.executable, "-m", *command], cwd=ROOT, text=True, start_new_session=True,
                          env={**os.environ, "TMPDIR": str(folder), **environment}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as process:
        try:
            assert process.stdout is not None
            yield output_until(process.stdout, "Press Ctrl-C")
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=300)
        finally:
            process.kill()
    assert "Stopped. All temporary files are deleted." in rest
    assert process.returncode == 0
    assert list(folder.iterdir()) == []


def fetched(url: str, data: bytes | None = None, timeout: float = 20.0) -> Any:
    """The JSON at a URL. Raises OSError."""
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"} if data else {})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def body_of(url: str) -> str:
    """The text at a URL. Raises OSError."""
    with urllib.request.urlopen(url, timeout=20.0) as answer:
        return str(answer.read(), "utf-8")


def running(command: Sequence[str], ready: str, log: Path) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """A server from the moment it is ready until it is no longer needed."""
    return stack.services.program(command, ready, log, SystemClock())


class Prometheus:
    """Asks a Prometheus."""

    def __init__(self, url: str) -> None:
        self.url = url

    def instant(self, expr: str, time: float) -> list[Any]:
        """The result of an instant query. Raises AssertionError with Prometheus' message for a bad query."""
        return self._request("query", query=expr, time=str(time))

    def series(self, match: str, start: float, end: float) -> list[Any]:
        """Label sets of series."""
        return self._request("series", **{"match[]": match, "start": str(start), "end": str(end)})

    def over(self, expr: str, start: float, end: float, step: float) -> list[Any]:
        """The result of a query over time."""
        return self._request("query_range", query=expr, start=str(start), end=str(end), step=str(step))

    def _request(self, what: str, **parameters: str) -> list[Any]:
        try:
            answer = fetched(f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(parameters)}")
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error
        found: list[Any] = answer["data"]["result"] if isinstance(answer["data"], dict) else answer["data"]
        return found


@contextmanager
def prometheus(folder: Path, data: Path) -> Iterator[Prometheus]:
    """A Prometheus over a folder of blocks that scrapes nothing."""
    configuration = folder / "prometheus.yml"
    configuration.write_text("global: {}\n", encoding="utf-8")
    (port,) = stack.services.free_ports(0)
    command = [program("prometheus"), f"--config.file={configuration}", f"--storage.tsdb.path={data}",
               "--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    with running(command, f"http://127.0.0.1:{port}/-/ready", folder / "prometheus.log"):
        yield Prometheus(f"http://127.0.0.1:{port}")
