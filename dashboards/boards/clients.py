"""Read-ahead, statahead, requests and memory of all clients; details of one client.

A second dashboard, for clients that run the exporter with ``--profile=slim``, has the panels that have data there.
"""

from __future__ import annotations

from dataclasses import replace

from dashboards.dashboard import CLIENT, FS, LOW_IS_BAD, NO_CLIENTS, POOL, RATE, Dashboard, Row, column_link
from dashboards.panels import GREEN, ORANGE, YELLOW, Panel, Query, dashed, heatmap, mirrored, table, timeseries, total

MINE = 'fs=~"$fs", instance="$instance"'


def ratio(name: str) -> str:
    return (f'sum by (fs) (instance_fs:lustre_llite_{name}_hits:rate2m{{fs=~"$fs"}}) / '
            f'(sum by (fs) (instance_fs:lustre_llite_{name}_lookups:rate2m{{fs=~"$fs"}}) > 0)')


def worst(name: str, least: int) -> str:
    """The ten clients with the lowest hit ratio among clients with more than ``least`` lookups per second."""
    hits, lookups = (f'instance_fs:lustre_llite_{name}_{what}:rate2m{{fs=~"$fs"}}' for what in ("hits", "lookups"))
    return f"bottomk(10, {hits} / ({lookups} > {least}))"


def clients_table(title: str, text: str, expr: str, unit: str, heading: str, **more: object) -> Panel:
    return table(title, text, Query(expr), unit=unit, sort=heading, width=8, height=7, columns={
        "fs": ("File system", ""), "instance": ("Client", ""), "pool": ("Pool", ""), "Value": (heading, unit),
    }, overrides=(
        column_link("Client", "clients", "This client", fs="File system", instance="Client"),
    ), **more)


ACTIVE = total("Active clients", "Clients with read or write traffic in the last minutes.",
               'instance_fs:lustre_llite_bytes:rate2m{fs=~"$fs"} > bool 0', "short", width=8)
THROUGHPUT = mirrored(
    "Application throughput", "Bytes read by applications above zero, bytes written below, on all clients. "
    "Servers show less if page caches work well.",
    Query('fs:lustre_llite_read_bytes:rate2m{fs=~"$fs"}', "{{fs}}"))
TRAFFIC = Row("All clients", (
    total("Read", "Bytes per second that applications on all clients read.",
          'fs:lustre_llite_read_bytes:rate2m{fs=~"$fs"}', "Bps", width=8),
    total("Written", "Bytes per second that applications on all clients wrote.",
          'fs:lustre_llite_write_bytes:rate2m{fs=~"$fs"}', "Bps", width=8),
    ACTIVE,
    replace(THROUGHPUT, width=16, height=7),
    clients_table("Busiest clients", "The ten clients with the highest throughput.",
                  'topk(10, instance_fs:lustre_llite_bytes:rate2m{fs=~"$fs"})', "Bps", "Bytes/s"),
), empty=NO_CLIENTS)

AHEAD = Row("Read-ahead and statahead", (
    timeseries("Read-ahead hit ratio", "Share of pages served from the read-ahead cache. Below 50%, the read-ahead "
               "cache is too small for the files read, or access is random and read-ahead wastes bandwidth.",
               Query(ratio("read_ahead"), "{{fs}}"), unit="percentunit", maximum=1, steps=LOW_IS_BAD,
               empty="no read-ahead"),
    timeseries("Statahead hit ratio", "Share of file attributes served from the statahead cache for ls, du or find. "
               "If it is low, programs do not follow directory order, and statahead loads the metadata server without "
               "benefit.",
               Query(ratio("statahead"), "{{fs}}"), unit="percentunit", maximum=1, steps=LOW_IS_BAD,
               empty="no directory listings"),
    clients_table("Lowest read-ahead hit ratios", "The ten clients with the lowest read-ahead hit "
                  "ratio among clients that read more than 100 pages/s.",
                  worst("read_ahead", 100), "percentunit", "Hit ratio"),
    clients_table("Lowest statahead hit ratios", "The ten clients with the lowest statahead hit ratio "
                  "among clients with more than 10 lookups/s.", worst("statahead", 10), "percentunit", "Hit ratio"),
    timeseries("Read-ahead events", "Read-ahead events other than hits and misses. Pages discarded unread waste "
               "bandwidth: lower max_read_ahead_per_file_mb if there are many.",
               Query('topk(8, sum by (fs, event) (rate(lustre_llite_read_ahead_events_total{fs=~"$fs"}' + RATE + ")))",
                     "{{fs}} {{event}}"), unit="ops", width=8, height=7),
), empty="none")

BUCKET = "fs_pool_direction_le:lustre_osc_"
SIZES = r"(1|4|16|64|256|1024|4096)(\\.0)?|\\+Inf"
COUNTS = r"(1|2|4|6|8|12|16|24|30)(\\.0)?|\\+Inf"
LATENCIES = r"0\\.000[25].*|0\\.0?0?[1-9].*|[124]\\.[0-9]*|\\+Inf"
"Buckets that heatmaps show, so that few of them are empty. Buckets are cumulative: those left out are in the next one."


def requests(title: str, text: str, name: str, direction: str, unit: str, buckets: str) -> Panel:
    chosen = f'fs=~"$fs", pool=~"$pool", direction="{direction}", le=~"{buckets}"'
    return heatmap(title, text, Query(f"sum by (le) ({BUCKET}{name}_bucket:rate2m{{{chosen}}})", buckets=True),
                   unit=unit, empty="no RPCs, or not reported by this Lustre release")


CONNECTIONS = Row("Connections to object servers", (
    clients_table("Longest reply times", "Mean reply time by client and pool. One pool for all clients points to the "
                  "servers, one client for all pools to its network.",
                  'topk(10, instance_fs_pool:lustre_osc_request_wait_seconds:mean2m{fs=~"$fs", pool=~"$pool"})', "s",
                  "Reply time", empty=NO_CLIENTS),
    clients_table("Highest RPC slot usage", "RPCs in flight as a share of max_rpcs_in_flight. Near 100%, the client "
                  "could send more if the servers were faster.",
                  'topk(10, instance_fs_pool:lustre_osc_rpcs_in_flight:utilisation{fs=~"$fs", pool=~"$pool"})',
                  "percentunit", "Used", empty=NO_CLIENTS),
    clients_table("Clients with broken connections", "Clients with connections that are neither FULL, IDLE nor "
                  "DEACTIVATED. Run lctl get_param osc.*.import there.",
                  'topk(20, sum by (instance, fs, pool) '
                  '(lustre_osc_imports{fs=~"$fs", state!~"FULL|IDLE|DEACTIVATED"}))', "short", "Targets", empty="none"),
))

REQUESTS = Row("RPCs to object servers", (
    requests("Pages per write RPC", "Write RPCs by size. Large is good: 256 pages are 1 MiB. A band at small sizes "
             "is small I/O that makes disks seek; the dashboard Jobs shows its jobs.",
             "pages_per_rpc", "write", "short", SIZES),
    requests("Pages per read RPC", "Read RPCs by size. Large is good: 256 pages are 1 MiB.",
             "pages_per_rpc", "read", "short", SIZES),
    requests("Write RPCs in flight", "Write RPCs, by the number in flight when each was sent. If all are at "
             "max_rpcs_in_flight, clients wait for servers.",
             "rpcs_in_flight_at_send", "write", "short", COUNTS),
    requests("Read RPCs in flight", "Read RPCs, by the number in flight when each was sent.",
             "rpcs_in_flight_at_send", "read", "short", COUNTS),
    requests("Write RPC latency", "Time from sending a write RPC to its reply, measured on clients (Lustre 2.17). A "
             "second band above the first means that some targets are slow.",
             "rpc_latency_seconds", "write", "s", LATENCIES),
    requests("Read RPC latency", "Time from sending a read RPC to its reply, measured on clients (Lustre 2.17).",
             "rpc_latency_seconds", "read", "s", LATENCIES),
), closed=True)

APPLICATIONS = Row("I/O sizes of applications", tuple(
    heatmap(f"Application {direction} size", f"{direction.capitalize()}s of applications by size. Requires "
            "extents_stats, which is enabled by writing to it.",
            Query('sum by (le) (fs_direction_le:lustre_llite_extent_size_bytes_bucket:rate2m{fs=~"$fs", '
                  f'direction="{direction}"}})', buckets=True), unit="bytes", empty="extents_stats is off")
    for direction in ("read", "write")), closed=True)

ONE = Row("One client: $instance", (
    mirrored("Throughput of applications", "Bytes per second that applications on this client read (above zero) and "
             "wrote (below).", Query(f"rate(lustre_llite_read_bytes_total{{{MINE}}}{RATE})", "{{mount}}")),
    timeseries("Operations", "Operations of applications on this client, by type.",
               Query(f"topk(10, rate(lustre_llite_operations_total{{{MINE}}}{RATE}))", "{{mount}} {{operation}}"),
               unit="ops"),
    timeseries("I/O latency", "Mean time of the slowest operation types on this client.",
               Query(f"topk(8, rate(lustre_llite_operation_seconds_total{{{MINE}}}{RATE}) "
                     f"/ (rate(lustre_llite_operations_total{{{MINE}}}{RATE}) > 0))", "{{mount}} {{operation}}"),
               unit="s"),
    timeseries("Page cache", "Cached file data and its limit. At the limit, data is read from servers again: raise "
               "max_cached_mb if memory allows.",
               Query(f"lustre_llite_page_cache_used_bytes{{{MINE}}}", "{{mount}} used"),
               Query(f"lustre_llite_page_cache_max_bytes{{{MINE}}}", "{{mount}} limit"), unit="bytes",
               overrides=(dashed("limit"),)),
    timeseries("Read-ahead memory", "Memory of pages being read ahead, and its limit.",
               Query(f"lustre_llite_read_ahead_used_bytes{{{MINE}}}", "{{mount}} used"),
               Query(f"lustre_llite_read_ahead_max_bytes{{{MINE}}}", "{{mount}} limit"), unit="bytes",
               overrides=(dashed("limit"),)),
    timeseries("Dirty data and grant", "Data that servers have not written yet, and granted space that is left. "
               "With both near 0, a target is nearly full and writes are synchronous.",
               Query(f"lustre_osc_dirty_bytes{{{MINE}}}", "{{pool}} {{mount}} dirty"),
               Query(f"lustre_osc_grant_bytes{{{MINE}}}", "{{pool}} {{mount}} grant"), unit="bytes"),
    timeseries("Metadata operations", "Metadata operations of this client, by target and type.",
               Query("topk(10, sum by (target, operation) (rate(lustre_mdc_metadata_operations_total"
                     f"{{{MINE}}}{RATE})))", "{{target}} {{operation}}"), unit="ops"),
    timeseries("Modifying RPCs in flight", "Modifying metadata RPCs in flight, and their limit. At the limit, "
               "creates and unlinks wait on the client.",
               Query(f"lustre_mdc_modify_rpcs_in_flight{{{MINE}}}", "{{target}} {{mount}} now"),
               Query(f"lustre_mdc_max_modify_rpcs_in_flight{{{MINE}}}", "{{target}} {{mount}} limit"), unit="short",
               overrides=(dashed("limit"),), steps=((None, GREEN), (7, YELLOW), (64, ORANGE))),
    timeseries("Locks held", "Locks held by the client, by namespace. Very many locks use much memory on servers: "
               "lower lru_size or lru_max_age on the client.",
               Query(f"topk(10, sum by (namespace) (lustre_ldlm_locks{{{MINE}}}))", "{{namespace}}"), unit="short"),
), empty=NO_CLIENTS, closed=True)

BOARD = Dashboard("clients", "Lustre: clients", "Read-ahead, statahead, RPCs, latency and memory of clients.",
                  (FS, POOL, CLIENT), (TRAFFIC, CONNECTIONS, AHEAD, REQUESTS, APPLICATIONS, ONE))

WITHOUT_DATA = frozenset({
    "Statahead hit ratio", "Lowest statahead hit ratios", "Read-ahead events", "Highest RPC slot usage", "Page cache",
    "Read-ahead memory", "Dirty data and grant", "Metadata operations", "Modifying RPCs in flight", "Locks held",
})  # fmt: skip
"""Panels whose metrics the slim profile does not have."""
SLIM = Dashboard(
    "clients-slim", "Lustre: clients, slim",
    "Traffic, connections and read-ahead of clients with the slim profile of the exporter.", (FS, POOL, CLIENT),
    tuple([replace(row, panels=tuple([panel for panel in row.panels if panel.title not in WITHOUT_DATA]))
           for row in (TRAFFIC, CONNECTIONS, AHEAD, ONE)]),
)  # fmt: skip
