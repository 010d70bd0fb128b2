"""kill -9 at every single step: files whole, nothing leaked, and a journal that closes each intent with the truth."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lustre.layout.model import same_shape
from tests.tierd.act.kill.remote import receive, send
from tests.tierd.act.miniport import MiniPort
from tests.tierd.act.movers.minicalls import MiniCalls
from tests.tierd.act.movers.minilustre import HDD, MiniLustre
from tierd.act.journal.entry import Entry
from tierd.act.journal.writer import Journal
from tierd.act.undo import close_unfinished

ROOT = Path(__file__).parents[4]
DATA = {"/a": b"a" * 9000, "/b": b"b" * 9000}
CHANGING = {"create_volatile", "write", "swap_and_close", "close", "set_default_layout", "journal"}
"""Steps after which something is not as it was: at these the process dies knowing nothing of it, too."""
FINISHED = {("set-default-layout", "undone"), ("migrate", "undone"), ("migrate", "done")}


class World:
    """The memory, and the process at work on it."""

    def __init__(self, control: socket.socket, journal: Path) -> None:
        self.control = control
        self.journal = journal
        self.lustre = MiniLustre()
        for name, data in DATA.items():
            self.lustre.create(name, data)
        self.port = MiniPort(self.lustre)
        self.port.defaults["/d"] = HDD
        self.calls = MiniCalls(self.lustre)
        self.steps: list[str] = []

    def run(self, kill_at: int, before: bool) -> bool:
        """Serve the process until it is done, or kill it at that step; whether it was done."""
        send(self.control, self.journal)
        while (message := receive(self.control)) is not None:
            name, method, arguments = message
            if method == "finished":
                assert receive(self.control) is None
                return True
            self.steps.append(method)
            if len(self.steps) == kill_at and before:
                break
            answer = self._answer(name, method, arguments)
            if len(self.steps) == kill_at:
                break
            send(self.control, answer)
        assert message is not None, "it died by itself"
        self._kill()
        assert receive(self.control) is None
        self.lustre.process_died()
        return False

    def _answer(self, name: str, method: str, arguments: tuple[Any, ...]) -> Any:
        if name == "steps":
            return self.lustre.quota(*arguments) if method == "quota" else None
        try:
            return getattr(self.calls if name == "calls" else self.port, method)(*arguments)
        except OSError as error:
            return error

    def _kill(self) -> None:
        (child,) = children(self.victim)
        os.kill(child, signal.SIGKILL)

    victim = 0

    def pool(self, path: str) -> str:
        return self.lustre.names[path].store.layout.components[0].pool


def children(parent: int) -> list[int]:
    """Processes of a process."""
    return [int(word) for word in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


@pytest.fixture(scope="module")
def victim() -> Iterator[tuple[socket.socket, int]]:
    ours, theirs = socket.socketpair()
    with ours, theirs, subprocess.Popen([sys.executable, "-m", "tests.tierd.act.kill.victim", str(theirs.fileno())],
                                        cwd=ROOT, pass_fds=[theirs.fileno()]) as process:
        theirs.close()
        yield ours, process.pid
        ours.close()


def world(victim: tuple[socket.socket, int], journal: Path) -> World:
    made = World(victim[0], journal)
    made.victim = victim[1]
    return made


def truth(at: World, entry: Entry) -> bool:
    """Whether an entry matches the file system."""
    present = at.port.layout(entry.place)
    assert present is not None
    assert entry.layout_after is not None
    moved = same_shape(present, entry.layout_after)
    return moved == (entry.outcome == "done") if entry.outcome != "interrupted" else not moved


def test_at_every_step(victim: tuple[socket.socket, int], tmp_path: Path) -> None:
    whole = world(victim, tmp_path / "whole.sqlite")
    assert whole.run(kill_at=0, before=False)
    assert {(e.kind, e.outcome) for e in Journal(whole.journal).entries()} == FINISHED
    assert whole.steps.count("swap_and_close") == 3
    seen = set()
    for step in range(1, len(whole.steps) + 1):
        for before in (True, False) if whole.steps[step - 1] in CHANGING else (True,):
            at = world(victim, tmp_path / f"{step}-{before}.sqlite")
            assert not at.run(step, before)
            journal = Journal(at.journal)
            begun = {entry.id for entry, outcome, _ in close_unfinished(journal, at.port, 2.0)
                     if outcome == "undoing"}  # the undo goes on
            at.lustre.settle()
            where = f"killed {'before' if before else 'after'} step {step}, {whole.steps[step - 1]}"
            assert {name: at.lustre.contents(name) for name in DATA} == DATA, where
            stores = {id(node.store) for node in at.lustre.names.values()}
            assert {id(store) for store in at.lustre.live_stores()} == stores, f"{where}: something is left behind"
            entries = list(journal.entries())
            assert all(truth(at, entry) for entry in entries if entry.id not in begun), (
                where, [(e.place, e.outcome) for e in entries])
            seen |= {entry.outcome for entry in entries}
            journal.close()
    assert seen == {"done", "undone", "undoing", "interrupted"}
