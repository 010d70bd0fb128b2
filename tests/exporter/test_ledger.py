"""Sums over targets survive any one of them: they never go back, and never jump by what was counted long ago."""

import pytest

from exporter.ledger import SPARE, Ledger
from tests.exporter.conftest import Wall

KEYS = ("a", "b")
NONSENSE, FAR = (1 << 64) - 1, 1 << 60


def sums(ledger: Ledger[str, str]) -> dict[str, int]:
    return {f"{group}/{key}": value for group in ("g", "h") for key, value in ledger.totals(group).items()}


@pytest.mark.parametrize(("readings", "expected"), [
    ([("g", b"", 10), ("g", b"", 4), ("g", b"", 6)], {"g/a": 16}),
    ([("g", b"1", 10), ("g", b"2", 12)], {"g/a": 22}),
    ([("g", b"1", 10), ("g", b"", 11), ("g", b"1", 12)], {"g/a": 12}),
    ([("g", b"1", 10), ("h", b"1", 13), ("h", b"1", 14)], {"g/a": 10, "h/a": 4}),
    ([("g", b"1", 10), (None, b"1", 50), ("g", b"1", 53)], {"g/a": 13}),
], ids=["a cleared file counts from zero", "a new start time is a reset", "a file cut in its header is no reset",
        "a target that changes its pool leaves its past behind", "a member of no group is remembered only"])
def test_a_sum_never_goes_back(readings: list[tuple[str | None, bytes, int]], expected: dict[str, int]) -> None:
    ledger: Ledger[str, str] = Ledger()
    for group, start, value in readings:
        ledger.begin({"x": group})
        ledger.credit("x", start, ("a",), [value])
    assert sums(ledger) == expected
    assert ledger.groups == {readings[-1][0]}


def test_a_new_target_counts_in_full_but_one_that_could_not_be_read_does_not() -> None:
    ledger: Ledger[str, str] = Ledger()
    ledger.begin({"unreadable": "g"})
    ledger.begin({"unreadable": "g", "new": "g"})
    ledger.credit("unreadable", b"1", ("a",), [1000])
    ledger.credit("new", b"9", ("a",), [7])
    ledger.begin({"unreadable": "g", "new": "g"})
    ledger.credit("unreadable", b"1", ("a",), [1001])
    assert sums(ledger) == {"g/a": 8}


@pytest.mark.parametrize(("readings", "expected"), [
    (((10, 20), (11,), (12, 21)), {"g/a": 12, "g/b": 21}), (((1,), (1, 5000), (1, 5001)), {"g/a": 1, "g/b": 1}),
], ids=["cut once", "cut at first"])
def test_a_counter_lost_to_a_cut_file_comes_back_without_a_jump(
        readings: tuple[tuple[int, ...], ...], expected: dict[str, int]) -> None:
    ledger: Ledger[str, str] = Ledger()
    for values in readings:
        ledger.begin({"x": "g"})
        ledger.credit("x", b"1", KEYS[:len(values)], values, whole=len(values) == len(KEYS))
    assert sums(ledger) == expected


def test_memory_of_the_vanished_is_bounded() -> None:
    ledger: Ledger[str, str] = Ledger()
    for number in range(3 * SPARE):
        ledger.begin({f"job{number}": "g"})
        ledger.credit(f"job{number}", b"1", ("a",), [1])
    assert sums(ledger) == {"g/a": 3 * SPARE}
    ledger.begin({"job0": "g"})
    ledger.credit("job0", b"1", ("a",), [1])
    assert sums(ledger) == {"g/a": 3 * SPARE + 1}, "job0 was forgotten"


def test_a_forgotten_job_is_new_and_a_present_one_is_not_forgotten() -> None:
    ledger: Ledger[str, str] = Ledger()
    for members in ({"x": 100, "y": 1}, {"y": 2}, {"x": 103, "y": 2}):
        ledger.begin(dict.fromkeys(members, "g"))
        for name in "xy":
            ledger.forget(name)
        for name, value in members.items():
            ledger.credit(name, b"1", ("a",), [value])
    assert sums(ledger) == {"g/a": 100 + 2 + 103}


def passes(ledger: Ledger[str, str], clock: Wall, *readings: int) -> list[int]:
    """The sum after each reading of one counter of one target, 30 seconds apart; another target stands still."""
    found = []
    for value in readings:
        clock.seconds += 30
        ledger.begin({"a": "g", "b": "g"})
        ledger.credit("a", b"1", ("x",), (value,))
        ledger.credit("b", b"1", ("x",), (7,))
        found.append(ledger.totals("g")["x"] - 7)
    return found


@pytest.mark.parametrize(("readings", "expected", "implausible"), [
    *[((10, nonsense, 15, 20), [10, 10, 15, 20], 1) for nonsense in (NONSENSE, 1 << 63, 1 << 62, 1 << 50, 10**25)],
    ((10, FAR, FAR, FAR, 15), [10, 10, 10, 10, 15], 1),
    ((NONSENSE, 15, 20), [0, 15, 20], 1),
    ((10, FAR, FAR + 5, FAR + 9), [10, 10, 15, 19], 1),
], ids=[*(f"nonsense {number}" for number in range(5)), "nonsense that lasts and ends leaves no trace",
        "a first reading of nonsense counts nothing", "a counter that goes on from its jump counts again"])
def test_nonsense_is_left_out_and_the_sum_continues(
        readings: tuple[int, ...], expected: list[int], implausible: int) -> None:
    ledger: Ledger[str, str] = Ledger(clock := Wall())
    assert passes(ledger, clock, *readings) == expected
    assert ledger.implausible == implausible


def test_a_long_pause_allows_more_growth() -> None:
    ledger: Ledger[str, str] = Ledger(clock := Wall())
    passes(ledger, clock, 10)
    clock.seconds += 86400
    assert passes(ledger, clock, 10**16) == [10**16]
    assert ledger.implausible == 0


def test_mounts_of_the_past_take_no_memory_for_ever() -> None:
    """Each container mounts at a path of its own; one mount stays."""
    ledger: Ledger[str, str] = Ledger()
    for number in range(5 * SPARE):
        ledger.begin({"stays": "mount", f"device{number}": f"pod{number}"})
        ledger.credit("stays", b"1", ("x",), (number,))
        ledger.credit(f"device{number}", b"1", ("x",), (7,))
        assert ledger.totals("mount")["x"] == number
    assert ledger.totals(f"pod{5 * SPARE - 3}")["x"] == 7, "it may be mounted again"
    assert len(ledger.every()) <= 2 * SPARE
