"""Many who connect to tierd and say nothing, little, or too much: it stays small, and answers who asks."""

from __future__ import annotations

import json
import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from tests.tierd.site import Site, fetched
from tierd.config.settings import ControlSettings, WebSettings
from tierd.daemon.answers import Json
from tierd.daemon.client import ControlError, ask
from tierd.daemon.control import MAX_CHANGES, ControlServer, Peer
from tierd.daemon.requests import CHANGING_REQUESTS
from tierd.daemon.web import App, listen

CROWD = 300
LOOKER, STRANGER = Peer(1600, frozenset({2000})), Peer(1700)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "s")


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as held:
        yield held


def connected(held: ExitStack, address: str | tuple[str, int], said: bytes = b"") -> socket.socket:
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    one = held.enter_context(socket.socket(family))
    one.settimeout(None)  # with a time-out, a Unix socket does not wait for a place in the queue
    one.connect(address)
    one.settimeout(10)
    one.sendall(said)
    return one


def test_changes_that_wait_for_the_file_system_keep_no_reader_out(path: str, held: ExitStack) -> None:
    answers, arrived = threading.Event(), threading.Semaphore(0)
    held.callback(answers.set)

    def handle(request: Json) -> Json:
        if request["request"] == "undo":
            arrived.release()
            answers.wait()
        return {"ok": 1}

    server = ControlServer(path, handle, changing={"undo", "pause"})
    held.callback(server.close)
    for _ in range(MAX_CHANGES):
        connected(held, path, b'{"request": "undo"}\n')
        assert arrived.acquire(timeout=10)
    with pytest.raises(ControlError, match="24 requests are being carried out; try again later") as refused:
        ask(path, {"request": "undo"})
    assert refused.value.again
    assert ask(path, {"request": "status"}) == {"ok": 1}


@pytest.mark.parametrize("said", [b"", b'{"request": "sta'])
def test_a_crowd_that_says_nothing_keeps_nobody_out(path: str, held: ExitStack, said: bytes) -> None:
    server = ControlServer(path, lambda _: {"ok": 1})
    threads = threading.active_count()
    for _ in range(CROWD):
        connected(held, path, said)
        assert threading.active_count() <= threads + 2 * server.connections.limit
    assert ask(path, {"request": "status"}) == {"ok": 1}
    assert server.connections.count() <= server.connections.limit
    server.close()


def test_when_all_are_being_answered_the_next_may_try_again(path: str, held: ExitStack) -> None:
    """The first of them are not cut off for it."""
    go_on, waiting = threading.Event(), threading.Semaphore(0)

    def slow(_: object) -> dict[str, int]:
        waiting.release()
        go_on.wait(60)
        return {"ok": 1}

    server = ControlServer(path, slow)
    those = [connected(held, path, b"{}\n") for _ in range(server.connections.limit)]
    for _ in those:
        assert waiting.acquire(timeout=30)
    with pytest.raises(ControlError, match="32 requests are being answered; try again later"):
        ask(path, {"request": "status"})
    go_on.set()
    assert [json.loads(one.makefile("rb").readline()) for one in those] == [{"ok": 1}] * len(those)
    assert ask(path, {"request": "status"}) == {"ok": 1}
    server.close()


@pytest.mark.parametrize(("peer", "words"), [
    (STRANGER, "not allowed for uid 1700: root, and control.change_users, may change"),
    (LOOKER, "not allowed for uid 1600: root, and control.change_users, may change")])
def test_a_forbidden_request_gets_a_reason(path: str, peer: Peer, words: str) -> None:
    server = ControlServer(path, lambda _: {}, ControlSettings(read_group=2000), CHANGING_REQUESTS,
                           peer_of=lambda _: peer)
    with pytest.raises(ControlError, match=words):
        ask(path, {"request": "pause"})
    server.close()


@pytest.mark.parametrize("peer", [STRANGER, LOOKER])
def test_who_may_change_nothing_fills_no_memory(path: str, peer: Peer) -> None:
    """What is sent is not read: the sender is hung up on."""
    server = ControlServer(path, lambda _: {}, ControlSettings(read_group=2000), CHANGING_REQUESTS,
                           peer_of=lambda _: peer)
    with pytest.raises(ControlError):
        ask(path, {"request": "x" * (4 << 20)})
    with socket.socket(socket.AF_UNIX) as to:
        to.settimeout(10)
        to.connect(path)
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            to.sendall(b" " * (4 << 20))
    server.close()


def test_a_daemon_that_hangs_up_is_no_riddle(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(path)
        daemon.listen()

        def hang_up() -> None:
            daemon.accept()[0].close()

        threading.Thread(target=hang_up).start()
        with pytest.raises(ControlError, match=r"connection closed without reply: tierd is stopping"):
            ask(path, {"request": "status"})


HALF = {"nothing": b"", "half a line": b"GET /metr", "half a head": b"GET /metrics HTTP/1.1\r\nHost: a\r\n",
        "half a body": b"POST /-/evaluate HTTP/1.1\r\nContent-Length: 900000\r\n\r\n{"}


@pytest.mark.parametrize(("said", "crowd"), [(said, 60 if said else CROWD) for said in HALF.values()], ids=list(HALF))
def test_a_crowd_at_the_port_keeps_no_scrape_out(held: ExitStack, said: bytes, crowd: int) -> None:
    """One crowd is larger than the queue of the port, and is made to wait for seconds by its own kernel."""
    app = App(CollectorRegistry(), lambda _: {"faults": {}}, lambda: True, lambda: None)
    server = listen(WebSettings(port=0), app, None)
    threads = threading.active_count()
    for _ in range(crowd):
        connected(held, ("127.0.0.1", server.port), said)
        assert threading.active_count() <= threads + 32
    for page in ("metrics", "-/ready"):
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/{page}", timeout=30) as answer:
            assert answer.status == 200
    server.close()


def test_the_page_says_that_the_journal_cannot_be_read(site: Site) -> None:
    site.run(until=10)
    Path(site.settings.act.journal).unlink()
    for path, request in (("/history", "history"), ("/case/F1", "explain")):
        status, words = fetched(site, path)
        assert (status, words.partition(";")[0]) == (503, f"{request}: the journal: unable to open database file")
    assert fetched(site, "/-/healthy")[0] == 200
