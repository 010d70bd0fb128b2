"""Object and metadata targets: load, latency, what the disks do, how full, how even."""

from __future__ import annotations

from dashboards.boards.shared import FULL
from dashboards.boards.upkeep import UPKEEP
from dashboards.dashboard import Dashboard, Row
from dashboards.links import from_row, on, to
from dashboards.panels import GREEN, ORANGE, RED, YELLOW, Panel, Query, bars, heatmap, table, timeseries
from dashboards.variables import FS, POOL, TARGET

OST = 'fs=~"$fs", pool=~"$pool", target=~"$target"'
ANY = 'fs=~"$fs", target=~"$target"'
RATE = "[$__rate_interval]"
JOBS = to("jobs", "Jobs on this target", fs="fs", target="target")

STATE = Row("All targets", (
    table("Object targets", "Load, time and room of each. Compare within a pool: the one that stands out is ill, or "
          "one job lies on it alone.",
          Query(f"fs_pool_target:lustre_ost_read_bytes:rate2m{{{OST}}}"),
          Query(f"fs_pool_target:lustre_ost_write_bytes:rate2m{{{OST}}}"),
          Query(f"fs_pool_target:lustre_ost_bulk_operations:rate2m{{{OST}}}"),
          Query(f"fs_pool_target:lustre_ost_bulk_operation_seconds:mean2m{{{OST}}}"),
          Query(f"fs_pool_target:lustre_ost_used:ratio{{{OST}}}"),
          unit="short", width=24, height=9, sort="Written/s",
          columns={"fs": ("File system", ""), "pool": ("Pool", ""), "target": ("Target", ""),
                   "Value #A": ("Read/s", "Bps"), "Value #B": ("Written/s", "Bps"),
                   "Value #C": ("Operations/s", "ops"), "Value #D": ("Time", "s"), "Value #E": ("Used", "percentunit")},
          overrides=(on("Target", from_row("jobs", "Jobs on this target", fs="File system", target="Target")),)),
    table("Metadata targets", "Operations, time and inodes of each. Uneven load: directories were made on one MDT; "
          "see lfs mkdir -i and dirstripe policies.",
          Query(f"sum by (fs, target) (fs_target_operation:lustre_mdt_operations:rate2m{{{ANY}}})"),
          Query(f"fs_target:lustre_mdt_operation_seconds:mean2m{{{ANY}}}"),
          Query(f"fs_target:lustre_mdt_files_used:ratio{{{ANY}}}"),
          Query(f"max by (fs, target) (lustre_mdt_exports{{{ANY}}})"),
          unit="short", width=24, height=5,
          columns={"fs": ("File system", ""), "target": ("Target", ""), "Value #A": ("Operations/s", "ops"),
                   "Value #B": ("Time", "s"), "Value #C": ("Inodes used", "percentunit"),
                   "Value #D": ("Clients", "short")}),
))

LOAD = Row("Object targets: load", (
    timeseries("Read", "By target. Equal within a pool is good.",
               Query(f"fs_pool_target:lustre_ost_read_bytes:rate2m{{{OST}}}", "{{target}}"), unit="Bps", links=(JOBS,)),
    timeseries("Written", "By target. Equal within a pool is good.",
               Query(f"fs_pool_target:lustre_ost_write_bytes:rate2m{{{OST}}}", "{{target}}"), unit="Bps",
               links=(JOBS,)),
    timeseries("Reads and writes", "Operations. Many with few bytes: small I/O.",
               Query(f"fs_pool_target:lustre_ost_bulk_operations:rate2m{{{OST}}}", "{{target}}"), unit="ops",
               links=(JOBS,)),
    timeseries("Bytes in one operation", "Below 1 MiB on disks, seeks cost more than data.",
               Query(f"(sum by (fs, target) (rate(lustre_ost_read_bytes_total{{{ANY}}}{RATE})) + sum by (fs, target) "
                     f"(rate(lustre_ost_write_bytes_total{{{ANY}}}{RATE}))) / (sum by (fs, target) "
                     f'(rate(lustre_ost_operations_total{{{ANY}, operation=~"read|write"}}{RATE})) > 0)', "{{target}}"),
               unit="bytes"),
    timeseries("Time of a read or write", "Mean, in the server: queue and disk. Doubled against its pool: see "
               "LustreOstSlow.",
               Query(f"fs_pool_target:lustre_ost_bulk_operation_seconds:mean2m{{{OST}}}", "{{target}}"), unit="s"),
    timeseries("Time of disk I/Os", "Median, from brw_stats: the disks alone. Far below the time above: the queue, or "
               "locks.", Query(f"fs_pool_target:lustre_osd_io_seconds:p50_2m{{{OST}}}", "{{target}}"), unit="s"),
    timeseries("Imbalance within pools", "Fullest less emptiest target of a pool. Above 20 %: new files still go there "
               "only by weight; rebalance with lfs migrate.",
               Query('max by (fs, pool) (fs_pool_target:lustre_ost_used:ratio{fs=~"$fs", pool=~"$pool"}) - min by (fs, '
                     'pool) (fs_pool_target:lustre_ost_used:ratio{fs=~"$fs", pool=~"$pool"})', "{{fs}} {{pool}}"),
               unit="percentunit", maximum=1, steps=((None, GREEN), (0.2, YELLOW), (0.4, RED))),
))


def disk(title: str, text: str, name: str, direction: str, unit: str) -> Panel:
    """A heatmap from brw_stats."""
    expr = f'sum by (le) (rate(lustre_osd_{name}_bucket{{{ANY}, direction="{direction}"}}{RATE}))'
    return heatmap(title, text, Query(expr, buckets=True), unit=unit)


DISKS = Row("Object targets: what the disks do (choose a target)", (
    disk("Size of disk writes", "Large is good. Small ones on disks: small files, or a fragmented target.",
         "io_size_bytes", "write", "bytes"),
    disk("Size of disk reads", "Large is good.", "io_size_bytes", "read", "bytes"),
    disk("Time of disk writes", "A band that moves up with the same load: the disks, or a rebuild.", "io_seconds",
         "write", "s"),
    disk("Time of disk reads", "A band that moves up with the same load: the disks, or a rebuild.", "io_seconds",
         "read", "s"),
    disk("Pieces of one write", "1 is good. More: the target is fragmented, or nearly full.", "io_fragments", "write",
         "short"),
    disk("Pieces of one read", "1 is good. More: files were written in pieces.", "io_fragments", "read", "short"),
    disk("Disk writes in flight", "How many were under way whenever one was begun.", "io_in_flight", "write", "short"),
    disk("Disk reads in flight", "How many were under way whenever one was begun.", "io_in_flight", "read", "short"),
))

ROOM = Row("Room", (
    bars("Object targets: used", "Part used. Full targets take no new objects, and grow no old ones.",
         Query(f"fs_pool_target:lustre_ost_used:ratio{{{OST}}}", "{{target}}", instant=True), unit="percentunit",
         steps=FULL, maximum=1),
    bars("Object targets: objects used", "Part of the inodes used: many tiny files fill them before the bytes.",
         Query(f"1 - max by (fs, target) (lustre_ost_files_free{{{ANY}}}) / (max by (fs, target) "
               f"(lustre_ost_files{{{ANY}}}) > 0)", "{{target}}", instant=True), unit="percentunit", steps=FULL,
         maximum=1),
    timeseries("Free, and where it leads", "Free room, and what will be free in a day if it goes on like the last six "
               "hours. A line that meets 0 is the alert LustreOstFillingUp.",
               Query(f"sum by (fs, pool) (max by (fs, target) (lustre_ost_avail_bytes{{{ANY}}}) * on (fs, target) "
                     'group_left (pool) fs_target:lustre_pool_target:info{pool=~"$pool"})', "{{fs}} {{pool}}"),
               Query('predict_linear(fs_pool:lustre_pool_avail_bytes:min{fs=~"$fs", pool=~"$pool"}[6h], 86400)',
                     "{{fs}} {{pool}} in a day"), unit="bytes"),
    timeseries("Data promised to clients", "Grant and what is on its way. Much of the free room: clients may write "
               "that much without asking.",
               Query(f"max by (fs, target) (lustre_ost_granted_bytes{{{ANY}}})", "{{target}} granted"),
               Query(f"max by (fs, target) (lustre_ost_pending_bytes{{{ANY}}})", "{{target}} pending"), unit="bytes",
               empty="these releases do not say"),
))

METADATA = Row("Metadata targets", (
    timeseries("Metadata operations", "By kind and target, the ten busiest.",
               Query(f"topk(10, fs_target_operation:lustre_mdt_operations:rate2m{{{ANY}}})",
                     "{{target}} {{operation}}"), unit="ops"),
    timeseries("Time of metadata operations", "Mean by kind. What is slow while others are not: locks (rename, unlink "
               "in one directory) rather than disks.",
               Query("topk(10, sum by (fs, target, operation) "
                     f"(rate(lustre_mdt_operation_seconds_total{{{ANY}}}{RATE})) / "
                     f"(sum by (fs, target, operation) (rate(lustre_mdt_operations_total{{{ANY}}}{RATE})) > 0))",
                     "{{target}} {{operation}}"), unit="s"),
    timeseries("Changelog: behind", "Records each user has not cleared. They fill the MDT; without end: "
               "LustreChangelogBehind.",
               Query(f"max by (fs, target, user) (lustre_changelog_user_behind_records{{{ANY}}})",
                     "{{target}} {{user}}"), unit="short", empty="no changelog users"),
    timeseries("Objects made ahead", "Objects each MDT has ready, on the OST of the pool that has fewest. 0 while "
               "files are created: creates wait for that OST.",
               Query("bottomk(10, min by (fs, mdt, pool) (lustre_osp_precreated_objects{fs=~\"$fs\"}))",
                     "{{mdt}} on {{pool}}"), unit="short", empty="not told"),
))

SERVICES = Row("Server threads", (
    timeseries("Requests that wait", "Requests without a thread, by service. Not 0 for long: threads are at their "
               "maximum, or hang (LustreServiceHung).",
               Query("topk(10, sum by (instance, service) (lustre_service_queued_requests))",
                     "{{instance}} {{service}}"), unit="short", empty="not told", steps=((None, GREEN), (100, ORANGE))),
    timeseries("Wait before work", "Mean time a request waited, by service.",
               Query(f"topk(10, sum by (instance, service) (rate(lustre_service_request_wait_seconds_total{RATE})) / "
                     f"(sum by (instance, service) (rate(lustre_service_requests_total{RATE})) > 0))",
                     "{{instance}} {{service}}"), unit="s"),
    timeseries("Threads", "Threads started, of the most there may be.",
               Query("topk(10, sum by (instance, service) (lustre_service_threads_started) / (sum by (instance, "
                     "service) (lustre_service_threads_max) > 0))", "{{instance}} {{service}}"), unit="percentunit",
               maximum=1, empty="not told"),
    timeseries("Evictions", "Clients given up in the last minutes: their unwritten data is lost.",
               Query('sum by (fs, target) (increase({__name__=~"lustre_(ost|mdt)_evictions_total", ' + ANY + "}"
                     + RATE + "))", "{{target}}"), unit="short", empty="not told", steps=((None, GREEN), (1, RED))),
), closed=True)

BOARD = Dashboard("targets", "Lustre: targets", "Load, latency, disks and room of object and metadata targets.",
                  (FS, POOL, TARGET), (STATE, LOAD, DISKS, ROOM, METADATA, SERVICES, UPKEEP))
