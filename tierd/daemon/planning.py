"""From a finding to a plan: where it comes from, which directories are left alone, and what is worth doing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace

from lustre.filesystem import Filesystem
from tierd.act.gate import Gate
from tierd.act.journal.writer import Journal
from tierd.acts import ActKind
from tierd.clock import Clock
from tierd.config.settings import Settings
from tierd.decide import benefit
from tierd.decide.plans import Plan
from tierd.detect import attribution
from tierd.engine import Engine
from tierd.model import DirectoryActivity, Finding, NoisyNeighbourEvidence
from tierd.refusal import Reason, Refusal
from tierd.sense import space
from tierd.sense.changelogs.table import ActivityTable
from tierd.text import first_names, quoted

OTHER_MOVER_SECONDS = 300.0
"""A directory whose files somebody else has moved is left alone for so long after."""
SIZING_SECONDS = 5.0
"""So long are files looked at for a plan; those that were not are candidates again in the next."""
MAX_OWNERS_ASKED = 1000
"""Files whose owners' wishes are asked for a look at a plan; each is a few requests to an MDT."""
Enrich = Callable[[list[DirectoryActivity], Filesystem], list[DirectoryActivity]]
"""Adds to activities what other sources know of their directories and files."""


def not_enriched(activities: list[DirectoryActivity], _: Filesystem) -> list[DirectoryActivity]:
    """Where there are no other sources."""
    return activities


class Planner:
    """Everything a plan is made of. Changes nothing."""

    def __init__(self, engine: Engine, filesystem: Filesystem, gate: Gate, journal: Journal, table: ActivityTable,
                 clock: Clock, settings: Settings, enriched: Enrich, metadata_free: Callable[[], float | None],
                 executor: Executor | None = None) -> None:
        self._engine = engine
        self._filesystem = filesystem
        self._gate = gate
        self._journal = journal
        self._table = table
        self._clock = clock
        self._settings = settings
        self._enriched = enriched
        self._metadata_free = metadata_free
        self._executor = executor

    def for_finding(self, finding: Finding) -> Plan:
        """What is to be done about it now."""
        return self._worth(finding, self.for_activities(finding, self.activities(finding)))

    def preview_plan(self, finding: Finding) -> Plan:
        """The same for somebody who looks: without files whose owners want them left alone, who are asked now."""
        plan = self.for_finding(finding)
        moves = [action for action in plan.actions if action.kind == ActKind.MIGRATE][:MAX_OWNERS_ASKED]
        whys = {action.path: why for action in moves if (why := self._gate.refusal(action))}
        refusals = [Refusal(Reason.OPTED_OUT, why.sentence).about(
            first_names([path for path in whys if whys[path] == why]))
                    for why in dict.fromkeys(whys.values())]
        return replace(plan, actions=tuple(action for action in plan.actions if action.path not in whys),
                       refusals=(*plan.refusals, *refusals))

    def activities(self, finding: Finding) -> list[DirectoryActivity]:
        """Where its job was at work, with what is known of the files there."""
        since = finding.time - self._settings.history_seconds
        located = list(attribution.activities_of_finding(finding, self._table.of_job(finding.aggressor, since)))
        return self._enriched(located, self._filesystem)

    def for_activities(self, finding: Finding, activities: Sequence[DirectoryActivity]) -> Plan:
        """What could be done in these directories, whether it is worth it or not."""
        until = self._clock.now() + SIZING_SECONDS
        places = [a.directory for a in activities]
        whys = space.call_each(self._left_alone, places, self._executor)
        left_alone = {place: why for place, why in zip(places, whys, strict=True) if why}
        rest = [a for a in activities if a.directory not in left_alone]
        refusals = tuple(why.about(quoted(place)) for place, why in left_alone.items())
        if left_alone and not rest:
            return Plan((), refusals)
        room = replace(space.capacity(self._filesystem, finding.directories, self._executor),
                       metadata_free=self._metadata_free())
        sized = space.with_sizes(self._filesystem, rest, executor=self._executor,
                               enough=lambda: self._clock.now() >= until)
        plan = self._engine.plan(finding, sized, room)
        return replace(plan, refusals=(*plan.refusals, *refusals))

    def _left_alone(self, directory: str) -> Refusal | None:
        """Why nothing is planned for a directory: its owner's wish, or somebody else who moves its files."""
        if why := self._gate.opt_out_refusal(directory):
            return Refusal(Reason.OPTED_OUT, why.sentence)
        if mover := self._table.other_mover_in(directory, self._clock.now() - OTHER_MOVER_SECONDS):
            return Refusal(Reason.OTHER_MOVER, f"{mover} moves its files; two never do, so it is left alone until that "
                           f"has been over for {OTHER_MOVER_SECONDS / 60:.0f} minutes")
        return None

    def _worth(self, finding: Finding, plan: Plan) -> Plan:
        """The plan without what is not worth it, by what such acts came to before, and without places that cool down.

        Advice is for people, who weigh it themselves.
        """
        settings, now = self._settings, self._clock.now()
        rest = settings.verify.cooldown_seconds
        cooling = {place for place in {a.directory for a in plan.actions}
                   if (undone := self._journal.undone_at(place)) and now < undone + rest}
        refusals = [Refusal(Reason.COOLING_DOWN, f"its default layout was taken back; it is left alone for "
                            f"{rest / 3600:g} h").about(quoted(place)) for place in sorted(cooling)]
        actions = [a for a in plan.actions if a.directory not in cooling or a.kind == ActKind.ADVISE]
        acts = [a for a in actions if a.kind != ActKind.ADVISE]
        if acts and isinstance(finding.evidence, NoisyNeighbourEvidence):
            first = acts[0].layout.components[0]
            known = self._journal.judgements.won_back(finding.kind, first.pool, first.extent_end or 0)
            expected = benefit.effect(known, settings.benefit)
            if refused := benefit.refusal(finding, finding.evidence, expected, settings.benefit):
                refusals.append(refused)
                actions = [a for a in actions if a.kind == ActKind.ADVISE]
            elif refused := benefit.cost_refusal(finding, finding.evidence, expected, acts, settings.benefit):
                refusals.append(refused)
                actions = [a for a in actions if a.kind != ActKind.MIGRATE]
            elif finding.evidence.lacks_past and any(a.kind == ActKind.MIGRATE for a in acts):
                refusals.append(Refusal(Reason.FIRST_REVERSIBLE, "the neighbour was there before tierd: files are "
                                "moved once the default layout has helped").about(finding.aggressor))
                actions = [a for a in actions if a.kind != ActKind.MIGRATE]
        return replace(plan, actions=tuple(actions), refusals=(*plan.refusals, *refusals))
