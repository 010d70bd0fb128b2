"""The loads made in C are the loads made one by one: any numbers, damage, and no object left behind."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tierd.model import NO_SIZES, JobLoad
from tierd.sense.readings import AVAILABLE, MAX_NUMBERS, Changed, JobCounters, fast_ost_load, regular_loads

if not AVAILABLE:
    pytest.skip("the module in C was not built: no compiler, or no Python.h", allow_module_level=True)

from tierd.sense import _readings

NAMES = ("read_bytes", "write_bytes", "read", "write", "getattr", "punch", "sync", "destroy")
LIMITS = 5e8, 5e13


def entry(numbers: bytes, samples: Sequence[str], sums: Sequence[str], sizes: Sequence[int]) -> JobCounters:
    """An entry with these packed numbers."""
    made = JobCounters(dict.fromkeys(samples, 0.0), dict.fromkeys(sums, 0.0), dict.fromkeys(sizes, 0.0))
    made.numbers = numbers
    return made


def exact(load: JobLoad | None) -> object:
    """A load with the types of its fields; NaN and the sign of zero show."""
    return load and (type(load), repr(tuple(load)[:-1]), repr(dict(load.sizes)), load.sizes is NO_SIZES)


def same(changed: list[Changed], limits: tuple[float, float] = LIMITS) -> None:
    one_by_one = [fast_ost_load(*key, before, after, *limits) for key, before, after in changed]
    assert list(map(exact, regular_loads(changed, *limits))) == list(map(exact, one_by_one))


@settings(max_examples=300)
@given(st.data(), st.lists(st.sampled_from(NAMES), unique=True), st.lists(st.sampled_from(NAMES), unique=True),
       st.lists(st.sampled_from((4096, 1 << 20, 4 << 20)), unique=True))
def test_any_bytes_as_numbers(data: st.DataObject, samples: list[str], sums: list[str], sizes: list[int]) -> None:
    width = 8 * (len(samples) + len(sums) + len(sizes))
    bytes_of_numbers = st.binary(min_size=width, max_size=width)
    pairs = data.draw(st.lists(st.tuples(bytes_of_numbers, bytes_of_numbers), min_size=1, max_size=4))
    same([(("l-OST0001", f"j{number}"), entry(before, samples, sums, sizes), entry(after, samples, sums, sizes))
          for number, (before, after) in enumerate(pairs)])


@settings(max_examples=300)
@given(st.lists(st.lists(st.integers(0, 3).map(float) | st.floats(0, 1e9) | st.just(-0.0), min_size=14, max_size=14),
                min_size=2, max_size=9), st.sampled_from((LIMITS, (4.0, 7.0))))
def test_any_increases(rows: list[list[float]], limits: tuple[float, float]) -> None:
    entries = [JobCounters(dict(zip(NAMES, row, strict=False)), dict(zip(NAMES[:4], row[8:], strict=False)),
                           dict(zip((4096, 1 << 20), row[12:], strict=True))) for row in rows]
    same([(("l-OST0001", "j"), entries[0], later) for later in entries], limits)


def regular(width: int = 3) -> list[Changed]:
    names = [f"op{number}" for number in range(width)]
    before, after = (JobCounters(dict.fromkeys(names, value), {"read": value}, {4096: value}) for value in (1.0, 3.0))
    return [(("l-OST0001", f"j{number}"), before, after) for number in range(9)]


@pytest.mark.parametrize("width", [MAX_NUMBERS - 2, MAX_NUMBERS - 1])
def test_entries_of_many_numbers(width: int) -> None:
    same(regular(width))


def test_equal_sizes_are_one_object() -> None:
    assert len({id(load.sizes) for load in regular_loads(regular(), *LIMITS) if load}) == 1


def test_an_entry_with_other_numbers_gives_no_load() -> None:
    (key, before, after), *_ = regular()
    after.numbers = after.numbers[:-1]
    assert regular_loads([(key, before, after)], *LIMITS) == [None]


def call(**changes: Any) -> list[JobLoad | None]:
    good: dict[str, Any] = {
        "changed": regular(), "form": (5, 3, 4), "positions": (-1,) * 8, "others": (0, 1, 2), "uppers": (4096,),
        "max_operations": 1e9, "max_bytes": 1e9, "known": {}, "make": (JobLoad, NO_SIZES)}
    return _readings.loads(*(good | changes).values())


def test_the_same_entries_again_and_again_leave_nothing_behind() -> None:
    several, stranger = regular(), JobCounters({"a": 1.0}, {})

    def go() -> tuple[int, ...]:
        for _ in range(50):
            call(changed=several)
            call(changed=[(("t", "j"), stranger, stranger)])
            with pytest.raises(AttributeError):
                call(changed=[*several, (("t", "j"), stranger, None)])
        gc.collect()
        return (sys.getallocatedblocks(), *map(sys.getrefcount, (
            None, JobLoad, NO_SIZES, several[0][0], several[0][1].numbers, several[0][2].numbers, 4096)))

    go()
    before = go()
    after = go()
    assert all(abs(now - then) <= 20 for now, then in zip(after, before, strict=True)), (before, after)


@pytest.mark.parametrize("wrong", [
    {"changed": ()}, {"changed": [None]}, {"changed": [(("t",), None, None)]}, {"form": None}, {"positions": []},
    {"others": ("x",)}, {"known": None}, {"make": (None, NO_SIZES)},
])  # fmt: skip
def test_what_is_no_call(wrong: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        call(**wrong)


@pytest.mark.parametrize("wrong", [
    {"form": (2000, 3, 4)}, {"form": (5, 6, 4)}, {"form": (5, 3, 6)}, {"form": (-1, 0, 0)}, {"positions": (0,)},
    {"positions": (5,) * 8}, {"positions": (-2,) * 8}, {"others": (-1,)}, {"others": (5,)}, {"uppers": ()},
    {"make": (int, NO_SIZES)},
])  # fmt: skip
def test_indexes_outside_the_numbers_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="loads"):
        call(**wrong)
