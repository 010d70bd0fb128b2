"""The client of the control socket, by the kernel's credentials."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from tierd.config.settings import ControlAccess
from tierd.daemon.peers import Peer

SCRIPT = """
import socket
from tierd.daemon.peers import Peer
here, there = socket.socketpair()
peer = Peer.of(here)
print(peer.uid, *sorted(peer.groups))
"""


def test_the_groups_of_this_process_are_known() -> None:
    here, there = socket.socketpair()
    with here, there:
        peer = Peer.of(here)
    assert peer.uid == os.geteuid()
    assert peer.groups == {os.getegid(), *os.getgroups()}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a process other groups")
@pytest.mark.parametrize("count", [1, 40, 256, 300, 3000])
def test_supplementary_groups_count_however_many(count: int) -> None:
    groups = list(range(5000, 5000 + count))
    done = subprocess.run([sys.executable, "-c", SCRIPT], extra_groups=groups, capture_output=True, text=True,
                          check=True)
    uid, *reported = map(int, done.stdout.split())
    assert uid == 0
    assert set(groups) <= set(reported)
    assert ControlAccess(read_group=groups[-1]).may(77, reported, change=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_a_user_above_two_thousand_million_is_no_negative_number() -> None:
    big = (1 << 32) - 7
    code = f"import os; os.setresgid({big}, {big}, {big}); os.setresuid({big}, {big}, {big})\n{SCRIPT}"
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", f"import tierd.daemon.peers\n{code}"], capture_output=True, text=True,
                          check=True, env=env)
    uid, *groups = done.stdout.split()
    assert uid == str(big)
    assert str(big) in groups
