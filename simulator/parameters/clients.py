"""Parameter files of clients: ``llite`` of each mount, ``osc`` and ``mdc`` of each connection with ``import``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simulator.clients.client import Client
from simulator.clients.mdc import Mdc
from simulator.clients.osc import Osc
from simulator.cluster import Cluster
from simulator.counters import RPC_TABLES, Histogram
from simulator.parameters.text import KernelClock, rows, stats_file
from simulator.servers.health import Health
from simulator.servers.mdt import Mdt
from simulator.servers.ost import Ost

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
IMPORT = """\
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


def import_file(connection: Osc | Mdc, target: Ost | Mdt, nid: str, in_flight: int, version: str) -> str:
    """Render an ``import`` file, without the averages that an osc adds."""
    waited, health = connection.stats["req_waittime"], target.health
    return IMPORT.format(
        name=connection.name, target=target.name, nid=nid, in_flight=in_flight, version=version,
        flags=OST_CONNECT_FLAGS if isinstance(target, Ost) else MDT_CONNECT_FLAGS,
        wait_usec=waited.total // max(waited.samples, 1), state=state_of(health), tries=1 + health.recoveries)


def state_of(health: Health) -> str:
    return "DISCONN" if health.gone else "REPLAY_WAIT" if health.away else "FULL"


_EXTENTS_OFF = "disabled\n write anything to this file to activate, then '0' or 'disable' to deactivate\n"


def llite_files(cluster: Cluster) -> Iterator[tuple[str, str]]:
    clock = KernelClock(cluster.epoch_ns, cluster.now)
    for client in cluster.clients:
        name = f"{cluster.settings.fsname}-{client.settings.instance}"
        debugfs, sysfs = f"sys/kernel/debug/lustre/llite/{name}", f"sys/fs/lustre/llite/{name}"
        yield f"{debugfs}/stats", stats_file(clock, client.stats)
        yield f"{debugfs}/read_ahead_stats", stats_file(clock, client.read_ahead.stats)
        yield f"{debugfs}/statahead_stats", "".join(f"{name}: {count}\n" for name, count in client.statahead.items())
        yield f"{debugfs}/extents_stats", _EXTENTS_OFF
        yield f"{debugfs}/max_cached_mb", _max_cached_mb(client)
        settings = client.settings.read_ahead
        yield f"{sysfs}/max_read_ahead_mb", f"{settings.max_mib}\n"
        yield f"{sysfs}/max_read_ahead_per_file_mb", f"{settings.max_per_file_mib}\n"
        yield f"{sysfs}/statahead_max", f"{client.settings.statahead.max_names}\n"


def _max_cached_mb(client: Client) -> str:
    limit, used = client.cache.max_bytes >> 20, client.cache.used_bytes >> 20
    return (
        f"users: 10\nmax_cached_mb: {limit}\nused_mb: {used}\nunused_mb: {limit - used}\nunevict_mb: 0\n"
        f"reclaim_count: 0\nmax_read_ahead_mb: {client.settings.read_ahead.max_mib}\nused_read_ahead_mb: 0\n"
    )


def osc_files(cluster: Cluster) -> Iterator[tuple[str, str]]:
    clock = KernelClock(cluster.epoch_ns, cluster.now)
    for client in cluster.clients:
        for osc in client.oscs:
            debugfs, sysfs = f"sys/kernel/debug/lustre/osc/{osc.name}", f"sys/fs/lustre/osc/{osc.name}"
            yield f"{debugfs}/stats", stats_file(clock, osc.stats)
            yield f"{debugfs}/rpc_stats", _osc_rpc_stats(clock, osc)
            yield f"{debugfs}/import", _osc_import(cluster, client, osc)
            yield f"{sysfs}/cur_dirty_bytes", f"{osc.dirty_bytes}\n"
            yield f"{sysfs}/cur_grant_bytes", "8437760\n"
            yield f"{sysfs}/max_rpcs_in_flight", f"{osc.settings.max_rpcs_in_flight}\n"
            yield f"{sysfs}/max_pages_per_rpc", f"{osc.settings.max_pages_per_rpc}\n"


def _osc_import(cluster: Cluster, client: Client, osc: Osc) -> str:
    writes, sizes = osc.stats["ost_write"], osc.stats["write_bytes"]
    averages = ""
    if writes.samples:
        size, usecs = sizes.total // max(sizes.samples, 1), max(writes.total // writes.samples, 1)
        averages = (
            f"    write_data_averages:\n       bytes_per_rpc: {size}\n       usecs_per_rpc: {usecs}\n"
            f"       MB_per_sec: {size / usecs:.2f}\n"
        )
    shown = import_file(osc, osc.ost, client.settings.nid, sum(osc.in_flight), cluster.settings.version)
    return shown + averages


def _osc_rpc_stats(clock: KernelClock, osc: Osc) -> str:
    waiting = osc.pages_waiting
    text = clock.header(osc.stats.start_time, 25, ":")
    text += f"read RPCs in flight:  {osc.in_flight[0]}\nwrite RPCs in flight: {osc.in_flight[1]}\n"
    text += f"DIO RPCs in flight: {osc.direct_in_flight}\n"
    text += f"pending write pages:  {waiting[1]}\npending read pages:   {waiting[0]}\n"
    return text + "".join(rpc_table(title, [side[name] for side in osc.histograms], shift=shift)
                          for name, (title, shift) in RPC_TABLES.items())


def rpc_table(title: str, sides: Sequence[Histogram], *, shift: int | None) -> str:
    """Render one table for reads and writes. Labels are bucket numbers, or powers of two shifted by ``shift``."""
    text = f"\n\t\t\tread\t\t\twrite\n{title}   % cum % |       {title.rsplit(maxsplit=1)[-1]}   % cum %\n"
    for number, (r, rp, rc, w, wp, wc) in rows(sides, first=1 if shift is None else 0):
        label = number if shift is None else (1 << number) >> shift
        text += f"{label}:\t\t{r:10} {rp:3} {rc:3}   | {w:10} {wp:3} {wc:3}\n"
    return text


_MDC_NO_DATA = """
read RPCs in flight:  0
write RPCs in flight: 0
pending write pages:  0
pending read pages:   0
"""
_MDC_EMPTY_TABLES = (("pages per rpc  ", 1), ("rpcs in flight ", 1), ("offset         ", 0))


def mdc_files(cluster: Cluster) -> Iterator[tuple[str, str]]:
    clock = KernelClock(cluster.epoch_ns, cluster.now)
    for client in cluster.clients:
        for mdc in client.mdcs:
            debugfs, sysfs = f"sys/kernel/debug/lustre/mdc/{mdc.name}", f"sys/fs/lustre/mdc/{mdc.name}"
            yield f"proc/fs/lustre/mdc/{mdc.name}/md_stats", stats_file(clock, mdc.md_stats)
            yield f"{debugfs}/stats", stats_file(clock, mdc.stats)
            yield f"{debugfs}/rpc_stats", _mdc_rpc_stats(clock, mdc)
            yield f"{debugfs}/import", import_file(
                mdc, mdc.mdt, client.settings.nid, mdc.in_flight, cluster.settings.version)
            yield f"{sysfs}/max_rpcs_in_flight", f"{mdc.max_rpcs_in_flight}\n"
            yield f"{sysfs}/max_mod_rpcs_in_flight", f"{mdc.max_mod_rpcs_in_flight}\n"


def _mdc_rpc_stats(clock: KernelClock, mdc: Mdc) -> str:
    text = clock.header(mdc.stats.start_time, 25, ":")
    text += f"modify_RPCs_in_flight:  {mdc.modifying_in_flight}\n"
    text += "\n\t\t\tmodify\nrpcs in flight        rpcs   %% cum %%\n"
    for number, (count, share, sum_share) in rows((mdc.modifying,)):
        text += f"{number}:\t\t{count:10} {share:3} {sum_share:3}\n"
    text += _MDC_NO_DATA
    for title, label in _MDC_EMPTY_TABLES:
        text += f"\n\t\t\tread\t\t\twrite\n{title}       rpcs   %% cum %% |       rpcs   %% cum %%\n"
        text += f"{label}:\t\t{0:10} {0:3} {0:3}   | {0:10} {0:3} {0:3}\n"
    return text
