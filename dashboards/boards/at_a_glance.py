"""Overview on one screen: health, capacity, traffic, jobs, noisy neighbours, alerts."""

from __future__ import annotations

from dashboards.dashboard import (
    ALERTS,
    ANY_IS_A_WARNING,
    ANY_IS_BAD,
    FS,
    FULLNESS,
    POOL,
    Dashboard,
    Row,
    alerts_firing,
    column_links,
    link_from_row,
    link_from_value,
    tierd_events,
)
from dashboards.panels import GREEN, PLAIN, RED, YELLOW, Panel, Query, bars, stat, table, timeseries

NOT_FULL = 'fs_pool_state:lustre_osc_imports:sum{fs=~"$fs", state!~"FULL|IDLE"}'
MDC_NOT_FULL = 'fs_target_state:lustre_mdc_imports:sum{fs=~"$fs", state!~"FULL|IDLE"}'

HEALTH = Row("Health", (
    stat("Alerts firing", "Firing alerts of this set, critical and warning. If not 0, see the table at the bottom; "
         "each alert has a runbook.",
         alerts_firing(), unit="short", steps=ANY_IS_BAD),
    stat("Unhealthy nodes", "Nodes whose Lustre health_check reports a failed device or assertion. If not 0, check "
         "the node's console and dmesg now.",
         Query("count(lustre_healthy == 0) or vector(0)"), unit="short", steps=ANY_IS_BAD),
    stat("Targets in recovery", "Targets that wait for their clients after a restart. Their I/O hangs. If this takes "
         "more than 15 minutes, see the runbook LustreRecoveryStuck.",
         Query('sum(max by (fs, target) ({__name__=~"lustre_(ost|mdt)_recovering", fs=~"$fs"})) or vector(0)'),
         unit="short", steps=ANY_IS_A_WARNING),
    stat("Targets degraded", "Object targets with a degraded RAID. They are slow and have less redundancy.",
         Query('sum(max by (fs, target) (lustre_ost_degraded{fs=~"$fs"})) or vector(0)'), unit="short",
         steps=ANY_IS_A_WARNING),
    stat("Connections not FULL", "Connections of clients to targets that are neither FULL nor IDLE. Many point to a "
         "server or the network, few to single clients (dashboard Clients).",
         Query(f"(sum({NOT_FULL}) or vector(0)) + (sum({MDC_NOT_FULL}) or vector(0))"), unit="short",
         steps=ANY_IS_A_WARNING, links=(link_from_value("clients", "Clients"),)),
    stat("Exporters down", "Nodes that Prometheus cannot scrape. Their state is unknown.",
         Query('count(up{job=~"lustre.*"} == 0) or vector(0)'), unit="short", steps=ANY_IS_BAD,
         links=(link_from_value("exporters", "Exporters and tierd"),)),
))

CAPACITY = Row(
    "Capacity",
    (
        bars(
            "Pool usage",
            "Used share of each pool. Plan from 80%, act from 90%: files in a full pool cannot grow.",
            Query('fs_pool:lustre_pool_used:ratio{fs=~"$fs", pool=~"$pool"}', "{{fs}} {{pool}}", instant=True),
            unit="percentunit",
            steps=FULLNESS,
            maximum=1,
            width=8,
            height=7,
            links=(link_from_value("targets", "Targets", pool="pool"),),
        ),
        table(
            "Fullest object targets",
            "The ten fullest OSTs. If one is much fuller than its pool, see LustreOstImbalance.",
            Query('topk(10, fs_pool_target:lustre_ost_used:ratio{fs=~"$fs", pool=~"$pool"})'),
            unit="percentunit",
            columns={
                "fs": ("File system", ""),
                "target": ("Target", ""),
                "pool": ("Pool", ""),
                "Value": ("Used", "percentunit"),
            },
            overrides=(
                column_links("Target", link_from_row("targets", "This target", fs="File system", target="Target")),
            ),
            sort="Used",
            width=8,
            height=7,
            steps=FULLNESS,
        ),
        bars(
            "MDT inode usage",
            "Used share of the inodes of each MDT. At 100% no files can be created, even if the disks are empty.",
            Query('fs_target:lustre_mdt_files_used:ratio{fs=~"$fs"}', "{{fs}} {{target}}", instant=True),
            unit="percentunit",
            steps=FULLNESS,
            maximum=1,
            width=8,
            height=7,
        ),
    ),
)

TRAFFIC = Row(
    "Traffic",
    (
        timeseries(
            "Read throughput by pool",
            "Bytes read from object targets, as counted by the servers. A flat top "
            "means that the pool is at its limit.",
            Query(
                'sum by (fs, pool) (fs_pool_target:lustre_ost_read_bytes:rate2m{fs=~"$fs", pool=~"$pool"})',
                "{{fs}} {{pool}}",
            ),
            unit="Bps",
            stack=True,
            links=(link_from_value("targets", "Targets", pool="pool"),),
        ),
        timeseries(
            "Write throughput by pool",
            "Bytes written to object targets, as counted by the servers.",
            Query(
                'sum by (fs, pool) (fs_pool_target:lustre_ost_write_bytes:rate2m{fs=~"$fs", pool=~"$pool"})',
                "{{fs}} {{pool}}",
            ),
            unit="Bps",
            stack=True,
            links=(link_from_value("targets", "Targets", pool="pool"),),
        ),
        timeseries(
            "Metadata operations by type",
            "Operations on metadata targets by type. If a single type multiplies, "
            "one job usually causes it: see the job tables.",
            Query(
                'topk(8, sum by (fs, operation) (fs_target_operation:lustre_mdt_operations:rate2m{fs=~"$fs"}))',
                "{{fs}} {{operation}}",
            ),
            unit="ops",
            stack=True,
        ),
        timeseries(
            "Operation time",
            "Mean time of a metadata operation and of a read or write on the servers. If it "
            "doubles without more traffic, look for a fault.",
            Query('max by (fs) (fs_target:lustre_mdt_operation_seconds:mean2m{fs=~"$fs"})', "{{fs}} slowest MDT"),
            Query(
                'max by (fs, pool) (fs_pool_target:lustre_ost_bulk_operation_seconds:mean2m{fs=~"$fs", pool=~"$pool"})',
                "{{fs}} {{pool}}, slowest target",
            ),
            unit="s",
        ),
    ),
)


def top(title: str, text: str, expr: str, unit: str, heading: str) -> Panel:
    """A table of jobs."""
    return table(title, text, Query(f"topk(10, {expr})"), unit=unit, width=12, height=8, sort=heading,
                 columns={"fs": ("File system", ""), "jobid": ("Job", ""), "Value": (heading, unit)},
                 overrides=(column_links("Job", link_from_row("jobs", "This job", fs="File system", jobid="Job")),))


JOBS = Row("Busiest jobs", (
    top("Top jobs by bytes", "The ten jobs with the highest throughput now.",
        'fs_job:lustre_job_bytes:rate2m{fs=~"$fs"}', "Bps",
        "Bytes/s"),
    top("Top jobs by metadata", "The ten jobs with the most metadata operations now. If one is far above the others, "
        "see LustreMetadataStorm.",
        'fs_job:lustre_job_metadata_operations:rate2m{fs=~"$fs"}', "ops", "Operations/s"),
))

TIERD = Row("Noisy neighbours", (
    stat("Active findings", "Streams that a neighbour slows now.",
         Query('sum(tierd_active_findings{kind=~"noisy-neighbour|shared-bandwidth"}) or vector(0)'),
         unit="short", steps=ANY_IS_A_WARNING, height=6,
         links=(link_from_value("tiering", "Noisy neighbours and tiering"),)),
    stat("tierd state", "0: tierd acts. 1: dry run, tierd changes nothing. 2: paused by an administrator or the "
         "circuit breaker. 3: paused in dry run.",
         Query("max(tierd_dry_run) + 2 * max(tierd_paused)"),
         unit="short", steps=((None, GREEN), (1, YELLOW), (2, RED)), height=6, empty="no tierd"),
    timeseries("Slowdown of streams", "Slowdown factor of each stream since its neighbour started. 1 means "
               "undisturbed.",
               Query("max by (victim, aggressor) (tierd_interference_slowdown)", "{{victim}} by {{aggressor}}"),
               unit="none", steps=((None, GREEN), (1.2, YELLOW)), width=8, height=6, empty="no slowdown"),
    timeseries("Files moved", "Files per minute taken from the queue, by outcome.",
               Query("sum by (outcome) (rate(tierd_moves_total[$__rate_interval])) * 60", "{{outcome}}"),
               unit="short", stack=True, width=8, height=6, empty="none"),
))

FIRING = Row("Alerts", (
    table("Firing alerts", "Firing alerts with their labels. Each has a runbook in docs/runbooks: meaning, impact, "
          "diagnosis, mitigation.",
          Query(f"max by (alertname, severity, fs, target, pool, instance) ({ALERTS})"), unit="short",
          columns={"severity": ("Severity", ""), "alertname": ("Alert", ""), "fs": ("File system", ""),
                   "target": ("Target", ""), "pool": ("Pool", ""), "instance": ("Node", "")},
          width=24, height=6, empty="none", steps=PLAIN),
))

BOARD = Dashboard(
    "glance", "Lustre: at a glance", "Health, capacity, traffic, jobs and noisy neighbours of a file system.",
    (FS, POOL),
    (HEALTH, CAPACITY, TRAFFIC, JOBS, TIERD, FIRING), tierd_events())
