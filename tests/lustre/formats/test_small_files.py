"""Imports, pools, room, caches, recovery and changelog users."""

from __future__ import annotations

import re
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.formats import changelog_users, compiled, import_, recovery_status
from tests.conftest import Unpack
from tests.damaged import any_text, damage, damaged, renumbered, renumbering, texts

# Written from the source: lprocfs_rd_import at tag 2.10.0 (no idle time, bare NIDs, no nids_stats).
IMPORT_2_10 = b"""\
import:
    name: lustre-OST0000-osc-ffff9c5e3b0ff800
    target: lustre-OST0000_UUID
    state: FULL
    connect_flags: [ write_grant, server_lock ]
    connect_data:
       flags: 0x4af0e3440478
       instance: 5
       target_version: 2.10.0.0
    import_flags: [ replayable, pingable ]
    connection:
       failover_nids: [ 10.0.0.1@o2ib, 10.0.0.2@o2ib ]
       current_connection: 10.0.0.2@o2ib
       connection_attempts: 2
       generation: 2
       in-progress_invalidations: 0
    rpcs:
       inflight: 4
       unregistering: 0
       timeouts: 1
       avg_waittime: 777 usec
    service_estimates:
       services: 1 sec
       network: 1 sec
    write_data_averages:
       bytes_per_rpc: 4096
       usec_per_rpc: 300
       MB_per_sec: 13.65
"""

# Written from the source: lprocfs_recovery_status_seq_show, the same from 2.10.0 on.
WAITING = b"""\
status: WAITING
non-ready MDTs:  0001
recovery_start: 1795217459
time_waited: 4
"""


def test_an_import_of_2_10() -> None:
    assert import_.parse(IMPORT_2_10) == import_.Import(b"FULL", b"2.10.0.0", 2, 1, 777, 0)


@pytest.mark.parametrize("name", ["idle", "load-1", "load-2"])
def test_recorded_imports(capture: Unpack, name: str) -> None:
    for text in texts(capture(f"2.17.57/tree-{name}"), "import"):
        link, words = import_.parse(text), dict(re.findall(r"^ +(\w+): (\S+)", text.decode(), re.MULTILINE))
        assert (link.skipped, link.state) == (0, words["state"].encode())
        assert (link.target_version or b"").decode() == words.get("target_version", "")
        assert [str(n) for n in (link.connection_attempts, link.timeouts, link.avg_waittime_usec)] == [
            words.get(field, "None") for field in ("connection_attempts", "timeouts", "avg_waittime")]


@any_text
@given(st.integers(0, 99), damage, renumbering, st.integers(0, 5000))
def test_any_import_is_read_alike_in_python_and_c(capture, number, harm, numbers, cut) -> None:
    known = texts(capture("2.17.57/tree-load-1"), "import")
    text = known[number % len(known)]
    for changed in (renumbered(text, numbers, 2), text[:cut], damaged(text, *harm)):
        found = import_.parse(changed)
        with mock.patch.object(compiled, "following", compiled.plain_following):
            assert import_.parse(changed) == found


def test_a_recovery_that_waits_for_mdts() -> None:
    waiting = recovery_status.parse(WAITING)
    assert (waiting.in_recovery, waiting.skipped) == (True, 0)


def test_nothing_known_of_recovery_is_not_done() -> None:
    assert recovery_status.parse(b"").in_recovery
    assert recovery_status.parse(b"status: INACT").in_recovery


def test_changelog_users_of_older_releases() -> None:
    # Written from the source: mdd_changelog_users_seq_show at tags 2.10.0 and 2.12.0.
    oldest = changelog_users.parse(b"current index: 9\nID    index\ncl1   7\n")
    assert (oldest.current_index, oldest.users[0].idle_seconds, oldest.skipped) == (9, None, 0)
    old = changelog_users.parse(b"current index: 9\nID    index (idle seconds)\ncl1   7 (12)\ncl2   3 (1)\n")
    assert ([u.index for u in old.users], old.users[0].idle_seconds, old.skipped) == ([7, 3], 12, 0)


def test_a_changelog_user_is_not_idle_since_a_time_in_the_future() -> None:
    # lprocfs_changelog_users_cb prints the difference of two times in 32 bits
    users = changelog_users.parse(b"current_index: 9\nID    index (idle) mask\ncl1   7 (4294967294) mask=MARK\n")
    assert [(user.index, user.idle_seconds, user.mask) for user in users.users] == [(7, None, (b"MARK",))]
    assert users.skipped == 0
