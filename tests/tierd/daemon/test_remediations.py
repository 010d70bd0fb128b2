"""Remediations: their states, what is planned and done again, standing findings, and what is forgotten.

Some tests give the findings and what to do about them, over a simulated file system.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lustre.fid import Fid
from lustre.filesystem import FileStatus, Filesystem
from lustre.layout.model import Component, Layout
from tests.tierd.simulated import COVERING, HDD, NOISE, STREAM, World, world
from tests.tierd.site import Site
from tests.tierd.worlds import noise
from tierd.acts import JUDGED_VERDICTS, ActKind, Outcome, Verdict
from tierd.config.settings import Settings
from tierd.daemon import judging
from tierd.daemon.judging import CaseUndo, Judge
from tierd.daemon.log import FindingLog
from tierd.daemon.node import DaemonParts
from tierd.daemon.planning import Planner
from tierd.daemon.remediation import (
    MAX_CLOSED,
    Remediation,
    Remediations,
    RemediationStore,
    reopened_remediations,
    standing_refusal,
)
from tierd.daemon.states import OPEN, UNDOING_VERDICTS, State
from tierd.decide.plans import Plan
from tierd.model import Action, Advice, Candidate, DirectoryActivity, Evidence, Facts, Finding
from tierd.policies.cold_on_flash import ColdOnFlashEvidence
from tierd.refusal import Reason
from tierd.simulation.world import VirtualClock
from tierd.text import Carrier
from tierd.verify.judgement import Judgement


@dataclass
class Planned:
    """A planner that returns given actions, and counts its plans."""

    actions: Callable[[Finding], tuple[Action, ...]]
    plans: int = 0

    def for_finding(self, finding: Finding, _: Collection[str] = ()) -> Plan:
        self.plans += 1
        return Plan(self.actions(finding), ())

    def activities(self, _: Finding) -> Sequence[DirectoryActivity]:
        return ()

    def forget(self) -> None:
        pass


@dataclass
class RemediationWorld:
    """Remediations with their store, log and gate."""

    at: World
    planned: Planned
    settings: Settings = field(default_factory=Settings)
    store: RemediationStore = field(default_factory=RemediationStore)
    parts: DaemonParts = field(init=False)
    finding_log: FindingLog = field(init=False)
    remediations: Remediations = field(init=False)

    def __post_init__(self) -> None:
        at = self.at
        self.parts = replace(at.daemon.parts, settings=self.settings)
        self.finding_log = FindingLog(at.journal, VirtualClock(at.cluster))
        self.remediations = Remediations(self.parts, self.store, cast(Planner, self.planned), self.finding_log)

    def act(self, findings: Sequence[Finding]) -> None:
        """Plan for these findings, and set the default layouts of the plans."""
        self.plan(findings)
        while self.remediations.set_defaults():
            pass

    def plan(self, findings: Sequence[Finding]) -> None:
        """Plan for these findings, which hold."""
        self.finding_log.known.records.update((each.key, each) for each in findings if not self.finding_log.holds(each))
        self.remediations.act(findings)

    def found_in(self, *places: str) -> list[str]:
        """Where a default layout has been set since, once the finding is seen in these places."""
        before = len(list(self.at.journal.entries()))
        self.at.cluster.advance(10)
        self.act([replace(FOUND, directories=places)])
        return [entry.place for entry in self.at.journal.entries()][before:]

    @property
    def case(self) -> Remediation:
        return next(iter(self.store))


STEP_SECONDS = 60.0
"""It is seen for what it is after 20 s, and what was done would be judged 70 s after that."""
FOUND = Finding("noisy-neighbour", 0.0, "small.2", "stream.1", (), "it is slow", noise(), ())


def test_each_long_step_goes_to_flash_and_none_is_undone(tmp_path: Path) -> None:
    """The neighbour makes one directory after the other, which inherit what the one they lie in has then."""
    at = world(tmp_path, jobs=(STREAM,))
    at.cluster.make_directory("/proj/run", HDD)
    places = [f"/proj/run/step{number}" for number in range(4)]
    for number, place in enumerate(places):
        begin = NOISE.start_seconds + number * STEP_SECONDS
        at.run(until=begin)
        at.cluster.make_directory(place, at.filesystem.layout("/proj/run"))
        at.cluster.add(replace(NOISE, directory=place, start_seconds=begin, stop_seconds=begin + STEP_SECONDS,
                               layout=None, keep=100))
    at.run(until=begin + STEP_SECONDS)
    assert [entry.place for entry in at.journal.entries()] == places
    assert not [words for words in at.said if words.startswith("UND")]
    alone, last = at.rate(STREAM.job_id, 5, 30), at.rate(STREAM.job_id, at.cluster.now - 20, at.cluster.now - 5)
    assert last > 0.8 * alone


PLACES = ("/a", "/b", "/c")


def defaults(finding: Finding) -> tuple[Action, ...]:
    """A default layout for each place."""
    return tuple(Action(ActKind.SET_DEFAULT_LAYOUT, COVERING, "because", finding.key, place)
                 for place in finding.directories)


def planning(folder: Path, actions: Callable[[Finding], tuple[Action, ...]]) -> RemediationWorld:
    """A finding that holds, and what is planned for it."""
    at = world(folder, jobs=())
    for place in PLACES:
        at.cluster.make_directory(place)
    setup = RemediationWorld(at, Planned(actions))
    setup.finding_log.begun(FOUND)
    return setup


@pytest.fixture
def setup(tmp_path: Path) -> RemediationWorld:
    return planning(tmp_path, defaults)


def test_only_new_directories_are_acted_on(setup: RemediationWorld) -> None:
    assert setup.found_in("/a") == ["/a"]
    begun_at = setup.case.begun_at
    assert setup.found_in("/a") == []
    assert setup.planned.plans == 1, "nothing is new"
    assert setup.found_in("/a", "/b") == ["/b"]
    assert setup.case.begun_at == begun_at
    assert setup.case.acted_at == pytest.approx(begun_at + 20, abs=0.1), "judged by the time after the last act"
    assert [outcome.action.directory for outcome in setup.case.defaults] == ["/a", "/b"]
    assert setup.found_in("/b") == []
    assert setup.planned.plans == 2


def test_a_clock_that_was_set_back_holds_up_no_plan(setup: RemediationWorld) -> None:
    """Nothing was planned for as long as it was set back by, while the finding held."""
    hour_ns = 3600 * 10**9
    assert setup.found_in("/a") == ["/a"]
    assert setup.found_in("/a", "/b") == ["/b"]
    setup.at.cluster.epoch_ns -= hour_ns
    assert setup.found_in("/a", "/b", "/c") == ["/c"]
    setup.case.finding_ended(1.0)
    setup.case.settle(State.KEPT)
    setup.planned.actions = lambda _: ()
    assert setup.found_in("/a") == []
    setup.at.cluster.epoch_ns -= hour_ns
    setup.planned.actions = defaults
    setup.at.filesystem.set_default_layout("/a", None)
    assert setup.found_in("/a") == ["/a"]


def test_a_job_that_keeps_making_directories_is_judged_in_the_end(setup: RemediationWorld) -> None:
    setup.found_in("/a")
    setup.at.cluster.advance(Settings().verify.moving_seconds)
    begun_at = setup.case.acted_at
    assert setup.found_in("/b") == ["/b"]
    assert setup.case.acted_at == begun_at


@pytest.mark.parametrize("verdict", [Verdict.DID_NOT_HELP, Verdict.HARMED_OTHERS, Verdict.UNDONE_BY_HAND])
def test_an_undone_act_is_not_tried_elsewhere_while_the_finding_holds(
        setup: RemediationWorld, verdict: Verdict) -> None:
    setup.found_in("/a")
    setup.case.verdict = verdict
    setup.case.settle(State.UNDONE)
    assert setup.found_in("/a", "/b") == []
    assert [refusal.reason for refusal in setup.remediations.refusals(FOUND.key)] == [Reason.COOLING_DOWN]
    setup.case.finding_ended(1.0)
    assert setup.found_in("/b") == ["/b"]


@pytest.mark.parametrize("before", [(), ("/c",)])
def test_acts_that_a_pause_refuses_are_done_after_it(setup: RemediationWorld, before: tuple[str, ...]) -> None:
    """It began between the look at the pause and the act. The finding held for hours, and nothing was done about it."""
    setup.found_in(*before)
    setup.at.cluster.advance(11.0)
    setup.plan([replace(FOUND, directories=(*before, "/a", "/b"))])
    setup.at.gate.operating_state.pause("by hand")
    setup.remediations.set_defaults()
    assert [entry.outcome for entry in setup.at.journal.entries()][-2:] == [Outcome.REFUSED, Outcome.REFUSED]
    setup.at.gate.operating_state.resume()
    assert sorted(setup.found_in(*before, "/a", "/b")) == ["/a", "/b"]
    assert {outcome.result for outcome in setup.case.defaults} == {Outcome.DONE}


@pytest.mark.parametrize("verdict", [Verdict.HELPED, Verdict.CANNOT_TELL])
def test_a_verdict_stays_and_the_next_place_is_another_case(setup: RemediationWorld, verdict: Verdict) -> None:
    setup.found_in("/a")
    setup.case.verdict = verdict
    setup.case.settle(State.KEPT)
    assert setup.found_in("/a", "/b") == ["/b"]
    assert not setup.case.judged
    assert [outcome.action.directory for outcome in setup.case.defaults] == ["/b"]


@pytest.mark.parametrize("busy", [False, True], ids=["opted out", "under way"])
def test_there_is_no_verdict_before_a_move_is_done(setup: RemediationWorld, monkeypatch: pytest.MonkeyPatch, *,
                                                   busy: bool) -> None:
    """A case whose files were all refused had one, and later acts were weighed by it."""
    at, judge = setup.at, Judge(setup.parts, setup.store, CaseUndo(setup.parts, setup.store, setup.finding_log),
                                setup.finding_log, history=lambda: ([], {}), facts=Facts)
    at.cluster.make_file("/a/file", 1000)
    at.filesystem.set_xattr("/a/file", "user.tierd", b"on" if busy else b"off")
    monkeypatch.setattr(judging, "judge", lambda *_: Judgement(Verdict.DID_NOT_HELP, 2.0, 1.0, 1.0))
    setup.planned.actions = lambda found: (Action(ActKind.MIGRATE, COVERING, "because", found.key, "/a", "/a/file"),)
    setup.plan([replace(FOUND, directories=("/a",))])
    seen: list[State] = []

    def judged() -> None:
        at.cluster.advance(Settings().verify.moving_seconds)
        judge.judge(at.cluster.epoch)
        seen.append(setup.case.state)

    if busy:  # its file takes so long to move
        monkeypatch.setattr(at.gate, "on_begin", lambda _: judged())
    setup.remediations.moves_ended(at.gate.pump(at.cluster.epoch + 5))
    judged()
    assert (seen[0] in OPEN, setup.case.verdict) == ((True, Verdict.DID_NOT_HELP) if busy else (False, Verdict.NONE))


def test_what_an_administrator_is_undoing_is_not_judged(
        setup: RemediationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The undo of many directories takes minutes: meanwhile tierd said that the acts stay, as they had helped."""
    undoing, change = CaseUndo(setup.parts, setup.store, setup.finding_log), setup.at.filesystem.set_default_layout
    judge = Judge(setup.parts, setup.store, undoing, setup.finding_log, history=lambda: ([], {}), facts=Facts)
    monkeypatch.setattr(judging, "judge", lambda *_: Judgement(Verdict.HELPED, 2.0, 1.0, 1.9))
    setup.found_in("/a")

    def slow(*of: Any) -> None:
        judge.judge(setup.at.cluster.epoch)
        change(*of)

    monkeypatch.setattr(setup.at.filesystem, "set_default_layout", slow)
    undoing.finding_by_hand(1, "root")
    assert (setup.case.verdict, setup.finding_log.counters.verdicts) == (Verdict.UNDONE_BY_HAND, {})


def test_the_undo_of_one_act_by_hand_leaves_the_verdict_on_the_others(setup: RemediationWorld) -> None:
    """It is undone after a restart too."""
    setup.found_in("/a", "/b")
    judgements, undoing = setup.at.journal.judgements, CaseUndo(setup.parts, setup.store, setup.finding_log)
    judgements.add(1, "noisy-neighbour", "flash", 1, Verdict.DID_NOT_HELP, 0.0, setup.at.cluster.epoch)
    for entry, left in zip(setup.at.journal.entries(), (1, 0), strict=True):
        undoing.act_by_hand(entry, "root")
        assert len(list(judgements.to_undo(0.0))) == left


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_layout_that_waits_is_not_set_after_the_undo_of_the_others(setup: RemediationWorld, *, by_hand: bool) -> None:
    setup.found_in("/a")
    setup.at.cluster.advance(11.0)
    setup.plan([replace(FOUND, directories=("/a", "/b"))])
    undoing = CaseUndo(setup.parts, setup.store, setup.finding_log)
    if by_hand:
        undoing.act_by_hand(setup.at.journal.entries()[0], "root")
    else:
        setup.case.begin_undo("flash is full")
        undoing.go_on()
    assert (setup.remediations.set_defaults(), setup.case.defaults) == (False, [])


@pytest.mark.parametrize("first", [Verdict.HELPED, Verdict.CANNOT_TELL])
def test_a_verdict_against_later_acts_undoes_only_those_even_after_a_restart(
        setup: RemediationWorld, first: Verdict) -> None:
    """After a restart, the acts that an earlier verdict had kept were undone too."""
    journal, at = setup.at.journal, setup.at
    for places, verdict in ((("/a",), first), (("/a", "/b"), Verdict.DID_NOT_HELP)):
        assert setup.found_in(*places) == [places[-1]]
        at.cluster.advance(10)
        setup.case.settle(State.KEPT)
        journal.judgements.add(setup.case.number, "noisy-neighbour", "flash", 1, verdict, 0.0, at.cluster.epoch)
    (case,) = reopened_remediations(journal, 0.0)
    assert (case.state, [each.action.directory for each in case.defaults]) == (State.UNDOING, ["/b"])


@pytest.mark.parametrize(("ended_at", "state"), [(None, State.KEPT), (5.0, State.CLOSED)])
def test_a_case_whose_finding_ended_before_a_restart_is_closed(setup: RemediationWorld, ended_at: float | None,
                                                               state: State) -> None:
    """It stayed open until the next one, and a finding of days later got its number."""
    journal, file = setup.at.journal, setup.at.cluster.make_file("/a/file", 1000)
    setup.found_in("/a")
    journal.judgements.add(1, "noisy-neighbour", "flash", 1, Verdict.HELPED, 0.8, 3.0)
    journal.finding_ended(1, ended_at)
    setup.at.gate.submit([Action(ActKind.MIGRATE, COVERING, "", FOUND.key, "/a", file.path, fid=file.fid)], 1)
    assert [case.state for case in reopened_remediations(journal, 0.0)] == [state]


HELPED = {"state": State.KEPT, "verdict": Verdict.HELPED}


@pytest.mark.parametrize(("carrier", "changed", "more"), [
    (Carrier.ARRIVAL, {"state": State.JUDGING}, True), (Carrier.ARRIVAL, HELPED, True),
    (Carrier.ARRIVAL, HELPED | {"verdict": Verdict.CANNOT_TELL}, False), (Carrier.ARRIVAL, {"departed": True}, False),
    (Carrier.ARRIVAL, HELPED | {"ended_at": 9.0}, False), (Carrier.ARRIVAL, HELPED | {"begun_at": 1.0}, False),
    (Carrier.DEVICE_TIME, {"state": State.JUDGING}, False), (Carrier.DEVICE_TIME, HELPED, True),
    (Carrier.DEVICE_TIME, HELPED | {"state": State.CLOSED, "ended_at": 9.0}, True),
    (Carrier.DEVICE_TIME, HELPED | {"verdict": Verdict.CANNOT_TELL}, False),
    (Carrier.DEVICE_TIME, HELPED | {"departed": True}, False),
    (Carrier.DEVICE_TIME, HELPED | {"begun_at": 1.0}, False)])
def test_more_files_move_while_the_acts_may_help_and_the_job_is_there(
        setup: RemediationWorld, carrier: Carrier, changed: dict[str, Any], more: bool) -> None:
    now = setup.at.cluster.epoch
    case = Remediation(replace(FOUND, evidence=noise(carrier=carrier)), 1, now, now, COVERING)
    assert setup.remediations._followed_up(replace(case, **changed)) is more


# A finding about a noisy neighbour that stands without an act has a reason, as a code and a sentence


IN_A = replace(FOUND, directories=("/a",))
ABSORBED = (Advice("move no files of this job to flash", "", "a write cache takes its writes in"),)
WHOLE_FILE = Layout((Component(0, None, "flash"),), composite=False)


@pytest.mark.parametrize(("finding", "reason"), [
    (replace(IN_A, advice_only=True), Reason.UNCLEAR_IO),
    (replace(IN_A, advice_only=True, advice=ABSORBED), Reason.ABSORBED),
    (replace(IN_A, held=True), Reason.UNCONFIRMED)])
def test_one_that_is_only_reported(tmp_path: Path, finding: Finding, reason: Reason) -> None:
    setup = planning(tmp_path, lambda _: ())
    setup.act([finding])
    assert setup.planned.plans == 0
    (why,) = setup.remediations.refusals(IN_A.key)
    assert (why.reason, why) == (reason, standing_refusal(finding))
    assert bool([words for words in setup.at.said if words.startswith("not done")]) is finding.advice_only


def test_a_window_that_does_not_confirm_it_hides_no_other_reason(tmp_path: Path) -> None:
    setup = planning(tmp_path, lambda _: ())
    setup.act([IN_A])
    setup.act([replace(IN_A, held=True)])
    assert [why.reason for why in setup.remediations.refusals(IN_A.key)] == [Reason.NOTHING_TO_DO]


def test_a_finding_that_holds_for_months_remembers_no_file_of_the_past(tmp_path: Path) -> None:
    evidence = ColdOnFlashEvidence(used_share=0.8, cold_files=4, cold_bytes=1, oldest_days=9.0, target_used_share=0.7,
                                   cold_before=0.0, bytes_to_free=1.0)
    full = Finding("cold-on-flash", 0.0, "", "", (), "it is full", evidence, subject="flash")
    setup = planning(tmp_path, lambda _: ())
    setup.finding_log.begun(full)
    for number in range(30):
        files = [0, *range(10 * number + 1, 10 * number + 11)]  # the first one is opted out
        setup.planned.actions = lambda finding, files=files: tuple(  # type: ignore[misc]
            Action(ActKind.MIGRATE, HDD, "cold", finding.key, "/a", f"/a/{file}") for file in files)
        setup.plan([replace(full, time=30.0 * number)])
        assert len(setup.at.gate.drop(full.key)) == (10 if number else 11), "each is tried once, also the first one"
    assert len(setup.case.tried) == 11


def test_one_that_ends_while_it_is_planned_is_not_acted_on(setup: RemediationWorld) -> None:
    """The act had a second number in the journal, of a finding that nobody was told of and that never ended."""
    setup.finding_log.ended(IN_A, 1.0, acted_on=False)
    setup.remediations.act([IN_A])
    assert (setup.remediations.set_defaults(), setup.store.get(IN_A.key)) == (False, None)
    assert setup.at.journal.key_of_finding(2) is None


def test_one_whose_default_layout_was_refused(setup: RemediationWorld) -> None:
    setup.at.filesystem.set_default_layout("/a", COVERING)
    setup.act([IN_A])
    (why,) = setup.remediations.refusals(IN_A.key)
    assert (why.reason, why.sentence) == (Reason.HAS_LAYOUT, "/a: the directory already has this layout")


def test_a_shared_bandwidth_finding_needs_no_reason() -> None:
    assert standing_refusal(replace(IN_A, kind="shared-bandwidth", evidence=Evidence(), advice_only=True)) is None


# A site where each job has a number for a name: what was done for those that ended is forgotten, and not lost


FLASH = Layout((Component(pool="flash"),), composite=False)


def test_the_oldest_closed_cases_are_forgotten_and_an_open_remediation_or_undo_never(tmp_path: Path) -> None:
    daemon = world(tmp_path, jobs=()).daemon
    for number in range(3 * MAX_CLOSED):
        finding = Finding("noisy-neighbour", 0.0, f"{number}", "v", (), "it is slow", noise(), ())
        daemon.log.known.numbers[finding.key] = number
        state = {0: State.ACTING, 1: State.JUDGING, 2: State.UNDOING}.get(number, State.CLOSED)
        daemon.store.add(Remediation(finding, number, float(number), float(number), FLASH, state=state, ended_at=1.0))
    daemon.plan()
    assert [case.number for case in daemon.store] == [0, 1, 2, *range(2 * MAX_CLOSED, 3 * MAX_CLOSED)]
    assert len(daemon.log.known.numbers) == MAX_CLOSED + 3


# A cycle may make hundreds of plans: what they ask the file system does not grow with that


@dataclass
class Asked:
    """A file system that counts the calls."""

    filesystem: Filesystem
    calls: Counter[str] = field(default_factory=Counter)

    def __getattr__(self, name: str) -> Any:
        self.calls[name] += 1
        return getattr(self.filesystem, name)


def test_plans_of_one_second_read_free_space_once_and_no_files_of_removed_directories(tmp_path: Path) -> None:
    at = world(tmp_path, jobs=())
    at.cluster.make_directory("/there")
    asked = Asked(at.filesystem)
    parts = at.daemon.parts
    planner = Planner(replace(parts, node=replace(parts.node, filesystem=cast(Filesystem, asked))), at.daemon.engine,
                      at.daemon.table, lambda: ())
    for place in ("/there", "/removed"):
        file = Candidate(Fid(0x200000403, 1), f"{place}/f", 10.0, 10.0)
        found = Finding("noisy-neighbour", 0.0, "small.2", "stream.1", (), "it is slow", noise(), (place,))
        planner.for_activities(found, [DirectoryActivity("small.2", place, candidates=(file,))])
    assert (asked.calls["pools"], asked.calls["space"], asked.calls["status"]) == (1, 1, 1)
    layouts = asked.calls["layout"]
    planner.for_activities(replace(found, victim="stream.2"), [])
    assert asked.calls["layout"] == layouts, "each victim of a neighbour asked for the same layouts"
    planner.forget()
    planner.for_activities(found, [])
    assert asked.calls["layout"] > layouts, "a later pass uses old layouts"
    assert asked.calls["space"] == 2
    at.cluster.advance(2.0)
    planner.for_activities(found, [])
    assert asked.calls["space"] == 3


# A remediation takes only the steps of its state machine, and no default layout is lost from sight


def test_another_step_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="F1: undoing -> judging"):
        Remediation(FOUND, 1, 0.0, 0.0, COVERING, state=State.UNDOING).to(State.JUDGING)


class Steps(RuleBasedStateMachine):
    """Findings, acts, verdicts and undo in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.setup = planning(Path(self.folder.name), defaults)
        self.undoing = CaseUndo(self.setup.parts, self.setup.store, self.setup.finding_log)
        self.judge = Judge(self.setup.parts, self.setup.store, self.undoing, self.setup.finding_log,
                           history=lambda: ([], {}), facts=Facts)
        self.space = self.setup.at.filesystem.space

    def teardown(self) -> None:
        self.folder.cleanup()

    @property
    def case(self) -> Remediation | None:
        return self.setup.store.get(FOUND.key)

    @rule(places=st.sets(st.sampled_from(PLACES), min_size=1))
    def plan(self, places: set[str]) -> None:
        self.setup.at.cluster.advance(11)
        self.setup.plan([replace(FOUND, directories=tuple(sorted(places)))])

    @rule()
    def set_defaults(self) -> None:
        self.setup.remediations.set_defaults()

    @rule()
    def ended(self) -> None:
        if self.case is not None:
            self.case.finding_ended(1.0)

    @rule()
    def began(self) -> None:
        if self.case is not None and not self.case.closed:
            self.case.ended_at = None

    @rule(verdict=st.sampled_from(list(JUDGED_VERDICTS)))
    def verdict(self, verdict: Verdict) -> None:
        case = self.case
        if case is not None and case.state in OPEN:
            self.judge.settle(case, Judgement(verdict, 2.0, 1.0, 1.5))

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
    def what_a_case_has_set_is_in_force(self) -> None:
        if self.case is not None:
            standing = {entry.id for entry in self.setup.at.journal.judgements.default_layouts_in_force()}
            assert {outcome.entry for outcome in self.case.defaults} <= standing


TestSteps = Steps.TestCase
TestSteps.settings = settings(max_examples=30, stateful_step_count=25, deadline=None,
                              suppress_health_check=[HealthCheck.too_slow])


# The same trouble, over and back again: each time has a number of its own, and what is done goes with that


def test_an_answer_about_a_finding_that_has_just_ended_gives_it_no_second_number(tmp_path: Path) -> None:
    """Answers are prepared while another thread observes: a finding may end in between."""
    at = world(tmp_path)
    at.run_until_said("FOUND noisy-neighbour", before=60)
    (finding,) = at.daemon.findings
    assert at.daemon.log.known_number(finding) == 1
    other = replace(finding, aggressor="gone.1")
    assert at.daemon.log.known_number(other) == 0
    assert at.journal.key_of_finding(2) is None


def test_directories_in_cooldown_cost_no_requests_for_sizes(site: Site) -> None:
    site.run_until_said("SET default layout", before=120)
    site.shown("undo", "1")
    site.cluster.stop(NOISE.job_id)
    site.run_until_said("ended", before=160)
    site.cluster.add(replace(NOISE, start_seconds=site.cluster.now))
    site.run_until_said("it is left alone for", before=240)
    asked: list[str] = []
    status = site.filesystem.status

    def counting(path: str) -> FileStatus:
        asked.append(path)
        return status(path)

    site.filesystem.status = counting  # type: ignore[method-assign]
    site.run(until=site.cluster.now + 20)
    assert "it is left alone for" in site.shown("status")
    assert asked == []
