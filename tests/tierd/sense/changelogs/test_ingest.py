"""After missing records the table begins again, empty, so that no stale entry stays."""

import logging
from collections.abc import Iterator

import pytest

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from tests.tierd.sense.clocks import SettableClock
from tierd.sense.changelogs.follow import Follower, MissingRecordsError
from tierd.sense.changelogs.table import ActivityTable

ONE, TWO = Fid(1, 2), Fid(1, 3)


def made(parent: Fid, name: str, number: int) -> Iterator[list[Record]]:
    """A file that was created and closed."""
    yield [Record(3 * number + more, kind, float(number), target=Fid(2, number), parent=parent, name=name.encode(),
                  job_id=b"j.1") for more, kind in enumerate((RecordType.CREATE, RecordType.OPEN, RecordType.CLOSE))]


def files(table: ActivityTable) -> dict[str, list[str]]:
    return {each.directory: [candidate.path for candidate in each.candidates] for each in table.of_job("j.1", 0.0)}


@pytest.fixture
def table() -> ActivityTable:
    table = ActivityTable({ONE: "/one", TWO: "/two"}.__getitem__)
    assert table.take_in(made(ONE, "a", 1), 1.0) == table.take_in(made(TWO, "b", 2), 2.0) == ""
    assert files(table) == {"/one": ["/one/a"], "/two": ["/two/b"]}
    return table


def test_the_table_forgets_all_that_missing_records_may_have_changed(table: ActivityTable,
                                                                     caplog: pytest.LogCaptureFixture) -> None:
    def records() -> Iterator[list[Record]]:
        yield from made(TWO, "c", 3)
        raise MissingRecordsError("changelog of MDT0000: records 10 to 20 are missing")

    with caplog.at_level(logging.WARNING):
        assert table.take_in(records(), 3.0) == ""
    assert caplog.messages == [("changelog of MDT0000: records 10 to 20 are missing. tierd forgets which files and "
                               "directories jobs worked with, and learns it again from new records")]
    assert (files(table), table.places(), table.recent(3.0).directories) == ({}, [], ())
    table.take_in(made(ONE, "d", 4), 4.0)
    assert files(table) == {"/one": ["/one/d"]}


def test_an_mdt_that_cannot_be_read_is_reported_beside_a_gap_of_another(table: ActivityTable) -> None:
    """No act may begin: what happens on that MDT is unknown."""
    def read(mdt: str, after: int) -> bytes:
        if mdt == "MDT0001":
            raise OSError(5, "the device cannot be read")
        return b""

    follower = Follower(read, ["MDT0000", "MDT0001"], SettableClock(), {"MDT0000": 9})
    follower.restart_from_zero("MDT0000")
    assert table.take_in(follower.batches(), 3.0) == "changelog of MDT0001: [Errno 5] the device cannot be read"
    assert files(table) == {}
