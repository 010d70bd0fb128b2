"""Is it well, how full, how busy, who is it: on one screen."""

from __future__ import annotations

from dashboards.boards.shared import ALERTS, ANY_IS_BAD, ANY_IS_NOTED, FULL, events, firing
from dashboards.dashboard import Dashboard, Row
from dashboards.links import from_row, on, to
from dashboards.panels import GREEN, PLAIN, RED, YELLOW, Panel, Query, bars, stat, table, timeseries
from dashboards.variables import FS, POOL

NOT_FULL = 'fs_pool_state:lustre_osc_imports:sum{fs=~"$fs", state!~"FULL|IDLE"}'
MDC_NOT_FULL = 'fs_target_state:lustre_mdc_imports:sum{fs=~"$fs", state!~"FULL|IDLE"}'

HEALTH = Row("Health", (
    stat("Alerts firing", "Alerts of this set, critical and warning. Not 0: open the table below, each has a runbook.",
         firing(), unit="short", steps=ANY_IS_BAD),
    stat("Unhealthy nodes", "Nodes on which Lustre's own health_check says that a device failed or an assertion did. "
         "Not 0: look at that node's console and dmesg now.",
         Query("count(lustre_healthy == 0) or vector(0)"), unit="short", steps=ANY_IS_BAD),
    stat("Targets in recovery", "Targets that wait for clients after a restart; their I/O hangs meanwhile. Longer than "
         "a quarter of an hour: see the runbook of LustreRecoveryStuck.",
         Query('sum(max by (fs, target) ({__name__=~"lustre_(ost|mdt)_recovering", fs=~"$fs"})) or vector(0)'),
         unit="short", steps=ANY_IS_NOTED),
    stat("Targets degraded", "Object targets whose RAID is rebuilding; slow, and the next disk may be the last.",
         Query('sum(max by (fs, target) (lustre_ost_degraded{fs=~"$fs"})) or vector(0)'), unit="short",
         steps=ANY_IS_NOTED),
    stat("Connections not FULL", "Clients' connections to targets that are neither in use nor idle. Many: a server or "
         "the network; few: single clients, on the dashboard Clients.",
         Query(f"(sum({NOT_FULL}) or vector(0)) + (sum({MDC_NOT_FULL}) or vector(0))"), unit="short",
         steps=ANY_IS_NOTED, links=(to("clients", "Clients"),)),
    stat("Exporters down", "Nodes that Prometheus cannot scrape: what happens there is not known.",
         Query('count(up{job=~"lustre.*"} == 0) or vector(0)'), unit="short", steps=ANY_IS_BAD,
         links=(to("exporters", "Exporters and tierd"),)),
))

CAPACITY = Row("Capacity", (
    bars("Pools: used", "Part of each pool that is used. From 80 % plan, from 90 % act: files of default layouts fail "
         "to grow when a pool is full.",
         Query('fs_pool:lustre_pool_used:ratio{fs=~"$fs", pool=~"$pool"}', "{{fs}} {{pool}}", instant=True),
         unit="percentunit", steps=FULL, maximum=1, width=8, height=7, links=(to("targets", "Targets", pool="pool"),)),
    table("Fullest object targets", "The ten fullest OSTs. One much fuller than its pool: see LustreOstImbalance.",
          Query('topk(10, fs_pool_target:lustre_ost_used:ratio{fs=~"$fs", pool=~"$pool"})'), unit="percentunit",
          columns={"fs": ("File system", ""), "target": ("Target", ""), "pool": ("Pool", ""),
                   "Value": ("Used", "percentunit")},
          overrides=(on("Target", from_row("targets", "This target", fs="File system", target="Target")),),
          sort="Used", width=8, height=7, steps=FULL),
    bars("Metadata targets: inodes used", "Part of each MDT's inodes that is used. At 100 % nobody creates files, "
         "however empty the disks are.",
         Query('fs_target:lustre_mdt_files_used:ratio{fs=~"$fs"}', "{{fs}} {{target}}", instant=True),
         unit="percentunit", steps=FULL, maximum=1, width=8, height=7),
))

TRAFFIC = Row("Traffic", (
    timeseries("Read, by pool", "Bytes read from object targets, as servers count them. A pool at a flat top is at its "
               "limit.",
               Query('sum by (fs, pool) (fs_pool_target:lustre_ost_read_bytes:rate2m{fs=~"$fs", pool=~"$pool"})',
                     "{{fs}} {{pool}}"), unit="Bps", stack=True, links=(to("targets", "Targets", pool="pool"),)),
    timeseries("Written, by pool", "Bytes written to object targets, as servers count them.",
               Query('sum by (fs, pool) (fs_pool_target:lustre_ost_write_bytes:rate2m{fs=~"$fs", pool=~"$pool"})',
                     "{{fs}} {{pool}}"), unit="Bps", stack=True, links=(to("targets", "Targets", pool="pool"),)),
    timeseries("Metadata operations", "Operations of metadata targets by kind. A single kind that multiplies is one "
               "job's doing: see the jobs below.",
               Query('topk(8, sum by (fs, operation) (fs_target_operation:lustre_mdt_operations:rate2m{fs=~"$fs"}))',
                     "{{fs}} {{operation}}"), unit="ops", stack=True),
    timeseries("Time of an operation", "Mean time servers need for a metadata operation and for a read or write. What "
               "doubles without more traffic is ill.",
               Query('max by (fs) (fs_target:lustre_mdt_operation_seconds:mean2m{fs=~"$fs"})', "{{fs}} slowest MDT"),
               Query('max by (fs, pool) (fs_pool_target:lustre_ost_bulk_operation_seconds:mean2m{fs=~"$fs", '
                     'pool=~"$pool"})', "{{fs}} {{pool}}, slowest target"), unit="s"),
))


def top(title: str, text: str, expr: str, unit: str, heading: str) -> Panel:
    """A table of jobs."""
    return table(title, text, Query(f"topk(10, {expr})"), unit=unit, width=12, height=8, sort=heading,
                 columns={"fs": ("File system", ""), "jobid": ("Job", ""), "Value": (heading, unit)},
                 overrides=(on("Job", from_row("jobs", "This job", fs="File system", job="Job")),))


JOBS = Row("Who it is", (
    top("Top jobs by bytes", "The ten jobs that move most now.", 'fs_job:lustre_job_bytes:rate2m{fs=~"$fs"}', "Bps",
        "Bytes/s"),
    top("Top jobs by metadata", "The ten jobs with most metadata operations now. One far above the others: "
        "LustreMetadataStorm.", 'fs_job:lustre_job_metadata_operations:rate2m{fs=~"$fs"}', "ops", "Operations/s"),
))

TIERD = Row("Noisy neighbours", (
    stat("Findings now", "Streams that suffer from a neighbour at this moment.",
         Query('sum(tierd_active_findings{kind=~"noisy-neighbour|shared-bandwidth"}) or vector(0)'),
         unit="short", steps=ANY_IS_NOTED, height=6,
         links=(to("tiering", "Noisy neighbours and tiering"),)),
    stat("tierd", "0: it acts. 1: dry run, nothing is changed. 2 or 3: paused, by hand or by the circuit breaker.",
         Query("max(tierd_dry_run) + 2 * max(tierd_paused)"),
         unit="short", steps=((None, GREEN), (1, YELLOW), (2, RED)), height=6, empty="not there"),
    timeseries("Slowdown of streams", "How many times slower each stream is than before its neighbour came; "
               "1 is undisturbed.",
               Query("max by (victim, aggressor) (tierd_interference_slowdown)", "{{victim}} by {{aggressor}}"),
               unit="none", steps=((None, GREEN), (1.2, YELLOW)), width=8, height=6, empty="nobody is disturbed"),
    timeseries("Files moved", "Files per minute whose turn came, by how it went.",
               Query("sum by (outcome) (rate(tierd_moves_total[$__rate_interval])) * 60", "{{outcome}}"),
               unit="short", stack=True, width=8, height=6, empty="none"),
))

FIRING = Row("Alerts", (
    table("Which alerts", "Each has a runbook in docs/runbooks: what it means, what to look at, what to do.",
          Query(f"max by (alertname, severity, fs, target, pool, instance) ({ALERTS})"), unit="short",
          columns={"severity": ("Severity", ""), "alertname": ("Alert", ""), "fs": ("File system", ""),
                   "target": ("Target", ""), "pool": ("Pool", ""), "instance": ("Node", "")},
          width=24, height=6, empty="none", steps=PLAIN),
))

BOARD = Dashboard(
    "glance", "Lustre: at a glance", "Health, room, traffic, jobs and noisy neighbours of a file system.", (FS, POOL),
    (HEALTH, CAPACITY, TRAFFIC, JOBS, TIERD, FIRING), events())
