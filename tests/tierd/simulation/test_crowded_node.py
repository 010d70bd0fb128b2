"""The two neighbours that a real Lustre was tried with, on a node with no processor left: what tierd has to do there.

``docs/calibration.md``, section 4, says how the costs of such a node were measured. Times are virtual seconds.
"""

from dataclasses import dataclass
from functools import cache

import pytest

from simulator.scenarios.scenario import library
from tierd.act.journal.entry import Entry
from tierd.config.settings import Settings
from tierd.simulation.run import Outcome, run

STREAM = "ior_stream.1001"
NOTICED_SECONDS = 30.0
"""So soon after a neighbour has gone that is known."""


@dataclass(frozen=True)
class Crowd:
    """One run with tierd."""

    outcome: Outcome
    since: float
    until: float
    """While the neighbour works."""

    @property
    def found_at(self) -> float:
        return min(time for time, finding in self.outcome.findings if finding.kind == "noisy-neighbour")

    @property
    def alone(self) -> float:
        return self.outcome.mean(STREAM, 5, self.since)

    def done(self, kind: str, since: float, until: float) -> list[Entry]:
        """Acts of a kind that were begun in a span, and came about."""
        acts = zip(self.outcome.acted_at, self.outcome.entries, strict=True)
        return [e for at, e in acts if e.kind == kind and e.outcome in {"done", "undone"} and since <= at < until]

    def said(self, *words: str) -> float:
        """When it first logged a sentence with this beginning."""
        return min((time for time, sentence in self.outcome.log if sentence.startswith(words)), default=float("inf"))


@cache
def crowd(name: str) -> Crowd:
    scenario = library(name)
    neighbour = next(job for job in scenario.jobs if job.job_id != STREAM)
    outcome = run(scenario.build(), scenario.jobs, scenario.seconds, policy=Settings())
    return Crowd(outcome, neighbour.start_seconds, neighbour.stop_seconds)


@pytest.fixture(params=["crowded-directory", "crowded-directories"])
def either(request: pytest.FixtureRequest) -> Crowd:
    return crowd(request.param)


def test_the_neighbour_is_found_although_looking_takes_long(either: Crowd) -> None:
    assert either.since < either.found_at < either.since + 150


def test_the_stream_has_its_disks_back_within_a_minute_of_the_finding(either: Crowd) -> None:
    assert either.outcome.mean(STREAM, either.found_at + 60, either.until) >= 0.95 * either.alone


def test_the_directories_that_have_defaults_of_their_own_are_changed_within_a_minute() -> None:
    many = crowd("crowded-directories")
    changed = many.done("set-default-layout", many.since, many.found_at + 60)
    assert len({entry.place for entry in changed} - {"/proj/crowds"}) >= 28


def test_files_move_while_the_neighbour_works() -> None:
    one = crowd("crowded-directory")
    assert len(one.done("migrate", one.since, one.until)) >= 20


def test_a_verdict_comes_within_two_minutes_and_a_cycle_of_the_finding(either: Crowd) -> None:
    assert either.said("KEPT: it helped") <= either.found_at + 125


def test_nothing_is_moved_once_the_neighbour_has_gone() -> None:
    one = crowd("crowded-directory")
    assert one.done("migrate", one.until + NOTICED_SECONDS, float("inf")) == []
