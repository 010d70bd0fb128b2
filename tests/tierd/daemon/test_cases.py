"""Cases: curves of victims, device time before and after the acts, why nothing is done, refusals by reason."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.layout.model import Component, Layout
from tests.tierd.simulated import world
from tests.tierd.worlds import noise
from tierd.act.journal.reader import JournalReader
from tierd.act.journal.writer import Journal
from tierd.act.outcomes import MAX_REASONS, OTHER_REASONS, CompletedAct
from tierd.acts import ActKind, Outcome, Verdict
from tierd.cli.control import finding_lines
from tierd.daemon.answers import Case, FindingsAnswer, TargetTimeRow, to_json
from tierd.daemon.remediation import Remediation
from tierd.daemon.states import State
from tierd.daemon.status import all_cases, found_case, mean_time, throughput_of, with_measurements
from tierd.detect.costs import DeviceCosts
from tierd.detect.device_time import TargetTime
from tierd.model import Action, Finding, JobLoad, SlowdownEvidence, Window
from tierd.policies.registry import evidence_of
from tierd.text import Carrier

ZERO = (0.0, 0.0, 0.0)
COSTS = DeviceCosts((1e-8, 1e-8, 0.01), (ZERO, ZERO, ZERO))
EVIDENCE = noise(victim_usual_bytes_per_second=80e6, victim_bytes_per_second=40e6, slowdown=2.0, aggressor_came_at=85.0)
FINDING = Finding("noisy-neighbour", 100.0, "noise.1", "stream.2", ("a", "b"), "slow", EVIDENCE, ("/in",))


def window(end: float, **mb_by_target: float) -> Window:
    """A window of five seconds in which the victim wrote so many MB to each target."""
    return Window(end - 5, end, {(t, "stream.2"): JobLoad(t, "stream.2", write_bytes=5e6 * mb)
                                 for t, mb in mb_by_target.items()}, {})


def target_time(target: str, noise: float) -> TargetTime:
    return TargetTime(target, COSTS, {"stream.2": (0.0, 40e6, 10.0), "noise.1": (0.0, 0.0, 100 * noise)})


LAYOUT = Layout((Component(pool="flash"),))


def remediation(state: State = State.JUDGING, outcome: Outcome = Outcome.DONE, **changed: object) -> Remediation:
    done = CompletedAct(Action(ActKind.SET_DEFAULT_LAYOUT, LAYOUT, "", FINDING.key, "/in"), outcome, "", 1)
    made = Remediation(FINDING, 1, 105.0, 105.0, LAYOUT, [done], state=state, first_act_at=105.0)
    return replace(made, **changed)  # type: ignore[arg-type]


def none_waits(_: tuple[str, str, str]) -> tuple[int, int]:
    return 0, 0


@given(st.integers(1, 12), st.integers(0, 60))
def test_a_curve_has_a_point_for_each_window_after_a_time(count: int, after: int) -> None:
    """Targets that do not hold the stream up count too, as in what it usually gets."""
    windows = [window(5.0 * n, a=n % 7, b=1, elsewhere=99) for n in range(1, 1 + count)]
    (case,) = all_cases({1: FINDING}, (), windows, none_waits)
    assert throughput_of(case, windows, after) == tuple(
        (5.0 * n, 1e6 * (n % 7 + 100)) for n in range(1, 1 + count) if 5 * n > after)


def test_device_time_before_the_first_act_stays(tmp_path: Path) -> None:
    noisy, quiet = ({t: target_time(t, noise) for t in "ab"} for noise in (0.5, 0.1))
    none_stored = JournalReader(tmp_path / "journal.sqlite")
    Journal(tmp_path / "journal.sqlite").close()

    def shown(case: Remediation) -> Case:
        (found,) = all_cases({1: FINDING}, (case,), (), none_waits)
        return with_measurements(found, none_stored, (), quiet)

    def share(row: TargetTimeRow | None) -> float:
        return {job.job: job.share for job in row.jobs}["noise.1"]

    acted = shown(remediation(times_before=noisy))
    assert share(acted.time_now) < share(acted.time_before)
    assert shown(remediation(times_before=noisy, outcome=Outcome.DRY_RUN)).time_before is None


def test_mean_time_weighs_targets_by_how_busy_they_are() -> None:
    row = mean_time(("a", "b", "unknown"), {"a": target_time("a", 0.2), "b": target_time("b", 0.2)})
    assert row is not None
    assert sum(job.share for job in row.jobs) == pytest.approx(1.0, abs=1e-3)
    assert row.utilisation == pytest.approx(0.7)
    assert mean_time(("unknown",), {}) is None


def test_cases_whose_finding_holds_come_first() -> None:
    worse = replace(FINDING, victim="worse.3", evidence=replace(EVIDENCE, victim_bytes_per_second=8e6))
    over = replace(FINDING, victim="over.4")
    closed = remediation(State.CLOSED, finding=over, number=7, verdict=Verdict.HELPED)
    found = all_cases({1: FINDING, 2: worse}, (closed,), (), none_waits)
    assert [(case.finding, case.active, case.state) for case in found] == [
        (2, True, ""), (1, True, ""), (7, False, "closed")]


def test_a_finding_that_begins_again_after_its_case_was_closed_is_a_case_of_its_own() -> None:
    """The page showed it as the closed one, F1, while tierctl status named it F2."""
    closed = remediation(State.CLOSED, verdict=Verdict.UNDONE_BY_HAND)
    now = replace(FINDING, time=400.0)
    again, before = all_cases({2: now}, (closed,), (), none_waits)
    assert (again.finding, again.active, again.state, again.verdict, again.since) == (2, True, "", "", 400.0)
    assert (before.finding, before.active, before.state) == (1, False, "closed")
    (same,) = all_cases({1: FINDING}, (closed,), (), none_waits)
    assert (same.finding, same.active, same.state) == (1, True, "closed")


def test_refusals_are_counted_by_reason_and_their_number_is_bounded(tmp_path: Path) -> None:
    acts = world(tmp_path).gate.completed_acts
    action = Action(ActKind.MIGRATE, Layout((Component(pool="flash"),)), "", ("", "", ""), path="/f")
    for number in range(30):
        acts.counted(CompletedAct(action, Outcome.REFUSED, f"it has {number} hard links", 0))
    assert acts.reasons == {(Outcome.REFUSED, "it has # hard links"): 30}
    for number in range(100):
        acts.counted(CompletedAct(action, Outcome.FAILED, "x" * number, 0))
    assert len(acts.reasons) <= MAX_REASONS + 2
    assert acts.reasons[Outcome.FAILED, OTHER_REASONS] == 100 - (MAX_REASONS - 1)
    acts.counted(CompletedAct(action, Outcome.DONE, "moved", 0))
    assert sum(acts.reasons.values()) == 130


def test_no_json_has_an_infinite_number(tmp_path: Path) -> None:
    """A victim that stands still is slowed down infinitely."""
    evidence = SlowdownEvidence(victim_usual_bytes_per_second=66e6, victim_bytes_per_second=0.0,
                                slowdown=float("inf"), loss_low=0.9, loss_high=1.0, loss_probability=1.0,
                                carrier=Carrier.ARRIVAL)
    finding = replace(FINDING, kind="shared-bandwidth", evidence=evidence)
    said = json.loads(json.dumps(to_json(found_case(finding, 1, active=True)), allow_nan=False))
    assert said["evidence"]["slowdown"] is None
    shown = FindingsAnswer((Case.from_json(said),), looked=True)
    assert "    slowdown: infinite" in finding_lines(shown)
    journal = Journal(tmp_path / "journal.sqlite")
    row = JournalReader(tmp_path / "journal.sqlite").finding(journal.add_finding(finding))
    assert evidence_of(finding.kind, row[1].evidence.numbers()) == evidence  # type: ignore[index]
    journal.close()
