"""Bodies that several connections send, and the limit on the bytes held for them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpserver.bodies import MAX_SHARED_SECONDS, Body, HeldBodies, NoRoomError


@dataclass(eq=False)
class Client:
    slow: bool = False
    aborted: bool = False

    def is_slow(self) -> bool:
        return self.slow

    def abort(self) -> None:
        self.aborted = True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def body(size: int) -> Body:
    return Body(lambda: [b"x" * size], size)


def test_clients_share_a_body_which_is_counted_once_until_the_last_one_is_done() -> None:
    held, one = HeldBodies[str](100), body(60)
    first, second = held.send("a", one, Client()), held.send("a", one, Client())
    assert held.held_bytes() == 60
    assert b"".join(first) == b"".join(second) == b"x" * 60
    first.close()
    assert held.held_bytes() == 60
    second.close()
    second.close()
    assert held.held_bytes() == 0


def test_one_body_is_always_allowed() -> None:
    held = HeldBodies[str](100)
    assert held.recent("a", Client()) is None
    held.send("a", body(1000), Client())
    assert held.held_bytes() == 1000


def test_beyond_the_limit_a_recent_body_is_shared() -> None:
    clock = Clock()
    held = HeldBodies[str](100, clock)
    held.send("a", body(1000), Client())
    again = held.recent("a", Client())
    assert again is not None
    assert len(b"".join(again)) == 1000
    with pytest.raises(NoRoomError):
        held.recent("b", Client())
    clock.now = MAX_SHARED_SECONDS + 1
    with pytest.raises(NoRoomError):
        held.recent("a", Client())


def test_slow_clients_give_way_and_others_do_not() -> None:
    clock = Clock()
    held = HeldBodies[str](100, clock)
    slow, quick = Client(slow=True), Client()
    held.send("a", body(60), slow)
    reading = held.send("b", body(30), quick)
    clock.now = MAX_SHARED_SECONDS + 1
    assert held.recent("a", Client()) is None
    held.send("a", body(60), Client())
    assert (slow.aborted, quick.aborted) == (True, False)
    assert held.held_bytes() == 90
    with pytest.raises(NoRoomError):
        held.send("c", body(20), Client())
    reading.close()
    held.send("c", body(20), Client())


@given(st.lists(st.tuples(st.integers(1, 120), st.booleans(), st.booleans()), max_size=30))
def test_the_limit_holds_for_any_clients(requests) -> None:
    held = HeldBodies[int](100)
    for number, (size, slow, ends) in enumerate(requests):
        try:
            reader = held.send(number, body(size), Client(slow))
        except NoRoomError:
            pass
        else:
            if ends:
                reader.close()
        assert held.held_bytes() <= 100 or len(held._held) == 1
