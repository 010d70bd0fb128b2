"""What ``docs/metrics.md`` says before its tables: names, sums over targets, what is not read, recovery, jobs."""

from __future__ import annotations

HEAD = """\
# Metrics

Made from the collectors by `python -m exporter.docs > docs/metrics.md`; a test compares.

`fs` is the file system's name, `target` is `OST0003` or `MDT0000`. `mount` is the mount point on this node,
never the hexadecimal instance that Lustre puts into device names, which is new at each mount. Where
`/proc/mounts` does not tell, it is empty for a single mount, and `1`, `2`, … from the oldest for several.
`pool` is the OST pool; it is empty for targets in no pool.

Units are base units: bytes and seconds. Counters end in `_total` and only grow. Lustre's tables of requests
come as histograms; they have buckets only, except where Lustre also tells the sum. Every series of a histogram has
the buckets that are usual, so that sums by `le` over targets and clients are right; those of jobs show only
buckets that hold something (see there). Numbers of requests at once go up to 30; what is more counts as `+Inf`, as
in the kernel. A label's value that is not in the kernel's file has no series: Lustre prints a counter from its first
use on.

## Sums over targets

`lustre_osc_…` are sums over the object targets of a mount, by pool (a target in several pools belongs to the
group `a,b`; in `lustre_pool_…` it counts in each). A sum begins as the sum of what the files say and only
grows: a target that is cleared, remounted or failed over counts from zero again without the sum going back,
one that vanishes keeps its part. That memory is the process's own: after a restart, and in every run of
`--once` or `--output`, a sum is again what the files say, which Prometheus takes for a reset if it is less.
With `--collector.osc.per-target` the same families show each target as it is, with the label `target`.

`lustre_osp_…`, what metadata targets see of others, are summed likewise by metadata target and pool; only targets in
trouble are named: those not in use, and those on which no objects could be made ahead. With
`--collector.osp.per-target` each target is shown. `lustre_lwp_…`, what this node's targets ask metadata targets (quotas
most of all), are sums over this node's targets.

What to expect:

| node | series |
|---|---|
| client, 400 OSTs in 4 pools, 8 MDTs | about 2,700: 200 a metadata target, 190 a pool and 40 more for its room |
| the same with `--collector.osc.per-target` | 140 to 190 a target, the more with latencies (2.17): 56,000 to 76,000 |
| object server, 16 OSTs, 1,000 jobs each | about 184,000 |
| the same with `--jobs.limit=50` | about 16,500, of them 5,900 of disks |
| the same with `--collector.exports`, 64 clients | 12,300 more |
| `scrub`, `lfsck`, each object target, each metadata target | 15 and 24; up to 30 and 60 once something was wrong |
| `quota_slave`, each object target, each metadata target | 7 and 14 |
| metadata target (`osp`), each pool | about 27, whatever the number of object targets |
| the same with `--collector.osp.per-target` | about 29 for each target: 58,000 for each metadata target of 2,000 |
| a server (`lwp`), each metadata target asked | about 25 |
| LNet (`lnet`, `lnet_routing`) | 10, 4 an interface, 1 a route, routers 6 more |
| `--collector.osd_latency`, each target | 100 to 800 |
| `--collector.osc_latency`, each pool | 100 to 800 |
| `--collector.lnet_peers`, each peer | 4, routers 5 |
| `--collector.quota`, each user, group or project | up to 3 a pool, 2 a target |

## What is not read

Of what a recorded node of Lustre 2.17 shows, this is left. What ZFS itself counts (its cache, its pools) is not
Lustre's; node_exporter shows it. Quotas, clients (`exports`), peers and latencies by size are read when asked for.
Whatever wrapped, ran into the end of the kernel's numbers or cannot be below zero and is, is left out and counted.

UNREAD

## Recovery

`lustre_ost_recovering` and `lustre_mdt_recovering` are 0 only when the target says that it is done (or that
nobody was connected before the restart). Text that is not understood counts as recovery. A target whose
parameter is missing or unreadable has no such series.

## Jobs

Jobs named `lustre-exporter` or `lustre-exporter.UID` that have asked for nothing but `statfs` have no series: they
are exporters on clients, whose readings of free room (`llite.*.kbytesfree`) ask the servers. `lustre_jobs` counts
them.

Counters at zero are left out: of the 30 and more series a job could have on a target, 10 to 20 remain.

A job that has done nothing on a target for `--jobs.idle-seconds` (3600 unless told otherwise; 0 is never) has no
series of that target and is counted in `lustre_jobs_idle`. It has them again, as Lustre counted on, when it does
something there. The time is taken from the job active last, so that a target nobody uses shows its jobs as they
are. Lustre itself forgets a job that is idle for `job_cleanup_interval`, ten minutes by default.

With `--jobs.limit=N` the N busiest jobs of each target have series of their own: no more than about 20 × (N + 1)
for each target. The others, idle ones too, are summed under `jobid="other"`, a sum that only grows, whoever of them
ends, expires, or is shown by itself for a while; those of them that are not idle are counted in
`lustre_jobs_beyond_limit`. A job of that very name is part of the sum. Job ids that are not UTF-8 show U+FFFD, or
their bytes in hexadecimal where two would look alike.

Of `lustre_job_io_size_bytes` only buckets that hold something are shown: 2 to 6 series for each direction of a job
where all would be 21. Between jobs they differ, so `sum by (le)` over jobs, and a quantile of that, would be wrong.
Right over any jobs are the mean (`_sum` by `_count`), and how many reads and writes were no larger than some size: of
each job the largest bucket up to there counts, for 64 KiB

    sum by (fs, target) (max by (fs, target, jobid, direction)
      (rate(lustre_job_io_size_bytes_bucket{le=~"(4096|8192|16384|32768|65536)[.]0"}[5m])))

A quantile of one job lies between half the bound of its bucket and the bound; `histogram_quantile` may draw it below
that. Sizes of all jobs together, as disks saw them, are in `lustre_osd_io_size_bytes`, which adds up.
"""
"""`UNREAD` stands for the table of :mod:`exporter.unread`."""
