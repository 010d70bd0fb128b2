"""A neighbour that makes a directory for each of its steps, while what was done in the first is not judged yet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.tierd.daemon.remediation_world import Planned, RemediationWorld
from tests.tierd.simulated import COVERING, HDD, NOISE, STREAM, World, world
from tests.tierd.worlds import noise
from tierd.acts import ActKind, Verdict
from tierd.config.settings import Settings
from tierd.daemon.remediation import Remediation
from tierd.daemon.states import State
from tierd.model import Action, Finding

LONG_SECONDS, SHORT_SECONDS = 60.0, 20.0
"""It is seen for what it is after 20 s, and what was done would be judged 70 s after that."""
FOUND = Finding("noisy-neighbour", 0.0, "small.2", "stream.1", (), "it is slow", noise(), ())


def gone_through(at: World, steps: int, seconds: float) -> None:
    """The neighbour makes one directory after the other, which inherit what the one they lie in has then."""
    at.cluster.make_directory("/proj/run", HDD)
    for number in range(steps):
        begin = NOISE.start_seconds + number * seconds
        at.run(until=begin)
        place = f"/proj/run/step{number}"
        at.cluster.make_directory(place, at.filesystem.layout("/proj/run"))
        at.cluster.add(replace(NOISE, directory=place, start_seconds=begin, stop_seconds=begin + seconds, layout=None,
                               keep=100))
    at.run(until=begin + seconds)


def test_each_long_step_goes_to_flash_and_none_is_undone(tmp_path: Path) -> None:
    at = world(tmp_path, jobs=(STREAM,))
    gone_through(at, 4, LONG_SECONDS)
    assert [entry.place for entry in at.journal.entries()] == [f"/proj/run/step{number}" for number in range(4)]
    assert not [words for words in at.said if words.startswith("UND")]
    alone, last = at.rate(STREAM.job_id, 5, 30), at.rate(STREAM.job_id, at.cluster.now - 20, at.cluster.now - 5)
    assert last > 0.8 * alone


def test_of_many_short_steps_what_they_lie_in_goes_to_flash(tmp_path: Path) -> None:
    at = world(tmp_path, jobs=(STREAM,))
    gone_through(at, 15, SHORT_SECONDS)
    assert "/proj/run" in [entry.place for entry in at.journal.entries()]
    assert any(words.startswith("KEPT: it helped") for words in at.said)
    alone, last = at.rate(STREAM.job_id, 5, 30), at.rate(STREAM.job_id, at.cluster.now - 30, at.cluster.now)
    assert last > 0.97 * alone


@dataclass
class Following(RemediationWorld):
    """One that gives each place a default layout."""

    def found_in(self, *places: str) -> list[str]:
        """Where a default layout has been set since, once the finding is seen in these places."""
        before = len(list(self.at.journal.entries()))
        self.at.cluster.advance(10)
        self.act([replace(FOUND, directories=places)])
        return [entry.place for entry in self.at.journal.entries()][before:]

    @property
    def case(self) -> Remediation:
        case = self.store.get(FOUND.key)
        assert case is not None
        return case


def defaults(finding: Finding) -> tuple[Action, ...]:
    return tuple(Action(ActKind.SET_DEFAULT_LAYOUT, COVERING, "because", finding.key, place)
                 for place in finding.directories)


@pytest.fixture
def setup(tmp_path: Path) -> Following:
    at = world(tmp_path, jobs=())
    for place in "abc":
        at.cluster.make_directory(f"/{place}")
    setup = Following(at, Planned(defaults))
    setup.finding_log.begun(FOUND)
    return setup


def test_only_new_directories_are_acted_on(setup: Following) -> None:
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


def test_a_job_that_keeps_making_directories_is_judged_in_the_end(setup: Following) -> None:
    setup.found_in("/a")
    setup.at.cluster.advance(Settings().verify.moving_seconds)
    begun_at = setup.case.acted_at
    assert setup.found_in("/b") == ["/b"]
    assert setup.case.acted_at == begun_at


@pytest.mark.parametrize("verdict", [Verdict.DID_NOT_HELP, Verdict.HARMED_OTHERS, Verdict.UNDONE_BY_HAND])
def test_an_undone_act_is_not_tried_elsewhere_while_the_finding_holds(setup: Following, verdict: Verdict) -> None:
    setup.found_in("/a")
    setup.case.verdict = verdict
    setup.case.settle(State.UNDONE)
    assert setup.found_in("/a", "/b") == []
    setup.case.finding_ended(1.0)
    assert setup.found_in("/b") == ["/b"]


@pytest.mark.parametrize("verdict", [Verdict.HELPED, Verdict.CANNOT_TELL])
def test_a_verdict_stays_and_the_next_place_is_another_case(setup: Following, verdict: Verdict) -> None:
    setup.found_in("/a")
    setup.case.verdict = verdict
    setup.case.settle(State.KEPT)
    assert setup.found_in("/a", "/b") == ["/b"]
    assert not setup.case.judged
    assert [outcome.action.directory for outcome in setup.case.earlier] == ["/a"]
    assert [outcome.action.directory for outcome in setup.case.defaults] == ["/b"]
