"""Bodies that several connections send, and the limit on the bytes held for them."""

import contextlib
import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpserver.bodies import MAX_SHARED_SECONDS, Body, HeldBodies, NoRoomError
from httpserver.connections import Connections, Slot, State


def client_of(*, slow: bool = False) -> Slot:
    with socket.socket() as closed:
        return Slot(Connections(), closed, sending_since=float("-inf") if slow else None)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def send(held: HeldBodies, key: object, size: int, client: Slot | None = None) -> Iterator[bytes]:
    return held.send(key, lambda: Body(lambda: [b"x" * size], size), client or client_of())[1]


def test_clients_share_a_body_which_is_counted_once_until_the_last_one_is_done() -> None:
    held, one = HeldBodies(100), Body(lambda: [b"x" * 60], 60)
    (size, first), (_, second) = [held.send("a", lambda: one, client_of()) for _ in range(2)]
    assert size == held.held_bytes() == 60
    assert b"".join(first) == b"x" * 60
    assert held.held_bytes() == 60
    second.close()  # type: ignore[attr-defined]
    assert held.held_bytes() == 0


def test_the_largest_body_leaves_room_for_others() -> None:
    held = HeldBodies(100)
    readers = [send(held, "large", 1000), send(held, "small", 90)]
    for size in (20, 2000):
        with pytest.raises(NoRoomError):
            send(held, "other", size)
    assert held.held_bytes() == 1090
    assert [len(b"".join(reader)) for reader in readers] == [1000, 90]


def test_beyond_the_limit_a_recent_body_is_shared() -> None:
    clock = Clock()
    held = HeldBodies(100, clock)
    readers = [send(held, "a", 1000), send(held, "b", 100)]
    assert len(b"".join(send(held, "a", 1))) == 1000
    with pytest.raises(NoRoomError):
        send(held, "c", 1)
    clock.now = MAX_SHARED_SECONDS + 1
    with pytest.raises(NoRoomError):
        send(held, "a", 1)
    assert len(readers) == 2


def test_a_body_that_turns_out_too_large_is_replaced_by_a_recent_one() -> None:
    held = HeldBodies(100)
    readers = [send(held, "a", 1000), send(held, "b", 60)]
    assert len(b"".join(send(held, "a", 1001))) == 1000
    assert len(readers) == 2


def test_slow_clients_give_way_and_others_do_not() -> None:
    clock = Clock()
    held = HeldBodies(100, clock)
    slow, quick = client_of(slow=True), client_of()
    readers = [send(held, "a", 200, slow), send(held, "b", 100, quick)]
    clock.now = MAX_SHARED_SECONDS + 1
    readers.append(send(held, "a", 200))
    assert (slow.state, quick.state) == (State.DROPPED, State.WAITING)
    assert held.held_bytes() == 300
    with pytest.raises(NoRoomError):
        send(held, "c", 20)
    b"".join(readers[1])
    send(held, "c", 20)


@given(st.lists(st.tuples(st.integers(1, 120), st.booleans(), st.booleans()), max_size=30))
def test_the_limit_holds_for_any_clients(requests) -> None:
    held = HeldBodies(100)
    readers: list[tuple[Slot, int, Iterator[bytes]]] = []
    for number, (size, slow, ends) in enumerate(requests):
        client = client_of(slow=slow)
        with contextlib.suppress(NoRoomError):
            reader = send(held, number, size, client)
            if ends:
                b"".join(reader)
            else:
                readers.append((client, size, reader))
        sizes = [of_client for client, of_client, _ in readers if client.state is not State.DROPPED]
        assert held.held_bytes() == sum(sizes)
        assert sum(sizes) - max(sizes, default=0) <= 100


def test_memory_is_returned_after_a_slow_client_and_only_then() -> None:
    clock, returned = Clock(), []
    held = HeldBodies(100, clock, lambda: returned.append(clock.now))
    for seconds in (0.1, 10.0, 0.1, 0.1):
        reader = send(held, "a", 10)
        clock.now += seconds
        b"".join(reader)
    assert returned == [10.1]
