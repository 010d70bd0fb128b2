"""Makes a plan for a finding: where its job works, which directories to leave alone, which acts are worth doing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import inf

from lustre.layout.model import Layout
from tierd.acts import ActKind
from tierd.daemon.node import DaemonParts
from tierd.decide import benefit
from tierd.decide.plans import Plan
from tierd.detect import attribution
from tierd.detect.metadata_load import metadata_targets
from tierd.engine import Engine
from tierd.model import Activities, Capacity, DirectoryActivity, Finding
from tierd.policies.registry import has_victim, policy_for
from tierd.refusal import Reason, Refusal
from tierd.sense import space
from tierd.sense.changelogs.table import ActivityTable
from tierd.text import first_names, quoted

OTHER_MOVER_SECONDS = 300.0
"""Time for which tierd leaves a directory alone after another mover worked in it."""
KNOWN_SECONDS = 1.0
"""Time for which what was read for plans counts as known: the client answers from its own cache for as long
(``obd_statfs``)."""
SIZING_SECONDS = 5.0
"""Limit on the time to look up file sizes for a plan. The remaining files are candidates in the next plan."""
MAX_OWNERS_ASKED = 1000
"""Limit on files whose opt-out is checked for a plan that is only shown. Each file costs a few requests to an MDT."""
REFUSED_SECONDS = 60.0
"""Time for which acts that were not worth doing are weighed again without a new plan. The layout of a new plan may
differ, and with it the expected effect."""


@dataclass(frozen=True, slots=True)
class Known:
    """What plans need, each read when it is first needed: a cycle may make hundreds of plans about a few jobs."""

    at: float
    room: Callable[[], Capacity]
    """Pools and their space."""
    layouts: Callable[[tuple[str, ...]], Mapping[str, Layout | None]]
    """Default layouts of directories."""
    of_job: Activities
    won_back: Callable[[str], Mapping[str, Sequence[float]]]
    """What the last acts against a kind of finding won back, by pool."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A plan whose acts were not worth doing."""

    at: float
    expected: float
    """Part of the loss that its acts were expected to win back."""
    refusals: tuple[Refusal, ...]
    """All but that."""


class Planner:
    """Makes plans. It changes nothing on the file system."""

    def __init__(self, parts: DaemonParts, engine: Engine, table: ActivityTable,
                 draining: Callable[[], Collection[str]]) -> None:
        """``draining`` returns the targets that are being emptied."""
        self._engine, self._table, self._draining = engine, table, draining
        self._gate, self._journal, self._settings = parts.gate, parts.journal, parts.settings
        self._filesystem, self._clock, self._executor = parts.node.filesystem, parts.node.clock, parts.node.executor
        self._enriched, self._site_facts = parts.enriched, parts.node.site_facts
        self._known: Known | None = None
        self._weighed: dict[tuple[str, str, str], Weighed] = {}
        """By finding, the last plan if its acts were not worth doing."""

    def for_finding(self, finding: Finding, tried: Collection[str] = ()) -> Plan:
        """The present plan for a finding. Files that were ``tried`` take no place of others in it."""
        if policy_for(finding).waits_for_close:  # it was last seen while its files were open
            finding = replace(finding, time=self._clock.now())
        located = self._located(finding)
        if not located and (elsewhere := self._elsewhere(finding)):
            return Plan((), (elsewhere,))
        # a plan is made in each cycle in which nothing is done: what cools down, or is not worth it, must cost no
        # request
        cooling = self._cooling(finding, {activity.directory for activity in located})
        rest = [activity for activity in located if activity.directory not in cooling]
        refusals = tuple(cooling.values())
        if refusals and not rest:
            return Plan((), refusals)
        if known := self._still_refused(finding):
            return Plan((), (*refusals, *known))
        plan = self.worth(finding, self.for_activities(finding, self._enriched(rest, self._filesystem), tried))
        return replace(plan, refusals=(*refusals, *plan.refusals))

    def preview_plan(self, finding: Finding) -> Plan:
        """A plan to be shown: it leaves out files whose owners opted out, which is checked now."""
        plan = self.worth(finding, self.for_activities(finding, self.activities(finding)))
        moves = [action for action in plan.actions if action.kind == ActKind.MIGRATE][:MAX_OWNERS_ASKED]
        whys = {action.path: why for action in moves if (why := self._gate.guard.refusal(action))}
        refusals = [why.about(first_names([path for path in whys if whys[path] == why]))
                    for why in dict.fromkeys(whys.values())]
        return replace(plan, actions=tuple(action for action in plan.actions if action.path not in whys),
                       refusals=(*plan.refusals, *refusals))

    def activities(self, finding: Finding) -> list[DirectoryActivity]:
        """Directories in which the aggressor of a finding worked, with what is known about their files."""
        return self._enriched(self._located(finding), self._filesystem)

    def _located(self, finding: Finding) -> list[DirectoryActivity]:
        """These directories, as far as changelogs know them. If its moves need the job, those where it works now."""
        if policy_for(finding).needs_its_job:
            known = attribution.at_work_now(finding, partial(self._activities, finding), self._present().at)
        else:
            known = self._activities(finding, finding.aggressor, finding.time - self._settings.history_seconds)
        return list(attribution.activities_of_finding(finding, known))

    def _activities(self, finding: Finding, name: str, since: float) -> Sequence[DirectoryActivity]:
        return attribution.activities_of_jobs(self._present().of_job, self._engine.jobs_of(finding), name, since)

    def _elsewhere(self, finding: Finding) -> Refusal | None:
        """Why a neighbour that the changelogs know has no directory to plan for; None if they do not know it."""
        last = self._table.last_record(self._engine.jobs_of(finding))
        if not policy_for(finding).needs_its_job or not last:
            return None
        return Refusal(Reason.JOB_ELSEWHERE, "its newest changelog record "
                       f"is {self._clock.now() - last:.0f} s old: the directories in which it works now are not known"
                       ).about(finding.aggressor)

    def for_activities(self, finding: Finding, activities: Sequence[DirectoryActivity],
                       tried: Collection[str] = ()) -> Plan:
        """All acts that are possible in these directories, whether they are worth doing or not."""
        until = self._clock.now() + SIZING_SECONDS
        places = [a.directory for a in activities]
        whys = space.call_each(self._left_alone, places, self._executor)
        left_alone = {place: why for place, why in zip(places, whys, strict=True) if why}
        rest = [a for a in activities if a.directory not in left_alone]
        refusals = tuple(why.about(quoted(place)) for place, why in left_alone.items())
        if left_alone and not rest:
            return Plan((), refusals)
        site, known = self._site_facts(), self._present()
        layouts = known.layouts(finding.directories)
        room = replace(known.room(), default_layouts=layouts,
                       metadata=metadata_targets(site.metadata_spaces, self._engine.history.windows),
                       won_back=known.won_back(finding.kind),
                       release=site.release)
        # a directory that cannot be read is removed, or its MDT is down: so are its files
        rest = [a if a.directory in layouts else replace(a, candidates=()) for a in rest]
        sized = space.with_sizes(self._filesystem, rest, executor=self._executor,
                               enough=lambda: self._clock.now() >= until)
        # their sizes and opens count on, but they never settle
        sized = [replace(a, candidates=tuple(replace(c, closed_at=inf) if c.path in tried else c
                                             for c in a.candidates)) for a in sized] if tried else sized
        plan = self._engine.plan(finding, sized, room, self._journal.was_tried, self._draining(),
                                 made_mirrors=self._journal.made_mirrors)
        return replace(plan, refusals=(*plan.refusals, *refusals))

    def _present(self) -> Known:
        now, filesystem, known = self._clock.now(), self._filesystem, self._known
        if known is None or not 0 <= now - known.at < KNOWN_SECONDS:
            known = self._known = Known(
                now, cache(lambda: space.capacity(filesystem, self._gate.queue.closed)),
                cache(lambda places: space.default_layouts(filesystem, places, self._executor)),
                cache(self._table.of_job), cache(self._journal.judgements.won_back_by_pool))
        return known

    def forget(self) -> None:
        """Drop what was read for plans, as acts change it and it has the files of whole jobs; and old plans."""
        self._known, since = None, self._clock.now() - REFUSED_SECONDS
        self._weighed = {key: weighed for key, weighed in self._weighed.items() if weighed.at > since}

    def _left_alone(self, directory: str) -> Refusal | None:
        if why := self._gate.guard.opt_out_refusal(directory):
            return why
        if mover := self._table.other_mover_in(directory, self._clock.now() - OTHER_MOVER_SECONDS):
            return Refusal(Reason.OTHER_MOVER, f"{mover} moves files there; tierd leaves the directory alone until "
                           f"{OTHER_MOVER_SECONDS / 60:.0f} minutes after the last such move")
        return None

    def worth(self, finding: Finding, plan: Plan) -> Plan:
        """Remove acts that are not worth doing, judged by earlier acts, and acts in directories that cool down."""
        settings = self._settings
        cooling = self._cooling(finding, {a.directory for a in plan.actions})
        refusals = list(cooling.values())
        actions = [a for a in plan.actions if a.directory not in cooling]
        if policy_for(finding).restores_layouts:
            since = self._clock.now() - settings.verify.cooldown_seconds
            again = [a for a in actions if a.kind == ActKind.MIGRATE
                     and (undone := self._journal.undone_at(a.path, move=True)) > since
                     and not self._gate.approvals.approved(finding.key, undone)]
            refusals += [Refusal(Reason.COOLING_DOWN, "its earlier layout was restored; it is left alone for "
                                 f"{settings.verify.cooldown_seconds / 3600:g} h").about(quoted(a.path)) for a in again]
            actions = [a for a in actions if a not in again]
        stream = finding.evidence.of_stream if has_victim(finding) else None
        if actions and stream is not None and not self._gate.approvals.approved(finding.key):
            first = actions[0].layout.components[0]
            known = self._journal.judgements.won_back(finding.kind, first.pool, first.extent_end or 0)
            expected = benefit.effect(known)
            if refused := benefit.refusal(finding, stream, expected, settings.benefit):
                self._weighed[finding.key] = Weighed(self._clock.now(), expected, (*plan.refusals, *refusals))
                refusals.append(refused)
                actions = []
            elif refused := benefit.cost_refusal(finding, stream, expected, actions, settings.benefit):
                refusals.append(refused)
                actions = [a for a in actions if a.kind != ActKind.MIGRATE]
            elif stream.lacks_past and any(a.kind == ActKind.MIGRATE for a in actions):
                refusals.append(Refusal(Reason.FIRST_REVERSIBLE, "device time alone shows the loss: no file moves "
                                "before a default layout has helped").about(finding.aggressor))
                actions = [a for a in actions if a.kind != ActKind.MIGRATE]
        return replace(plan, actions=tuple(actions), refusals=(*plan.refusals, *refusals))

    def _cooling(self, finding: Finding, places: Collection[str]) -> dict[str, Refusal]:
        """Directories that are left alone, as their default layout was undone lately and nobody asked for it since."""
        now, rest = self._clock.now(), self._settings.verify.cooldown_seconds
        return {place: Refusal(Reason.COOLING_DOWN, f"its default layout was undone; it is left alone for "
                               f"{rest / 3600:g} h").about(quoted(place)) for place in sorted(places)
                if (undone := self._journal.undone_at(place)) and now < undone + rest
                and not self._gate.approvals.approved(finding.key, undone)}

    def _still_refused(self, finding: Finding) -> tuple[Refusal, ...]:
        """Refusals of the last plan, if its acts are not worth doing by the present evidence either; else none."""
        weighed, stream = self._weighed.get(finding.key), finding.evidence.of_stream
        if (weighed is None or weighed.at <= self._clock.now() - REFUSED_SECONDS or stream is None
                or self._gate.approvals.approved(finding.key)):
            return ()
        refused = benefit.refusal(finding, stream, weighed.expected, self._settings.benefit)
        return (*weighed.refusals, refused) if refused else ()
