"""Bodies that several connections send, and the limit on the bytes held for them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpserver.bodies import MAX_SHARED_SECONDS, Body, HeldBodies, NoRoomError
from httpserver.connections import Slot


class Client(Slot):
    """A client without a connection."""

    def __init__(self, slow: bool = False) -> None:
        self.slow, self.aborted = slow, False

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
    held, one = HeldBodies(100), body(60)
    first, second = held.send("a", one, Client()), held.send("a", one, Client())
    assert held.held_bytes() == 60
    assert b"".join(first) == b"".join(second) == b"x" * 60
    first.close()
    assert held.held_bytes() == 60
    second.close()
    second.close()
    assert held.held_bytes() == 0


def test_the_largest_body_leaves_room_for_others() -> None:
    held = HeldBodies(100)
    held.send("large", body(1000), Client())
    held.send("small", body(90), Client())
    with pytest.raises(NoRoomError):
        held.send("other", body(20), Client())
    with pytest.raises(NoRoomError):
        held.send("other", body(2000), Client())
    assert held.held_bytes() == 1090


def test_beyond_the_limit_a_recent_body_is_shared() -> None:
    clock = Clock()
    held = HeldBodies(100, clock)
    held.send("a", body(1000), Client())
    held.send("b", body(100), Client())
    assert len(b"".join(held.recent("a", Client()) or ())) == 1000
    assert len(b"".join(held.send("a", body(1001), Client()))) == 1000
    with pytest.raises(NoRoomError):
        held.recent("c", Client())
    clock.now = MAX_SHARED_SECONDS + 1
    with pytest.raises(NoRoomError):
        held.recent("a", Client())


def test_slow_clients_give_way_and_others_do_not() -> None:
    clock = Clock()
    held = HeldBodies(100, clock)
    slow, quick = Client(slow=True), Client()
    held.send("a", body(200), slow)
    reading = held.send("b", body(100), quick)
    clock.now = MAX_SHARED_SECONDS + 1
    assert held.recent("a", Client()) is None
    held.send("a", body(200), Client())
    assert (slow.aborted, quick.aborted) == (True, False)
    assert held.held_bytes() == 300
    with pytest.raises(NoRoomError):
        held.send("c", body(20), Client())
    reading.close()
    held.send("c", body(20), Client())


@given(st.lists(st.tuples(st.integers(1, 120), st.booleans(), st.booleans()), max_size=30))
def test_the_limit_holds_for_any_clients(requests) -> None:
    held = HeldBodies(100)
    readers: list[tuple[Client, int]] = []
    for number, (size, slow, ends) in enumerate(requests):
        client = Client(slow)
        try:
            reader = held.send(number, body(size), client)
        except NoRoomError:
            pass
        else:
            if ends:
                reader.close()
            else:
                readers.append((client, size))
        sizes = [of_client for client, of_client in readers if not client.aborted]
        assert held.held_bytes() == sum(sizes)
        assert sum(sizes) - max(sizes, default=0) <= 100


def test_memory_is_returned_after_a_slow_client_and_only_then() -> None:
    clock, returned = Clock(), []
    held = HeldBodies(100, clock, lambda: returned.append(clock.now))
    for seconds in (0.1, 10.0, 0.1):
        reader = held.send("a", body(10), Client())
        clock.now += seconds
        reader.close()
        held.recent("a", Client())
    assert returned == [10.1]
