"""A daemon with its socket, port and journal, over the simulated cluster, and tierctl and a browser to ask it with."""

import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Any

from httpserver.config import WebConfigFile
from lustre.creation import ObjectCreation
from simulator.cluster import Cluster
from simulator.costs import CallCosts
from simulator.filesystem import SimulatedFilesystem
from tests.conftest import asked
from tests.tierd.logged import logged
from tests.tierd.simulated import NOISE
from tierd.act.movers.inspection import PortMover
from tierd.act.user_rights import User
from tierd.cli.tierctl import main
from tierd.config.settings import Settings
from tierd.daemon.client import ask
from tierd.daemon.node import Node
from tierd.daemon.service import Service
from tierd.policies.protocol import Tables
from tierd.simulation.world import VirtualClock, parameter_files

HOSTILE = "/proj/keep/\udcff\n\x1b[2J 'x'"
"""A path with all that names may hold."""
READ_AGAIN = replace(NOISE, rereads_per_second=8.0, files_per_second=10.0, keep=300)


class Clearing(SimulatedFilesystem):
    """Remembers what was cleared."""

    def __init__(self, cluster: Cluster, costs: CallCosts | None = None) -> None:
        super().__init__(cluster, costs=costs)
        self.cleared: dict[tuple[str, str], int] = {}

    def clear_changelog(self, mdt: str, reader: str, index: int) -> None:
        super().clear_changelog(mdt, reader, index)
        self.cleared[mdt, reader] = index


def altered(settings: Settings, **changed: Any) -> Settings:
    """Other settings: a dictionary changes some of a table, any other value is the table."""
    return replace(settings, **{table: replace(getattr(settings, table), **value) if isinstance(value, dict) else value
                                for table, value in changed.items()})


def acting(folder: Path, **changed: object) -> Settings:
    """Settings of a tierd that acts, with its files below a folder and without a port."""
    acts = {"dry_run": False, "journal": str(folder / "lib/journal.sqlite"), "socket": str(folder / "tierd.sock"),
            "pause_file": str(folder / "pause")}
    return altered(Settings(), **{"act": acts, "web": {"enabled": False}} | changed)


@dataclass
class Site:
    cluster: Cluster
    filesystem: Clearing
    settings: Settings
    folder: Path
    said: list[str] = field(default_factory=logged)
    web_config: WebConfigFile | None = None
    accounts: Mapping[int, str] = field(default_factory=dict)
    """Account names by user id."""
    peers: Any = None
    """What makes tierd one of several."""
    creation: ObjectCreation | None = None
    """The limits of new objects, on a node that serves MDTs."""
    before_reading: Callable[[], None] = lambda: None
    """Called before the counters are read."""
    parts: dict[str, Any] = field(default_factory=dict)
    """What its node has besides, or instead."""
    service: Service = field(init=False)

    def start(self) -> None:
        clock = VirtualClock(self.cluster)
        read = parameter_files(self.cluster, self.folder / "node")
        parts: dict[str, Any] = {
            "filesystem": self.filesystem, "mover": PortMover(self.filesystem), "clock": clock,
            "read": lambda: (self.before_reading(), read())[1], "mdts": ["MDT0000", "MDT0001"],
            "clear_changelog": self.filesystem.clear_changelog, "user_name": lambda uid: self.accounts.get(uid, ""),
            "rights_of": lambda uid, gid: User(uid, frozenset({gid}), f"u{uid}"),
            "creation": self.creation or ObjectCreation()}
        self.service = Service(self.settings, Node(**(parts | self.parts)), self.web_config, self.peers)

    def restart(self, **changed: object) -> None:
        """With other settings."""
        self.service.close()
        self.said.clear()
        self.settings = altered(self.settings, **changed)
        self.start()

    def kill(self) -> None:
        """Go on with the journal as it is on disk at this instant."""
        folder = self.folder / "killed"
        shutil.copytree(Path(self.settings.act.journal).parent, folder)
        self.restart(act={"journal": str(folder / "journal.sqlite")})

    def sql(self, *statements: str) -> list[Any]:
        """What statements return that another program runs on the journal."""
        with closing(sqlite3.connect(self.settings.act.journal)) as journal, journal:
            return [row for statement in statements for row in journal.execute(statement)]

    def configure(self, **integrations: object) -> None:
        """Settings of integrations, from the next start on."""
        wanted = Tables({**self.settings.integrations.by_name, **integrations})
        self.settings = replace(self.settings, integrations=wanted)

    def begin_again(self, cluster: Cluster) -> None:
        """Over another cluster."""
        self.service.close()
        self.cluster, self.filesystem = cluster, Clearing(cluster)
        self.start()

    def run_until_said(self, words: str, before: float) -> str:
        """The first sentence that has these words, which must be before that time."""
        self.run_until(lambda: any(words in sentence for sentence in self.said), before)
        return next(sentence for sentence in self.said if words in sentence)

    def run_until(self, met: Callable[[], object], before: float = 1800.0) -> None:
        while not met():
            self.run(until=self.cluster.now + 5)
            assert self.cluster.now < before, self.said[-5:]

    def run(self, until: float) -> None:
        while self.cluster.now < until:
            self.cluster.advance(5)
            self.service.cycle()

    @property
    def socket(self) -> str:
        return self.settings.act.socket

    def ask(self, request: str, **more: object) -> dict[str, Any]:
        """The answer of the control socket."""
        return ask(self.socket, {"request": request, **more})

    def tierctl(self, *arguments: str) -> tuple[int, str, str]:
        """Exit status, output and errors."""
        with redirect_stdout(StringIO()) as printed, redirect_stderr(StringIO()) as errors:
            return main([*arguments, "--socket", self.socket]), printed.getvalue(), errors.getvalue()

    def shown(self, *arguments: str) -> str:
        """What tierctl prints; it must succeed."""
        status, printed, errors = self.tierctl(*arguments)
        assert status == 0, errors
        return printed

    def failed(self, *arguments: str) -> str:
        """What tierctl complains of."""
        status, _, errors = self.tierctl(*arguments)
        assert status == 1
        return errors

    def fetched(self, path: str, method: str = "GET") -> tuple[int, str]:
        """Status and body of a page."""
        status, _, body = asked(self.service.web.port, path, method)
        return status, body.decode()
