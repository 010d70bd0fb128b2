"""Slow, silent and vanishing clients, and more of them than there are places."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from dataclasses import dataclass, field

import pytest

from httpserver.connections import Connections
from httpserver.server import MAX_HEAD_BYTES, Timeouts

WAIT = 20.0
REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


def hello(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]


def pieces(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return iter([b"one\n", b"", b"two\n"])


@dataclass
class Stopped:
    """A clock that jumps when told, and tells when it was looked at."""

    now: float = 0.0
    looked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __call__(self) -> float:
        self.looked.release()
        return self.now


def all_of(connection: socket.socket) -> bytes:
    connection.settimeout(WAIT)
    return b"".join(iter(lambda: connection.recv(65536), b""))


def test_an_answer_of_unknown_length_shows_its_end(serve) -> None:
    served = serve(pieces)
    with socket.create_connection(served.at) as client:
        client.sendall(REQUEST)
        head, _, body = all_of(client).partition(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head
    assert body == b"4\r\none\n\r\n4\r\ntwo\n\r\n0\r\n\r\n"


@pytest.mark.parametrize("protocol", [b"HTTP/1.0", b"HTTP/0.9", b""])
def test_older_clients_get_the_text_alone(serve, protocol) -> None:
    served = serve(pieces)
    with socket.create_connection(served.at) as client:
        client.sendall(b" ".join(filter(None, (b"GET /", protocol))) + b"\r\n\r\n")
        assert all_of(client).rpartition(b"\r\n\r\n")[2] in {b"one\ntwo\n", b""}


def test_an_answer_that_breaks_off_does_not_look_whole(serve, caplog) -> None:
    def broken(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain")])
        yield b"half of it\n"
        raise ValueError("no more")

    with pytest.raises(http.client.IncompleteRead):
        serve(broken).get("/")
    assert "cannot answer a request" in caplog.text


def test_a_mistake_of_ours_is_an_error_to_the_client(serve, caplog) -> None:
    def broken(environ, start_response):
        raise ValueError("secret detail")

    status, _, body = serve(broken).get("/")
    assert status == 500
    assert b"secret" not in body
    assert "secret detail" in caplog.text


def test_silent_clients_give_way_to_those_who_ask(serve) -> None:
    connections = Connections(limit=4)
    served = serve(hello, connections=connections)
    silent = [socket.create_connection(served.at) for _ in range(12)]
    try:
        assert served.get("/")[2] == b"hello"
        assert silent[0].recv(1) == b""
    finally:
        for client in silent:
            client.close()


def test_when_all_are_being_answered_the_next_is_turned_away(serve) -> None:
    entered, go_on = threading.Semaphore(0), threading.Event()

    def slow(environ, start_response):
        entered.release()
        assert go_on.wait(WAIT)
        return hello(environ, start_response)

    served = serve(slow, connections=Connections(limit=2))
    answers: list[bytes] = []
    clients = [threading.Thread(target=lambda: answers.append(served.get("/")[2])) for _ in range(2)]
    for client in clients:
        client.start()
        assert entered.acquire(timeout=WAIT)
    with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
        served.get("/")
    go_on.set()
    for client in clients:
        client.join(WAIT)
    assert answers == [b"hello"] * 2


def test_stopping_does_not_wait_for_the_silent(serve) -> None:
    served = serve(hello)
    with socket.create_connection(served.at) as silent:
        while not served.server.connections.count():
            pass
        assert served.server.connections.drain(WAIT)
        assert silent.recv(1) == b""


def test_a_head_sent_drop_by_drop_runs_out_of_time(serve) -> None:
    now = Stopped()
    served = serve(hello, timeouts=Timeouts(now, head_seconds=5.0))
    with socket.create_connection(served.at) as client:
        client.settimeout(WAIT)
        client.sendall(b"GET / HTTP/1.1\r\n")
        for _ in ("how long the head may take", "how long its first part may"):
            assert now.looked.acquire(timeout=WAIT)
        now.now = 6.0
        client.sendall(b"Host: here\r\n")
        with contextlib.suppress(ConnectionResetError):  # closed one way or the other
            assert client.recv(1) == b""


def test_a_silent_client_is_left(serve) -> None:
    served = serve(hello, timeouts=Timeouts(head_seconds=0.05))
    with socket.create_connection(served.at) as client:
        client.settimeout(WAIT)
        assert client.recv(1) == b""


def test_an_endless_head_is_cut(serve) -> None:
    served = serve(hello)
    with socket.create_connection(served.at) as client:
        client.settimeout(WAIT)
        client.sendall(b"GET / HTTP/1.1\r\n")
        answer = b"none"
        try:
            client.sendall(b"A: b\r\n" * MAX_HEAD_BYTES)
            answer = client.recv(65536)
        except ConnectionError:
            pass
    assert not answer.startswith(b"HTTP/1.1 200")
    assert served.get("/")[2] == b"hello"


def test_a_long_line_and_a_wrong_one_are_refused(serve) -> None:
    served = serve(hello)
    for line, status in ((b"GET /" + b"a" * 20000, b"414"), (b"nonsense", b"400"), (b"GET / HTTP/9.1", b"505")):
        with socket.create_connection(served.at) as client:
            client.sendall(line + b"\r\n\r\n")
            assert status in all_of(client)


def test_a_client_that_stops_reading_is_left(serve) -> None:
    def endless(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain")])
        while True:
            yield b"x" * 65536

    served = serve(endless, timeouts=Timeouts(response_seconds=0.1))
    with socket.create_connection(served.at) as client:
        client.sendall(REQUEST)
        assert client.recv(8) == b"HTTP/1.1"
        assert served.server.connections.drain(WAIT)


def test_a_client_that_goes_away_midway_costs_nothing(serve, caplog) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def slow(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain")])
        entered.set()
        assert go_on.wait(WAIT)
        return iter([b"x" * 65536] * 64)

    served = serve(slow)
    with socket.create_connection(served.at) as client:
        client.sendall(REQUEST)
        assert entered.wait(WAIT)
    go_on.set()
    assert served.server.connections.drain(WAIT)
    assert caplog.text == ""


def test_this_process_environment_is_no_part_of_a_request(serve, monkeypatch) -> None:
    def echo(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [environ.get("HTTP_AUTHORIZATION", "none").encode()]

    monkeypatch.setenv("HTTP_AUTHORIZATION", "Basic abc")
    assert serve(echo).get("/")[2] == b"none"
