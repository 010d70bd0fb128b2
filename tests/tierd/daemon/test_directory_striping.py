"""A default striping of directories over MDTs: set for a storm, judged by the operations there, and undone."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from lustre.layout.directory import DefaultStriping
from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.jobs.metadata import StepFiles
from simulator.servers.mdt import MdtSettings
from simulator.settings import recorded_test_bed, with_nodes
from tests.tierd.logged import logged
from tests.tierd.simulated import World, world
from tierd.act.guard import JobCheck
from tierd.act.outcomes import CompletedAct
from tierd.act.undo import Undo, UndoResult, close_unfinished
from tierd.acts import ActKind, Outcome, Verdict
from tierd.config.load import parse
from tierd.daemon.remediation import Remediation, reopened_remediations
from tierd.daemon.states import State
from tierd.decide.plans import Plan
from tierd.model import Action, Finding
from tierd.policies.metadata_storm import JUDGE_SECONDS, NO_LAYOUT, MetadataStormEvidence
from tierd.policies.shared_file_contention import ContentionEvidence
from tierd.refusal import Reason, Refusal
from tierd.simulation import world as simulation

ON = ("[act]\non = ['metadata-storm']\n[detect.metadata_storm]\nenter = 1.5\n")
Load = tuple[StepFiles, float, int]
"""A job, the factor of the processor times of each of two equal MDTs, and their processors."""
NODES: Load = StepFiles(nodes=8, threads=4, files_each=24), 250.0, 2
"""The processes of eight nodes wait for the processors of one MDT: a second one does half of the work."""
ONE_NODE: Load = StepFiles(threads=40, files_each=24), 165.0, 2
"""The kernel of one node makes one file at a time in a directory, so a second MDT changes nothing."""
ALONE: Load = StepFiles(nodes=2, threads=1, files_each=75, start_seconds=200.0), 325.0, 64
"""Two processes on two nodes wait for nobody: another MDT changes nothing. They begin shortly before the act."""
UNTIL = 400.0
"""Where it helps, the act comes after 330 s."""


def storm_cluster(load: Load) -> Cluster:
    job, work_factor, cores = load
    mdt = MdtSettings(cores=cores, work_factor=work_factor)
    return Cluster(replace(with_nodes(recorded_test_bed(), job.nodes), mdts=(mdt, mdt)), (job,))


def storm(tmp_path: Path, load: Load = NODES, text: str = ON, dry_run: bool = False) -> World:
    said = logged()
    at = simulation.wire(storm_cluster(load), parse(text.encode(), "t.toml"), tmp_path, dry_run)
    return World(at.cluster, at.filesystem, at.source, at.gate, at.undo, at.journal, at.daemon, said)


def run_until_judged(at: World, latest: float = 1450) -> None:
    """Run until the act is judged, at the latest until that time in seconds."""
    while at.cluster.now < latest and not any(entry.detail for entry in at.journal.entries()):
        at.run(until=at.cluster.now + 50, cycle_seconds=10)


def test_the_directories_of_later_steps_are_striped_and_the_act_is_kept(tmp_path: Path) -> None:
    at = storm(tmp_path)
    run_until_judged(at)
    (entry,) = at.journal.entries()
    assert (entry.kind, entry.place, entry.outcome) == (ActKind.SET_DEFAULT_STRIPING, "/proj/steps", Outcome.DONE)
    assert at.filesystem.default_striping("/proj/steps") == entry.after is not None
    last = max(at.filesystem.subdirectories("/proj/steps"))
    assert at.filesystem.directory_stripes(f"/proj/steps/{last}").stripe_count == 2
    assert entry.detail.startswith("kept: it helped: "), at.said
    assert any("SET default striping of /proj/steps over MDTs: lfs setdirstripe -D -c 2" in words for words in at.said)
    assert at.undo(entry, "by tierctl").outcome == Outcome.UNDONE
    assert at.filesystem.default_striping("/proj/steps") is None


def test_for_a_job_on_one_node_nothing_is_set(tmp_path: Path) -> None:
    at = storm(tmp_path, ONE_NODE)
    at.run(UNTIL, cycle_seconds=10)
    assert list(at.journal.entries()) == []
    assert any("by steps.1012 on one node, which gains nothing from more MDTs here" in words for words in at.said)
    assert any("one node works in the busy directory" in words for words in at.said), at.said


def test_an_act_without_gain_is_undone(tmp_path: Path) -> None:
    at = storm(tmp_path, ALONE)
    run_until_judged(at, 1650)
    (entry,) = at.journal.entries()
    assert entry.outcome == Outcome.UNDONE, at.said
    assert entry.detail.startswith("it did not help: ")
    assert at.filesystem.default_striping("/proj/steps") is None


def test_after_a_restart_an_act_is_judged_by_minutes_and_not_by_seconds(tmp_path: Path) -> None:
    """The operations before the act are a mean of ten minutes."""
    at = storm(tmp_path)
    found = Finding("metadata-storm", at.cluster.epoch, "", "", (), sentence="", evidence=MetadataStormEvidence(
        creates_per_second=1.0, opens_per_second=0.0, unlinks_per_second=0.0, share=1.0, metadata_targets=2,
        parent_operations_per_second=2.0))
    at.gate.submit([planned()], at.journal.add_finding(found))
    assert at.gate.default_layouts.set_next()
    at.cluster.advance(JUDGE_SECONDS)  # tierd was away
    at.run(at.cluster.now + 300)
    assert [entry.detail for entry in at.journal.entries()] == [""]
    at.run(at.cluster.now + 300)
    assert [entry.detail for entry in at.journal.entries()] != [""]


@pytest.mark.parametrize(("text", "dry_run", "outcomes"), [
    (ON.replace("on = ['metadata-storm']", ""), False, set()),
    (ON, True, {Outcome.DRY_RUN})])
def test_nothing_is_set_without_permission(tmp_path: Path, text: str, dry_run: bool, outcomes: set[Outcome]) -> None:
    at = storm(tmp_path, text=text, dry_run=dry_run)
    at.run(UNTIL, cycle_seconds=10)
    assert any("FOUND metadata-storm: /proj/steps/" in words for words in at.said)
    assert {entry.outcome for entry in at.journal.entries()} == outcomes
    assert at.filesystem.default_striping("/proj/steps") is None


def planned() -> Action:
    """The act of a storm, planned by hand."""
    return Action(ActKind.SET_DEFAULT_STRIPING, NO_LAYOUT, "because", ("metadata-storm", "", "/proj/steps/step00000"),
                  "/proj/steps", striping=DefaultStriping(2, -1, "fnv_1a_64", 1))


def what_becomes_of(at: World, action: Action) -> CompletedAct:
    at.gate.submit([action], 1)
    (outcome,) = at.gate.default_layouts.set_next()
    return outcome


def test_a_default_that_somebody_set_meanwhile_stays(tmp_path: Path) -> None:
    at = storm(tmp_path)
    action = planned()
    assert action.striping is not None
    theirs = replace(action.striping, stripe_count=1, mdt_index=1)
    at.filesystem.set_default_striping("/proj/steps", theirs)
    assert what_becomes_of(at, action).result == Outcome.REFUSED
    assert at.filesystem.default_striping("/proj/steps") == theirs


def test_a_striping_that_was_set_despite_an_error_is_in_the_journal_as_done(tmp_path: Path) -> None:
    at = storm(tmp_path)
    change = at.filesystem.set_default_striping

    def loses_the_reply(place: str, striping: DefaultStriping | None, _: object) -> None:
        change(place, striping)
        raise OSError(5, "Input/output error")

    at.filesystem.set_default_striping = loses_the_reply  # type: ignore[method-assign, assignment]
    assert what_becomes_of(at, planned()).result == Outcome.DONE


class WorksElsewhere(JobCheck):
    def elsewhere(self, action: Action) -> Refusal | None:
        return Refusal(Reason.JOB_ELSEWHERE, f"its job does not work in {action.directory} now")


def test_a_striping_is_set_above_the_directories_in_which_the_job_works(tmp_path: Path) -> None:
    at = storm(tmp_path)
    at.gate.default_layouts.jobs = WorksElsewhere()
    assert what_becomes_of(at, planned()).result == Outcome.DONE


def test_the_default_of_a_new_file_system_is_replaced_and_restored(tmp_path: Path) -> None:
    at = storm(tmp_path)
    usual = at.filesystem.default_striping("/")
    at.filesystem.set_default_striping("/proj/steps", usual)
    outcome = what_becomes_of(at, planned())
    assert outcome.result == Outcome.DONE, outcome.detail
    (entry,) = at.journal.entries()
    assert at.undo(entry, "by tierctl").outcome == Outcome.UNDONE
    assert at.filesystem.default_striping("/proj/steps") == usual


@pytest.mark.parametrize(("was_set", "outcome"), [(True, Outcome.DONE), (False, Outcome.INTERRUPTED)])
def test_a_kill_during_the_act_is_resolved_by_the_directory(tmp_path: Path, was_set: bool, outcome: Outcome) -> None:
    at = storm(tmp_path)
    action = planned()
    fid = at.filesystem.status("/proj/steps").fid
    number = at.journal.intend(action, 1, None, at.cluster.epoch, False, fid)
    if was_set:
        at.filesystem.set_default_striping("/proj/steps", action.striping)
    assert [found for _, found, _ in close_unfinished(at.journal, at.filesystem, at.cluster.epoch)] == [outcome]
    if was_set:
        entry = at.journal.entry(number)
        assert entry is not None
        at.journal.begin_undo(number, at.cluster.epoch)
        at.filesystem.set_default_striping("/proj/steps", None)
        assert [found for _, found, _ in close_unfinished(at.journal, at.filesystem, at.cluster.epoch)] == [
            Outcome.UNDONE]


# After a verdict against the act, files that got other stripes get their earlier layout, once they are closed


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
