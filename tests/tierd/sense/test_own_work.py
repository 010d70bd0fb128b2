"""Loads of a job id of ours that we cannot have made are another mover's."""

from __future__ import annotations

from tierd.model import JobLoad, Window
from tierd.sense.own_work import BEFORE_SECONDS, FILE_BYTES, LEAST_BYTES, PASSES, QUIET_SECONDS, OwnWork

JOBS = ("lfs.0", "tierd.0")


def window(start: float = 1000.0, **done: float) -> Window:
    """Five seconds; bytes by job, of which the last letter is the root's number."""
    loads = {("l-OST0000", job[:-1] + ".0"): JobLoad("l-OST0000", job[:-1] + ".0", write_bytes=size)
             for job, size in done.items()}
    return Window(start, start + 5, loads, {})


class Journal:
    def __init__(self, files: int = 0, size_bytes: int = 0) -> None:
        self.moved = files, size_bytes
        self.asked: list[float] = []

    def __call__(self, since: float) -> tuple[int, int]:
        self.asked.append(since)
        return self.moved


def test_what_the_journal_does_not_know_of_is_somebody_elses() -> None:
    told = OwnWork(JOBS, Journal())(window(lfs0=100e6, ior0=500e6))
    assert told.own_jobs == frozenset()
    assert told.trouble.startswith("another mover: lfs.0 read and wrote 100 MB in 5 s")


def test_what_we_moved_lately_is_ours() -> None:
    journal = Journal(10, 25_000_000)
    told = OwnWork(JOBS, journal)(window(lfs0=100e6))
    assert (told.own_jobs, told.trouble) == (frozenset(JOBS), "")
    assert journal.asked == [1000.0 - BEFORE_SECONDS]


def test_beside_our_own_work_another_shows_by_more_than_ours_can_be() -> None:
    most = LEAST_BYTES + PASSES * 1_000_000 + FILE_BYTES * 2
    work = OwnWork(JOBS, Journal(2, 1_000_000))
    assert work(window(lfs0=most - 1, tierd0=1.0)).own_jobs == frozenset(JOBS)
    assert work(window(lfs0=most, tierd0=1.0)).own_jobs == frozenset()


def test_a_command_on_a_file_or_two_is_nobodys_move() -> None:
    journal = Journal()
    told = OwnWork(JOBS, journal)(window(lfs0=LEAST_BYTES))
    assert (told.own_jobs, told.trouble) == (frozenset(JOBS), "")
    assert journal.asked == []


def test_it_counts_as_gone_after_a_while_and_is_told_in_the_same_words_until_then() -> None:
    work = OwnWork(JOBS, Journal())
    first = work(window(lfs0=100e6))
    assert work(window(1005.0, lfs0=900e6)).trouble == first.trouble
    quiet = work(window(1010.0))
    assert (quiet.own_jobs, quiet.trouble) == (frozenset(JOBS), first.trouble)
    assert work(window(1004.0 + QUIET_SECONDS)).trouble == first.trouble
    assert work(window(1005.0 + QUIET_SECONDS)).trouble == ""


def test_a_clock_that_went_back_does_not_keep_it() -> None:
    work = OwnWork(JOBS, Journal())
    work(window(lfs0=100e6))
    assert work(window(500.0)).trouble == ""
