"""Accounts: the present posterior on all windows of a case."""

from dataclasses import replace
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.worlds import noise
from tierd.detect.account import MAX_WINDOWS, MOST_LOST, BilledWindow, Case, Key, Lost, bill_windows
from tierd.detect.gain import StreamTrack, StreamWindow
from tierd.model import Finding

FINDING = Finding("noisy-neighbour", 0, "m.2", "s.1", ("lustre-OST0002",), "", noise(aggressor_came_at=0.0))

HALF = log(2)
"""Device time that costs a stream half of its throughput if b is 1."""
SUSPECT = np.array((HALF, 1.0, 0.0)).tobytes()


def account(*windows: BilledWindow, cost: float = 1.0, error: float = 0.0) -> Case:
    made = Case(1, 0.0, 0.0, cost=cost, error=error)
    for window in windows:
        made.add(window)
    return made


def test_what_is_learned_later_counts_for_earlier_windows() -> None:
    made = account(BilledWindow(100e6, 2.0, HALF, 0.0), cost=0.5, error=0.4)
    assert not made.lost().is_certain
    made.cost, made.error = 1.0, 0.01
    assert made.lost().is_certain
    assert made.lost().bytes == pytest.approx(100e6)


def test_suspects_share_what_they_cost_together() -> None:
    of_one = account(BilledWindow(100e6, 2.0, HALF / 4, 3 * HALF / 4)).lost()
    of_other = account(BilledWindow(100e6, 2.0, 3 * HALF / 4, HALF / 4)).lost()
    assert of_one.bytes == pytest.approx(25e6)
    assert of_one.bytes + of_other.bytes == pytest.approx(100e6)
    assert of_one.seconds + of_other.seconds == pytest.approx(1.0)


def test_a_suspect_that_is_away_costs_nothing() -> None:
    assert account(BilledWindow(100e6, 2.0, 0.0, 0.3)).lost() == Lost()


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0.1, 60), st.floats(0, 3), st.floats(0, 3)), max_size=30),
       st.floats(0, 2), st.floats(0, 1))
def test_an_interval_holds_its_mean_and_is_finite(rows: list[tuple[float, float, float, float]], cost: float,
                                                   error: float) -> None:
    lost = account(*(BilledWindow(*row) for row in rows), cost=cost, error=error).lost()
    assert 0 <= lost.low_bytes <= lost.bytes * (1 + 1e-9) <= lost.high_bytes * (1 + 2e-9)
    assert lost.high_bytes <= exp(MOST_LOST) * sum(row[0] for row in rows) * (1 + 1e-9)
    assert lost.seconds <= sum(row[1] for row in rows) * (1 + 1e-9)


def test_a_long_case_takes_no_more_room_and_loses_nothing() -> None:
    made = account(*(BilledWindow(100e6, 2.0, HALF, 0.0) for _ in range(5 * MAX_WINDOWS)))
    assert len(made.windows) <= MAX_WINDOWS
    assert made.lost().bytes == pytest.approx(5 * MAX_WINDOWS * 100e6)


def test_time_in_which_the_stream_was_not_seen_is_not_billed() -> None:
    seen = [StreamWindow(end, 5.0, log(100e6), [FINDING.aggressor], SUSPECT, 0.0) for end in (5.0, 10.0, 60.0)]
    cases: dict[Key, Case] = {}
    for last in (2, 3):
        track = StreamTrack(seen[:last], (FINDING.aggressor,), np.array((18.0, 1.0, 0.0)), np.zeros((3, 3)), 0.0)
        bill_windows(cases, 1, FINDING, track)
    (case,) = cases.values()
    assert [window.seconds for window in case.windows] == [5.0, 5.0, 5.0]
    assert (case.begun_at, case.ended_at) == (0.0, 60.0)


def test_a_pause_over_midnight_is_not_billed_on_the_next_day() -> None:
    """A new day begins with an empty case (:mod:`tierd.bill.running`). It is not the begin of the aggressor."""
    cases: dict[Key, Case] = {FINDING.key: Case(1, 10.0, 10.0)}
    track = StreamTrack([StreamWindow(610.0, 5.0, log(100e6), [FINDING.aggressor], SUSPECT, 0.0)],
                        (FINDING.aggressor,), np.array((18.0, 1.0, 0.0)), np.zeros((3, 3)), 0.0)
    bill_windows(cases, 1, FINDING, track)
    assert [window.seconds for window in cases[FINDING.key].windows] == [5.0]


@pytest.mark.parametrize("probability", [0.9, 0.99])
def test_a_loss_that_may_be_nothing_all_the_time_is_not_billed(probability: float) -> None:
    evidence = noise(aggressor_came_at=0.0, loss_probability=probability)
    cases: dict[Key, Case] = {}
    track = StreamTrack([StreamWindow(5.0, 5.0, log(100e6), [FINDING.aggressor], SUSPECT, 0.0)], (FINDING.aggressor,),
                        np.array((18.0, 1.0, 0.0)), np.zeros((3, 3)), 0.0)
    bill_windows(cases, 1, replace(FINDING, evidence=evidence), track)
    assert [case.billed().is_certain for case in cases.values()] == [probability > 0.95]
