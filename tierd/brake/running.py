"""The brake in the leader: which jobs are slowed, and what each OSS gets."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

from tierd.brake.cases import MEASURE_SECONDS, REST_SECONDS, BrakedJob, limit_of, load_of
from tierd.brake.rules import OssState, WantedRule, WantedRules
from tierd.config.act import Mode
from tierd.daemon.loop import Daemon
from tierd.extensions import Extension
from tierd.model import Finding
from tierd.policies.registry import policy_for
from tierd.structs import decoded, json_text
from tierd.text import bytes_text, percent, printable

log = logging.getLogger("tierd.brake")
CERTAIN_LOSS = 0.1
"""A brake begins when the stream loses so much with a probability of 95%. A choice: with less it has nine tenths."""
LEASE_SECONDS = 30.0
"""An OSS that has not asked for this time no longer has rules."""
SURE_SECONDS = 15.0
"""Time for which rules stay wanted after the last cycle in which tierd might act: a late reading ends no brake."""
RESTS_STATE = "brake_rests"
"""Name of the pauses after brakes in the journal: a reload and a restart are no reason to brake a job again."""
MAX_NODES, MAX_TEXT = 4096, 300
"""OSSs that are remembered, and characters of its report that are logged. A choice."""


class Brake(Extension):
    """One step after each cycle, and one before each answer to an OSS, which ends brakes even without new readings.
    Safe in any thread.
    """

    def __init__(self, daemon: Daemon, _: object = None) -> None:
        self._daemon, self._clock, self._settings = daemon, daemon.parts.node.clock, daemon.parts.settings
        self._lock = threading.RLock()
        self._known: dict[str, tuple[OssState, float]] = {}
        self._braked: dict[str, BrakedJob] = {}
        self._rests = decoded(daemon.parts.journal.state().get(RESTS_STATE, "{}"), dict[str, float])
        """Until when a job must not be braked again."""
        self._said: dict[int, str] = {}
        """The last line about each finding."""
        self._seen = self._sure_at = 0.0
        self._fs = daemon.parts.node.filesystem.fsname.replace("-", "_")  # as names of rules may have it
        self.posted = {"brake": self.answer} if self._settings.act.brake else {}

    def step(self) -> None:
        with self._lock:
            windows, now = self._daemon.windows, self._clock.now()
            if not self._settings.act.brake or not windows:
                return
            is_new, self._seen = windows[-1].end != self._seen, windows[-1].end
            self._known = {node: each for node, each in self._known.items() if 0 <= now - each[1] < LEASE_SECONDS}
            self._rests = {job: until for job, until in self._rests.items() if now < until <= now + REST_SECONDS}
            self._said = dict(list(self._said.items())[-MAX_NODES:])
            may_act = self._daemon.may_begin and not self._settings.act.dry_run
            self._sure_at = now if may_act else self._sure_at
            for braked in list(self._braked.values()):
                known = self._serving(limit.finding for limit in braked.limits.values())
                if is_new:
                    braked.update(windows[-1], self._daemon.engine.tracks.known, known, len(self._jobs_of(braked)))
                end = (("tierd may not act now", 0.0) if not 0 <= now - self._sure_at < SURE_SECONDS else
                       ("tbf was stopped, or no agent is running", 0.0) if not known else
                       ("its new files go elsewhere", MEASURE_SECONDS) if self._is_cured(braked) else
                       braked.end(windows, now) if is_new else None)
                if end is not None:
                    self._release(braked, *end)
            for finding in self._daemon.findings if may_act and is_new else ():
                if self._may_begin(finding):
                    self._begin(finding, now)

    def _is_cured(self, braked: BrakedJob) -> bool:
        """Whether the job only finishes old files there: new files have another default layout, and no moves wait. At
        the rate of the rule that may take minutes, in which its files elsewhere are slowed too.
        """
        case = self._daemon.store.get(braked.finding.key)
        return (case is not None and bool(case.defaults) and 0 < braked.in_force_at <= self._seen - MEASURE_SECONDS
                and braked.began_at - MEASURE_SECONDS <= case.begun_at < self._seen
                and not self._daemon.parts.gate.queue.waiting_for(case.finding.key))

    def _may_begin(self, finding: Finding) -> bool:
        """Whether a brake may begin: the loss is certain, the aggressor is a job that tierd acts on or a stream, its
        scopes allow acts, and no other brake affects the two jobs.
        """
        stream, gate = finding.evidence.of_stream, self._daemon.parts.gate
        if (stream is None or finding.held or finding.advice_only is not (policy_for(finding).plan is None)
                or stream.loss_low < CERTAIN_LOSS or gate.operating_state.draining):
            return False
        job, victim, scopes = finding.aggressor, finding.victim, self._settings.resolved_scopes
        modes = {scopes.of(each).mode for each in finding.directories or ("/",)}
        if Mode.OBSERVE in modes or (Mode.ASK in modes and not gate.approvals.approved(finding.key)):
            return False
        case = self._daemon.store.get(finding.key)
        if case is not None and case.defaults and case.begun_at < self._seen - MEASURE_SECONDS:
            return False  # its new files go elsewhere, and the rule would slow them too
        return job not in self._rests and victim not in self._braked and all(
            job not in other.limits and (each != job or victim not in other.limits)
            for each, other in self._braked.items())

    def _begin(self, finding: Finding, now: float) -> None:
        job, number = finding.aggressor, self._daemon.log.known_number(finding)
        known = self._serving([finding])
        load, stream = load_of(job, self._daemon.windows[-1]), finding.evidence.of_stream
        track = self._daemon.engine.tracks.known.get(finding.victim)
        limit = limit_of(finding, stream, track, load) if stream else None
        braked = self._braked.get(job) or BrakedJob(number=number, fs=self._fs, finding=finding, began_at=now,
                                                    before=load, now=load)
        same_name = (each for each in self._braked.values() if each is not braked and each.name == braked.name)
        if limit is None or not number or any(same_name):
            return
        jobs = self._jobs_of(braked, finding.victim)
        if not known or not WantedRule(name=braked.name, jobs=jobs, rate=1).is_safe:
            self._say(number, "NOT BRAKED: " + ("its job ids cannot be in a rule" if known else (
                "no OSS of its targets has both a running agent and the tbf policy with rules for jobs")))
            return
        braked.limits[finding.victim] = limit
        braked.set_rates(self._serving(limit.finding for limit in braked.limits.values()), len(jobs))
        if braked.rates:
            self._braked[job] = braked
            self._publish()
            rates = " and ".join(f"{rate} RPC/s on {printable(node)}" for node, rate in sorted(braked.rates.items()))
            left = f"loses {percent(limit.lost)} at most" if limit.lost else "gets as much as it does"
            self._say(number, f"BRAKED {job}: {rates} at most (rule {braked.name}), so that {finding.victim} {left}")

    def _jobs_of(self, braked: BrakedJob, victim: str = "") -> tuple[str, ...]:
        """Job ids for its rule: if it is an array, a stream that it slows may be a task of it."""
        return tuple(job for job in self._daemon.engine.jobs_of(braked.finding) if job not in {victim, *braked.limits})

    def _serving(self, findings: Iterable[Finding]) -> list[OssState]:
        targets = {target for finding in findings for target in finding.targets}
        return [oss for oss, _ in self._known.values() if oss.takes_rules and not targets.isdisjoint(oss.targets)]

    def _release(self, braked: BrakedJob, why: str, rest_seconds: float) -> None:
        del self._braked[braked.finding.aggressor]
        self._rests[braked.finding.aggressor] = self._clock.now() + rest_seconds
        self._daemon.parts.journal.set_state({RESTS_STATE: json_text(self._rests)})
        self._publish()
        won, lost = (bytes_text(max(size, 0.0)) for size in (braked.won_bytes, braked.lost_bytes))
        self._say(braked.number, f"RELEASED {braked.finding.aggressor}: {why}; {braked.finding.aggressor} moved about "
                  f"{lost} less than before, {' and '.join(braked.limits)} {won} more")

    def _publish(self) -> None:
        """Tell detection and the judge what is slowed on purpose."""
        self._daemon.engine.kept = {limit.finding.key: limit.finding for braked in self._braked.values()
                                    for limit in braked.limits.values()}
        self._daemon.store.braked = {job: braked.began_at for job, braked in self._braked.items()}

    def _say(self, number: int, words: str) -> None:
        if self._said.get(number) != words:
            self._said[number] = words
            self._daemon.log.of_number(number, [words])

    def answer(self, request: Mapping[str, object]) -> WantedRules:
        """The rules for an OSS. Raises ValueError for an invalid request."""
        oss = OssState.from_json(request)
        with self._lock:
            former = self._known.get(oss.node)
            if former is None and len(self._known) >= MAX_NODES:
                raise ValueError("too many OSSs send requests")
            if oss.trouble and (former is None or former[0].trouble != oss.trouble):
                log.warning("brake on %s: %s", printable(oss.node[:MAX_TEXT]), printable(oss.trouble[:MAX_TEXT]))
            self._known[oss.node] = oss, self._clock.now()
            self.step()
            return WantedRules(tuple(
                WantedRule(name=braked.name, jobs=self._jobs_of(braked), rate=braked.rates[oss.node])
                for braked in self._braked.values() if oss.node in braked.rates), self._fs)

    def metrics(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("tierd_braked_jobs", "Jobs slowed by TBF rules now.", value=len(self._braked))


start = Brake
