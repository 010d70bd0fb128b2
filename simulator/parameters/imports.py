"""``import`` and ``state``: how a client stands with one target."""

from __future__ import annotations

from simulator.health import STATES_KEPT, Health
from simulator.parameters.text import Clock

OST_CONNECT_FLAGS = (
    "write_grant, server_lock, version, max_byte_per_rpc, early_lock_cancel, adaptive_timeouts, lru_resize, "
    "alt_checksum_algorithm, fid_is_enabled, version_recovery, grant_shrink, full20, layout_lock, 64bithash, "
    "object_max_bytes, jobstats, einprogress, grant_param, hpreq_check1, lvb_type, short_io, lfsck, bulk_mbits, "
    "second_flags, lockaheadv2, increasing_xid, lseek, reply_mbits, unaligned_dio"
)
MDT_CONNECT_FLAGS = (
    "write_grant, server_lock, version, acl, xattr, create_on_write, inode_bit_locks, getattr_by_fid, "
    "no_oh_for_devices, max_byte_per_rpc, early_lock_cancel, adaptive_timeouts, lru_resize, fid_is_enabled, "
    "version_recovery, pools, large_ea, full20, layout_lock, 64bithash, jobstats, umask, einprogress, grant_param, "
    "short_io, open_by_fid, lfsck, multi_mod_rpcs, dir_stripe, second_flags, sum_statfs, overstriping, flr, lsom, "
    "lseek, dom_lvb, reply_mbits, batch_rpc"
)


_IMPORT = """\
import:
    name: {name}
    target: {target}_UUID
    state: {state}
    connect_flags: [ {flags} ]
    connect_data:
       flags: 0xa0427af2e3440038
       instance: 1
       target_version: {version}.0
       initial_grant: 8437760
       max_brw_size: 4194304
       grant_block_size: 4096
       grant_inode_size: 32
       grant_max_extent_size: 67108864
       grant_extent_tax: 24576
       cksum_types: 0xb2
       max_object_bytes: 17592186040320
    import_flags: [ IMPF_REPLAYABLE, IMPF_PINGABLE, IMPF_CONNECT_TRIED ]
    connection:
       failover_nids: [ "{nid}" ]
       nids_stats:
          "{nid}": {{ connects: {tries}, replied: {tries}, uptodate: uptodate, sec_ago: 0 }}
       current_connection: "{nid}"
       connection_attempts: {tries}
       generation: 1
       in-progress_invalidations: 0
       idle: 0 sec
    rpcs:
       inflight: {in_flight}
       unregistering: 0
       timeouts: 0
       avg_waittime: {wait_usec} usecs
    service_estimates:
       services: 5 sec
       network: 5 sec
    transactions:
       last_replay: 0
       peer_committed: 4294967296
       last_checked: 4294967296
"""


def import_file(
    name: str, target: str, flags: str, nid: str, in_flight: int, wait_usec: int, version: str, *, health: Health,
) -> str:  # fmt: skip
    """A whole ``import`` file, but for the averages an osc adds."""
    return _IMPORT.format(
        name=name, target=target, flags=flags, nid=nid, in_flight=in_flight, wait_usec=wait_usec, version=version,
        state=state_of(health), tries=1 + health.recoveries)


def state_of(health: Health) -> str:
    """How a client stands with a target of that health."""
    return "DISCONN" if health.gone else "REPLAY_WAIT" if health.away else "FULL"


def state_file(clock: Clock, mounted_at: float, health: Health) -> str:
    """``state``: how it stands, and how it came to that (the last 16 states)."""
    came = [(mounted_at, "CONNECTING"), (mounted_at, "FULL"), *health.history][-STATES_KEPT:]
    lines = "".join(f" - [ {int(clock.seconds(time))}, {state} ]\n" for time, state in came)
    return f"current_state: {state_of(health)}\nstate_history:\n{lines}"
