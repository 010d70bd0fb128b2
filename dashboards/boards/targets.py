"""Object and metadata targets: load, latency, disk I/O, space, balance; checks (scrub, LFSCK) and quotas."""

from __future__ import annotations

from dashboards.dashboard import (
    ANY_IS_A_WARNING,
    ANY_IS_BAD,
    FS,
    FULLNESS,
    NO_SERVERS,
    POOL,
    RATE,
    TARGET,
    Dashboard,
    Row,
    column_link,
    link_from_value,
    none_of,
)
from dashboards.panels import (
    GREEN,
    ORANGE,
    RED,
    YELLOW,
    Panel,
    Query,
    bars,
    dashed,
    heatmap,
    largest,
    mirrored,
    stat,
    table,
    timeseries,
    total,
)

ANY = 'fs=~"$fs", target=~"$target"'
STATE_KNOWN = 'fs=~"$fs", target=~"$target", state!="init"'
CHECKS = Row("Checks and quotas", (
    table("State of scrub and LFSCK", "Scrub of the object index, and LFSCK by kind. Checks that never ran are "
          "omitted. For failed or crashed, see LustreCheckFailed. Partial means that a target did not take part.",
          Query(f'label_replace(max by (fs, target, state) (lustre_osd_scrub_state{{{STATE_KNOWN}}}), "kind", '
                f'"object index", "", "") or max by (fs, target, kind, state) (lustre_lfsck_state{{{STATE_KNOWN}}})'),
          unit="short", sort="State", empty="never run",
          columns={"fs": ("File system", ""), "target": ("Target", ""), "kind": ("Check", ""), "state": ("State", "")}),
    timeseries("Repairs by scrub and LFSCK", "Entries that the current or last run repaired, or could not repair. "
               "Any value means earlier damage by disks or a crash.",
               Query(f"max by (fs, target) (lustre_osd_scrub_repaired_objects{{{ANY}}}) > 0",
                     "{{fs}} {{target}} object index: repaired"),
               Query(f"max by (fs, target) (lustre_osd_scrub_failed_objects{{{ANY}}}) > 0",
                     "{{fs}} {{target}} object index: not repaired"),
               Query(f"max by (fs, target, kind) (lustre_lfsck_repaired_items{{{ANY}}}) > 0",
                     "{{fs}} {{target}} {{kind}}: repaired"),
               Query(f"sum by (fs, target, kind) (max by (fs, target, kind, phase) (lustre_lfsck_failed_items{{{ANY}}})"
                     ") > 0", "{{fs}} {{target}} {{kind}}: not repaired"), unit="short", empty="none"),
    timeseries("Targets that enforce quotas", "Targets that enforce quotas, by resource and type. On the others, "
               "users can exceed their limits (lctl conf_param FS.quota.ost).",
               Query("sum by (fs, resource, type) (max by (fs, target, resource, type) "
                     f"(lustre_quota_slave_enforced{{{ANY}}}))", "{{fs}} {{resource}} by {{type}}"),
               unit="short", empty="not reported"),
    timeseries("Targets with outdated quotas", "Targets without a connection to the quota master, or with outdated "
               "limits. If not 0 for minutes, check the connection to the first metadata target.",
               Query("sum by (fs, resource) (1 - max by (fs, target, resource) "
                     f"(lustre_quota_slave_connected{{{ANY}}}))", "{{fs}} {{resource}}: not connected"),
               Query("sum by (fs, resource, type) (1 - max by (fs, target, resource, type) "
                     f"(lustre_quota_slave_up_to_date{{{ANY}}}))", "{{fs}} {{resource}} by {{type}}: outdated limits"),
               unit="short", empty="not reported", steps=((None, GREEN), (1, ORANGE))),
), closed=True)
OST = 'fs=~"$fs", pool=~"$pool", target=~"$target"'
JOBS = link_from_value("jobs", "Jobs on this target", fs="fs", target="target")

STATE = Row("All targets", (
    total("Read", "Bytes per second read from the selected object targets.",
          f"fs_pool_target:lustre_ost_read_bytes:rate2m{{{OST}}}", "Bps"),
    total("Written", "Bytes per second written to the selected object targets.",
          f"fs_pool_target:lustre_ost_write_bytes:rate2m{{{OST}}}", "Bps"),
    total("Reads and writes", "Reads and writes per second on the selected object targets.",
          f"fs_pool_target:lustre_ost_bulk_operations:rate2m{{{OST}}}", "ops"),
    total("Metadata operations", "Operations per second on the selected metadata targets.",
          f"fs_target_operation:lustre_mdt_operations:rate2m{{{ANY}}}", "ops"),
    table("Object targets", "Throughput, operation time and usage of each OST. Compare targets of a pool: an outlier "
          "has a fault, or one job uses it alone.",
          Query(f"fs_pool_target:lustre_ost_read_bytes:rate2m{{{OST}}}"),
          Query(f"fs_pool_target:lustre_ost_write_bytes:rate2m{{{OST}}}"),
          Query(f"fs_pool_target:lustre_ost_bulk_operations:rate2m{{{OST}}}"),
          Query(f"fs_pool_target:lustre_osd_io_seconds:p50_2m{{{OST}}}"),
          Query(f"fs_pool_target:lustre_ost_used:ratio{{{OST}}}"), unit="short", width=24, height=9, sort="Written/s",
          columns={"fs": ("File system", ""), "pool": ("Pool", ""), "target": ("Target", ""),
                   "Value #A": ("Read/s", "Bps"), "Value #B": ("Written/s", "Bps"),
                   "Value #C": ("Operations/s", "ops"), "Value #D": ("Disk I/O latency", "s"),
                   "Value #E": ("Used", "percentunit")},
          overrides=(column_link("Target", "jobs", "Jobs on this target", fs="File system", target="Target"),)),
    table("Metadata targets", "Operations, operation time and inodes of each MDT. If the load is uneven, directories "
          "were created on one MDT: see lfs mkdir -i and lfs setdirstripe.",
          Query(f"sum by (fs, target) (fs_target_operation:lustre_mdt_operations:rate2m{{{ANY}}})"),
          Query(f"fs_target:lustre_mdt_operation_seconds:mean2m{{{ANY}}}"),
          Query(f"fs_target:lustre_mdt_files_used:ratio{{{ANY}}}"),
          Query(f"max by (fs, target) (lustre_mdt_exports{{{ANY}}})"), unit="short", width=24, height=5,
          columns={"fs": ("File system", ""), "target": ("Target", ""), "Value #A": ("Operations/s", "ops"),
                   "Value #B": ("Latency", "s"), "Value #C": ("Inodes used", "percentunit"),
                   "Value #D": ("Connections", "short")}),
), empty=NO_SERVERS)
LOAD = Row("Object targets: load (the twenty largest at the end of the time range)", (
    mirrored("Throughput", "Bytes per second read (above zero) and written (below), by target. Equal values within a "
             "pool are good.",
             Query(largest(20, f"fs_pool_target:lustre_ost_read_bytes:rate2m{{{OST}}}"), "{{fs}} {{target}}"),
             links=(JOBS,)),
    timeseries("Read and write operations", "Reads and writes per second, by target. Many operations with few bytes "
               "are small I/O.",
               Query(largest(20, f"fs_pool_target:lustre_ost_bulk_operations:rate2m{{{OST}}}"), "{{fs}} {{target}}"),
               unit="ops", links=(JOBS,)),
    timeseries("Average I/O size", "Mean size of reads and writes on the targets with most of them. Below 1 MiB on "
               "disks, seeks cost more than the data transfer.",
               Query('sum by (fs, target) ({__name__=~"fs_pool_target:lustre_ost_(read|write)_bytes:rate2m", '
                     f"{OST}}}) / on (fs, target) "
                     f"({largest(20, f'fs_pool_target:lustre_ost_bulk_operations:rate2m{{{OST}}}')} > 0)",
                     "{{fs}} {{target}}"), unit="bytes"),
    timeseries("I/O latency", "Mean time of a read or write in the object server. It excludes the disk I/O of "
               "writes. If a target takes twice the time of its pool, see LustreOstSlow.",
               Query(largest(20, f"fs_pool_target:lustre_ost_bulk_operation_seconds:mean2m{{{OST}}}"),
                     "{{fs}} {{target}}"), unit="s"),
    timeseries("Disk I/O latency", "Median duration of disk I/O, from brw_stats. If one target takes twice the time "
               "of its pool, its disks are slow: see LustreOstSlow.",
               Query(largest(20, f"fs_pool_target:lustre_osd_io_seconds:p50_2m{{{OST}}}"), "{{fs}} {{target}}"),
               unit="s"),
    timeseries("Usage imbalance within pools", "Usage difference between the fullest and the emptiest target of a "
               "pool. Above 20%, rebalance with lfs migrate: Lustre only weights new files.",
               Query('max by (fs, pool) (fs_pool_target:lustre_ost_used:ratio{fs=~"$fs", pool=~"$pool"}) - min by (fs, '
                     'pool) (fs_pool_target:lustre_ost_used:ratio{fs=~"$fs", pool=~"$pool"})', "{{fs}} {{pool}}"),
               unit="percentunit", maximum=1, steps=((None, GREEN), (0.2, YELLOW), (0.4, RED))),
), empty=NO_SERVERS)

BUCKETS = {
    "io_size_bytes": r"(4096|16384|65536|262144|524288|1048576|4194304|16777216)(\\.0)?|1.6777216e.07|\\+Inf",
    "io_seconds": r"0\\.[0-9]+|[124]\\.[0-9]+|\\+Inf",
    "io_fragments": r"(1|2|3|4|8|16)(\\.0)?|\\+Inf",
    "io_in_flight": r"(1|2|4|6|8|12|16|24|30)(\\.0)?|\\+Inf",
}
"Buckets that heatmaps show, so that few of them are empty. Buckets are cumulative: those left out are in the next one."


def disk(title: str, text: str, name: str, direction: str, unit: str) -> Panel:
    chosen = f'{ANY}, direction="{direction}", le=~"{BUCKETS[name]}"'
    return heatmap(title, text, Query(f"sum by (le) (rate(lustre_osd_{name}_bucket{{{chosen}}}{RATE}))", buckets=True),
                   unit=unit, empty="no disk I/O, or not reported")


DISKS = Row("Object targets: disk I/O (select one target)", (
    disk("Disk write size", "Disk writes by size. Large is good. Small writes on disks mean small files or a "
         "fragmented target.", "io_size_bytes", "write", "bytes"),
    disk("Disk read size", "Disk reads by size. Large is good.", "io_size_bytes", "read", "bytes"),
    *(disk(f"Disk {direction} latency", f"Disk {direction}s by duration. If the band moves up at the same load, check "
           "the disks for faults or a rebuild.", "io_seconds", direction, "s") for direction in ("write", "read")),
    disk("Disk I/Os per write", "Disk I/Os that one write was split into. 1 is good. More means that the target is "
         "fragmented or nearly full.", "io_fragments", "write", "short"),
    disk("Disk I/Os per read", "Disk I/Os that one read was split into. 1 is good. More means that files were "
         "written in fragments.", "io_fragments", "read", "short"),
    *(disk(f"Disk {direction}s in flight", f"Disk {direction}s, by the number in flight when each was sent.",
           "io_in_flight", direction, "short") for direction in ("write", "read")),
), closed=True)
ROOM = Row("Space", (
    bars("OST usage", "The twenty fullest OSTs. Full targets take no new objects, and existing objects cannot grow.",
         Query(f"topk(20, fs_pool_target:lustre_ost_used:ratio{{{OST}}})", "{{fs}} {{target}}", instant=True),
         unit="percentunit", steps=FULLNESS, maximum=1, empty=NO_SERVERS),
    bars("OST object usage", "The twenty OSTs with the largest used share of objects (inodes). Many tiny files can "
         "use up the objects before the space.",
         Query(f"topk(20, 1 - max by (fs, target) (lustre_ost_files_free{{{ANY}}}) / (max by (fs, target) "
               f"(lustre_ost_files{{{ANY}}}) > 0))", "{{fs}} {{target}}", instant=True), unit="percentunit",
         steps=FULLNESS, maximum=1, empty=NO_SERVERS),
    timeseries("Free space and one-day prediction", "Free space of each pool, and its free space in one day at the "
               "rate of the last six hours. LustreOstFillingUp alerts if a target is predicted to reach 0.",
               Query(f"sum by (fs, pool) (max by (fs, target) (lustre_ost_avail_bytes{{{ANY}}}) * on (fs, target) "
                     'group_left (pool) fs_target:lustre_pool_target:info{pool=~"$pool"})', "{{fs}} {{pool}}"),
               Query("max by (fs, pool) (clamp_min(predict_linear(fs_pool:lustre_pool_avail_bytes:min"
                     '{fs=~"$fs", pool=~"$pool"}[6h], 86400), 0) < fs_pool:lustre_pool_size_bytes:max or '
                     'fs_pool:lustre_pool_size_bytes:max{fs=~"$fs", pool=~"$pool"})',
                     "{{fs}} {{pool}} in a day"), unit="bytes", overrides=(dashed("in a day"),),
               empty="no pools"),
    timeseries("Space granted to clients", "Granted space, and granted space used by writes in progress, of the ten "
               "largest. Clients may write up to the grant without asking.",
               Query(largest(10, f"max by (fs, target) (lustre_ost_granted_bytes{{{ANY}}})"),
                     "{{fs}} {{target}} granted"),
               Query(largest(10, f"max by (fs, target) (lustre_ost_pending_bytes{{{ANY}}})"),
                     "{{fs}} {{target}} pending"),
               unit="bytes", empty="not reported by the servers"),
))
METADATA = Row("Metadata targets", (
    timeseries("Metadata operations by target and type", "The ten busiest pairs of target and operation type.",
               Query(f"topk(10, fs_target_operation:lustre_mdt_operations:rate2m{{{ANY}}})",
                     "{{fs}} {{target}} {{operation}}"), unit="ops", empty=NO_SERVERS),
    timeseries("Metadata latency", "Mean time by target and operation type. If only one type is slow, locks "
               "(rename or unlink in one directory) are a more likely cause than disks.",
               Query("topk(10, sum by (fs, target, operation) "
                     f"(rate(lustre_mdt_operation_seconds_total{{{ANY}}}{RATE})) / "
                     f"(sum by (fs, target, operation) (rate(lustre_mdt_operations_total{{{ANY}}}{RATE})) > 0))",
                     "{{fs}} {{target}} {{operation}}"), unit="s", empty=NO_SERVERS),
    timeseries("Changelog records not cleared", "Changelog records that each user has not cleared. They fill the "
               "MDT. If they keep growing, see LustreChangelogBehind.",
               Query(f"max by (fs, target, user) (lustre_changelog_user_behind_records{{{ANY}}})",
                     "{{fs}} {{target}} {{user}}"), unit="short", empty="no changelog users"),
    timeseries("Precreated objects", "Precreated objects of each MDT on the OST of the pool with the fewest. At 0, "
               "file creation waits for that OST.",
               Query("bottomk(10, min by (fs, mdt, pool) (lustre_osp_precreated_objects{fs=~\"$fs\"}))",
                     "{{fs}} {{mdt}} on {{pool}}"), unit="short", empty="not reported"),
))
SERVICES = Row("Server threads", (
    timeseries("Waiting requests", "Requests waiting for a thread, by service. If not 0 for long, all threads are "
               "busy or hang (LustreServiceHung).",
               Query("topk(10, sum by (instance, service) (lustre_service_queued_requests))",
                     "{{instance}} {{service}}"), unit="short", steps=((None, GREEN), (100, ORANGE))),
    timeseries("Request wait time", "Mean time that a request waited for a thread, by service.",
               Query(f"topk(10, sum by (instance, service) (rate(lustre_service_request_wait_seconds_total{RATE})) / "
                     f"(sum by (instance, service) (rate(lustre_service_requests_total{RATE})) > 0))",
                     "{{instance}} {{service}}"), unit="s"),
    timeseries("Thread usage", "Threads started, as a share of the maximum, by service.",
               Query("topk(10, sum by (instance, service) (lustre_service_threads_started) / (sum by (instance, "
                     "service) (lustre_service_threads_max) > 0))", "{{instance}} {{service}}"), unit="percentunit",
               maximum=1),
    timeseries("Evictions", "Clients evicted in the last minutes. Their unwritten data is lost.",
               Query(largest(10, 'sum by (fs, target) (increase({__name__=~"lustre_(ost|mdt)_evictions_total", '
                             f"{ANY}}}{RATE}))"), "{{fs}} {{target}}"), unit="short", steps=((None, GREEN), (1, RED))),
), empty="not reported", closed=True)
NO_POWERFLEX = "no PowerFlex gateway in tierd's configuration"
OF_FS = 'fs=~"$fs"'
ABNORMAL = 'state!~"ClusteredNormal|ClusteredTightlyCoupled|unknown"'
PARTS = f'{{__name__=~"tierd_powerflex_(sds|sdc)_connected", {OF_FS}}}'
REBUILD = f'work=~".+_rebuild", {OF_FS}'
POWERFLEX = Row("PowerFlex below the OSTs", (
    stat("MDM cluster not normal", "File systems whose PowerFlex MDM cluster is not in the state "
         "ClusteredNormal: see TierdPowerFlexMdmDegraded.",
         Query(none_of(f'count(tierd_powerflex_mdm_cluster_info{{{ABNORMAL}, {OF_FS}}})',
                       f"tierd_powerflex_mdm_cluster_info{{{OF_FS}}}")), unit="short", steps=ANY_IS_BAD, width=6),
    stat("Disconnected SDS and SDC", "PowerFlex data servers and data clients that are not connected to the MDM.",
         Query(none_of(f"count({PARTS} == 0)", PARTS)), unit="short", steps=ANY_IS_BAD, width=6),
    stat("Data with one copy", "Data that is lost if another device fails. A rebuild makes its second copy.",
         Query(f"sum(tierd_powerflex_pool_degraded_bytes{{{OF_FS}}})"), unit="bytes", steps=ANY_IS_A_WARNING, width=6),
    stat("Targets slowed by PowerFlex", "Targets whose volume is slowed by a rebuild or rebalance, or whose state is "
         "unknown. tierd blames no job on them.",
         Query(f"sum(tierd_powerflex_target_slowed{{{OF_FS}, target=~\"$target\"}})"), unit="short",
         steps=ANY_IS_A_WARNING, width=6),
    timeseries("Rebuild and rebalance", "Bytes per second that PowerFlex writes for rebuilds and rebalances, by pool.",
               Query(f"sum by (fs, pool, work) (tierd_powerflex_pool_work_bytes_per_second{{{OF_FS}}})",
                     "{{fs}} {{pool}} {{work}}"), unit="Bps"),
    timeseries("Data left to rebuild", "Data in a rebuild or waiting for one, by pool. If it does not fall, see "
               "TierdPowerFlexRebuildLong.",
               Query(f"sum by (fs, pool) (tierd_powerflex_pool_work_active_bytes{{{REBUILD}}} + "
                     f"tierd_powerflex_pool_work_pending_bytes{{{REBUILD}}})", "{{fs}} {{pool}}"), unit="bytes"),
    timeseries("Volume traffic", "Bytes per second read from and written to the ten busiest volumes.",
               Query(f"topk(10, tierd_powerflex_volume_read_bytes_per_second{{{OF_FS}}})", "{{fs}} {{volume}} read"),
               Query(f"topk(10, tierd_powerflex_volume_write_bytes_per_second{{{OF_FS}}})", "{{fs}} {{volume}} write"),
               unit="Bps"),
    timeseries("Failed gateway requests", "Failed requests of tierd to the PowerFlex gateway, by reason. If they last, "
               "see TierdPowerFlexUnreachable.",
               Query(f"sum by (reason) (increase(tierd_powerflex_errors_total{{{OF_FS}}}{RATE}))", "{{reason}}"),
               unit="short"),
), empty=NO_POWERFLEX, closed=True)
BOARD = Dashboard("targets", "Lustre: targets", "Load, latency, disk I/O and space of object and metadata targets.",
                  (FS, POOL, TARGET), (STATE, ROOM, LOAD, METADATA, DISKS, SERVICES, POWERFLEX, CHECKS))
