"""Leaders, movers and NATS servers as processes over one Lustre in memory, and what kills and stops them at random.

``TIERD_CHAOS=FILES:SEED`` runs it with any seed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

from stack.forked import Forked
from tests.tierd.cluster import process
from tests.tierd.cluster.broker import Broker, new_fsname
from tests.tierd.cluster.shared_lustre import SharedLustre


class Site:
    """The processes of a test."""

    def __init__(self, folder: Path, servers: list[str], files: int, replicas: int = 1,
                 ack_wait_seconds: float = 2.0) -> None:
        self.folder = folder
        self.socket = Path(mkdtemp()) / "s"  # a short path
        self.shared = SharedLustre(self.socket, ack_wait_seconds / 2)
        self.common = {"lustre": str(self.socket), "folder": str(folder), "fs": new_fsname(), "servers": servers,
                       "files": files, "replicas": replicas, "ack_wait_seconds": ack_wait_seconds}
        self.before = {}
        for number in range(files):
            path = f"/d/{number}"
            node = self.shared.lustre.create(path, number.to_bytes(4) * 25)
            (component,) = node.store.layout.components
            objects = tuple(replace(each, ost_index=2 + number % 4) for each in component.objects)
            node.store.layout = replace(node.store.layout, components=(replace(component, objects=objects),))
            self.before[path] = self.shared.lustre.contents(path)
        self.processes: dict[str, Forked] = {}

    def start(self, role: str, name: str) -> None:
        about = json.dumps({"role": role, "name": name} | self.common)
        self.processes[name] = Forked(process.main, [about], self.folder / f"{name}.log")

    def kill(self, name: str) -> None:
        killed = self.processes.pop(name)
        killed.kill()
        killed.wait()

    def freeze(self, name: str, *, frozen: bool = True) -> None:
        self.processes[name].send_signal(signal.SIGSTOP if frozen else signal.SIGCONT)

    def log(self, name: str) -> str:
        try:
            return (self.folder / f"{name}.log").read_text()
        except FileNotFoundError:
            return ""

    @property
    def leader(self) -> str:
        """The newest leader."""
        claims = sorted((self.folder / ".tierd").glob("*[0-9]"))
        return os.readlink(claims[-1]).split()[0].removeprefix("host=") if claims else ""

    @property
    def moved(self) -> int:
        with self.shared.lock:
            return len(self.shared.exchanges)

    def finished(self) -> str:
        """Name of the leader that has finished; "" before."""
        return next((name for name in ("leader-a", "leader-b") if "FINISHED" in self.log(name)), "")

    def logs(self) -> str:
        return "\n".join(f"--- {path.name}\n{path.read_text()[-2500:]}" for path in sorted(self.folder.glob("*.log")))

    def check(self) -> None:
        """What has to be true at the end, whatever happened."""
        name = self.finished()
        with self.shared.lock:
            lustre = self.shared.lustre
            pools = {node.store.layout.components[0].pool for node in lustre.names.values()}
            assert pools == {"flash"}, self.logs()
            assert {path: lustre.contents(path) for path in self.before} == self.before
            assert set(self.shared.exchanges.values()) == {1}, "a file was moved twice"
            assert max(self.shared.most.values()) == 1, self.shared.most
        db = sqlite3.connect(self.folder / f"{name}.sqlite")
        unfinished = db.execute("SELECT count(*) FROM actions WHERE outcome = 'under way'").fetchone()
        done = dict(db.execute("SELECT place, count(*) FROM actions WHERE outcome = 'done' GROUP BY place").fetchall())
        odd = db.execute("SELECT outcome, detail FROM actions "
                         "WHERE outcome IN ('failed', 'doubtful', 'already')").fetchall()
        db.close()
        assert unfinished == (0,)
        missed = set(self.before) - {path.decode() for path in done}
        assert missed == set(), ("the journal lacks moves", missed, self.logs())
        assert odd == [], self.logs()

    def close(self) -> None:
        for each in self.processes.values():
            if each.poll() is None:
                each.send_signal(signal.SIGCONT)
                each.kill()
            each.wait()
        self.shared.close()
        self.socket.unlink()
        self.socket.parent.rmdir()


def chaos(folder: Path, broker: Broker, files: int, seed: int, log: Callable[[str], None] = lambda _: None) -> None:
    """Move files while a random process is killed or stopped every second or two, then check everything.

    Raises AssertionError with the logs of all processes if a file, a limit or the journal is not as it must be.
    """
    choose = random.Random(seed)
    site = Site(folder, [broker.url], files, ack_wait_seconds=10.0)  # longer than NATS is away
    pause = threading.Event()
    try:
        names = {"leader-a": "leader", "leader-b": "leader", "m1": "mover", "m2": "mover", "m3": "mover", "m4": "mover"}
        for name, role in names.items():
            site.start(role, name)
        while not site.finished():
            pause.wait(choose.uniform(0.5, 3.0))
            name = choose.choice([*names, "broker"])
            what = choose.choice(["kill", "stop"])
            log(f"{what} {name}: {site.moved} of {files} files are moved")
            if name == "broker":
                if what == "kill":
                    broker.kill()
                    pause.wait(choose.uniform(0.1, 2.0))
                    broker.start()
                else:
                    broker.freeze()
                    pause.wait(choose.uniform(0.5, 4.0))
                    broker.freeze(frozen=False)
            elif what == "stop":
                site.freeze(name)
                pause.wait(choose.uniform(0.5, 6.0))
                site.freeze(name, frozen=False)
            else:
                site.kill(name)
            for each, role in names.items():
                if each not in site.processes or site.processes[each].poll() is not None:
                    if site.finished():
                        break
                    site.start(role, each)
        site.check()
    finally:
        site.close()
