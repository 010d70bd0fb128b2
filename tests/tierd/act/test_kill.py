"""A kill at every single step: files whole, nothing leaked, and a journal that closes each intent with the truth."""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from lustre.layout.model import same_shape
from tests.tierd.act import gate_world
from tests.tierd.act.movers.minicalls import Killed
from tierd.act.journal.entry import Entry
from tierd.act.journal.writer import Journal
from tierd.act.undo import close_unfinished
from tierd.acts import Outcome

DATA = {"/a": b"a" * 9000, "/b": b"b" * 9000}
WRITES = ("intend", "end", "begin_undo")
CHANGING = {"create_volatile", "write", "swap_and_close", "close", "set_default_layout", *WRITES}
"""Steps after which something is not as it was: at these the process dies knowing nothing of it, too."""
FINISHED = {("set-default-layout", "undone"), ("migrate", "undone"), ("migrate", "done")}


class World(gate_world.World):
    """A Lustre in memory that outlives the process at work on it, which is killed at some step."""

    def __init__(self, folder: Path, kill_at: int = 0, before: bool = False) -> None:
        self.kill_at, self.before = kill_at, before
        self.steps: list[str] = []
        self.dead = False
        super().__init__(folder)
        for name, data in DATA.items():
            self.lustre.create(name, data)
        for name in WRITES:
            setattr(self.journal, name, self.step(getattr(self.journal, name)))

    def seen(self, part: object) -> Any:
        return Stepped(self, part)

    def run(self) -> None:
        """As the kernel leaves it: transactions that were open are not written, and what was open is closed."""
        with suppress(Killed, sqlite3.ProgrammingError):
            self.work()
        self.journal.db.raw.close()
        self.lustre.process_died()

    def work(self) -> None:
        """What tierd does in a few cycles: it moves files, sets a default, and takes back a move and the default."""
        self.default()
        self.submit(*DATA, size=9000)
        self.gate.pump(2000.0)
        for entry in self.journal.entries(Outcome.DONE):
            if entry.place in {"/a", "/d"}:
                self.undo(entry, "it did not help")

    def step(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*arguments: Any, **named: Any) -> Any:
            if self.dead:
                raise Killed
            self.steps.append(call.__name__)
            is_last = len(self.steps) == self.kill_at
            try:
                return None if is_last and self.before else call(*arguments, **named)
            finally:
                if is_last:
                    self.dead = True
                    self.journal.db.raw.close()
                    raise Killed

        return stepped

    def truth(self, entry: Entry) -> bool:
        """Whether an entry matches the file system."""
        present = self.port.layout(entry.place)
        assert present is not None
        assert entry.layout_after is not None
        moved = same_shape(present, entry.layout_after)
        return moved == (entry.outcome == "done") if entry.outcome != "interrupted" else not moved


class Stepped:
    """An object of which each call is a step."""

    def __init__(self, world: World, of: object) -> None:
        self._world = world
        self._of = of

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        return self._world.step(found) if callable(found) else found


def test_at_every_step(tmp_path: Path) -> None:
    whole = World(tmp_path)
    whole.run()
    assert {(e.kind, e.outcome) for e in Journal(tmp_path / "journal.sqlite").entries()} == FINISHED
    assert whole.steps.count("swap_and_close") == 3
    seen = set()
    for step, name in enumerate(whole.steps, 1):
        for before in (True, False) if name in CHANGING else (True,):
            where = f"killed {'before' if before else 'after'} step {step}, {name}"
            (folder := tmp_path / f"{step}-{before}").mkdir()
            at = World(folder, step, before)
            at.run()
            assert at.dead, where
            journal = Journal(folder / "journal.sqlite")
            begun = {entry.id for entry, outcome, _ in close_unfinished(journal, at.port, 2.0)
                     if outcome == "undoing"}  # the undo goes on
            at.lustre.settle()
            assert {name: at.lustre.contents(name) for name in DATA} == DATA, where
            stores = {id(node.store) for node in at.lustre.names.values()}
            assert {id(store) for store in at.lustre.live_stores()} == stores, f"{where}: something is left behind"
            entries = list(journal.entries())
            assert all(at.truth(entry) for entry in entries if entry.id not in begun), (
                where, [(e.place, e.outcome) for e in entries])
            waits = {entry.place for entry in entries if entry.outcome == "interrupted"} - {"/d"}
            assert {move.path for move in journal.queue.all()} >= waits, where
            seen |= {entry.outcome for entry in entries}
            journal.close()
    assert seen == {"done", "undone", "undoing", "interrupted"}
