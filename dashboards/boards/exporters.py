"""Exporters and tierd: availability, cost and errors."""

from __future__ import annotations

from dashboards.dashboard import ANY_IS_A_WARNING, ANY_IS_BAD, NO_TIERD, Dashboard, Row, choice, none_of, tierd_state
from dashboards.panels import GREEN, RED, YELLOW, Query, largest, stat, table, timeseries

RATE = "[$__rate_interval]"
JOB = choice("job", "Scrape job", "label_values(lustre_exporter_build_info, job)", all_value="lustre.*",
             text="Name of the scrape job in the Prometheus configuration. All: those whose names begin with lustre.")
INSTANCE = choice("instance", "Node", 'label_values(lustre_exporter_build_info{job=~"$job"}, instance)')
THESE = 'job=~"$job", instance=~"$instance"'
SLOW = ((None, GREEN), (5, YELLOW), (9, RED))

FOUND = f"up{{{THESE}}}"

STATE = Row("Exporters", (
    stat("Exporters down", "Exporters that Prometheus cannot scrape.",
         Query(none_of(f"count(up{{{THESE}}} == 0)", FOUND)), unit="short", steps=ANY_IS_BAD),
    stat("Exporters up", "Exporters that Prometheus scrapes.",
         Query(f"sum(max by (instance) ({FOUND}))"), unit="short", steps=((None, RED), (1, GREEN))),
    stat("Failing collectors", "Collectors whose last pass failed. Their metrics are missing. The exporter's page "
         "shows the reason.",
         Query(none_of(f"count(lustre_exporter_collector_success{{{THESE}}} == 0)", FOUND)), unit="short",
         steps=ANY_IS_BAD),
    stat("Unreadable directories", "Directories of Lustre parameters that exist but are closed to the exporter, which "
         "lacks a capability.",
         Query(none_of(f"count(lustre_exporter_path_readable{{{THESE}}} == 0)", FOUND)), unit="short",
         steps=ANY_IS_A_WARNING),
    stat("Slowest scrape", "Longest scrape of all nodes. Near the scrape timeout (10 s), disable collectors or limit "
         "jobs.", Query(f"max(scrape_duration_seconds{{{THESE}}})"), unit="s", steps=SLOW),
    stat("Samples", "Samples of all nodes in one scrape interval.",
         Query(f"sum(scrape_samples_scraped{{{THESE}}})"), unit="short", steps=((None, "text"),)),
), empty="no exporter")

COST = Row("Cost (nodes: the ten largest at the end of the time range)", (
    timeseries("Scrape duration", "Scrape duration of the ten slowest nodes.",
               Query(largest(10, f"scrape_duration_seconds{{{THESE}}}"), "{{instance}} {{job}}"), unit="s", steps=SLOW),
    timeseries("Collector duration", "Duration of each collector on its slowest node, the ten longest.",
               Query(f"topk(10, max by (collector) (lustre_exporter_collector_duration_seconds{{{THESE}}}))",
                     "{{collector}}"), unit="s"),
    timeseries("Samples by node", "The ten nodes with the most samples. Jobs or quotas cause jumps: see --jobs.limit "
               "and --quota.limit.",
               Query(largest(10, f"scrape_samples_scraped{{{THESE}}}"), "{{instance}} {{job}}"), unit="short"),
    timeseries("CPU cores", "CPU cores used by exporters (top ten).",
               Query(largest(10, f"max by (instance) (rate(process_cpu_seconds_total{{{THESE}}}{RATE}))"),
                     "{{instance}}"), unit="none"),
    timeseries("Memory", "Resident memory of exporters (top ten). The limit in the systemd unit is 1 GiB.",
               Query(largest(10, f"max by (instance) (process_resident_memory_bytes{{{THESE}}})"),
                     "{{instance}}"), unit="bytes"),
    timeseries("Parameter bytes read", "Bytes per second that the kernel prints for each collector.",
               Query(f"topk(10, sum by (collector) (max by (instance, collector) (rate(lustre_exporter_read_bytes_total"
                     f"{{{THESE}}}{RATE}))))", "{{collector}}"), unit="Bps"),
), closed=True)

TROUBLE = Row("Errors and releases", (
    table("Failing collectors by node", "Collectors whose last pass failed, by node. The exporter's page on the node "
          "shows the reason.",
          Query(f"lustre_exporter_collector_success{{{THESE}}} == 0"), unit="short",
          columns={"instance": ("Node", ""), "collector": ("Collector", "")}),
    timeseries("Skipped lines", "Lines of Lustre parameters that the exporter did not understand. If they grow, this "
               "release has a new format: please report it.",
               Query(f"topk(10, sum by (parameter) (increase(lustre_exporter_skipped_lines_total{{{THESE}}}{RATE})))",
                     "{{parameter}}"), unit="short"),
    timeseries("Failed parameter reads", "Lustre parameters that could not be read, by parameter and error.",
               Query(f"topk(10, sum by (parameter, error) (increase(lustre_exporter_read_errors_total{{{THESE}}}"
                     f"{RATE})))", "{{parameter}} {{error}}"), unit="short", width=24, height=6),
    table("Releases", "Releases of the exporter and of Lustre on each node. Differences after an upgrade show "
          "forgotten nodes.",
          Query(f"max by (instance, version) (lustre_exporter_build_info{{{THESE}}})"),
          Query(f'max by (instance, lustre) (label_replace(lustre_version_info{{{THESE}}}, "lustre", "$1", "version", '
                '"(.*)"))'),
          unit="short", width=24, height=7,
          columns={"instance": ("Node", ""), "version": ("Exporter", ""), "lustre": ("Lustre", "")},
          empty="no exporter"),
), empty="none")

TIERD = Row("tierd", (
    tierd_state(width=6, matchers=""),
    stat("Time since last cycle", "Time since tierd completed a cycle, or started. After more than a few cycles tierd "
         "hangs, and the watchdog should have restarted it.",
         Query("max by (fs) (time() - (tierd_last_cycle_timestamp_seconds > 0 or tierd_last_cycle_timestamp_seconds"
               " + on (instance, job) group_left () process_start_time_seconds))", "{{fs}}"), unit="s",
         steps=((None, GREEN), (60, YELLOW), (300, RED)), width=6),
    stat("Unreadable sources", "Sources that tierd cannot read.",
         Query("sum by (fs) (tierd_source_blind)", "{{fs}}"), unit="short", steps=ANY_IS_BAD, width=6),
    stat("Journal", "Size of tierd's journal. [journal] keep_days limits it.",
         Query("sum by (fs) (tierd_journal_bytes)", "{{fs}}"), unit="bytes", steps=((None, "text"),), width=6),
    timeseries("Cycle duration", "Duration of tierd's cycles. Above [sense] cycle_seconds (5 s), tierd falls behind.",
               Query("tierd_cycle_duration_seconds", "{{instance}} {{fs}}"), unit="s",
               steps=((None, GREEN), (5, YELLOW))),
    timeseries("Changelog records", "Changelog records read by tierd, and written by the MDTs.",
               Query(f"sum(rate(tierd_changelog_records_total{RATE}))", "read by tierd"),
               Query(f"sum(rate(lustre_changelog_records_total{RATE}))", "written by MDTs"), unit="ops"),
), empty=NO_TIERD)

BOARD = Dashboard("exporters", "Lustre: exporters and tierd", "Availability, cost and errors of exporters and tierd.",
                  (JOB, INSTANCE), (STATE, TIERD, COST, TROUBLE))
