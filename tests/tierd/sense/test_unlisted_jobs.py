"""Metadata operations of jobs that ``job_stats`` does not list come from changelog records."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierd.model import JobLoad, NamespaceLoad, Window
from tierd.sense.changelogs.table import OperationCounts
from tierd.sense.metadata import LATE_RECORD_SECONDS, UnlistedJobs

Counts = Mapping[str, Mapping[str, OperationCounts]]
NOW = float("inf")
"""No record is old."""


def window(number: int, *, listed: NamespaceLoad | None = None, jobs: Collection[str] = ("a.1",)) -> Window:
    loads = {("t", job): JobLoad("t", job, writes=9.0) for job in jobs}
    return Window(number * 5.0, number * 5.0 + 5.0, loads, {listed.job: listed} if listed else {})


def load_after(*counts: Mapping[str, OperationCounts], listed: NamespaceLoad | None = None,
               oldest: float = NOW) -> NamespaceLoad | None:
    """The load of the job in the last window, with these counts at the end of each."""
    present: dict[str, Mapping[str, OperationCounts]] = {}
    jobs = UnlistedJobs(lambda _: dict(present))
    for number, each in enumerate(counts):
        present["a.1"] = each
        seen = jobs.completed(window(number, listed=listed), oldest)
    return seen.namespace.get("a.1")


def test_operations_of_a_window_are_those_recorded_since_the_one_before() -> None:
    assert load_after({"/a": (5, 0, 5, 0)}, {"/a": (25, 3, 20, 1), "/b": (2, 0, 2, 0)}) == NamespaceLoad(
        "a.1", opens=25.0, closes=17.0, creates=22.0, unlinks=1.0)


def test_the_first_window_of_a_job_has_nothing_to_compare_with() -> None:
    assert load_after({"/a": (5000, 0, 5000, 0)}) is None


def test_counts_that_were_forgotten_began_again() -> None:
    assert load_after({"/a": (500, 0, 500, 0)}, {"/a": (4, 0, 4, 0)}) == NamespaceLoad("a.1", 4.0, 4.0, 4.0)


def test_missed_records_that_are_read_late_are_not_of_the_window() -> None:
    assert load_after({"/a": (5, 0, 5, 0)}, {"/a": (9000, 0, 9000, 0)}, oldest=4.0 - LATE_RECORD_SECONDS) is None


@pytest.mark.parametrize(("listed", "counted"), [
    (NamespaceLoad("a.1", 20.0, 20.0, 20.0), True), (NamespaceLoad("a.1", other_operations=7.0), False),
    (NamespaceLoad("a.1", opens=1.0), False)])
def test_a_job_that_is_listed_keeps_its_counters(listed: NamespaceLoad, counted: bool) -> None:
    load = load_after({"/a": (0, 0, 0, 0)}, {"/a": (20, 0, 20, 0)}, listed=listed)
    assert load == (listed if counted else NamespaceLoad("a.1", 20.0, 20.0, 20.0,
                                                         other_operations=listed.other_operations))


def test_a_job_without_records_stays_as_it_is() -> None:
    assert load_after({}, {}) is None


Numbers = st.tuples(*[st.integers(0, 1 << 40)] * 4)


@given(st.lists(st.dictionaries(st.sampled_from(["/a", "/b", "/c"]), Numbers), min_size=1, max_size=4))
def test_no_counts_give_less_than_nothing(counts: list[dict[str, OperationCounts]]) -> None:
    load = load_after(*counts)
    assert load is None or min(load.opens, load.closes, load.creates, load.unlinks) >= 0
