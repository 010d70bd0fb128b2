"""Noisy neighbours: aggressors, victims and targets; acts of tierd and their effect."""

from __future__ import annotations

from dashboards.dashboard import (
    ANY_IS_A_WARNING,
    ANY_IS_BAD,
    FS,
    FULLNESS,
    JOB,
    POOL,
    TARGET,
    Dashboard,
    Row,
    column_links,
    link_from_row,
    link_from_value,
    tierd_events,
)
from dashboards.panels import BLUE, GREEN, ORANGE, RED, YELLOW, Query, bars, stat, table, timeseries

RATE = "[$__rate_interval]"
PAIR = "max by (victim, aggressor)"
ON = 'fs=~"$fs", target=~"$target", jobid=~"$jobid"'

NOW = Row("Now", (
    stat("Active findings", "Streams that a neighbour slows now.",
         Query('sum(tierd_active_findings{kind=~"noisy-neighbour|shared-bandwidth"}) or vector(0)'),
         unit="short", steps=ANY_IS_A_WARNING),
    stat("Dry run", "1: tierd observes and plans but changes nothing.", Query("max(tierd_dry_run)"), unit="short",
         steps=((None, GREEN), (1, BLUE)), empty="no tierd"),
    stat("Circuit breaker", "1: too many moves failed, or a file is in doubt. tierd does not act until you check "
         "tierctl history and run tierctl resume.", Query("max(tierd_breaker_open)"), unit="short", steps=ANY_IS_BAD,
         empty="no tierd"),
    stat("Unreadable sources", "Sources (counters, changelogs) that tierd cannot read. If not 0, tierd starts no new "
         "acts.",
         Query("sum(tierd_source_blind)"), unit="short", steps=ANY_IS_BAD, empty="no tierd"),
    stat("Queued moves", "Files queued for migration. The settings in [limits] set the pace.",
         Query("sum(tierd_waiting_moves)"), unit="short", steps=((None, GREEN), (10_000, YELLOW)), empty="no tierd"),
    stat("Recovered throughput", "Share of the victim's lost throughput that the last judged act recovered. Below "
         "20%, tierd undoes the act.",
         Query("min(tierd_won_back_ratio)"), unit="percentunit", steps=((None, RED), (0.2, YELLOW), (0.8, GREEN)),
         empty="nothing judged yet", minimum=None),
))

INTERFERENCE = Row("Aggressors and victims", (
    table("Interference by target", "Slowdown factor of each victim on each target, with its aggressor.",
          Query('max by (target, victim, aggressor) (label_replace(tierd_interference_slowdown, "target", "$1", '
                '"target", ".+-((OST|MDT)[0-9a-f]+)"))'), unit="none", width=12,
          height=8, sort="Slowdown", empty="no slowdown",
          columns={"target": ("Target", ""), "victim": ("Victim", ""), "aggressor": ("Aggressor", ""),
                   "Value": ("Slowdown", "none")},
          overrides=(column_links("Target", link_from_row("targets", "This target", target="Target")),
                     column_links("Victim", link_from_row("jobs", "This job", jobid="Victim")),
                     column_links("Aggressor", link_from_row("jobs", "This job", jobid="Aggressor")))),
    timeseries("Slowdown of victims", "Slowdown factor of each victim. 1 means undisturbed. A finding starts at "
               "1/0.85 and ends at 1.1.",
               Query(f"{PAIR} (tierd_interference_slowdown)", "{{victim}} by {{aggressor}}"), unit="none",
               steps=((None, GREEN), (1.18, YELLOW), (1.5, ORANGE)), empty="no slowdown"),
    timeseries("Throughput of victims", "Throughput of streams in findings and open cases, now and before the "
               "aggressor started.",
               Query(f"{PAIR} (tierd_victim_bytes_per_second)", "{{victim}} now"),
               Query(f"{PAIR} (tierd_victim_usual_bytes_per_second)", "{{victim}} before {{aggressor}}"),
               unit="Bps", empty="no findings yet", links=(link_from_value("jobs", "This job", jobid="victim"),)),
    timeseries("Jobs with small requests", "Reads and writes per second of jobs with requests below 1 MiB, which "
               "make disks seek.",
               Query(f"topk(10, sum by (fs, jobid) (fs_target_job:lustre_job_bulk_operations:rate2m{{{ON}}})"
                     f" and (sum by (fs, jobid) (fs_target_job:lustre_job_bytes:rate2m{{{ON}}}) / (sum by (fs, "
                     f"jobid) (fs_target_job:lustre_job_bulk_operations:rate2m{{{ON}}}) > 0) < 1048577))",
                     "{{jobid}}"), unit="ops", empty="no small I/O",
               links=(link_from_value("jobs", "This job", jobid="jobid"),)),
    timeseries("Share of target operations", "Share of each job in the operations of a target, the ten highest. "
               "Select a target for details.",
               Query(f"topk(10, fs_target_job:lustre_job_bulk_operations:share2m{{{ON}}})",
                     "{{target}} {{jobid}}"),
               unit="percentunit", maximum=1, width=24),
    timeseries("Device time by job", "Estimated share of each job in the service time of a target, the ten highest. "
               "Empty until tierd has learnt what service costs on the targets.",
               Query('topk(10, lustre_target_device_time_share{fs=~"$fs", target=~"$target", jobid=~"$jobid"})',
                     "{{target}} {{jobid}}"),
               unit="percentunit", maximum=1, width=24, empty="learning"),
))

BENEFIT = Row("Effect of acts", (
    timeseries("Throughput of victims compared with before", "Throughput of each victim as a share of its throughput "
               "before the aggressor started. The aim is 100%. The marks show acts of tierd.",
               Query(f"{PAIR} (tierd_victim_bytes_per_second) / ({PAIR} (tierd_victim_usual_bytes_per_second) > 0)",
                     "{{victim}}"), unit="percentunit",
               steps=((None, RED), (0.85, YELLOW), (0.95, GREEN)), empty="no findings yet"),
    timeseries("Judged acts", "Acts judged by the victim's throughput, by verdict, in total. Acts that did not help "
               "are undone. If there are many, the thresholds do not fit this site.",
               Query("sum by (verdict) (tierd_judgements_total)", "{{verdict}}"), unit="short", stack=True, width=6),
    timeseries("Undone acts", "Default layouts and moves undone because of a verdict, lack of space, or an "
               "administrator.",
               Query("sum(tierd_undone_total)", "undone"), unit="short", width=6),
))

LIMITS = Row("Queue, budget and sources", (
    timeseries("Gain of the last act", "Throughput that the last judged act could recover for each victim, and what "
               "it recovered.",
               Query("max by (victim) (tierd_expected_gain_bytes_per_second)", "{{victim}} expected"),
               Query("max by (victim) (tierd_measured_gain_bytes_per_second)", "{{victim}} measured"), unit="Bps",
               width=8, empty="nothing judged yet"),
    timeseries("Queue and budget", "Bytes queued for migration, and bytes that [limits] allow to move now.",
               Query("sum(tierd_waiting_moves_bytes)", "waiting"),
               Query("sum(tierd_budget_bytes)", "allowed now"), unit="bytes", width=8),
    timeseries("Age of source data", "Age of the latest data by source, and age of changelog records when read. "
               "tierd does not act on data older than the limit of its source.",
               Query("max by (source) (tierd_source_age_seconds < Inf)", "{{source}}"),
               Query("max(tierd_changelog_lag_seconds)", "changelog lag"), unit="s", width=8),
))

DONE = Row("Acts", (
    timeseries("Files moved", "Files per minute taken from the queue, by outcome. gave-way means that an application "
               "opened the file and the move stopped.",
               Query(f"sum by (outcome) (rate(tierd_moves_total{RATE})) * 60", "{{outcome}}"), unit="short", stack=True,
               width=8, empty="none"),
    timeseries("Migration throughput", "Bytes per second moved. Compare with the settings in [limits].",
               Query(f"sum(rate(tierd_moved_bytes_total{RATE}))", "moved"), unit="Bps", width=8),
    timeseries("Default layouts set", "Directories with a default layout set by tierd, by outcome, in total.",
               Query("sum by (outcome) (tierd_default_layouts_total)", "{{outcome}}"), unit="short", stack=True,
               width=8, empty="none"),
    timeseries("Refusals by reason", "Plans that tierd refused, by reason, in total. no-room: the flash pool is too "
               "small. no-changelog: no reader is registered. sizes-mixed: no component size fits.",
               Query("sum by (reason) (tierd_refusals_total) > 0", "{{reason}}"), unit="short", stack=True, width=8,
               empty="none"),
    bars("Pool usage", "Used share of each pool. tierd keeps a tenth of the flash pool free and removes its default "
         "layouts at that limit.",
         Query('fs_pool:lustre_pool_used:ratio{fs=~"$fs", pool=~"$pool"}', "{{pool}}", instant=True),
         unit="percentunit", steps=FULLNESS, maximum=1, width=8),
    timeseries("Free space by pool", "Free space of each pool.",
               Query('fs_pool:lustre_pool_avail_bytes:min{fs=~"$fs", pool=~"$pool"}', "{{fs}} {{pool}}"), unit="bytes",
               width=8),
))

BOARD = Dashboard("tiering", "Lustre: noisy neighbours and tiering",
                  "Aggressors and victims, acts of tierd, and their effect.", (FS, POOL, TARGET, JOB),
                  (NOW, INTERFERENCE, BENEFIT, DONE, LIMITS), tierd_events())
