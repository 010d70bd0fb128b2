"""Account names of the users that job ids name: looked up in the background, remembered, bounded."""

import pytest

from tests.tierd.later import Later
from tests.tierd.sense.clocks import SettableClock
from tierd.daemon.users import MAX_USERS, RENEW_SECONDS, RETRY_SECONDS, UserNames


@pytest.fixture
def later() -> Later:
    return Later()


def test_the_name_of_a_user_is_looked_up_in_the_background(later: Later) -> None:
    users = UserNames({1002: "alice"}.__getitem__, later)
    assert users.names(["ior.1002", "4711", "ior.1002"]) == {"ior.1002": "1002"}
    assert later.run() == 1
    assert users.names(["fio.1002", "t[].1002@/proj/run"]) == {
        "fio.1002": "alice (1002)", "t[].1002@/proj/run": "alice (1002)"}


def test_a_missing_name_is_looked_up_again_and_so_is_an_old_one(later: Later) -> None:
    """A directory service that was down at the start of tierd left the number for ever."""
    accounts: dict[int, str] = {}
    clock = SettableClock()
    users = UserNames(lambda uid: accounts.get(uid, ""), later, clock)
    users.names(["ior.7"])
    later.run()
    accounts[7] = "bob"
    clock.at += RETRY_SECONDS - 1
    assert (users.names(["ior.7"]), later.run()) == ({"ior.7": "7"}, 0)
    clock.at += 1
    assert (users.names(["ior.7"]), later.run()) == ({"ior.7": "7"}, 1)
    assert users.names(["ior.7"]) == {"ior.7": "bob (7)"}
    accounts[7] = "robert"
    clock.at += RENEW_SECONDS
    assert (users.names(["ior.7"]), later.run()) == ({"ior.7": "bob (7)"}, 1)  # the old name until the new one is known
    assert users.names(["ior.7"]) == {"ior.7": "robert (7)"}


def test_a_failed_lookup_keeps_the_name(later: Later) -> None:
    answers: list[str | OSError] = ["bob", OSError("no answer")]
    clock = SettableClock()

    def lookup(_: int) -> str:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    users = UserNames(lookup, later, clock)
    users.names(["ior.7"])
    later.run()
    clock.at += RENEW_SECONDS
    users.names(["ior.7"])
    assert later.run() == 1
    assert users.names(["ior.7"]) == {"ior.7": "bob (7)"}


def test_a_directory_service_that_hangs_queues_no_more_than_the_limit(later: Later) -> None:
    users = UserNames(str, later)
    for uid in range(2 * MAX_USERS):
        assert users.names([f"ior.{uid}"]) == {f"ior.{uid}": str(uid)}
    assert len(later.calls) == MAX_USERS


def test_names_that_were_looked_up_longest_ago_are_forgotten(later: Later) -> None:
    users = UserNames(str, later)
    for uid in range(MAX_USERS):
        users.names([f"ior.{uid}"])
    later.run()
    users.names([f"ior.{MAX_USERS}"])
    assert later.run() == 1  # for the new one
    assert users.names(["ior.1"]) == {"ior.1": "1 (1)"}
    assert (users.names(["ior.0"]), later.run()) == ({"ior.0": "0"}, 1)
