"""Who does what, where, with how large requests, and how it fares."""

from __future__ import annotations

from dashboards.dashboard import Dashboard, Row
from dashboards.links import from_row, on, to
from dashboards.panels import GREEN, ORANGE, YELLOW, Query, table, timeseries
from dashboards.variables import FS, JOB, POOL, TARGET

BY_POOL = 'fs=~"$fs", pool=~"$pool", jobid=~"$job"'
BY_FS = 'fs=~"$fs", jobid=~"$job"'
RAW = 'fs=~"$fs", target=~"$target", jobid=~"$job"'
RATE = "[$__rate_interval]"
THIS = to("jobs", "This job", job="jobid")

BULK = f"sum by (fs, jobid) (fs_pool_job:lustre_job_bulk_operations:rate2m{{{BY_POOL}}})"
BYTES = f'sum by (fs, jobid) ({{__name__=~"fs_pool_job:lustre_job_(read|write)_bytes:rate2m", {BY_POOL}}})'

ALL = Row("All jobs", (
    table("Jobs", "What each moves and asks for. Few bytes in an operation, many operations: small I/O; many metadata "
          "operations for each MB: small files. The fifty with most bytes, and with most metadata.",
          Query(f"topk(50, fs_job:lustre_job_bytes:rate2m{{{BY_FS}}})"),
          Query(f"topk(50, {BULK})"),
          Query(f"topk(50, {BYTES} / ({BULK} > 0))"),
          Query(f"topk(50, fs_job:lustre_job_metadata_operations:rate2m{{{BY_FS}}})"),
          Query(f"topk(50, fs_job:lustre_job_metadata_operations:rate2m{{{BY_FS}}} / "
                f"(fs_job:lustre_job_bytes:rate2m{{{BY_FS}}} / 1e6 > 0))"),
          unit="short", width=24, height=10, sort="Bytes/s",
          columns={"fs": ("File system", ""), "jobid": ("Job", ""), "Value #A": ("Bytes/s", "Bps"),
                   "Value #B": ("Reads and writes/s", "ops"), "Value #C": ("Bytes in one", "bytes"),
                   "Value #D": ("Metadata/s", "ops"), "Value #E": ("Metadata per MB", "short")},
          overrides=(on("Job", from_row("jobs", "This job", fs="File system", job="Job")),)),
))

TRAFFIC = Row("Data", (
    timeseries("Read", "Bytes by job, the ten largest.",
               Query(f"topk(10, sum by (fs, jobid) (fs_pool_job:lustre_job_read_bytes:rate2m{{{BY_POOL}}}))",
                     "{{jobid}}"), unit="Bps", links=(THIS,), empty="nobody reads"),
    timeseries("Written", "Bytes by job, the ten largest.",
               Query(f"topk(10, sum by (fs, jobid) (fs_pool_job:lustre_job_write_bytes:rate2m{{{BY_POOL}}}))",
                     "{{jobid}}"), unit="Bps", links=(THIS,)),
    timeseries("By job and pool", "Where jobs work. Small I/O in a pool of disks is what tierd looks for.",
               Query(f'topk(10, sum by (fs, pool, jobid) ({{__name__=~"fs_pool_job:lustre_job_(read|write)_bytes'
                     f':rate2m", {BY_POOL}}}))', "{{jobid}} {{pool}}"), unit="Bps", links=(THIS,)),
    timeseries("Bytes in one operation", "Below 1 MiB, disks seek more than they transfer; below 64 KiB, hardly "
               "anything else.", Query(f"topk(10, {BYTES} / ({BULK} > 1))", "{{jobid}}"), unit="bytes",
               links=(THIS,)),
))

METADATA = Row("Metadata", (
    timeseries("Metadata operations", "By job, the ten busiest.",
               Query(f"topk(10, fs_job:lustre_job_metadata_operations:rate2m{{{BY_FS}}})", "{{jobid}}"),
               unit="ops", links=(THIS,), steps=((None, GREEN), (10_000, ORANGE))),
    timeseries("Metadata operations by kind", "Of the jobs and targets chosen. mknod and unlink alike: short-lived "
               "files; getattr alone: somebody looks all the time.",
               Query(f'topk(10, sum by (fs, operation) (rate(lustre_job_operations_total{{{RAW}, '
                     f'operation!~"read|write"}}{RATE})))', "{{operation}}"), unit="ops"),
))

FARING = Row("How jobs fare", (
    timeseries("Slowdown against the best of the last hour", "2: half as fast as in its best minutes. A job that wants "
               "less shows this too; look for several that rise together.",
               Query(f"topk(10, fs_job:lustre_job_bytes:slowdown1h{{{BY_FS}}} < 100)", "{{jobid}}"), unit="none",
               links=(THIS,), steps=((None, GREEN), (1.5, YELLOW), (3, ORANGE))),
    timeseries("Time of reads and writes", "Mean, in the server, of the jobs and targets chosen (Lustre 2.14).",
               Query(f'topk(10, sum by (fs, jobid) (rate(lustre_job_operation_seconds_total{{{RAW}, '
                     f'operation=~"read|write"}}{RATE})) / (sum by (fs, jobid) (rate(lustre_job_operations_total'
                     f'{{{RAW}, operation=~"read|write"}}{RATE})) > 0))', "{{jobid}}"), unit="s"),
))

PLACES = Row("Where: targets of the chosen jobs", (
    timeseries("By target", "Bytes of the jobs chosen, by target. On one only: the file has one stripe.",
               Query(f"topk(20, sum by (fs, target) (rate(lustre_job_read_bytes_total{{{RAW}}}{RATE})))",
                     "{{target}} read"),
               Query(f"topk(20, sum by (fs, target) (rate(lustre_job_write_bytes_total{{{RAW}}}{RATE})))",
                     "{{target}} written"), unit="Bps",
               links=(to("targets", "This target", fs="fs", target="target"),)),
    timeseries("Size of reads and writes", "Mean size of I/O at the servers, of the jobs and targets chosen (Lustre "
               "2.16). Jobs show only buckets that hold something: their distributions cannot be added up.",
               Query(f"sum by (direction) (rate(lustre_job_io_size_bytes_sum{{{RAW}}}{RATE})) / "
                     f"(sum by (direction) (rate(lustre_job_io_size_bytes_count{{{RAW}}}{RATE})) > 0)",
                     "{{direction}}"), unit="bytes"),
    timeseries("Jobs known", "Jobs the targets keep statistics of, and those summed as \"other\" by --jobs.limit. Tens "
               "of thousands: raise job_cleanup_interval's pace, or use --jobs.limit.",
               Query('max by (fs) (lustre_jobs{fs=~"$fs", target=~"$target"})', "{{fs}} most on one target"),
               Query('sum by (fs) (lustre_jobs_beyond_limit{fs=~"$fs", target=~"$target"})', "{{fs}} beyond the limit"),
               unit="short", width=24, height=6),
))

BOARD = Dashboard("jobs", "Lustre: jobs", "Who does what, where, and how it fares.", (FS, POOL, TARGET, JOB),
                  (ALL, TRAFFIC, METADATA, FARING, PLACES))
