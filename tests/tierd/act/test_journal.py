from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lustre.layout import Component, Layout
from tierd.act.journal import Journal
from tierd.model import Action, Finding

MIB = 1 << 20
BEFORE = Layout((Component(pool="hdd", stripe_count=2, stripe_size=4 * MIB),), composite=False)
AFTER = Layout((Component(0, MIB, "flash"), Component(MIB, None, "hdd")))
FINDING = Finding("noisy-neighbour", 1.0, "m", "s", ("lustre-OST0002",), "…", {"slowdown": 1.5}, ("/proj",))


def action(directory: str = "/proj") -> Action:
    return Action("set-default-layout", AFTER, "because", FINDING.key, directory=directory)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.sqlite")


def test_an_act_is_there_before_it_is_done(journal: Journal) -> None:
    number = journal.intend(action(), journal.found(FINDING), BEFORE, 2.0, dry_run=False)
    (entry,) = journal.entries("")
    assert (entry.id, entry.outcome) == (number, "")
    journal.ended(number, "done", "", 3.0)
    assert [e.outcome for e in journal.entries()] == ["done"]
    assert list(journal.entries("")) == []


def test_the_layout_before_is_kept_for_undoing(journal: Journal) -> None:
    journal.intend(action(), journal.found(FINDING), BEFORE, 2.0, dry_run=False)
    journal.intend(action("/none"), journal.found(FINDING), None, 2.0, dry_run=False)
    with_default, without = journal.entries()
    assert with_default.layout_before is not None
    assert with_default.layout_before.components[0].stripe_count == 2
    assert with_default.layout_before.components[0].pool == "hdd"
    assert without.layout_before is None


@pytest.mark.parametrize("name", ["/proj/a b", "/proj/\udcff\udcfe", "/proj/'; DROP TABLE actions; --", "/proj/a\nb"])
def test_names_may_hold_anything(journal: Journal, name: str) -> None:
    journal.intend(action(name), journal.found(FINDING), None, 2.0, dry_run=False)
    assert [e.place for e in journal.entries()] == [name]


def test_what_was_moved_lately_is_counted_and_what_was_only_looked_at_is_not(journal: Journal) -> None:
    def moved(outcome: str, ended_at: float, size_bytes: int, *, dry_run: bool = False) -> None:
        move = Action("migrate", AFTER, "because", FINDING.key, path="/proj/a", size_bytes=size_bytes)
        number = journal.intend(move, finding, BEFORE, 2.0, dry_run=dry_run)
        if outcome:
            journal.ended(number, outcome, "", ended_at)

    finding = journal.found(FINDING)
    assert journal.moved_since(0.0) == (0, 0)
    moved("done", 5.0, 1)
    assert journal.moved_since(6.0) == (0, 0)
    moved("done", 10.0, 20)
    moved("gave-way", 10.0, 300)
    moved("undone", 10.0, 4000)
    moved("", 0.0, 50_000)
    moved("refused", 10.0, 6)
    moved("dry-run", 10.0, 7, dry_run=True)
    journal.ended(journal.intend(action(), finding, BEFORE, 9.0, dry_run=False), "done", "", 10.0)
    assert journal.moved_since(6.0) == (5, 20 + 300 + 2 * 4000 + 50_000)


def test_what_was_written_survives_a_kill(tmp_path: Path) -> None:
    """A process writes intents as fast as it can and is killed with -9: what it said it wrote is there."""
    path = tmp_path / "journal.sqlite"
    program = (
        "import sys\n"
        "from tests.tierd.act.test_journal import FINDING, BEFORE, action\n"
        "from tierd.act.journal import Journal\n"
        f"journal = Journal(__import__('pathlib').Path({str(path)!r}))\n"
        "finding = journal.found(FINDING)\n"
        "while True:\n"
        "    print(journal.intend(action(), finding, BEFORE, 2.0, False), flush=True)\n"
    )
    root = Path(__file__).parents[3]
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=root) as process:
        assert process.stdout is not None
        said = [int(process.stdout.readline()) for _ in range(20)]
        os.kill(process.pid, signal.SIGKILL)
        said += [int(line) for line in process.stdout.read().splitlines() if line]
    kept = [e.id for e in Journal(path).entries("")]
    assert kept[: len(said)] == said
    assert len(kept) <= len(said) + 1
