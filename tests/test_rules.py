"""What all tests have in common: rules for many cases, and Hypothesis without a deadline."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.damaged import any_text
from tests.rules import every


def test_all_cases_that_break_a_rule_are_listed() -> None:
    @every("number, divisor", [(4, 2), (5, 2), (6, 3), (7, 0)], str)
    def divides(number: int, divisor: int, rest: int) -> None:
        assert number % divisor == rest, "the remainder"

    with pytest.raises(pytest.fail.Exception, match="2 of 4 cases") as caught:
        divides(rest=0)
    assert "(5, 2): AssertionError: the remainder" in str(caught.value)
    assert "(7, 0): ZeroDivisionError" in str(caught.value)


def test_a_rule_that_holds_passes_and_one_without_cases_fails(tmp_path) -> None:
    @every("name", ["a", "b"])
    def is_new(name, tmp_path) -> None:
        assert not (tmp_path / name).exists()

    is_new(tmp_path=tmp_path)
    with pytest.raises(AssertionError, match="without cases"):
        every("name", [])(lambda name: None)()


def test_no_example_has_a_deadline() -> None:
    assert settings.default is not None
    assert (settings.default.deadline, any_text.deadline) == (None, None)
