"""A recording gone through: what tierd would have found and planned. Changes nothing.

Time is the tape's: each snapshot is one cycle, and changelog records are heard once the snapshot after them is taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from tierd.config import Settings
from tierd.engine import Engine, merged
from tierd.model import Action, Finding
from tierd.replay.facts import TapeFacts
from tierd.sense import local
from tierd.sense.changelogs import ActivityTable
from tierd.sense.readings import window
from tierd.sense.tape import Tape

INTERFERENCE = frozenset({"noisy-neighbour", "shared-bandwidth"})
"""Kinds that tell who slows whom: what a recording is judged by."""


@dataclass(frozen=True, slots=True)
class Report:
    """Findings in the order they began, the plan, and why other things were not planned."""

    tape: Tape
    findings: tuple[Finding, ...]
    plan: tuple[Action, ...]
    refusals: tuple[str, ...]
    advice: tuple[Finding, ...]
    """What else was seen, each once: for people, not for the plan."""


def replay(tape: Tape, settings: Settings) -> Report:
    """Sense, detect and decide over the whole tape."""
    engine = Engine(settings)
    table = ActivityTable(tape.resolve)
    facts = TapeFacts(tape, table)
    advice: dict[tuple[str, str, str], Finding] = {}
    findings: dict[tuple[str, str, str], Finding] = {}
    plans: dict[tuple[str, str, str], tuple[Action, ...]] = {}
    refusals: dict[str, None] = {}
    before = local.reading(tape.trees[0], tape.times[0])
    heard = 0
    for time, tree in zip(tape.times[1:], tape.trees[1:], strict=True):
        while heard < len(tape.records) and tape.records[heard].time <= time:
            table.add([tape.records[heard]])
            heard += 1
        after = local.reading(tree, time)
        thought = engine.think(window(before, after), table.of_job, partial(facts, tree, time))
        before = after
        advice.update((f.key, f) for f in thought.findings if f.kind not in INTERFERENCE)
        for finding in thought.findings:
            if finding.kind not in INTERFERENCE:
                continue
            findings[finding.key] = widened(findings.get(finding.key), finding)
            if not plans.get(finding.key):
                room = replace(local.room(tree), default_layouts=tape.layouts_of(finding.directories))
                plan = engine.plan(finding, table.of_job(finding.aggressor, 0.0), room)
                plans[finding.key] = (*plan.actions, *plan.recommended)
                refusals.update(dict.fromkeys(map(str, plan.refusals)))
    actions = merged([action for plan in plans.values() for action in plan])
    planned = {action.directory for action in actions}
    return Report(tape, tuple(findings.values()), actions,
                  tuple(r for r in refusals if r.partition(": ")[0] not in planned), tuple(advice.values()))


def widened(known: Finding | None, now: Finding) -> Finding:
    """A finding as it began, with the targets and directories it came to involve."""
    if known is None:
        return now
    return replace(known, targets=union(known.targets, now.targets),
                   directories=union(known.directories, now.directories))


def union(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    """Both, in order, each once."""
    return tuple(dict.fromkeys((*first, *second)))
