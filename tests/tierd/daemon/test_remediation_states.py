"""A remediation takes only the steps of its state machine, and no default layout is lost from sight."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.tierd.daemon.remediation_world import Planned, RemediationWorld
from tests.tierd.simulated import COVERING, world
from tests.tierd.worlds import noise
from tierd.acts import JUDGED_VERDICTS, ActKind, Verdict
from tierd.daemon.judging import Judge
from tierd.daemon.remediation import Remediation
from tierd.daemon.states import OPEN, TRANSITIONS, UNDOING_VERDICTS, State
from tierd.daemon.undoing import CaseUndo
from tierd.model import Action, Facts, Finding
from tierd.verify.judgement import Judgement

FOUND = Finding("noisy-neighbour", 0.0, "small.2", "stream.1", (), "it is slow", noise(), ())
PLACES = ("/a", "/b", "/c")


def remediation(state: State = State.PLANNED, *, ended_at: float | None = None) -> Remediation:
    return Remediation(FOUND, 1, 0.0, 0.0, COVERING, state=state, ended_at=ended_at)


def test_each_state_can_be_reached_and_left_but_the_last() -> None:
    assert set(TRANSITIONS) == set(State)
    reached, todo = set(), [State.PLANNED]
    while todo:
        state = todo.pop()
        if state not in reached:
            reached.add(state)
            todo += TRANSITIONS[state]
    assert reached == set(State)
    assert [state for state in State if not TRANSITIONS[state]] == [State.FORGOTTEN]


def test_another_step_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="F1: undoing -> judging"):
        remediation(State.UNDOING).to(State.JUDGING)


@pytest.mark.parametrize("state", [State.KEPT, State.UNDONE])
def test_it_is_closed_once_it_is_settled_and_its_finding_has_ended(state: State) -> None:
    first = remediation(State.JUDGING)
    first.settle(state)
    assert first.state is state
    first.finding_ended(1.0)
    assert first.closed
    other = remediation(State.JUDGING, ended_at=1.0)
    other.settle(state)
    assert other.closed


def test_a_finding_that_returns_before_the_verdict_goes_on_with_its_remediation() -> None:
    case = remediation(State.JUDGING)
    case.finding_ended(1.0)
    assert case.state is State.JUDGING
    case.finding_began()
    case.settle(State.KEPT)
    assert case.state is State.KEPT


class Steps(RuleBasedStateMachine):
    """Findings, acts, verdicts and undo in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        at = world(Path(self.folder.name), jobs=())
        for place in PLACES:
            at.cluster.make_directory(place)
        self.setup = RemediationWorld(at, Planned(lambda found: tuple(
            Action(ActKind.SET_DEFAULT_LAYOUT, COVERING, "because", found.key, place) for place in found.directories)))
        self.setup.finding_log.begun(FOUND)
        self.undoing = CaseUndo(self.setup.parts, self.setup.store, self.setup.finding_log)
        self.judge = Judge(self.setup.parts, self.setup.store, self.undoing, self.setup.finding_log,
                           history=lambda: ([], {}), facts=Facts)
        self.space = at.filesystem.space

    def teardown(self) -> None:
        self.folder.cleanup()

    @property
    def case(self) -> Remediation | None:
        return self.setup.store.get(FOUND.key)

    @rule(places=st.sets(st.sampled_from(PLACES), min_size=1))
    def plan(self, places: set[str]) -> None:
        self.setup.at.cluster.advance(11)
        self.setup.remediations.act([replace(FOUND, directories=tuple(sorted(places)))])

    @rule()
    def set_defaults(self) -> None:
        self.setup.remediations.set_defaults()

    @rule()
    def ended(self) -> None:
        if self.case is not None:
            self.case.finding_ended(1.0)

    @rule()
    def began(self) -> None:
        if self.case is not None:
            self.case.finding_began()

    @rule(verdict=st.sampled_from(list(JUDGED_VERDICTS)))
    def verdict(self, verdict: Verdict) -> None:
        case = self.case
        if case is not None and case.state in OPEN:
            self.judge.settle(case, Judgement(verdict, 2.0, 1.0, 1.5, 0.5))

    @rule()
    def judge_again(self) -> None:
        self.judge.judge(self.setup.at.cluster.now)

    @rule()
    def undone_by_hand(self) -> None:
        self.undoing.finding_by_hand(1, "root")

    @rule()
    def flash_runs_full(self) -> None:
        full = {target: replace(room, avail_bytes=0) for target, room in self.space().items()}
        self.setup.at.filesystem.space = lambda: full  # type: ignore[method-assign]
        self.undoing.watch_free_space()
        self.setup.at.filesystem.space = self.space  # type: ignore[method-assign]

    @invariant()
    def state_and_fields_agree(self) -> None:
        case = self.case
        if case is not None:
            assert bool(case.undo_reason) <= (case.state in {State.UNDOING, State.UNDONE, State.CLOSED})
            assert case.closed <= (case.ended_at is not None)
            assert case.abandoned == (case.verdict in UNDOING_VERDICTS)
            assert not case.moves_held or case.state in OPEN

    @invariant()
    def what_stands_is_watched(self) -> None:
        """A default layout in force belongs to a remediation, or to the ones of forgotten remediations."""
        case = self.case
        known = {outcome.entry for outcome in (*case.defaults, *case.earlier)} if case is not None else set()
        standing = {entry.id for entry in self.setup.at.journal.judgements.default_layouts_in_force()}
        assert standing <= known | {entry.id for entry in self.undoing._standing}


TestSteps = Steps.TestCase
TestSteps.settings = settings(max_examples=30, stateful_step_count=25, deadline=None,
                              suppress_health_check=[HealthCheck.too_slow])
