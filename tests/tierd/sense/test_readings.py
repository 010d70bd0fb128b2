from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.exposition import escape
from exporter.jobs.lines import unique_name
from lustre.formats.job_stats import MAX_JOB_ID_BYTES
from tierd.sense.exposition import labels_of
from tierd.sense.readings import (
    IMPLAUSIBLE,
    MAX_BYTES,
    MAX_OPERATIONS,
    JobCounters,
    Reading,
    between,
    fast_ost_load,
    job_load,
    loads_by_columns,
    namespace_load,
    operations_by_name,
    regular_increases,
    regular_loads,
    service_of,
    window,
)

OST, MDT = "lustre-OST0002", "lustre-MDT0000"


def counters(writes: float = 0, start: str = "", **more: float) -> JobCounters:
    return JobCounters({"write_bytes": writes, "write": writes, **more}, {"write_bytes": writes * 1000}, {4096: writes},
                       start)


def reading(time: float, jobs: dict[tuple[str, str], JobCounters], targets: set[str] | None = None) -> Reading:
    return Reading(time, jobs, frozenset({OST, MDT} if targets is None else targets))


def test_differences_and_rates() -> None:
    seen = window(reading(0, {(OST, "j"): counters(10)}), reading(5, {(OST, "j"): counters(25, sync=4, statfs=9)}))
    load = seen.loads[OST, "j"]
    assert (load.writes, load.write_bytes, load.other_operations, load.sizes) == (15, 15000, 4, {4096: 15})


def test_an_idle_job_is_not_in_the_window() -> None:
    assert not window(reading(0, {(OST, "j"): counters(10)}), reading(5, {(OST, "j"): counters(10)})).loads


def test_an_entry_that_began_anew_counts_from_zero() -> None:
    for again in (counters(3), counters(30, start="200.0")):
        seen = window(reading(100, {(OST, "j"): counters(10, start="50.0")}), reading(201, {(OST, "j"): again}))
        assert seen.loads[OST, "j"].writes == again.samples["write"]


def test_a_target_that_could_not_be_read_before_gives_no_sudden_load() -> None:
    seen = window(reading(0, {}, targets=set()), reading(5, {(OST, "j"): counters(1_000_000)}))
    assert not seen.loads


def test_an_old_entry_that_was_overlooked_gives_no_sudden_load() -> None:
    seen = window(reading(1000, {}), reading(1005, {(OST, "j"): counters(1_000_000, start="12.5")}))
    assert not seen.loads


def test_metadata_of_all_mdts_is_one_load() -> None:
    seen = window(reading(0, {}), reading(5, {(MDT, "j"): counters(open=7, mknod=5, close=6, unlink=1, getattr=9)}))
    names = seen.namespace["j"]
    assert (names.opens, names.creates, names.closes, names.unlinks, names.other_operations) == (7, 5, 6, 1, 9)


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=20))
def test_no_order_of_values_gives_a_negative_load(values: list[int]) -> None:
    for before, after in pairwise(values):
        seen = window(reading(0, {(OST, "j"): counters(before)}), reading(5, {(OST, "j"): counters(after)}))
        assert all(load.writes >= 0 and load.write_bytes >= 0 and min(load.sizes.values(), default=0) >= 0
                   for load in seen.loads.values())


OST_TARGET = "l-OST0001"
NAMES = ("read_bytes", "write_bytes", "read", "write", "getattr", "setattr", "sync", "statfs")
NUMBERS = st.one_of(st.integers(0, 5).map(float), st.floats(0, 1e16), st.just(math.nan), st.just(math.inf))
COUNTERS = st.builds(JobCounters, st.fixed_dictionaries(dict.fromkeys(NAMES, NUMBERS)),
                     st.fixed_dictionaries(dict.fromkeys(NAMES[:4], NUMBERS)),
                     st.fixed_dictionaries({4096: NUMBERS, 1 << 20: NUMBERS}), st.sampled_from(["", "5.0", "7.0"]))


@given(COUNTERS, COUNTERS)
def test_the_quick_way_comes_to_the_same(before: JobCounters, after: JobCounters) -> None:
    load = fast_ost_load(OST_TARGET, "j", before, after, MAX_OPERATIONS * 5, MAX_BYTES * 5)
    if load is not None:
        done = between(before, after, "j", 5.0)
        assert isinstance(done, JobCounters)
        assert load == job_load(OST_TARGET, "j", done)


NAMES_ONLY_OF_RELEASE = st.sampled_from([NAMES, NAMES[2:], ("getattr",), ()])


@given(st.data(), NAMES_ONLY_OF_RELEASE, st.sampled_from([(4096, 1 << 20), ()]))
def test_many_entries_at_once_come_to_the_same_as_one_by_one(data: st.DataObject, names: tuple[str, ...],
                                                            sizes: tuple[int, ...]) -> None:
    counts = st.one_of(st.integers(0, 3).map(float), NUMBERS) if data.draw(st.booleans()) else st.just(1.0)
    earlier = JobCounters(dict.fromkeys(names, 1.0), dict.fromkeys(names[:4], 1.0), dict.fromkeys(sizes, 1.0))
    width, at = len(earlier.values), earlier.shape
    rows = st.lists(st.tuples(*[counts] * width), min_size=1, max_size=5)
    changed = []
    for number, row in enumerate(data.draw(rows)):
        later = JobCounters(dict(zip(names, row, strict=False)),
                            dict(zip(at.sums, row[at.sums_at:], strict=False)),
                            dict(zip(at.sizes, row[at.sizes_at:width], strict=True)))
        changed.append(((OST_TARGET, f"j{number}"), earlier, later))
    limits = data.draw(st.sampled_from([(MAX_OPERATIONS * 5, MAX_BYTES * 5), (4.0, 7.0)]))
    alone = [fast_ost_load(*key, before, after, *limits) for key, before, after in changed]
    assert regular_loads(changed, *limits) == alone
    assert loads_by_columns(changed, *limits) == alone


def test_loads_with_equal_sizes_of_rpcs_share_them() -> None:
    earlier = JobCounters({"write": 1.0}, {}, {4096: 1.0, 1 << 20: 1.0})
    later = [JobCounters({"write": 9.0}, {}, {4096: 1.0 + n % 2, 1 << 20: 3.0}) for n in range(600)]
    loads = regular_loads([((OST_TARGET, f"j{n}"), earlier, each) for n, each in enumerate(later)], 1e8, 1e13)
    assert [load.sizes for load in loads if load] == [{1 << 20: 2.0}, {4096: 1.0, 1 << 20: 2.0}] * 300
    assert len({id(load.sizes) for load in loads if load}) == 2


@given(COUNTERS, COUNTERS)
def test_the_quick_way_of_metadata_comes_to_the_same(before: JobCounters, after: JobCounters) -> None:
    more = regular_increases(before, after, MAX_OPERATIONS * 5, MAX_BYTES * 5)
    if more is not None:
        done = between(before, after, "j", 5.0)
        assert isinstance(done, JobCounters)
        assert namespace_load("j", [operations_by_name(after.shape, more)]) == namespace_load("j", [done.samples])


def test_service_of_an_mdt_is_the_sum_over_its_jobs() -> None:
    def entry(opens: float, usec: float) -> JobCounters:
        return JobCounters({"open": opens, "close": 1.0}, {"open": usec, "close": 5.0})

    first = {("l-MDT0000", job): entry(10.0, 100.0) for job in ("a", "b")}
    last = {("l-MDT0000", "a"): entry(14.0, 160.0), ("l-MDT0000", "b"): entry(11.0, 110.0)}
    targets = frozenset({"l-MDT0000"})
    found = window(Reading(0.0, first, targets), Reading(5.0, last, targets)).metadata
    assert {name: tuple(service) for name, service in found["l-MDT0000"].items()} == {"open": (5.0, 70.0)}
    parts = [between(first[key], last[key], "j", 5.0) for key in first]
    assert found["l-MDT0000"] == service_of([part for part in parts if isinstance(part, JobCounters)])


@given(st.fixed_dictionaries({name: st.integers(0, 1000).map(float) for name in NAMES}),
       st.fixed_dictionaries({name: st.integers(0, 1000).map(float) for name in NAMES}))
def test_a_plausible_difference_is_handled_by_the_fast_path(before: dict[str, float], more: dict[str, float]) -> None:
    after = {name: count + more[name] for name, count in before.items()}
    load = fast_ost_load(OST_TARGET, "j", JobCounters(before, {}), JobCounters(after, {}), MAX_OPERATIONS, MAX_BYTES)
    assert (load is not None) == any(more.values())
    earlier, later = JobCounters(before, {}), JobCounters(after, {})
    rise = regular_increases(earlier, later, MAX_OPERATIONS, MAX_BYTES)
    assert (rise is not None) == any(more.values())
    assert operations_by_name(later.shape, rise or ()) == {name: count for name, count in more.items() if count}


def test_counters_are_given_back_as_they_came() -> None:
    given = JobCounters({"write": 3.0, "sync": 0.0}, {"write": 70.0}, {4096: 3.0}, "5.0")
    assert (given.samples, given.sums, given.sizes) == ({"write": 3.0, "sync": 0.0}, {"write": 70.0}, {4096: 3.0})
    assert given == JobCounters({"sync": 0.0, "write": 3.0}, {"write": 70.0}, {4096: 3.0}, "5.0")
    assert given != JobCounters({"write": 4.0, "sync": 0.0}, {"write": 70.0}, {4096: 3.0}, "5.0")


@pytest.mark.parametrize("number", [math.nan, -math.nan])
def test_counters_that_are_not_numbers_are_implausible(number: float) -> None:
    before, after = (Reading(time, {(OST_TARGET, "j"): JobCounters({"write": number}, {})}, frozenset({OST_TARGET}))
                     for time in (0.0, 5.0))
    assert window(before, after).conditions == {OST_TARGET: IMPLAUSIBLE}


def test_a_job_id_is_as_long_as_lustre_and_the_exporter_make_it_and_no_longer() -> None:
    longest = b"\xff" * MAX_JOB_ID_BYTES
    taken = {unique_name(longest, ()), escape(longest.decode("utf-8", "backslashreplace"))}
    label = b'job="%b"' % unique_name(longest, taken)
    name = labels_of(label)["job"]
    assert (len(name), name[:8], name[-6:]) == (4 * 31 + 2, r"\xff\xff", r"\xff~2")
    assert not conditions_of(name)
    assert conditions_of("x" * (4 * 32 + 5)) == {OST_TARGET: IMPLAUSIBLE}


def conditions_of(job: str) -> Mapping[str, str]:
    before, after = (Reading(time, {(OST_TARGET, job): JobCounters({"write": time}, {})}, frozenset({OST_TARGET}))
                     for time in (5.0, 10.0))
    return window(before, after).conditions
