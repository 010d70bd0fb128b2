"""``python -m scripts.metrics_reference > docs/metrics.md``: the reference of all metrics.

It is made from the collectors, and from the calls in tierd that make a family with a literal name.
"""

from __future__ import annotations

import ast
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from exporter import clock
from exporter.collector import Collector, Settings
from exporter.collectors import COLLECTORS, slim
from exporter.exposition import Family
from exporter.scrape import Scraper
from exporter.self_metrics import PREFIX, ExporterMetrics
from httpserver.bodies import HeldBodies
from httpserver.config import WebConfigFile
from httpserver.connections import Connections
from httpserver.metrics import ConnectionMetrics, WebConfigMetrics
from lustre.parameters import Roots, Tree
from scripts import unread_parameters

HEAD = """\
# Metrics

Generated from the collectors by `python -m scripts.metrics_reference > docs/metrics.md`. A test compares the two.

`fs` is the name of the file system, `target` is `OST0003` or `MDT0000`. `mount` is the mount point on this node. If
`/proc/mounts` does not show it, `mount` is empty for a single mount, and `1`, `2`, … (oldest first) for several. `pool`
is the OST pool, empty for targets in no pool.

Units are bytes and seconds. Counters end in `_total`. Lustre's request tables become histograms, without a sum unless
Lustre shows it. All series of a histogram share the usual buckets, so that sums by `le` over targets and clients are
correct, except for jobs (see Jobs). Numbers of concurrent requests have buckets up to 30, as in the kernel; larger
numbers count as `+Inf`. A label value that is missing in the kernel's file has no series: Lustre shows a counter only
after its first use.

## Sums over targets

`lustre_osc_…` are sums over the object targets of a mount, by pool. A target in several pools belongs to the group
`a,b`; in `lustre_pool_…` it counts in each of its pools. A sum starts with the values in the kernel's files and only
grows, even when a target is cleared, remounted, failed over or gone. After a restart of the exporter, and in each run
of `--once` or `--output`, it is again what the files show; Prometheus treats that as a counter reset. With
`--collector.osc.per-target` the families have one series per target, with the label `target`.

`lustre_osp_…`, the metadata targets' connections to other targets, are summed likewise by metadata target and pool.
Only targets that are unused, or on which objects could not be precreated, have their own series; with
`--collector.osp.per-target` all have. `lustre_lwp_…`, the requests of this node's targets to metadata targets (mostly
for quotas), are sums over this node's targets.

Number of series to expect:

| node | series |
|---|---|
| client, 400 OSTs in 4 pools, 8 MDTs | about 2,700: 200 per metadata target, 190 per pool, 40 per pool for space |
| this client with `--collector.osc.per-target` | 140 to 190 per target, more with latencies (2.17): 56,000 to 76,000 |
| object server, 16 OSTs, 1,000 jobs each | about 184,000 |
| this server with `--jobs.limit=50` | about 16,500, of which 5,900 are about disks |
| this server with `--collector.exports`, 64 clients | 12,300 more |
| `scrub` and `lfsck`, per object target and per metadata target | 15 and 24; up to 30 and 60 after errors |
| `quota_slave`, per object target and per metadata target | 7 and 14 |
| metadata target (`osp`), per pool | about 27, for any number of object targets |
| `osp` with `--collector.osp.per-target` | about 29 per target: 58,000 per metadata target with 2,000 object targets |
| server (`lwp`), per connected metadata target | about 25 |
| LNet (`lnet`, `lnet_routing`) | 10, 4 per interface, 1 per route, 6 more on routers |
| `--collector.osd_latency`, per target | 100 to 800 |
| `--collector.osc_latency`, per pool | 100 to 800 |
| `--collector.lnet_peers`, per peer | 4, or 5 for routers |
| `--collector.quota`, per user, group or project | up to 3 per pool, 2 per target |

## What is not read

A recorded node of Lustre 2.17 has these further parameters. node_exporter shows counters of ZFS itself. Quotas, clients
(`exports`), peers and latencies by size are read only if enabled. Values that wrapped, reached the limit of the
kernel's numbers, or are negative where they cannot be, are skipped and counted in
`lustre_exporter_skipped_lines_total`.

UNREAD

## Recovery

`lustre_ost_recovering` and `lustre_mdt_recovering` are 0 only if the target reports that recovery is complete, or that
no client was connected before the restart. Unknown text counts as recovery; an unreadable parameter has no series.

## Jobs

Jobs named `lustre-exporter` or `lustre-exporter.UID` with no operation but `statfs` have no series and count in
`lustre_jobs`. They are exporters on clients, whose reads of free space (`llite.*.kbytesfree`) reach the servers.

Counters at zero are omitted: of the 30 and more series possible per job and target, 10 to 20 remain.

A job that has been idle on a target for `--jobs.idle-seconds` (default 3600; 0 disables this) has no series there until
it is active again, and counts in `lustre_jobs_idle`. Idle time is measured from the most recent activity of any job, so
a target that nobody uses keeps its series. Lustre itself drops a job that is idle for `job_cleanup_interval` (default
ten minutes).

With `--jobs.limit=N` only the N busiest jobs of each target have their own series: at most about 20 × (N + 1) series
per target. All others, including idle ones and a job named `other`, are summed under `jobid="other"`. This sum only
grows, even when a job ends, expires, or temporarily gets its own series. `lustre_jobs_beyond_limit` counts the jobs in
the sum that are not idle. Job ids that are not UTF-8 show U+FFFD, or hexadecimal bytes if two ids would look alike.

`lustre_job_io_size_bytes` shows only non-empty buckets: 2 to 6 series per direction of a job instead of 21. So
`sum by (le)` over jobs, and a quantile of that sum, are wrong. Correct over any jobs are the mean (`_sum` divided by
`_count`), and the number of reads and writes up to a size, by the largest bucket of each job up to it. For 64 KiB:

    sum by (fs, target) (max by (fs, target, jobid, direction)
      (rate(lustre_job_io_size_bytes_bucket{le=~"(4096|8192|16384|32768|65536)[.]0"}[5m])))

A quantile of one job lies between half the bound of its bucket and the bound; `histogram_quantile` may interpolate to a
lower value. For all jobs together use `lustre_osd_io_size_bytes`, which the disks count and which can be summed.
"""
"""`UNREAD` stands for the table of :mod:`scripts.unread_parameters`."""
MULTIPLIERS = {
    "mount": "mounts",
    "target": "targets",
    "pool": "pools",
    "operation": "operations seen",
    "event": "events seen",
    "direction": "2 directions",
    "pattern": "2 patterns",
    "jobid": "jobs",
    "state": "states",
    "version": "releases",
    "nid": "network addresses",
    "service": "services",
    "priority": "2 priorities",
    "namespace": "kinds of lock namespaces",
    "nodemap": "nodemaps",
    "mdt": "metadata targets",
    "user": "changelog users",
    "mask": "1",
    "id": "users, groups or projects (`--quota.limit`)",
    "type": "3 types",
    "size": "sizes seen",
    "directory": "3 kinds",
    "result": "2 results",
    "resource": "2 resources",
    "kind": "2 kinds",
    "net": "networks",
    "pages": "3 sizes",
    "parameter": "parameters that reach the limit",
    "flag": "flags set",
    "setting": "5 settings of the driver",
    "phase": "2 phases",
    "problem": "problems found",
    "policy": "running policies but fifo",
    "by": "1",
    "rule": "rules",
    "condition": "1",
    "path": "backends",
    "rwid": "1",
    "roid": "1",
    "lqa": "logical quota aggregations",
}
"""What each label multiplies the series of a family by."""


def reference() -> str:
    head = HEAD.replace("UNREAD", unread_parameters.table())
    return "\n".join(
        [head, *(section for collector in (*COLLECTORS, ONLY_SLIM) for section in _collector(collector)),
         *_self_metrics(), *_metrics_of_tierd(), ""]
    )


def _collector(collector: Collector) -> Iterator[str]:
    yield f"## {collector.name}\n"
    switch = "Off by default; enable with `--collector." if not collector.default else "Disable with `--no-collector."
    yield f"{collector.help[0].upper()}{collector.help[1:]}. {switch}{collector.name}`.\n"
    yield "| name | type | labels | unit | parameter | Lustre | series |\n|---|---|---|---|---|---|---|"
    yield from (_row(family) for family in collector.families)
    yield ""
    yield from (f"- `{family.name}`: {family.help}" for family in collector.families)
    yield ""


def _row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels)
    where = f"`{family.source}`", family.versions, _series(family)
    return "| " + " | ".join((f"`{family.name}`", family.kind, labels, family.unit, *where)) + " |"


def _series(family: Family) -> str:
    if not family.labels:
        return "1"
    factors = [MULTIPLIERS[label] for label in family.labels if label != "fs"] or ["file systems"]
    if family.kind == "histogram":
        factors.append("buckets seen")
    return " × ".join(factors)


ONLY_SLIM = replace(
    slim.COLLECTOR, help="shown by `--profile=slim`, with some of the families above", families=(slim.IN_FLIGHT,)
)


def _self_metrics() -> Iterator[str]:
    yield "## The exporter itself\n"
    yield "| name | type | labels |\n|---|---|---|"
    with tempfile.TemporaryDirectory() as empty:
        names = frozenset(collector.name for collector in COLLECTORS)
        scraper = Scraper(Tree(Roots.of(empty, empty)), COLLECTORS, Settings(names), clock.monotonic)
        web = Path(empty, "web.yml")
        web.touch()
        metrics = [
            *ExporterMetrics(scraper).collect(),
            *WebConfigMetrics(WebConfigFile(web), PREFIX).collect(),
            *ConnectionMetrics(Connections(), HeldBodies(), PREFIX).collect(),
        ]
    helps = []
    for metric in metrics:
        name = metric.name + ("_total" if metric.type == "counter" else "")
        labels = ", ".join(f"`{label}`" for label in getattr(metric, "_labelnames", ()))
        yield f"| `{name}` | {metric.type} | {labels} |"
        helps.append(f"- `{name}`: {metric.documentation}")
    yield ""
    yield from helps
    yield "\nThe exporter also shows `process_…` and `python_gc_…` of its own process, but not with `--output`."


KINDS = {"gauge": "gauge", "gauges": "gauge", "GaugeMetricFamily": "gauge", "counters": "counter",
         "CounterMetricFamily": "counter", "InfoMetricFamily": "gauge"}
"""The kind of the families that a call of these functions and classes makes."""
SUFFIXES = {"counters": "_total", "CounterMetricFamily": "_total", "InfoMetricFamily": "_info"}


def _metrics_of_tierd() -> Iterator[str]:
    yield "\n## tierd\n"
    yield ("On the port of tierd, all with the label `fs`. Families of a part that is off (`[cluster]`, `[reader]`, "
           "`[sense.slurm]`) are not there. [PowerFlex](powerflex.md#metrics) has its own table.\n")
    yield "| name | type | labels |\n|---|---|---|"
    found: dict[str, tuple[str, str, str]] = {}
    for path in sorted((Path(__file__).parent.parent / "tierd").rglob("*.py")):
        for name, *rest in _families_in(ast.parse(path.read_text(encoding="utf-8"))):
            if name not in found or not found[name][2]:  # the text may be a constant of another module
                found[name] = rest[0], rest[1], rest[2]
    with tempfile.NamedTemporaryFile() as web:
        for metric in WebConfigMetrics(WebConfigFile(Path(web.name)), "tierd_").collect():
            suffix = "_total" if metric.type == "counter" else ""
            found[metric.name + suffix] = metric.type, "", metric.documentation
    yield from (f"| `{name}` | {kind} | {labels} |" for name, (kind, labels, _) in sorted(found.items()))
    yield ""
    yield from (f"- `{name}`: {about}" for name, (_, _, about) in sorted(found.items()))


def _families_in(tree: ast.Module) -> Iterator[tuple[str, str, str, str]]:
    """Name, kind, labels and help of the families that a module makes."""
    texts = {target.id: node.value.value for node in tree.body if isinstance(node, ast.Assign)
             for target in node.targets if isinstance(target, ast.Name) and isinstance(node.value, ast.Constant)}
    for call in ast.walk(tree):
        called = getattr(call.func, "id", "") if isinstance(call, ast.Call) else ""
        if called not in KINDS or not isinstance(call, ast.Call) or len(call.args) < 2:
            continue
        name, about, *more = (_written(each, texts) for each in call.args)
        if name.startswith(("tierd_", "lustre_")) and "powerflex" not in name:
            given = {keyword.arg: keyword.value for keyword in call.keywords}.get("labels")
            labels = more[0].split() if called in {"gauges", "counters"} else (
                ast.literal_eval(given) if isinstance(given, ast.List | ast.Tuple) else [])
            yield f"{name}{SUFFIXES.get(called, '')}", KINDS[called], ", ".join(f"`{each}`" for each in labels), about


def _written(node: ast.expr, texts: Mapping[str, object]) -> str:
    """A literal text, or that of a constant of the module; "" for a value that only a run has."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_written(each, texts) for each in node.values)
    if isinstance(node, ast.FormattedValue):
        return _written(node.value, texts)
    return str(node.value if isinstance(node, ast.Constant) else texts.get(getattr(node, "id", ""), ""))


if __name__ == "__main__":
    sys.stdout.write(reference())
