"""The control socket: who may ask for what, which daemon answers, and requests that are odd."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from httpserver.connections import SLOW_SECONDS
from tests.tierd.site import Site
from tierd.cli import client
from tierd.cli.tierctl import main, parser
from tierd.config.settings import ControlSettings
from tierd.daemon.answers import Json
from tierd.daemon.changes import CHANGING_REQUESTS
from tierd.daemon.client import ControlError, ask
from tierd.daemon.control import MAX_CHANGES, ControlServer, Peer


class TestPermission:
    """Who may look, and who may change something."""

    ACCESS = ControlSettings(read_group=2000, change_users=frozenset({1500}))

    @pytest.mark.parametrize(("peer", "look", "change"), [
        (Peer(0), True, True), (Peer(1500), True, True), (Peer(1600, frozenset({2000})), True, False),
        (Peer(1600, frozenset({3000})), False, False)])
    def test_of_a_peer(self, peer: Peer, look: bool, change: bool) -> None:
        assert self.ACCESS.may(peer.uid, peer.groups, change=False) is look
        assert self.ACCESS.may(peer.uid, peer.groups, change=True) is change

    def test_without_configuration_only_root_and_ourselves(self) -> None:
        assert ControlSettings().may(os.geteuid(), (), change=True)
        assert not ControlSettings().may(65533, {0}, change=False)

    def test_every_changing_request_is_refused_to_a_reader(self, tmp_path: Path) -> None:
        server = ControlServer(str(tmp_path / "s"), lambda r: {"by": r["by"]}, self.ACCESS, CHANGING_REQUESTS)
        reader = Peer(1600, frozenset({2000}))
        for request in CHANGING_REQUESTS:
            line = json.dumps({"request": request}).encode()
            assert server.answer(line, reader)["error"] == (
                "not allowed for uid 1600: root, and control.change_users, may change what tierd does")
        line = json.dumps({"request": "status", "by": "root"}).encode()
        assert server.answer(line, reader) == {"by": ""}
        server.close()

    def test_the_socket_is_for_the_group_alone(self, tmp_path: Path) -> None:
        server = ControlServer(str(tmp_path / "s"), lambda _: {}, ControlSettings(read_group=os.getegid()))
        status = (tmp_path / "s").stat()
        assert (status.st_mode & 0o777, status.st_gid) == (0o660, os.getegid())
        server.close()


def test_of_several_daemons_one_has_to_be_named(tmp_path: Path) -> None:
    def chosen(*arguments: str) -> str:
        return client.socket_of(parser().parse_args(["status", *arguments]), str(tmp_path))

    assert chosen() == str(tmp_path / "tierd.sock")
    for name in ("home", "scratch"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tierd.sock").touch()
        if name == "home":
            assert chosen() == str(tmp_path / "home/tierd.sock")
    assert chosen("--fs", "scratch") == str(tmp_path / "scratch/tierd.sock")
    with pytest.raises(ControlError, match=r"select one: --fs home \| scratch"):
        chosen()
    with pytest.raises(ControlError, match="the name of an instance"):
        chosen("--fs", "../etc")
    (tmp_path / "tierd.sock").touch()
    with pytest.raises(ControlError, match="the name of an instance, not ''"):
        chosen("--fs", "")
    with pytest.raises(ControlError, match="not both"):
        client.socket_of(parser().parse_args(["--fs", "home", "status", "--socket", "/s"]))
    with pytest.raises(ControlError, match="the path of a socket, not ''"):
        chosen("--socket", "")
    assert chosen() == str(tmp_path / "tierd.sock")


def test_a_folder_of_sockets_that_cannot_be_read_is_left_to_the_connection(tmp_path: Path) -> None:
    unusable = tmp_path / ("x" * 300)
    assert client.socket_of(parser().parse_args(["status"]), str(unusable)) == str(unusable / "tierd.sock")


@pytest.mark.parametrize("line", [b"[" * 100_000, b"", b"\xff\xfe", b"[]", b'{"request": {"a": []}}'])
def test_odd_requests_are_answered_and_do_no_harm(site: Site, line: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as to:
        to.connect(site.socket)
        to.sendall(line + b"\n" * bool(line))
        to.shutdown(socket.SHUT_WR)
        assert "error" in json.loads(to.makefile("rb").read())
    assert site.ask("status")["paused"] == ""


def test_unknown_requests_are_answered_with_what_is_known(site: Site) -> None:
    with pytest.raises(ControlError, match="unknown request 'reboot'; known: about, advise, apply, bill, decline, "):
        site.ask("reboot")


def test_started_by_hand_the_folder_of_the_socket_is_made(tmp_path: Path) -> None:
    """systemd makes /run/tierd for the unit. If tierd is started by hand, the folder is missing."""
    server = ControlServer(str(tmp_path / "run/tierd/tierd.sock"), lambda _: {"ok": 1})
    assert ask(str(tmp_path / "run/tierd/tierd.sock"), {"request": "status"}) == {"ok": 1}
    server.close()
    assert (tmp_path / "run/tierd").stat().st_mode & 0o777 == 0o755


def test_a_socket_left_by_a_killed_daemon_is_taken_over(tmp_path: Path) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "s"))
    left.close()
    server = ControlServer(str(tmp_path / "s"), lambda _: {"ok": 1})
    assert ask(str(tmp_path / "s"), {}) == {"ok": 1}
    server.close()
    assert not (tmp_path / "s").exists()


def test_the_socket_of_a_busy_daemon_is_left_alone(tmp_path: Path) -> None:
    with ExitStack() as held:
        held.enter_context(busy := socket.socket(socket.AF_UNIX)).bind(str(tmp_path / "s"))
        busy.listen(0)
        held.enter_context(socket.socket(socket.AF_UNIX)).connect(str(tmp_path / "s"))  # nobody accepts it
        with pytest.raises(ControlError, match="another tierd answers here"):
            ControlServer(str(tmp_path / "s"), lambda _: {})
        assert (tmp_path / "s").exists()


SCRIPT = """
import socket
from tierd.daemon.control import Peer
here, there = socket.socketpair()
peer = Peer.of(here)
print(peer.uid, *sorted(peer.groups))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a process other groups")
@pytest.mark.parametrize("count", [1, 40, 256, 300, 3000])
def test_supplementary_groups_count_however_many(count: int) -> None:
    groups = list(range(5000, 5000 + count))
    done = subprocess.run([sys.executable, "-c", SCRIPT], extra_groups=groups, capture_output=True, text=True,
                          check=True)
    uid, *reported = map(int, done.stdout.split())
    assert uid == 0
    assert set(groups) <= set(reported)
    assert ControlSettings(read_group=groups[-1]).may(77, reported, change=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_a_user_above_two_thousand_million_is_no_negative_number() -> None:
    big = (1 << 32) - 7
    code = f"import os; os.setresgid({big}, {big}, {big}); os.setresuid({big}, {big}, {big})\n{SCRIPT}"
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", f"import tierd.daemon.control\n{code}"], capture_output=True,
                          text=True, check=True, env=env)
    uid, *groups = done.stdout.split()
    assert uid == str(big)
    assert str(big) in groups


# Any request at the control socket gets an answer or an error, and never causes an unrequested act


KEYS = {
    "status": (), "findings": (), "advise": (), "resume": (), "top": ("most",), "history": ("last", "outcome"),
    "explain": ("id",), "plan": (), "report": ("since", "until"), "pause": ("reason",), "drain": ("reason",),
    "undo": ("id",), "promote": ("path", "most_files", "most_bytes", "preview"), "demote": ("path", "most_files"),
    "submit": ("paths", "direction", "reason"),
}
TEXT = st.text(st.characters(codec=None), max_size=20)
NUMBERS = st.one_of(st.integers(), st.integers(-(1 << 80), 1 << 80), st.floats())
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXT, st.sampled_from(["F1", "1", "/proj", "/", "up"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6)


@pytest.fixture
def control(site: Site) -> Iterator[ControlServer]:
    site.run(until=10)
    server = ControlServer(str(site.folder / "any.sock"), site.service.answer)
    yield server
    server.close()


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example({"request": "promote"})
@example({"request": "promote", "path": "/a\0b"})
@example({"request": "submit", "paths": [], "direction": "up"})
@example({"request": "history", "last": -5})
@example({"request": "undo", "id": 1 << 80})
@example({"request": "undo", "id": float("inf")})
@example({"request": "history", "last": 1 << 80})
@example({"request": "top", "most": float("-inf")})
@example({"request": "report", "since": float("nan"), "until": 1 << 80})
@example({"request": "report", "until": "9" * 400})
@example({"request": "explain", "id": "F" + "9" * 30})
@example({"request": "history", "outcome": "\udcff"})
@example({"request": "pause", "reason": "\udcff\x1b[2J"})
@example({"request": "submit", "paths": ["/\udcff", "/\ud800"], "reason": "\udcff"})
@given(st.one_of([st.fixed_dictionaries({"request": st.just(name)}, optional=dict.fromkeys(KEYS[name], VALUES))
                  for name in sorted(KEYS)]))
def test_any_request_is_answered_in_json(site: Site, control: ControlServer, request: dict[str, object]) -> None:
    answer = control.answer(json.dumps(request).encode(), Peer(0))
    json.dumps(answer).encode()
    assert isinstance(answer.get("error", ""), str)
    assert list(site.service.journal.entries()) == []


@pytest.mark.parametrize("number", [True, 1.0, "x1", None, [1]])
def test_an_act_is_undone_by_its_number_alone(control: ControlServer, number: object) -> None:
    line = json.dumps({"request": "undo", "id": number}).encode()
    assert "undo takes the number of an act" in str(control.answer(line, Peer(0))["error"])


# Many who connect to tierd and say nothing, little, or too much: it stays small, and answers who asks


CROWD = 300
LOOKER, STRANGER = Peer(1600, frozenset({2000})), Peer(1700)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "s")


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as held:
        yield held


def connected(held: ExitStack, path: str, said: bytes = b"") -> socket.socket:
    one = held.enter_context(socket.socket(socket.AF_UNIX))
    one.settimeout(None)  # with a time-out, it does not wait for a place in the queue
    one.connect(path)
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
def test_silent_connections_block_nobody(path: str, held: ExitStack, said: bytes) -> None:
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


def test_those_who_do_not_read_their_answers_block_nobody(path: str, held: ExitStack) -> None:
    """A member of read_group kept root from tierctl pause, for half a minute each time."""
    arrived = threading.Semaphore(0)

    def handle(request: Json) -> Json:
        arrived.release()
        return {"ok": "x" * (4 << 20 if request["request"] == "history" else 1)}

    server = ControlServer(path, handle)
    held.callback(server.close)
    for _ in range(server.connections.limit):
        connected(held, path, b'{"request": "history"}\n')
        assert arrived.acquire(timeout=30)
    threading.Event().wait(SLOW_SECONDS + 0.5)
    assert ask(path, {"request": "status"}) == {"ok": "x"}


@pytest.mark.parametrize("peer", [STRANGER, LOOKER])
def test_a_user_without_rights_fills_no_memory(path: str, peer: Peer) -> None:
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


def test_a_scheduler_may_send_all_stages_of_a_job(path: str) -> None:
    server = ControlServer(path, lambda _: {"ok": "x"}, ControlSettings(stage_users=frozenset({STRANGER.uid})),
                           CHANGING_REQUESTS, ("stage",), peer_of=lambda _: STRANGER)
    assert ask(path, {"request": "stage", "stages": ["x" * 100_000]}) == {"ok": "x"}
    server.close()


def test_a_closed_connection_is_explained(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(path)
        daemon.listen()

        def hang_up() -> None:
            daemon.accept()[0].close()

        threading.Thread(target=hang_up).start()
        with pytest.raises(ControlError, match=r"connection closed without reply: tierd is stopping"):
            ask(path, {"request": "status"})


def test_an_answer_of_another_release_is_explained(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    server = ControlServer(path, lambda _: {"finding": 3})
    assert main(["explain", "F3", "--socket", path]) == 1
    server.close()
    assert capsys.readouterr().err.startswith("tierd runs another release than tierctl: restart it (")
