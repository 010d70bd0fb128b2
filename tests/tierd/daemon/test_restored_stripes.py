"""After a verdict against the act, files that got other stripes get their earlier layout, once they are closed."""

from collections import Counter
from pathlib import Path

import pytest

from lustre.layout.model import Component, Layout
from tests.tierd.simulated import World, world
from tierd.act.undo import Undo, UndoResult
from tierd.acts import ActKind, Outcome, Verdict
from tierd.config.load import parse
from tierd.daemon.remediation import Remediation, reopened_remediations
from tierd.daemon.states import State
from tierd.decide.plans import Plan
from tierd.model import Action, Finding
from tierd.policies.shared_file_contention import ContentionEvidence
from tierd.refusal import Reason

MIB = 1 << 20
ONE = Layout((Component(pool="hdd", stripe_count=1, stripe_size=MIB),), composite=False)
FOUR = Layout((Component(pool="hdd", stripe_count=4, stripe_size=MIB),), composite=False)
EVIDENCE = ContentionEvidence(openers=8, objects=1, targets_available=4, wanted_objects=4, bytes_per_second=1e8,
                              seconds=300.0)
FINDING = Finding("shared-file-contention", 1.0, "mpi.5", "", ("lustre-OST0002",), "…", EVIDENCE, ("/proj",),
                  subject="/proj/one")


def slower(tmp_path: Path, text: str = "") -> tuple[World, Remediation]:
    """A file was given four stripes, and its job got slower."""
    at = world(tmp_path, (), parse(f"[act]\non = ['shared-file-contention']\n{text}".encode(), "t.toml"))
    at.cluster.make_directory("/proj", ONE)
    at.cluster.make_file("/proj/one", 16 * MIB)
    number = at.journal.add_finding(FINDING)
    at.gate.approvals.decide(FINDING.key, "root", approved=True)
    at.gate.submit([Action(ActKind.MIGRATE, FOUR, "8 processes share it", FINDING.key, "/proj", "/proj/one",
                           16 * MIB)], number)
    at.run(until=20)
    assert stripes(at) == 4
    now = at.cluster.epoch
    case = Remediation(FINDING, number, now, now, FOUR, moves=Counter({Outcome.DONE: 1}), moved_at=now,
                       state=State.UNDOING, verdict=Verdict.DID_NOT_HELP, undo_reason="the job got slower",
                       judged_at=now)
    at.daemon.store.add(case)
    return at, case


def stripes(at: World, path: str = "/proj/one") -> int:
    layout = at.filesystem.layout(path)
    return len(layout.components[0].objects)


def first_outcome(at: World) -> str:
    return str(next(iter(at.journal.entries())).outcome)


@pytest.mark.parametrize("text", ["", "mode = 'ask'\n"], ids=["full", "ask"])
def test_a_closed_file_has_its_earlier_stripes_again_without_a_question(tmp_path: Path, text: str) -> None:
    at, case = slower(tmp_path, text)
    content = at.cluster.namespace.lookup("/proj/one").content
    at.run(until=40)
    assert stripes(at) == 1
    assert at.cluster.namespace.lookup("/proj/one").content == content
    assert (case.state, [entry.outcome for entry in at.journal.entries()]) == (State.UNDONE, ["undone", "done"])
    assert "UNDONE layout of /proj/one: the job got slower" in at.said
    assert at.gate.waiting == 0
    assert at.daemon.undoing.finding_by_hand(case.number, "root") == (0, [], []), "it is no moved file that was left"


def test_a_file_that_was_renamed_has_its_earlier_stripes_again(tmp_path: Path) -> None:
    at, _ = slower(tmp_path)
    inode = at.cluster.namespace.lookup("/proj/one")
    inode.parent.children["two"], inode.name = inode.parent.children.pop("one"), "two"
    at.run(until=60)
    assert stripes(at, "/proj/two") == 1
    assert first_outcome(at) == Outcome.UNDONE


def test_a_file_in_use_waits_until_it_is_closed(tmp_path: Path) -> None:
    at, case = slower(tmp_path)
    at.gate.dry_run = True  # begun after the act: the undo waits for its end
    at.run(until=30)
    assert (case.state, at.gate.waiting, len(list(at.journal.entries()))) == (State.UNDOING, 0, 1)
    at.gate.dry_run = False
    inode = at.cluster.namespace.lookup("/proj/one")
    inode.writers = 1
    at.run(until=60)
    assert (stripes(at), case.state) == (4, State.UNDOING)
    inode.writers = 0
    at.run(until=110)
    assert (stripes(at), case.state) == (1, State.CLOSED), "undone, and nothing is found about the file any more"


def test_an_undo_by_hand_that_fails_does_not_settle_the_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at, case = slower(tmp_path)
    at.cluster.namespace.lookup("/proj/one").writers = 1
    at.journal.begin_undo(1, at.cluster.epoch)  # tierd ended during it
    monkeypatch.setattr(Undo, "__call__", lambda *_: UndoResult(Outcome.FAILED, "Input/output error"))
    at.run(until=60)
    assert (stripes(at), case.state) == (4, State.UNDOING)


def test_a_file_that_stays_in_use_keeps_its_stripes_and_is_named(tmp_path: Path) -> None:
    at, case = slower(tmp_path, "[verify]\nmoving_seconds = 40\n")
    at.cluster.namespace.lookup("/proj/one").writers = 1
    at.run(until=80)
    assert (stripes(at), case.state, at.gate.waiting) == (4, State.CLOSED, 0)
    assert any("its job keeps it open; tierctl undo 1 restores it" in words for words in at.said)


def test_a_layout_that_somebody_changed_stays(tmp_path: Path) -> None:
    at, case = slower(tmp_path)
    two = Layout((Component(pool="hdd", stripe_count=2, stripe_size=MIB),), composite=False)
    at.filesystem.migrate("/proj/one", two)
    at.run(until=50)
    assert (stripes(at), case.state) == (2, State.UNDONE)
    assert any("somebody has changed the file or its layout since" in words for words in at.said)


@pytest.mark.parametrize(("cooldown_seconds", "left_alone"), [(21_600, True), (1, False)])
def test_the_file_is_not_rewritten_again_for_a_while(tmp_path: Path, cooldown_seconds: int, left_alone: bool) -> None:
    at, _ = slower(tmp_path, f"[verify]\ncooldown_seconds = {cooldown_seconds}\n")
    at.run(until=45)
    assert stripes(at) == 1
    again = Action(ActKind.MIGRATE, FOUR, "8 processes share it", FINDING.key, "/proj", "/proj/one", 16 * MIB)
    plan = at.daemon.planning.worth(FINDING, Plan((again,), ()))
    assert (not plan.actions) == left_alone
    assert [refusal.reason for refusal in plan.refusals] == [Reason.COOLING_DOWN] * left_alone


def test_files_that_wait_for_their_stripes_do_so_after_a_restart(tmp_path: Path) -> None:
    at, case = slower(tmp_path)
    at.journal.judgements.add(case.number, FINDING.kind, "hdd", 0, Verdict.DID_NOT_HELP, 0.0, case.judged_at)
    (again,) = reopened_remediations(at.journal, case.judged_at - 60)
    assert (again.state, again.verdict, again.judged_at) == (State.UNDOING, Verdict.DID_NOT_HELP, case.judged_at)
    assert (again.finding.key, again.moved, again.undo_reason) == (FINDING.key, 1, "it did not help")
    at.run(until=60)
    assert stripes(at) == 1
    assert list(reopened_remediations(at.journal, case.judged_at - 60)) == [], "what restores a file is not undone"
