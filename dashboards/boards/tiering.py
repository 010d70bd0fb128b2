"""Noisy neighbours: who hurts whom on which target, what tierd did about it, and whether it helped."""

from __future__ import annotations

from dashboards.boards.shared import ANY_IS_BAD, ANY_IS_NOTED, FULL, events
from dashboards.dashboard import Dashboard, Row
from dashboards.links import from_row, on, to
from dashboards.panels import BLUE, GREEN, ORANGE, RED, YELLOW, Query, bars, stat, table, timeseries
from dashboards.variables import FS, JOB, POOL, TARGET

RATE = "[$__rate_interval]"
PAIR = "max by (victim, aggressor)"
ON = 'fs=~"$fs", target=~"$target", jobid=~"$job"'

NOW = Row("Now", (
    stat("Findings", "Streams that suffer from a neighbour now.",
         Query('sum(tierd_active_findings{kind=~"noisy-neighbour|shared-bandwidth"}) or vector(0)'),
         unit="short", steps=ANY_IS_NOTED),
    stat("Dry run", "1: tierd looks and plans, and changes nothing.", Query("max(tierd_dry_run)"), unit="short",
         steps=((None, GREEN), (1, BLUE)), empty="no tierd"),
    stat("Circuit breaker", "1: too many moves failed, or a file is in doubt. Nothing is moved until somebody looks: "
         "tierctl history, then tierctl resume.", Query("max(tierd_breaker_open)"), unit="short", steps=ANY_IS_BAD,
         empty="no tierd"),
    stat("Sources not seen", "1 or more: tierd does not see counters or changelogs, so it does nothing new.",
         Query("sum(tierd_source_blind)"), unit="short", steps=ANY_IS_BAD, empty="no tierd"),
    stat("Waiting moves", "Files in the queue; limits in [limits] say how fast it empties.",
         Query("sum(tierd_waiting_moves)"), unit="short", steps=((None, GREEN), (10_000, YELLOW)), empty="no tierd"),
    stat("Won back", "Part of its loss the victim of the last judged act won back. Below 20 %, tierd undoes the act.",
         Query("min(tierd_won_back_ratio)"), unit="percentunit", steps=((None, RED), (0.2, YELLOW), (0.8, GREEN)),
         empty="nothing judged yet", minimum=None),
))

INTERFERENCE = Row("Who hurts whom", (
    table("Interference by target", "Slowdown of each victim on each target, with its aggressor.",
          Query("max by (target, victim, aggressor) (tierd_interference_slowdown)"), unit="none", width=12,
          height=8, sort="Times slower", empty="nobody is disturbed",
          columns={"target": ("Target", ""), "victim": ("Victim", ""), "aggressor": ("Aggressor", ""),
                   "Value": ("Times slower", "none")},
          overrides=(on("Target", from_row("targets", "This target", target="Target")),
                     on("Victim", from_row("jobs", "This job", job="Victim")),
                     on("Aggressor", from_row("jobs", "This job", job="Aggressor")))),
    timeseries("Slowdown", "1 is undisturbed; a finding begins at 1/0.85 and ends at 1.1.",
               Query(f"{PAIR} (tierd_interference_slowdown)", "{{victim}} by {{aggressor}}"), unit="none",
               steps=((None, GREEN), (1.18, YELLOW), (1.5, ORANGE)), empty="nobody is disturbed"),
    timeseries("Victims", "Throughput of streams in findings and cases, against what they had before.",
               Query(f"{PAIR} (tierd_victim_bytes_per_second)", "{{victim}} now"),
               Query(f"{PAIR} (tierd_victim_usual_bytes_per_second)", "{{victim}} before {{aggressor}} came"),
               unit="Bps", empty="no findings yet", links=(to("jobs", "This job", job="victim"),)),
    timeseries("Aggressors", "Operations of jobs with small requests (below 1 MiB), by job: who makes disks seek.",
               Query(f"topk(10, sum by (fs, jobid) (fs_target_job:lustre_job_bulk_operations:rate2m{{{ON}}})"
                     f" and (sum by (fs, jobid) (fs_target_job:lustre_job_bytes:rate2m{{{ON}}}) / (sum by (fs, "
                     f"jobid) (fs_target_job:lustre_job_bulk_operations:rate2m{{{ON}}}) > 0) < 1048577))",
                     "{{jobid}}"), unit="ops", empty="no small I/O",
               links=(to("jobs", "This job", job="jobid"),)),
    timeseries("Parts of targets", "Part of each target's operations that each job has; the largest. Choose a target.",
               Query(f"topk(10, fs_target_job:lustre_job_bulk_operations:share2m{{{ON}}})",
                     "{{target}} {{jobid}}"),
               unit="percentunit", maximum=1, width=24),
))

BENEFIT = Row("Did it help", (
    timeseries("Expected against measured", "What a stream has, of what it had before its neighbour came. Expected is "
               "100 %; at the marks tierd acted.",
               Query(f"{PAIR} (tierd_victim_bytes_per_second) / ({PAIR} (tierd_victim_usual_bytes_per_second) > 0)",
                     "{{victim}}"), unit="percentunit",
               steps=((None, RED), (0.85, YELLOW), (0.95, GREEN)), empty="no findings yet"),
    timeseries("Judgements", "Acts judged by the victim's throughput, in all. did-not-help: undone; many of them, and "
               "thresholds do not fit this site.",
               Query("sum by (verdict) (tierd_judgements_total)", "{{verdict}}"), unit="short", stack=True, width=6),
    timeseries("Acts taken back", "Default layouts and moves undone, by judgement, for want of room or by hand.",
               Query("sum(tierd_undone_total)", "undone"), unit="short", width=6),
))

HELD = Row("What bounds it", (
    timeseries("Gain of the last act", "What the last judged act could give back to each stream, and what it did.",
               Query("max by (victim) (tierd_expected_gain_bytes_per_second)", "{{victim}} expected"),
               Query("max by (victim) (tierd_measured_gain_bytes_per_second)", "{{victim}} measured"), unit="Bps",
               width=8, empty="nothing judged yet"),
    timeseries("Queue and budget", "Bytes that wait to be moved, and bytes that may be moved at once by [limits].",
               Query("sum(tierd_waiting_moves_bytes)", "waiting"),
               Query("sum(tierd_budget_bytes)", "may be moved at once"), unit="bytes", width=8),
    timeseries("Age of what it hears", "By source; of changelogs also how old records were when they were taken in. "
               "Beyond the limit of a source nothing is done.",
               Query("max by (source) (tierd_source_age_seconds < Inf)", "{{source}}"),
               Query("max(tierd_changelog_lag_seconds)", "changelog lag"), unit="s", width=8),
))

DONE = Row("What was done", (
    timeseries("Files", "Files per minute whose turn came, by how it went. gave-way: an application opened the file, "
               "and won.",
               Query(f"sum by (outcome) (rate(tierd_moves_total{RATE})) * 60", "{{outcome}}"), unit="short", stack=True,
               width=8, empty="none"),
    timeseries("Bytes moved", "What moves cost the disks. Against [limits] in the settings.",
               Query(f"sum(rate(tierd_moved_bytes_total{RATE}))", "moved"), unit="Bps", width=8),
    timeseries("Default layouts", "Directories whose new files go elsewhere, in all, by how it went.",
               Query("sum by (outcome) (tierd_default_layouts_total)", "{{outcome}}"), unit="short", stack=True,
               width=8, empty="none"),
    timeseries("Refusals by reason", "Plans tierd made and refused, in all. no-room: the flash pool is too small; "
               "no-changelog: no reader is registered; sizes-mixed: no component fits.",
               Query("sum by (reason) (tierd_refusals_total) > 0", "{{reason}}"), unit="short", stack=True, width=8,
               empty="none"),
    bars("Flash room", "Part of each pool that is used. tierd keeps a tenth of the flash pool free, and takes "
         "defaults back when it is reached.",
         Query('fs_pool:lustre_pool_used:ratio{fs=~"$fs", pool=~"$pool"}', "{{pool}}", instant=True),
         unit="percentunit", steps=FULL, maximum=1, width=8),
    timeseries("Pools: free", "Free room over time.",
               Query('fs_pool:lustre_pool_avail_bytes:min{fs=~"$fs", pool=~"$pool"}', "{{fs}} {{pool}}"), unit="bytes",
               width=8),
))

BOARD = Dashboard("tiering", "Lustre: noisy neighbours and tiering",
                  "Who hurts whom, what tierd did about it, and whether it helped.", (FS, POOL, TARGET, JOB),
                  (NOW, INTERFERENCE, BENEFIT, DONE, HELD), events())
