"""Runs one cycle of detection: a new window in, findings and plans out. The daemon and replay use it.

A finding is planned by its policy, with the pools and the mode of each directory's scope. One whose policy has no plan
is reported with its advice, and tierd does nothing about it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import log
from statistics import median
from typing import Any

import numpy as np

from lustre.fid import Fid
from lustre.layout.model import Layout
from tierd.arrays import ArrayTracker, with_arrays
from tierd.config.act import mode_allows
from tierd.config.scopes import ResolvedScopes
from tierd.config.settings import Settings
from tierd.decide.plans import Plan, joined
from tierd.detect import attribution
from tierd.detect.accelerators import Accelerator, SmallWrites, accelerators, small_writes_of_pools
from tierd.detect.columns import SPAN_SECONDS, History, RecentWindows, pool_numbers, recent_work
from tierd.detect.costs import CostLearner
from tierd.detect.device_time import StreamWatch, TargetTime, device_times
from tierd.detect.gain import Tracks
from tierd.detect.interference import Interference
from tierd.detect.profile import profiles
from tierd.detect.view import SlowdownView, View, is_found
from tierd.loads import Loads, NamespaceLoads
from tierd.model import (
    Action,
    Activities,
    Capacity,
    DirectoryActivity,
    EarlierWork,
    Facts,
    Finding,
    StreamedTargets,
    Window,
)
from tierd.policies.protocol import Situation
from tierd.policies.registry import has_victim, policies, policy_for, policy_of
from tierd.policies.runner import PolicyRunner, words_of_error
from tierd.refusal import Reason, Refusal

OLD_SECONDS = 90.0
"""Findings of half minutes older than this, from before a gap in the counters, are dropped."""
MAX_EARLY_FACTS = 12
"""First cycles that read facts until pools, and disks that small writes wait for, are known. A choice."""
LEAST_REMEMBERED = 0.1
"""Least relative error of a usual throughput from Prometheus' history: files and targets differ from run to run."""


@dataclass(frozen=True, slots=True)
class CycleFindings:
    """Findings of one cycle."""

    findings: tuple[Finding, ...]
    """All active findings, with their directories."""
    begun: tuple[Finding, ...]
    """Findings that were not active in the previous cycle."""
    ended: tuple[Finding, ...]
    """Findings that are no longer active, as of the previous cycle."""


class Engine:
    """Runs the policies. Holds the history of windows and the active findings, which hysteresis needs."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.history = History(settings.history_seconds, settings.noisy_neighbour.recent_seconds)
        self._active: dict[tuple[str, str, str], Finding] = {}
        self._remembered: dict[str, int] = {}
        """Windows of Prometheus' history by job."""
        self._recent = RecentWindows(settings.noisy_neighbour.recent_seconds, settings.noisy_neighbour.classes)
        self._interference = Interference()
        verify = settings.verify
        self.tracks = Tracks(verify.judge_seconds,
                             verify.moving_seconds + verify.settle_seconds + 2 * verify.judge_seconds)
        """Slowed streams, and those on the same targets, for verdicts."""
        self.kept: Mapping[tuple[str, str, str], Finding] = {}
        """Findings that hold as they were while their aggressors are slowed on purpose. Nothing is found about what
        these aggressors lose meanwhile."""
        self.acted_for: Collection[str] = ()
        """Victims whose acts have no verdict yet."""
        self.watch = PolicyRunner(settings.policies)
        self._facts = Facts()
        self._small_writes: Mapping[str, SmallWrites] = {}
        self._request_msec: Mapping[str, float] = {}
        """By target, how long the disk I/O of a request takes: the median of three readings, as one may be odd."""
        self._targets_of_victims: frozenset[str] = frozenset()
        """Targets of active findings with a disturbed stream."""
        self._accelerators: Mapping[str, Accelerator] = {}
        """By target, as the present facts show them."""
        self.learner = CostLearner()
        """What service costs, also as an earlier run learned it."""
        self._arrays = ArrayTracker()
        self._tasks: Mapping[str, tuple[str, ...]] = {}
        """Tasks of each large array since the oldest window."""
        self.device_time: Mapping[str, TargetTime] = {}
        """What each job recently takes of the service time of each target whose costs are known."""
        self._streams = StreamWatch(settings.resolved_scopes.flash_pools)
        self.streamed_targets: StreamedTargets | None = None
        """Targets whose streams would lose throughput to further work; None while windows or pools are not known."""
        self._early_facts = 0
        self._forgot_at = 0.0
        """When jobs that are gone were forgotten; end of a window."""

    def take_over(self, before: Engine, active: Collection[tuple[str, str, str]]) -> tuple[Finding, ...]:
        """Continue where an engine with the same sources ended. Of its findings, those with these keys hold until the
        next window; returns them.
        """
        self.history, self._arrays, self._tasks = before.history, before._arrays, before._tasks
        self._recent, self._interference = before._recent, before._interference
        self._streams.fastest, self.tracks.known = before._streams.fastest, before.tracks.known
        self.watch.take_over(before.watch)
        self._active = {key: finding for key, finding in before._active.items() if key in active}
        self.learner = before.learner
        settings = self._settings.noisy_neighbour
        self.history.recent_seconds = self._recent.seconds = settings.recent_seconds
        self._recent.classes = settings.classes
        return tuple(self._active.values())

    def use_history(self, windows: Sequence[Window], jobs: Collection[str]) -> None:
        """Learn the usual rates of these jobs from Prometheus' history."""
        rates: dict[str, list[float]] = {}
        for window in windows:
            for job, bytes_per_second in window.moved.items():
                if job in jobs and bytes_per_second:
                    rates.setdefault(job, []).append(log(bytes_per_second))
        self._remembered = {job: len(each) for job, each in rates.items()}
        self._interference.remember({self._recent.jobs[job]: usual_rate(each) for job, each in rates.items()})

    def use_earlier_work(self, earlier: Mapping[str, EarlierWork]) -> None:
        """Take what jobs did before the first window."""
        self._interference.earlier = {self._recent.jobs[job]: each for job, each in earlier.items()}

    def run_cycle(self, window: Window, activities: Activities, facts: Callable[[], Facts] = Facts,
                  own_jobs: Collection[str] | None = None, counts: Activities | None = None) -> CycleFindings:
        """Add a window and return the findings. ``facts`` is called every half minute, for the policies that read them.

        Jobs in ``own_jobs`` are removed from the window; by default these are the own jobs of the settings. ``counts``
        returns activities without their files: it is cheaper than ``activities`` and is called in every cycle.
        """
        window = without_jobs(window, self._settings.own_jobs if own_jobs is None else own_jobs)
        since = window.end - self._settings.history_seconds
        self._tasks = self._arrays.update(window.jobs | window.namespace.keys(), window.end, since,
                                          partial(attribution.main_directory, counts or activities, since))
        window = with_arrays(window, self._tasks, self._settings.noisy_neighbour.classes)
        if complete := self.history.add(window):
            self._interference.earlier = {}
        known = self._facts.pools and self._small_writes
        if complete or (not known and self._early_facts < MAX_EARLY_FACTS):
            self._facts, self._early_facts = facts(), self._early_facts + 1
            self._accelerators = accelerators(self._facts.disk_writes)
            self._small_writes = small_writes_of_pools(self._facts)
            self._request_msec = {target: median(each.request_msec for each in readings[-3:])
                                  for target, readings in self._facts.disk_writes.items() if readings}
        view = self._slowdowns(window)
        further = self._further(complete, partial(self._activities, activities))
        found = {finding.key: finding for finding in chain(
            self._with_directories(view, window, partial(self._activities, counts or activities), since), further)}
        found.update((key, replace(finding, tasks=self._tasks[finding.aggressor])) for key, finding in found.items()
                     if finding.aggressor in self._tasks)
        begun = tuple(f for key, f in found.items() if key not in self._active)
        ended = tuple(f for key, f in self._active.items() if key not in found)
        self._active = found
        slowed = {each.victim for each in found.values() if has_victim(each) and not each.advice_only}
        slowed_numbers, acted_for = ([self._recent.jobs[job] for job in some if job in self._recent.jobs]
                                     for some in (slowed, self.acted_for))
        self.tracks.add(window.end, slowed_numbers, acted_for, self._interference, view.jobs)
        if not 0 <= window.end - self._forgot_at < SPAN_SECONDS:  # with gaps, no half minute may ever be complete
            self._recent.forget_jobs(self._interference.jobs)
            self._forgot_at = window.end
        self._targets_of_victims = frozenset(target for each in found.values() if has_victim(each)
                                             for target in each.targets)
        return CycleFindings(tuple(found.values()), begun, ended)

    def _with_directories(self, view: SlowdownView, window: Window, counted: Activities,
                          since: float) -> Iterator[Finding]:
        """Slowdowns with the directories of their aggressors, which are looked up once for all victims of one."""
        known: dict[tuple[str, float, bool, bool], tuple[str, ...]] = {}
        for finding in self._slowed(view, window):
            now = policy_for(finding).needs_its_job
            about = finding.aggressor, finding.time, now, finding.evidence.shown_by_records
            if about not in known:
                known[about] = attribution.directories_of(finding, counted, since, now=now)
            yield replace(finding, directories=known[about]) if known[about] else finding

    def _activities(self, ask: Activities, job: str, since: float) -> Sequence[DirectoryActivity]:
        return attribution.activities_of_jobs(ask, self._tasks.get(job, (job,)), job, since)

    def jobs_of(self, finding: Finding) -> tuple[str, ...]:
        """Job ids of the aggressor of a finding: if it is an array, of its present tasks."""
        return self._tasks.get(finding.aggressor, finding.aggressors)

    def _slowdowns(self, window: Window) -> SlowdownView:
        """Learn from the newest window what service costs, and what each stream loses."""
        recent = self._recent
        columns, kinds = recent.add(window), recent.kinds()
        names, pool = pool_numbers(recent.targets, self._facts)
        unhealthy = np.array([recent.targets[target] for target in window.conditions if target in recent.targets],
                             dtype=np.int64)
        flash = {*self._settings.resolved_scopes.flash_pools, *self._facts.flash}
        request_msec = np.array([self._request_msec.get(name, 0.0) for name in recent.targets])
        self.learner.learn(columns, kinds, pool, names, unhealthy, flash=flash, request_msec=request_msec)
        costs = self.learner.table(pool, names, unhealthy, self._small_writes, request_msec=request_msec)
        work = recent_work(recent.windows, kinds, len(recent.jobs.by_number))
        losses, rivals = self._interference.update(columns, work, kinds, costs)
        jobs, targets = recent.jobs.by_number, list(recent.targets)
        self.device_time = device_times(work, targets, jobs, pool, names, costs=self.learner.costs)
        streamed = self._streams.targets(work, kinds, jobs, targets, device_time=self.device_time, facts=self._facts)
        self.streamed_targets = streamed if self._facts.fill else None
        settings = self._settings.noisy_neighbour
        found = [loss for loss in (*losses, *rivals) if is_found(loss, True, settings)]
        named = {jobs[job] for loss in found for job in (loss.victim, *loss.suspects)}
        return SlowdownView(
            window.end, losses, rival_losses=rivals, jobs=jobs, targets=targets,
            profiles=profiles(self.history.recent, named) if named else {}, active=self._active.keys(),
            device_time=self.device_time, accelerators=self._accelerators, remembered=self._remembered)

    def _slowed(self, view: SlowdownView, window: Window) -> Iterator[Finding]:
        """Slowdowns found in this cycle.

        A stream that used a target which is not seen may be slow for that reason: nothing is found about it, and what
        was found is held.
        """
        settings, slowed = self._settings.noisy_neighbour, {key[1] for key in self.kept}
        found = chain.from_iterable(policy.find_slowed(view, settings) for policy in policies().values()
                                    if policy.find_slowed is not None)
        yield from (replace(finding, time=window.end) for finding in self.kept.values())
        yield from (each for each in found if each.key not in self.kept and each.victim not in slowed)
        if window.unseen:
            in_doubt = {view.jobs[job] for job in self._interference.in_doubt}
            yield from (replace(finding, held=True) for finding in self._active.values()
                        if policy_of(finding.kind).find_slowed is not None and finding.victim in in_doubt)

    def _further(self, complete: bool, activities: Activities) -> tuple[Finding, ...]:
        """Active findings of the policies that read half minutes."""
        if complete:
            scopes = self._settings.resolved_scopes
            self.watch.run(View(self.history.half_minutes, self._facts, activities, pool_pairs=scopes.pool_pairs,
                                  pools_of=scopes.pools_of))
        now = self.history.windows[-1].end
        return tuple(self._acted_on(f) for f in self.watch.findings if f.time > now - OLD_SECONDS)

    def _acted_on(self, finding: Finding) -> Finding:
        """The finding as one that tierd acts on, if ``[act] on`` names its kind and its policy has a plan for it."""
        acted_on = finding.advice_only and finding.kind in self._settings.act.on and policy_for(finding).plan
        return replace(finding, advice_only=False) if acted_on else finding

    def plan(self, finding: Finding, activities: Sequence[DirectoryActivity], capacity: Capacity,
             was_tried: Callable[[Fid, float, float], bool] = lambda *_: False, draining: Collection[str] = (),
             made_mirrors: Callable[[Fid, Layout], bool] = lambda *_: False) -> Plan:
        """The plan for a finding. ``was_tried``: whether a file was moved since one time, or tried since another.

        ``draining`` are the targets that are being emptied. ``made_mirrors``: whether tierd gave a file its mirrors.
        """
        situation = replace(
            situation_of(self._settings, capacity), facts=self._facts,
            victim_slowed=not self._targets_of_victims.isdisjoint(finding.targets),
            was_tried=was_tried, draining=draining, made_mirrors=made_mirrors)
        return plan_by_scope(finding, attribution.activities_of_finding(finding, activities), situation,
                             self._settings.resolved_scopes)


NO_CHANGELOG = Refusal(Reason.NO_CHANGELOG, "no changelog shows where it works (does each metadata target have a "
                       "changelog user? lctl changelog_register)")


def situation_of(settings: Settings, capacity: Capacity) -> Situation:
    """What the settings and the capacity say to any plan, with the pools of the whole file system."""
    scopes, allowed = settings.resolved_scopes, [policy_of(name) for name in settings.act.on]
    mirrors = {name: call for policy in allowed for name in ("mirrored", "unmirrored")
               if (call := getattr(policy, name)) is not None}
    return Situation(capacity, scopes.whole.small_files_to_flash, tables=settings.tables, benefit=settings.benefit,
                     places=[policy.place for policy in allowed if policy.place is not None],
                     pools_of=lambda path: scopes.of(path).small_files_to_flash, **mirrors)


def plan_by_scope(finding: Finding, activities: Sequence[DirectoryActivity], situation: Situation,
                  scopes: ResolvedScopes) -> Plan:
    """Plan for one finding over all scopes."""
    policy = policy_for(finding)
    if finding.advice_only or policy.plan is None:
        return Plan((), ())
    if policy.by_scope and finding.aggressor and not activities:
        return Plan((), (NO_CHANGELOG.about(finding.aggressor),))
    situations = [situation]
    if policy.by_scope and activities:
        situations = [replace(situation, activities=own, pools=scope.small_files_to_flash)
                      for scope, own in scopes.by_scope(activities, lambda activity: activity.directory)]
    return split_by_mode(joined(planned_by(policy.plan, finding, each) for each in situations), scopes)


def planned_by(make: Callable[[Finding, Any, Situation], Plan], finding: Finding, situation: Situation) -> Plan:
    """The plan of one policy. An error of a policy must not stop the daemon: it refuses the plan."""
    try:
        planned = make(finding, finding.evidence, situation)
        if (not isinstance(planned, Plan) or not all(isinstance(each, Refusal) for each in planned.refusals)
                or not all(isinstance(each, Action) for each in planned.actions)):
            raise TypeError("it returns no Plan of Actions and Refusals")
        if any(action.finding != finding.key for action in planned.actions):
            raise ValueError("its plan has an act for another finding")
    except Exception as error:  # noqa: BLE001 -- any error of a policy is reported and stops only its own acts
        why = Refusal(Reason.POLICY_FAILED, f"its plan failed: {words_of_error(error)}")
        return Plan((), (why.about(finding.kind),))
    return planned


def split_by_mode(planned: Plan, scopes: ResolvedScopes) -> Plan:
    """The plan, with actions that the mode of their scope does not allow as recommendations."""
    allowed, recommended = list[Action](), list[Action]()
    for action in planned.actions:
        mode = scopes.of(action.path or action.directory).mode
        (allowed if mode_allows(mode, action.kind) else recommended).append(action)
    return Plan(tuple(allowed), planned.refusals, tuple(recommended))


def usual_rate(logs: Sequence[float]) -> tuple[float, float]:
    """The usual rate of a stream and its error, as logarithms, from windows in which neighbours may have slowed it.

    >>> usual_rate([1.0, 1.0, 1.0, 0.5, 1.0, 1.0])
    (1.0, 0.1)
    """
    usual, middle = np.quantile(logs, (0.75, 0.5))
    return float(usual), max(LEAST_REMEMBERED, float(usual - middle))


def without_jobs(window: Window, jobs: Collection[str]) -> Window:
    """The window without these jobs: tierd's own moves cause no finding."""
    if window.jobs.isdisjoint(jobs) and window.namespace.keys().isdisjoint(jobs):
        return window
    loads, namespace = Loads.of(window.loads), NamespaceLoads.of(window.namespace)
    return replace(window, loads=loads.rows(~loads.jobs_among(jobs)),
                   namespace=namespace.rows(~namespace.jobs_among(jobs)))
