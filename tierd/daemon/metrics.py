"""tierd's own metrics: prometheus_client families, made from the daemon's state at each scrape.

They report settings, cycles and restraints, sources and their age, findings and the streams they are about, acts and
their verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from httpserver.config import WebConfigFile
from httpserver.metrics import WebConfigMetrics
from lustre import __version__
from tierd.act.dispatch import DispatchState
from tierd.act.gate import Gate
from tierd.act.staging import OPEN, Stager, StagingState
from tierd.acts import JUDGED_VERDICTS, ActKind, Outcome
from tierd.config.act import Mode
from tierd.daemon.activities import Activity
from tierd.daemon.answers import Case
from tierd.daemon.loop import Daemon, is_learning
from tierd.daemon.states import FOUND, State
from tierd.extensions import Extension
from tierd.integrations.protocol import Source
from tierd.policies.registry import kinds_of_slowdowns
from tierd.refusal import PLAN_REASONS, Reason
from tierd.sense.changelogs.tally_source import TallyOutcome, TallySource
from tierd.sense.freshness import SourceAge
from tierd.text import printable, short_name


@dataclass(frozen=True)
class MetricsContext:
    """State of objects outside the daemon, for its metrics."""

    fs: str
    """Name of the file system, a label of all families."""
    positions: Callable[[], Mapping[str, int]] = dict
    """Last changelog record read, by MDT."""
    cases: Callable[[], Sequence[Case]] = tuple
    activities: Callable[[], Sequence[Activity]] = tuple
    sources: Callable[[], Sequence[SourceAge]] = tuple
    web_config: WebConfigFile | None = None
    integrations: Sequence[Source] = ()
    extensions: Sequence[Extension] = ()
    tallies: TallySource | None = None
    """Tallies of changelog readers; None if the daemon reads the changelogs itself."""
    stager: Stager | None = None
    """Stagings of jobs of a scheduler."""


Rows = Mapping[Any, float]
"""Values by the value of the label, or by a tuple of those of several labels."""


def gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(name, about, float(value))


def gauges(name: str, about: str, labels: str, rows: Rows) -> Metric:
    """A family with a series for each row. Names of labels have a space between them."""
    return with_rows(GaugeMetricFamily(name, about, labels=labels.split()), rows)


def counters(name: str, about: str, labels: str, rows: Rows) -> Metric:
    return with_rows(CounterMetricFamily(name, about, labels=labels.split()), rows)


def with_rows(family: GaugeMetricFamily | CounterMetricFamily, rows: Rows) -> Metric:
    for labels, value in rows.items():
        family.add_metric((labels,) if isinstance(labels, str) else labels, float(value))
    return family


def build_info() -> Metric:
    return gauges("tierd_build_info", "Always 1. The label names the release of tierd.", "version", {__version__: 1})


def staging_metrics(stager: Stager) -> Iterator[Metric]:
    yield gauge("tierd_open_stagings", "Stagings of jobs that wait or move files.", len(stager))
    yield counters("tierd_stagings", "Stagings of jobs that have ended, by direction (promote: to flash) and by the"
                   " state in which they ended.", "direction state",
                   {(direction, state.value): stager.counts[direction, state]
                    for direction in ("promote", "demote") for state in StagingState if state not in OPEN})


def reader_metrics(tallies: TallySource) -> Iterator[Metric]:
    """Changelog readers on other nodes, and the outcome of their tallies."""
    yield gauge("tierd_readers", "Changelog readers that have reported in the last 20 s.", len(tallies.readers))
    progress = dict(sorted(tallies.progress.items()))
    yield gauges("tierd_reader_tally_age_seconds",
                 "Time since a reader last sent a tally of the MDT. +Inf before the first.", "mdt",
                 {mdt: each.age_seconds for mdt, each in progress.items()})
    yield gauges("tierd_reader_problem", "Whether the MDT's changelog cannot be read or records nothing (1), or"
                 " neither (0).", "mdt", {mdt: bool(each.problem) for mdt, each in progress.items()})
    yield counters("tierd_reader_rereads", "Requests to the reader of the MDT to read again from tierd's position.",
                   "mdt", {mdt: tallies.rereads[mdt] for mdt in progress})
    yield counters(
        "tierd_reader_tallies", "Tallies of changelog readers by outcome: added; duplicate and overlapping (their"
        " records are counted already); out_of_order (an earlier one is missing, and is read again); stale (of a reader"
        " that has lost its lease); malformed.", "outcome",
        {outcome.value: tallies.outcomes[outcome] for outcome in TallyOutcome})


def state_metrics(daemon: Daemon) -> Iterator[Metric]:
    done, gate, settings = daemon.counters, daemon.parts.gate, daemon.parts.settings
    state, held = gate.operating_state, gate.operating_state.last_held
    yield build_info()
    yield gauge("tierd_dry_run", "Whether tierd is in dry run and changes nothing (1) or acts (0).", gate.dry_run)
    yield gauge("tierd_observes_only", "Whether the only configured mode is observe, which allows no acts (1),"
                " or not (0).", settings.resolved_scopes.modes == {Mode.OBSERVE})
    yield gauge("tierd_learning", "Whether tierd knows too little to rule out slowed streams (1) or enough (0).",
                is_learning(len(daemon.windows), daemon.engine.device_time))
    yield gauges("tierd_own_job_info", "Always 1. The label has a job id of tierd's own moves.", "jobid",
                 dict.fromkeys(settings.own_jobs, 1))
    yield gauge("tierd_paused", "Whether acts are paused by an administrator, the pause file or the circuit breaker (1)"
                " or not (0).", held is not None and held.reason is not Reason.MAINTENANCE_WINDOW)
    yield gauge("tierd_held", "Whether tierd starts no new acts (1), because it is paused or outside the maintenance"
                " windows, or may start them (0).", held is not None)
    yield gauge("tierd_breaker_open", "Whether the circuit breaker is open and blocks acts (1) or closed (0).",
                bool(state.tripped))
    yield gauge("tierd_last_cycle_timestamp_seconds", "Unix time when the last cycle ended.", done.last_cycle_at)
    yield gauge("tierd_cycle_duration_seconds", "Duration of the last cycle.", done.cycle_seconds)
    yield CounterMetricFamily("tierd_cycles", "Cycles completed since tierd started.", done.cycles)
    yield CounterMetricFamily("tierd_changelog_records", "Changelog records read.", done.records)


def restraint_metrics(daemon: Daemon, beside: MetricsContext) -> Iterator[Metric]:
    gate, media = daemon.parts.gate, daemon.parts.media
    yield gauge("tierd_draining", "Whether tierd is draining (1) or not (0). While draining it finishes the queue and"
                " starts nothing new.", bool(gate.operating_state.draining))
    yield gauge("tierd_claim_generation", "Generation of the claim on the file system. 0 means that tierd holds no"
                " claim, as in a dry run.", daemon.parts.node.claim.generation)
    yield gauge("tierd_claim_refused", "Whether another tierd holds the claim, so that this one may not act (1), or not"
                " (0).", "claim" in daemon.faults)
    yield gauge("tierd_other_mover", "Whether another program moves files under a job id of tierd (1) or not (0). tierd"
                " then moves no files and starts no acts.", "mover" in daemon.faults)
    wrong = media.wrong_pools()
    yield gauges("tierd_pool_wrong_disks",
                 "Whether the configured flash pool has rotating targets, or the configured disk pool has only flash"
                 " (1), or not as far as the servers report (0). tierd does not act into a flash pool with rotating"
                 " targets.", "pool",
                 {pool: pool in wrong for pair in media.pool_pairs for pool in (pair.flash, pair.hdd)})
    files, size_bytes = gate.queue.budget.all.left(daemon.parts.node.clock.now())
    yield gauge("tierd_budget_files", "Files that may be moved now without waiting. This budget refills at the "
                "configured limits.", files)
    yield gauge("tierd_budget_bytes", "Bytes that may be moved now without waiting. Negative after a large file.",
                size_bytes)
    yield gauge("tierd_waiting_moves_bytes", "Bytes of the files queued for migration.", gate.queue.size_bytes)
    yield gauge("tierd_waiting_default_layouts", "Default layouts of directories queued to be set.",
                len(gate.default_layouts))
    yield gauges("tierd_activity_under_way_seconds", "Time that the current step of the activity has taken so far. 0"
                 " between two steps.", "activity",
                 {each.name: each.under_way_seconds for each in beside.activities()})
    yield gauge("tierd_journal_bytes", "Size of the journal.", daemon.parts.journal.size_bytes())
    yield gauge("tierd_changelog_lag_seconds", "Age of the oldest changelog record read in the last cycle, at the time"
                " it was read.", daemon.counters.changelog_lag_seconds)
    yield gauges("tierd_changelog_position", "Index of the last changelog record read, by MDT.", "mdt",
                 beside.positions())


STANDING_BY = "Whether this tierd stands by for another one, which leads (1), or leads (0)."
NATS_UP = ("Whether NATS answers tierd (1) or not (0). Without NATS it plans and moves nothing, and a standby cannot"
           " lead.")


def mover_metrics(state: DispatchState) -> Iterator[Metric]:
    """Movers on other nodes, and the moves that were sent to them."""
    counts = state.counts
    yield gauge("tierd_nats_up", NATS_UP, state.connected)
    stopped = sum(bool(mover.stopped) for mover in state.movers)
    yield gauges("tierd_movers", "Movers on other nodes, by state: working, or stopped because a file was not as"
                 " expected after its move.", "state", {"working": len(state.movers) - stopped, "stopped": stopped})
    yield gauge("tierd_standing_by", STANDING_BY, 0.0)
    yield gauge("tierd_standbys", "Standbys that have reported in the last 20 s.", len(state.standbys))
    yield gauges("tierd_standby_copy_age_seconds",
                 "Time since the standby's copy of the journal was complete and it could lead. +Inf if it never was.",
                 "standby", {each.name: float("inf") if each.copy_age_seconds is None else each.copy_age_seconds
                             for each in state.standbys})
    yield gauges("tierd_target_moves_under_way",
                 "Files sent to movers without a result yet, by the target that holds them.", "target",
                 dict(sorted(state.under_way.items())))
    yield gauge("tierd_oldest_move_message_seconds", "Age of the oldest message with moves that has no result yet. 0"
                " if there is none.", state.oldest_seconds)
    yield gauge("tierd_journal_lag_changes", "Changes of the journal that the standby cannot get yet.",
                state.journal_lag)
    yield CounterMetricFamily("tierd_move_messages", "Messages with moves sent to movers.", counts.messages)
    yield counters("tierd_mover_results", "Results that movers reported, by result.", "result",
                   dict(sorted(counts.results.items())))
    yield CounterMetricFamily("tierd_redelivered_messages",
                              "Messages delivered to a second mover, because the first one died, hung or lost NATS.",
                              counts.redelivered)
    yield CounterMetricFamily("tierd_stale_moves",
                              "Moves that a mover did not begin: the message was late, withdrawn, or from an "
                              "earlier leader.", counts.stale)
    yield CounterMetricFamily("tierd_expired_moves",
                              "Moves without a result at their deadline. tierd checked these files itself.",
                              counts.expired)
    yield CounterMetricFamily("tierd_refused_results",
                              "Results that were malformed, or not signed with the claim of this tierd.",
                              counts.refused)


def source_metrics(daemon: Daemon, sources: Sequence[SourceAge]) -> Iterator[Metric]:
    yield gauges("tierd_source_blind", "Whether the source cannot be read (1) or can be read (0). tierd does not act"
                 " while a source cannot be read.", "source",
                 {"counters": not daemon.sees, **{name: name in daemon.faults for name in ("changelog", "opt-outs")}})
    yield gauges("tierd_source_age_seconds", "Age of the latest data of the source, by the source's own timestamps"
                 " where it has them. +Inf means no data yet.", "source",
                 {source.name: source.age_seconds for source in sources})
    yield gauges("tierd_source_age_limit_seconds", "Limit on the age of the source's data. tierd does not act on older"
                 " data.", "source", {source.name: source.limit_seconds for source in sources})
    yield gauges("tierd_source_stale", "Whether the data of the source is too old or the source has an error (1) or"
                 " not (0).", "source", {source.name: source.stale for source in sources})


def finding_metrics(daemon: Daemon) -> Iterator[Metric]:
    """Started and active findings by kind. Each possible kind has a series before its first."""
    kinds = *kinds_of_slowdowns(), *(configured.policy.name for configured in daemon.parts.settings.policies)
    yield counters("tierd_findings", "Findings started, by kind.", "kind",
                   {kind: daemon.counters.found[kind] for kind in kinds})
    yield gauges("tierd_active_findings", "Findings active now, by kind.", "kind",
                 {kind: sum(finding.kind == kind for finding in daemon.findings) for kind in kinds})


CLOSED_SECONDS = 120.0
"""Time for which a case is exposed after it is closed, so that Prometheus sees its verdict."""


def stream_metrics(daemon: Daemon, every: Sequence[Case]) -> Iterator[Metric]:
    """The cases of slowed streams: throughput without the aggressor and now, slowdown, and what tierd does."""
    cases = [case for case in every if case.victim]
    present = {(case.victim, case.aggressor): case for case in reversed(cases)
               if (case.active or case.state != State.CLOSED) and daemon.sees}
    yield gauges("tierd_victim_usual_bytes_per_second", "Throughput of the victim without the aggressor, which acts"
                 " are expected to restore.", "victim aggressor",
                 {pair: case.usual for pair, case in present.items() if case.usual is not None})
    yield gauges("tierd_victim_bytes_per_second", "Throughput of the victim in the last 12 s.", "victim aggressor",
                 {pair: case.now for pair, case in present.items() if case.now is not None})
    yield gauges("tierd_interference_slowdown",
                 "Slowdown factor of the victim compared with its throughput without the aggressor, by target. Left out"
                 " while the counters cannot be read, and after the case.", "target aggressor victim",
                 {(short_name(target), case.aggressor, case.victim): case.usual / rate
                  for case in present.values()
                  if case.usual and (rate := case.now or (case.contended if case.active else None))
                  for target in case.targets})
    yield gauges("tierd_case_begun_timestamp_seconds",
                 "Unix time when tierd found that the aggressor slows the victim. Labels: number of the finding, state "
                 "of the case, verdict, and the reason if tierd does not act. Exposed until two"
                 " minutes after the verdict.", "id victim aggressor state verdict reason",
                 {(f"F{case.finding}", case.victim, case.aggressor, case.state or FOUND, case.verdict,
                   hindrance(daemon, case)): case.since for case in cases
                  if case.active or case.state != State.CLOSED
                  or (case.judged_at and daemon.parts.node.clock.now() - case.judged_at < CLOSED_SECONDS)})


def hindrance(daemon: Daemon, case: Case) -> str:
    """A word for why tierd does not act on a finding; empty while it acts or where it has acted."""
    if case.state not in {"", State.PLANNED, State.KEPT} or case.verdict:
        return ""
    gate = daemon.parts.gate
    if gate.dry_run:
        return "dry-run"
    advice = any(finding.key == case.key and finding.advice_only for finding in daemon.findings)
    held = gate.operating_state.last_held or (None if advice else next(daemon.blocked_by(), None))
    if held is not None:
        return "source" if held.reason is Reason.UNREADABLE else str(held.reason)
    if case.state:
        return ""
    if gate.operating_state.draining:
        return "draining"
    refusals = daemon.remediations.refusals(case.key)
    return "advice" if advice else str(refusals[0].reason) if refusals else ""


JOBS_OF_TARGET = 5
"""Jobs with a series of device time for each target: those with the largest shares."""


def device_time_metrics(daemon: Daemon) -> Iterator[Metric]:
    """Device time of jobs, and utilisation, of targets whose costs of service are known."""
    times = daemon.engine.device_time if daemon.sees else {}
    yield gauges("lustre_target_device_time_share", "Estimated share of the target's service time that the job takes,"
                 " for the five jobs that take most.", "target jobid",
                 {(short_name(target), job): part for target, time in times.items()
                  for job, part in time.top(JOBS_OF_TARGET)})
    yield gauges("lustre_target_utilisation_ratio", "Estimated share of the time in which the target is busy, "
                 "relative to the highest load seen on targets of its pool.", "target",
                 {short_name(target): time.utilisation for target, time in times.items()})


def act_metrics(gate: Gate) -> Iterator[Metric]:
    """Moves and default layouts, by outcome. The first act must be an increase."""
    moves, defaults = ({outcome.value: 0.0 for outcome in (Outcome.DONE, Outcome.FAILED)} for _ in range(2))
    for (kind, result), count in sorted(gate.completed_acts.counts.items()):
        (moves if kind == ActKind.MIGRATE else defaults)[result] = count
    yield counters("tierd_moves", "Files taken from the queue, by outcome.", "outcome", moves)
    yield counters("tierd_default_layouts", "Default layouts of directories taken from the queue, by outcome.",
                   "outcome", defaults)
    yield CounterMetricFamily("tierd_moved_bytes", "Bytes of moved files.", gate.completed_acts.moved_bytes)
    yield gauge("tierd_waiting_moves", "Files queued for migration.", gate.waiting)
    yield gauge("tierd_moves_give_way", "Whether all queued moves wait for streams on their targets (1) or not (0)."
                " Such moves are made at a low rate.", gate.queue.gives_way)


def verdict_metrics(daemon: Daemon, cases: Sequence[Case]) -> Iterator[Metric]:
    done = daemon.counters
    yield counters("tierd_judgements", "Acts judged by the throughput of the victim, by verdict.", "verdict",
                   {verdict.value: done.verdicts[verdict] for verdict in JUDGED_VERDICTS})
    yield counters("tierd_refusals", "Refused plans and parts of plans, by reason.", "reason",
                   {reason.value: done.refusals[reason] for reason in sorted(PLAN_REASONS.union(tuple(done.refusals)))})
    yield CounterMetricFamily("tierd_undone", "Acts undone.", daemon.parts.undo.undone)
    judged = {case.victim: case for case in sorted(cases, key=lambda case: case.judged_at or 0.0)
              if case.judged_at and case.after is not None}
    lost = {victim: case.usual - case.contended for victim, case in judged.items()
            if case.usual is not None and case.contended is not None and case.regained}
    yield gauges("tierd_won_back_ratio", "Share of the victim's lost throughput that the last judged act recovered.",
                 "victim", {victim: regained[0] for victim in lost if (regained := judged[victim].regained)})
    yield gauges("tierd_expected_gain_bytes_per_second", "Throughput that the victim had lost: the most that the last"
                 " judged act could recover.", "victim", lost)
    yield gauges("tierd_measured_gain_bytes_per_second", "Throughput that the last judged act recovered for the"
                 " victim.", "victim", {victim: (judged[victim].after or 0.0) - (judged[victim].contended or 0.0)
                                        for victim in lost})


def waiting_plan_metric(daemon: Daemon) -> Metric:
    rows = {(f"F{daemon.log.known.numbers[key]}", key[1], printable(key[2])): since
            for key, since in sorted(daemon.remediations.asked().items()) if key in daemon.log.known.numbers}
    return gauges("tierd_waiting_plan_since_timestamp_seconds", "Unix time when a plan began to wait for tierctl"
                  " apply or tierctl decline.", "finding aggressor victim", rows)


def last_event_metric(daemon: Daemon) -> Metric:
    """Times of the last events. They start at 0, so that the first event is a change."""
    done, acts = daemon.counters, daemon.parts.gate.completed_acts
    carried_out = (ActKind.SET_DEFAULT_LAYOUT, ActKind.MIGRATE)
    return gauges(
        "tierd_last_event_timestamp_seconds", "Unix time of the last event, by kind of event: finding (of any kind),"
        " slowdown (of a stream), default-layout, moves-begun, move, verdict, undo, failure, dry-run. 0 means there was"
        " none.",
        "event", {
            "finding": max(done.found_at.values(), default=0.0),
            "slowdown": max((done.found_at.get(kind, 0.0) for kind in kinds_of_slowdowns()), default=0.0),
            "default-layout": acts.last.get((ActKind.SET_DEFAULT_LAYOUT, Outcome.DONE), 0.0),
            "move": acts.last.get((ActKind.MIGRATE, Outcome.DONE), 0.0),
            "moves-begun": acts.moves_begun_at,
            "dry-run": max(acts.last.get((kind, Outcome.DRY_RUN), 0.0) for kind in carried_out),
            "failure": max(acts.last.get((kind, Outcome.FAILED), 0.0) for kind in carried_out),
            "undo": daemon.parts.undo.undone_at,
            "verdict": done.judged_at})


@dataclass(frozen=True)
class Families(Collector):
    """Reads the state of this process at each scrape, without waiting for any activity."""

    families: Callable[[], Iterator[Metric]]
    fs: str
    """A label of all families."""

    def collect(self) -> Iterator[Metric]:
        for family in self.families():
            family.samples = [sample._replace(labels={**sample.labels, "fs": self.fs}) for sample in family.samples]
            yield family


def daemon_families(daemon: Daemon, beside: MetricsContext) -> Iterator[Metric]:
    yield from state_metrics(daemon)
    yield from source_metrics(daemon, beside.sources())
    yield from restraint_metrics(daemon, beside)
    for source in beside.integrations:
        yield from source.metrics()
    for extension in beside.extensions:
        yield from extension.metrics()
    if beside.tallies is not None:
        yield from reader_metrics(beside.tallies)
    if beside.stager is not None:
        yield from staging_metrics(beside.stager)
    yield from finding_metrics(daemon)
    cases = beside.cases()
    yield from stream_metrics(daemon, cases)
    yield from device_time_metrics(daemon)
    yield from act_metrics(daemon.parts.gate)
    if (cluster := daemon.parts.gate.dispatch.state()) is not None:
        yield from mover_metrics(cluster)
    yield from verdict_metrics(daemon, cases)
    yield waiting_plan_metric(daemon)
    yield last_event_metric(daemon)
    if beside.web_config is not None:
        yield from WebConfigMetrics(beside.web_config, "tierd_").collect()


def registry(daemon: Daemon, beside: MetricsContext) -> CollectorRegistry:
    return registry_of(lambda: daemon_families(daemon, beside), beside.fs)


def registry_of(families: Callable[[], Iterator[Metric]], fs: str) -> CollectorRegistry:
    """The families of a file system, and those of the process."""
    made = CollectorRegistry()
    made.register(Families(families, fs))
    for of_process in (ProcessCollector, PlatformCollector, GCCollector):
        of_process(registry=made)
    return made
