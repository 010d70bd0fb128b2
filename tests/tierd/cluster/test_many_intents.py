"""Thousands of moves on a fake file system, while movers die at random points and leaders replace each other.

``TIERD_INTENTS=1000000`` makes a million of them; ``TIERD_INTENTS=N:SEED`` chooses another course of events.
"""

import os
import random
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lustre.errors import of_errno
from lustre.fid import Fid
from lustre.filesystem import FileStatus
from lustre.layout.model import Component, Layout, StripeObject, same_shape
from tests.tierd.act.gate_world import FAST, FINDING
from tests.tierd.act.movers.minicalls import Killed
from tests.tierd.act.movers.minilustre import FLASH
from tests.tierd.cluster.broker import Broker, connected, new_fsname
from tierd.act.claim import Claim, ClaimFolder
from tierd.act.gate import Gate
from tierd.act.journal.writer import Journal
from tierd.act.limits import Budget, CircuitBreaker
from tierd.act.movers.inspection import FileEngine
from tierd.act.movers.moves import Halt, Move, MoveOutcome, MoveResult
from tierd.act.undo import close_unfinished
from tierd.acts import ActKind
from tierd.clock import SystemClock
from tierd.cluster.connection import BrokerError, Connection
from tierd.cluster.leader import Candidate
from tierd.cluster.messages import Names
from tierd.cluster.mover import Mover
from tierd.config.act import ActSettings, ClaimSettings, MoverSettings
from tierd.config.settings import Settings
from tierd.model import Action

WANTED, _, SEED = os.environ.get("TIERD_INTENTS", "750").partition(":")
TARGETS = 8
A_DIRECTORY = 1000
DEATHS = 0.008
"""Share of the points at which a mover dies."""


class FakeLustre(FileEngine):
    """Implements the parts of the file system port, of the engine and of the look that are needed."""

    fsname = "lustre"

    def __init__(self, files: int) -> None:
        self.lock = threading.Lock()
        self.on_flash = bytearray(files)
        self.exchanges = bytearray(files)
        self.using: Counter[int] = Counter()
        self.most = 0

    def pools(self) -> Mapping[str, tuple[str, ...]]:
        return {"flash": tuple(f"lustre-OST{n:04x}" for n in range(16)),
                "hdd": tuple(f"lustre-OST{16 + n:04x}" for n in range(TARGETS))}

    def _number(self, path: str) -> int:
        number = int(path.rpartition("/")[2])
        if not 0 <= number < len(self.on_flash):
            raise of_errno(2, "stat", path)
        return number

    def path_of(self, fid: Fid, link: int = 0) -> str:
        return f"/d{fid.object_id // A_DIRECTORY}/{fid.object_id}"

    def status(self, path: str) -> FileStatus:
        return FileStatus(Fid(9, self._number(path)), 4096, 0.0, 0.0, 0, 0, 1)

    def layout(self, path: str) -> Layout:
        return self._layout(self._number(path))

    def _layout(self, number: int) -> Layout:
        pool, index = ("flash", number % 16) if self.on_flash[number] else ("hdd", 16 + number % TARGETS)
        held = StripeObject(index, Fid(5, 2 * number + self.on_flash[number]))
        return Layout((Component(pool=pool, objects=(held,)),), composite=False)

    def batch(self) -> Any:
        return self

    def examine(self, moves: Iterable[Move]) -> Iterator[MoveOutcome]:
        for move in moves:
            moved = same_shape(self.layout(move.path), move.layout)
            yield MoveOutcome(move, MoveResult.ALREADY if moved else MoveResult.MOVABLE)

    def move_batch(self, moves: Iterable[Move], halt: Halt, batch: object) -> Iterator[MoveOutcome]:
        for move in moves:
            number = self._number(move.path)
            with self.lock:
                self.using[number % TARGETS] += 1
                self.most = max(self.most, *self.using.values())
            with self.lock:
                self.using[number % TARGETS] -= 1
                already, self.on_flash[number] = self.on_flash[number], 1
                self.exchanges[number] += not already
            yield MoveOutcome(move, MoveResult.ALREADY if already else MoveResult.DONE)


class Movers:
    """Movers in threads; each one that dies is replaced at once, as by systemd."""

    def __init__(self, settings: Settings, fs: str, lustre: FakeLustre, folder: Path, choose: random.Random,
                 share_of_deaths: float) -> None:
        self._share_of_deaths = share_of_deaths
        self._about = settings, fs, lustre, ClaimFolder(folder)
        self._choose = choose
        self._end = threading.Event()
        self.deaths = 0
        self.threads = [threading.Thread(target=self._work, args=(f"m{n}",)) for n in range(3)]
        for thread in self.threads:
            thread.start()

    def _fault(self, _: str) -> None:
        if self._choose.random() < self._share_of_deaths:
            self.deaths += 1
            raise Killed

    def _work(self, name: str) -> None:
        settings, fs, lustre, folder = self._about
        connection = Connection(settings.cluster, "mover")
        while not self._end.is_set():
            clock = SystemClock()
            mover = Mover(name, name, connection, Names(fs), lustre, folder, settings, clock, fault=self._fault)
            try:
                while not self._end.is_set():
                    try:
                        mover.describe()
                        for _ in range(20):
                            if not mover.step():
                                self._end.wait(0.02)
                    except BrokerError:
                        self._end.wait(0.1)
            except Killed:
                continue
        connection.close()

    def stop(self) -> None:
        self._end.set()
        for thread in self.threads:
            thread.join()


def lead(settings: Settings, fs: str, lustre: FakeLustre, folder: Path, generation: int, stop_after: int) -> int:
    """Lead until so many moves have ended, or all are done. Returns how many files are not moved."""
    clock = SystemClock()
    claims = ClaimFolder(folder)
    for name in filter(str.isdigit, claims.names()):
        claims.free(name)  # as if it had expired
    claim = Claim(claims, f"host=leader{generation} nonce={generation}", clock.monotonic,
                  ClaimSettings(expiry_seconds=3600.0))
    connection = Connection(settings.cluster, "leader")
    connected(connection)
    node = Candidate(settings, fs, claim, connection, clock)
    while not node.step():
        clock.wait(0.1)
    journal = Journal(Path(settings.act.journal), copied=True)
    dispatch = node.attach(journal, lustre, settings)  # type: ignore[arg-type]
    gate = Gate(lustre, lustre, Budget(FAST, clock.now()), CircuitBreaker(), journal, clock, False,  # type: ignore[arg-type]
                dispatch=dispatch)
    list(close_unfinished(journal, lustre, clock.now()))  # type: ignore[arg-type]
    journal.queue.remove([move.path for move in journal.queue.all()])
    finding = journal.add_finding(FINDING)
    left = [number for number, moved in enumerate(lustre.on_flash) if not moved]
    paths = [lustre.path_of(Fid(9, number)) for number in left]
    gate.submit([Action(ActKind.MIGRATE, FLASH, "", FINDING.key, path.rpartition("/")[0], path, 4096)
                 for path in paths], finding)
    ended = 0
    while (gate.waiting or gate.under_way) and ended < stop_after:
        ended += len(gate.pump(clock.now() + 0.5)) + len(gate.attend())
    if stop_after < len(left):  # it is killed: nothing is published or released, and the journal stays as it is
        journal.publish = lambda: None
    else:
        dispatch.recorded()
        node.detach()
    journal.close()
    connection.close()
    return len(lustre.on_flash) - sum(lustre.on_flash)


def run_intents(broker: Broker, folder: Path, files: int, seed: int, deaths: float = DEATHS) -> int:
    """Move files under three leaders and a last one, then check everything. Returns how often a mover died."""
    choose = random.Random(seed)
    lustre, fs = FakeLustre(files), new_fsname()
    settings = Settings(act=ActSettings(journal=f"{folder}/a.sqlite"),
                        movers=MoverSettings(engine="lease", at_once=1, per_target_at_once=1),
                        cluster=broker.settings(ack_wait_seconds=1.0, deadline_seconds=10.0))
    movers = Movers(settings, fs, lustre, folder / ".tierd", choose, deaths)
    try:
        left, generation = files, 0
        while left:
            generation += 1
            journal = f"{folder}/{'ab'[generation % 2]}.sqlite"
            chosen = replace(settings, act=ActSettings(journal=journal))
            left = lead(chosen, fs, lustre, folder / ".tierd", generation, left if generation > 3 else left // 3)
    finally:
        movers.stop()
    assert set(lustre.on_flash) == {1}, f"{lustre.on_flash.count(0)} files were not moved"
    assert set(lustre.exchanges) == {1}, f"{files - lustre.exchanges.count(1)} files were not exchanged exactly once"
    assert lustre.most == 1, f"{lustre.most} moves at once on one target"
    assert movers.deaths > 3, f"only {movers.deaths} movers died"
    db = sqlite3.connect(journal)
    done = {path.decode() for (path,) in db.execute("SELECT place FROM actions WHERE outcome = 'done'")}
    odd = db.execute("SELECT outcome, detail, count(*) FROM actions "
                     "WHERE outcome = 'under way' OR outcome IN ('failed', 'doubtful') GROUP BY 1, 2").fetchall()
    db.close()
    assert len(done) == files, f"the journal has {len(done)} of {files} moves as done"
    assert odd == [], f"acts without a known result: {odd[:10]}"
    return movers.deaths


def test_every_file_ends_in_one_of_two_layouts_and_none_moves_twice(shared_broker: Broker, tmp_path: Path) -> None:
    run_intents(shared_broker, tmp_path, int(WANTED), int(SEED or 0))
