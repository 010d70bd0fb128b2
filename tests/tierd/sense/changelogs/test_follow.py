import errno
import os
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from simulator.servers.changelog_bytes import encode
from tests.tierd.logged import logged
from tests.tierd.sense.clocks import SettableClock
from tierd.sense.changelogs import follow
from tierd.sense.changelogs.follow import ChangelogError, Follower, MissingRecordsError, TimedCalls
from tierd.sense.changelogs.recording import RecordingCheck
from tierd.sense.changelogs.tallies import Tally
from tierd.sense.freshness import RecordSource
from tierd.sense.readings import ChangelogState


def records_of(source: RecordSource) -> Iterator[Record]:
    """The records of a source, one by one."""
    return (record for batch in source.batches() if not isinstance(batch, Tally) for record in batch)


class Log:
    """A changelog that hands out a few records at a time and may forget the oldest."""

    def __init__(self, last: int, batch: int = 3, first: int = 1) -> None:
        self.first, self.last, self.batch = first, last, batch
        self.late: set[int] = set()
        """Records that have a number and are not written yet."""
        self.fault: OSError | None = None

    def read(self, _: str, after: int) -> bytes:
        if self.fault is not None:
            raise self.fault
        begin = max(after + 1, self.first)
        return b"".join(encode(Record(n, RecordType.CLOSE, float(n), target=Fid(1, n)))
                        for n in range(begin, min(begin + self.batch, self.last + 1)) if n not in self.late)


def drained(follower: Follower) -> tuple[list[int], str]:
    """All records, and the error after them."""
    seen: list[int] = []
    try:
        for record in records_of(follower):
            seen += [record.index]
    except ChangelogError as error:
        return seen, str(error)
    return seen, ""


def test_lost_records_are_reported_once_and_later_records_are_returned() -> None:
    log, clock = Log(5), SettableClock()
    follower = Follower(log.read, ["MDT0000", "MDT0001"], clock, {"MDT0001": 5})
    list(records_of(follower))
    log.first, log.last = 9, 12
    assert drained(follower) == ([], "")
    assert set(follower.waiting) == {"MDT0000", "MDT0001"}
    clock.at += follow.LATE_SECONDS
    with pytest.raises(MissingRecordsError, match="changelog of MDT0000: records 6 to 8 are missing"):
        list(records_of(follower))
    assert follower.positions == {"MDT0000": 12, "MDT0001": 12}
    assert list(records_of(follower)) == []
    assert not follower.waiting
    log.fault = PermissionError(13, "Permission denied")
    with pytest.raises(ChangelogError) as other:
        list(records_of(follower))
    assert not isinstance(other.value, MissingRecordsError)


def test_a_late_record_is_not_lost() -> None:
    """An MDT that writes records at the same time, to a reader that comes in between."""
    log, clock = Log(7, batch=100), SettableClock()
    follower = Follower(log.read, ["MDT0000"], clock, {"MDT0000": 2})
    log.late = {5}
    assert drained(follower) == ([3, 4], "")
    clock.at += follow.LATE_SECONDS - 0.1
    log.last, log.late = 12, {5, 9}
    assert drained(follower) == ([], "")
    clock.at += 1000.0
    log.last, log.late = 13, {9, 11}
    assert drained(follower) == ([5, 6, 7, 8], ""), "9 was not seen to be late before"
    clock.at += 0.5
    log.last, log.late = 14, {11, 13}
    assert drained(follower) == ([9, 10], "")
    clock.at -= 3600.0
    assert drained(follower) == ([], "")
    log.late.clear()
    assert drained(follower) == ([11, 12, 13, 14], "")


def test_a_late_record_of_the_first_read_is_not_skipped() -> None:
    log = Log(7, batch=100, first=4)
    follower = Follower(log.read, ["MDT0000"], SettableClock())
    log.late = {5}
    assert drained(follower) == ([4], "")
    log.late.clear()
    assert drained(follower) == ([5, 6, 7], "")


def test_all_lost_records_are_reported_in_the_second_read() -> None:
    log, clock = Log(2000, batch=2000), SettableClock()
    follower = Follower(log.read, ["MDT0000"], clock)
    log.late = {3, 4, 700, 900, 1999}
    assert drained(follower) == ([1, 2], "")
    clock.at += follow.LATE_SECONDS
    seen, problem = drained(follower)
    assert seen == [n for n in range(5, 2001) if n not in log.late]
    assert problem == ("changelog of MDT0000: records 3 to 4 are missing; records 700 to 700 are missing; records 900 "
                       "to 900 are missing (and 1 more)")


@given(st.lists(st.tuples(st.integers(0, 8), st.sets(st.integers(1, 60), max_size=6), st.floats(0.0, 1.9)), max_size=9),
       st.integers(1, 7))
def test_whatever_is_late_every_record_comes_once_and_in_order(
        steps: list[tuple[int, set[int], float]], batch: int) -> None:
    log, clock = Log(0, batch), SettableClock()
    follower = Follower(log.read, ["MDT0000"], clock, {"MDT0000": 0}, max_reads=1000)
    log.last = 1
    seen = [record.index for record in records_of(follower)]
    for more, late, seconds in steps:
        log.late = {index for index in late if index > log.last}  # a record is late once: in the read after its number
        log.last += more
        clock.at += seconds
        seen += [record.index for record in records_of(follower)]
    log.late = set()
    seen += [record.index for record in records_of(follower)]
    assert seen == list(range(1, log.last + 1))
    assert follower.positions == {"MDT0000": log.last}


def test_a_changelog_that_grows_faster_than_it_is_read_does_not_hold_up_the_others() -> None:
    endless, other = Log(10**9, batch=1), Log(2)
    follower = Follower(lambda mdt, after: (endless if mdt == "MDT0000" else other).read(mdt, after),
                        ["MDT0000", "MDT0001"], SettableClock())
    assert "changelog of MDT0000: tierd is more than 60 s behind" in drained(follower)[1]
    assert follower.positions == {"MDT0000": follow.MAX_READS, "MDT0001": 2}


def test_the_rest_of_a_slow_changelog_is_left_for_the_next_call() -> None:
    log, clock = Log(9, batch=1), SettableClock()

    def slow(mdt: str, after: int) -> bytes:
        clock.at += 0.4 * follow.READ_SECONDS
        return log.read(mdt, after)

    follower, clock.at = Follower(slow, ["MDT0000"], clock), 60.0
    assert drained(follower) == ([1, 2, 3], "")
    assert drained(follower) == ([4, 5, 6], "")


def test_a_device_that_repeats_records_is_not_read_forever() -> None:
    follower = Follower(lambda *_: Log(3).read("", 0), ["MDT0000"], SettableClock())
    seen, problem = drained(follower)
    assert seen == [1, 2, 3]
    assert "asked for records after 3, got 3" in problem


def test_bytes_that_are_no_changelog_are_an_error() -> None:
    with pytest.raises(ChangelogError, match="changelog of MDT0000"):
        list(Follower(lambda *_: b"\xff" * 200, ["MDT0000"], SettableClock()).batches())


class Away:
    """An MDT that answers once it is back."""

    def __init__(self) -> None:
        self.back = threading.Event()
        self.answered = threading.Event()
        self.requested: list[tuple[str, int]] = []
        self._log = Log(5)

    def read(self, mdt: str, after: int) -> bytes:
        self.requested.append((mdt, after))
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


def test_other_mdts_are_read_and_it_gets_one_call(away: Away) -> None:
    clock = SettableClock()
    timed_calls = TimedCalls(clock, 0.5)
    follower = Follower(timed_calls.reading(away.read), ["MDT0001", "MDT0000"], clock)
    seen, problem = drained(follower)
    assert len(seen) == 5
    assert problem.startswith("changelog of MDT0001: ")
    assert ("reading the records after 0 has not returned since 1970-01-01 00:16:40 UTC: the MDS is down, in recovery "
            "or slow") in problem
    clock.at += 600
    assert drained(follower) == ([], problem), "a fault is logged when it changes"
    assert timed_calls.under_way() == "MDT0001: reading the records after 0 has taken 600 s"
    assert away.requested.count(("MDT0001", 0)) == 1


def test_a_late_answer_is_used_and_not_requested_again(away: Away) -> None:
    follower = Follower(TimedCalls(SettableClock(), 0.02).reading(away.read), ["MDT0001"], SettableClock())
    assert drained(follower)[0] == []
    away.back.set()
    assert away.answered.wait(10)
    seen, problem = list[int](), "has not returned"
    while problem:
        more, problem = drained(follower)
        assert not problem or "has not returned" in problem
        seen += more
    assert seen == [1, 2, 3, 4, 5]
    assert away.requested == [("MDT0001", 0), ("MDT0001", 3), ("MDT0001", 5)]


def test_a_late_answer_to_another_query_is_dropped() -> None:
    """However close to the next question it comes."""
    for _ in range(200):
        back = threading.Event()
        timed_calls = TimedCalls(SettableClock(), 0.001)
        with pytest.raises(TimeoutError):
            timed_calls("MDT0001", "old", back.wait)
        with pytest.raises(TimeoutError):
            timed_calls("MDT0001", "new", lambda: "never asked")
        back.set()
        answer = None
        while answer is None:
            with suppress(TimeoutError):
                answer = timed_calls("MDT0001", "new", lambda: "new")
        assert answer == "new"


def test_an_error_is_raised_as_it_was() -> None:
    cleared: list[tuple[str, str, int]] = []

    def clear(mdt: str, reader: str, index: int) -> None:
        cleared.append((mdt, reader, index))
        raise FileNotFoundError(2, "no such reader")

    with pytest.raises(FileNotFoundError, match="no such reader"):
        TimedCalls(SettableClock(), 10).clearing(clear)("MDT0000", "cl1", 7)
    assert cleared == [("MDT0000", "cl1", 7)]


class World:
    """An MDT whose clearing may fail."""

    def __init__(self) -> None:
        self.log = Log(3)
        self.clock = SettableClock()
        self.follower = Follower(self.log.read, ["MDT0000"], self.clock)
        self.fault = 0
        self.cleared: list[tuple[str, str, int]] = []
        self.said = logged()
        clearing = follow.ChangelogClearing(self.clear, {"MDT0000": "cl1"}, self.clock, "l")
        self.clearing = lambda: clearing(self.follower, self.follower.positions)

    def clear(self, mdt: str, reader: str, index: int) -> None:
        if self.fault:
            raise OSError(self.fault, os.strerror(self.fault))
        self.cleared.append((mdt, reader, index))


@pytest.fixture
def world() -> World:
    return World()


def test_records_are_cleared_after_they_were_read_and_the_last_one_again_as_a_sign_of_life(world: World) -> None:
    world.clearing()
    assert world.cleared == [], "never record 0, which means all"
    list(world.follower.batches())
    world.clearing()
    world.clearing()
    assert world.cleared == [("MDT0000", "cl1", 3)]
    world.log.last = 5
    list(world.follower.batches())
    world.clearing()
    world.clock.at += follow.CLEAR_AGAIN_SECONDS
    world.clearing()
    world.clock.at -= 3600.0
    world.clearing()
    world.clearing()
    assert [index for _, _, index in world.cleared] == [3, 5, 5, 5]


def test_a_deregistered_reader_is_reported_until_it_is_registered_again(world: World) -> None:
    world.log.last, world.log.batch, world.fault = 10**9, 1, errno.ENOENT
    drained(world.follower)
    world.clearing()
    assert world.said == [], "it may have been registered later: another reader keeps these records"
    world.log.last = world.follower.positions["MDT0000"]
    list(world.follower.batches())
    for _ in range(3):
        world.clearing()
    assert len(world.said) == 1
    assert "changelog_register" in world.said[0]
    assert "Lustre knows no reader cl1" in drained(world.follower)[1]
    world.fault = 0
    world.clearing()
    assert "records are missing" in drained(world.follower)[1]
    assert drained(world.follower)[1] == ""


def test_of_an_mdt_that_cannot_be_read_no_reader_is_missed(world: World) -> None:
    """Without a mount, clearing fails as for a reader that is not registered."""
    list(world.follower.batches())
    world.clearing()
    world.clock.at += follow.CLEAR_AGAIN_SECONDS
    world.fault, world.log.fault = errno.ENOENT, OSError(errno.ENOENT, "no device")
    drained(world.follower)
    world.clearing()
    assert world.said == []
    world.fault, world.log.fault = 0, None
    assert drained(world.follower) == ([], "")


def test_a_changelog_that_ends_before_the_position_has_restarted(world: World) -> None:
    list(world.follower.batches())
    world.log.last, world.fault = 2, errno.EINVAL
    world.clearing()
    assert drained(world.follower) == ([1, 2], "changelog of MDT0000: it has restarted")


def test_an_index_that_another_program_has_cleared_is_no_restart(world: World) -> None:
    """Up to Lustre 2.17.0 the MDT answers as for an index that it has not written yet."""
    recording = world.follower.recording = RecordingCheck("l", {"MDT0000": "cl1"})
    recording.set_states({"l-MDT0000": ChangelogState(9, frozenset({"cl1"}))})
    list(world.follower.batches())
    world.fault = errno.EINVAL
    world.clearing()
    found, problems = drained(world.follower)
    assert (found, "has restarted" in problems, "another program clears for it" in problems) == ([], False, True)
    recording.set_states({"l-MDT0000": ChangelogState(2, frozenset({"cl1"}))})
    world.clearing()
    assert "it has restarted" in drained(world.follower)[1]


def test_temporary_failures_of_lustre_are_reported_and_retried(world: World) -> None:
    list(world.follower.batches())
    world.fault = errno.EIO
    world.clearing()
    assert drained(world.follower)[1] == ""
    world.fault = 0
    world.clearing()
    assert world.cleared
    assert world.said[-1] == "changelog of MDT0000 can be cleared again for cl1"
