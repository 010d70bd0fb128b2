"""Slow, silent and vanishing clients, and more of them than there are places."""

import contextlib
import http.client
import socket
import threading
from dataclasses import dataclass, field
from http import HTTPStatus

import pytest

from httpserver.connections import Connections, Slot, State
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
    """A clock that jumps on request, and records when it is read."""

    now: float = 0.0
    looked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __call__(self) -> float:
        self.looked.release()
        return self.now


def all_of(connection: socket.socket) -> bytes:
    connection.settimeout(WAIT)
    return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("app", [hello, pieces])
@pytest.mark.parametrize("protocol", [b"HTTP/1.0", b"HTTP/1.1"])
def test_an_answer_has_its_length_where_it_is_known(serve, app, protocol) -> None:
    served = serve(app)
    with socket.create_connection(served.at) as client:
        client.sendall(REQUEST.replace(b"HTTP/1.1", protocol))
        head, _, body = all_of(client).partition(b"\r\n\r\n")
    assert b"Transfer-Encoding" not in head
    assert (b"\r\nContent-Length: 5" in head, body) == ((True, b"hello") if app is hello else (False, b"one\ntwo\n"))


def test_an_answer_without_a_body_has_no_length(serve) -> None:
    def unchanged(environ, start_response):
        start_response("304 Not Modified", [])
        return []

    status, headers, body = serve(unchanged).get("/")
    assert (status, "content-length" in headers, body) == (304, False, b"")


def test_an_answer_that_breaks_off_does_not_look_whole(serve, caplog) -> None:
    def broken(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "20")])
        yield b"half of it\n"
        raise ValueError("no more")

    with pytest.raises(http.client.IncompleteRead):
        serve(broken).get("/")
    assert "cannot answer a request" in caplog.text


def test_a_bug_in_the_server_is_an_error_for_the_client(serve, caplog) -> None:
    def broken(environ, start_response):
        raise ValueError("secret detail")

    status, _, body = serve(broken).get("/")
    assert status == 500
    assert b"secret" not in body
    assert "secret detail" in caplog.text


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
    with socket.create_connection(served.at) as refused:
        try:
            refused.sendall(REQUEST)
            answer = all_of(refused)
        except ConnectionError:  # the response is not waited for
            answer = b""
    assert not answer or (answer.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: 5\r\n" in answer)
    go_on.set()
    for client in clients:
        client.join(WAIT)
    assert answers == [b"hello"] * 2
    assert served.server.connections.refused == {"limit": 1, "address": 0}


@pytest.fixture
def slot_of():
    """``slot_of(connections, address)`` is a connection whose thread ends when it is dropped."""

    def end(connections, slot) -> None:
        with slot.connection:
            slot.connection.recv(1)
        connections.end(slot)

    def begin(connections: Connections, address: str, *, answered: bool = True) -> Slot:
        server, client = socket.socketpair()
        clients.enter_context(client)
        slot = connections.begin(server, address)
        assert slot is not None
        threading.Thread(target=end, args=(connections, slot)).start()
        assert not answered or connections.request_arrived(slot)
        return slot

    with contextlib.ExitStack() as clients:
        yield begin


def test_the_address_with_most_connections_gives_way(slot_of) -> None:
    connections = Connections(4)
    lone = slot_of(connections, "10.0.0.1", answered=False)
    many = [slot_of(connections, "10.0.0.2", answered=False) for _ in range(3)]
    slot_of(connections, "10.0.0.3")
    assert [slot.state for slot in (lone, *many)] == [State.WAITING, State.DROPPED, State.WAITING, State.WAITING]
    assert connections.ended == {"waiting": 1, "slow": 0}


def test_slow_readers_give_way_to_the_next_request_and_quick_ones_do_not(slot_of) -> None:
    now = Stopped()
    connections = Connections(3, now)
    slow, quick = slot_of(connections, "10.0.0.1"), slot_of(connections, "10.0.0.1")
    slow.sending()
    now.now = 3.0
    quick.sending()
    computing = slot_of(connections, "10.0.0.2")
    newcomer = slot_of(connections, "10.0.0.3")
    assert slow.state is State.DROPPED
    assert {slot.state for slot in (quick, computing, newcomer)} == {State.ANSWERING}
    with socket.socket() as refused:
        assert connections.begin(refused, "10.0.0.4") is None
    assert connections.ended == {"waiting": 0, "slow": 1}


def test_one_address_gets_its_share_and_leaves_the_rest_to_others(slot_of) -> None:
    now = Stopped()
    connections = Connections(8, now)
    for _ in range(6):
        slot_of(connections, "10.0.0.1").sending()
    last = slot_of(connections, "10.0.0.1", answered=False)
    assert not connections.request_arrived(last)
    assert connections.refused["address"] == 1
    slot_of(connections, "10.0.0.2")
    now.now = 3.0
    assert connections.request_arrived(last)
    assert connections.ended["slow"] == 1


def test_a_request_beyond_the_share_of_its_address_gets_retry_after(serve) -> None:
    go_on, entered = threading.Event(), threading.Semaphore(0)

    def slow(environ, start_response):
        entered.release()
        assert go_on.wait(WAIT)
        return hello(environ, start_response)

    served = serve(slow, connections=Connections(4))
    first = [threading.Thread(target=lambda: served.get("/")) for _ in range(3)]
    for client in first:
        client.start()
        assert entered.acquire(timeout=WAIT)
    status, headers, _ = served.get("/")
    go_on.set()
    for client in first:
        client.join(WAIT)
    assert (status, headers["retry-after"]) == (503, "5")


@pytest.mark.parametrize(("sent", "status"), [
    (b"GET / HTTP/1.1\r\nHost: here\r\n", b"400 Bad Request"),
    (b"GET / HTTP/1.1\r\n", b"400 Bad Request"),
    (b"GET / HTTP/1.1\r\n" + (b"A: " + b"b" * 8000 + b"\r\n") * 9, b"431 Request Header Fields Too Large"),
    (b"GET / HTTP/1.1\r\n" + (b"A: " + b"b" * 8000 + b"\r\n") * 40, b"431 Request Header Fields Too Large"),
    (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * MAX_HEAD_BYTES, b"431 Request Header Fields Too Large"),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"505 HTTP Version Not Supported"),
    (b"GET\r\n\r\n", b"400 Bad Request"),
    (b"GET /\r\n\r\n", b"400 Bad Request"),
    (b"GET / HTTP/1.1", b"400 Bad Request"),
    (b"GET / HTTP/0.9\r\n\r\n", b"505 HTTP Version Not Supported"),
    (b"GET / HTTP/9.1\r\n\r\n", b"505 HTTP Version Not Supported"),
    (b"GET /" + b"a" * 20000 + b"\r\n\r\n", f"414 {HTTPStatus(414).phrase}".encode()),
    (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"400 Bad Request"),
])
def test_a_refused_request_gets_a_status_line(serve, sent, status) -> None:
    with socket.create_connection(serve(hello).at) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        head, _, body = all_of(client).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + status + b"\r\n")
    assert body == status[4:] + b".\n"


@pytest.mark.parametrize("timeouts", [
    Timeouts(response_seconds=WAIT, stall_seconds=0.1), Timeouts(response_seconds=0.1)])
def test_a_client_that_stops_reading_is_left(serve, timeouts) -> None:
    def endless(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain")])
        while True:
            yield b"x" * 65536

    served = serve(endless, timeouts=timeouts)
    with socket.create_connection(served.at) as client:
        client.sendall(REQUEST)
        assert client.recv(8) == b"HTTP/1.1"
        assert served.server.connections.drain(WAIT / 2)


@pytest.mark.parametrize(("begun", "drop"), [
    (b"GET / HTTP/1.1\r\n", b"Host: here\r\n"), (b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\n", b"drop")],
    ids=["head", "body"])
def test_a_request_sent_drop_by_drop_runs_out_of_time(serve, begun, drop) -> None:
    now = Stopped()
    served = serve(hello, connections=Connections(clock=now), max_body_bytes=100)
    with socket.create_connection(served.at) as client:
        client.settimeout(WAIT)
        client.sendall(begun)
        for _ in range(3):  # the limit, and how long the first and the second part may take
            assert now.looked.acquire(timeout=WAIT)
        now.now = 11.0
        client.sendall(drop)
        with contextlib.suppress(ConnectionResetError):  # closed one way or the other
            assert client.recv(1) == b""


def test_a_silent_client_is_left(serve) -> None:
    served = serve(hello, timeouts=Timeouts(request_seconds=0.05))
    with socket.create_connection(served.at) as client:
        client.settimeout(WAIT)
        assert client.recv(1) == b""


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


@pytest.mark.parametrize(("target", "path"), [
    (b"http://here:9169/metrics?a", b"/metrics"), (b"HTTPS://here/", b"/"), (b"//here/metrics", b"/here/metrics")])
def test_a_request_target_may_name_the_server(serve, target, path) -> None:
    def said(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [environ["PATH_INFO"].encode()]

    with socket.create_connection(serve(said).at) as client:
        client.sendall(REQUEST.replace(b"GET /", b"GET " + target))
        assert all_of(client).endswith(b"\r\n\r\n" + path)


def echo(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ["wsgi.input"].read()]


def post(served, head: bytes, body: bytes = b"") -> bytes:
    with socket.create_connection(served.at) as client:
        client.sendall(b"POST / HTTP/1.1\r\n" + head + b"\r\n\r\n" + body)
        return all_of(client)


@pytest.mark.parametrize(("head", "body", "status"), [
    (b"Content-Length: 5", b"hello", b"200"),
    (b"Content-Length: 0", b"", b"200"),
    (b"Host: here", b"", b"200"),
    (b"Content-Length: 100000", b"x" * 100000, b"200"),
    (b"Content-Length: 100001", b"x" * 100001, b"413"),
    (b"Content-Length: 100001\r\nExpect: 100-continue", b"", b"413"),
    (b"Content-Length: " + b"9" * 6000, b"", b"413"),
    (b"Content-Length: 0000000000005", b"hello", b"200"),
    (b"Content-Length: -1", b"", b"400"),
    (b"Transfer-Encoding: chunked", b"", b"411"),
], ids=str)
def test_a_body_is_read_up_to_the_limit(serve, head, body, status) -> None:
    answer = post(serve(echo, max_body_bytes=100000), head, body)
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert status != b"200" or answer.partition(b"\r\n\r\n")[2] == body


def test_without_a_limit_no_body_is_read(serve) -> None:
    assert post(serve(echo), b"Content-Length: 5").partition(b"\r\n\r\n")[2] == b""


def test_a_client_that_expects_100_continue_gets_it(serve) -> None:
    with socket.create_connection(serve(echo, max_body_bytes=10).at) as client:
        client.settimeout(WAIT)
        client.sendall(b"POST / HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"hello")
        assert all_of(client).endswith(b"\r\n\r\nhello")


def test_half_a_body_reaches_no_application(serve) -> None:
    called = threading.Event()

    def app(environ, start_response):
        called.set()
        return hello(environ, start_response)

    served = serve(app, max_body_bytes=100)
    with socket.create_connection(served.at) as client:
        client.sendall(b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf")
        client.shutdown(socket.SHUT_WR)
        assert all_of(client).startswith(b"HTTP/1.1 400 ")
    assert not called.is_set()


@pytest.mark.parametrize("said", [b"", b"GET / HT", b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf"])
def test_clients_that_do_not_finish_their_request_are_dropped(serve, said) -> None:
    connections = Connections(4)
    served = serve(hello, connections=connections, max_body_bytes=100)
    with contextlib.ExitStack() as stack:
        for _ in range(12):
            stack.enter_context(socket.create_connection(served.at)).sendall(said)
        assert served.get("/")[2] == b"hello"
        assert connections.count() <= 4


def test_a_thread_that_cannot_start_closes_the_connection(serve, monkeypatch, caplog) -> None:
    served = serve(hello)
    monkeypatch.setattr(threading.Thread, "start", lambda _: (_ for _ in ()).throw(RuntimeError("can't start")))
    with socket.create_connection(served.at) as client:
        assert all_of(client) == b""
    monkeypatch.undo()
    assert served.server.connections.count() == 0
    assert "cannot start a thread for a connection: can't start" in caplog.text
    assert served.get("/")[2] == b"hello"


@pytest.mark.parametrize("app", [hello, pieces])
def test_head_has_no_body(serve, app) -> None:
    served = serve(app)
    with socket.create_connection(served.at) as client:
        client.sendall(REQUEST.replace(b"GET", b"HEAD"))
        head, _, body = all_of(client).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert b"Server: test\r\n" in head
    assert body == b""


def test_a_server_ends_with_its_connections(serve) -> None:
    served = serve(hello)
    with socket.create_connection(served.at) as silent:
        while not served.server.connections.count():
            pass
        served.server.close(WAIT)
        assert all_of(silent) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(served.at, timeout=WAIT)
