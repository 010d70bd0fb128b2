"""Acts for a job end with its work: moves are dropped when it has gone, and nothing is done where it worked before."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lustre.layout.model import same_shape
from simulator.scheduler import VirtualScheduler
from simulator.settings import recorded_test_bed
from tests.tierd.simulated import COVERING, HDD, STREAM, World, world
from tests.tierd.site import READ_AGAIN, altered
from tests.tierd.worlds import noise
from tierd.acts import ActKind, Outcome, Verdict
from tierd.config.settings import Settings
from tierd.daemon.log import judged_sentence
from tierd.daemon.observe import work_in
from tierd.daemon.status import snapshot_of
from tierd.model import Action, Evidence, Finding, JobLoad, NamespaceLoad, Window
from tierd.refusal import Reason
from tierd.verify.judgement import Judgement

GONE_SECONDS = 10.0
"""Nothing moves this long after the neighbour has gone."""
SMALL = Finding("noisy-neighbour", 0.0, "a.1", "s.1", (), "", noise())
ARRAY = replace(SMALL, aggressor="77_[]", tasks=("77_1", "77_2"))
RANDOM = replace(SMALL, evidence=noise(aggressor_bytes_per_file=0.0))
"""It writes at random in large files, so its writes are its own."""


def moves_done(at: World) -> int:
    return sum(entry.kind == ActKind.MIGRATE for entry in at.journal.entries())


def gone_at(at: World) -> float:
    """Stop the neighbour now."""
    at.cluster.stop(KEPT_FILES.job_id)
    return at.cluster.now


@pytest.fixture
def at(tmp_path: Path) -> World:
    """A world in which moves wait."""
    made = world(tmp_path, jobs=(STREAM, KEPT_FILES), settings=replace(Settings(), limits=SLOWLY))
    made.run_until_said("SET default layout", before=70)
    return made


@pytest.mark.parametrize("judged", [False, True])
def test_moves_of_a_neighbour_that_has_gone_are_dropped_and_a_kept_default_layout_stays(
        at: World, judged: bool) -> None:
    if judged:
        at.run_until_said("KEPT: it helped", before=220)
    else:
        at.run(until=at.cluster.now + 20)
    assert at.gate.waiting > 20
    gone = gone_at(at)
    at.run(until=gone + GONE_SECONDS)
    moved = moves_done(at)
    assert at.gate.waiting == 0
    assert not at.journal.queue.all()
    assert said(at, "waiting moves: mdt_small.1001 has stopped")
    assert at.daemon.counters.refusals[Reason.JOB_GONE] > 20
    at.run(until=gone + 90)
    assert moves_done(at) == moved
    layout = at.filesystem.layout(KEPT_FILES.directory)
    assert not judged or layout.components[0].pool == "flash"


def test_nothing_moves_for_a_neighbour_that_has_gone_though_readings_take_long(at: World) -> None:
    """The window in which it went still shows its work."""
    at.run(until=at.cluster.now + 40, cycle_seconds=20.0)
    assert at.gate.waiting > 20
    at.run(until=at.cluster.now + 5)
    gone, moved = gone_at(at), moves_done(at)
    assert moved > 2
    at.run(until=gone + 40, cycle_seconds=40.0)
    assert moves_done(at) == moved
    assert not said(at, "has stopped"), "its work in that window may have ended just now"
    at.run(until=gone + 120, cycle_seconds=40.0)
    assert moves_done(at) == moved
    assert at.gate.waiting == 0


def test_no_move_begins_ten_seconds_after_the_neighbour_has_gone_though_a_cycle_takes_nearly_as_long(at: World) -> None:
    """It goes just after a reading, so the next window still has its work."""
    at.run(until=at.cluster.now + 5)
    with VirtualScheduler(at.cluster) as scheduler:
        at.start(scheduler, cycle_seconds=9.0)
        scheduler.run_until(at.cluster.now + 27.5)
        gone, before = gone_at(at), moves_done(at)
        scheduler.run_until(gone + GONE_SECONDS)
        moved = moves_done(at)
        assert at.gate.waiting > 20
        assert moved > before
        scheduler.run_until(gone + 40)
        assert moves_done(at) == moved
        assert at.gate.waiting == 0


def test_a_neighbour_that_returns_gets_its_moves_back(at: World) -> None:
    """As between two phases, the second of which reads the files again."""
    at.run(until=at.cluster.now + 10)
    at.cluster.change(KEPT_FILES.job_id, files_per_second=0.001, rereads_per_second=0.001)
    at.run_until_said("waiting moves: mdt_small.1001 has stopped", before=at.cluster.now + 15)
    moved = moves_done(at)
    at.run(until=at.cluster.now + 20)
    assert moves_done(at) == moved
    at.cluster.change(KEPT_FILES.job_id, files_per_second=KEPT_FILES.files_per_second,
                      rereads_per_second=KEPT_FILES.rereads_per_second)
    at.run(until=at.cluster.now + 30)
    assert moves_done(at) > moved + 3


def test_ordered_moves_continue_when_a_neighbour_has_gone(at: World) -> None:
    place = KEPT_FILES.directory
    names = sorted(at.filesystem.entries(place))[:40]
    key = ("request", "root", place)
    at.gate.submit([Action(ActKind.MIGRATE, COVERING, "by hand", key, place, f"{place}/{name}") for name in names], 99)
    gone = gone_at(at)
    at.run(until=gone + GONE_SECONDS)
    assert at.gate.waiting == at.gate.queue.waiting_for(key) > 0
    before = moves_done(at)
    at.run(until=gone + 60)
    assert moves_done(at) > before


def test_only_the_directory_of_the_present_run_is_acted_on(tmp_path: Path) -> None:
    """Two runs of one job name, a minute and a half apart, in different directories."""
    first = replace(KEPT_FILES, directory="/proj/first", start_seconds=30.0, stop_seconds=45.0, files_per_second=40.0)
    second = replace(KEPT_FILES, directory="/proj/second", start_seconds=130.0)
    at = world(tmp_path, jobs=(STREAM, first, second))
    at.run(until=second.start_seconds)
    before = len(list(at.journal.entries()))
    at.run_until_said("SET default layout of /proj/second", before=second.start_seconds + 60)
    (finding,) = [each for each in at.daemon.findings if each.kind == "noisy-neighbour"]
    assert finding.directories == ("/proj/second",)
    at.run(until=at.cluster.now + 30)
    later = list(at.journal.entries())[before:]
    assert {entry.place if entry.kind == ActKind.SET_DEFAULT_LAYOUT else entry.place.rpartition("/")[0]
            for entry in later} == {"/proj/second"}
    assert {entry.kind for entry in later} == {ActKind.SET_DEFAULT_LAYOUT, ActKind.MIGRATE}


def test_an_act_is_refused_where_the_job_has_left_since_it_was_planned(at: World) -> None:
    (case,) = at.daemon.store
    at.cluster.make_directory("/proj/before", HDD)
    at.cluster.make_file("/proj/before/a", 1 << 16)
    actions = [Action(ActKind.SET_DEFAULT_LAYOUT, COVERING, "", case.finding.key, "/proj/before"),
               Action(ActKind.MIGRATE, COVERING, "", case.finding.key, "/proj/before", "/proj/before/a")]
    at.gate.drop(case.finding.key)
    at.gate.submit(actions, case.number)
    outcomes = at.gate.default_layouts.set_next()
    at.cluster.advance(3.0)  # until the limit allows a move
    outcomes += at.gate.pump(at.cluster.epoch + 10)
    assert [(each.action.kind, each.result, each.reason) for each in outcomes if "before" in each.action.directory] == [
        (ActKind.SET_DEFAULT_LAYOUT, "refused", Reason.JOB_ELSEWHERE),
        (ActKind.MIGRATE, "refused", Reason.JOB_ELSEWHERE)]
    assert same_shape(at.filesystem.layout("/proj/before") or COVERING, HDD)


def test_a_queued_file_that_no_longer_exists_is_reported_with_its_case(at: World) -> None:
    (case,) = at.daemon.store
    at.gate.drop(case.finding.key)
    at.gate.submit([Action(ActKind.MIGRATE, COVERING, "", case.finding.key, "/proj/ingest", "/proj/ingest/none")],
                   case.number)
    before, ended = case.needless_moves, case.moves.total()
    at.cluster.advance(3.0)  # until the limit allows a move
    at.daemon.remediations.moves_ended(at.gate.pump(at.cluster.epoch + 10))
    assert (case.needless_moves, case.moves.total()) == (before + 1, ended)
    (record,) = snapshot_of(at.daemon).cases
    assert f"{before + 1} needed no move" in record.done_text


def test_a_job_that_job_stats_does_not_list_is_found_with_its_files(tmp_path: Path) -> None:
    bed = recorded_test_bed()
    bed = replace(bed, mdts=tuple(replace(mdt, lists_jobs_again=False) for mdt in bed.mdts))
    first = replace(KEPT_FILES, directory="/proj/first", start_seconds=1.0, stop_seconds=5.0)
    second = replace(KEPT_FILES, directory="/proj/second", start_seconds=90.0)
    at = world(tmp_path, jobs=(STREAM, first, second), bed=bed)
    at.run(until=60)
    for mdt in at.cluster.mdts:  # an entry that was cleaned up does not come back
        mdt.jobs.clear(first.job_id)
    at.run_until_said("SET default layout of /proj/second", before=180)
    assert all(not any(entry.job_id == second.job_id for entry in mdt.jobs.entries(at.cluster.now))
               for mdt in at.cluster.mdts)
    (finding,) = [each for each in at.daemon.findings if each.kind == "noisy-neighbour"]
    numbers = finding.evidence.numbers()
    assert numbers["aggressor_bytes_per_file"] > 0
    assert 0.3 * second.files_per_second < numbers["aggressor_files_per_second"] < 1.3 * second.files_per_second
    at.run_until_said("MOVED", before=220)


@pytest.mark.parametrize(("job", "loads", "namespace", "finding", "at_work"), [
    ("a.1", {"reads": 1.0}, {}, SMALL, True), ("a.1", {"writes": 1.0}, {}, SMALL, False),
    ("a.1", {"writes": 1.0}, {"closes": 2.0}, SMALL, False), ("a.1", {}, {"other_operations": 1.0}, SMALL, True),
    ("a.1", {"writes": 1.0}, {"opens": 1.0, "closes": 1.0}, SMALL, True), ("a.1", {}, {}, SMALL, False),
    ("a.1", {"writes": 9.0}, {}, RANDOM, True),
    ("77_2", {"reads": 1.0}, {}, ARRAY, True), ("77_9", {"reads": 1.0}, {}, ARRAY, True),
    ("78_1", {"reads": 1.0}, {}, ARRAY, False)])
def test_only_what_a_job_does_itself_shows_that_it_is_at_work(
        job: str, loads: Mapping[str, Any], namespace: Mapping[str, float], finding: Finding, at_work: bool) -> None:
    """Its client writes data and closes files for a while after it has ended. An array is at work with any task."""
    window = Window(0.0, 5.0, {("t", job): JobLoad("t", job, **loads)} if loads else {},
                    {job: NamespaceLoad(job, **namespace)} if namespace else {})
    assert work_in(window)(finding, finding.tasks or (finding.aggressor,)) is at_work


# A verdict comes at its time, whatever still waits; one against the act only from what was measured without moves


SLOWLY = replace(Settings().limits, files_per_second=0.5)
KEPT_FILES = replace(READ_AGAIN, keep=3000)


def said(at: World, words: str) -> list[str]:
    return [sentence for sentence in at.said if words in sentence]


def test_before_a_verdict_against_the_act_its_moves_wait(tmp_path: Path) -> None:
    settings = altered(Settings(), limits=SLOWLY, verify={"min_gain": 0.999999, "judge_seconds": 20.0})
    at = world(tmp_path, jobs=(STREAM, KEPT_FILES), settings=settings)
    at.run_until_said("SET default layout", before=70)
    at.cluster.slow_down(2, 1.35)  # a disk gets slow: the stream stays slow whatever the layout
    at.run_until_said("the remaining moves wait while the effect is measured", before=140)
    at.run(until=at.cluster.now + 5)  # what the engine had in hand
    held, moved = at.gate.waiting, len(list(at.journal.entries(Outcome.DONE)))
    assert held > 30
    at.run(until=at.cluster.now + 15)
    assert len(list(at.journal.entries(Outcome.DONE))) == moved
    assert not said(at, "UNDOING")
    at.run_until_said("UNDOING: it did not help", before=220)
    at.run(until=at.cluster.now + 5)
    assert said(at, f"dropped {held} queued moves: it did not help")
    assert at.gate.waiting == 0


def test_moves_wait_while_their_stream_is_slower_than_before_the_act(tmp_path: Path) -> None:
    """The moves themselves may be the reason. Without them, a sick disk shows that the act is not: it stands."""
    settings = altered(Settings(), limits=SLOWLY, verify={"judge_seconds": 20.0})
    at = world(tmp_path, jobs=(STREAM, KEPT_FILES), settings=settings)
    at.run_until_said("SET default layout", before=70)
    at.cluster.slow_down(2, 3.0)
    at.run_until_said("the remaining moves wait while the effect is measured", before=140)
    at.run_until_said("KEPT: the effect cannot be judged", before=220)
    assert not said(at, "UNDOING")


# Sentences of the log and the journal


FINDING = Finding("noisy-neighbour", 0.0, "small.1", "stream.2", (), "", Evidence())


def test_rates_of_a_verdict_are_scaled_and_have_units() -> None:
    measured = Judgement(Verdict.HELPED, 176.8e9, 44e6, 132.6e9, regained=(0.75, 0.6, 0.9))
    numbers = ("stream.2: 177 GB/s without the neighbour, 44.0 MB/s with it, 133 GB/s after the act; "
               "75% of the loss regained (60% to 90%)")
    assert judged_sentence(FINDING, measured) == f"KEPT: it helped. {numbers}"
