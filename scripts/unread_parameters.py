"""Parameters that no collector reads, with the reason. Collectors read all other parameters of a recorded 2.17 node."""

from __future__ import annotations

from typing import NamedTuple


class Unread(NamedTuple):
    """Parameters that are not read for one reason."""

    why: str
    patterns: tuple[str, ...]
    """Names as in ``lctl``; ``*`` is any text, including dots."""
    shown: int = 12
    """Maximum number of patterns that the documentation names."""


UNREAD: tuple[Unread, ...] = (
    Unread("Reading sends a request to a server.", ("*.ping",)),
    Unread(
        "Reading opens every log of the changelog, which takes longer the further its users are behind."
        " `lustre_changelog_user_behind_records` shows the same.",
        ("mdd.*.changelog_size",),
    ),
    Unread(
        "Lists of files, clients or requests, of any length.",
        ("mdt.*.hsm.actions", "mdt.*.hsm.active_requests", "*.exports.*.open_files", "*.recovery_stale_clients",
         "*.recovery_reconnect_*", "nodemap.*.exports", "nodemap.*.banlist", "*.req_history",
         "ldlm.dump_granted_max", "pinger"),
    ),
    Unread(
        "One of each per client. `stats` is read with `--collector.exports`.",
        ("*.exports.*.export", "*.exports.*.fmd_count", "*.exports.*.grant_*", "*.exports.*.hash",
         "*.exports.*.ldlm_stats", "*.exports.*.nodemap", "*.exports.*.reconnect_delay", "*.exports.*.reply_data",
         "*.exports.*.uuid", "mgs.MGS.exports.*.stats"),
    ),
    Unread(
        "One of each per process, counted only when enabled.",
        ("llite.*.offset_stats", "llite.*.extents_stats_per_process"),
    ),
    Unread(
        "`import` has the same values; time estimates by service are not shown.",
        ("*.state", "*.timeouts", "*.*_conn_uuid", "*.conn_uuid", "*.*_server_uuid", "*.connect_flags",
         "osc.*.active", "mdc.*.active"),
    ),
    Unread(
        "Values by target that `llite` shows for the mount or `stats` counts.",
        ("osc.*.unstable_stats", "mdc.*.unstable_stats", "osc.*.osc_cached_mb", "osc.*.osc_unevict_cached_mb",
         "mdc.*.mdc_cached_mb", "osc.*.cur_dirty_grant_bytes",
         "mdc.*.cur_dirty_grant_bytes", "osc.*.destroys_in_flight", "llite.*.unevict_cached_mb"),
    ),
    Unread(
        "Bytes read and written without a lock of the client. `stats` counts them among all bytes.",
        ("osc.*.osc_stats", "mdc.*.mdc_stats"),
    ),
    Unread(
        "Space is shown once per file system, pool and target.",
        ("lov.*.kbytes*", "lov.*.files*", "lmv.*.kbytes*", "lmv.*.files*", "lod.*.kbytes*", "lod.*.files*",
         "osp.*.kbytes*", "osp.*.files*", "mdc.*.kbytes*", "mdc.*.files*", "*.blocksize", "*.stat_blocksize",
         "*.maxbytes", "*.namelen_max", "*.statfs_state"),
        shown=10,
    ),
    Unread(
        "Names of objects that other families show.",
        ("*.target_obd", "*.mdt_obd", "devices", "mgs.MGS.filesystems", "*.uuid", "*.desc_uuid", "*.fstype",
         "*.mntdev", "*.instance", "*.client_type", "lov.*.numobd", "lov.*.activeobd", "lmv.*.numobd",
         "lmv.*.activeobd", "lod.*.pool.*.spill_status", "nodemap.*.id", "lnet.routers",
         "lod.*.pools.*", "mgs.MGS.live.params"),
    ),
    Unread(
        "Rates, ratios and internals of the lock cache; the number of locks is shown.",
        ("ldlm.namespaces.*.pool.*", "*.lock_lru_hits", "*.lock_lru_priv_hits", "*.lock_unused_priv_count",
         "ldlm.namespaces.MGS.lock_unused_count",
         "*.contended_locks", "ldlm.namespaces.MGC*"),
    ),
    Unread("Maximum since Lustre was loaded, or measured once.", ("memused_max", "checksum_speed")),
    Unread(
        "Internal tables and caches of the kernel, and processors.",
        ("lu_site", "*.site_stats", "*.site", "*.hash_stats", "lnet.cpu_partition_*"),
    ),
    Unread(
        "Allocation of object ids; `osp` shows the number of precreated objects.",
        ("seq.*", "fld.*", "*.last_id", "*.seqs_allocated", "osp.*.create_count", "osp.*.prealloc_*",
         "osp.*.reserved_*", "*.tgt_fmd_*", "*.resource_id_repair_queue_count"),
    ),
    Unread(
        "Counters that may be written to, or that only developers use.",
        ("mdt.*.sync_count", "mdt.*.async_commit_count", "osp.*.error_list", "osp.*.sync_in_flight",
         "osp.*.sync_current_llog", "osp.*.old_sync_processed", "osp.*.rpc_stats", "llite.*.dump_page_cache",
         "*.qos_ost_weights", "*.qos_mdt_weights", "*.qos_rr_index", "llite.*.sbi_flags", "*.srpc_info",
         "*.srpc_contexts", "*.gss.*"),
    ),
    Unread(
        "Quotas: values of all targets at the quota master, and settings.",
        ("*.quota_slave*.enabled", "*.quota_slave*.limit_*", "*.quota_slave*.timeout",
         "*.quota_slave*.*_timeout", "*.quota_slave*.root_prj_enable", "qmt.*.info", "qmt.*.soft_least_qunit"),
    ),
    Unread(
        "Console messages and fault injection of LNet; `health_check` shows a catastrophe too.",
        ("lnet.catastrophe", "lnet.console_*", "lnet.daemon_file", "lnet.debug*", "lnet.fail_*", "lnet.printk",
         "lnet.subsystem_*", "lnet.panic_on_lbug", "lnet.lnet_lnd_timeout", "lnet.portal_rotor", "lnet.watchdog_*"),
    ),
    Unread("Write-only parameters.", ("*.clear", "*.evict_*", "*.index_backup", "osp.*.prealloc_force_new_seq")),
    Unread(
        "Settings. The exporter shows only limits of what it counts: read-ahead, requests in flight, threads, quotas.",
        ("at_*", "*.at_*", "*timeout*", "*.checksum*", "*.enable_*", "enable_*", "*.max_*", "max_*", "*root_squash",
         "*nosquash_nids", "jobid_*", "*.nrs_*", "*.lru_*", "*.hybrid_io*", "*.opencache_*", "*.heat_*",
         "*.identity_*", "allow_register", "bulk_*", "debug_*", "dump_on_*", "expected_clients", "lbug_on_eviction",
         "ping_interval", "ptlrpc.*pmqos*", "sptlrpc.send_sepol", "*.changelog_*", "*.lfsck_*", "*.append_*",
         "*.atime_diff", "*.sync_*", "*.grant_*", "*.client_cache_*", "*.job_*", "*.recovery_time_*", "*.ir_*",
         "*.precreate_batch", "*.no_precreate", "*.soft_sync_limit", "*.access_log_*", "*.failure_domain",
         "*ldlm_enqueue_min", "*.high_priority_ratio", "*.req_buffer*", "*.hsm.*_mask",
         "*.hsm.default_archive_id", "*.hsm.grace_delay", "*.hsm.loop_period", "*.hsm.policy",
         "*.hsm.remove_archive_on_last_unlink", "*.dir_*", "*.dom_*", "*.commit_on_sharing", "*.local_recovery",
         "*.migrate_hsm_allowed", "*.qos_*", "*.stripe*", "*.mdt_*", "*.mirror_count_max", "*.lmv_failout",
         "*.dist_txn_check_space", "*.spill_target", "*.auto_scrub", "*.full_scrub_*", "*.extent_bytes_allocation",
         "*.fallocate_zero_blocks", "*.inflight_io_log2", "*.pdo", "*cache_enable", "*cache_max*", "*.writethrough_*",
         "*track_declares_assert", "*.pinger_recov", "*.short_io_bytes", "*.resend_count", "*.lsom", "*.dynamic_nids",
         "*.srpc_rules", "osp.*.maxage", "nodemap.*.audit_mode", "nodemap.*.child_raise_privileges",
         "nodemap.*.fileset", "nodemap.*.forbid_encryption", "nodemap.*.map_mode", "nodemap.*.rbac",
         "nodemap.*.squash_*", "llite.*.default_easize", "llite.*.fast_read", "llite.*.file_heat",
         "llite.*.foreign_symlink_*", "llite.*.inode_cache", "llite.*.intent_mkdir", "llite.*.lazystatfs",
         "llite.*.parallel_dio", "llite.*.pcc_*", "llite.*.read_ahead_*", "llite.*.statahead_*", "llite.*.statfs_*",
         "llite.*.stats_track_*", "llite.*.tiny_write", "llite.*.unaligned_dio", "llite.*.xattr_cache",
         "ldlm.cancel_unused_locks_before_replay", "ldlm.lock_limit_mb", "ldlm.lock_reclaim_threshold_mb",
         "*.contention_*seconds", "*.ctime_age_limit", "*.dirty_age_limit", "*.dump_stack_on_error",
         "*.early_lock_cancel", "*.lock_cache_policy", "*.ns_recalc_pct"),
        shown=9,
    ),
)  # fmt: skip


def table() -> str:
    rows = ["| parameters | why they are not read |", "|---|---|"]
    for unread in UNREAD:
        names = ", ".join([f"`{pattern}`" for pattern in unread.patterns[: unread.shown]])
        rows.append(f"| {names}{', …' if len(unread.patterns) > unread.shown else ''} | {unread.why} |")
    return "\n".join(rows)
