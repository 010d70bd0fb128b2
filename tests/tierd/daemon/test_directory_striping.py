"""A default striping of directories over MDTs: set for a storm, judged by the operations there, and undone."""

from dataclasses import replace
from pathlib import Path

import pytest

from lustre.layout.directory import DefaultStriping
from simulator.cluster import Cluster
from simulator.jobs.metadata import StepFiles
from simulator.servers.mdt import MdtSettings
from simulator.settings import recorded_test_bed, with_nodes
from tests.tierd.logged import logged
from tests.tierd.simulated import World
from tierd.act.guard import JobCheck
from tierd.act.outcomes import CompletedAct
from tierd.act.undo import close_unfinished
from tierd.acts import ActKind, Outcome
from tierd.config.load import parse
from tierd.model import Action, Finding
from tierd.policies.metadata_storm import JUDGE_SECONDS, NO_LAYOUT, MetadataStormEvidence
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
