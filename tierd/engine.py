"""Runs one cycle of detection: a new window in, findings and plans out. The daemon and replay use it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lustre.fid import Fid
from tierd import policies
from tierd.arrays import ArrayTracker, with_arrays
from tierd.config.settings import Settings
from tierd.decide import plans
from tierd.detect import attribution
from tierd.detect.block_accelerator import Accelerator, accelerators, with_absorbed
from tierd.detect.builtin import SLOWDOWNS
from tierd.detect.device_time import CostLearner, DeviceCosts, TargetTime, account, costs_of_history, own_unlinks
from tierd.detect.history import History, packed
from tierd.detect.noisy_neighbour.baseline import LoadTracks
from tierd.detect.noisy_neighbour.detection import continued_finding, held_finding
from tierd.detect.noisy_neighbour.pairs import SlowdownView, slowdown_view
from tierd.detect.plugin import DetectorRunner, View
from tierd.detect.profile import waits_for_commits
from tierd.detect.shadow import Shadow, ShadowLoss
from tierd.detect.streamed_targets import StreamWatch
from tierd.model import (
    ACTIONABLE_KINDS,
    EVIDENCE_BY_KIND,
    Action,
    Activities,
    Capacity,
    DirectoryActivity,
    Facts,
    FillEvidence,
    Finding,
    NoisyNeighbourEvidence,
    OtherEvidence,
    SlowdownEvidence,
    StreamedTargets,
    Window,
)

OLD_SECONDS = 90.0
"""Findings of half-minute detectors older than this, from before a gap in the counters, are dropped."""
MAX_EARLY_FACTS = 6
"""Cycles in which the facts are read before the first half minute is over, for the pools of the targets."""
SLOWDOWN_KINDS = frozenset(detector.name for detector in SLOWDOWNS)


@dataclass(frozen=True, slots=True)
class CycleFindings:
    """Findings of one cycle."""

    findings: tuple[Finding, ...]
    """All active findings, with their directories."""
    begun: tuple[Finding, ...]
    """Findings that were not active in the previous cycle."""
    ended: tuple[Finding, ...]
    """Findings that are no longer active, as of the previous cycle."""


@dataclass(frozen=True, slots=True)
class EngineMemory:
    """What an engine has seen, for one with other settings that replaces it."""

    history: History
    active: Mapping[tuple[str, str, str], Finding]
    detectors: DetectorRunner
    arrays: ArrayTracker
    tasks: Mapping[str, tuple[str, ...]]


class Engine:
    """Runs the detectors and policies. Holds the history of windows and the active findings, which hysteresis needs."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._history = History(settings.history_seconds, settings.noisy_neighbour.recent_seconds)
        self._active: dict[tuple[str, str, str], Finding] = {}
        self._targets_of_victims: Collection[str] = frozenset()
        """Targets of active findings with a disturbed stream."""
        self._learned_jobs: frozenset[str] = frozenset()
        """Jobs that Prometheus' history covers."""
        self._watch = DetectorRunner(settings.detect)
        self._facts = Facts()
        self._accelerated: tuple[Facts, Mapping[str, Accelerator]] = self._facts, {}
        """Targets behind accelerators or write caches, and the facts that show them."""
        self._learner = CostLearner(flash=settings.resolved_scopes.flash_pools)
        self._arrays = ArrayTracker()
        self._tasks: Mapping[str, tuple[str, ...]] = {}
        """Tasks of each large array since the oldest window."""
        self._device_time: Mapping[str, TargetTime] = {}
        self._streams = StreamWatch(settings.resolved_scopes.flash_pools)
        self.streamed_targets: StreamedTargets | None = None
        """Targets whose streams would lose throughput to further work; None before the first window."""
        self._early_facts = 0
        self._shadow: Shadow | None = None
        self.shadow_losses: Sequence[ShadowLoss] = ()
        """What the model of interference reports of the newest window; empty unless it runs in shadow."""
        self._history_teaches = False
        """Whether costs are to be fitted to Prometheus' history, as no earlier run left any."""
        self._tracks: LoadTracks | None = None
        """Loads of jobs from the previous cycle, reused in the next."""

    def watch_in_shadow(self) -> None:
        """Run the model of interference too, for a comparison."""
        settings = self._settings.noisy_neighbour
        self._shadow = Shadow(settings.recent_seconds, settings.classes, self._settings.resolved_scopes.flash_pools)

    @property
    def detector_faults(self) -> Mapping[str, str]:
        """Detectors that failed in the last run, and their errors."""
        return self._watch.faults

    @property
    def windows(self) -> Sequence[Window]:
        """The history, oldest first."""
        return self._history.windows

    @property
    def memory(self) -> EngineMemory:
        """What this engine has seen."""
        return EngineMemory(self._history, self._active, self._watch, self._arrays, self._tasks)

    def take_over(self, memory: EngineMemory) -> None:
        """Continue where a previous engine with the same sources ended. Its findings hold until the next window."""
        self._history, self._arrays, self._tasks = memory.history, memory.arrays, memory.tasks
        self._active = dict(memory.active)
        self._watch.take_over(memory.detectors)
        self._history.recent_seconds = self._settings.noisy_neighbour.recent_seconds

    def use_history(self, windows: Sequence[Window], jobs: Collection[str]) -> None:
        """Use Prometheus' history of these jobs until this engine's own history is long enough."""
        self._history.learned = tuple(packed(without_jobs(window, self._settings.own_jobs)) for window in windows)
        self._learned_jobs = frozenset(jobs)
        self._history_teaches = not self._learner.costs

    def run_cycle(self, window: Window, activities: Activities, facts: Callable[[], Facts] = Facts,
                  own_jobs: Collection[str] | None = None, counts: Activities | None = None) -> CycleFindings:
        """Add a window and return the findings. ``facts`` is called every half minute, for the further detectors.

        Jobs in ``own_jobs`` are removed from the window; by default these are the own jobs of the settings. ``counts``
        returns activities without their files: it is cheaper than ``activities`` and is called in every cycle.
        """
        window = without_jobs(window, self._settings.own_jobs if own_jobs is None else own_jobs)
        since = window.end - self._settings.history_seconds
        self._tasks = self._arrays.update(window.jobs | window.namespace.keys(), window.end, since,
                                          partial(attribution.main_directory, counts or activities, since))
        window = with_arrays(window, self._tasks, self._settings.noisy_neighbour.classes)
        complete = self._history.add(window)
        windows = self._history.windows
        view = slowdown_view(windows, self._settings.noisy_neighbour, self._tracks, self._active.keys())
        self._tracks = view.tracks
        view = replace(view, device_time=self._account(view, complete, facts))
        if self._shadow is not None:
            self.shadow_losses = self._shadow.observe(window, self._facts.pools)
        self.streamed_targets = self._streams.targets(view, self._device_time, self._facts.pools)
        counted = partial(self._activities, counts or activities)
        found = {finding.key: attribution.with_directories(finding, counted, since)
                 for finding in map(partial(self._unless_absorbed, view), self._slowed(view))}
        view.tracks.settle()
        further = self._further(complete, partial(self._activities, activities), facts)
        found.update((finding.key, finding) for finding in further)
        found = {key: replace(finding, tasks=self._tasks.get(finding.aggressor, finding.tasks))
                 for key, finding in found.items()}
        begun = tuple(f for key, f in found.items() if key not in self._active)
        ended = tuple(f for key, f in self._active.items() if key not in found)
        self._active = found
        self._targets_of_victims = {target for each in found.values()
                                    if isinstance(each.evidence, NoisyNeighbourEvidence) for target in each.targets}
        return CycleFindings(tuple(found.values()), begun, ended)

    def _activities(self, ask: Activities, job: str, since: float) -> Sequence[DirectoryActivity]:
        """Activities of a job, or of all tasks of an array."""
        return attribution.activities_of_jobs(ask, self._tasks.get(job, (job,)), job, since)

    def jobs_of(self, finding: Finding) -> Sequence[str]:
        """Job ids of the aggressor of a finding: if it is an array, of its present tasks."""
        return self._tasks.get(finding.aggressor, finding.aggressors)

    @property
    def device_time(self) -> Mapping[str, TargetTime]:
        """What each job takes of the service time of each target, of late; only of targets whose costs are known."""
        return self._device_time

    @property
    def costs(self) -> Mapping[str, DeviceCosts]:
        """Known costs of service on the targets of each pool."""
        return self._learner.costs

    def use_costs(self, costs: Mapping[str, DeviceCosts]) -> None:
        """Start with the costs that an earlier run learned."""
        self._learner = CostLearner(costs, self._settings.resolved_scopes.flash_pools)

    def _account(self, view: SlowdownView, complete: bool, facts: Callable[[], Facts]) -> Mapping[str, TargetTime]:
        """Learn from the newest window, and account for the recent ones."""
        if complete or (not self._facts.pools and self._early_facts < MAX_EARLY_FACTS):
            self._facts, self._early_facts = facts(), self._early_facts + 1
        if not self._facts.pools:
            return {}
        window = view.windows[-1]
        pool_of = {target: pool for pool, targets in sorted(self._facts.pools.items(), key=lambda p: -len(p[1]))
                   for target in targets}  # of several pools, the smallest says most
        streams = {stream.job for stream in view.streams}
        classes = self._settings.noisy_neighbour.classes
        committing = {job.job for job in view.jobs.values() if waits_for_commits(job, classes)}
        if self._history_teaches and streams:
            self._history_teaches = False
            self.use_costs(costs_of_history(self._history.learned, streams, pool_of,
                                            self._settings.resolved_scopes.flash_pools, committing))
        self._learner.learn(window.even_loads, window.seconds, streams, pool_of, window.conditions,
                            own_unlinks(window.namespace.values()), committing)
        loads = [load for job in view.jobs.values() for load in job.by_target.values()]
        seconds = sum(each.seconds for each in view.recent)
        self._device_time = account(loads, seconds, pool_of, self._learner.costs, own_unlinks(view.jobs.values()),
                                    committing, self._settings.device_time.io_limited)
        return self._device_time

    def _slowed(self, view: SlowdownView) -> Iterator[Finding]:
        """Slowdowns found in this cycle, and earlier slowdowns that continue.

        A stream that used a target which is not seen may be slow for that reason: nothing is found about it, and what
        was found is held.
        """
        seen, unseen = set(), view.windows[-1].unseen
        in_doubt = frozenset(job for window in view.windows for target, job in (window.loads if unseen else ())
                             if target in unseen)
        for detector in SLOWDOWNS:
            for finding in detector.detect(view, self._settings.noisy_neighbour):
                if finding.victim in in_doubt:
                    continue
                if not uses_learned_windows(finding) or {finding.aggressor, finding.victim} <= self._learned_jobs:
                    seen.add(finding.key)
                    yield finding
        for key, finding in self._active.items():
            if finding.kind in SLOWDOWN_KINDS and finding.victim in in_doubt:
                yield replace(finding, held=True)
            elif finding.kind in SLOWDOWN_KINDS and key not in seen:
                held = (continued_finding(finding, view, self._settings.noisy_neighbour)
                        or held_finding(finding, view, self._settings.noisy_neighbour))
                if held:
                    yield held

    def _unless_absorbed(self, view: SlowdownView, finding: Finding) -> Finding:
        """The finding, as advice only if accelerators in front of the disks take the aggressor's writes in."""
        if self._accelerated[0] is not self._facts:
            self._accelerated = self._facts, accelerators(self._facts.disk_writes)
        aggressor = view.jobs.get(finding.aggressor)
        if not self._accelerated[1] or aggressor is None or finding.kind != "noisy-neighbour":
            return finding
        return with_absorbed(finding, aggressor.by_target, self._accelerated[1])

    def _further(self, complete: bool, activities: Activities, facts: Callable[[], Facts]) -> tuple[Finding, ...]:
        """Active findings of the half-minute detectors."""
        if complete:
            scopes = self._settings.resolved_scopes
            self._watch.run(View(self._history.coarse.windows, self._facts, activities, pool_pairs=scopes.pool_pairs,
                                  pools_of=scopes.pools_of))
        now = self._history.windows[-1].end
        return tuple(self._acted_on(f) for f in self._watch.findings if f.time > now - OLD_SECONDS)

    def _acted_on(self, finding: Finding) -> Finding:
        """The finding as one that tierd acts on, if ``[act] on`` names its kind, and a policy knows its evidence."""
        known = EVIDENCE_BY_KIND.get(finding.kind, OtherEvidence)
        named = finding.kind in ACTIONABLE_KINDS and finding.kind in self._settings.act.on
        acted_on = finding.advice_only and named and isinstance(finding.evidence, known)
        return replace(finding, advice_only=False) if acted_on else finding

    def plan(self, finding: Finding, activities: Sequence[DirectoryActivity], capacity: Capacity,
             left_alone: Callable[[Fid], bool] = lambda _: False) -> plans.Plan:
        """The plan for a finding. ``left_alone``: a file was moved, or tried, lately."""
        capacity = replace(capacity, placements=self._facts.placements, metadata_fill=self._facts.metadata)
        return policies.plan_by_scope(
            finding,
            attribution.activities_of_finding(finding, activities),
            capacity,
            self._settings,
            self._facts.resident if isinstance(finding.evidence, FillEvidence) else self._facts.stored,
            any(target in self._targets_of_victims for target in finding.targets),
            left_alone,
        )


def uses_learned_windows(finding: Finding) -> bool:
    """Whether the victim's usual throughput comes from Prometheus' history, at least in part."""
    return isinstance(finding.evidence, SlowdownEvidence) and finding.evidence.learnt_windows is not None


def without_jobs(window: Window, jobs: Collection[str]) -> Window:
    """The window without these jobs: tierd's own moves cause no finding."""
    if window.jobs.isdisjoint(jobs) and window.namespace.keys().isdisjoint(jobs):
        return window
    return replace(window, loads={key: load for key, load in window.loads.items() if key[1] not in jobs},
                   namespace={job: load for job, load in window.namespace.items() if job not in jobs})


def without_duplicates(actions: Sequence[Action]) -> tuple[Action, ...]:
    """The first action of each kind for each path, or for each directory if the action has no path."""
    seen: dict[tuple[str, str], Action] = {}
    for action in actions:
        seen.setdefault((action.kind, action.path or action.directory), action)
    return tuple(seen.values())
