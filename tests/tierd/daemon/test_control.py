"""The control socket: who may ask for what, which daemon answers, and requests that are odd."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tierd.site import Site
from tierd.cli import client
from tierd.cli.tierctl import main, parser
from tierd.config.settings import ControlSettings
from tierd.daemon.client import ControlError, ask
from tierd.daemon.control import ControlServer, Peer
from tierd.daemon.requests import CHANGING_REQUESTS


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

    def test_the_kernel_says_who_asks(self) -> None:
        one, other = socket.socketpair(socket.AF_UNIX)
        peer = Peer.of(one)
        assert peer.uid == os.geteuid()
        assert peer.groups == {os.getegid(), *os.getgroups()}
        assert peer.name
        assert Peer(123456789).name == "uid 123456789"
        one.close()
        other.close()

    def test_every_changing_request_is_refused_to_a_reader(self, tmp_path: Path) -> None:
        server = ControlServer(str(tmp_path / "s"), lambda r: {"by": r["by"]}, self.ACCESS, CHANGING_REQUESTS)
        reader = Peer(1600, frozenset({2000}))
        for request in CHANGING_REQUESTS:
            line = json.dumps({"request": request}).encode()
            assert "not allowed for uid 1600" in str(server.answer(line, reader)["error"])
        line = json.dumps({"request": "status", "by": "root"}).encode()
        assert server.answer(line, reader) == {"by": ""}
        server.close()

    def test_the_socket_is_for_the_group_alone(self, tmp_path: Path) -> None:
        server = ControlServer(str(tmp_path / "s"), lambda _: {}, ControlSettings(read_group=os.getegid()))
        status = (tmp_path / "s").stat()
        assert (status.st_mode & 0o777, status.st_gid) == (0o660, os.getegid())
        server.close()

    def test_a_second_daemon_does_not_take_the_socket(self, site: Site) -> None:
        with pytest.raises(ControlError, match="another tierd answers here"):
            ControlServer(site.socket, lambda _: {})
        assert ask(site.socket, {"request": "status"})


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
    assert chosen() == str(tmp_path / "tierd.sock")


def test_a_folder_of_sockets_that_cannot_be_read_is_left_to_the_connection(tmp_path: Path) -> None:
    unusable = tmp_path / ("x" * 300)
    assert client.socket_of(parser().parse_args(["status"]), str(unusable)) == str(unusable / "tierd.sock")


@pytest.mark.parametrize("line", [
    b'{"request":"promote"}', b'{"request":"promote","path":3}', b'{"request":"submit","paths":"x"}',
    b'{"request":"submit","paths":[1]}', b'{"request":"submit","paths":[],"direction":"up"}',
    b'{"request":"history","last":"x"}', b'{"request":"history","last":-5}', b'{"request":"top","most":null}',
    b'{"request":"promote","path":"/a\\u0000b"}', b'{"request":"report","since":"x"}', b'[' * 100_000,
    b"", b"\xff\xfe", b"[]", b'{"request": {"a": []}}', b'{"request":"undo","id":"x"}'])
def test_odd_requests_are_answered_and_do_no_harm(site: Site, line: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as to:
        to.connect(site.socket)
        to.sendall(line + b"\n" * bool(line))
        to.shutdown(socket.SHUT_WR)
        answer = json.loads(to.makefile("rb").read())
    assert "error" in answer or answer["entries"] == []
    assert ask(site.socket, {"request": "status"})["paused"] == ""


def test_unknown_requests_are_answered_with_what_is_known(site: Site) -> None:
    with pytest.raises(ControlError, match="unknown request 'reboot'; known: about, advise, apply, bill, decline, "):
        ask(site.socket, {"request": "reboot"})
    with pytest.raises(ControlError, match="the journal has no act 99"):
        ask(site.socket, {"request": "undo", "id": 99})


def test_no_daemon_says_what_to_look_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--socket", str(tmp_path / "none.sock")]) == 1
    assert "socket not found: is tierd running" in capsys.readouterr().err


def test_started_by_hand_the_folder_of_the_socket_is_made(tmp_path: Path) -> None:
    """systemd makes /run/tierd for the unit. If tierd is started by hand, the folder is missing."""
    server = ControlServer(str(tmp_path / "run/tierd/tierd.sock"), lambda _: {"ok": 1})
    try:
        assert ask(str(tmp_path / "run/tierd/tierd.sock"), {"request": "status"}) == {"ok": 1}
    finally:
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
