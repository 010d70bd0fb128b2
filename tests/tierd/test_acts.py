"""Words of the journal: known ones are members, unknown ones stay as they are and equal no member."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.act.gate_world import FINDING, World
from tests.tierd.act.gate_world import world as world
from tests.tierd.act.movers.minilustre import FLASH
from tierd.act.journal.reader import JournalReader
from tierd.acts import ActKind, Outcome, Verdict
from tierd.daemon.status import act_answer
from tierd.model import Action

WORDS = {
    ActKind: "set-default-layout set-default-striping migrate advise",
    Outcome: "under-way done dry-run already refused gave-way failed doubtful gone interrupted undoing undone",
    Verdict: " too-early helped did-not-help harmed-others cannot-tell taken-back",
}


def test_the_words_of_journals_labels_and_json_never_change() -> None:
    found = {kind: " ".join(word.replace(" ", "-") for word in kind) for kind in WORDS}
    assert found == WORDS


@pytest.mark.parametrize("kind", [ActKind, Outcome, Verdict])
@given(word=st.text())
def test_any_word_is_read_and_kept(kind: type[Outcome], word: str) -> None:
    read = kind.from_journal(word)
    assert (read, str(read), json.dumps(read), hash(read)) == (word, word, json.dumps(word), hash(word))
    assert read.known == (word in list(kind))
    assert read.known == any(read is member for member in kind)


def test_an_act_of_a_later_release_is_shown_and_left_alone(world: World, tmp_path: Path) -> None:
    """A later release may have outcomes and kinds of its own, and an administrator may install an earlier one again."""
    (path,) = world.files(1)
    act = world.journal.intend(Action(ActKind.from_journal("compress"), FLASH, "why", FINDING.key, path=path),
                               world.finding, None, 1.0, False)
    world.journal.end(act, Outcome.from_journal("half-done"), "", 2.0)
    reader = JournalReader(tmp_path / "journal.sqlite")
    (entry,) = reader.last(10)
    assert (entry.kind, entry.outcome, entry.kind.known, entry.outcome.known) == ("compress", "half-done", False, False)
    assert (act_answer(entry).kind, act_answer(entry).outcome) == ("compress", "half-done")
    assert reader.sums.of_all() == {"half-done": 1}
    assert world.journal.acts_in_force(world.finding) == [] == world.journal.unfinished()
    assert world.undo(entry, "by hand").outcome == Outcome.REFUSED
    assert world.pool(path) == "hdd"
