"""Throughput over time in the journal: points of each age, limits, hostile names, and journals without the table."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierd.act.journal.rates import JOBS, KEPT_SECONDS, MAX_JOBS, TARGETS
from tierd.act.journal.reader import JournalReader
from tierd.act.journal.writer import Journal
from tierd.rates import Rates, mean

HOSTILE = "a\n\udcff\0'\"<b>.1"
BEGIN = 1_795_000_000 // 7200 * 7200
DAY = 86400


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    with closing(Journal(path)) as made:
        yield made


def rates(**of: float) -> Rates:
    """Each name writes so much."""
    return Rates(list(of), np.array([(0.0, each, 1.0, 2.0) for each in of.values()]))


def fill(journal: Journal, seconds: int) -> None:
    for time in range(BEGIN + 60, BEGIN + seconds + 1, 60):
        journal.rates.add(time, {TARGETS: rates(t=float(time - BEGIN)), JOBS: Rates([HOSTILE], np.ones((1, 4)))})


@pytest.mark.parametrize(("hours", "seconds", "points"), [(1, 3600, 60), (6, 6 * 3600, 360), (6, DAY, 72),
                                                          (6, 30 * DAY, 3)])
def test_each_range_has_points_of_its_length(path: Path, journal: Journal, hours: int, seconds: int,
                                             points: int) -> None:
    fill(journal, 6 * 3600)
    now = BEGIN + hours * 3600 + (6 - hours) * 3600
    found = JournalReader(path).rates.of_name(TARGETS, "t", now - seconds, now, now)
    assert len(found) == points
    assert found[-1][0] == now
    width = found[-1][0] - found[-2][0]
    assert found[-1][2] == pytest.approx(now - BEGIN - (width - 60) / 2)  # the mean of its minutes


def test_the_newest_minutes_follow_the_means_of_longer_times(path: Path, journal: Journal) -> None:
    fill(journal, 2 * 3600 + 31 * 60)
    now = BEGIN + 2 * 3600 + 31 * 60
    times = [point[0] - BEGIN for point in JournalReader(path).rates.of_name(JOBS, HOSTILE, 0, now, now)]
    assert times == [7200, 9000, 9060]
    assert all(later > before for before, later in pairwise(times))


def test_what_is_not_among_the_busiest_is_not_called_idle(path: Path, journal: Journal) -> None:
    every = Rates([f"j{n}" for n in range(900)], np.array([(0.0, 900.0 - n, n, 0.0) for n in range(900)]))
    few = every.busiest(MAX_JOBS, frozenset({"j450"}))
    assert len(few.names) == MAX_JOBS + 1
    assert {"j0", "j899", "j450"} <= set(few.names)
    journal.rates.add(BEGIN + 60, {JOBS: few})
    journal.rates.add(BEGIN + 120, {JOBS: rates(j1=1.0)})
    reader = JournalReader(path).rates
    assert reader.of_name(JOBS, "j451", 0, BEGIN + 600, BEGIN + 600) == [(BEGIN + 120, 0.0, 0.0, 0.0, 0.0)]
    assert len(reader.of_name(JOBS, "j0", 0, BEGIN + 600, BEGIN + 600)) == 2


def test_records_are_removed_by_age_whatever_the_settings(path: Path, journal: Journal) -> None:
    fill(journal, 8 * 3600)
    now = BEGIN + 8 * 3600
    while journal.rates.remove_old(now, 50):
        pass
    with closing(sqlite3.connect(path)) as db:
        oldest = dict(db.execute("SELECT step, min(time) FROM rates GROUP BY step"))
    assert oldest == {60: now - 6 * 3600, 300: BEGIN + 300, 1800: BEGIN + 1800, 7200: BEGIN + 7200}
    while journal.rates.remove_old(now + 40 * DAY, 50):
        pass
    assert JournalReader(path).rates.at(now) is None


def test_a_moment_has_records_before_and_after_it(path: Path, journal: Journal) -> None:
    fill(journal, 600)
    at = JournalReader(path).rates.at
    inside = at(BEGIN + 150)
    assert (inside.time, inside.seconds, inside.earlier, inside.later) == (BEGIN + 180, 60, BEGIN + 120, BEGIN + 240)
    assert inside.rates[TARGETS].names == ["t"]
    assert inside.rates[JOBS].names == [HOSTILE]
    last, first = at(BEGIN + 9000), at(BEGIN - 9000)
    assert (last.time, last.later) == (BEGIN + 600, None)
    assert (first.time, first.earlier) == (BEGIN + 60, None)


def test_a_journal_of_an_earlier_release_gets_the_table(path: Path) -> None:
    with closing(Journal(path)):
        pass
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP TABLE rates")
    with closing(Journal(path)) as journal:
        fill(journal, 60)
    assert JournalReader(path).rates.at(BEGIN) is not None


def test_the_records_of_a_large_file_system_fit(path: Path, journal: Journal) -> None:
    """4,000 targets and 500 of 50,000 jobs: what docs/operations.md says about the size."""
    numbers = np.random.default_rng(1).uniform(0, 1e9, (4000, 4))
    targets = Rates([f"lustre-OST{n:04x}" for n in range(4000)], numbers)
    jobs = Rates([f"application-{n}.{n}" for n in range(50_000)], np.tile(numbers, (13, 1))[:50_000]).busiest(MAX_JOBS)
    journal.rates.add(BEGIN + 60, {TARGETS: targets, JOBS: jobs})
    with closing(sqlite3.connect(path)) as db:
        (size,) = db.execute("SELECT sum(length(names) + length(numbers)) FROM rates").fetchone()
    records = sum(kept // step for step, kept in KEPT_SECONDS.items())
    assert size * records < 120e6


@given(st.lists(st.tuples(st.text(max_size=9), st.floats(0, 2.0**40, width=32)), unique_by=lambda each: each[0],
                max_size=9))
def test_what_is_packed_comes_back(of: list[tuple[str, float]]) -> None:
    found = Rates([name for name, _ in of], np.array([[value] * 4 for _, value in of]).reshape(-1, 4))
    again = Rates.unpacked(*found.packed())
    assert again.names == found.names
    assert (again.numbers == found.numbers).all()
    assert mean([found, found]).numbers == pytest.approx(found.numbers)
