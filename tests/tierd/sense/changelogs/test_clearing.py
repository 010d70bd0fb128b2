import errno
import os

import pytest

from tests.tierd.logged import logged
from tests.tierd.sense.changelogs.test_follow import Log, drained
from tests.tierd.sense.clocks import SettableClock
from tierd.sense.changelogs.follow import CLEAR_AGAIN_SECONDS, ChangelogClearing, Follower
from tierd.sense.changelogs.recording import RecordingCheck
from tierd.sense.readings import ChangelogState


class World:
    """An MDT whose clearing may fail."""

    def __init__(self) -> None:
        self.log = Log(3)
        self.clock = SettableClock()
        self.follower = Follower(self.log.read, ["MDT0000"], self.clock)
        self.fault = 0
        self.cleared: list[tuple[str, str, int]] = []
        self.said = logged()
        clearing = ChangelogClearing(self.clear, {"MDT0000": "cl1"}, self.clock, "l")
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
    world.clock.at += CLEAR_AGAIN_SECONDS
    world.clearing()
    world.clock.at -= 3600.0
    world.clearing()
    world.clearing()
    assert [index for _, _, index in world.cleared] == [3, 5, 5, 5]


def test_a_deregistered_reader_is_reported_until_it_is_registered_again(world: World) -> None:
    list(world.follower.batches())
    world.fault = errno.ENOENT
    for _ in range(3):
        world.clearing()
    assert len(world.said) == 1
    assert "changelog_register" in world.said[0]
    assert "Lustre knows no reader cl1" in drained(world.follower)[1]
    world.fault = 0
    world.clearing()
    assert "records are missing" in drained(world.follower)[1]
    assert drained(world.follower)[1] == ""


def test_a_changelog_that_ends_before_the_position_has_restarted(world: World) -> None:
    list(world.follower.batches())
    world.log.last, world.fault = 2, errno.EINVAL
    world.clearing()
    assert drained(world.follower) == ([1, 2], "changelog of MDT0000: it has restarted")


def test_an_index_that_another_program_has_cleared_is_no_restart(world: World) -> None:
    """Up to Lustre 2.17.0 the MDT answers as for an index that it has not written yet."""
    recording = world.follower.recording = RecordingCheck("l", {"MDT0000": "cl1"}, world.clock)
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
