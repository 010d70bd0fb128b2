import os
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lustre.layout.model import Component, Layout
from tests.tierd.worlds import noise
from tierd.act.journal.connection import pragma
from tierd.act.journal.entry import Stamp
from tierd.act.journal.reader import JournalReader
from tierd.act.journal.writer import Journal
from tierd.act.staging import StagingStore
from tierd.acts import ActKind, Outcome
from tierd.model import Action, Finding
from tierd.text import printable

MIB = 1 << 20
BEFORE = Layout((Component(pool="hdd", stripe_count=2, stripe_size=4 * MIB),), composite=False)
AFTER = Layout((Component(0, MIB, "flash"), Component(MIB, None, "hdd")))
FINDING = Finding("noisy-neighbour", 1.0, "m", "s", ("lustre-OST0002",), "…", noise(), ("/proj",))


def action(directory: str = "/proj") -> Action:
    return Action(ActKind.SET_DEFAULT_LAYOUT, AFTER, "because", FINDING.key, directory=directory)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.sqlite")


def test_nobody_else_reads_whose_files_were_moved(tmp_path: Path) -> None:
    before = os.umask(0o022)  # of a shell, where the unit has a stricter one
    try:
        made = Journal(tmp_path / "journal.sqlite")
        made.add_finding(FINDING)
        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
        made.close()
    finally:
        os.umask(before)


def test_of_very_many_sentences_about_a_finding_the_last_are_shown(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    number = journal.add_finding(FINDING)
    journal.add_messages(number, map(str, range(1001)), 5.0)  # of an imbalance that holds for days
    shown = [message.sentence for message in JournalReader(tmp_path / "journal.sqlite").messages(number)]
    assert (len(shown), shown[0], shown[-1]) == (1000, "1", "1000")


def test_a_kill_leaves_the_whole_state_or_that_of_before(journal: Journal) -> None:
    journal.db.raw.execute("CREATE TRIGGER kill BEFORE INSERT ON state WHEN NEW.name = 'paused_until' "
                           "BEGIN SELECT RAISE(ABORT, 'killed'); END")
    with pytest.raises(sqlite3.IntegrityError):
        journal.set_state({"paused": "maintenance", "paused_until": "5.0"})
    assert journal.state() == {}


def test_after_an_outcome_that_a_power_cut_may_lose_the_next_intent_is_on_the_disk(journal: Journal) -> None:
    act = journal.intend(action(), journal.add_finding(FINDING), BEFORE, 2.0, dry_run=False)
    journal.end(act, Outcome.DONE, "", 3.0)
    assert pragma(journal.db, "synchronous") == 2, "FULL"


def test_moved_since_counts_real_moves_only(journal: Journal) -> None:
    def moved(outcome: Outcome | None, ended_at: float, size_bytes: int, *, dry_run: bool = False) -> None:
        move = Action(ActKind.MIGRATE, AFTER, "because", FINDING.key, path="/proj/a", size_bytes=size_bytes)
        number = journal.intend(move, finding, BEFORE, 2.0, dry_run=dry_run)
        if outcome:
            journal.end(number, outcome, "", ended_at)

    finding = journal.add_finding(FINDING)
    assert journal.moved_since(0.0) == (0, 0)
    moved(Outcome.DONE, 5.0, 1)
    assert journal.moved_since(6.0) == (0, 0)
    moved(Outcome.DONE, 10.0, 20)
    moved(Outcome.GAVE_WAY, 10.0, 300)
    moved(Outcome.UNDONE, 10.0, 4000)
    moved(None, 0.0, 50_000)
    moved(Outcome.REFUSED, 10.0, 6)
    moved(Outcome.DRY_RUN, 10.0, 7, dry_run=True)
    journal.end(journal.intend(action(), finding, BEFORE, 9.0, dry_run=False), Outcome.DONE, "", 10.0)
    assert journal.moved_since(6.0) == (5, 20 + 300 + 2 * 4000 + 50_000)


def test_only_the_last_move_of_a_file_says_whether_it_was_done(journal: Journal) -> None:
    finding = journal.add_finding(FINDING)
    for path, outcomes in (("/proj/late", (Outcome.GAVE_WAY, Outcome.DONE)), ("/proj/busy", (Outcome.GAVE_WAY,)),
                           ("/proj/again", (Outcome.FAILED, None))):
        for outcome in outcomes:
            move = Action(ActKind.MIGRATE, AFTER, "because", FINDING.key, path=path, size_bytes=1)
            act = journal.intend(move, finding, BEFORE, 2.0, dry_run=False)
            if outcome is not None:
                journal.end(act, outcome, "somebody writes", 3.0)
    assert StagingStore(journal.db).reasons(finding) == {"somebody writes": 1}
    assert journal.reader.not_moved(finding, 0.0) == [("somebody writes", 1, "/proj/busy")]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.text(st.characters(codec=None), max_size=40))
def test_words_may_hold_anything_and_are_kept_for_a_terminal(journal: Journal, words: str) -> None:
    """Messages of ``lfs`` contain the file's name, which need not be valid text."""
    number = journal.add_finding(replace(FINDING, sentence=words))
    act = journal.intend(replace(action(), reason=words), number, BEFORE, 2.0, dry_run=False)
    journal.end(act, Outcome.FAILED, words * 1000, 3.0)
    journal.add_messages(number, [words], 3.0)
    journal.queue.add([replace(action(), path="/proj/a", reason=words)], number, Stamp("lustre", False, 1.0))
    entry = journal.entry(act)
    assert entry.detail.isprintable()
    assert entry.reason == printable(words)
