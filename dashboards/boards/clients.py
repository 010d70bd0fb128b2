"""What clients do with read-ahead, statahead, requests and memory; then one of them, in detail."""

from __future__ import annotations

from dashboards.boards.shared import LOW_IS_BAD
from dashboards.dashboard import Dashboard, Row
from dashboards.links import from_row, on
from dashboards.panels import GREEN, ORANGE, PLAIN, YELLOW, Panel, Query, heatmap, stat, table, timeseries
from dashboards.variables import CLIENT, FS, POOL

MINE = 'fs=~"$fs", instance="$instance"'
RATE = "[$__rate_interval]"


def ratio(name: str) -> str:
    """Hits among lookups of all clients together."""
    return (f'sum by (fs) (instance_fs:lustre_llite_{name}_hits:rate2m{{fs=~"$fs"}}) / '
            f'(sum by (fs) (instance_fs:lustre_llite_{name}_lookups:rate2m{{fs=~"$fs"}}) > 0)')


def worst(name: str, least: int) -> str:
    """The ten clients with the lowest part of hits, among those who look up at least so often a second."""
    hits, lookups = (f'instance_fs:lustre_llite_{name}_{what}:rate2m{{fs=~"$fs"}}' for what in ("hits", "lookups"))
    return f"bottomk(10, {hits} / ({lookups} > {least}))"


def clients_table(title: str, text: str, expr: str, unit: str, heading: str, **more: object) -> Panel:
    """A table of clients."""
    return table(title, text, Query(expr), unit=unit, sort=heading, width=8, height=7,
                 columns={"fs": ("File system", ""), "instance": ("Client", ""), "pool": ("Pool", ""),
                          "Value": (heading, unit)},
                 overrides=(on("Client", from_row("clients", "This client", fs="File system", instance="Client")),),
                 **more)


TRAFFIC = Row("All clients", (
    timeseries("Read and written by applications", "All clients together. Much less on the servers: page caches do "
               "their work.",
               Query('fs:lustre_llite_read_bytes:rate2m{fs=~"$fs"}', "{{fs}} read"),
               Query('fs:lustre_llite_write_bytes:rate2m{fs=~"$fs"}', "{{fs}} written"), unit="Bps",
               width=16, height=6),
    stat("Clients seen", "Clients with traffic in the last minutes.",
         Query('count(instance_fs:lustre_llite_bytes:rate2m{fs=~"$fs"} > 0) or vector(0)'), unit="short", steps=PLAIN,
         width=8, height=6),
))

AHEAD = Row("Read-ahead and statahead", (
    timeseries("Read-ahead: part of pages hit", "Pages that were there when they were asked for. Below a half with "
               "sequential reads: the working set of read-ahead is too small, or access is random and it harms.",
               Query(ratio("read_ahead"), "{{fs}}"), unit="percentunit", maximum=1, steps=LOW_IS_BAD, width=8,
               empty="nobody reads ahead"),
    timeseries("Read-ahead: in vain and other events", "Pages read ahead and thrown away unread are bandwidth for "
               "nothing; many: lower max_read_ahead_per_file_mb on these clients.",
               Query('topk(8, sum by (fs, event) (rate(lustre_llite_read_ahead_events_total{fs=~"$fs"}' + RATE + ")))",
                     "{{fs}} {{event}}"), unit="ops", width=8, empty="none"),
    timeseries("Statahead: part of names hit", "Attributes that were there when ls, du or find asked. Low: programs do "
               "not go in directory order, and statahead costs the metadata server for nothing.",
               Query(ratio("statahead"), "{{fs}}"), unit="percentunit", maximum=1, steps=LOW_IS_BAD, width=8,
               empty="nobody lists directories"),
    clients_table("Read-ahead: worst clients", "Clients with the lowest part of hits, of those that read 100 pages/s "
                  "or more.", worst("read_ahead", 100), "percentunit", "Hit", empty="none"),
    clients_table("Statahead: worst clients", "Clients with the lowest part of hits, of those that list.",
                  worst("statahead", 10), "percentunit", "Hit", empty="none"),
    clients_table("Busiest clients", "The ten clients that read and write most.",
                  'topk(10, instance_fs:lustre_llite_bytes:rate2m{fs=~"$fs"})', "Bps", "Bytes/s"),
))

BUCKET = "fs_pool_direction_le:lustre_osc_"


def requests(title: str, text: str, name: str, direction: str, unit: str) -> Panel:
    """A heatmap of all clients."""
    expr = (f'sum by (le) ({BUCKET}{name}_bucket:rate2m{{fs=~"$fs", pool=~"$pool", direction="{direction}"}})')
    return heatmap(title, text, Query(expr, buckets=True), unit=unit)


REQUESTS = Row("Requests to object servers", (
    requests("Pages per write request", "Large is good: 256 pages are 1 MiB. A band of small ones is small I/O that "
             "disks must seek for; the dashboard Jobs says whose.", "pages_per_rpc", "write", "short"),
    requests("Pages per read request", "Large is good: 256 pages are 1 MiB.", "pages_per_rpc", "read", "short"),
    requests("Write requests in flight", "How many were under way whenever one was sent. All at max_rpcs_in_flight: "
             "clients wait for servers.", "rpcs_in_flight_at_send", "write", "short"),
    requests("Read requests in flight", "How many were under way whenever one was sent.", "rpcs_in_flight_at_send",
             "read", "short"),
    requests("Write latency", "From sending to the answer, as clients see it (Lustre 2.17). A second band above the "
             "first: some targets are slow.", "rpc_latency_seconds", "write", "s"),
    requests("Read latency", "From sending to the answer, as clients see it (Lustre 2.17).", "rpc_latency_seconds",
             "read", "s"),
    clients_table("Longest waits", "Mean time a request waited for its answer, by client and pool. The same pool for "
                  "all: the servers; one client for all pools: its network.",
                  'topk(10, instance_fs_pool:lustre_osc_request_wait_seconds:mean2m{fs=~"$fs", pool=~"$pool"})', "s",
                  "Wait"),
    clients_table("Fullest pipes", "Requests under way against max_rpcs_in_flight. Near 100 %: the client could do "
                  "more if the servers could.",
                  'topk(10, instance_fs_pool:lustre_osc_rpcs_in_flight:utilisation{fs=~"$fs", pool=~"$pool"})',
                  "percentunit", "Used"),
    clients_table("Connections not FULL", "Clients with connections that are neither in use nor idle: lctl get_param "
                  "osc.*.import there.",
                  'topk(20, sum by (instance, fs, pool) (lustre_osc_imports{fs=~"$fs", state!~"FULL|IDLE"}))', "short",
                  "Targets", empty="all are FULL"),
))

APPLICATIONS = Row("What applications ask", (
    heatmap("Sizes of reads", "Sizes of applications' reads. Only where extents_stats was switched on by writing to "
            "it.", Query('sum by (le) (fs_direction_le:lustre_llite_extent_size_bytes_bucket:rate2m{fs=~"$fs", '
                         'direction="read"})', buckets=True), unit="bytes", empty="extents_stats is off"),
    heatmap("Sizes of writes", "Sizes of applications' writes. Only where extents_stats was switched on by writing to "
            "it.", Query('sum by (le) (fs_direction_le:lustre_llite_extent_size_bytes_bucket:rate2m{fs=~"$fs", '
                         'direction="write"})', buckets=True), unit="bytes", empty="extents_stats is off"),
))

ONE = Row("One client: $instance", (
    timeseries("Bytes", "What applications read and wrote there.",
               Query(f"rate(lustre_llite_read_bytes_total{{{MINE}}}{RATE})", "{{mount}} read"),
               Query(f"rate(lustre_llite_write_bytes_total{{{MINE}}}{RATE})", "{{mount}} written"), unit="Bps",
               width=8),
    timeseries("Operations", "What applications asked for, by kind.",
               Query(f"topk(10, rate(lustre_llite_operations_total{{{MINE}}}{RATE}))", "{{mount}} {{operation}}"),
               unit="ops", width=8),
    timeseries("Time of operations", "Mean time of the kinds that take most of it. openclosetime is left out: it is "
               "how long files stay open.",
               Query(f'topk(8, rate(lustre_llite_operation_seconds_total{{{MINE}, operation!="openclosetime"}}{RATE}) '
                     f"/ (rate(lustre_llite_operations_total{{{MINE}}}{RATE}) > 0))", "{{mount}} {{operation}}"),
               unit="s", width=8),
    timeseries("Page cache", "File data in memory against what is allowed. At the limit with reclaims: reads come from "
               "servers again; raise max_cached_mb if memory allows.",
               Query(f"lustre_llite_page_cache_used_bytes{{{MINE}}}", "{{mount}} used"),
               Query(f"lustre_llite_page_cache_max_bytes{{{MINE}}}", "{{mount}} limit"), unit="bytes", width=8),
    timeseries("Read-ahead", "Pages read ahead and not asked for yet, against the limit.",
               Query(f"lustre_llite_read_ahead_used_bytes{{{MINE}}}", "{{mount}} used"),
               Query(f"lustre_llite_read_ahead_max_bytes{{{MINE}}}", "{{mount}} limit"), unit="bytes", width=8),
    timeseries("Dirty data and grant", "Written and not sent yet, against what servers promised to take. Grant near 0: "
               "writes become synchronous; a target is nearly full.",
               Query(f"lustre_osc_dirty_bytes{{{MINE}}}", "{{pool}} {{mount}} dirty"),
               Query(f"lustre_osc_grant_bytes{{{MINE}}}", "{{pool}} {{mount}} grant"), unit="bytes", width=8),
    timeseries("Metadata requests", "By kind and metadata target.",
               Query(f"topk(10, rate(lustre_mdc_metadata_operations_total{{{MINE}}}{RATE}))",
                     "{{target}} {{operation}}"), unit="ops", width=8),
    timeseries("Modifying requests in flight", "Under way against the most that may be. At the limit: creates and "
               "unlinks wait on the client.",
               Query(f"lustre_mdc_modify_rpcs_in_flight{{{MINE}}}", "{{target}} {{mount}} now"),
               Query(f"lustre_mdc_max_modify_rpcs_in_flight{{{MINE}}}", "{{target}} {{mount}} most"), unit="short",
               width=8, steps=((None, GREEN), (7, YELLOW), (64, ORANGE))),
    timeseries("Locks held", "Locks the client keeps, by namespace. Very many: memory on servers; lru_size and "
               "lru_max_age on the client.",
               Query(f"topk(10, lustre_ldlm_locks{{{MINE}}})", "{{namespace}}"), unit="short", width=8),
), closed=True)

BOARD = Dashboard("clients", "Lustre: clients", "Read-ahead, statahead, requests, latency and memory of clients.",
                  (FS, POOL, CLIENT), (TRAFFIC, AHEAD, REQUESTS, APPLICATIONS, ONE))
