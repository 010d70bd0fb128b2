"""Overview: what happens to streams and what tierd does, health, capacity, traffic, busiest jobs."""

from __future__ import annotations

from dataclasses import replace

from dashboards.boards.clients import ACTIVE, THROUGHPUT
from dashboards.boards.tiering import POOL_USAGE
from dashboards.dashboard import (
    ALERTS,
    ANY_IS_A_WARNING,
    ANY_IS_BAD,
    FS,
    FULLNESS,
    NO_CLIENTS,
    NO_SERVERS,
    POOL,
    STORY,
    TARGET_LINK,
    Dashboard,
    Row,
    job_link,
    link_from_value,
    none_of,
    tierd_events,
)
from dashboards.panels import RED, YELLOW, Query, bars, coloured, mirrored, sized, stat, table, timeseries, total

NOT_FULL = ('sum({__name__=~"(fs_pool_state:lustre_osc|fs_target_state:lustre_mdc)_imports:sum", '
             'fs=~"$fs", state!~"FULL|IDLE|DEACTIVATED"})')

HEALTH = Row("Health", (
    stat("Alerts firing", "Firing alerts of this set, critical and warning. If not 0, see the table below; "
         "each alert has a runbook.",
         Query(f"count({ALERTS}) or vector(0)"), unit="short", steps=ANY_IS_BAD, width=8, height=3),
    stat("Unhealthy nodes", "Nodes whose Lustre health_check reports a failed device or assertion. If not 0, check "
         "the node's console and dmesg now.",
         Query(none_of("count(lustre_healthy == 0)", "lustre_healthy")), unit="short", steps=ANY_IS_BAD, height=3,
         empty="no exporter"),
    stat("Targets in recovery", "Targets that wait for their clients after a restart. Their I/O hangs. If this takes "
         "more than 15 minutes, see the runbook LustreRecoveryStuck.",
         Query('sum(max by (fs, target) ({__name__=~"lustre_(ost|mdt)_recovering", fs=~"$fs"}))'),
         unit="short", steps=ANY_IS_A_WARNING, height=3, empty=NO_SERVERS),
    stat("Targets degraded", "Object targets with a degraded RAID. They are slow and have less redundancy.",
         Query('sum(max by (fs, target) (lustre_ost_degraded{fs=~"$fs"}))'), unit="short",
         steps=ANY_IS_A_WARNING, height=3, empty=NO_SERVERS),
    stat("Exporters down", "Nodes that Prometheus cannot scrape. Their state is unknown.",
         Query(none_of('count(up{job=~"lustre.*"} == 0)', 'up{job=~"lustre.*"}')), unit="short", steps=ANY_IS_BAD,
         height=3, empty="no exporter", links=(link_from_value("exporters", "Exporters and tierd"),)),
    table("Firing alerts", "Firing alerts and what they concern. Each has a runbook (meaning, impact, diagnosis, "
          "mitigation), which tierd serves at /runbooks/NAME_OF_THE_ALERT.",
          Query("label_replace(max by (alertname, severity, fs, target, pool, instance, victim, aggressor) "
                f'({ALERTS}), "runbook", "docs/runbooks/$1.md", "alertname", "(.+)")'), unit="short",
          columns={"severity": ("Severity", ""), "alertname": ("Alert", ""), "fs": ("File system", ""),
                   "target": ("Target", ""), "pool": ("Pool", ""), "instance": ("Node", ""),
                   "victim": ("Victim", ""), "aggressor": ("Aggressor", ""), "runbook": ("Runbook", "")},
          overrides=(coloured("Severity", {"critical": ("critical", RED), "warning": ("warning", YELLOW)}),
                     *sized({"Severity": 80, "File system": 90, "Target": 90, "Pool": 80, "Runbook": 340}),
                     job_link("Victim"), TARGET_LINK),
          width=24, height=5, empty="no alert is firing"),
))

CAPACITY = Row("Capacity", (
    replace(POOL_USAGE, width=8, height=7),
    table("Fullest object targets", "The ten fullest OSTs. If one is much fuller than its pool, see "
          "LustreOstImbalance.",
          Query('topk(10, fs_pool_target:lustre_ost_used:ratio{fs=~"$fs", pool=~"$pool"})'), unit="percentunit",
          columns={"fs": ("File system", ""), "target": ("Target", ""), "pool": ("Pool", ""),
                   "Value": ("Used", "percentunit")},
          overrides=(TARGET_LINK,), sort="Used", width=8, height=7, steps=FULLNESS, empty=NO_SERVERS),
    bars("MDT inode usage", "Used share of the inodes of each MDT. At 100% no files can be created, even if the disks "
         "are empty.",
         Query('fs_target:lustre_mdt_files_used:ratio{fs=~"$fs"}', "{{fs}} {{target}}", instant=True),
         unit="percentunit", steps=FULLNESS, maximum=1, width=8, height=7, empty=NO_SERVERS),
))

POOLS = '{fs=~"$fs", pool=~"$pool"}'
TRAFFIC = Row("Traffic", (
    total("Read", "Bytes per second read from object targets.", f"fs_pool_target:lustre_ost_read_bytes:rate2m{POOLS}",
          "Bps", width=8),
    total("Written", "Bytes per second written to object targets.",
          f"fs_pool_target:lustre_ost_write_bytes:rate2m{POOLS}", "Bps", width=8),
    total("Metadata operations", "Operations per second on metadata targets.",
          'fs_target_operation:lustre_mdt_operations:rate2m{fs=~"$fs"}', "ops", width=8),
    mirrored("Throughput by pool", "Bytes read from object targets above zero, bytes written below, as counted by the "
             "servers. A flat top means that the pool is at its limit.",
             Query(f"sum by (fs, pool) (fs_pool_target:lustre_ost_read_bytes:rate2m{POOLS})", "{{fs}} {{pool}}"),
             stack=True, links=(link_from_value("targets", "Targets", pool="pool"),)),
    timeseries("Metadata operations by type", "Operations on metadata targets by type. If a single type multiplies, "
               "one job usually causes it: see the job tables.",
               Query('topk(8, sum by (fs, operation) (fs_target_operation:lustre_mdt_operations:rate2m{fs=~"$fs"}))',
                     "{{fs}} {{operation}}"), unit="ops", stack=True),
    timeseries("I/O latency", "Median time of a disk I/O on the slowest target of each pool, and mean time of a "
               "metadata operation on the slowest MDT. If it doubles without more traffic, look for a fault.",
               Query('max by (fs) (fs_target:lustre_mdt_operation_seconds:mean2m{fs=~"$fs"})', "{{fs}} slowest MDT"),
               Query(f"max by (fs, pool) (fs_pool_target:lustre_osd_io_seconds:p50_2m{POOLS})",
                     "{{fs}} {{pool}}, slowest target"), unit="s", width=24, height=6),
), empty=NO_SERVERS)


CLIENTS = Row("Clients (where exporters run on clients)", (
    stat("Connections not FULL", "Connections of clients to targets that are neither FULL, IDLE nor DEACTIVATED. Many "
         "point to a server or the network, a few to single clients (dashboard Clients).",
         Query(none_of(NOT_FULL, 'fs_pool_state:lustre_osc_imports:sum{fs=~"$fs"}')), unit="short", width=12, height=3,
         steps=ANY_IS_A_WARNING, links=(link_from_value("clients", "Clients"),)),
    replace(ACTIVE, width=12),
    replace(THROUGHPUT, width=24, links=(link_from_value("clients", "Clients", fs="fs"),)),
), empty=NO_CLIENTS, closed=True)

BOARD = Dashboard(
    "at-a-glance", "Lustre: at a glance", "Noisy neighbours, health, capacity, traffic and jobs of a file system.",
    (FS, POOL),
    (Row("Noisy neighbours", STORY), HEALTH, CAPACITY, TRAFFIC, CLIENTS), tierd_events())
