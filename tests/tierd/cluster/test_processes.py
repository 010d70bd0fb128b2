"""Leaders, movers and NATS servers as processes that are killed and stopped while files move.

Whatever happens: every file has one of its two layouts, none is exchanged twice, contents stay, no target is used by
more movers than allowed, and the journal of the last leader is right. ``TIERD_CHAOS=FILES[:SEED]`` runs longer.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.tierd.cluster.broker import Broker, new_fsname, until
from tests.tierd.cluster.shared_lustre import SharedLustre

ROOT = Path(__file__).parents[3]


class Site:
    """The processes of a test."""

    def __init__(self, folder: Path, servers: list[str], files: int, replicas: int = 1,
                 ack_wait_seconds: float = 2.0) -> None:
        self.folder = folder
        self.socket = Path(mkdtemp()) / "s"  # a short path
        self.shared = SharedLustre(self.socket)
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
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, role: str, name: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            about = json.dumps({"role": role, "name": name} | self.common)
            self.processes[name] = subprocess.Popen([sys.executable, "-m", "tests.tierd.cluster.process", about],
                                                    cwd=ROOT, stdout=log, stderr=log)

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def freeze(self, name: str, *, frozen: bool = True) -> None:
        process = self.processes[name]
        process.send_signal(signal.SIGSTOP if frozen else signal.SIGCONT)
        if frozen:
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)  # the signal is sent at once, but the process stops later
            self.shared.excuse(process.pid)

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
        unfinished = db.execute("SELECT count(*) FROM actions WHERE outcome IS NULL").fetchone()
        done = dict(db.execute("SELECT place, count(*) FROM actions WHERE outcome = 'done' GROUP BY place").fetchall())
        odd = db.execute("SELECT outcome, detail FROM actions "
                         "WHERE outcome IN ('failed', 'doubtful', 'already')").fetchall()
        db.close()
        assert unfinished == (0,)
        missed = set(self.before) - {path.decode() for path in done}
        assert missed == set(), ("the journal lacks moves", missed, self.logs())
        assert odd == [], self.logs()

    def close(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()
        self.shared.close()
        self.socket.unlink()
        self.socket.parent.rmdir()


@pytest.fixture
def site(tmp_path: Path, shared_broker: Broker) -> Iterator[Site]:
    made = Site(tmp_path, [shared_broker.url], files=600)
    yield made
    made.close()


def test_movers_and_leaders_are_killed_and_stopped(site: Site) -> None:
    site.start("leader", "leader-a")
    for name in ("m1", "m2", "m3"):
        site.start("mover", name)
    until(lambda: site.moved > 20, "files move", 30, site.logs)
    site.start("leader", "leader-b")
    site.kill("m1")
    site.freeze("m2")
    until(lambda: site.moved > 60, "one mover goes on", 30, site.logs)
    site.start("mover", "m1")
    until(lambda: "standing by" in site.log("leader-b"), "the other leader stands by")
    leading, standby = site.leader, "leader-b" if site.leader == "leader-a" else "leader-a"
    site.kill(leading)
    site.freeze("m2", frozen=False)
    until(lambda: "leading" in site.log(standby), "the standby leads", 30, site.logs)
    until(lambda: site.moved > 150, "files move again", 30, site.logs)
    site.start("leader", leading)
    until(lambda: site.log(leading).rstrip().rpartition("\n")[2].startswith("standing by"), "it stands by now")
    site.freeze(standby)  # it holds the claim, and its clock stands still
    until(lambda: site.leader == leading, "the first leads again", 30, site.logs)
    until(lambda: site.moved > 250, "files move again", 30, site.logs)
    site.freeze(standby, frozen=False)
    until(lambda: "LOST" in site.log(standby), "the stopped one finds that it was replaced", 10, site.logs)
    until(lambda: site.finished() == leading, "all files are moved", 60, site.logs)
    site.check()


@pytest.mark.skipif("TIERD_CHAOS" not in os.environ, reason="long: TIERD_CHAOS=FILES[:SEED]")
def test_chaos(tmp_path: Path, own_broker: Broker) -> None:
    files, _, seed = os.environ["TIERD_CHAOS"].partition(":")
    choose = random.Random(int(seed or 0))
    site = Site(tmp_path, [own_broker.url], int(files), ack_wait_seconds=10.0)  # longer than NATS is away
    pause = threading.Event()
    try:
        names = {"leader-a": "leader", "leader-b": "leader", "m1": "mover", "m2": "mover", "m3": "mover", "m4": "mover"}
        for name, role in names.items():
            site.start(role, name)
        while not site.finished():
            pause.wait(choose.uniform(0.5, 3.0))
            name = choose.choice([*names, "broker"])
            what = choose.choice(["kill", "stop"])
            if name == "broker":
                if what == "kill":
                    own_broker.kill()
                    pause.wait(choose.uniform(0.1, 2.0))
                    own_broker.start()
                else:
                    own_broker.freeze()
                    pause.wait(choose.uniform(0.5, 4.0))
                    own_broker.freeze(frozen=False)
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
