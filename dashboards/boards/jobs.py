"""Jobs: throughput, operations, I/O sizes, targets, and slowdown."""

from __future__ import annotations

from dashboards.dashboard import (
    FS,
    JOB,
    NO_SERVERS,
    POOL,
    RATE,
    TARGET,
    Dashboard,
    Row,
    job_link,
    link_from_value,
    tierd_events,
    usual_throughput,
)
from dashboards.panels import GREEN, ORANGE, YELLOW, Query, dashed, largest, mirrored, table, timeseries, total

BY_POOL = 'fs=~"$fs", pool=~"$pool", jobid=~"$jobid"'
BY_FS = 'fs=~"$fs", jobid=~"$jobid"'
RAW = 'fs=~"$fs", target=~"$target", jobid=~"$jobid"'
THIS = link_from_value("jobs", "This job", jobid="jobid")

BULK = f"sum by (fs, jobid) (fs_pool_job:lustre_job_bulk_operations:rate2m{{{BY_POOL}}})"
BYTES = f'sum by (fs, jobid) ({{__name__=~"fs_pool_job:lustre_job_(read|write)_bytes:rate2m", {BY_POOL}}})'

NO_JOBS = "no job statistics: " + NO_SERVERS

ALL = Row("All jobs", (
    total("Read", "Bytes per second that the selected jobs read.",
          f"fs_pool_job:lustre_job_read_bytes:rate2m{{{BY_POOL}}}", "Bps"),
    total("Written", "Bytes per second that the selected jobs write.",
          f"fs_pool_job:lustre_job_write_bytes:rate2m{{{BY_POOL}}}", "Bps"),
    total("Metadata operations", "Metadata operations per second of the selected jobs.",
          f"fs_job:lustre_job_metadata_operations:rate2m{{{BY_FS}}}", "ops"),
    total("Active jobs", "Selected jobs with read or write traffic in the last minutes.",
          f"fs_job:lustre_job_bytes:rate2m{{{BY_FS}}} > bool 0", "short"),
    table("Jobs", "The top fifty jobs of each column. Many operations with few bytes are small I/O. Many "
          "metadata operations per MB mean small files.",
          Query(f"topk(50, fs_job:lustre_job_bytes:rate2m{{{BY_FS}}})"),
          Query(f"topk(50, {BULK})"),
          Query(f"topk(50, {BYTES} / ({BULK} > 0))"),
          Query(f"topk(50, fs_job:lustre_job_metadata_operations:rate2m{{{BY_FS}}})"),
          Query(f"topk(50, fs_job:lustre_job_metadata_operations:rate2m{{{BY_FS}}} / "
                f"(fs_job:lustre_job_bytes:rate2m{{{BY_FS}}} / 1e6 > 0))"),
          unit="short", width=24, height=10, sort="Bytes/s", empty=NO_JOBS,
          columns={"fs": ("File system", ""), "jobid": ("Job", ""), "Value #A": ("Bytes/s", "Bps"),
                   "Value #B": ("Reads and writes/s", "ops"), "Value #C": ("Average I/O size", "bytes"),
                   "Value #D": ("Metadata/s", "ops"), "Value #E": ("Metadata per MB", "short")},
          overrides=(job_link("Job"),)),
), empty=NO_SERVERS)

TRAFFIC = Row("Throughput", (
    timeseries("Throughput", "Bytes per second read and written, of the ten jobs with the highest throughput. A dashed "
               "line is a slowed stream's throughput before its neighbour started. Marks show what tierd did.",
               Query(f"topk(10, sum by (jobid) (fs_job:lustre_job_bytes:rate2m{{{BY_FS}}}))", "{{jobid}}"),
               usual_throughput('{fs=~"$fs", victim=~"$jobid"}'),
               unit="Bps", by_name="jobid", overrides=(dashed("usual"),), links=(THIS,)),
    mirrored("Read and write throughput", "Bytes per second read (above zero) and written (below), of the ten jobs "
             "with the highest throughput.",
             Query(f"topk(10, sum by (jobid) (fs_pool_job:lustre_job_read_bytes:rate2m{{{BY_POOL}}}))", "{{jobid}}"),
             links=(THIS,)),
    timeseries("Throughput by job and pool", "Bytes per second by job and pool (top ten). tierd looks for "
               "small I/O in disk pools.",
               Query(f'topk(10, sum by (pool, jobid) ({{__name__=~"fs_pool_job:lustre_job_(read|write)_bytes'
                     f':rate2m", {BY_POOL}}}))', "{{jobid}} {{pool}}"), unit="Bps", links=(THIS,)),
    timeseries("Average I/O size", "Mean size of reads and writes by job. Below 1 MiB, disks seek more than they "
               "transfer. Below 64 KiB, they mostly seek.",
               Query(f"topk(10, sum by (jobid) ({BYTES}) / (sum by (jobid) ({BULK}) > 1))", "{{jobid}}"),
               unit="bytes", by_name="jobid", links=(THIS,)),
), empty=NO_JOBS)

FARING = Row("Slowdown", (
    timeseries("Slowdown compared with the best of the last hour", "2 means half the throughput of the job's best "
               "minutes. A job that needs less I/O also rises; look for several jobs that rise together. "
               "tierd's own moves are left out.",
               Query(f"topk(10, max by (jobid) (fs_job:lustre_job_bytes:slowdown1h{{{BY_FS}}} < 100) unless on (jobid) "
                     "tierd_own_job_info)", "{{jobid}}"),
               unit="none", by_name="jobid", links=(THIS,), steps=((None, GREEN), (1.5, YELLOW), (3, ORANGE))),
), empty=NO_JOBS)

METADATA = Row("Metadata", (
    timeseries("Metadata operations by job", "Metadata operations per second, of the ten busiest jobs.",
               Query(f"topk(10, sum by (jobid) (fs_job:lustre_job_metadata_operations:rate2m{{{BY_FS}}}))",
                     "{{jobid}}"), unit="ops", by_name="jobid", links=(THIS,), steps=((None, GREEN), (10_000, ORANGE))),
    timeseries("Metadata operations by type", "Metadata operations of the selected jobs and targets. Equal rates of "
               "mknod and unlink mean short-lived files. getattr alone means polling.",
               Query(f'topk(10, sum by (operation) (rate(lustre_job_operations_total{{{RAW}, '
                     f'operation!~"read|write"}}{RATE})))', "{{operation}}"), unit="ops"),
), empty=NO_JOBS)

PLACES = Row("Targets of the selected jobs", (
    mirrored("Throughput by target", "Bytes per second that the selected jobs read (above zero) and write (below), on "
             "the twenty busiest targets at the end of the time range. A single target means files with one stripe.",
             Query(largest(20, f"sum by (fs, target) (rate(lustre_job_read_bytes_total{{{RAW}}}{RATE}))"),
                   "{{fs}} {{target}}"), empty=NO_JOBS,
             links=(link_from_value("targets", "This target", fs="fs", target="target"),)),
    timeseries("I/O latency", "Mean time of a read or write on the servers, for the selected jobs and "
               "targets (Lustre 2.14).",
               Query(f'topk(10, sum by (jobid) (rate(lustre_job_operation_seconds_total{{{RAW}, '
                     f'operation=~"read|write"}}{RATE})) / (sum by (jobid) (rate(lustre_job_operations_total'
                     f'{{{RAW}, operation=~"read|write"}}{RATE})) > 0))', "{{jobid}}"), unit="s", by_name="jobid",
               empty="not reported by the servers"),
    timeseries("Read and write size", "Mean I/O size on the servers, for the selected jobs and targets (Lustre "
               "2.16). Jobs show only non-empty buckets, so their distributions cannot be summed.",
               Query(f"sum by (direction) (rate(lustre_job_io_size_bytes_sum{{{RAW}}}{RATE})) / "
                     f"(sum by (direction) (rate(lustre_job_io_size_bytes_count{{{RAW}}}{RATE})) > 0)",
                     "{{direction}}"), unit="bytes", empty="not reported by the servers"),
    timeseries("Jobs in job statistics", 'Jobs in the statistics of the targets, and jobs summed as "other" by '
               "--jobs.limit. For tens of thousands of jobs, lower job_cleanup_interval or use --jobs.limit.",
               Query('max by (fs) (lustre_jobs{fs=~"$fs", target=~"$target"})', "{{fs}} most on one target"),
               Query('sum by (fs) (lustre_jobs_beyond_limit{fs=~"$fs", target=~"$target"})', "{{fs}} beyond the limit"),
               unit="short", empty=NO_JOBS),
), closed=True)

BOARD = Dashboard("jobs", "Lustre: jobs", "Throughput, operations, targets and slowdown of jobs.",
                  (FS, POOL, TARGET, JOB), (ALL, TRAFFIC, FARING, METADATA, PLACES), tierd_events())
