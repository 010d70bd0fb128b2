"""Recordings of a real Lustre file system, unpacked once per run, and HTTP servers that end with their test."""

import gc
import http.client
import os
import shutil
import ssl
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

from httpserver.server import Address, Server
from lustre.unpack import unpack

pytest_plugins = ["tests.pki"]
HERE = Path(__file__).parent
CAPTURES = HERE / "captures"
TAPES = HERE / "tapes"
IN_MEMORY = Path("/dev/shm")
IN_MEMORY_BYTES = 2 << 30
"""Room there must be: a run needs a quarter of it."""
Unpack = Callable[[str], Path]


def pytest_addoption(parser: pytest.Parser) -> None:
    """What ``pytest -m lustre`` needs to know of the file system it runs on."""
    group = parser.getgroup("lustre", "acceptance on a real Lustre file system (as root, on a client)")
    group.addoption("--lustre-mount", metavar="DIR", help="client mount point; a scratch directory is made there")
    group.addoption("--flash-pool", default="flash", metavar="POOL", help="pool of fast OSTs (default: flash)")
    group.addoption("--hdd-pool", default="hdd", metavar="POOL", help="pool of slow OSTs (default: hdd)")
    group.addoption("--empty-pool", metavar="POOL", help="a pool without targets, to see that it is refused")
    group.addoption("--storm-seconds", type=float, default=120.0, metavar="S", help="length of each storm")
    group.addoption("--fill-flash-pool", action="store_true", help="fill that pool for one test: not in production")
    group.addoption("--quota-user", metavar="NAME", help="user whose block quota one test sets and takes away again")
    group.addoption("--liblustreapi", default="liblustreapi.so.1", metavar="FILE", help="the library")


def pytest_configure(config: pytest.Config) -> None:
    # How long an example takes says nothing on a busy machine.
    settings.register_profile("calm", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("calm")
    config.pluginmanager.register(ModulesWithExamples())
    config.addinivalue_line("markers", "lustre: needs a real Lustre file system (--lustre-mount)")
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        on_one_processor(int(worker.removeprefix("gw")))
    if roomy(IN_MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))
        os.environ.setdefault("TMPDIR", str(IN_MEMORY))  # tapes are unpacked there, and programs inherit it
        tempfile.tempdir = os.environ["TMPDIR"]


class ModulesWithExamples:
    """Searches for doctests in modules that have some.

    Each worker would import all modules and search them for examples, which takes a second of processor time. This is
    a plugin, because a hook of this file is not called for files of the product.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        found = yield
        return [each for each in found if not isinstance(each, DoctestModule) or has_examples(file_path)]


def has_examples(path: Path) -> bool:
    return b">>> " in path.read_bytes()


GC_THRESHOLDS = 100_000, 20, 10
"""A full collection after 20 million objects. With a fifth of them, it takes 6% of the time of simulations; with five
times as many, a worker needs 1 GB."""
GO_GC_PERCENT = "400"


def pytest_collection_finish() -> None:
    """Leave what was collected out of garbage collection, and collect less often.

    Four thousand tests and all modules stay until the end. Simulations allocate millions of short-lived objects, nearly
    all of which are freed without the garbage collector.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    os.environ.setdefault("GOGC", GO_GC_PERCENT)  # promtool and Prometheus: a fifth less time for more memory


WAITING = ("tests/slurm/", "tests/test_stack.py", "tests/tierd/cluster/", "tests/alerts/test_rack.py")
"""Tests that mostly wait for processes. If they came last, two processors would wait with them."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(WAITING))


def on_one_processor(number: int) -> None:
    """Keep this process, and the programs that it starts, on one processor.

    Threads of a simulation run in turn. On two processors each turn waits for the other one to wake, which doubles the
    time of a simulation.
    """
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {processors[number % len(processors)]})


def roomy(place: Path) -> bool:
    """Whether temporary folders may lie there. On a disk, half of the time would go into waiting for it: the parameter
    files of a simulated cluster are written anew thousands of times."""
    try:
        return os.access(place, os.W_OK) and shutil.disk_usage(place).free >= IN_MEMORY_BYTES
    except OSError:
        return False


@pytest.fixture(scope="session")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Unpack:
    """``capture("2.17.57/tree-idle")`` is a folder with ``proc`` and ``sys`` as they were on the recorded node."""
    done: dict[str, Path] = {}

    def unpacked(name: str) -> Path:
        if name not in done:
            done[name] = tmp_path_factory.mktemp(name.replace("/", "-"))
            unpack(CAPTURES / f"{name}.tar.gz", done[name])
        return done[name]

    return unpacked


@pytest.fixture(scope="session")
def tape() -> Unpack:
    """``tape("noisy-create-1m")`` is a folder with ``tape.json`` and ``tape.tar.xz``."""
    return lambda name: TAPES / name


WAIT = 20.0


def asked(port: int, path: str, method: str = "GET", body: str | None = None, tls: ssl.SSLContext | None = None,
          **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Status, headers and body of the answer of a server on this machine."""
    connection = (http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT) if tls is None
                  else http.client.HTTPSConnection("127.0.0.1", port, timeout=WAIT, context=tls))
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


@dataclass
class Served:
    """A server at work, and a client of it."""

    server: Server
    tls: ssl.SSLContext | None = None

    @property
    def at(self) -> tuple[str, int]:
        return "127.0.0.1", self.server.port

    def get(
        self, path: str, method: str = "GET", *, tls: ssl.SSLContext | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        status, found, body = asked(self.server.port, path, method, None, tls or self.tls, **headers)
        return status, {name.lower(): value for name, value in found.items()}, body


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """``serve(app)`` serves it on its own port until the test ends. It passes further arguments to ``listen``."""
    running: list[Served] = []

    def start(app: Any, *, tls: ssl.SSLContext | None = None, **options: Any) -> Served:
        running.append(Served(Server(Address("127.0.0.1", 0), app, **{"name": "test", **options}), tls))
        running[-1].server.start()
        return running[-1]

    yield start
    for served in running:
        served.server.close()


@contextmanager
def as_user(number: int) -> Iterator[None]:
    """Root may read everything; who is not root stays who it is."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(number)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.fixture
def berlin() -> Iterator[None]:
    """Local time with daylight saving."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "CET-1CEST,M3.5.0,M10.5.0/3"
    time.tzset()
    yield
    os.environ.pop("TZ")
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()
