import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.exposition import escape
from exporter.jobs.lines import unique_name
from lustre.formats.job_stats import MAX_JOB_ID_BYTES
from tierd.loads import JobLoad
from tierd.model import EarlierWork
from tierd.sense import readings
from tierd.sense.counters import CounterTable, JobEntry
from tierd.sense.exposition import labels_of
from tierd.sense.readings import IMPLAUSIBLE, Reading, ServiceCounters, Stamp, earlier_work, of_filesystem, window

OST, MDT = "lustre-OST0002", "lustre-MDT0000"


def counters(writes: float = 0, start: str = "", **more: float) -> JobEntry:
    return JobEntry({"write_bytes": writes, "write": writes, **more}, {"write_bytes": writes * 1000}, {4096: writes},
                       start)


def reading(time: float, jobs: dict[tuple[str, str], JobEntry]) -> Reading:
    return Reading(time, jobs, frozenset({OST, MDT}))


@pytest.mark.parametrize(("jobs", "start", "counts"), [
    (" a", "12.5", False), (" a", "nan", False), (" a", "?", False), (" a", "997.0", True), ("b b ab", "", True),
    ("ab b ab", "", False), ("ab b b ab", "", False), ("b b a", "", False), ("ab b b b b b b b b ab", "", True)])
def test_an_old_entry_that_was_overlooked_gives_no_sudden_load(jobs: str, start: str, counts: bool) -> None:
    """Before 2.15 entries have no start. There the last reading has an old one that others skipped, or renamed."""
    lost: dict[str, float] = {}
    readings = [Reading(1000 + 5 * number, {(OST, job): counters(1, start=start) for job in each}, frozenset({OST}),
                        complete=frozenset({OST})) for number, each in enumerate(jobs.split(" "))]
    *_, seen = (window(before, after, lost) for before, after in pairwise(readings))
    assert [job for _, job in seen.loads] == ["a"] * counts


def test_jobs_have_done_on_all_object_targets_what_their_counters_say_since_the_oldest_start() -> None:
    jobs = {(OST, "a"): counters(100, "940.5"), ("lustre-OST0003", "a"): counters(20, "950"),
            (MDT, "a"): counters(7, "1"), (OST, "b"): counters(5), (OST, "idle"): counters(5, "900")}
    first = replace(reading(1000, jobs), stamps={OST: Stamp("oss", 1000.5)})
    more = {key: counters(entry.samples["write"] + 10, entry.start) for key, entry in jobs.items() if key[1] != "idle"}
    assert earlier_work(first, window(reading(1000, jobs), reading(1005, jobs | more))) == {
        "a": EarlierWork(940.5, 60.0, 60.0, 120_000.0), "b": EarlierWork(0.0, 1000.5, 2.5, 5_000.0)}


def test_metadata_of_all_mdts_is_one_load() -> None:
    seen = window(reading(0, {(MDT, "j"): counters()}),
                  reading(5, {(MDT, "j"): counters(open=7, mknod=5, close=6, unlink=1, getattr=9)}))
    names = seen.namespace["j"]
    assert (names.opens, names.creates, names.closes, names.unlinks, names.other_operations) == (7, 5, 6, 1, 9)
    first, then = (reading(time, {(MDT, "j"): JobEntry({"open": 9 - time}, {"open": 9.0 + time}, start="1")})
                   for time in (0.0, 5.0))
    seen = window(first, then)
    assert (seen.namespace, seen.metadata, seen.conditions) == ({}, {}, {MDT: IMPLAUSIBLE})


def test_targets_of_other_file_systems_on_the_same_servers_are_left_out() -> None:
    """Also where one name begins with another one, and the numbers of targets are the same."""
    every = [f"{fs}-{target}" for fs in ("l", "l-2", "l2") for target in ("OST0000", "MDT0000")]
    both = Reading(5.0, {(target, "j"): counters(1) for target in every}, frozenset(every),
                   dict.fromkeys(every, "degraded"), data_limits=dict.fromkeys(every[1::2], 65536), services={
                       "mds": ServiceCounters(mdts=frozenset(every[1::2])),
                       "other mds": ServiceCounters(mdts=frozenset(every[5:]))})
    one = of_filesystem(both, "l")
    assert one.targets == one.conditions.keys() == {target for target, _ in one.jobs} == {"l-OST0000", "l-MDT0000"}
    assert one.data_limits == {"l-MDT0000": 65536}
    assert {origin: service.mdts for origin, service in one.services.items()} == {"mds": {"l-MDT0000"}}
    assert of_filesystem(one, "l") is one


OST_TARGET = "l-OST0001"
NAMES = ("read_bytes", "write_bytes", "read", "write", "getattr", "setattr", "sync", "statfs")
NUMBERS = st.one_of(st.integers(0, 5).map(float), st.floats(0, 1e16), st.just(math.nan), st.just(math.inf))
SOME = st.dictionaries(st.sampled_from(NAMES), NUMBERS)
ENTRIES = st.builds(JobEntry, SOME, st.dictionaries(st.sampled_from(NAMES[:4]), NUMBERS),
                    st.dictionaries(st.sampled_from([4096, 1 << 20]), NUMBERS), st.sampled_from(["", "5.0", "7.0"]))


def one_by_one(before: JobEntry | None, after: JobEntry, seconds: float) -> JobLoad | str | None:
    """The load between two entries of one job on one OST, or the condition of the target."""
    if before is None and not after.start:
        return None
    zero = JobEntry({}, {}, {})
    then = before or zero
    names = then.samples.keys() | after.samples.keys()
    if all(then.samples.get(name, 0.0) == after.samples.get(name, 0.0) for name in names):
        return None
    fell = any(after.samples.get(name, 0.0) < then.samples.get(name, 0.0) for name in names)
    known = bool(then.start and after.start)
    if fell and known and then.start == after.start:
        return IMPLAUSIBLE
    anew = before is None or fell or (known and then.start != after.start)
    if anew:
        then = zero
    samples = {name: after.samples.get(name, 0.0) - then.samples.get(name, 0.0) for name in names}
    both: Any = ((then.sums, after.sums), (then.sizes, after.sizes))
    totals, sizes = ({name: more for name, count in now.items()
                      if (more := count - was.get(name, 0.0)) > 0 or (anew and not more >= 0)}
                    for was, now in both)
    if not any(samples.values()):
        return None
    limits = readings.MAX_OPERATIONS, readings.MAX_BYTES, readings.MAX_OPERATIONS
    for numbers, most in zip((samples, totals, sizes), limits, strict=True):
        if not (all(number >= 0 for number in numbers.values()) and sum(numbers.values()) <= most * seconds):
            return IMPLAUSIBLE
    return JobLoad(
        OST_TARGET, "j", totals.get("read_bytes", 0.0), totals.get("write_bytes", 0.0),
        samples.get("read_bytes") or samples.get("read", 0.0), samples.get("write_bytes") or samples.get("write", 0.0),
        sum(count for name, count in samples.items()
            if name not in readings.DATA_OPERATIONS | readings.MEMORY_OPERATIONS),
        totals.get("read", 0.0) + totals.get("write", 0.0), sizes)


@settings(max_examples=500)
@given(st.lists(st.tuples(st.none() | ENTRIES, ENTRIES), max_size=6))
def test_all_entries_at_once_come_to_the_same_as_one_by_one(pairs: list[tuple[JobEntry | None, JobEntry]]) -> None:
    targets = [f"l-OST{number:04x}" for number in range(len(pairs))]
    first = {(target, "j"): before for target, (before, _) in zip(targets, pairs, strict=True) if before is not None}
    last = {(target, "j"): after for target, (_, after) in zip(targets, pairs, strict=True)}
    seen = window(Reading(0.0, first, frozenset(targets)), Reading(5.0, last, frozenset(targets)))
    for target, (before, after) in zip(targets, pairs, strict=True):
        expected = one_by_one(before, after, 5.0)
        load = seen.loads.get((target, "j"))
        assert seen.conditions.get(target) == (expected if isinstance(expected, str) else None)
        if isinstance(expected, JobLoad):
            assert load is not None
            assert load._replace(target=OST_TARGET)[:8] == pytest.approx(expected[:8])
            assert load.sizes == expected.sizes
        else:
            assert load is None


def test_service_of_an_mdt_is_the_sum_over_its_jobs() -> None:
    def entry(opens: float, usec: float) -> JobEntry:
        return JobEntry({"open": opens, "close": 1.0}, {"open": usec, "close": 5.0})

    first = {("l-MDT0000", job): entry(10.0, 100.0) for job in ("a", "b")}
    last = {("l-MDT0000", "a"): entry(14.0, 160.0), ("l-MDT0000", "b"): entry(11.0, 110.0)}
    targets = frozenset({"l-MDT0000"})
    found = window(Reading(0.0, first, targets), Reading(5.0, last, targets)).metadata
    assert {name: tuple(service) for name, service in found["l-MDT0000"].items()} == {"open": (5.0, 70.0)}


def test_counters_are_given_back_as_they_came() -> None:
    entries = {("l-OST0001", "j"): JobEntry({"write": 3.0}, {"write": 70.0}, {4096: 3.0}, "5.0"),
               ("l-OST0002", "j"): JobEntry({"sync": 1.0}, {})}
    table = CounterTable.of(entries)
    assert table == entries
    assert list(table) == list(entries)
    assert ("l-OST0003", "j") not in table


def test_a_job_id_is_as_long_as_lustre_and_the_exporter_make_it_and_no_longer() -> None:
    longest = b"\xff" * MAX_JOB_ID_BYTES
    taken = {unique_name(longest, ()), escape(longest.decode("utf-8", "backslashreplace"))}
    label = b'job="%b"' % unique_name(longest, taken)
    name = labels_of(label)["job"]
    assert (len(name), name[:8], name[-6:]) == (4 * 31 + 2, r"\xff\xff", r"\xff~2")
    assert not conditions_of(name)
    assert conditions_of("x" * (4 * 32 + 5)) == {OST_TARGET: IMPLAUSIBLE}


def conditions_of(job: str) -> Mapping[str, str]:
    before, after = (Reading(time, {(OST_TARGET, job): JobEntry({"write": time}, {})}, frozenset({OST_TARGET}))
                     for time in (5.0, 10.0))
    return window(before, after).conditions
