"""Imports, pools, room, caches, recovery and changelog users."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lustre.formats import changelog_users, df, import_, max_cached_mb, pools, recovery_status

Unpack = Callable[[str], Path]
DEBUG = "sys/kernel/debug/lustre"
MOUNT = "ff1100011d6c9800"

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
RECOVERED = b"""\
status: COMPLETE
recovery_start: 1795217459
recovery_duration: 21
completed_clients: 11/12
replayed_requests: 40
last_transno: 4294967590
VBR: DISABLED
IR: ENABLED
"""

WAITING = b"""\
status: WAITING
non-ready MDTs:  0001
recovery_start: 1795217459
time_waited: 4
"""


def test_an_import_in_order(capture: Unpack) -> None:
    path = capture("2.17.57/tree-load-2") / DEBUG / f"osc/lustre-OST0002-osc-{MOUNT}/import"
    link = import_.parse(path.read_bytes())
    assert link == import_.Import(b"FULL", b"2.17.57.62", 3, 0, 9109, 0)


def test_every_import_of_a_node_is_understood(capture: Unpack) -> None:
    files = list((capture("2.17.57/tree-load-2") / DEBUG).glob("*/*/import"))
    assert len(files) > 40
    assert {import_.parse(f.read_bytes()).skipped for f in files} == {0}


def test_an_import_of_2_10() -> None:
    assert import_.parse(IMPORT_2_10) == import_.Import(b"FULL", b"2.10.0.0", 2, 1, 777, 0)


def test_pools(capture: Unpack) -> None:
    path = capture("2.17.57/tree-load-2") / f"proc/fs/lustre/lov/lustre-clilov-{MOUNT}/pools/flash"
    assert pools.parse(path.read_bytes()) == pools.Pool(("lustre-OST0000", "lustre-OST0001"), 0)
    assert pools.parse(b"lustre-OST0000_UUID\nlustre-OST00") == pools.Pool(("lustre-OST0000",), 1)


def test_room(capture: Unpack) -> None:
    device = capture("2.17.57/tree-load-2") / f"sys/fs/lustre/osc/lustre-OST0000-osc-{MOUNT}"
    room = df.parse(*((device / name).read_bytes() for name in df.FILES))
    assert room.size_bytes is not None
    assert room.avail_bytes is not None
    assert room.files_free is not None
    assert 0 < room.avail_bytes < room.size_bytes
    assert 0 < room.files_free <= (room.files or 0)


def test_a_cached_mount(capture: Unpack) -> None:
    path = capture("2.17.57/tree-load-2") / DEBUG / f"llite/lustre-{MOUNT}/max_cached_mb"
    cached = max_cached_mb.parse(path.read_bytes())
    assert (cached.max_bytes, cached.used_bytes) == (2961 << 20, 40 << 20)
    assert (cached.reclaims, cached.skipped) == (0, 0)


def test_recovery_in_its_states(capture: Unpack) -> None:
    path = capture("2.17.57/tree-idle") / DEBUG / "mdt/lustre-MDT0000/recovery_status"
    assert recovery_status.parse(path.read_bytes()).status == b"INACTIVE"
    done = recovery_status.parse(RECOVERED)
    assert (done.in_recovery, done.completed_clients, done.clients, done.skipped) == (False, 11, 12, 0)
    assert (done.recovery_duration_seconds, done.connected_clients) == (21, None)
    waiting = recovery_status.parse(WAITING)
    assert (waiting.in_recovery, waiting.skipped) == (True, 0)


def test_nothing_known_of_recovery_is_not_done() -> None:
    assert recovery_status.parse(b"").in_recovery
    assert recovery_status.parse(b"status: INACT").in_recovery


def test_changelog_users_of_all_releases(capture: Unpack) -> None:
    path = capture("2.17.57/tree-load-2") / DEBUG / "mdd/lustre-MDT0000/changelog_users"
    log = changelog_users.parse(path.read_bytes())
    assert (log.current_index, log.skipped) == (7096, 0)
    (user,) = log.users
    assert (user.id, user.index, user.idle_seconds, len(user.mask)) == (b"cl1-lab", 0, 1016, 21)
    # Written from the source: mdd_changelog_users_seq_show at tags 2.10.0 and 2.12.0.
    oldest = changelog_users.parse(b"current index: 9\nID    index\ncl1   7\n")
    assert (oldest.current_index, oldest.users[0].idle_seconds, oldest.skipped) == (9, None, 0)
    old = changelog_users.parse(b"current index: 9\nID    index (idle seconds)\ncl1   7 (12)\ncl2   3 (1)\n")
    assert ([u.index for u in old.users], old.users[0].idle_seconds, old.skipped) == ([7, 3], 12, 0)
