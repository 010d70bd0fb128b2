from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.changelog.encode import encode
from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from tierd.sense.follow import MOST_READS, ChangelogError, Follower, MissingRecordsError


class Log:
    """A changelog that hands out a few records at a time and may forget the oldest."""

    def __init__(self, last: int, batch: int = 3, first: int = 1) -> None:
        self.first, self.last, self.batch = first, last, batch
        self.fault: OSError | None = None

    def read(self, _: str, after: int) -> bytes:
        if self.fault is not None:
            raise self.fault
        begin = max(after + 1, self.first)
        return b"".join(encode(Record(n, RecordType.CLOSE, float(n), target=Fid(1, n)))
                        for n in range(begin, min(begin + self.batch, self.last + 1)))


def drained(follower: Follower) -> tuple[list[int], str]:
    """All records, and the error after them."""
    seen: list[int] = []
    try:
        for record in follower.records():
            seen += [record.index]
    except ChangelogError as error:
        return seen, str(error)
    return seen, ""


@given(st.integers(0, 20), st.integers(1, 7), st.lists(st.integers(0, 9), max_size=5))
def test_every_record_once_and_in_order(last: int, batch: int, more: list[int]) -> None:
    log = Log(last, batch)
    follower = Follower(log.read, ["MDT0000"], most_reads=1000)
    seen = [r.index for r in follower.records()]
    for count in more:
        log.last += count
        seen += [r.index for r in follower.records()]
    assert seen == list(range(1, log.last + 1))
    assert follower.positions == {"MDT0000": log.last}


def test_goes_on_where_it_was_left() -> None:
    follower = Follower(Log(10).read, ["MDT0000"], {"MDT0000": 7})
    assert [r.index for r in follower.records()] == [8, 9, 10]


def test_a_gap_is_said_after_what_could_be_read() -> None:
    log = Log(5)
    follower = Follower(log.read, ["MDT0000"])
    list(follower.records())
    log.first, log.last = 9, 12
    seen, problem = drained(follower)
    assert "changelog of MDT0000: records 6 to 8 are missing" in problem
    assert seen == [9, 10, 11, 12]
    assert list(follower.records()) == []


def test_a_gap_is_another_thing_than_a_device_that_cannot_be_read() -> None:
    log = Log(5)
    follower = Follower(log.read, ["MDT0000"])
    list(follower.records())
    log.first, log.last = 9, 12
    with pytest.raises(MissingRecordsError):
        list(follower.records())
    log.fault = PermissionError(13, "Permission denied")
    with pytest.raises(ChangelogError) as caught:
        list(follower.records())
    assert not isinstance(caught.value, MissingRecordsError)


def test_a_changelog_that_grows_faster_than_it_is_read_does_not_hold_up_the_others() -> None:
    endless, other = Log(10**9, batch=1), Log(2)
    follower = Follower(lambda mdt, after: (endless if mdt == "MDT0000" else other).read(mdt, after),
                        ["MDT0000", "MDT0001"])
    assert len(list(follower.records())) == MOST_READS + 2
    assert follower.positions == {"MDT0000": MOST_READS, "MDT0001": 2}


def test_a_device_that_gives_the_same_again_is_not_asked_for_ever() -> None:
    follower = Follower(lambda *_: Log(3).read("", 0), ["MDT0000"])
    seen, problem = drained(follower)
    assert seen == [1, 2, 3]
    assert "asked for records after 3, got 3" in problem


def test_a_reader_that_was_lost_is_told_until_it_is_back_and_then_once_as_a_gap() -> None:
    follower = Follower(Log(3).read, ["MDT0000"])
    follower.lost("MDT0000", "no such reader")
    assert drained(follower) == ([1, 2, 3], "changelog of MDT0000: no such reader")
    assert drained(follower) == ([], "changelog of MDT0000: no such reader")
    follower.regained("MDT0000")
    with pytest.raises(MissingRecordsError, match="records are missing, for no such reader"):
        list(follower.records())
    assert drained(follower) == ([], "")
    follower.regained("MDT0000")
    assert drained(follower) == ([], "")


def test_a_changelog_that_was_begun_anew_is_read_from_its_beginning() -> None:
    log = Log(3)
    follower = Follower(log.read, ["MDT0000"], {"MDT0000": 100})
    assert drained(follower) == ([], "")
    follower.begin_anew("MDT0000")
    assert drained(follower) == ([1, 2, 3], "changelog of MDT0000: it was begun anew")


def test_one_mdt_that_cannot_be_read_keeps_no_other_from_being_heard() -> None:
    good, bad = Log(2), Log(2)
    bad.fault = PermissionError(13, "Permission denied")
    follower = Follower(lambda mdt, after: (bad if mdt == "MDT0000" else good).read(mdt, after), ["MDT0000", "MDT0001"])
    seen, problem = drained(follower)
    assert problem == "changelog of MDT0000: [Errno 13] Permission denied"
    assert seen == [1, 2]


def test_what_is_no_changelog_is_said() -> None:
    with pytest.raises(ChangelogError, match="changelog of MDT0000"):
        list(Follower(lambda *_: b"\xff" * 200, ["MDT0000"]).records())
