"""The watchers watched: exporters and tierd themselves."""

from __future__ import annotations

from dashboards.boards.shared import ANY_IS_BAD, ANY_IS_NOTED
from dashboards.dashboard import Dashboard, Row
from dashboards.panels import GREEN, RED, YELLOW, Query, stat, table, timeseries
from dashboards.variables import choice

RATE = "[$__rate_interval]"
JOB = choice("job", "Scrape job", "label_values(lustre_exporter_build_info, job)", text="As in Prometheus' settings.")
INSTANCE = choice("instance", "Node", 'label_values(lustre_exporter_build_info{job=~"$job"}, instance)')
THESE = 'job=~"$job", instance=~"$instance"'
SLOW = ((None, GREEN), (5, YELLOW), (9, RED))

STATE = Row("Exporters", (
    stat("Down", "Exporters Prometheus cannot scrape.", Query(f"count(up{{{THESE}}} == 0) or vector(0)"), unit="short",
         steps=ANY_IS_BAD),
    stat("Up", "Exporters scraped.", Query(f"count(up{{{THESE}}} == 1) or vector(0)"), unit="short",
         steps=((None, RED), (1, GREEN))),
    stat("Collectors failing", "Collectors whose last pass failed; their metrics are missing. The exporter's page says "
         "why.", Query(f"count(lustre_exporter_collector_success{{{THESE}}} == 0) or vector(0)"), unit="short",
         steps=ANY_IS_BAD),
    stat("Cannot read", "Places of Lustre's parameters that are there and closed: the exporter lacks a capability.",
         Query(f"count(lustre_exporter_path_readable{{{THESE}}} == 0) or vector(0)"), unit="short", steps=ANY_IS_NOTED),
    stat("Slowest scrape", "Of all nodes. Near the scrape timeout (10 s): switch collectors off or limit jobs.",
         Query(f"max(scrape_duration_seconds{{{THESE}}})"), unit="s", steps=SLOW),
    stat("Series", "Samples in one round of scrapes.", Query(f"sum(scrape_samples_scraped{{{THESE}}})"), unit="short",
         steps=((None, GREEN),)),
))

COST = Row("What they cost", (
    timeseries("Time of a scrape", "The ten slowest nodes.",
               Query(f"topk(10, scrape_duration_seconds{{{THESE}}})", "{{instance}}"), unit="s", steps=SLOW),
    timeseries("Time of collectors", "The slowest node of each collector, the ten slowest.",
               Query(f"topk(10, max by (collector) (lustre_exporter_collector_duration_seconds{{{THESE}}}))",
                     "{{collector}}"), unit="s"),
    timeseries("Series by node", "The ten nodes with most. Jumps: jobs, or quota; --jobs.limit, --quota.limit.",
               Query(f"topk(10, scrape_samples_scraped{{{THESE}}})", "{{instance}}"), unit="short"),
    timeseries("CPU", "Cores used, the ten highest.",
               Query(f'topk(10, rate(process_cpu_seconds_total{{{THESE}}}{RATE}))', "{{instance}}"), unit="short"),
    timeseries("Memory", "The ten highest. The unit's limit is 1 GiB.",
               Query(f"topk(10, process_resident_memory_bytes{{{THESE}}})", "{{instance}}"), unit="bytes"),
    timeseries("Bytes of parameters read", "By collector: what the kernel had to print.",
               Query(f"topk(10, sum by (collector) (rate(lustre_exporter_read_bytes_total{{{THESE}}}{RATE})))",
                     "{{collector}}"), unit="Bps"),
))

TROUBLE = Row("What they could not do", (
    table("Which collectors", "Where, and which. curl the node's page for the reason.",
          Query(f"lustre_exporter_collector_success{{{THESE}}} == 0"), unit="short", width=8,
          columns={"instance": ("Node", ""), "collector": ("Collector", "")}, empty="none"),
    timeseries("Lines not understood", "By parameter. Growing: this release prints something new; tell us.",
               Query(f"topk(10, sum by (parameter) (increase(lustre_exporter_skipped_lines_total{{{THESE}}}{RATE})))",
                     "{{parameter}}"), unit="short", width=8, empty="none"),
    timeseries("Parameters not read", "By parameter and error.",
               Query(f"topk(10, sum by (parameter, error) (increase(lustre_exporter_read_errors_total{{{THESE}}}"
                     f"{RATE})))", "{{parameter}} {{error}}"), unit="short", width=8, empty="none"),
    table("Releases", "Exporters and Lustre on each node. Unlike ones after an upgrade: somebody was forgotten.",
          Query(f"max by (instance, version) (lustre_exporter_build_info{{{THESE}}})"),
          Query(f'max by (instance, lustre) (label_replace(lustre_version_info{{{THESE}}}, "lustre", "$1", "version", '
                '"(.*)"))'),
          unit="short", width=24, height=7,
          columns={"instance": ("Node", ""), "version": ("Exporter", ""), "lustre": ("Lustre", "")}),
))

TIERD = Row("tierd", (
    stat("Since the last cycle", "Seconds since tierd last looked. More than a few cycles: it hangs; the watchdog "
         "should have restarted it.", Query("max(time() - tierd_last_cycle_timestamp_seconds)"), unit="s",
         steps=((None, GREEN), (60, YELLOW), (300, RED)), empty="no tierd"),
    stat("Blind", "Sources tierd cannot see.", Query("sum(tierd_source_blind)"), unit="short", steps=ANY_IS_BAD,
         empty="no tierd"),
    timeseries("Time of a cycle", "Against [sense] cycle_seconds (5 s): above it, tierd falls behind.",
               Query("tierd_cycle_duration_seconds", "{{instance}}"), unit="s", width=8,
               steps=((None, GREEN), (5, YELLOW))),
    timeseries("Changelog records", "Taken in by tierd, and made by the MDTs.",
               Query(f"sum(rate(tierd_changelog_records_total{RATE}))", "taken in"),
               Query(f"sum(rate(lustre_changelog_records_total{RATE}))", "made"), unit="ops", width=8),
))

BOARD = Dashboard("exporters", "Lustre: exporters and tierd", "The watchers watched.", (JOB, INSTANCE),
                  (STATE, COST, TROUBLE, TIERD))
