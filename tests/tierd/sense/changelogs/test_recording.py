"""Whether an MDT still records for tierd, by its parameters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.changelog.record import RecordType
from lustre.fid import Fid
from simulator.servers.changelog import QUICK_START_MASK, Actor, Changelog
from tests.tierd.sense.changelogs.test_follow import drained
from tierd.sense.changelogs.follow import Follower
from tierd.sense.changelogs.recording import RecordingCheck
from tierd.sense.readings import ChangelogState

REGISTER = "lctl --device l-MDT0000 changelog_register"
SET_MASK = "lctl set_param -P mdd.l-MDT0000.changelog_mask='+CREAT"


class Site:
    """One MDT, what is seen of it, and who follows it."""

    def __init__(self, shown: bool = True, reader: str = "cl1") -> None:
        self.log = Changelog()
        self.time = 1000.0
        self.shown = shown
        self.readers = {"MDT0000": reader} if reader else {}
        self.recording = RecordingCheck("l", self.readers)
        self.follower = Follower(lambda _, after: self.log.read(after, self.time), ["MDT0000"], self,
                                 recording=self.recording)

    def now(self) -> float:
        return self.time

    def wait(self, seconds: float) -> bool:
        return False

    def work(self, files: int = 3) -> None:
        for number in range(files):
            self.log.add(RecordType.CREATE, self.time, Fid(1, self.log.last_index + number), Actor("j"))

    def cycle(self) -> tuple[list[int], str]:
        self.time += 5
        if self.shown:
            users = frozenset(self.log.users)
            mask = frozenset(kind.label for kind in self.log.mask)
            self.recording.set_states({"l-MDT0000": ChangelogState(self.log.last_index, users, mask)})
        return drained(self.follower)

    def within(self, cycles: int) -> str:
        """The first problem of so many cycles."""
        return next(filter(None, (self.cycle()[1] for _ in range(cycles))), "")


@pytest.fixture
def site() -> Site:
    at = Site()
    for _ in range(4):
        at.work()
        assert at.cycle()[1] == ""
    return at


def test_a_quiet_mdt_is_not_trouble(site: Site) -> None:
    for _ in range(30):
        assert site.cycle() == ([], "")
    assert site.recording.note() == ""


def test_a_deregistered_user_is_reported_until_another_registers_and_then_as_a_gap(site: Site) -> None:
    site.log.deregister()
    said = site.within(6)
    assert REGISTER in said
    assert site.cycle()[1], "for as long as it lasts"
    site.log.register()
    site.readers.clear()  # the configuration names the new one, or none
    assert "records are missing" in next(words for words in (site.cycle()[1] for _ in range(8))
                                         if "records are missing" in words)
    site.work()
    assert site.cycle()[1] == ""


@pytest.mark.parametrize("kind", [RecordType.CREATE, RecordType.CLOSE, RecordType.UNLINK, RecordType.RENAME])
def test_a_mask_without_what_is_needed_is_named(site: Site, kind: RecordType) -> None:
    site.log.set_mask(QUICK_START_MASK - {kind})
    said = site.within(6)
    assert f"its mask leaves out {kind.label}: " in said
    assert SET_MASK in said
    site.log.set_mask(QUICK_START_MASK)
    assert "records are missing" in " ".join(site.cycle()[1] for _ in range(8))
    assert site.cycle()[1] == ""


def test_a_mask_may_leave_out_types_that_are_not_needed(site: Site) -> None:
    site.log.set_mask(QUICK_START_MASK - {RecordType.OPEN, RecordType.HSM, RecordType.MTIME})
    assert site.within(12) == ""


def test_a_user_replaced_between_two_checks_may_have_left_a_gap() -> None:
    site = Site(shown=True, reader="")
    site.work()
    site.cycle()
    site.log.deregister()
    site.log.register()
    site.work()
    assert "cl1 were deregistered: what happened since may be missing" in site.cycle()[1]
    assert site.cycle()[1] == ""


def test_records_that_cannot_be_read_though_the_mdt_has_written_more() -> None:
    site = Site(shown=True)
    site.work()
    site.cycle()
    site.work()
    site.log.forget()
    assert site.cycle()[1] == "", "a record just written may be late"
    assert "the MDT has written more records, and none after 3 can be read" in site.cycle()[1]
    site.work()
    site.cycle()
    assert "records 4 to 6 are missing" in site.cycle()[1]


@pytest.mark.parametrize(("kept_records", "words"), [(0, ""), (5, "none after 0 can be read"),
                                                     (None, "none after 0 can be read")])
def test_before_the_first_record_of_a_quiet_mdt_whose_records_were_cleared(
        kept_records: int | None, words: str) -> None:
    """As after a user is registered on an MDT that has had others: tierd started no acts until somebody used it."""
    site = Site(shown=True)
    kinds = frozenset(kind.label for kind in site.log.mask)
    site.recording.set_states({"l-MDT0000": ChangelogState(138_796, frozenset({"cl1"}), kinds, kept_records)})
    assert [site.recording.check("MDT0000", 0, 0).problem for _ in range(2)][1].endswith(words)
    assert bool(site.recording.check("MDT0000", 0, 0).problem) is bool(words)


def test_a_mask_is_noticed_on_an_mdt_whose_reads_all_end_at_a_late_record() -> None:
    site = Site(shown=True)
    site.work(50)
    site.log.late_every, site.log.late_seconds = 7, 5.0
    site.cycle()
    site.log.set_mask([kind for kind in site.log.mask if kind is not RecordType.CLOSE])
    site.work(50)
    site.time -= 5
    seen, problem = site.cycle()
    assert seen
    assert site.follower.waiting
    assert "its mask leaves out CLOSE" in problem


def test_the_status_names_mdts_whose_recording_cannot_be_checked() -> None:
    site = Site(shown=False, reader="")
    assert site.cycle() == ([], "")
    assert site.recording.note() == ("whether MDT0000 still records is not known: its changelog_users cannot be read")
    site.work()
    site.cycle()
    assert site.recording.note() == ""


@given(st.lists(st.integers(0, 4), max_size=40))
def test_an_mdt_at_work_is_never_called_silent(work: list[int]) -> None:
    for shown in (True, False):
        site = Site(shown, reader="")
        for files in work:
            site.work(files)
            assert site.cycle()[1] == ""
