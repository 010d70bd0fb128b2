"""Changelogs of MDTs that do not answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.tierd.sense.test_follow import Log
from tierd.sense.follow import ChangelogError, Follower
from tierd.sense.patience import Patience


class Watch:
    """A clock that is set by hand."""

    time = 1000.0

    def now(self) -> float:
        return self.time

    def wait(self, seconds: float) -> bool:
        raise NotImplementedError


class Away:
    """An MDT that answers once it is back."""

    def __init__(self) -> None:
        self.back = threading.Event()
        self.answered = threading.Event()
        self.asked: list[tuple[str, int]] = []
        self._log = Log(5)

    def read(self, mdt: str, after: int) -> bytes:
        self.asked.append((mdt, after))
        if mdt == "MDT0001":
            self.back.wait()
        try:
            return self._log.read(mdt, after)
        finally:
            if mdt == "MDT0001":
                self.answered.set()


@pytest.fixture
def away() -> Iterator[Away]:
    away = Away()
    yield away
    away.back.set()


def heard(follower: Follower) -> tuple[int, str]:
    count = 0
    try:
        for _ in follower.records():
            count += 1
    except ChangelogError as error:
        return count, str(error)
    return count, ""


def test_the_others_are_heard_and_it_is_asked_once(away: Away) -> None:
    watch = Watch()
    follower = Follower(Patience(watch, 0.02).reading(away.read), ["MDT0001", "MDT0000"])
    count, trouble = heard(follower)
    assert count == 5
    assert trouble.startswith("changelog of MDT0001: ")
    assert "no answer for 0 s: its server is away, or recovers" in trouble
    watch.time += 600
    count, trouble = heard(follower)
    assert count == 0
    assert "no answer for 600 s" in trouble
    assert away.asked.count(("MDT0001", 0)) == 1


def test_what_comes_late_is_not_lost_and_not_asked_for_again(away: Away) -> None:
    follower = Follower(Patience(Watch(), 0.02).reading(away.read), ["MDT0001"])
    assert heard(follower)[0] == 0
    away.back.set()
    assert away.answered.wait(10)
    total, trouble = 0, "no answer"
    while trouble:
        count, trouble = heard(follower)
        assert not trouble or "no answer" in trouble
        total += count
    assert total == 5
    assert away.asked == [("MDT0001", 0), ("MDT0001", 3), ("MDT0001", 5)]


def test_a_late_answer_to_another_question_is_let_go() -> None:
    """However close to the next question it comes."""
    for _ in range(200):
        back = threading.Event()
        patience = Patience(Watch(), 0.001)
        with pytest.raises(TimeoutError):
            patience("MDT0001", "old", back.wait)
        with pytest.raises(TimeoutError):
            patience("MDT0001", "new", lambda: "never asked")
        back.set()
        answer = None
        while answer is None:
            with suppress(TimeoutError):
                answer = patience("MDT0001", "new", lambda: "new")
        assert answer == "new"


def test_an_error_is_raised_as_it_was(away: Away) -> None:
    cleared: list[tuple[str, str, int]] = []

    def clear(mdt: str, reader: str, index: int) -> None:
        cleared.append((mdt, reader, index))
        raise FileNotFoundError(2, "no such reader")

    with pytest.raises(FileNotFoundError, match="no such reader"):
        Patience(Watch(), 10).clearing(clear)("MDT0000", "cl1", 7)
    assert cleared == [("MDT0000", "cl1", 7)]
