"""tierd's own metrics: prometheus_client families, made from the daemon's state at each scrape.

They report settings, cycles and restraints, sources and their age, findings and the streams they are about, acts and
their verdicts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from httpserver.config import WebConfigFile
from httpserver.metrics import WebConfigMetrics
from lustre import __version__
from tierd.act.claim import FilesystemClaim, NoClaim
from tierd.act.dispatch import DispatchState
from tierd.act.gate import Gate
from tierd.act.staging import OPEN, Stager, StagingState
from tierd.act.undo import Undo
from tierd.acts import JUDGED_VERDICTS, ActKind, Outcome
from tierd.config.settings import Settings
from tierd.daemon.log import LoopCounters
from tierd.daemon.loop import Daemon
from tierd.daemon.remediation import Remediation
from tierd.daemon.states import State
from tierd.model import Finding, SlowdownEvidence, Window
from tierd.policies.registry import has_victim, kinds_of_slowdowns
from tierd.refusal import PLAN_REASONS
from tierd.sense.changelogs.tally_source import TallyOutcome, TallySource
from tierd.sense.freshness import SourceState
from tierd.sense.powerflex import ErrorKind, Instance, PowerFlex, StoragePool, Volume
from tierd.sense.slurm import SlurmJobs
from tierd.verify.judgement import throughput


@dataclass(frozen=True)
class MetricsContext:
    """State of objects outside the daemon, for its metrics."""

    fs: str = ""
    """Name of the file system, a label of all families. Empty means no label."""
    claim: FilesystemClaim = field(default_factory=NoClaim)
    journal_bytes: Callable[[], int] = int
    positions: Callable[[], Mapping[str, int]] = dict
    """Last changelog record read, by MDT."""
    under_way_seconds: Callable[[], Mapping[str, float]] = dict
    """Time of the current step by activity, in seconds; 0 between two steps."""
    web_config: WebConfigFile | None = None
    powerflex: PowerFlex | None = None
    """The gateway of the storage below the OSTs; None without one."""
    tallies: TallySource | None = None
    """Tallies of changelog readers; None if the daemon reads the changelogs itself."""
    slurm: SlurmJobs | None = None
    """Jobs as Slurm describes them; None without Slurm."""
    stager: Stager | None = None
    """Stagings of jobs of a scheduler."""


MAX_JOB_INFOS = 200
"""Jobs with a series that names user, account and partition."""


def staging_metrics(stager: Stager) -> Iterator[Metric]:
    """Files that jobs stage."""
    yield GaugeMetricFamily("tierd_open_stagings", "Stagings of jobs that wait or move files.", len(stager))
    ended = CounterMetricFamily("tierd_stagings", "Stagings of jobs that have ended, by direction (promote: to flash)"
                                " and by the state in which they ended.", labels=("direction", "state"))
    for direction in ("promote", "demote"):
        for state in StagingState:
            if state not in OPEN:
                ended.add_metric((direction, state.value), stager.counts[direction, state])
    yield ended


def slurm_metrics(slurm: SlurmJobs) -> Iterator[Metric]:
    """Jobs that tierd showed last, as Slurm describes them."""
    info = InfoMetricFamily("tierd_job", "Always 1. The labels have name, user, account and partition of a job, by"
                                         " Slurm, for the jobs that tierd showed last.")
    for jobid, job in sorted(slurm.last(MAX_JOB_INFOS).items()):
        info.add_metric((), {"jobid": jobid, "name": job.name, "user": job.user, "account": job.account,
                             "partition": job.partition})
    yield info
    yield GaugeMetricFamily("tierd_slurm_up", "Whether the last answer of Slurm could be used (1) or not (0).",
                            float(not slurm.problem))


def reader_metrics(tallies: TallySource) -> Iterator[Metric]:
    """Changelog readers on other nodes, and what came of their tallies."""
    yield GaugeMetricFamily("tierd_readers", "Changelog readers that have described themselves in the last 20 s.",
                            len(tallies.readers))
    age = GaugeMetricFamily("tierd_reader_tally_age_seconds",
                            "Time since the last tally of the MDT that a reader sent, +Inf before the first.",
                            labels=("mdt",))
    problem = GaugeMetricFamily("tierd_reader_problem",
                                "Whether the reader of the MDT cannot read its changelog, or it records nothing (1), or"
                                " not (0).", labels=("mdt",))
    rereads = CounterMetricFamily("tierd_reader_rereads",
                                  "Requests to the reader of the MDT to read again from tierd's position.",
                                  labels=("mdt",))
    for mdt, progress in sorted(tallies.progress.items()):
        age.add_metric((mdt,), progress.age_seconds)
        problem.add_metric((mdt,), float(bool(progress.problem)))
        rereads.add_metric((mdt,), tallies.rereads[mdt])
    yield from (age, problem, rereads)
    found = CounterMetricFamily(
        "tierd_reader_tallies", "Tallies of changelog readers by outcome: added; duplicate and overlapping (their"
        " records are counted already); out_of_order (an earlier one is missing, and is read again); stale (of a reader"
        " that has lost its lease); malformed.", labels=("outcome",))
    for outcome in TallyOutcome:
        found.add_metric((outcome.value,), tallies.outcomes[outcome])
    yield found


def state_metrics(daemon: Daemon, gate: Gate, settings: Settings) -> Iterator[Metric]:
    """Settings, holds and cycles."""
    counters = daemon.counters
    info = InfoMetricFamily("tierd_build", "Always 1. The label names the release of tierd.")
    info.add_metric((), {"version": __version__})
    yield info
    yield GaugeMetricFamily("tierd_dry_run", "Whether tierd is in dry run and changes nothing (1) or acts (0).",
                            float(gate.dry_run))
    yield GaugeMetricFamily("tierd_observes_only",
                            "Whether the configured modes allow no acts (1) or some (0): observe and recommend allow"
                            " none.", float(settings.resolved_scopes.modes <= {"observe", "recommend"}))
    yield GaugeMetricFamily("tierd_learning",
                            "Whether tierd knows too little to rule out slowed streams (1) or enough (0).",
                            float(daemon.learning))
    own = InfoMetricFamily("tierd_own_job", "Always 1. The label has a job id of tierd's own moves.")
    for job in settings.own_jobs:
        own.add_metric((), {"jobid": job})
    yield own
    yield GaugeMetricFamily("tierd_paused",
                            "Whether acts are paused by an administrator, the pause file or the circuit breaker (1)"
                            " or not (0).", float(bool(gate.operating_state.paused or gate.operating_state.stopped)))
    yield GaugeMetricFamily("tierd_held",
                            "Whether tierd starts no new acts (1), because it is paused or outside the maintenance"
                            " windows, or may start them (0).", float(bool(gate.operating_state.last_held)))
    yield GaugeMetricFamily("tierd_breaker_open",
                            "Whether the circuit breaker is open and blocks acts (1) or closed (0).",
                            float(bool(gate.operating_state.tripped)))
    yield GaugeMetricFamily("tierd_last_cycle_timestamp_seconds", "Unix time when the last cycle ended.",
                            counters.last_cycle_at)
    yield GaugeMetricFamily("tierd_cycle_duration_seconds", "Duration of the last cycle.", counters.cycle_seconds)
    yield CounterMetricFamily("tierd_cycles", "Cycles completed since tierd started.", counters.cycles)
    yield CounterMetricFamily("tierd_changelog_records", "Changelog records read.", counters.records)


def restraint_metrics(daemon: Daemon, gate: Gate, beside: MetricsContext) -> Iterator[Metric]:
    """Claims, budget, queue, activities and changelog positions."""
    yield GaugeMetricFamily("tierd_draining",
                            "Whether tierd is draining (1) or not (0). While draining it finishes the queue and"
                            " starts nothing new.", float(bool(gate.operating_state.draining)))
    yield GaugeMetricFamily("tierd_claim_generation",
                            "Generation of the claim on the file system. 0 means that tierd holds no claim, as in a"
                            " dry run.", beside.claim.generation)
    yield GaugeMetricFamily("tierd_claim_refused",
                            "Whether another tierd holds the claim, so that this one may not act (1), or not (0).",
                            float("claim" in daemon.faults))
    yield GaugeMetricFamily("tierd_other_mover",
                            "Whether another program moves files under a job id of tierd (1) or not (0). tierd then"
                            " moves no files and starts no acts.", float("mover" in daemon.faults))
    wrong = GaugeMetricFamily("tierd_pool_wrong_disks",
                              "Whether the configured flash pool has rotating targets, or the configured disk pool has"
                              " only flash (1), or not as far as the servers report (0). tierd does not act into a"
                              " flash pool with rotating targets.", labels=("pool",))
    wrong_pools = daemon.media.wrong_pools()
    for pool in dict.fromkeys(pool for pair in daemon.media.pool_pairs for pool in (pair.flash, pair.hdd)):
        wrong.add_metric((pool,), float(pool in wrong_pools))
    yield wrong
    files, size_bytes = gate.budget_left
    yield GaugeMetricFamily("tierd_budget_files",
                            "Files that may be moved now without waiting. The configured limits refill this budget.",
                            files)
    yield GaugeMetricFamily("tierd_budget_bytes",
                            "Bytes that may be moved now without waiting. Negative after a large file.", size_bytes)
    yield GaugeMetricFamily("tierd_waiting_moves_bytes", "Bytes of the files queued for migration.",
                            gate.waiting_bytes)
    yield GaugeMetricFamily("tierd_waiting_default_layouts", "Default layouts of directories queued to be set.",
                            gate.waiting_defaults)
    under_way = GaugeMetricFamily("tierd_activity_under_way_seconds",
                                  "Time that the current step of the activity has taken so far. 0 between two steps.",
                                  labels=("activity",))
    for name, seconds in beside.under_way_seconds().items():
        under_way.add_metric((name,), seconds)
    yield under_way
    yield GaugeMetricFamily("tierd_journal_bytes", "Size of the journal.", beside.journal_bytes())
    yield GaugeMetricFamily("tierd_changelog_lag_seconds",
                            "Age of the oldest changelog record read in the last cycle, at the time it was read.",
                            daemon.counters.changelog_lag_seconds)
    position = GaugeMetricFamily("tierd_changelog_position", "Index of the last changelog record read, by MDT.",
                                 labels=("mdt",))
    for mdt, index in beside.positions().items():
        position.add_metric((mdt,), index)
    yield position


STANDING_BY = "Whether this tierd stands by for another one, which leads (1), or leads (0)."


def mover_metrics(state: DispatchState) -> Iterator[Metric]:
    """Movers on other nodes, and the moves that were sent to them."""
    yield GaugeMetricFamily("tierd_nats_up", "Whether tierd is connected to NATS (1) or not (0). Without NATS it plans"
                            " and moves nothing.", float(state.connected))
    movers = GaugeMetricFamily("tierd_movers", "Movers on other nodes, by state: working, or stopped because a file was"
                               " not as expected after its move.", labels=("state",))
    for word, stopped in (("working", False), ("stopped", True)):
        movers.add_metric((word,), sum(bool(mover.stopped) is stopped for mover in state.movers))
    yield movers
    yield GaugeMetricFamily("tierd_standing_by", STANDING_BY, 0.0)
    yield GaugeMetricFamily("tierd_standbys", "Standbys that have described themselves in the last 20 s.",
                            len(state.standbys))
    copied = GaugeMetricFamily("tierd_standby_copy_age_seconds",
                               "Time since the standby's copy of the journal was complete and it could lead, +Inf if"
                               " it never was.",
                               labels=("standby",))
    for standby in state.standbys:
        age = standby.copy_age_seconds
        copied.add_metric((standby.name,), float("inf") if age is None else age)
    yield copied
    under_way = GaugeMetricFamily("tierd_target_moves_under_way",
                                  "Files sent to movers without a result yet, by the target that holds them.",
                                  labels=("target",))
    for target, files in sorted(state.under_way.items()):
        under_way.add_metric((target,), files)
    yield under_way
    yield GaugeMetricFamily("tierd_oldest_move_message_seconds",
                            "Age of the oldest message with moves that has no result yet. 0 without one.",
                            state.oldest_seconds)
    yield GaugeMetricFamily("tierd_journal_lag_changes", "Changes of the journal that the standby cannot get yet.",
                            state.journal_lag)
    yield CounterMetricFamily("tierd_move_messages", "Messages with moves sent to movers.", state.messages)
    results = CounterMetricFamily("tierd_mover_results", "Results that movers reported, by result.", labels=("result",))
    for word, count in sorted(state.results.items()):
        results.add_metric((word,), count)
    yield results
    yield CounterMetricFamily("tierd_redelivered_messages",
                              "Messages that a second mover got, because the first one died, stood still or lost NATS.",
                              state.redelivered)
    yield CounterMetricFamily("tierd_stale_moves",
                              "Moves that a mover did not begin: the message was late, taken back, or of an earlier"
                              " leader.", state.stale)
    yield CounterMetricFamily("tierd_expired_moves",
                              "Moves without a result at their deadline. tierd looked at these files itself.",
                              state.expired)
    yield CounterMetricFamily("tierd_refused_results",
                              "Results that were malformed, or not signed with the claim of this tierd.", state.refused)


def source_metrics(daemon: Daemon, sources: Sequence[SourceState]) -> Iterator[Metric]:
    """State of each source, by name."""
    blind = GaugeMetricFamily("tierd_source_blind",
                              "Whether the source cannot be read (1) or can be read (0). tierd does not act while a"
                              " source cannot be read.", labels=("source",))
    for source in ("blind", "changelog"):
        blind.add_metric((("counters" if source == "blind" else source),), float(source in daemon.faults))
    yield blind
    age = GaugeMetricFamily("tierd_source_age_seconds",
                            "Age of the latest data of the source, by the source's own timestamps where it has them."
                            " +Inf means no data yet.", labels=("source",))
    limit = GaugeMetricFamily("tierd_source_age_limit_seconds",
                              "Limit on the age of the source's data. tierd does not act on older data.",
                              labels=("source",))
    stale = GaugeMetricFamily("tierd_source_stale",
                              "Whether the data of the source is too old or the source has an error (1) or not (0).",
                              labels=("source",))
    for state in sources:
        age.add_metric((state.name,), state.age_seconds)
        limit.add_metric((state.name,), state.limit_seconds)
        stale.add_metric((state.name,), float(state.stale))
    yield from (age, limit, stale)


def powerflex_metrics(powerflex: PowerFlex) -> Iterator[Metric]:
    """The storage below the OSTs, as of the last answer of its gateway. Without an answer, only the errors."""
    errors = CounterMetricFamily("tierd_powerflex_errors", "Requests to the PowerFlex gateway that failed, by reason.",
                                 labels=("reason",))
    for kind in ErrorKind:
        errors.add_metric((kind.value,), powerflex.gateway.errors[kind])
    yield errors
    slowed = GaugeMetricFamily("tierd_powerflex_target_slowed",
                               "1 if PowerFlex rebuilds or rebalances below the target, or if its state is unknown;"
                               " otherwise 0. While it is 1, tierd blames no job on the target.",
                               labels=("target", "volume"))
    work = powerflex.storage_work()
    for volume, target in powerflex.targets():
        slowed.add_metric((short_name(target), volume), float(target in work))
    yield slowed
    system = powerflex.system
    if system is None:
        return
    yield labelled("tierd_powerflex_mdm_cluster_info", "Always 1. The label has the state of the cluster of MDMs.",
                   ("state",), [((system.cluster_state or "unknown",), 1)])
    yield labelled("tierd_powerflex_mdm_good_nodes", "MDMs and tie breakers that work.", (), [((), system.good_nodes)])
    yield labelled("tierd_powerflex_mdm_good_replicas", "MDMs with a copy of the configuration that work.", (),
                   [((), system.good_replicas)])
    yield from instance_metrics("sds", "data server", system.data_servers)
    yield from instance_metrics("sdc", "data client", system.data_clients)
    yield labelled("tierd_powerflex_devices", "Devices of data servers, by state.", ("state",),
                   [((state,), number) for state, number in sorted(system.devices.items())])
    yield from pool_metrics(system.pools)
    yield from volume_metrics(system.volumes)


Rows = Sequence[tuple[tuple[str, ...], float | None]]


def labelled(name: str, text: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    """A gauge with a series for each row with a known value. Of rows with the same labels, the first counts."""
    found = GaugeMetricFamily(name, text, labels=labels)
    for values, number in {row[0]: row[1] for row in reversed(rows)}.items():
        if number is not None:
            found.add_metric(values, number)
    return found


def instance_metrics(kind: str, what: str, instances: Sequence[Instance]) -> Iterator[Metric]:
    """Data servers or data clients."""
    yield labelled(f"tierd_powerflex_{kind}_connected",
                   f"Whether the PowerFlex {what} is connected to the MDM (1) or not (0).", (kind,),
                   [((one.name,), None if one.connected is None else float(one.connected)) for one in instances])
    if kind == "sds":
        yield labelled("tierd_powerflex_sds_in_maintenance",
                       "Whether the PowerFlex data server is in maintenance (1) or not (0).", (kind,),
                       [((one.name,), None if one.in_maintenance is None else float(one.in_maintenance))
                        for one in instances])
    yield labelled(f"tierd_powerflex_{kind}_info",
                   f"Always 1. The label has the performance profile of the PowerFlex {what}.", (kind, "profile"),
                   [((one.name, one.profile), 1) for one in instances])
    yield labelled(f"tierd_powerflex_{kind}_setting", f"Settings of the PowerFlex {what} that the gateway shows.",
                   (kind, "setting"),
                   [((one.name, name), value) for one in instances for name, value in one.tunables.items()])


def pool_metrics(pools: Sequence[StoragePool]) -> Iterator[Metric]:
    """Storage pools."""
    for name, text, values in (
        ("size", "Size of the PowerFlex storage pool.", [one.size_bytes for one in pools]),
        ("used", "Used space of the PowerFlex storage pool, with all copies.", [one.used_bytes for one in pools]),
        ("degraded", "Data of the PowerFlex storage pool with one copy left.", [one.degraded_bytes for one in pools]),
        ("failed", "Data of the PowerFlex storage pool without a copy.", [one.failed_bytes for one in pools]),
    ):
        yield labelled(f"tierd_powerflex_pool_{name}_bytes", text, ("pool",),
                       [((pool.name,), value) for pool, value in zip(pools, values, strict=True)])
    each = [((pool.name, kind.value), work) for pool in pools for kind, work in pool.work.items()]
    yield labelled("tierd_powerflex_pool_work_bytes_per_second",
                   "Bytes that the PowerFlex storage pool writes for a rebuild or rebalance.", ("pool", "work"),
                   [(labels, work.bytes_per_second) for labels, work in each])
    yield labelled("tierd_powerflex_pool_work_active_bytes", "Data in a rebuild or rebalance now.", ("pool", "work"),
                   [(labels, work.active_bytes) for labels, work in each])
    yield labelled("tierd_powerflex_pool_work_pending_bytes", "Data that waits for a rebuild or rebalance.",
                   ("pool", "work"), [(labels, work.pending_bytes) for labels, work in each])


def volume_metrics(volumes: Sequence[Volume]) -> Iterator[Metric]:
    """Volumes."""
    yield labelled("tierd_powerflex_volume_size_bytes", "Size of the PowerFlex volume.", ("volume", "pool"),
                   [((one.name, one.pool), one.size_bytes) for one in volumes])
    yield labelled("tierd_powerflex_volume_read_bytes_per_second", "Bytes read from the PowerFlex volume.",
                   ("volume", "pool"), [((one.name, one.pool), one.read_bytes_per_second) for one in volumes])
    yield labelled("tierd_powerflex_volume_write_bytes_per_second", "Bytes written to the PowerFlex volume.",
                   ("volume", "pool"), [((one.name, one.pool), one.write_bytes_per_second) for one in volumes])


def finding_metrics(daemon: Daemon, settings: Settings) -> Iterator[Metric]:
    """Started and active findings by kind."""
    counters = daemon.counters
    found = CounterMetricFamily("tierd_findings", "Findings started, by kind.", labels=("kind",))
    for kind in finding_kinds(settings):
        found.add_metric((kind,), counters.found[kind])
    yield found
    active = GaugeMetricFamily("tierd_active_findings", "Findings active now, by kind.", labels=("kind",))
    for kind in finding_kinds(settings):
        active.add_metric((kind,), sum(f.kind == kind for f in daemon.findings))
    yield active


def finding_kinds(settings: Settings) -> tuple[str, ...]:
    """All possible kinds of findings, so that each has a series before its first."""
    return (*kinds_of_slowdowns(), *(c.policy.name for c in settings.policies))


Pair = tuple[str, str]
"""Victim and aggressor."""
RECENT_SECONDS = 30.0
"""Throughput now is the mean over this time if a single window varies too much."""


@dataclass(frozen=True, slots=True)
class SlowedStream:
    """A pair of jobs in a finding that holds, in a remediation that is not closed, or in both."""

    widest: Finding
    """The finding with the most targets since the pair is known. A finding may rest on fewer targets for one cycle, and
    its throughput is that on these targets."""
    active: Finding | None
    """The finding, if it holds now."""
    case: Remediation | None
    """The remediation, if it is not closed."""

    @property
    def evidence(self) -> SlowdownEvidence:
        """The numbers of the finding with the most targets."""
        assert self.widest.evidence.of_stream is not None
        return self.widest.evidence.of_stream


def slowed_streams(daemon: Daemon, known: Mapping[Pair, SlowedStream]) -> dict[Pair, SlowedStream]:
    """The pairs of now. ``known`` are those of the last call."""
    active = {f.key: f for f in daemon.findings if has_victim(f)}
    cases = {c.finding.key: c for c in daemon.cases
             if not c.closed and has_victim(c.finding)}
    found = {}
    for key in dict.fromkeys((*cases, *active)):
        case, now = cases.get(key), active.get(key)
        candidates = [f for f in (now, case.finding if case else None) if f is not None]
        pair = candidates[0].victim, candidates[0].aggressor
        if pair in known:
            candidates.append(known[pair].widest)
        found[pair] = SlowedStream(max(candidates, key=lambda f: len(f.targets)), now, case)
    return found


def recent_rates(windows: Sequence[Window], streams: Mapping[Pair, SlowedStream]) -> dict[Pair, tuple[float, float]]:
    """Recent throughput of each victim on the targets of its finding, and on all others; bytes per second."""
    recent: list[Window] = []
    for window in reversed(windows):
        if recent and recent[0].end - window.start > RECENT_SECONDS:
            break
        recent.append(window)
    victims = {victim for victim, _ in streams}
    moved = {victim: defaultdict[str, float](float) for victim in victims}
    for window in recent:
        for (target, job), load in window.loads.items():
            if job in victims:
                moved[job][target] += load.moved_bytes
    seconds = sum(window.seconds for window in recent) or 1.0
    found = {}
    for pair, stream in streams.items():
        here = sum(moved[pair[0]][target] for target in stream.widest.targets)
        found[pair] = here / seconds, (sum(moved[pair[0]].values()) - here) / seconds
    return found


def stream_metrics(daemon: Daemon, streams: Mapping[Pair, SlowedStream]) -> Iterator[Metric]:
    """Streams in findings and remediations: their slowdown, and their throughput before the aggressor and now."""
    slowdown = GaugeMetricFamily("tierd_interference_slowdown",
                                 "Slowdown factor of the victim compared with its throughput before the aggressor"
                                 " started, by target. Exposed until the remediation is closed.",
                                 labels=("target", "aggressor", "victim"))
    usual = GaugeMetricFamily("tierd_victim_usual_bytes_per_second",
                              "Throughput of the victim before the aggressor started, which acts are expected to"
                              " restore.", labels=("victim", "aggressor"))
    now = GaugeMetricFamily("tierd_victim_bytes_per_second", "Throughput of the victim in the latest window.",
                            labels=("victim", "aggressor"))
    windows = daemon.windows
    rates = recent_rates(windows, streams)
    for (victim, aggressor), stream in streams.items():
        here, elsewhere = rates[victim, aggressor]
        usual.add_metric((victim, aggressor), stream.evidence.victim_usual_bytes_per_second + elsewhere)
        if windows:
            now.add_metric((victim, aggressor), throughput(windows[-1], victim))
        factor = stream.evidence.victim_usual_bytes_per_second / here if here else None
        if stream.active is not None and stream.active.evidence.of_stream is not None:
            factor = stream.active.evidence.of_stream.slowdown
        if factor is not None:
            for target in stream.widest.targets:
                slowdown.add_metric((short_name(target), aggressor, victim), factor)
    yield from (usual, now, slowdown)


def short_name(target: str) -> str:
    """The name of a target without the file system, as the exporter's label has it.

    >>> short_name("lustre-OST0003"), short_name("a-b-MDT0000")
    ('OST0003', 'MDT0000')
    """
    return target.rpartition("-")[2]


def case_metric(daemon: Daemon, gate: Gate, streams: Mapping[Pair, SlowedStream]) -> Metric:
    """The cases: a finding about a stream, and what tierd does about it."""
    cases = GaugeMetricFamily("tierd_case_begun_timestamp_seconds",
                              "Unix time when tierd found that the aggressor slows the victim, or began to act on it."
                              " Labels: number of the finding, state (found, then that of the remediation), verdict,"
                              " and why tierd does not act, or empty. Exposed until two minutes after the verdict.",
                              labels=("id", "victim", "aggressor", "state", "verdict", "reason"))
    for (victim, aggressor), stream in streams.items():
        case, finding = stream.case, stream.active or stream.widest
        number = case.number if case else daemon.number(finding)
        if not number:
            continue  # it has just ended
        labels = (f"F{number}", victim, aggressor,
                  case.state if case else "found", case.verdict if case else "", hindrance(daemon, gate, stream))
        cases.add_metric(labels, case.begun_at if case else daemon.recorded(finding).time)
    for closed in just_closed(daemon):
        key = closed.finding.victim, closed.finding.aggressor
        if key not in streams:
            cases.add_metric((f"F{closed.number}", *key, closed.state, closed.verdict, ""), closed.begun_at)
    return cases


CLOSED_SECONDS = 120.0
"""A case that is closed with its verdict is exposed so long, so that Prometheus sees the verdict."""


def just_closed(daemon: Daemon) -> Iterator[Remediation]:
    """Closed remediations of slowed streams that were judged lately."""
    now = daemon.windows[-1].end if daemon.windows else 0.0
    for case in daemon.cases:
        judged = case.judged_at and now - case.judged_at < CLOSED_SECONDS
        if judged and case.state is State.CLOSED and has_victim(case.finding):
            yield case


def hindrance(daemon: Daemon, gate: Gate, stream: SlowedStream) -> str:
    """A word for why tierd does not act on a finding; empty while it acts or where it has acted."""
    if stream.case is not None and stream.case.state not in {State.PLANNED, State.KEPT}:
        return ""
    if stream.case is not None and stream.case.verdict:
        return ""
    if gate.dry_run:
        return "dry-run"
    if (held := gate.operating_state.last_held) is not None:
        return str(held.reason)
    if stream.case is not None:
        return ""
    if gate.operating_state.draining:
        return "draining"
    if stream.widest.advice_only:
        return "advice"
    if daemon.blocking_faults:
        return "source"
    refusals = daemon.why_not(stream.active or stream.widest)
    return str(refusals[0].reason) if refusals else ""


JOBS_OF_TARGET = 5
"""Jobs with a series of device time for each target: those with the largest shares."""


def device_time_metrics(daemon: Daemon) -> Iterator[Metric]:
    """Device time of jobs, and utilisation, of targets whose costs of service are known."""
    share = GaugeMetricFamily("lustre_target_device_time_share",
                              "Estimated share of the target's service time that the job takes, for the"
                              f" {JOBS_OF_TARGET} jobs that take most.", labels=("target", "jobid"))
    busy = GaugeMetricFamily("lustre_target_utilisation_ratio",
                             "Estimated share of the time in which the target is busy, by what targets of its pool"
                             " have been seen to do.", labels=("target",))
    for target, time in daemon.device_time.items():
        busy.add_metric((short_name(target),), time.utilisation)
        for job, part in time.top(JOBS_OF_TARGET):
            share.add_metric((short_name(target), job), part)
    yield share
    yield busy


def act_metrics(gate: Gate) -> Iterator[Metric]:
    """Moves and default layouts, by outcome."""
    moves = CounterMetricFamily("tierd_moves", "Files taken from the queue, by outcome.", labels=("outcome",))
    defaults = CounterMetricFamily("tierd_default_layouts",
                                   "Default layouts of directories taken from the queue, by outcome.",
                                   labels=("outcome",))
    never = {(kind, result): 0 for kind in (ActKind.MIGRATE, ActKind.SET_DEFAULT_LAYOUT)
             for result in (Outcome.DONE, Outcome.FAILED)}  # the first act must be an increase
    for (kind, result), count in sorted({**never, **gate.completed_acts.counts}.items()):
        (moves if kind == ActKind.MIGRATE else defaults).add_metric((result,), count)
    yield moves
    yield defaults
    yield CounterMetricFamily("tierd_moved_bytes", "Bytes of moved files.", gate.completed_acts.moved_bytes)
    yield GaugeMetricFamily("tierd_waiting_moves", "Files queued for migration.", gate.waiting)
    yield GaugeMetricFamily("tierd_moves_give_way",
                            "Whether all queued moves wait for streams on their targets (1) or not (0). Such moves"
                            " are made at a low rate.", float(gate.gives_way))


def verdict_metrics(counters: LoopCounters, undo: Undo) -> Iterator[Metric]:
    """Verdicts, refusals, undone acts, and gains."""
    verdicts = CounterMetricFamily("tierd_judgements", "Acts judged by the throughput of the victim, by verdict.",
                                   labels=("verdict",))
    for verdict in JUDGED_VERDICTS:
        verdicts.add_metric((verdict,), counters.verdicts[verdict])
    yield verdicts
    refusals = CounterMetricFamily("tierd_refusals", "Refused plans and parts of plans, by reason.",
                                   labels=("reason",))
    for reason in sorted(PLAN_REASONS.union(tuple(counters.refusals))):
        refusals.add_metric((reason,), counters.refusals[reason])
    yield refusals
    yield CounterMetricFamily("tierd_undone", "Acts undone.", undo.undone)
    gained = GaugeMetricFamily("tierd_won_back_ratio",
                               "Share of the victim's lost throughput that the last judged act recovered.",
                               labels=("victim",))
    for victim, part in sorted(counters.gained.items()):
        gained.add_metric((victim,), part)
    yield gained
    expected = GaugeMetricFamily("tierd_expected_gain_bytes_per_second",
                                 "Throughput that the victim had lost, which the last judged act could recover at"
                                 " most.", labels=("victim",))
    measured = GaugeMetricFamily("tierd_measured_gain_bytes_per_second",
                                 "Throughput that the last judged act recovered for the victim.", labels=("victim",))
    for victim, (could, did) in sorted(counters.gains.items()):
        expected.add_metric((victim,), could)
        measured.add_metric((victim,), did)
    yield from (expected, measured)


def last_event_metric(daemon: Daemon, gate: Gate, undo: Undo) -> Metric:
    """Times of the last events. They start at 0, so that the first event is a change."""
    when = GaugeMetricFamily("tierd_last_event_timestamp_seconds",
                             "Unix time of the last event, by kind of event. 0 means there was none.",
                             labels=("event",))
    counters, last = daemon.counters, gate.completed_acts.last
    carried_out = (ActKind.SET_DEFAULT_LAYOUT, ActKind.MIGRATE)
    for event, at in (
        ("finding", max(counters.found_at.values(), default=0.0)),
        ("slowdown", max((counters.found_at.get(kind, 0.0) for kind in kinds_of_slowdowns()), default=0.0)),
        ("default-layout", last.get((ActKind.SET_DEFAULT_LAYOUT, Outcome.DONE), 0.0)),
        ("move", last.get((ActKind.MIGRATE, Outcome.DONE), 0.0)),
        ("moves-begun", gate.completed_acts.moves_begun_at),
        ("dry-run", max(last.get((kind, Outcome.DRY_RUN), 0.0) for kind in carried_out)),
        ("failure", max(last.get((kind, Outcome.FAILED), 0.0) for kind in carried_out)),
        ("undo", undo.undone_at),
        ("verdict", counters.judged_at),
    ):
        when.add_metric((event,), at)
    return when


Sources = Callable[[], Sequence[SourceState]]


class DaemonCollector(Collector):
    """Reads the state of the running daemon."""

    def __init__(self, daemon: Daemon, gate: Gate, undo: Undo, settings: Settings,
                 sources: Sources = tuple, beside: MetricsContext | None = None) -> None:
        self._beside = beside or MetricsContext()
        self._daemon = daemon
        self._gate = gate
        self._undo = undo
        self._settings = settings
        self._sources = sources
        self._streams: Mapping[Pair, SlowedStream] = {}
        """Those of the last scrape."""

    def collect(self) -> Iterator[Metric]:
        """All families, read without waiting for any activity."""
        for family in self._families():
            yield self._labelled(family)

    def _families(self) -> Iterator[Metric]:
        daemon, gate, undo, settings = self._daemon, self._gate, self._undo, self._settings
        yield from state_metrics(daemon, gate, settings)
        yield from source_metrics(daemon, self._sources())
        yield from restraint_metrics(daemon, gate, self._beside)
        if self._beside.powerflex is not None:
            yield from powerflex_metrics(self._beside.powerflex)
        if self._beside.tallies is not None:
            yield from reader_metrics(self._beside.tallies)
        if self._beside.stager is not None:
            yield from staging_metrics(self._beside.stager)
        if self._beside.slurm is not None:
            yield from slurm_metrics(self._beside.slurm)
        yield from finding_metrics(daemon, settings)
        self._streams = slowed_streams(daemon, self._streams)
        yield from stream_metrics(daemon, self._streams)
        yield case_metric(daemon, gate, self._streams)
        yield from device_time_metrics(daemon)
        yield from act_metrics(gate)
        if (cluster := gate.dispatch.state()) is not None:
            yield from mover_metrics(cluster)
        yield from verdict_metrics(daemon.counters, undo)
        yield last_event_metric(daemon, gate, undo)
        if self._beside.web_config is not None:
            yield from WebConfigMetrics(self._beside.web_config, "tierd_").collect()

    def _labelled(self, family: Metric) -> Metric:
        """The family with the label of the file system."""
        if self._beside.fs:
            family.samples = [s._replace(labels={**s.labels, "fs": self._beside.fs}) for s in family.samples]
        return family


def registry(daemon: Daemon, gate: Gate, undo: Undo, settings: Settings, sources: Sources = tuple,
             beside: MetricsContext | None = None) -> CollectorRegistry:
    """A registry with the metrics of the daemon and of the process."""
    made = CollectorRegistry()
    made.register(DaemonCollector(daemon, gate, undo, settings, sources, beside))
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=made)
    return made
