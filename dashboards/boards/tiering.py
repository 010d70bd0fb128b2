"""Noisy neighbours: victims, aggressors and targets; acts of tierd and their effect."""

from __future__ import annotations

from dashboards.boards.jobs import BULK, BYTES
from dashboards.dashboard import (
    ANY_IS_A_WARNING,
    ANY_IS_BAD,
    FS,
    FULLNESS,
    JOB,
    NO_STREAM,
    NO_TIERD,
    OF_FS,
    POOL,
    RATE,
    STORY,
    TARGET,
    TARGET_LINK,
    Dashboard,
    Row,
    job_link,
    link_from_value,
    over_interval,
    tierd_events,
)
from dashboards.panels import GREEN, ORANGE, RED, YELLOW, Query, bars, dashed, largest, matrix, stat, table, timeseries

VICTIM = "max by (victim)"
ON = 'fs=~"$fs", target=~"$target", jobid=~"$jobid"'
NO_CLUSTER = "no movers on other nodes"
NO_READERS = "no changelog readers"
OWN = "unless on (jobid) tierd_own_job_info"

POOL_USAGE = bars(
    "Pool usage", "Used share of each pool. Plan from 80%, act from 90%: files in a full pool cannot grow. tierd keeps "
    "a tenth of the flash pool free and removes its default layouts at that limit.",
    Query('fs_pool:lustre_pool_used:ratio{fs=~"$fs", pool=~"$pool"}', "{{fs}} {{pool}}", instant=True),
    unit="percentunit", steps=FULLNESS, maximum=1, empty="no pools",
    links=(link_from_value("targets", "Targets", pool="pool"),))

NOW = Row("Now", (
    *STORY,
    stat("Active findings", "Streams that a neighbour slows now.",
         Query('sum(tierd_active_findings{fs=~"$fs", kind=~"noisy-neighbour|shared-bandwidth"})'),
         unit="short", steps=ANY_IS_A_WARNING, width=6, height=3),
    stat("Recovered", "Share of the victim's lost throughput that the last judged act recovered. Below "
         "20%, tierd undoes the act.",
         Query(f"min(tierd_won_back_ratio{OF_FS})"), unit="percentunit",
         steps=((None, RED), (0.2, YELLOW), (0.8, GREEN)), width=6, height=3, empty="nothing judged yet", minimum=None),
    stat("Queued moves", "Files queued for migration. The settings in [limits] set the pace.",
         Query(f"sum(tierd_waiting_moves{OF_FS})"), unit="short", steps=((None, GREEN), (10_000, YELLOW)), width=6,
         height=3),
    stat("Unreadable sources", "Counters, changelogs and opt-outs that tierd cannot read. If not 0, it starts no new "
         "acts.", Query(f"sum(tierd_source_blind{OF_FS})"), unit="short", steps=ANY_IS_BAD, width=6, height=3),
), empty=NO_TIERD)

INTERFERENCE = Row("Victims, aggressors and targets", (
    timeseries("Throughput of victims", "Throughput of streams in cases, and before the aggressor started (dashed).",
               Query(f"{VICTIM} ({over_interval('tierd_victim_bytes_per_second')})", "{{victim}}"),
               Query(f"{VICTIM} ({over_interval('tierd_victim_usual_bytes_per_second')})", "{{victim}} usual"),
               unit="Bps", by_name="victim", overrides=(dashed("usual"),),
               links=(link_from_value("jobs", "This job", jobid="victim"),)),
    timeseries(
        "Slowdown of victims", "Slowdown factor of each victim. 1 means undisturbed. A finding begins "
        "when the stream probably loses a twentieth.",
        Query(f"{VICTIM} ({over_interval('tierd_interference_slowdown')})", "{{victim}}"), unit="none",
        by_name="victim", steps=((None, GREEN), (1.2, YELLOW), (1.5, ORANGE)), empty=NO_STREAM,
        links=(link_from_value("jobs", "This job", jobid="victim"),)),
    table("Interference by target", "Slowdown factor of each victim on each target, with its aggressor.",
          Query(f"max by (fs, target, victim, aggressor) (tierd_interference_slowdown{OF_FS})"), unit="none",
          sort="Slowdown", columns={"fs": ("File system", ""), "target": ("Target", ""), "victim": ("Victim", ""),
                   "aggressor": ("Aggressor", ""), "Value": ("Slowdown", "none")},
          overrides=(TARGET_LINK, job_link("Victim"), job_link("Aggressor"))),
    matrix("What jobs cost each other", "Bytes that each victim (row) certainly lost to each aggressor (column) in "
           "the shown time. tierctl bill has the intervals.",
           Query(f"sum by (victim, aggressor) (increase(tierd_interference_lost_bytes_total{OF_FS}[$__range])) > 0"),
           rows="victim", columns="aggressor", unit="bytes", empty="no stream certainly lost anything"),
    timeseries("Aggressors: jobs with small requests", "Reads and writes per second of jobs with requests below 1 MiB, "
               "which make disks seek. tierd's own moves are left out.",
               Query(f"topk(10, sum by (jobid) ({BULK} and ({BYTES} / ({BULK} > 0) < 1048577)) {OWN})", "{{jobid}}"),
               unit="ops", by_name="jobid", empty="no small I/O",
               links=(link_from_value("jobs", "This job", jobid="jobid"),)),
    timeseries("Share of target operations", "Share of each job in the operations of a target (the ten largest at the "
               "end of the time range). Select a target for details.",
               Query(largest(10, f"fs_target_job:lustre_job_bulk_operations:share2m{{{ON}}}"),
                     "{{fs}} {{target}} {{jobid}}"),
               unit="percentunit", maximum=1, empty="no job statistics of object targets", fill=0),
    timeseries("Share of device time", "Estimated share of each job in the service time of a target (the ten largest "
               "at the end of the time range). Empty until tierd knows what operations cost on the targets.",
               Query(largest(10, f"lustre_target_device_time_share{{{ON}}}"), "{{fs}} {{target}} {{jobid}}"),
               unit="percentunit", maximum=1, empty="not known yet", fill=0),
), empty=NO_STREAM)

BENEFIT = Row("Effect of acts", (
    timeseries("Gain of the last act", "Throughput that the last judged act could recover for each victim (dashed), "
               "and what it recovered.",
               Query(f"{VICTIM} (tierd_measured_gain_bytes_per_second{OF_FS})", "{{victim}}"),
               Query(f"{VICTIM} (tierd_expected_gain_bytes_per_second{OF_FS})", "{{victim}} at most"), unit="Bps",
               by_name="victim", overrides=(dashed("at most"),), empty="nothing judged yet"),
    timeseries("Judged acts", "Acts judged by the victim's throughput, by verdict, since tierd started. Acts that did "
               "not help are undone. If there are many, the thresholds do not fit this site.",
               Query(f"sum by (verdict) (tierd_judgements_total{OF_FS})", "{{verdict}}"), unit="short", stack=True,
               empty=NO_TIERD),
))

DONE = Row("Acts", (
    timeseries(
        "Files moved", "Files per minute taken from the queue, by outcome. gave-way means that an application "
        "opened the file and the move stopped.",
        Query(f"sum by (outcome) (rate(tierd_moves_total{OF_FS}{RATE})) * 60", "{{outcome}}"), unit="none", stack=True,
        empty="none"),
    timeseries("Migration throughput", "Bytes per second moved. Compare with the settings in [limits].",
               Query(f"sum(rate(tierd_moved_bytes_total{OF_FS}{RATE}))", "moved"), unit="Bps", empty=NO_TIERD),
    timeseries("Refusals by reason", "Plans that tierd refused, by reason, since tierd started. no-room: the flash "
               "pool is too small. no-changelog: no reader is registered. sizes-mixed: no component size fits.",
               Query(f"sum by (reason) (tierd_refusals_total{OF_FS}) > 0", "{{reason}}"), unit="short", stack=True),
    POOL_USAGE,
), empty="none", closed=True)

LIMITS = Row("Queue, budget and sources", (
    timeseries("Queue and budget", "Bytes queued for migration, and bytes that [limits] allow to move now.",
               Query(f"sum(tierd_waiting_moves_bytes{OF_FS})", "waiting"),
               Query(f"sum(tierd_budget_bytes{OF_FS})", "allowed now"), unit="bytes", minimum=None, empty=NO_TIERD),
    timeseries("Age of source data", "Age of the latest data by source, and age of changelog records when read. "
               "tierd does not act on data older than the limit of its source.",
               Query(f"max by (source) (tierd_source_age_seconds{OF_FS} < Inf)", "{{source}}"),
               Query(f"max(tierd_changelog_lag_seconds{OF_FS})", "changelog lag"), unit="s", empty=NO_TIERD),
), closed=True)

MOVERS = Row("Movers on other nodes", (
    stat("Movers at work", "Movers that take moves from the leader. Empty if tierd moves files itself.",
         Query('sum(tierd_movers{fs=~"$fs", state="working"})'), unit="short", steps=((None, GREEN),), width=4,
         height=6),
    stat("Stopped movers", "Movers that stopped because a file was not as expected after its move.",
         Query('sum(tierd_movers{fs=~"$fs", state="stopped"})'), unit="short", steps=ANY_IS_BAD, width=4, height=6),
    stat("Standbys", "Standbys of the leader. Without one, nobody takes over from a leader that fails.",
         Query(f"min(tierd_standbys{OF_FS})"), unit="short", steps=((None, RED), (1, GREEN)), width=4, height=6),
    stat("Age of the journal's copy", "Longest time since the copy of the journal of a standby was complete.",
         Query(f"max(tierd_standby_copy_age_seconds{OF_FS})"), unit="s",
         steps=((None, GREEN), (30, YELLOW), (60, RED)), width=4, height=6),
    timeseries("Moves under way by target", "Files sent to movers without a result yet, by the target that holds them.",
               Query(f"sum by (fs, target) (tierd_target_moves_under_way{OF_FS})", "{{fs}} {{target}}"), unit="short",
               width=8, height=6),
    timeseries("Results and delays", "Results per second, messages delivered again, and age of the oldest message.",
               Query(f"sum by (result) (rate(tierd_mover_results_total{OF_FS}{RATE}))", "{{result}}"),
               Query(f"sum(rate(tierd_redelivered_messages_total{OF_FS}{RATE}))", "delivered again"),
               Query(f"max(tierd_oldest_move_message_seconds{OF_FS})", "oldest message"), unit="short", width=8,
               height=6),
), empty=NO_CLUSTER, closed=True)

READERS = Row("Changelog readers on other nodes", (
    stat("Readers", "Changelog readers that have reported in the last 20 s. Empty if tierd reads the "
         "changelogs itself.", Query(f"sum(tierd_readers{OF_FS})"), unit="short", steps=((None, RED), (1, GREEN)),
         width=4, height=6),
    stat("Changelogs without tallies", "MDTs whose last tally is older than half a minute, or whose reader reports a "
         "problem. tierd starts no new acts until a reader has caught up.",
         Query(f"count(tierd_reader_tally_age_seconds{OF_FS} > 30 or tierd_reader_problem{OF_FS} > 0) "
               f"or 0 * max(tierd_readers{OF_FS})"), unit="short", steps=ANY_IS_BAD, width=4, height=6),
    timeseries("Age of the last tally", "Time since the last tally of each MDT.",
               Query(f"max by (fs, mdt) (tierd_reader_tally_age_seconds{OF_FS} < Inf)", "{{fs}} {{mdt}}"), unit="s",
               width=8, height=6),
    timeseries("Tallies by outcome", "Tallies per second by outcome, and requests to read records again.",
               Query(f"sum by (outcome) (rate(tierd_reader_tallies_total{OF_FS}{RATE}))", "{{outcome}}"),
               Query(f"sum(rate(tierd_reader_rereads_total{OF_FS}{RATE}))", "read again"), unit="ops", width=8,
               height=6),
), empty=NO_READERS, closed=True)

BOARD = Dashboard("tiering", "Lustre: noisy neighbours and tiering",
                  "Victims and aggressors, acts of tierd, and their effect.", (FS, POOL, TARGET, JOB),
                  (NOW, INTERFERENCE, BENEFIT, DONE, LIMITS, MOVERS, READERS), tierd_events())
